"""What a model does to a row, in the few kinds of steps that a C file has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.projections import Projections
from pboost.data.separators import Separators
from pboost.values import FloatArray, IntArray


class Levels(NamedTuple):
    """Columns of zeros and ones for the levels of categories, among those of numbers.

    Number k is 1 where column ``column[k]`` of the row has this level, else 0; of ``level[k] = -1``
    the column itself.
    """

    column: IntArray
    level: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Tests:
    """The questions of nodes: whether a number of a row is above a threshold, or in a set.

    Attributes
    ----------
    column : ndarray of int32, shape (n,)
        Column of the row that each node reads, or number among `inputs`.
    threshold : ndarray, shape (n,)
        What it is compared with.
    above : ndarray of bool, shape (n,)
        Whether a row whose value is missing takes exit 1.
    set_number : ndarray of int32, shape (n,)
        Which set a node asks for, -1 where it compares.
    member : ndarray of uint8, shape (sets, bytes)
        The sets: level b is in one where bit ``b % 8`` of byte ``b // 8`` is set.
    inputs : Projections or Separators, or None
        The sums of columns that are compared, None where columns are.
    levels : Levels or None
        The columns that are added up, where they are not those of the row.
    """

    column: IntArray
    threshold: NDArray[Any]
    above: NDArray[np.bool_]
    set_number: IntArray
    member: NDArray[np.uint8]
    inputs: Projections | Separators | None = None
    levels: Levels | None = None

    def __len__(self) -> int:
        return len(self.column)


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """A row's walk through nodes, once for each root, and what is added up on its way.

    Attributes
    ----------
    tests : Tests
        The questions of the nodes.
    next : ndarray of int32, shape (n, 2)
        The node to which each exit leads; below 0 it leads out, in trees to leaf ``-1 - next``.
    root : ndarray of int32, shape (trees,)
        The first node of each walk, or a leaf likewise; -1: there is none.
    vote : ndarray, shape (n, 2, K), or None
        What the exits of a graph add; None of trees.
    leaf : ndarray, shape (leaves, K), or None
        What the leaves of trees add; None of graphs.
    start : ndarray, shape (J,)
        The numbers to which this is added. Walk t adds to those from ``K * t mod J`` on.
    after : ndarray of float64, shape (J,), or None
        Added in the end.
    divisor : int
        What the sums are divided by in the end.
    lead : bool
        Whether of two sums the second less the first is all that is wanted, in the end.
    """

    tests: Tests
    next: IntArray
    root: IntArray
    vote: NDArray[Any] | None
    leaf: NDArray[Any] | None
    start: NDArray[Any]
    after: FloatArray | None = None
    divisor: int = 1
    lead: bool = False

    @property
    def n_scores(self) -> int:
        """Number of decision values."""
        return 1 if self.lead else len(self.start)

    @property
    def added(self) -> NDArray[Any]:
        """What is added on the way, of exits (n, 2, K) or of leaves (n, K)."""
        found = self.leaf if self.vote is None else self.vote
        assert found is not None
        return found

    @property
    def is_chain(self) -> bool:
        """Whether both exits of each node lead to the node after it."""
        n = len(self.tests)
        after = np.append(np.arange(1, n), -1)[:n]
        return self.vote is not None and bool((self.next == after[:, None]).all())


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A sum of columns, each times a factor.

    Term t is ``factor[t] * (x - center[t]) / scale[t]``, where these are given, of a missing value
    that of ``fill[t]``. Arrays have an entry for each term.

    Attributes
    ----------
    constant : float
        The number to which terms are added.
    column : ndarray of int32
        Column that each term reads.
    factor, fill : ndarray of float64
        Factors, and what missing values count as.
    center, scale : ndarray of float64 or None
        What is subtracted, and what the difference is divided by.
    levels : Levels or None
        As of `Tests`.
    """

    constant: float
    column: IntArray
    factor: FloatArray
    fill: FloatArray
    center: FloatArray | None
    scale: FloatArray | None
    levels: Levels | None
    n_scores: ClassVar[int] = 1


