"""Standard streams: input and output in place of files, errors and progress; and missing extras."""

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

#: What stands for standard input or output, and what they are called.
STREAM, INPUT = "-", "standard input"


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


def check_inputs(*paths: str) -> None:
    """Raise UsageError if standard input is to be read twice."""
    if paths.count(STREAM) > 1:
        raise UsageError(f"- stands twice for {INPUT}, which can be read once")


def called(path: str) -> str:
    """Return what an input is called in messages."""
    return INPUT if path == STREAM else path


@contextmanager
def opened(path: str) -> Iterator[io.BufferedReader]:
    """Open an input to read bytes."""
    if path == STREAM:
        yield io.BufferedReader(io.BytesIO(sys.stdin.buffer.read()))
        return
    with open(path, "rb") as file:
        yield file


def load_model(path: str) -> Model:
    """Read a model."""
    if path != STREAM:
        return pb.load(path)
    # A model is read from a file, at any place in it.
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "model")
        with opened(path) as source, open(copy, "wb") as file:
            file.write(source.read())
        try:
            return pb.load(copy)
        except pb.models.ModelFileError as error:
            raise CommandError(str(error).replace(copy, INPUT)) from error


def save_model(model: Model, path: str) -> None:
    """Write a model."""
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
        raise UsageError("-o -: a model is no text for a terminal; redirect standard output")
