"""The JSON headers of model files."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

#: How deep lists and tables can lie within one another.
MAX_NESTING = 32


def is_nested_deeper(value: Any) -> bool:
    """Return whether lists and tables lie deeper within one another than they can."""
    level = [value]
    for _ in range(MAX_NESTING + 1):
        inner = (list(v.values()) if isinstance(v, dict) else v for v in level)
        level = [item for values in inner if isinstance(values, list) for item in values]
    return bool(level)


def plain(value: Any, where: str, depth: int = 1) -> Any:
    """`value` in JSON's own types; TypeError naming the place of what has none."""
    if depth > MAX_NESTING:
        raise TypeError(f"model.{where}: is nested more than {MAX_NESTING} deep")
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
    raise TypeError(f"model.{where}: cannot be stored: {value!r}")


def to_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest(header: Mapping[str, Any]) -> str:
    """SHA-256 of the header without its digest; through it, of all columns."""
    rest = {key: value for key, value in header.items() if key != "digest"}
    return hashlib.sha256(to_json(rest)).hexdigest()
