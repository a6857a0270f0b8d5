"""Boosted probit trees on subsamples of Dask collections: members are tasks."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from pboost.data.blocks import codes_among
from pboost.data.convert import Features
from pboost.data.part_tasks import ReadPart
from pboost.growth.dask_places import gathered
from pboost.growth.dask_tables import ReadRows, read_partitions
from pboost.models.subagged import SubaggedProbitTrees
from pboost.probit.sbpmt import Member, Options, Subsampled
from pboost.probit.shards import whole_table
from pboost.values import Array, Seed, as_generator, draw_seed
from pboost.values.options import builder

#: Bytes of a value, of its place in the sorted order, and of its code.
BYTES = 8 + 4 + 1


@builder
def fit_sbpmt(
    X: Any,
    y: Any,
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
    sample_weight: Any = None,
    rng: Seed = None,
) -> SubaggedProbitTrees:
    """Fit boosted probit trees to subsamples of a Dask array or frame; members are tasks.

    Parameters
    ----------
    X, sample_weight : optional
        Collections of Dask, as in `pboost.dask.fit_adaboost`.
    y : dask.array.Array of shape (n,), or dask.dataframe.Series
        Labels, two values or more in all, in partitions as those of X.
    members, rounds, steps, bag, max_depth, min_leaf, min_split, complexity, missing : optional
        As in `pboost.fit_sbpmt`.
    tol, safeguard, step, vote, one_vs_all, stratify, rng : optional
        As in `pboost.fit_sbpmt`.

    Returns
    -------
    SubaggedProbitTrees
        What ``pboost.fit_sbpmt(X, y, rng=rng)`` returns of all rows in one table, in the order of
        the partitions, bit for bit, whatever the workers, and which of them are lost meanwhile.

    Raises
    ------
    ValueError, TypeError, RuntimeError, ImportError
        As `pboost.dask.fit_adaboost` does; ValueError, too, before work begins, if the table does
        not fit into the memory of each worker: the message says how many bytes it has.

    Notes
    -----
    The table is put together on a worker, sorted once, and sent to each that grows members: 13
    bytes a value. A worker that is lost costs its members, which are grown anew elsewhere.

    Examples
    --------
    >>> import dask.array as da  # doctest: +SKIP
    >>> from distributed import Client  # doctest: +SKIP
    >>> with Client() as client:  # doctest: +SKIP
    ...     X = da.random.random((10_000, 20), chunks=(2_500, 20))
    ...     y = (X[:, 0] > X[:, 1]).astype(int)
    ...     model = pboost.dask.fit_sbpmt(X, y, rng=0)
    """
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
    generator = as_generator(rng)
    read = read_partitions(X, y, sample_weight, "labels")
    check_memory(read)
    client, drawn = read.client, copy.deepcopy(generator)
    draw_seed(generator)  # as one fit here leaves it
    table = client.submit(
        _arranged, options, read.parts, read.features, read.values, drawn, pure=False
    )
    grown = [client.submit(_grown, table, member, pure=False) for member in range(options.members)]
    (model,) = gathered(client, [client.submit(_model, table, grown, pure=False)])
    assert isinstance(model, SubaggedProbitTrees)
    return model


def check_memory(read: ReadRows) -> None:
    """Raise ValueError where a table does not fit into the memory of each worker."""
    workers = read.client.scheduler_info(n_workers=-1)["workers"].values()
    room = min((w["memory_limit"] for w in workers if w["memory_limit"]), default=0)
    n_bytes = BYTES * read.n_rows * read.features.n_features
    if room and n_bytes > room:
        raise ValueError(
            f"X: {read.n_rows} rows of {read.features.n_features} columns take {n_bytes} bytes "
            f"where members are grown, and a worker has {room}; a member needs all rows"
        )


def _arranged(
    options: Options,
    parts: Sequence[ReadPart],
    features: Features,
    values: Array,
    generator: np.random.Generator,
) -> Subsampled:
    """Return the rows of all partitions, and their subsamples."""
    whole = whole_table([part.features for part in parts])
    y = np.concatenate([part.y for part in parts if part.y is not None])
    weights = [part.weights for part in parts if part.weights is not None]
    weight = np.concatenate(weights) if weights else None
    X = Features(whole.values, features.names, features.table)
    return options.arranged(X, values[codes_among(y, values)], weight, generator, 1)


def _grown(table: Subsampled, member: int) -> Member:
    return table.train(member)


def _model(table: Subsampled, grown: Sequence[Member]) -> SubaggedProbitTrees:
    return table.taken(grown, 1, None)
