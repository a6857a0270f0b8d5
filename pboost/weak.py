"""Weak classifiers: what a node of a decision graph is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.checks import check_choice, check_integer, check_number
from pboost.projections import (
    Projections,
    grid_of_directions,
    random_directions,
    standard_deviations,
)

#: Split criteria, in the order of the codes that the kernels use.
CRITERIA = ("kearns-mansour", "gini", "entropy", "error")
SEARCHES = ("auto", "exact", "binned")
#: Rows from which ``search="auto"`` is binned: there the sorted order alone fills gigabytes.
AUTO_BINNED_ROWS = 10_000_000
#: Rows times directions from which that of affine weak classifiers is, for the same reason.
AUTO_BINNED_CELLS = 100_000_000


class Weak:
    """Base of the weak learners."""

    __slots__ = ()

    def settings(self) -> dict[str, Any]:
        """Return the options as plain values, for the model's record of how it was made."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ColumnLearner(Weak):
    """Weak learners that compare one number per row, a column, with a threshold."""

    criterion: str = "kearns-mansour"
    search: str = "auto"
    max_bins: int = 256
    min_weight: float = 0.0
    min_count: int = 1

    def resolve_search(self, n_rows: int) -> str:
        """Return "exact" or "binned" for data of `n_rows` rows."""
        if self.search != "auto":
            return self.search
        return "exact" if n_rows < AUTO_BINNED_ROWS else "binned"


@dataclass(frozen=True, slots=True)
class Stump(ColumnLearner):
    """A weak classifier that compares one feature with one threshold; made by `stump`."""

    def settings(self) -> dict[str, Any]:
        """Return the options as plain values, for the model's record of how it was made."""
        return {"kind": "stump", **asdict(self)}


def stump(
    criterion: str = "kearns-mansour",
    search: str = "auto",
    *,
    max_bins: int = 256,
    min_weight: float = 0.0,
    min_count: int = 1,
) -> Stump:
    """Decision stumps: ``x[j] <= threshold`` takes one exit, ``x[j] > threshold`` the other.

    Parameters
    ----------
    criterion : {"kearns-mansour", "gini", "entropy", "error"}
        What the split minimises. With class masses L+, L- below and R+, R- above the cut,
        "kearns-mansour" is 2√(L+ L-) + 2√(R+ R-), the exponential loss after the split; the others
        are the Gini, entropy (base 2) and error impurities of the two sides, weighted by their
        masses.
    search : {"auto", "exact", "binned"}
        "exact" tries every cut between two different values; "binned" only the edges of
        `max_bins` bins of about equal weight. "auto" is exact below 1e7 rows.
    max_bins : int
        Number of bins, 2 to 256. It does not change what the exact search finds.
    min_weight : float
        Least share, 0 to 0.5, of the node's weight on either side of the cut.
    min_count : int
        Least number of training rows on either side.

    Returns
    -------
    Stump
        To be passed as ``weak=`` to a builder.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or out of range.

    Notes
    -----
    Among splits whose criterion agrees to 1e-12 of the node's mass, the lowest feature and then
    the lowest threshold is taken. The threshold lies midway between the two neighbouring values.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.weak.stump("gini", min_count=5)
    Stump(criterion='gini', search='auto', max_bins=256, min_weight=0.0, min_count=5)
    """
    return Stump(*_checked(criterion, search, max_bins, min_weight, min_count))


