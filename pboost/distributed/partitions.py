"""A row source for builders whose rows are in partitions, in this process or on a cluster.

`pboost.distributed.partition_tasks` has the functions that process one partition. A `Place` runs
them in this process or on the worker that holds the partition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Protocol, TypeVar

import numpy as np

from pboost.data.columns.bin_and_sort import EDGES, BinEdges
from pboost.data.columns.columns import MAX_BINS, BinnedColumns, BinnedValues, valued
from pboost.data.columns.exact_bin_edges import BatchCounts
from pboost.data.columns.sampled_bin_edges import SAMPLE_ROWS
from pboost.data.read.batches import PartLevels, has_categories, joined_levels, shared_levels
from pboost.data.read.check_xy import check_label_values, label_values
from pboost.data.read.convert import Features, Trained
from pboost.data.read.table import Table
from pboost.data.resampling import HeldRows, HoldOut, held_of_classes
from pboost.data.row_source import OneTable, RowSource
from pboost.data.targets import CLASSIFICATION, joined, known_task
from pboost.data.training_data import Problem
from pboost.distributed import partition_tasks as tasks
from pboost.distributed.engine import SUM_BITS, Engine, Serial, check_size
from pboost.distributed.gradient_boosting import SumParts, check_sums
from pboost.distributed.graphs import GROWTHS, GraphRows, HeldParts
from pboost.distributed.trees import TreeRows
from pboost.losses import Loss, LossName
from pboost.threads import Workers
from pboost.values import Array, FloatArray, Task, check_choice, check_flag, check_integer

T = TypeVar("T")


class Place(Protocol):
    """Storage of the partitions, which runs tasks on them."""

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Start a task and return its result, or a future of it."""

    def results(self, submitted: Mapping[int, Any]) -> list[Any]:
        """Return the results by partition, or raise the error of the first task that failed."""

    def engine(self, inputs: Mapping[int, Any], kind: type[Any], n_threads: int | None) -> Engine:
        """Return an engine with one object of class `kind` per partition."""


