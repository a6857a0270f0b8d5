"""The form that a C file is printed from: walks through nodes, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.node_inputs.inputs import Indicators
from pboost.data.node_inputs.sums import Projections, Separators
from pboost.values import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Tests:
    """The tests of nodes: whether a number of a row is above a threshold, or in a set.

    Attributes
    ----------
    column : ndarray of int32, shape (n,)
        Column of the row that each node reads, or number among `inputs`.
    threshold : ndarray, shape (n,)
        What it is compared with.
    above : ndarray of bool, shape (n,)
        Whether a row whose value is missing takes exit 1.
    set_number : ndarray of int32, shape (n,)
        Which set a node tests, -1 where it compares.
    member : ndarray of uint8, shape (sets, bytes)
        The sets: level b is in one where bit ``b % 8`` of byte ``b // 8`` is set.
    inputs : Projections or Separators, or None
        The sums of columns that are compared, None where columns are.
    levels : Indicators or None
        The columns that are added up, where they are not those of the row.
    """

    column: IntArray
    threshold: NDArray[Any]
    above: NDArray[np.bool_]
    set_number: IntArray
    member: NDArray[np.uint8]
    inputs: Projections | Separators | None = None
    levels: Indicators | None = None

    def __len__(self) -> int:
        return len(self.column)


class Exits(NamedTuple):
    """The joints of a walk at which rows can leave, if their values are sure enough.

    Attributes
    ----------
    each : int
        Trees between one joint and the next; 0 of graphs.
    at : ndarray of int32, shape (m,)
        The joints, in their order: nodes of a graph, or of trees the first after it.
    sure : ndarray of float64, shape (m,)
        Rows leave where the size of the value, of several the lead of the largest, is at least so
        large.
    slope : ndarray of float64, shape (m,)
        What values are multiplied by with which rows leave there.
    is_share : bool
        Whether values are shares, or the lead of one, which no factor takes beyond 0 and 1.
    unit : int
        In whole numbers: those of `slope` are counted in its inverse, a power of two. 0 of others.
    whole : int
        In whole numbers: a share of 1.
    even : ndarray of int64, shape (m,), or None
        In whole numbers, of several shares: what is added to each after the factor.
    """

    each: int
    at: IntArray
    sure: NDArray[Any]
    slope: NDArray[Any]
    is_share: bool
    unit: int = 0
    whole: int = 0
    even: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """A row's walk through nodes, once for each root, and what is added up on its way.

    Attributes
    ----------
    tests : Tests
        The tests of the nodes.
    next : ndarray of int32, shape (n, 2)
        The node to which each exit leads; below 0 it leads out, in trees to leaf ``-1 - next``.
    root : ndarray of int32, shape (trees,)
        The first node of each walk, or a leaf likewise; -1: there is none.
    added : ndarray, shape (n, 2, K) or (leaves, K)
        What the exits of a graph add, or the leaves of trees.
    start : ndarray, shape (J,)
        The numbers to which this is added. Walk t adds to those from ``K * t mod J`` on.
    after : ndarray of float64, shape (J,), or None
        Added in the end.
    divisor : int
        What the sums are divided by in the end.
    lead : bool
        Whether of two sums the second less the first is all that is wanted, in the end.
    exits : Exits or None
        Where rows can leave early.
    """

    tests: Tests
    next: IntArray
    root: IntArray
    added: NDArray[Any]
    start: NDArray[Any]
    after: FloatArray | None = None
    divisor: int = 1
    lead: bool = False
    exits: Exits | None = None

    @property
    def n_scores(self) -> int:
        """Number of decision values."""
        return 1 if self.lead else len(self.start)

    @property
    def is_graph(self) -> bool:
        """Whether exits add, not leaves."""
        return self.added.ndim == 3

    @property
    def is_chain(self) -> bool:
        """Whether both exits of each node lead to the node after it."""
        n = len(self.tests)
        after = np.append(np.arange(1, n), -1)[:n]
        return self.is_graph and bool((self.next == after[:, None]).all())


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """K linear functions of a row, or of the leaf of a tree that it reaches.

    Term t of a function is ``factor[t] * (x - center[t]) / scale[t]``, of a missing value that of
    ``fill[t]``.

    Attributes
    ----------
    walk : Walk or None
        The tree, whose leaves add nothing.
    column : ndarray of int32, shape (n,), or None
        Column that each term reads; None where term j reads column j.
    coefficient : ndarray of float64, shape (leaves, K, 1 + n)
        Constants and factors.
    fill : ndarray of float64, shape (leaves, n) or (1, n)
        What missing values count as.
    levels : Indicators or None
        As of `Tests`.
    scaled : tuple of two ndarray of float64, shape (n,), or None
        What is subtracted from a value, and what the difference is divided by.
    absent : ndarray of bool, shape (leaves, K), or None
        Whether a class is always below the others.
    """

    walk: Walk | None
    column: IntArray | None
    coefficient: FloatArray
    fill: FloatArray
    levels: Indicators | None
    scaled: tuple[FloatArray, FloatArray] | None = None
    absent: NDArray[np.bool_] | None = None

    @property
    def n_scores(self) -> int:
        """Number of functions of a leaf."""
        return self.coefficient.shape[1]


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """The decision values of several models, put together.

    Attributes
    ----------
    members : tuple
        The parts of the models.
    link : tuple of str
        What is added up of each: its probabilities by this link, see `TreeSum`; "vote", 1 for the
        label it predicts; "identity", its decision values.
    weight : ndarray of float64, shape (members,)
        What this is multiplied by.
    place : tuple of ndarray of int32
        To which number of the whole each is added.
    start : ndarray of float64, shape (J,)
        The numbers to which this is added.
    divisor, lead
        As of `Walk`; divisors may be sums of weights.
    """

    members: tuple[Part, ...]
    link: tuple[str, ...]
    weight: FloatArray
    place: tuple[IntArray, ...]
    start: FloatArray
    divisor: float = 1
    lead: bool = False

    @property
    def n_scores(self) -> int:
        """Number of decision values."""
        return 1 if self.lead else len(self.start)


@dataclass(frozen=True, slots=True, eq=False)
class Maps:
    """Probabilities that a calibration finds by the decision values of a part, as decision values.

    Of one map half the log odds, of several the logarithms of the shares of their sum.

    Attributes
    ----------
    part : Part
        What has the values; of two of them the lead of the second is mapped, if there is one map.
    model : CalibratedModel
        The lines or the knots of the maps.
    """

    part: Part
    model: Any

    @property
    def n_scores(self) -> int:
        """Number of maps."""
        return int(self.model.n_votes)

    @property
    def is_line(self) -> bool:
        """Whether the value is half of a straight line, without logarithms."""
        return self.model.slope is not None and self.n_scores == 1


Part: TypeAlias = Walk | Affine | Members | Maps


def walks(part: Part | None) -> Iterator[Walk]:
    """Yield all walks of a part."""
    if isinstance(part, Walk):
        yield part
    elif isinstance(part, Members):
        for member in part.members:
            yield from walks(member)
    elif part is not None:
        yield from walks(part.walk if isinstance(part, Affine) else part.part)


def on_walks(part: Part, change: Callable[[Walk], Walk]) -> Any:
    """Return a part with its walks changed."""
    if isinstance(part, Walk):
        return change(part)
    if isinstance(part, Members):
        members = tuple(on_walks(member, change) for member in part.members)
        return replace(part, members=members)
    if isinstance(part, Affine):
        return part if part.walk is None else replace(part, walk=change(part.walk))
    return replace(part, part=on_walks(part.part, change))


def is_exact(part: Part) -> bool:
    """Return whether a part has no exponential function and no logarithm in it."""
    if isinstance(part, Members):
        plain = set(part.link) <= {"identity", "vote", "shares"}
        return plain and all(map(is_exact, part.members))
    return is_exact(part.part) and part.is_line if isinstance(part, Maps) else True
