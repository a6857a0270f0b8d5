"""What is told on standard error: what went wrong, progress; and missing extras."""

from __future__ import annotations

import importlib
import sys
from functools import partial
from typing import Any

from pboost.values import Progress, install_hint


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
            f"this command needs {package}: {install_hint(extra, package)} ({error})"
        ) from error


def progress() -> Progress:
    """Return what makes a bar that goes when the work is done; False where nobody would see it."""
    if not sys.stderr.isatty():
        return False
    try:
        from tqdm import tqdm
    except ImportError:  # the bar is no reason to refuse the work
        return False
    return partial(tqdm, leave=False, delay=0.5, file=sys.stderr)