class LocalPlace:
    """Partitions in this process. Tasks run immediately."""

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Run a task and return its result."""
        return task(*arguments)

    def results(self, submitted: Mapping[int, Any]) -> list[Any]:
        """Return the results, because tasks run immediately."""
        return list(submitted.values())

    def engine(self, inputs: Mapping[int, Any], kind: type[Any], n_threads: int | None) -> Engine:
        """Return an engine with one object of class `kind` per partition."""
        cells = sum(columns.codes.size for columns, *_ in inputs.values())
        workers = Workers(n_threads, cells)
        return Serial([kind(*part_inputs, workers) for part_inputs in inputs.values()], workers)


class PartitionedRows(RowSource):
    """Rows in partitions with common bins, as returned by `partitions`.

    Parameters
    ----------
    place : Place
        Stores the partitions and runs tasks on them.
    parts : list
        For each partition that has rows, a `PartitionData` or a future of it.
    numbers : list of int
        Index of each partition in `parts` among all partitions that were passed.
    sizes : list of int
        Number of rows of each partition in `parts`.
    bins : BinnedColumns
        The bins. Its rows are not used. It stores values if the partitions store values.
    is_weighed : bool
        Whether the rows have sample weights.
    """

    def __init__(
        self,
        place: Place,
        parts: list[Any],
        numbers: list[int],
        sizes: list[int],
        bins: BinnedColumns,
        is_weighed: bool,
    ) -> None:
        self.place, self.bins, self.is_weighed = place, bins, is_weighed
        self._parts, self._numbers, self.sizes = parts, numbers, sizes
        self.n_rows = sum(sizes)
        check_size(self.n_rows)

    def __repr__(self) -> str:
        d = self.bins.n_features
        return f"<{self.n_rows} rows in {len(self.sizes)} partitions, {d} features>"

    def submit(
        self,
        task: Callable[..., Any],
        *arguments: Any,
        each: Sequence[tuple[Any, ...]] | None = None,
    ) -> list[Any]:
        """Start a task for each partition. `each` has further arguments per partition."""
        extra = each or [()] * len(self._parts)
        cases = zip(self._parts, self._numbers, extra, strict=True)
        return [self.place.submit(task, part, k, *arguments, *more) for part, k, more in cases]

    def each(self, task: Callable[..., T], *arguments: Any, **more: Any) -> list[T]:
        """Run a task for each partition and return the results."""
        return self.place.results(self._numbered(self.submit(task, *arguments, **more)))

    def task(self, task: Task | None) -> Task:
        """Return `task`, or the task inferred from the targets if it is None."""
        return known_task(joined(self.each(tasks.kind_of))) if task is None else task

    def targets(self, task: str, two: str | None = None) -> Array | int:
        """Return the class labels, or the exponent that scales the targets of a regression.

        `two` is the reason why only two classes are supported, for the error message.
        """
        if task != CLASSIFICATION:
            return int(np.frexp(max(self.each(tasks.greatest_target)))[1])
        return shared_labels(self._numbered(self.each(tasks.labels_in)), two)

    def _numbered(self, results: list[T]) -> dict[int, T]:
        return dict(zip(self._numbers, results, strict=True))

    def problem(self, values: Array | int) -> Problem:
        """Return the problem of one fit, without its rows."""
        none = np.empty(0, dtype=np.int32)
        return Problem(
            columns=without_rows(self.bins),
            classes=None if isinstance(values, int) else values,
            label=none,
            weights=None,
            names=self.bins.names,
            exponent=values if isinstance(values, int) else 0,
            table=self.bins.table,
        )

    def hold_out(self, hold: HoldOut, values: Array | int) -> HeldRows:
        """Draw the rows of a validation set. The rows stay in their partitions."""
        sizes = np.array(self.each(tasks.class_sizes, values))  # (partitions, classes)
        classes = [np.arange(n, dtype=np.int32) for n in sizes.sum(axis=0).tolist()]
        drawn = [np.sort(of) for of in held_of_classes(classes, hold.share, hold.generator)]
        places = [split_at(of, part_sizes) for of, part_sizes in zip(drawn, sizes.T, strict=True)]
        part_rows = self.each(
            tasks.rows_at, values, each=[(of,) for of in zip(*places, strict=True)]
        )
        none = np.empty(0, dtype=np.intp)
        return HeldRows(none, none, np.empty(0), none, elsewhere=HeldParts(self, values, part_rows))

    def shards(
        self,
        kind: type[Any],
        values: Array | int,
        n_threads: int | None,
        *,
        dtype: Any = np.int32,
        held: HeldParts | None = None,
        each: Sequence[tuple[Any, ...]] | None = None,
    ) -> Engine:
        """Return an engine with one object of class `kind` per partition.

        The arguments of `kind` are the columns, the class codes (of `dtype`) or scaled targets, the
        weights, and the entries of `each`.
        """
        extra = [()] * len(self._parts) if each is None else each
        of_held = [None] * len(extra) if held is None else held.rows
        more = [(out, tuple(arguments)) for out, arguments in zip(of_held, extra, strict=True)]
        inputs = self.submit(tasks.given_part, values, dtype, each=more)
        return self.engine(inputs, kind, n_threads)

    def engine(self, inputs: list[Any], kind: type[Any], n_threads: int | None) -> Engine:
        """Return an engine with an object of class `kind` for each result of `submit`."""
        return self.place.engine(self._numbered(inputs), kind, n_threads)

    # Used by builders

    def gather(self) -> OneTable:
        """Return all rows in one table in this process, in the order of the partitions.

        Returns
        -------
        OneTable
            A table that every builder accepts as `X`.
        """
        is_numeric = known_task(joined(self.each(tasks.kind_of))) != CLASSIFICATION
        codes, sources, y, weights = zip(*self.each(tasks.contents_of, is_numeric), strict=True)
        columns = tasks.like(self.bins, np.concatenate(codes, axis=1))
        if isinstance(self.bins, BinnedValues):
            columns = valued(columns, np.concatenate(sources))
        weight = np.concatenate(weights) if self.is_weighed else None
        return OneTable(columns, np.concatenate(y), weight)

    def take(self, rows: Array) -> PartitionedRows:
        """Return the rows with the given ascending indices, in the same bins."""
        rows_by_part = split_at(rows, np.array(self.sizes))
        parts = self.submit(tasks.taken, each=[(part_rows,) for part_rows in rows_by_part])
        sizes = [len(part_rows) for part_rows in rows_by_part]
        return _with_rows(self.place, parts, sizes, self.bins, self.is_weighed)

    def apply(self, function: Callable[..., T], *arguments: Any) -> list[T]:
        """Return the results of a function of columns, targets and weights, for each partition."""
        return self.each(tasks.applied, function, *arguments)

    def targets_here(self, task: str) -> tuple[Array, FloatArray | None]:
        """Return the classes or targets and the weights of all rows in this process."""
        values = self.targets(task)
        parts, weights = zip(*self.each(tasks.targets_and_weights, values), strict=True)
        weight = np.concatenate(weights) if self.is_weighed else None
        y = np.concatenate(parts)
        return (np.ldexp(y, values) if isinstance(values, int) else values[y]), weight

    def graph(self, learner: Any, observation: Any, growth: type) -> Any:
        """Return the weak learner of one fit on these rows."""
        return GraphRows(self, learner, observation, growth).learner

    def growth(self, kind: type[T]) -> type[T]:
        """Return the class that grows this kind of graph on partitions."""
        growth: type[T] = GROWTHS[kind].growth
        return growth

    def trees(self, task: str, search: str) -> Problem:
        """Return the problem of one fit of trees, with a reference to the rows."""
        if search == "exact":
            raise NotImplementedError(
                'search: "exact" requires all rows in one table, and partitions are searched by '
                "bins; pass rows.gather()"
            )
        return TreeRows(self, self.targets(task)).problem()

    def default_loss(self, task: Task | None) -> LossName:
        """Return the default loss of gradient boosting for these targets."""
        if self.task(task) != CLASSIFICATION:
            return "squared_error"
        return "softmax" if np.size(self.targets(CLASSIFICATION)) > 2 else "log_loss"

    def sums(
        self, loss: Loss, options: Mapping[str, Any], n_threads: int | None, ends: ExitStack
    ) -> SumParts:
        """Return the rows of one fit of gradient boosting, released at the exit of `ends`."""
        check_sums(loss, options)
        return SumParts(self, options["task"], n_threads, ends)


def split_at(numbers: Array, sizes: Array) -> list[Array]:
    """Split ascending row indices by partition, and count them from 0 in each partition."""
    stops = np.cumsum(sizes)
    parts = np.split(numbers, np.searchsorted(numbers, stops[:-1]))
    return [part - start for part, start in zip(parts, (stops - sizes).tolist(), strict=True)]


def without_rows(bins: BinnedColumns) -> BinnedColumns:
    """Return the columns without rows."""
    return bins.select(np.empty(0, dtype=np.int32))


def shared_labels(parts: dict[int, Array | None], two: str | None) -> Array:
    """Return the class labels of all partitions from the class labels in each partition."""
    known = {k: values for k, values in parts.items() if values is not None}
    if not known:
        raise ValueError("y: expected at least one row of each class, got no rows")
    first = next(iter(known))
    is_text = known[first].dtype.kind in "UST"
    for k, labels in known.items():
        if (labels.dtype.kind in "UST") != is_text:
            raise TypeError(
                f"y: expected labels of one kind in all partitions, got {known[first].dtype} in "
                f"partition {first} and {labels.dtype} in partition {k}"
            )
    values = label_values(np.concatenate(list(known.values())))
    check_label_values(values, two)
    return values


# Reading


def partitions(
    X: Sequence[Any],
    y: Sequence[Any],
    *,
    sample_weight: Sequence[Any] | None = None,
    max_bins: int = MAX_BINS,
    bin_edges: BinEdges = "sample",
    weighted_bin_edges: bool = False,
    keep_values: bool = False,
) -> PartitionedRows:
    """Return a row source for partitions, which builders accept as `X`.

    Parameters
    ----------
    X : list of array_like of shape (n, d), of data frames, or of BinnedColumns
        Features, numeric or categorical, with the same columns and dtype. Missing values are
        allowed, and a partition may be empty. BinnedColumns must have the same bins, for example
        parts of one table that `select` returned.
    y : list of array_like of shape (n,)
        Target of the rows of each partition: classes or, for a regression, numbers.
    sample_weight : list of array_like of shape (n,), optional
        Sample weights >= 0 of each partition. All weights of a partition may be 0.
    max_bins : int
        Maximum number of bins per feature, from 2 to 256. Bins have about equal total weight, and
        equal values share a bin. If `X` contains BinnedColumns, this parameter and
        the next three must keep their defaults.
    bin_edges : {"sample", "exact"}
        Rows that define the bin edges, as in `pboost.data.bin_columns`: a sample if there are more
        than 200,000 rows, or all rows.
    weighted_bin_edges : bool
        Whether sample weights are used for the bin edges, and to select the categories that share a
        code if there are more than 255, as ``pboost.data.bin_columns(X, sample_weight=...)`` does.
    keep_values : bool
        Whether the partitions keep a copy of the feature values. This is required to use a fraction
        of the rows as `validation`.

    Returns
    -------
    PartitionedRows
        A row source. The fitted model is bit-identical to the model of
        ``pboost.data.bin_columns(X, ...)``, with all rows in one table in the order of the
        partitions. ``gather()`` returns this table.

    Raises
    ------
    ValueError, TypeError
        If a partition is not a valid table, contains infinity, or differs from the first partition
        in its columns or its dtype; if the categories of the partitions do not match; or if the
        weights are invalid. The message contains the number of the partition.

    Notes
    -----
    Sums of class weights and gradients are integers, and therefore do not depend on the partitions
    or their order. The rows are never copied into one table: bin edges are computed from 200,000
    rows with the smallest hashes, or by counting. The builder checks the target and decides whether
    it is classification or regression.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.arange(8.0).reshape(8, 1), np.array([0, 1, 0, 0, 1, 1, 0, 1])
    >>> rows = pb.partitions([X[:3], X[3:]], [y[:3], y[3:]])
    >>> rows
    <8 rows in 2 partitions, 1 features>
    >>> model = pb.fit_adaboost(rows, n_estimators=5)
    >>> model.vote[0].round(3)
    array([-3.566,  0.144])
    >>> single = pb.fit_adaboost(pb.data.bin_columns(X), y, n_estimators=5)
    >>> single.vote[0].round(3)
    array([-3.566,  0.144])
    """
    columns = check_parts("X", X)
    row_data = [check_parts("y", y, len(columns)), [None] * len(columns)]
    if sample_weight is not None:
        row_data[1] = check_parts("sample_weight", sample_weight, len(columns))
    is_binned = [isinstance(part, BinnedColumns) for part in columns]
    if any(is_binned):
        if not all(is_binned):
            k = is_binned.index(not is_binned[0])
            raise TypeError(
                f"X: expected BinnedColumns in all partitions or in none, got "
                f"{type(columns[k]).__name__} in partition {k}"
            )
        defaults = (
            max_bins == MAX_BINS
            and bin_edges == "sample"
            and not (weighted_bin_edges or keep_values)
        )
        if not defaults:
            raise ValueError(
                "max_bins, bin_edges, weighted_bin_edges, keep_values: expected the defaults if X "
                "contains BinnedColumns, because its bins are used"
            )
        return _binned(columns, row_data[0], row_data[1], sample_weight is not None)
    return read_rows(
        LocalPlace(),
        list(zip(columns, *row_data, strict=True)),
        sample_weight is not None,
        PartitionBinning.checked(
            max_bins, bin_edges, weighted_bin_edges, keep_values, sample_weight is not None
        ),
    )


def _binned(
    columns: list[BinnedColumns], y: list[Any], weights: list[Any], is_weighed: bool
) -> PartitionedRows:
    """Return partitions that are already binned."""
    for k, part in enumerate(columns):
        if (what := _difference(columns[0], part)) is not None:
            raise ValueError(
                f"X: expected the same bins in all partitions, but partition {k} differs from "
                f"partition 0 in {what}; pass arrays to partitions(X, y) to compute common bins"
            )
    parts = [
        tasks.binned_part(k, *part, is_weighed)
        for k, part in enumerate(zip(columns, y, weights, strict=True))
    ]
    if is_weighed:
        check_any_weight(any(np.any(part.weights) for part in parts))
    sizes = [part.n_rows for part in columns]
    return _with_rows(LocalPlace(), parts, sizes, without_rows(columns[0]), is_weighed)


def _with_rows(
    place: Place, parts: Sequence[Any], sizes: Sequence[int], bins: BinnedColumns, is_weighed: bool
) -> PartitionedRows:
    """Return the row source of the partitions that have rows."""
    if not any(sizes):
        raise ValueError("X: expected at least one row, all partitions are empty")
    numbers = [k for k, n in enumerate(sizes) if n]
    used_parts, n_rows = [parts[k] for k in numbers], [sizes[k] for k in numbers]
    return PartitionedRows(place, used_parts, numbers, n_rows, bins, is_weighed)


class PartitionBinning:
    """Options for the bins of partitions."""

    def __init__(self, max_bins: int, bin_edges: str, is_weighed: bool, keep_values: bool) -> None:
        self.max_bins, self.is_exact = max_bins, bin_edges == "exact"
        self.is_weighed, self.keep_values = is_weighed, keep_values

    @classmethod
    def checked(
        cls,
        max_bins: Any,
        bin_edges: Any,
        weighted_bin_edges: Any,
        keep_values: Any,
        has_weights: bool,
    ) -> PartitionBinning:
        """Return valid options, or raise the errors of `partitions`."""
        max_bins = check_integer("max_bins", max_bins, min_value=2, max_value=MAX_BINS)
        check_choice("bin_edges", bin_edges, EDGES)
        if check_flag("weighted_bin_edges", weighted_bin_edges) and not has_weights:
            raise ValueError("weighted_bin_edges: expected False without sample_weight, got True")
        return cls(max_bins, bin_edges, weighted_bin_edges, check_flag("keep_values", keep_values))


def read_rows(
    place: Place,
    inputs: Sequence[tuple[Any, Any, Any]],
    is_weighed: bool,
    options: PartitionBinning,
) -> PartitionedRows:
    """Return a row source from the features, target and weights of each partition."""

    def each(task: Callable[..., Any], parts: Sequence[Any], *more: Any) -> list[Any]:
        return [place.submit(task, part, k, *more) for k, part in enumerate(parts)]

    def results(submitted: Sequence[Any]) -> list[Any]:
        return place.results(dict(enumerate(submitted)))

    read = [
        place.submit(tasks.read_part, k, *part_inputs, is_weighed)
        for k, part_inputs in enumerate(inputs)
    ]
    known: list[tasks.About] = results(each(tasks.about, read))
    check_alike([part.features for part in known])
    if is_weighed:
        check_any_weight(any(part.weight > 0 for part in known))
    if options.is_weighed:
        max_exponent = math.frexp(max(part.heaviest for part in known))[1]
        first = SUM_BITS - sum(part.n_rows for part in known).bit_length()
        total = sum(results(each(tasks.weight_in, read, max_exponent, first)))
        bits = SUM_BITS - (total.bit_length() - first)
        read = each(tasks.fixed_part, read, max_exponent, bits)
    if has_categories([part.features for part in known]):
        levels_by_part = results(each(tasks.levels_of, read))
        read = each(tasks.numbered_part, read, _trained_levels(levels_by_part, known[0].features))
        known = results(each(tasks.about, read))
    sizes = [part.n_rows for part in known]
    if not any(sizes):
        raise ValueError("X: expected at least one row, all partitions are empty")
    first_part = known[0].features
    features = Features(
        first_part.values, first_part.names, _shared_table([part.features for part in known])
    )
    if options.is_exact:
        bins = _exact_bins(results, each, read, features, options)
    else:
        bins, is_sample = _sampled_bins(results, each, read, features, options, sum(sizes))
    template = tasks.like(bins, np.zeros((bins.n_features, 1), dtype=np.uint8))
    coded = each(tasks.code_part, read, template, options.keep_values)
    if options.is_exact or is_sample:
        template = tasks.whole_bins(template, results(each(tasks.ends_of, coded)))
    parts = each(tasks.finished, coded, template)
    if options.keep_values:
        template = valued(template, np.zeros((1, bins.n_features), dtype=features.values.dtype))
    return _with_rows(place, parts, sizes, template, is_weighed)


def _sampled_bins(
    results: Any,
    each: Any,
    read: Sequence[Any],
    features: Features,
    options: PartitionBinning,
    n: int,
) -> tuple[BinnedColumns, bool]:
    """Return bins with edges from a sample of the rows, or from all rows if there are few."""
    greatest = None
    if n > SAMPLE_ROWS:
        # If most rows differ, a small share of the hashes is enough. Otherwise, use all hashes.
        for share in (1.1 * SAMPLE_ROWS / n, 1.0):
            max_hash = min(int(share * 2.0**64), 2**64 - 1)
            greatest = tasks.merged_hashes(results(each(tasks.least_hashes, read, max_hash)))
            if greatest is not None:
                break
    rows = results(each(tasks.rows_of_edges, read, greatest))
    with Workers(None, n * features.n_features) as workers:
        is_sample = greatest is not None
        return tasks.bins_of(rows, features, options.max_bins, is_sample, workers), is_sample


def _exact_bins(
    results: Any, each: Any, read: Sequence[Any], features: Features, options: PartitionBinning
) -> BinnedColumns:
    """Return bins with edges from all rows, which the partitions count."""
    keys = each(tasks.keys_of, read)
    table = features.table or Table.of_numbers(features.n_features)
    counts = BatchCounts(table.n_levels, options.is_weighed)
    counts.limit(options.max_bins, table.has_missing)
    while asked := counts.asked:
        for counted in results(each(tasks.count_keys, keys, asked)):
            counts.join(counted)
        counts.take()
    return counts.bins(features.names, features.table)


def _trained_levels(levels_by_part: Sequence[PartLevels], features: Features) -> Trained:
    """Return the columns of all partitions, with their common categories."""
    names = features.names
    all_levels = joined_levels(levels_by_part, names, "all partitions")
    return Trained(names, features.n_features, shared_levels(all_levels, names))


def _shared_table(parts: Sequence[Features]) -> Table | None:
    """Return which features have missing values in any partition, or None for plain numbers."""
    check_alike(parts)
    tables = [features.table for features in parts if features.table is not None]
    if not tables:
        return None
    return tables[0].with_holes(np.any([t.has_missing for t in tables], axis=0))


def check_alike(parts: Sequence[Features]) -> None:
    """Raise an error if a partition differs from the first one in its columns or its dtype."""
    first = parts[0]
    for k, features in enumerate(parts):
        if features.n_features != first.n_features:
            raise ValueError(
                f"X: expected {first.n_features} columns in all partitions, as in partition 0, got "
                f"{features.n_features} in partition {k}"
            )
        if features.names != first.names:
            raise ValueError(
                f"X: expected the column names of partition 0 in all partitions, got "
                f"{features.names} in partition {k}"
            )
        if features.values.dtype != first.values.dtype:
            raise TypeError(
                f"X: expected one dtype in all partitions, got {first.values.dtype} in partition 0 "
                f"and {features.values.dtype} in partition {k}"
            )


def check_parts(name: str, parts: Any, size: int | None = None) -> list[Any]:
    """Return the partitions as a list."""
    if not isinstance(parts, Sequence) or isinstance(parts, str | bytes):
        raise TypeError(
            f"{name}: expected a list with one entry per partition, got {type(parts).__name__}"
        )
    if not len(parts):
        raise ValueError(f"{name}: expected at least one partition, got an empty list")
    if size is not None and len(parts) != size:
        raise ValueError(f"{name}: expected {size} partitions, as in X, got {len(parts)}")
    return list(parts)


def check_any_weight(is_any: bool) -> None:
    """Raise a ValueError if no partition has a weight > 0."""
    if not is_any:
        raise ValueError("sample_weight: expected at least one weight > 0, all are zero")


def _difference(first: BinnedColumns, other: BinnedColumns) -> str | None:
    """Return the first difference between the bins of two partitions, or None if they are equal."""
    if first.n_features != other.n_features:
        return f"the number of columns ({first.n_features}, {other.n_features})"
    if first.names != other.names:
        return "the column names"
    if first.table != other.table:
        return "the categories or the features with missing values"
    for name in ("n_bins", "lower", "upper", "special"):
        ours, theirs = getattr(first, name), getattr(other, name)
        if (ours is None) != (theirs is None):
            return f"`{name}`"
        if ours is not None and not np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"):
            return f"`{name}`"
    return None
