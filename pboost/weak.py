"""Weak classifiers: what a node of a decision graph is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pboost.checks import check_choice, check_integer, check_number

#: Split criteria, in the order of the codes that the kernels use.
CRITERIA = ("kearns-mansour", "gini", "entropy", "error")
SEARCHES = ("auto", "exact", "binned")
#: Rows from which ``search="auto"`` is binned: there the sorted order alone fills gigabytes.
AUTO_BINNED_ROWS = 10_000_000


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
    return Stump(
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
