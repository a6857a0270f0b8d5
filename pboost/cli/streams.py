"""Read and write standard streams, show progress bars and import optional dependencies."""

from __future__ import annotations

import importlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pboost as pb
from pboost.models.base import Model
from pboost.values import Progress, install_hint

#: File name that selects standard input or output, and the name of standard input in messages.
STREAM, INPUT = "-", "standard input"


class CommandError(Exception):
    """Raised if a command fails. The message is one line; the exit code is 1."""


class UsageError(Exception):
    """Raised if a command line is invalid. The message is one line; the exit code is 2."""


def require(module: str, extra: str) -> Any:
    """Import an optional dependency. If it is missing, the error explains how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        top = module.partition(".")[0]
        package = "scikit-learn" if top == "sklearn" else top
        raise CommandError(
            f"this command needs {package}: {install_hint(extra, package)} ({error})"
        ) from error


def progress() -> Progress:
    """Return a function that creates temporary progress bars, or False if there is no terminal."""
    if not sys.stderr.isatty():
        return False
    try:
        from tqdm import tqdm
    except ImportError:  # the progress bar is optional
        return False
    return partial(tqdm, leave=False, delay=0.5, file=sys.stderr)


def check_inputs(*paths: str) -> None:
    """Raise UsageError if standard input is used twice."""
    if paths.count(STREAM) > 1:
        raise UsageError(f"-: expected at most one input from {INPUT}, got two")


def called(path: str) -> str:
    """Return the name of an input in messages."""
    return INPUT if path == STREAM else path


@contextmanager
def opened(path: str) -> Iterator[io.BufferedReader]:
    """Open an input for reading bytes."""
    if path == STREAM:
        yield io.BufferedReader(io.BytesIO(sys.stdin.buffer.read()))
        return
    with open(path, "rb") as file:
        yield file


def load_model(path: str) -> Model:
    """Load a model from a file or standard input."""
    if path != STREAM:
        return pb.load(path)
    # Loading needs random access, so standard input is copied to a file.
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "model")
        with opened(path) as source, open(copy, "wb") as file:
            file.write(source.read())
        try:
            return pb.load(copy)
        except pb.models.ModelFileError as error:
            raise CommandError(str(error).replace(copy, INPUT)) from error


def save_model(model: Model, path: str) -> None:
    """Save a model to a file or standard output."""
    if path != STREAM:
        pb.save(model, path)
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "model")
        pb.save(model, copy)
        with opened(copy) as file:
            sys.stdout.buffer.write(file.read())


def check_model_output(path: str) -> None:
    """Raise UsageError if a model would be written to a terminal."""
    if path == STREAM and sys.stdout.isatty():
        raise UsageError("-o -: expected a redirected standard output, got a terminal")