@dataclass(frozen=True, slots=True)
class Affine(ColumnLearner):
    """A weak classifier that is the sign of an affine function; made by `affine`."""

    directions: int = 180
    terms: int = 2
    seed: int = 0

    def settings(self) -> dict[str, Any]:
        """Return the options as plain values, for the model's record of how it was made."""
        return {"kind": "affine", **asdict(self)}

    def resolve_search(self, n_rows: int) -> str:
        """Return "exact" or "binned" for data of `n_rows` rows."""
        if self.search != "auto":
            return self.search
        return "exact" if n_rows * self.directions < AUTO_BINNED_CELLS else "binned"

    def projections(
        self, X: NDArray[Any], rows: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> Projections:
        """Return what is compared with thresholds, made for the listed rows of X."""
        d = X.shape[1]
        if d == 2:
            return grid_of_directions(self.directions)
        scale = standard_deviations(X, rows, weights) if d > 2 else np.zeros(d)
        generator = np.random.default_rng(self.seed)
        return random_directions(scale, self.directions, self.terms, generator)


def affine(
    criterion: str = "kearns-mansour",
    search: str = "auto",
    *,
    directions: int = 180,
    terms: int = 2,
    seed: int = 0,
    max_bins: int = 256,
    min_weight: float = 0.0,
    min_count: int = 1,
) -> Affine:
    """Signs of affine functions: a sum of columns, each times a coefficient, and a threshold.

    The threshold is the best one, as that of a stump is. The directions, which are the
    coefficients, are the same at all nodes of a model:

    * Two columns: the grid of the angles ``k * pi / directions``, k = 0, 1, …, with the
      coefficients (cos, sin). The columns must be in comparable units.
    * More columns: the columns themselves, and `directions` random sums of `terms` different
      columns. Their coefficients are standard normal, brought to length 1, and then divided by the
      standard deviation of the column, so that units do not matter. Constant columns are not drawn.
    * One column: the column.

    Parameters
    ----------
    criterion : {"kearns-mansour", "gini", "entropy", "error"}
        What the split minimises, see `stump`.
    search : {"auto", "exact", "binned"}
        See `stump`. "auto" is exact while rows times `directions` are below 1e8.
    directions : int
        Number of directions, at least 1. An even number of a grid contains both columns.
    terms : int
        Number of columns in a random sum, at least 2; all, where there are not as many. Not used
        with two columns.
    seed : int
        Seed, at least 0, of the random directions; equal seeds draw equal directions for columns
        of equal standard deviations.
    max_bins : int
        Number of bins, 2 to 256. It does not change what the exact search finds.
    min_weight : float
        Least share, 0 to 0.5, of the node's weight on either side of the cut.
    min_count : int
        Least number of training rows on either side.

    Returns
    -------
    Affine
        To be passed as ``weak=`` to a builder, which takes X as a matrix, a data frame or
        `SortedColumns`, whose own order is of no use here.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or out of range.

    Notes
    -----
    An affine weak classifier is a stump on a derived column. Training takes the time and memory
    that stumps take on as many columns as there are directions: 5 bytes per row and direction where
    the search is exact, 1 where it is binned. A model keeps the directions that its nodes use, as
    its ``inputs``, and at a prediction each is made where a node compares it.

    References
    ----------
    .. [1] E. Grossmann, "AdaTree 2: boosting to build decision trees, or improving AdaTree with
       soft splitting rules" (2004), section 5: two columns.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [1.0, 0.0], [2.0, 1.0]])
    >>> weak = pb.weak.affine(directions=4)
    >>> model = pb.fit_boosted_tree(X, [0, 0, 1, 1], nodes=1, weak=weak)
    >>> print(pb.describe(model).splitlines()[-1])
    node 0: -0.7071*x[0] + 0.7071*x[1] <= 0: vote +4.2587, out; else vote -4.2587, out
    """
    return Affine(
        *_checked(criterion, search, max_bins, min_weight, min_count),
        check_integer("directions", directions, least=1),
        check_integer("terms", terms, least=2),
        check_integer("seed", seed, least=0),
    )


def _checked(
    criterion: str, search: str, max_bins: int, min_weight: float, min_count: int
) -> tuple[str, str, int, float, int]:
    """Return the options of all weak learners that compare columns, in the order of the fields."""
    return (
        check_choice("criterion", criterion, CRITERIA),
        check_choice("search", search, SEARCHES),
        check_integer("max_bins", max_bins, least=2, most=256),
        check_number("min_weight", min_weight, least=0.0, most=0.5),
        check_integer("min_count", min_count, least=1),
    )


def check_weak(weak: Any) -> Weak:
    """Return `weak` if it is a weak learner."""
    if not isinstance(weak, Weak):
        raise TypeError(f"weak: expected one of pboost.weak, got {weak!r}")
    return weak
