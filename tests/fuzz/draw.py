"""Random problems: rows, labels, weights, in all the forms in which they can be passed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Generator = np.random.Generator
#: Sizes of problems; small ones find more per second.
SIZES = (2, 3, 4, 5, 7, 8, 9, 12, 16, 23, 33, 40, 64, 65)


@dataclass(frozen=True)
class Problem:
    """Rows X of float64, targets y, weights or None, and how many classes (0: a regression)."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    n_classes: int

    def replace(self, **changes: Any) -> Problem:
        return replace(self, **changes)

    def new_rows(self, rng: Generator, n: int = 6) -> np.ndarray:
        """Draw rows of other combinations of the values, and values between them."""
        first, other = (rng.integers(0, len(self.X), (n, self.X.shape[1])) for _ in range(2))
        columns = np.arange(self.X.shape[1])
        a, b = self.X[first, columns], self.X[other, columns]
        share = rng.choice([0.0, 0.5, 0.25], n)[:, None]
        return a * (1 - share) + b * share


def column(rng: Generator, n: int, tame: bool) -> np.ndarray:
    """Draw a column: with ties, constant, of tiny and of huge numbers, or plain."""
    kind = rng.integers(8) if tame else rng.integers(12)
    plain = rng.normal(size=n)
    if kind < 3:
        return plain
    if kind < 5:
        return rng.integers(-2, 3, n).astype(float)
    if kind == 5:
        return plain.round(1)
    if kind == 6:
        return (rng.random(n) < 0.5).astype(float)
    if kind == 7:
        return np.full(n, rng.choice([0.0, -0.0, 3.5]))
    if kind == 8:
        return rng.integers(-3, 4, n) * 5e-324
    if kind == 9:
        return plain * 1e300
    if kind == 10:
        return 1e9 + plain * 1e-6
    return plain * 10.0 ** rng.integers(-300, 300)


def labels(rng: Generator, j: int) -> np.ndarray:
    """Draw j different sorted label values."""
    kind = rng.integers(5)
    if kind == 0 and j == 2:
        return np.array([False, True])
    if kind == 1:
        return np.array(["a", "b", "ß\U0001f600", "z" * 9][:j])
    if kind == 2:
        return np.sort(rng.choice(np.arange(-99, 99), j, replace=False)).astype(np.int8)
    if kind == 3:
        # Of more than two, numbers that are not whole are taken for a regression.
        return np.arange(j) / 4 - 0.25 if j == 2 else np.arange(j) - 1.0
    return np.arange(j)


def weights(rng: Generator, n: int) -> np.ndarray | None:
    """Draw weights, some of them 0, of any scale; or None."""
    kind = rng.integers(5)
    if kind == 0:
        return None
    if kind < 3:
        actual = rng.integers(0, 4, n).astype(float)
    else:
        actual = rng.random(n) * 2.0 ** rng.integers(-900, 900) if kind == 3 else rng.random(n)
    actual[0] = max(actual[0], actual.max(), 1e-290)
    return actual


def problem(rng: Generator, n_classes: int, *, tame: bool = False) -> Problem:
    """Draw a problem of so many classes, 0 for a regression; `tame`: of no extreme numbers."""
    n = int(rng.choice(SIZES if not tame else SIZES[3:]))
    n, d = max(n, n_classes), int(rng.integers(1, 5))
    X = np.column_stack([column(rng, n, tame) for _ in range(d)])
    if d > 1 and rng.random() < 0.15:
        X[:, 1] = X[:, 0]
    if rng.random() < 0.03:
        X[:] = X[0]  # nothing can be split
    first = np.argsort(np.argsort(X[:, 0], kind="stable"), kind="stable") / n
    noisy = first + rng.choice([0.0, 0.3, 3.0]) * rng.random(n)
    weight = weights(rng, n)
    if not n_classes:
        scale = 1.0 if tame else 10.0 ** rng.choice([0, 0, 0, -200, 140, 9])
        y = noisy.round(int(rng.integers(1, 9))) * scale
        return Problem(X, y, weight, 0)
    values = labels(rng, n_classes)
    codes = np.minimum((noisy / max(noisy.max(), 1e-9) * n_classes).astype(int), n_classes - 1)
    places = rng.permutation(n)[:n_classes]
    codes[places] = np.arange(n_classes)
    if weight is not None:
        weight[places] = np.maximum(weight[places], weight.max() / 2)
    return Problem(X, values[codes], weight, n_classes)


def layout(rng: Generator, X: np.ndarray) -> tuple[str, Any]:
    """Return the same numbers in another form, and its name."""
    n, d = X.shape
    kind = int(rng.integers(7))
    with np.errstate(over="ignore"):
        single = X.astype(np.float32)
    if kind == 0 and (single == X).all():
        return "float32", single
    if kind == 1:
        return "Fortran order", np.asfortranarray(X)
    if kind == 2:
        return "negative strides", np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    if kind == 3:
        wide = np.full((2 * n, 3 * d), np.nan)
        wide[::2, ::3] = X
        return "strides", wide[::2, ::3]
    if kind == 4:
        return "list", X.tolist()
    if kind == 5 and (np.abs(X) < 100).all() and (X.round() == X).all():
        return "int8", X.astype(np.int8)
    read_only = X.copy()
    read_only.flags.writeable = False
    return "read-only", read_only
