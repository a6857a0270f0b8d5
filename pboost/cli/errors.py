"""What goes wrong on the command line, and what extras it may need."""

from __future__ import annotations

import importlib
from typing import Any


class CommandError(Exception):
    """The command failed: one line, exit code 1."""


class UsageError(Exception):
    """The command cannot be meant like this: one line, exit code 2."""


def require(module: str, extra: str) -> Any:
    """Import an optional dependency, or say in one line how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        top = module.partition(".")[0]
        package = "scikit-learn" if top == "sklearn" else top
        raise CommandError(
            f'this command needs {package}: pip install "pboost[{extra}]" ({error})'
        ) from error
