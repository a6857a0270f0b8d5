"""The arrays of a decision graph: nodes, votes, and the nodes that exits lead to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pboost._core import walk
from pboost.data.node_inputs.inputs import HALF as HALF
from pboost.data.node_inputs.inputs import Inputs, StoredInputs, Subsets
from pboost.data.node_inputs.sums import Projections, Separators
from pboost.data.read.table import Table
from pboost.models import schema as stored
from pboost.models.base import TwoClassModel
from pboost.models.evaluate.exits import Rest, rest_of
from pboost.models.schema import (
    MOST_SUM,
    Arrays,
    Column,
    Dtypes,
    Field,
    Header,
    HeaderAndArrays,
    Kind,
    ModelFileError,
    Settings,
    TrainingRecord,
    check_number,
    table_field,
)
from pboost.values import Array, FloatArray, IntArray, freeze

#: The attribute `answer` of a `DecisionGraph` for an exact observation model.
CERTAIN = freeze([[0.0, 0.0], [1.0, 1.0]])

#: The two exits of a stump: ``x <= threshold`` and ``x > threshold``.
BELOW, ABOVE = 0, 1
#: Value of ``next`` for an exit that leads out of the graph.
OUT = -1


class Derived(Kind):
    """The field `inputs`, which is None if nodes compare features."""

    optional = True

    def check(self, record: Any, name: str) -> None:
        """Check the inputs against the number of features."""
        inputs = record.inputs
        inputs.validate(record.n_added if isinstance(inputs, StoredInputs) else record.n_features)

    def dtypes(self, name: str) -> Dtypes:
        """Return the dtypes of the arrays of projections, separators and category sets."""
        every = {**Projections.stored, **Separators.stored, **Subsets.stored}
        return {member: (dtype, True) for member, (_, dtype) in every.items()}

    def store(self, name: str, value: Any) -> HeaderAndArrays:
        """Return the header fields and arrays of the inputs."""
        return ({}, {}) if value is None else (value.header(), value.members())

    def read(self, name: str, header: Header, arrays: Arrays) -> Inputs | None:
        """Return the inputs; None if nodes compare features."""
        every: list[Inputs | None] = [
            kind.from_members(arrays, header) for kind in (Projections, Separators)
        ]
        every.append(Subsets.from_members(arrays, header.get("n_features")))
        present = [inputs for inputs in every if inputs is not None]
        if len(present) > 1:
            raise ValueError("expected one of projections, separators and sets, got several")
        return present[0] if present else None


class Bias(Field):
    """The field `bias`: a number in the header, or an array for multiclass graphs."""

    __slots__ = ()

    def check(self, record: Any, name: str) -> None:
        """Check that there is one finite number per decision value."""
        if record.n_votes == 1:
            check_number(record, name)
        elif np.shape(record.bias) != (record.n_votes,) or not np.isfinite(record.bias).all():
            raise ValueError(
                f"{name}: expected {record.n_votes} finite numbers, one for each vote of an exit"
            )

    def dtypes(self, name: str) -> Dtypes:
        """Return the dtype of the optional array."""
        return {name: (np.dtype("<f8"), True)}

    def store(self, name: str, value: Any) -> HeaderAndArrays:
        """Return a header field for a number, or an array for several numbers."""
        return ({}, {name: value}) if np.ndim(value) else ({name: float(value)}, {})

    def read(self, name: str, header: Header, arrays: Arrays) -> Any:
        """Return the array if the file contains it, else the header field."""
        return arrays[name] if name in arrays else Field.read(self, name, header, arrays)


@dataclass(frozen=True, slots=True)
class Sides(Column):
    """The field `missing`: one exit, 0 or 1, per node, stored as bits or as bytes."""

    def check_array(self, record: Any, name: str) -> None:
        """Check that the array has one exit, 0 or 1, per node."""
        Column.check_array(self, record, name)
        if not np.isin(getattr(record, name), (0, 1)).all():
            raise ValueError(f"{name}: expected 0 or 1 for each node")

    def dtypes(self, name: str) -> Dtypes:
        """Return the dtype of the optional array."""
        return {name: (np.dtype("|u1"), True)}

    def store(self, name: str, value: Any) -> HeaderAndArrays:
        """Return the packed bits as a header field."""
        if value is None:
            return {}, {}
        return {name: np.packbits(value.astype(np.uint8)).tobytes().hex()}, {}

    def read(self, name: str, header: Header, arrays: Arrays) -> Any:
        """Return the exits; None if the model does not accept missing values."""
        if name not in header:
            return arrays.get(name)
        if name in arrays:
            raise ValueError(f"{name}: expected in the header or as an array, not both")
        n, bits = len(arrays["feature"]), header[name]
        try:
            packed = np.frombuffer(bytes.fromhex(bits), dtype=np.uint8)
        except (TypeError, ValueError):
            packed = None
        if packed is None or len(packed) != -(-n // 8):
            raise ModelFileError(f"header: bad value of {name!r}: {bits!r}")
        return np.unpackbits(packed, count=n)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Graph(TwoClassModel):
    """The arrays of a `DecisionGraph`, which documents them."""

    counted_in = "node", "comparisons"

    feature: IntArray = stored.column(np.int32, "n_nodes", within=(0, "n_inputs"))
    threshold: FloatArray = stored.column(np.float64, "n_nodes")
    next: IntArray = stored.column(np.int32, "n_nodes", 2)
    vote: FloatArray = stored.column(
        np.float64, "n_nodes", 2, lambda graph: (graph.n_votes,) if graph.n_votes > 1 else ()
    )
    classes: Array = stored.classes(lambda graph: max(2, graph.n_votes))
    n_features: int = stored.n_features()
    feature_names: tuple[str, ...] | None = stored.names()
    bias: Any = stored.kept_as(
        Bias(lambda value: isinstance(value, float), keep=stored.numbers_kept)
    )
    settings: Settings = stored.settings()
    record: TrainingRecord = stored.part(TrainingRecord)
    answer: FloatArray | None = stored.column(
        np.float64,
        "n_nodes",
        2,
        lambda graph: (max(2, graph.n_votes),),
        finite=False,
        optional=True,
    )
    inputs: Inputs | None = stored.kept_as(Derived(), default=None)
    sigma: FloatArray | None = stored.column(np.float64, "n_features", finite=False, optional=True)
    missing: FloatArray | None = stored.kept_as(
        Sides(np.float64, ("n_nodes",), optional=True), default=None
    )
    table: Table | None = table_field()
    temperature: float = stored.temperature()
    #: Whether both exits of every node lead to the next node.
    is_chain: bool = stored.made(lambda graph: walk.is_chain(graph.next))
    memo: dict[str, Any] = stored.memo()

    def parts(self) -> HeaderAndArrays:
        """Return the header fields and the arrays of the graph in a file."""
        header, arrays = TwoClassModel.parts(self)
        if self.missing is not None and not self.is_clean:
            del header["missing"]
            arrays["missing"] = self.missing.astype(np.uint8)
        return header, arrays

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        """Whether missing values are accepted."""
        if isinstance(self.inputs, StoredInputs):  # missing values are replaced
            return self.inputs.takes_missing
        return self.missing is not None

    @property
    def sums_features(self) -> bool:  # type: ignore[override]
        """Whether nodes compare sums of features."""
        return isinstance(self.inputs, StoredInputs)

    @property
    def sides(self) -> FloatArray | None:
        """The array `missing` if nodes compare features or category sets, else None."""
        return self.missing if self.inputs is None or isinstance(self.inputs, Subsets) else None

    @property
    def is_clean(self) -> bool:
        """Whether the training data had neither missing values nor categories."""
        return self.table is None and not isinstance(self.inputs, Subsets)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.feature)

    @property
    def n_votes(self) -> int:
        """Number of votes per exit, one for each decision value."""
        return self.vote.shape[2] if self.vote.ndim == 3 and self.vote.shape[2] > 1 else 1

    @property
    def n_inputs(self) -> int:
        """Number of inputs that nodes may compare."""
        return self.n_features if self.inputs is None else self.inputs.n_inputs

    @property
    def is_exact(self) -> bool:  # type: ignore[override]
        """Whether the observation model is exact."""
        return self.answer is None and self.sigma is None

    @property
    def is_estimated(self) -> bool:  # type: ignore[override]
        """Whether the observation model is sampled, so that the certificate is an estimate."""
        observation = self.settings.get("observation")
        return isinstance(observation, Mapping) and observation.get("kind") == "sampled"

    @property
    def needs_class(self) -> bool:
        """Whether the observation model depends on the class, which is unknown at prediction."""
        return self.answer is not None and bool(
            (self.answer[:, :, :1] != self.answer[:, :, 1:]).any()
        )

    def by_vote(self) -> list[Self]:
        """Return one graph per decision value.

        With more than two classes, the graphs have no observation model.
        """
        answer = self.answer if self.n_votes == 2 else None
        return [
            replace(self, vote=vote, bias=float(bias), classes=self.classes[:2], answer=answer)
            for vote, bias in zip(np.moveaxis(self.vote, 2, 0), self.bias, strict=True)
        ]

    @property
    def arrays(self) -> tuple[IntArray, FloatArray, IntArray]:
        """The arrays of features, thresholds and next nodes for the kernels."""
        return self.feature, self.threshold, self.next

    @property
    def joins(self) -> bool:
        """Whether paths meet, so that two exits lead to the same node."""
        return int(np.count_nonzero(self.next != OUT)) >= self.n_nodes

    @property
    def column(self) -> IntArray:
        """The feature of each node, if nodes compare features."""
        return self.feature

    @stored.once
    def of_features_read(self) -> tuple[IntArray, Any] | None:
        """Return the features that nodes read, and the graph for a table of these features."""
        is_plain = self.inputs is None and self.sigma is None
        if not is_plain or (self.table is not None and self.table.has_levels):
            return None
        read = np.unique(self.feature).astype(np.int32)
        read = read if len(read) else np.zeros(1, dtype=np.int32)  # a table has a column
        return read, self.on_columns(read)

    def on_columns(self, read: IntArray) -> Self:
        """Return the graph for a table that contains only the features in `read`."""
        feature = read.searchsorted(self.feature).astype(np.int32)
        return replace(self, feature=feature, n_features=len(read), feature_names=None, table=None)

    def check_whole(self) -> None:
        """Check the topology, votes, answers and the record."""
        _check_topology(self.next, self.n_nodes)
        _check_sums(self)
        if self.answer is not None and not ((self.answer >= 0) & (self.answer <= 1)).all():
            raise ValueError("answer: expected probabilities")
        _check_sigma(self)
        if isinstance(self.inputs, Subsets):
            if self.missing is None:
                raise ValueError("missing: expected an array, because nodes use category sets")
            if (self.threshold[self.feature >= self.n_features] != HALF).any():
                raise ValueError(f"threshold: expected {HALF} in nodes that use category sets")
        self.record.check(self.n_nodes)


def _check_sigma(graph: Graph) -> None:
    sigma = graph.sigma
    if sigma is None:
        return
    if graph.answer is not None:
        raise ValueError("sigma: expected None in a model with `answer`")
    known = np.isfinite(sigma) & (sigma >= 0)
    if not (known.all() or np.isnan(sigma).all()):
        raise ValueError("sigma: expected finite numbers >= 0, or NaN for all features")


def _check_topology(next_: IntArray, n: int) -> None:
    # Every exit leads to a later node or out, so evaluation always terminates.
    first = walk.unreached(next_)
    if first < 0:
        raise ValueError("next: expected a later node or -1 for every exit")
    if first < n:
        raise ValueError(f"next: no exit leads to node {first}")


def _check_sums(graph: Graph) -> None:
    # Decision values must be finite on every path.
    with np.errstate(over="ignore"):
        bound = _bias_size(graph) + np.abs(graph.vote).sum()
        if bound > MOST_SUM and not largest_score(graph) <= MOST_SUM:
            raise ValueError(
                "vote: expected absolute votes and bias to have a finite sum along every path"
            )


def joints_of(next_: IntArray) -> NDArray[np.intp]:
    """Return all nodes that lie on every path, except the first node."""
    n = len(next_)
    farthest = np.maximum.accumulate(np.where(next_ == OUT, n, next_).max(axis=1, initial=0))
    return np.flatnonzero(farthest[:-1] == np.arange(1, n)) + 1


def rest_of_nodes(graph: Graph) -> Rest:
    """Return the smallest and the largest sum of votes from each node to the end."""
    n, vote = graph.n_nodes, graph.vote.reshape(graph.n_nodes, 2, graph.n_votes)
    if walk.is_chain(graph.next):
        return rest_of(vote.min(axis=1), vote.max(axis=1), graph.bias)
    low, high = np.zeros((2, n + 1, graph.n_votes))  # the last entry is for the end of the graph
    steps = [0] * (n + 1)
    leads = graph.next.tolist()
    for node in range(n - 1, -1, -1):
        below, above = leads[node]
        low[node] = np.minimum(*(vote[node] + low[leads[node]]))
        high[node] = np.maximum(*(vote[node] + high[leads[node]]))
        steps[node] = 1 + max(steps[below], steps[above])
    return Rest(low[:-1], high[:-1], largest_score(graph), steps[0])


def at_start(graph: Graph, n: int) -> FloatArray:
    """Return the initial decision values of n rows."""
    return np.full((n, *np.shape(graph.bias)), graph.bias)


def _bias_size(graph: Graph) -> float:
    return abs(graph.bias) if graph.n_votes == 1 else float(np.abs(graph.bias).max())


def largest_score(graph: Graph) -> float:
    """Return the largest sum of absolute votes on a path, including the bias."""
    n, bias = graph.n_nodes, _bias_size(graph)
    size = np.abs(graph.vote).reshape(n, 2, graph.n_votes).max(axis=2)
    if walk.is_chain(graph.next):
        # Add from the end, so that rounding errors are the same as in the loop below.
        return float(np.add.accumulate([0.0, *size.max(axis=1)[::-1]])[-1]) + bias
    # The last entry of `ahead` is for the end of the graph.
    sizes, leads, ahead = size.tolist(), graph.next.tolist(), [0.0] * (n + 1)
    for node in range(n - 1, -1, -1):
        ahead[node] = max(v + ahead[k] for v, k in zip(sizes[node], leads[node], strict=True))
    return ahead[0] + bias
