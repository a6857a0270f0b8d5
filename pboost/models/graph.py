"""The model: a decision graph, a rooted directed acyclic graph of weak classifiers.

Every exit of a weak classifier carries a vote and leads to another node or out of the graph
(theory page, section 1). A chain whose exits join is AdaBoost; a graph whose exits never join is a
boosted decision tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.array_checks import (
    MOST_SUM,
    check_columns,
    check_finite_arrays,
    check_labels,
    check_settings,
    check_shape,
    is_number,
)
from pboost.data.derived import Inputs
from pboost.values import FloatArray, IntArray, freeze

#: Probability of exit 1 by side of the threshold and class, where answers are certain.
CERTAIN = freeze([[0.0, 0.0], [1.0, 1.0]])

#: The two exits of a stump: ``x <= threshold`` and ``x > threshold``.
BELOW, ABOVE = 0, 1
#: Said wherever a certificate is printed that is not that of the predictions.
OF_ASSUMED_ANSWERS = "certifies answers drawn as assumed, not the predictions"
ESTIMATED = "is an estimate, of answers drawn at random, not the predictions"
#: ``next`` of an exit that leads out of the graph.
OUT = -1


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRecord:
    """What happened while a model was grown.

    Attributes
    ----------
    certificate : ndarray of float64, shape (n_nodes + 1,)
        The certificate before the first and after each node.
    cost : ndarray of float64, shape (n_nodes + 1,)
        Mean number of weak classifiers evaluated per training row (weighted), likewise.
    stop_reason : str
        Why growing ended, as a sentence.
    stages : ndarray of int32, shape (n_stages,), or None
        Numbers of nodes with which the model was what its first nodes are now, increasing; the
        last is `n_nodes`. None: each from 1 on. Collecting by sign changes votes of earlier nodes.
    validation : ndarray of float64, shape (n_grown + 1,), or None
        Share of the validation rows (weighted) on which the model with its first 0, 1, 2, … nodes
        errs; nodes that were grown and not kept included. None where growth was not validated.
    """

    certificate: FloatArray
    cost: FloatArray
    stop_reason: str
    stages: IntArray | None = None
    validation: FloatArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "certificate", freeze(self.certificate, np.float64))
        object.__setattr__(self, "cost", freeze(self.cost, np.float64))
        for name, dtype in (("stages", np.int32), ("validation", np.float64)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, freeze(getattr(self, name), dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))


@dataclass(frozen=True, slots=True, eq=False)
class DecisionGraph:
    """A boosted two-class model: weak classifiers, their votes, and where their exits lead.

    Nodes stand in the order in which they were opened, parents before children; node 0 is the
    root. Exit 0 of node ``i`` is taken by rows with ``x[feature[i]] <= threshold[i]``, exit 1 by
    the others. The decision value of a row is `bias` plus the votes of the exits it takes;
    ``labels[1]`` is predicted where it is positive.

    Attributes
    ----------
    feature : ndarray of int32, shape (n_nodes,)
        Column that the weak classifier reads, or number among `inputs`.
    threshold : ndarray of float64, shape (n_nodes,)
        In the units of what it compares.
    next : ndarray of int32, shape (n_nodes, 2)
        Node to which each exit leads, -1 where it leads out of the graph.
    vote : ndarray of float64, shape (n_nodes, 2)
        Signed vote of each exit, in units of half log odds.
    labels : ndarray, shape (2,)
        The two label values, sorted; the first is class -1, the second class +1.
    n_features : int
        Number of columns the model was trained on.
    feature_names : tuple of str or None
        Their names, where the training data had names.
    bias : float
        Vote that every row gets at the entrance; not 0 only where nothing could be split.
    settings : mapping
        The options the model was fitted with.
    record : TrainingRecord
        Certificate and cost after each node, and why growing stopped.
    answer : ndarray of float64, shape (n_nodes, 2, 2), or None
        Probability that a row takes exit 1, by the side of the threshold on which it lies (0:
        below, 1: above) and by its class, as assumed in training; None where answers are exact.
    inputs : Inputs or None
        What `feature` counts, where it is not the columns of X: ``inputs.values(X)`` are the
        numbers that are compared, ``inputs.names(columns)`` how they are written.
    sigma : ndarray of float64, shape (n_features,), or None
        Standard deviation of the error with which each column of X was measured, as assumed in
        training; all NaN where each cell of the training X had its own, None where answers are
        not gaussian.
    """

    feature: IntArray
    threshold: FloatArray
    next: IntArray
    vote: FloatArray
    labels: NDArray[Any]
    n_features: int
    feature_names: tuple[str, ...] | None
    bias: float
    settings: Mapping[str, Any]
    record: TrainingRecord
    answer: FloatArray | None = None
    inputs: Inputs | None = None
    sigma: FloatArray | None = None
    #: Whether both exits of every node lead to the node after it; found when the model is made.
    is_chain: bool = field(init=False)
    #: Of a graph without joins, the tree as which rows walk through it; made when they first do.
    _tree: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, dtype in COLUMNS.items():
            object.__setattr__(self, name, freeze(getattr(self, name), dtype))
        for name in ("answer", "sigma"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, freeze(getattr(self, name), np.float64))
        object.__setattr__(self, "labels", freeze(self.labels))
        object.__setattr__(self, "settings", dict(self.settings))
        self.validate()
        object.__setattr__(self, "is_chain", chain_of(self.next))
        object.__setattr__(self, "_tree", None)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self) if f.init)

    def __repr__(self) -> str:
        kind = self.settings.get("builder", "DecisionGraph")
        return (
            f"<{kind}: {self.n_nodes} nodes, {self.n_features} features, "
            f"certificate {self.record.certificate[-1]:.4g}"
            + (f" ({self.certificate_note})>" if self.certificate_note else ">")
        )

    @property
    def is_exact(self) -> bool:
        """Whether every answer is certain, as assumed in training."""
        return self.answer is None and self.sigma is None

    @property
    def certificate_note(self) -> str:
        """What to know of the certificate: empty where answers are exact."""
        if self.is_estimated:
            return ESTIMATED
        if self.inputs is not None and self.inputs.note:
            return self.inputs.note
        return "" if self.is_exact else OF_ASSUMED_ANSWERS

    @property
    def is_estimated(self) -> bool:
        """Whether probabilities of answers were estimated in training, from answers drawn there."""
        observation = self.settings.get("observation")
        return isinstance(observation, Mapping) and observation.get("kind") == "sampled"

    @property
    def needs_class(self) -> bool:
        """Whether the assumed answers depend on a row's class, unknown at prediction."""
        return self.answer is not None and bool(
            (self.answer[:, :, 0] != self.answer[:, :, 1]).any()
        )

    @property
    def n_nodes(self) -> int:
        """Number of weak classifiers."""
        return len(self.feature)

    @property
    def n_inputs(self) -> int:
        """Number of different numbers that nodes may read of a row."""
        return self.n_features if self.inputs is None else self.inputs.n_inputs

    def validate(self) -> None:
        """Check shapes, ranges and topology.

        Raises
        ------
        ValueError
            Naming the array that is wrong. A graph that passes can be evaluated without reading
            out of bounds and without an endless loop.
        """
        n = self.n_nodes
        _check_shapes(self, n)
        check_columns(self.n_features, self.feature_names)
        check_settings(self.settings)
        if self.inputs is not None:
            self.inputs.validate(self.n_features)
        if n and not (self.feature.min() >= 0 and self.feature.max() < self.n_inputs):
            raise ValueError(f"feature: expected values in [0, {self.n_inputs})")
        check_finite_arrays(self, "threshold", "vote")
        if not is_number(self.bias):
            raise ValueError(f"bias: expected a finite number, got {self.bias}")
        _check_topology(self.next, n)
        _check_sums(self)
        if self.answer is not None and not ((self.answer >= 0) & (self.answer <= 1)).all():
            raise ValueError("answer: expected probabilities")
        _check_sigma(self)
        check_record(self.record, n)


