"""Exceptions of the package that are not plain ``ValueError`` or ``TypeError``."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A file is not a model that this version of the package can load."""


class AbsentClassError(ValueError):
    """A class has fewer rows of positive weight than a builder needs.

    Attributes
    ----------
    least : int
        How many rows of each class it needs.
    """

    def __init__(self, message: str, least: int = 1) -> None:
        super().__init__(message)
        self.least = least
