"""How much memory a call takes at most, and what a file from anywhere may take of it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

#: What reading may take beyond a multiple of the size of a file.
FREE = 16_000_000
#: Multiples of the sizes of model files and folders, and of texts of JSON.
OF_FILES, OF_TEXTS = 10, 40


def peak(call: Callable[[], Any]) -> int:
    """Return the most bytes that a call held at a time."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
