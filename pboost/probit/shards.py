"""Boosted probit trees on subsamples of rows that lie in partitions: members are grown one by one.

What a leaf adds up are values, in floating point, so that a member is grown where all rows of the
table are. Which rows it takes follows from their numbers, and it knows nothing of other members.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.binned_values import BinnedValues
from pboost.data.columns import BinnedColumns
from pboost.data.convert import Features
from pboost.data.parts import classes_of_parts, read_columns
from pboost.growth.shard_processes import Processes
from pboost.growth.step import Callback
from pboost.models.subagged import SubaggedProbitTrees
from pboost.probit.sbpmt import Member, Options, Subsampled
from pboost.threads import Workers
from pboost.values import (
    Array,
    FloatArray,
    Progress,
    Seed,
    as_generator,
    check_callback,
    check_integer,
    with_bar,
)
from pboost.values.options import builder


@builder
def fit_sbpmt(
    X: Sequence[BinnedColumns],
    y: Sequence[ArrayLike],
    *,
    members: int = 21,
    rounds: int = 5,
    steps: int = 100,
    bag: float | int | None = 0.7,
    max_depth: int | None = 6,
    min_leaf: int = 7,
    min_split: int = 20,
    complexity: float = 0.01,
    missing: str = "learn",
    tol: float | None = 1e-5,
    safeguard: bool = False,
    step: float = 0.5,
    vote: str = "average",
    one_vs_all: str = "tree",
    stratify: bool = False,
    sample_weight: Sequence[ArrayLike] | None = None,
    rng: Seed = None,
    n_processes: int | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> SubaggedProbitTrees:
    """Fit boosted probit trees to subsamples of rows in partitions; the model is of one table.

    Parameters
    ----------
    X : list of BinnedColumns
        Partitions that keep their values (``values=True`` of `bin_columns` and of
        `pboost.bin_files`), with the same bins, which are not read. One may be empty.
    y : list of array_like
        Labels of the rows of each partition, two values or more in all.
    members, rounds, steps, bag, max_depth, min_leaf, min_split, complexity, missing : optional
        As in `pboost.fit_sbpmt`.
    tol, safeguard, step, vote, one_vs_all, stratify, rng : optional
        As in `pboost.fit_sbpmt`.
    sample_weight : list of array_like, optional
        Weights >= 0 of the rows of each partition, which may all be 0 in some.
    n_processes : int, optional
        Number of processes that grow members, each of which is given all rows. One that dies is
        started again, three times at most, and grows its member again: the model is the same.
        None: this process grows them, on threads.
    n_threads, callback, progress : optional
        As in `pboost.fit_sbpmt`; of processes the callback is called when all members are there.

    Returns
    -------
    SubaggedProbitTrees
        What ``pboost.fit_sbpmt(X, y, rng=rng)`` returns of all rows in one table, **the rows of the
        first partition first, then those of the second, and so on**: rows are drawn by their
        numbers. How this order is divided has no effect.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described, partitions keep no values, or do not agree;
        the message names the argument and the partition.
    RuntimeError
        If a process ends four times, or does not grow a member within ten minutes.
    NotImplementedError
        For `n_threads` with `n_processes`.

    Notes
    -----
    The values of all partitions are copied into one table: 8 bytes each, and 5 more for their
    sorted orders, in this process, or in each of `n_processes`.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> parts = pb.shards.bin_columns([X[:100], X[100:]], values=True)
    >>> model = pb.shards.fit_sbpmt(parts, [y[:100], y[100:]], members=3, rng=0)
    >>> bool((model.alpha == pb.fit_sbpmt(X, y, members=3, rng=0).alpha).all())
    True
    """
    check_callback(callback, progress)
    options = Options.checked(
        members,
        rounds,
        bag,
        step,
        vote,
        one_vs_all,
        stratify,
        max_depth=max_depth,
        min_leaf=min_leaf,
        min_split=min_split,
        steps=steps,
        tol=tol,
        safeguard=safeguard,
        complexity=complexity,
        missing=missing,
    )
    table = read_values(X, y, sample_weight)
    generator = as_generator(rng)
    if n_processes is not None:
        n_processes = check_integer("n_processes", n_processes, least=1)
        if n_threads is not None:
            raise NotImplementedError("n_threads: processes have one thread each, expected None")
    subsampled = options.arranged(*table, generator, n_threads)
    with with_bar(callback, progress, members, "members") as told:
        if n_processes is None:
            return subsampled.fit(n_threads, told)
        given = [(subsampled, k, n_processes) for k in range(min(n_processes, members))]
        with Processes(given, len(given), MemberPlace) as engine:
            calls = range(-(-members // n_processes))
            found = [one for call in calls for one in engine.ask("grown", call)]
        grown = (member for member in found if member is not None)
        return subsampled.taken(grown, n_threads, told)


class MemberPlace:
    """A place that grows members of an ensemble: the first-th of every `n_places`."""

    def __init__(self, of: Subsampled, first: int, n_places: int, workers: Workers) -> None:
        self._of, self._first, self._n_places = of, first, n_places

    def grown(self, call: int) -> Member | None:
        """Return the member that is grown in a call, None after the last."""
        member = self._first + call * self._n_places
        return self._of.train(member) if member < self._of.members else None


def read_values(X: Any, y: Any, sample_weight: Any) -> tuple[Features, Array, FloatArray | None]:
    """Return all rows of partitions that keep their values, in their order."""
    columns, weights = read_columns(X, y, sample_weight)
    for k, part in enumerate(columns):
        if not isinstance(part, BinnedValues):
            raise ValueError(
                "X: probit trees need the values of X, got BinnedColumns, which hold none, in "
                f"partition {k}; pass values=True to pb.shards.bin_columns or pb.bin_files"
            )
    labels, codes = classes_of_parts(y, [part.n_rows for part in columns], None)
    found = [part.features() for part in columns if isinstance(part, BinnedValues)]
    whole = whole_table([one for one in found if one.n_rows])
    weight = None if weights is None else np.concatenate(weights)
    return whole, labels[np.concatenate(codes)], weight


def whole_table(parts: Sequence[Features]) -> Features:
    """Return the rows of some parts, of the same columns, one after another."""
    first = parts[0]
    values = first.values
    if len(parts) > 1:
        values = np.concatenate([part.values for part in parts])
    return Features(values, first.names, first.table)