#: The arrays with one entry per node, and the dtype in which they are kept.
COLUMNS: dict[str, type[np.generic]] = {
    "feature": np.int32,
    "threshold": np.float64,
    "next": np.int32,
    "vote": np.float64,
}


def _check_shapes(graph: DecisionGraph, n: int) -> None:
    check_labels(graph.labels, 2)
    check_shape(graph, {"feature": (n,), "threshold": (n,), "next": (n, 2), "vote": (n, 2)})
    if graph.answer is not None and graph.answer.shape != (n, 2, 2):
        raise ValueError(f"answer: expected shape {(n, 2, 2)}, got {graph.answer.shape}")


def _check_sigma(graph: DecisionGraph) -> None:
    sigma = graph.sigma
    if sigma is None:
        return
    if graph.answer is not None:
        raise ValueError("sigma: a model has either tables of answers or gaussian ones")
    if sigma.shape != (graph.n_features,):
        raise ValueError(f"sigma: expected shape ({graph.n_features},), got {sigma.shape}")
    known = np.isfinite(sigma) & (sigma > 0)
    if not (known.all() or np.isnan(sigma).all()):
        raise ValueError("sigma: expected positive finite numbers, or NaN in every place")


def _check_topology(next_: IntArray, n: int) -> None:
    if not n:
        return
    # Parents first: every exit leads to a later node or out, so no walk can return.
    here = np.arange(n)[:, None]
    if not ((next_ == OUT) | ((next_ > here) & (next_ < n))).all():
        raise ValueError("next: every exit must lead to a later node or be -1")
    reached = np.zeros(n, dtype=bool)
    reached[0] = True
    reached[next_[next_ != OUT]] = True
    if not reached.all():
        raise ValueError(f"next: no exit leads to node {int(np.argmin(reached))}")


