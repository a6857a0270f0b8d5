"""What builders declare of how they read X, so that many fits share sorted or binned columns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from pboost.data.binned_values import lacks_values, values_of
from pboost.data.columns import MAX_BINS, SEARCHES, SortedColumns, listed_values
from pboost.data.convert import Rows, as_rows
from pboost.data.training import is_binned
from pboost.values import check_choice

Fit = TypeVar("Fit", bound=Callable[..., Any])


class Search(NamedTuple):
    """The search that a builder makes of the columns of X.

    Attributes
    ----------
    kind : {"auto", "exact", "binned"}
        Which.
    max_bins : int
        Bins of a binned search.
    takes_bins : bool
        Whether BinnedColumns can be given in place of X, as SortedColumns can.
    """

    kind: str = "auto"
    max_bins: int = MAX_BINS
    takes_bins: bool = True

    def resolved(self, n_rows: int) -> str:
        """Return "exact" or "binned" for data of `n_rows` rows."""
        check_choice("search", self.kind, SEARCHES)
        return "binned" if is_binned(self.kind, n_rows) else "exact"


_SEARCHED: dict[Callable[..., Any], Callable[[Mapping[str, Any]], Search | None]] = {}


def reads_columns(searched: Callable[[Mapping[str, Any]], Search | None]) -> Callable[[Fit], Fit]:
    """Declare a builder that takes columns in place of X, which `searched` tells by its options."""

    def declare(fit: Fit) -> Fit:
        _SEARCHED[fit] = searched
        return fit

    return declare


def column_search(fit: Any, options: Mapping[str, Any]) -> Search | None:
    """Return the search of a builder with these options; None where it cannot be given columns."""
    # A wrapper, which may look at X itself, is another function.
    searched = _SEARCHED.get(fit) if inspect.isfunction(fit) else None
    return None if searched is None else searched(options)


def search_option(options: Mapping[str, Any]) -> Search:
    """Return the search of builders whose own options say which it is."""
    return Search(options.get("search", "auto"), options.get("max_bins", MAX_BINS))


def check_values(X: Any, use: str = "to predict from") -> None:
    """Raise TypeError for columns that hold no values, and say what these would be for."""
    if lacks_values(X):
        raise TypeError(
            f"X: BinnedColumns hold no values {use}; pass X, SortedColumns or "
            "bin_columns(X, values=True)"
        )


def rows_to_predict(X: Any) -> Rows:
    """Return the rows of X, or of what is sorted, to predict from."""
    check_values(X)
    X = values_of(X)
    if not isinstance(X, SortedColumns):
        return as_rows(X)
    rows = as_rows(listed_values(X.source, X.rows))
    return replace(rows, names=X.names, table=X.table)
