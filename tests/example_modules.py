"""Examples as modules, for their tests."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@contextmanager
def imported(name: str, *others: str) -> Iterator[ModuleType]:
    """Import an example, which imports `others`, and forget them in the end; skip without any."""
    if not EXAMPLES.exists():
        pytest.skip("no examples/ beside tests/")
    sys.path.insert(0, str(EXAMPLES))
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.remove(str(EXAMPLES))
        for module in (name, *others):
            sys.modules.pop(module, None)