def _check_sums(graph: DecisionGraph) -> None:
    # Of finite rows every decision value is a finite number, whatever the path.
    with np.errstate(over="ignore"):
        bound = abs(graph.bias) + np.abs(graph.vote).max(axis=1, initial=0.0).sum()
        if bound > MOST_SUM and not largest_score(graph) <= MOST_SUM:
            raise ValueError(
                "vote: expected numbers whose absolute values have a finite sum along every path, "
                "the bias included"
            )


def largest_score(graph: DecisionGraph) -> float:
    """Return the sum of the largest absolute votes on the path where it is largest."""
    size, n = np.abs(graph.vote), graph.n_nodes
    if chain_of(graph.next):
        # One after the other from the end, as below.
        return float(np.add.accumulate([0.0, *size.max(axis=1)[::-1]])[-1]) + abs(graph.bias)
    sizes, leads, ahead = size.tolist(), graph.next.tolist(), [0.0] * (n + 1)  # the last is OUT's
    for node in range(n - 1, -1, -1):
        ahead[node] = max(v + ahead[k] for v, k in zip(sizes[node], leads[node], strict=True))
    return ahead[0] + abs(graph.bias)


def chain_of(next_: IntArray) -> bool:
    """Return whether both exits of every node lead to the node after it."""
    after = np.append(np.arange(1, len(next_)), OUT)[: len(next_)]
    return bool((next_ == after[:, None]).all())


def check_record(record: TrainingRecord, n: int) -> None:
    """Raise ValueError if a record is not that of a model of `n` nodes."""
    if not isinstance(record.stop_reason, str):
        raise ValueError(f"record.stop_reason: expected a string, got {record.stop_reason!r}")
    for name in ("certificate", "cost"):
        values = getattr(record, name)
        if values.shape != (n + 1,):
            raise ValueError(f"record.{name}: expected shape ({n + 1},), got {values.shape}")
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError(f"record.{name}: expected finite numbers, none negative")
    errors = record.validation
    if errors is not None and not (
        errors.ndim == 1 and len(errors) > n and ((errors >= 0) & (errors <= 1)).all()
    ):
        raise ValueError(f"record.validation: expected at least {n + 1} numbers from 0 to 1")
    stages = record.stages
    if stages is None:
        return
    if not (stages.ndim == 1 and len(stages) and stages[0] >= 1 and stages[-1] == n):
        raise ValueError(f"record.stages: expected numbers of nodes, the last {n}")
    if not (stages[:-1] < stages[1:]).all():
        raise ValueError("record.stages: expected increasing numbers")
