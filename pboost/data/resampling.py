"""Random splits of rows: cross-validation folds, validation sets and bootstrap samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns.bin_and_sort import codes_between
from pboost.data.columns.columns import BinnedColumns
from pboost.data.columns.prebuilt import HOLES
from pboost.data.read.check_xy import AbsentClassError, present_levels, training_features
from pboost.data.read.codes import as_codes
from pboost.data.read.convert import Features
from pboost.data.read.table import Takes
from pboost.data.targets import Entries
from pboost.values import (
    Array,
    FloatArray,
    IntArray,
    check_flag,
    check_integer,
    check_number,
    child,
    draw_seed,
    shown,
)

#: Type of the option `validation`.
Validation: TypeAlias = tuple[Any, ...] | float | None

#: Number of rows drawn at a time if only a part of them is needed.
DRAWN_AT_ONCE = 1 << 20


def assign_folds(
    labels: Array, weight: FloatArray | None, folds: int, rng: np.random.Generator
) -> IntArray:
    """Return the test fold of each row, stratified by class.

    Warns if a class has fewer rows than there are folds.
    """
    values, code = as_codes(labels)
    # Rows of weight 0 form separate strata, because they do not influence the fit.
    idle = np.zeros(len(labels), bool) if weight is None else weight == 0
    classes = range(len(values))
    strata = [np.flatnonzero((code == k) & (idle == i)) for i in (False, True) for k in classes]
    sizes = [len(strata[k]) for k in classes]
    rarest, weighed = min(sizes), "" if weight is None else " of positive weight"
    name = repr(values[sizes.index(rarest)].item())
    if rarest < (2 if len(sizes) == 2 else 1):
        raise ValueError(
            f"y: expected more rows{weighed} of each class, so that all training sets contain two "
            f"classes, got {rarest} of class {name}"
        )
    if folds > max(sizes):
        raise ValueError(
            f"cv: expected at most {max(sizes)} folds, the number of rows{weighed} of the most "
            f"frequent class, got {folds}"
        )
    if folds > rarest:
        warnings.warn(
            f"y: class {name} has {rarest} row{'s' * (rarest != 1)}{weighed}, fewer than the "
            f"{folds} folds; some folds will not contain it",
            UserWarning,
            stacklevel=5,  # the caller of the decorated function
        )
    return deal(strata, folds, rng)


def any_folds(
    code: IntArray, weight: FloatArray | None, folds: int, rng: np.random.Generator
) -> IntArray:
    """Return the test fold of each row, stratified by class. Rare classes are allowed."""
    idle = np.zeros(len(code), bool) if weight is None else weight == 0
    n_rows = len(code) - int(np.count_nonzero(idle))
    if n_rows < 2:
        raise ValueError(
            "X: expected at least two rows of positive weight for cross-validation, got one sample"
        )
    if folds > n_rows:
        raise ValueError(
            f"cv: expected at most {n_rows} folds, the number of rows of positive weight, "
            f"got {folds}"
        )
    strata = [np.flatnonzero((code == k) & ~idle) for k in range(int(code.max()) + 1)]
    return deal([*strata, np.flatnonzero(idle)], folds, rng)


def deal(strata: Sequence[NDArray[np.intp]], folds: int, rng: np.random.Generator) -> IntArray:
    """Shuffle the rows of each stratum, and assign them to the folds in turn."""
    order = np.concatenate([rng.permutation(rows) for rows in strata])
    test_fold = np.empty(len(order), np.int32)
    test_fold[order] = np.arange(len(order)) % folds
    return test_fold


def hold_out(
    classes: Sequence[NDArray[np.intp]], share: float, generator: np.random.Generator
) -> NDArray[np.intp]:
    """Select a random part of the rows of each class; return them in ascending order."""
    return np.sort(np.concatenate(held_of_classes(classes, share, generator)))


def held_of_classes(
    classes: Sequence[Array], share: float, generator: np.random.Generator
) -> list[Array]:
    """Return a random part of the rows of each class. The draws do not depend on row numbers."""
    if len(classes) == 1 and len(classes[0]) < 2:
        raise ValueError(
            "validation: expected at least two rows of positive weight, one for training and one "
            "for validation, got one sample; or pass validation data"
        )
    return [_draw(rows, share, generator) for rows in classes]


def _draw(rows: Array, share: float, generator: np.random.Generator) -> Array:
    """Return a random part of the rows of a class: at least one, but not all."""
    if len(rows) < 2:
        raise AbsentClassError(
            "validation: expected at least two rows of each class, one for training and one for "
            "validation; or pass validation data",
            min_rows=2,
        )
    n = min(max(round(share * len(rows)), 1), len(rows) - 1)
    return generator.permutation(rows)[:n]


@dataclass(frozen=True, slots=True, eq=False)
class Bags:
    """Random samples of rows for base learners. The seed and the number determine each sample.

    Attributes
    ----------
    rows : ndarray of int32, shape (n_positive,)
        Rows of positive weight, from which samples are drawn.
    weights : ndarray of float64, shape (n,)
        Weights of all rows, or of all entries.
    size : int
        Number of rows to draw.
    replace : bool
        Whether to draw with replacement.
    seed : tuple of int
        Seed of all samples.
    entries : Entries or None
        Entries of class probabilities. All entries of a row are drawn together.
    """

    rows: IntArray
    weights: FloatArray
    size: int
    replace: bool
    seed: tuple[int, ...]
    entries: Entries | None = None

    def stream(self, member: int) -> np.random.Generator:
        """Return the random generator of a base learner."""
        return child(self.seed, member)

    def draw(self, member: int) -> tuple[FloatArray, np.random.Generator]:
        """Return the row weights (0 for rows not drawn) and the generator of a base learner."""
        generator = self.stream(member)
        n = len(self.rows)
        if not self.replace and self.size == n:
            return self.weights, generator
        return self.taken(self.rows, times_drawn(generator, n, self.size, self.replace)), generator

    def taken(self, rows: IntArray, count: Any = 1) -> FloatArray:
        """Return the weights multiplied by `count` for the listed rows, and 0 for others."""
        if self.entries is not None:
            times = np.zeros(len(self.entries.first))
            times[rows] = count
            return self.weights * times[self.entries.rows]
        weights = np.zeros(len(self.weights))
        weights[rows] = self.weights.take(rows) * count
        return weights


def times_drawn(
    generator: np.random.Generator,
    n: int,
    size: int,
    is_repeated: bool,
    some: tuple[int, int] | None = None,
) -> NDArray[np.intp]:
    """Return how often each of n rows is drawn. If given, `some` is the range of rows to return."""
    if not is_repeated:
        times = np.zeros(n, dtype=np.intp)
        times[generator.choice(n, size, replace=False, shuffle=False)] = 1
        return times if some is None else times[slice(*some)]
    if some is None:
        return np.bincount(generator.integers(0, n, size), minlength=n)
    first, last = some
    times = np.zeros(last - first, dtype=np.intp)
    for start in range(0, size, DRAWN_AT_ONCE):
        drawn = generator.integers(0, n, min(DRAWN_AT_ONCE, size - start))
        in_range = drawn[(drawn >= first) & (drawn < last)]
        times += np.bincount(in_range - first, minlength=last - first)
    return times


def check_bag(name: str, bag: object) -> int | float | None:
    """Return a fraction of the rows in (0, 1], a number of rows or None; reject other values."""
    if bag is None:
        return None
    if isinstance(bag, bool | np.bool_) or not isinstance(
        bag, int | float | np.integer | np.floating
    ):
        raise TypeError(
            f"{name}: expected a fraction of the rows (a float), a number of rows (an integer) or "
            f"None, got {shown(bag)}"
        )
    if isinstance(bag, int | np.integer):
        return check_integer(name, bag, min_value=1)
    return check_number(name, bag, min_value=0.0, max_value=1.0, open_min=True)


def rows_of_bag(bag: int | float | None, n: int, rounded: Callable[[float], int] = round) -> int:
    """Return the number of rows to draw from n rows, at least 1."""
    if bag is None:
        return n
    return bag if isinstance(bag, int) else max(1, rounded(bag * n))


def make_bags(
    weights: FloatArray | None,
    n: int,
    bag: int | float | None,
    replace: object,
    generator: np.random.Generator,
    rounded: Callable[[float], int] = round,
    entries: Entries | None = None,
) -> Bags:
    """Return the samples for a checked fraction or number of rows."""
    replace = check_flag("bootstrap", replace)
    weights = np.ones(n) if weights is None else weights
    rows = np.flatnonzero(weights > 0).astype(np.int32)
    if entries is not None:
        rows = np.unique(entries.rows[rows])
    size = size_of_bag(bag, replace, len(rows), weights.max(initial=0.0), rounded)
    return Bags(rows, weights, size, replace, draw_seed(generator), entries)


def size_of_bag(
    bag: int | float | None,
    replace: bool,
    n: int,
    heaviest: float,
    rounded: Callable[[float], int] = round,
) -> int:
    """Return the number of rows to draw from n rows of positive weight; check that it is valid."""
    size = rows_of_bag(bag, n, rounded)
    if heaviest > np.finfo(np.float64).max / max(size, n):
        raise ValueError(
            "sample_weight: expected weights with a finite sum in every sample of rows"
        )
    if not replace and size > n:
        raise ValueError(
            f"max_samples: expected at most {n}, the number of rows of positive weight, for "
            f"sampling without replacement, got {size}"
        )
    return size


class HoldOut(NamedTuple):
    """Settings of a random validation set, stratified by class.

    Attributes
    ----------
    share : float
        Fraction of the rows, in (0, 0.5].
    generator : numpy.random.Generator
        Source of randomness.
    keeps_levels : bool
        Whether to keep the category numbers of an existing model.
    """

    share: float
    generator: np.random.Generator
    keeps_levels: bool = False

    def draw(
        self, rows: NDArray[np.intp], classes: Any, label: Array, entries: Entries | None
    ) -> NDArray[np.intp]:
        """Return the validation rows, or entries, among the rows of positive weight."""
        if entries is not None:
            return _entries_held_out(entries, rows, self.share, self.generator)
        if classes is None:
            return hold_out([rows], self.share, self.generator)
        by_class = [rows[label[rows] == k] for k in range(len(classes))]
        return hold_out(by_class, self.share, self.generator)


def _entries_held_out(
    entries: Entries, listed: NDArray[np.intp], share: float, generator: np.random.Generator
) -> NDArray[np.intp]:
    """Select random rows among the listed entries, and return all entries of the selected rows.

    The rows are stratified by their most probable class; classes with one row are skipped.
    """
    rows = np.unique(entries.rows[listed]).astype(np.intp)
    kinds = entries.likeliest[rows]
    strata = [rows[kinds == k] for k in np.unique(kinds)]
    drawn = hold_out([part for part in strata if len(part) > 1] or strata, share, generator)
    return np.flatnonzero(np.isin(entries.rows, drawn))


@dataclass(frozen=True, slots=True, eq=False)
class HeldRows:
    """A validation set.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Row numbers, or entry numbers.
    input_rows : ndarray of int, shape (m,)
        Row numbers in X.
    weight : ndarray of float64, shape (m,)
        Sample weights.
    y : ndarray, shape (m,)
        Targets or classes.
    values : ndarray, shape (m, d), or None
        Feature values, if the bins of the training rows cannot represent them.
    elsewhere : object, or None
        Object that stores the rows of a row source. The arrays are then empty.
    """

    rows: NDArray[np.intp]
    input_rows: NDArray[np.intp]
    weight: FloatArray
    y: Array
    values: Array | None = None
    elsewhere: Any = None

    def without(self, weights: FloatArray | None, n: int) -> FloatArray:
        """Return the weights of the n rows of X, with 0 for the validation rows."""
        weights = np.ones(n) if weights is None else weights.copy()
        weights[self.input_rows] = 0.0
        return weights

    def coded(
        self, columns: BinnedColumns, values: Array, n_threads: int | None
    ) -> tuple[HeldRows, BinnedColumns]:
        """Encode the validation rows with the bins of the training rows.

        `values` contains all rows. If a feature was complete in training, its missing
        values have no code; the validation rows then keep their values.
        """
        rows = np.unique(self.input_rows).astype(np.int32)
        special = columns.special
        has_holes = np.zeros(columns.n_features) if special is None else special & HOLES
        has_no_code = np.isnan(values[rows]).T & (has_holes[:, None] == 0)
        codes = columns.codes.copy()
        codes[:, rows] = np.where(has_no_code, 0, codes_between(columns, values, rows, n_threads))
        held = replace(self, values=values[self.input_rows]) if has_no_code.any() else self
        return held, columns.with_codes(codes, None, rows)


def trained_features(
    features: Features, weights: FloatArray | None, takes: Takes, hold: HoldOut | None
) -> Features:
    """Return the features of the training data, given the weights of the rows of X.

    Categories that occur only in the validation set become missing values.
    """
    if hold is not None and not hold.keeps_levels:
        features = present_levels(features, weights)
    return training_features(features, weights, takes)
