"""Exceptions of the package that are not plain ``ValueError`` or ``TypeError``."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A file is not a model that this version of the package can load."""
