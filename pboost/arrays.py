"""Types of arrays, and arrays that cannot change."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int32]


def freeze(array: Any, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Return a C-contiguous copy of `array` that can never be made writeable again."""
    source = np.ascontiguousarray(array, dtype=dtype)
    # A view of immutable bytes, unlike an owning array, refuses setflags(write=True).
    return np.frombuffer(source.tobytes(), dtype=source.dtype).reshape(source.shape)
