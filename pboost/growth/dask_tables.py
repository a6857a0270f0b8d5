"""Tables that are collections of Dask: read, binned and coded by tasks, where their rows lie."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pboost.data.batch_counts import BatchCounts
from pboost.data.columns import MAX_BINS, BinnedColumns
from pboost.data.convert import Features
from pboost.data.engines import RELEASE
from pboost.data.made_columns import EDGES
from pboost.data.part_bins import check_alike, like, shared_table, trained_levels
from pboost.data.part_levels import has_categories
from pboost.data.part_tasks import (
    About,
    about,
    bins_of,
    code_part,
    count_keys,
    ends_of,
    fixed_part,
    given_part,
    keys_of,
    least_hashes,
    levels_of,
    merged_hashes,
    numbered_part,
    read_part,
    rows_of_edges,
    weight_in,
    whole_bins,
    without_rows,
)
from pboost.data.parts import (
    Parts,
    TreeParts,
    bits_of_total,
    check_any_weight,
    check_weight_sum,
    exponent_of,
    first_bits,
    kind_of_part,
    shared_labels,
)
from pboost.data.sampled_bins import SAMPLE_ROWS
from pboost.data.table import Table
from pboost.data.target_task import CLASSIFICATION, REGRESSION, Targets, joined, known_task
from pboost.growth.dask_places import DaskPlaces, check_version, dask_module, gathered
from pboost.threads import Workers
from pboost.values import Array, FloatArray, check_choice, check_flag, check_integer, shown

#: What y is read as for a task; "any": what its values say.
OF_TASK = {CLASSIFICATION: "labels", REGRESSION: "targets", None: "any"}


def partitions(name: str, collection: Any, ndim: int, n: int | None = None) -> list[Any]:
    """Return the partitions of a collection, which has n of them."""
    collections = dask_module("dask")
    if not (collections.is_dask_collection(collection) and hasattr(collection, "to_delayed")):
        raise TypeError(
            f"{name}: expected a Dask array or frame, got {type(collection).__name__}; rows that "
            "are here go to the builder of this name in pboost"
        )
    if collection.ndim != ndim:
        raise ValueError(
            f"{name}: expected {ndim} dimension{'s' if ndim > 1 else ''}, got {collection.ndim}"
        )
    if ndim == 2 and hasattr(collection, "rechunk"):
        collection = collection.rechunk({1: -1})
    found = collection.to_delayed()
    found = found.ravel().tolist() if isinstance(found, np.ndarray) else list(found)
    if n is not None and len(found) != n:
        raise ValueError(
            f"{name}: expected {n} partitions, as in X, got {len(found)}; give both the same "
            "chunks, by rechunk or repartition"
        )
    return found


def check_here(validation: Any) -> None:
    """Refuse validation rows that are not in this process."""
    if validation is None:
        return
    if not isinstance(validation, tuple | list):
        raise NotImplementedError(
            "validation: of collections of Dask no share is held out; expected rows that are here, "
            f"(X, y) or (X, y, sample_weight), got {shown(validation)}"
        )
    for one in validation:
        if dask_module("dask").is_dask_collection(one):
            raise TypeError(
                "validation: expected rows that are here, got a collection of Dask "
                f"({type(one).__name__}); its `compute` brings them"
            )


class DaskTable(NamedTuple):
    """A table on the workers of a cluster, its rows as codes.

    Attributes
    ----------
    client : distributed.Client
        Of the cluster.
    coded : list of distributed.Future
        Rows of each partition that has some, as `pboost.data.part_tasks.Coded`.
    bins : BinnedColumns
        Bins of all rows; it holds one row.
    values : ndarray, or int
        Label values; of a regression the exponent of `TreeParts`.
    weights : list, or None
        No arrays, None where rows have no weights.
    """

    client: Any
    coded: list[Any]
    bins: BinnedColumns
    values: Array | int
    weights: list[FloatArray] | None

    def parts(self) -> Parts:
        """Return what a fit to two labels knows of the rows."""
        assert not isinstance(self.values, int)
        return Parts([self.bins], self.values, [], self.weights)

    def tree_parts(self) -> TreeParts:
        """Return what a fit to labels or targets knows of the rows."""
        values = self.values
        if isinstance(values, int):
            return TreeParts([self.bins], None, [], [], values, self.weights)
        return TreeParts([self.bins], values, [], [], 0, self.weights)

    def engine(self, kind: type[Any], *more: Any, dtype: Any = np.int32) -> DaskPlaces:
        """Return the engine whose shards are of a kind, once.

        Shards are given columns, classes of the dtype or scaled targets, weights, and `more`.
        """
        given = _each(self.client, given_part, self.coded, self.bins, self.values, dtype, more)
        self.coded.clear()  # workers keep what futures are held of
        return DaskPlaces(self.client, given, kind)


class ReadRows(NamedTuple):
    """The rows of collections, read and checked by tasks.

    Attributes
    ----------
    client : distributed.Client
        Of the cluster.
    parts : list of distributed.Future
        Rows of each partition that has some, as `pboost.data.part_tasks.ReadPart`.
    features : Features
        What all columns are; no rows.
    values : ndarray, or int
        As of `DaskTable`.
    n_rows : int
        Number of rows of all.
    is_weighed : bool
        Whether there are weights.
    """

    client: Any
    parts: list[Any]
    features: Features
    values: Array | int
    n_rows: int
    is_weighed: bool


def read_table(
    X: Any,
    y: Any,
    sample_weight: Any,
    max_bins: Any,
    of: str,
    edges: str,
    weighted_edges: bool = False,
    keeps_values: bool = False,
) -> DaskTable:
    """Return the table of collections with the same partitions, on the cluster that is there.

    Parameters
    ----------
    X, y, sample_weight, of
        As of `read_partitions`.
    max_bins : int
        Bins per column.
    edges : {"sample", "exact"}
        Rows that make the edges of bins.
    weighted_edges : bool
        Whether edges follow from weights.
    keeps_values : bool
        Whether partitions keep their values beside the codes.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As `read_partitions` does.
    """
    max_bins = check_integer("max_bins", max_bins, least=2, most=MAX_BINS)
    check_choice("edges", edges, EDGES)
    if check_flag("weighted_edges", weighted_edges) and sample_weight is None:
        raise ValueError("weighted_edges: expected False without sample_weight, got True")
    read = read_partitions(X, y, sample_weight, of, weighted_edges)
    client, rows, features = read[:3]
    if edges == "exact":
        coded, bins = _exactly_coded(client, rows, features, max_bins, weighted_edges, keeps_values)
    else:
        is_large = read.n_rows > SAMPLE_ROWS
        coded, bins = _coded(client, rows, features, max_bins, keeps_values, is_large)
    return DaskTable(client, coded, bins, read.values, [] if read.is_weighed else None)


def read_partitions(
    X: Any, y: Any, sample_weight: Any, of: str, weighted_edges: bool = False
) -> ReadRows:
    """Return the rows of collections with the same partitions, on the cluster that is there.

    Parameters
    ----------
    X, y, sample_weight : collections of Dask
        Features, labels or targets, and weights, or None.
    of : {"two labels", "labels", "targets", "any"}
        What y is; "any": labels or targets, as its values say.
    weighted_edges : bool
        Whether edges of bins, and which levels of many are kept, follow from weights.

    Raises
    ------
    TypeError, ValueError
        If they are no collections, have other partitions, or rows are not as they must be.
    RuntimeError
        If the client does not run, or a worker has another release.
    """
    client = _client()
    columns = partitions("X", X, 2)
    given = [columns, partitions("y", y, 1, len(columns)), [None] * len(columns)]
    is_weighed = sample_weight is not None
    if is_weighed:
        given[2] = partitions("sample_weight", sample_weight, 1, len(columns))
    if of == "any":
        given[1] = client.compute(given[1])  # once: they are read again
        of = OF_TASK[known_task(joined(gathered(client, _kinds(client, given[1]))))]
    read = [
        client.submit(
            _read, RELEASE, k, *_futures(client, part), is_weighed, of == "targets", pure=False
        )
        for k, part in enumerate(zip(*given, strict=True))
    ]
    known: list[About] = gathered(client, _each(client, about, read, of == "targets"))
    found = [part.features for part in known]
    check_alike(found)
    if weighted_edges:
        check_any_weight(any(part.weight > 0 for part in known))
        read = _fixed(client, read, known)
    if has_categories(found):
        own = gathered(client, _numbered(client, levels_of, read))
        read = _numbered(client, numbered_part, read, trained_levels(own, found[0]))
        found = gathered(client, _each(client, without_rows, read))
    features = Features(found[0].values, found[0].names, shared_table(found))
    values = _values(known, of)
    if is_weighed:
        check_any_weight(any(part.weight > 0 for part in known))
        if of != "two labels":
            check_weight_sum(sum(part.weight for part in known))
    rows = [part for part, what in zip(read, known, strict=True) if what.n_rows]
    return ReadRows(client, rows, features, values, sum(what.n_rows for what in known), is_weighed)


def _kinds(client: Any, targets: Sequence[Any]) -> list[Any]:
    """Return the futures of what says which task the targets of partitions are of."""
    return [client.submit(_kind, RELEASE, k, part, pure=False) for k, part in enumerate(targets)]


def _fixed(client: Any, parts: Sequence[Any], known: Sequence[About]) -> list[Any]:
    """Return partitions with weights in fixed point, as `fixed_of_parts` has them."""
    most = math.frexp(max(part.heaviest for part in known))[1]
    first = first_bits(sum(part.n_rows for part in known))
    total = sum(gathered(client, _each(client, weight_in, parts, most, first)))
    return list(_each(client, fixed_part, parts, most, bits_of_total(total, first)))


def _values(known: Sequence[About], of: str) -> Array | int:
    """Return the label values of all partitions, or the exponent of targets."""
    if of == "targets":
        return exponent_of([part.most for part in known], sum(part.n_rows for part in known))
    labels = [part.labels for part in known]
    return shared_labels(labels, "" if of == "two labels" else None)


def _client() -> Any:
    """Return the client that is there, which runs."""
    distributed = dask_module("distributed")
    try:
        client = distributed.get_client()
    except ValueError:
        raise ValueError(
            "expected a client of Dask, there is none; distributed.Client() starts a cluster here"
        ) from None
    if client.status != "running":
        raise RuntimeError(f"expected a client of Dask that runs, got one that is {client.status}")
    if client.asynchronous:
        raise TypeError("expected a client of Dask that is not asynchronous")
    return client


def _each(client: Any, function: Callable[..., Any], parts: Sequence[Any], *others: Any) -> Any:
    """Return the futures of what a function returns of each partition."""
    return [client.submit(function, part, *others, pure=False) for part in parts]


def _numbered(
    client: Any, function: Callable[..., Any], parts: Sequence[Any], *others: Any
) -> list[Any]:
    """Return the futures of what a function returns of each partition and its number."""
    return [client.submit(function, part, k, *others, pure=False) for k, part in enumerate(parts)]


def each_part(table: DaskTable, function: Callable[..., Any], *others: Any) -> list[Any]:
    """Return the futures of what a function returns of each partition of a table."""
    return list(_each(table.client, function, table.coded, *others))


def _futures(client: Any, part: Sequence[Any]) -> list[Any]:
    """Return the futures of delayed partitions; futures, and None, as they are."""
    return [client.compute(one) if hasattr(one, "dask") else one for one in part]


def _read(version: str, *arguments: Any) -> Any:
    check_version(version)
    return read_part(*arguments)


def _kind(version: str, *arguments: Any) -> Targets:
    check_version(version)
    return kind_of_part(*arguments)


def _coded(
    client: Any,
    rows: Sequence[Any],
    features: Features,
    max_bins: int,
    keeps_values: bool,
    is_large: bool,
) -> tuple[list[Any], BinnedColumns]:
    """Return futures of the codes of rows, and the bins of all, which hold one row."""
    greatest = None
    if is_large:
        greatest = merged_hashes(gathered(client, _each(client, least_hashes, rows)))
    of_edges = gathered(client, _each(client, rows_of_edges, rows, greatest))
    with Workers(1) as workers:
        bins = bins_of(of_edges, features, max_bins, greatest is not None, workers)
    one = bins.select(np.zeros(1, dtype=np.int32))
    coded = _each(client, code_part, rows, one, keeps_values)
    if greatest is not None:
        one = whole_bins(one, gathered(client, _each(client, ends_of, coded)))
    return coded, one


def _exactly_coded(
    client: Any,
    rows: Sequence[Any],
    features: Features,
    max_bins: int,
    is_weighed: bool,
    keeps_values: bool,
) -> tuple[list[Any], BinnedColumns]:
    """Return what `_coded` does, with the edges of all rows: columns are counted together."""
    keys = _each(client, keys_of, rows)
    table = features.table or Table.of_numbers(features.n_features)
    counts = BatchCounts(table.n_levels, is_weighed)
    counts.limit(max_bins, table.has_missing)
    while asked := counts.asked:
        for found in gathered(client, _each(client, count_keys, keys, asked)):
            counts.join(found)
        counts.take()
    bins = counts.bins(features.names, features.table)
    one = like(bins, np.zeros((bins.n_features, 1), dtype=np.uint8))  # what is sent has a row
    coded = _each(client, code_part, rows, one, keeps_values)
    return coded, whole_bins(one, gathered(client, _each(client, ends_of, coded)))
