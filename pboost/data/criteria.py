"""Split criteria by name, and impurities of nodes; those of splits are in `_core/split.pxd`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pboost._core.split import Criterion
from pboost.values import FloatArray


def _entropy(share: FloatArray) -> FloatArray:
    logs = np.log2(share, out=np.zeros_like(share), where=share > 0)
    found: FloatArray = np.abs((share * logs).sum(axis=1))
    return found


#: For each criterion the impurities of nodes, from the shares (n, J) of their classes.
IMPURITIES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "kearns-mansour": lambda share: 2.0 * np.sqrt(share[:, 0] * share[:, 1]),
    "gini": lambda share: 1.0 - (share * share).sum(axis=1),
    "entropy": _entropy,
    "error": lambda share: 1.0 - share.max(axis=1),
}
#: Those of two classes, the default first.
CRITERIA = tuple(IMPURITIES)
#: What the kernels call criteria.
CODES = {name.lower().replace("_", "-"): int(c) for name, c in Criterion.__members__.items()}
#: Those of two classes only.
OF_TWO = ("kearns-mansour",)


def class_criteria(n_classes: int) -> tuple[str, ...]:
    """Return the criteria of a classification, its default first."""
    return tuple(n for n in CRITERIA if n not in OF_TWO) + (OF_TWO if n_classes == 2 else ())
