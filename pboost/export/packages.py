"""Packages that only some formats need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pboost.values import install_hint


def needed(package: str, function: str, extra: str) -> Any:
    """Return a package, or a module of one; ImportError says which extra has it."""
    try:
        return import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        hint = install_hint(extra, name)
        raise ImportError(f"{function} needs {name}: {hint}") from error