@dataclass(frozen=True, slots=True, eq=False)
class LinearLeaves:
    """Trees to whose leaves K linear functions of a row belong.

    Attributes
    ----------
    walk : Walk
        The tree; its leaves add nothing.
    coefficient : ndarray of float64, shape (leaves, K, 1 + n)
        Constants and factors.
    absent : ndarray of bool, shape (leaves, K)
        Whether a class is always below the others.
    fill : ndarray of float64, shape (leaves, n) or (1, n)
        What missing values count as.
    levels : Levels or None
        As of `Tests`.
    """

    walk: Walk
    coefficient: FloatArray
    absent: NDArray[np.bool_]
    fill: FloatArray
    levels: Levels | None

    @property
    def n_scores(self) -> int:
        """Number of functions of a leaf."""
        return self.coefficient.shape[1]


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """What several models say, put together.

    Attributes
    ----------
    members : tuple
        The parts of the models.
    rule : {"values", "votes", "shares", "sum"}
        "values": the decision value of each is one of the whole; "votes": each adds its weight to
        that of the label it predicts, "shares": its probabilities times the weight; "sum": their
        numbers are added up.
    weight : ndarray of float64, shape (members,)
        Votes of the members.
    place : tuple of ndarray of int32
        Which label of the whole each label of a member is.
    start : ndarray of float64, shape (J,)
        The numbers to which votes are added.
    divisor, lead
        As of `Walk`; divisors may be sums of weights.
    link : tuple of str
        How the decision values of each become probabilities, where these are added.
    """

    members: tuple[Part, ...]
    rule: str
    weight: FloatArray
    place: tuple[IntArray, ...]
    start: FloatArray
    divisor: float = 1
    lead: bool = False
    link: tuple[str, ...] = ()

    @property
    def n_scores(self) -> int:
        """Number of decision values."""
        return 1 if self.lead else len(self.start)


@dataclass(frozen=True, slots=True, eq=False)
class Leaving:
    """A walk that rows leave at some of its joints, where their values are sure enough.

    Attributes
    ----------
    walk : Walk
        The whole walk.
    each : int
        Trees between one joint and the next; 0 of graphs.
    at : ndarray of int32, shape (m,)
        The joints where rows can leave, in their order: nodes of a graph, or of trees the first
        after it.
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

    walk: Walk
    each: int
    at: IntArray
    sure: NDArray[Any]
    slope: NDArray[Any]
    is_share: bool
    unit: int = 0
    whole: int = 0
    even: NDArray[np.int64] | None = None

    @property
    def n_scores(self) -> int:
        """Number of decision values."""
        return self.walk.n_scores


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Half of a straight line of a decision value, of two the lead of the second.

    Attributes
    ----------
    part : Part
        What has the value.
    slope, intercept : float
        The line.
    most : float
        No number of the line is larger.
    """

    part: Part
    slope: float
    intercept: float
    most: float
    n_scores: ClassVar[int] = 1


@dataclass(frozen=True, slots=True, eq=False)
class Maps:
    """Probabilities that are found by a map of each decision value of a part, as decision values.

    Of one map half the log odds, of several the logarithms of the shares of their sum.

    Attributes
    ----------
    part : Part
        What has the values; of two of them the lead of the second is mapped, if there is one map.
    slope, intercept : ndarray of float64, shape (K,), or None
        Lines whose values are log odds; none is larger than `most`.
    knot, share : ndarray of float64, shape (m,), or None
        Probabilities at values, with straight lines between them.
    start : ndarray of int32, shape (K + 1,), or None
        Map k has those of ``start[k]`` to ``start[k + 1] - 1``.
    most, most_half : float
        The largest size of log odds on a line, and of half log odds.
    """

    part: Part
    slope: FloatArray | None
    intercept: FloatArray | None
    knot: FloatArray | None
    share: FloatArray | None
    start: IntArray | None
    most: float
    most_half: float

    @property
    def n_scores(self) -> int:
        """Number of maps."""
        if self.slope is not None:
            return len(self.slope)
        assert self.start is not None
        return len(self.start) - 1


Part: TypeAlias = Walk | Linear | LinearLeaves | Members | Leaving | Line | Maps


def is_exact(part: Part) -> bool:
    """Return whether a part has no exponential function and no logarithm in it."""
    if isinstance(part, Members):
        return part.rule != "shares" and all(map(is_exact, part.members))
    return is_exact(part.part) if isinstance(part, Line) else not isinstance(part, Maps)
