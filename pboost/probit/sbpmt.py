"""SBPMT: boosted probit model trees on subsamples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core import probit as kernel
from pboost._core.voting import NO_VOTE, half_log_odds
from pboost.data.node_inputs.fill import column_spread
from pboost.data.row_source import RowOptions, rows_here
from pboost.data.splits import Bags, check_bag, make_bags, rows_of_bag
from pboost.data.training import Problem
from pboost.growth.step import Callback
from pboost.growth.tree import tree_columns
from pboost.models.ensembles import REST_OR_CLASS, chance
from pboost.models.forest import RandomForest
from pboost.models.probit_trees import LEAST
from pboost.models.subagged import SubaggedProbitTrees
from pboost.probit.tree import (
    GrownProbit,
    ProbitGrower,
    ProbitProblem,
    check_coefficients,
    probit_problem,
)
from pboost.threads import Workers, check_stop
from pboost.trees.cart import FitData
from pboost.trees.members import Tally, train_members
from pboost.values import (
    FloatArray,
    IntArray,
    as_generator,
    bar_of,
    check_flag,
    check_integer,
    check_number,
)
from pboost.values.options import FitOptions, Option, builder, filled


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """AdaBoost of probit trees on one subsample.

    Attributes
    ----------
    trees : list of GrownProbit
        Its trees; those of a round one after another.
    alpha : list of float
        Votes of the rounds.
    error : list of float
        Weighted errors of all rounds.
    risk : ndarray of float64, shape (leaves, K)
        Weighted mean loss in the leaves of its trees.
    out : ndarray, shape (n_out,)
        The rows that are not in the subsample.
    class_rows : ndarray, shape (J,)
        Number of rows of each class in it.
    """

    trees: list[GrownProbit]
    alpha: list[float]
    error: list[float]
    risk: FloatArray
    out: NDArray[np.intp]
    class_rows: NDArray[np.intp]


def boost(
    task: ProbitProblem,
    problems: Sequence[Problem],
    bag: FloatArray,
    n_rounds: int,
    learning_rate: float,
) -> Member:
    """Return AdaBoost of probit trees on the rows of positive weight.

    Parameters
    ----------
    task : ProbitProblem
        Data and options.
    problems : sequence of Problem
        That of the task, or one for each class against the others: as many trees are grown in a
        round.
    bag : ndarray of float64, shape (n,)
        Weights of the rows.
    n_rounds : int
        Greatest number of rounds.
    learning_rate : float
        Factor of the log odds in votes.
    """
    label, classes = task.problem.label, task.problem.classes
    assert classes is not None
    rows, j = np.flatnonzero(bag).astype(np.int32), len(classes)
    class_rows = np.bincount(label.take(rows), minlength=j)
    trees: list[GrownProbit] = []
    risk: list[FloatArray] = []
    alpha: list[float] = []
    errors: list[float] = []
    w, wrong, work = bag / bag.max(), np.empty(len(rows), dtype=np.int32), np.empty(len(rows))
    beside = SideBySide(len(bag), rows, class_rows) if len(problems) > 1 else None
    with Workers(1) as workers:
        growers = [
            ProbitGrower(problem, task.X, bag, task.limits, task.leaves, workers)
            for problem in problems
        ]
        for round_ in range(n_rounds):
            kernel.normalise(w, rows, work)
            grown = [_grow(grower, w) for grower in growers]
            if beside is None:
                order, values = grown[0][0].rows, grown[0][1]
            else:
                order, values = rows, beside.values(grown)
            n_wrong, error = kernel.mistakes(values, order, label, w, wrong, work)
            errors.append(error)
            vote, is_last = _vote(error, j, learning_rate, alpha)
            if is_last and error > 0 and round_ > 0:
                break
            for grower, (tree, at) in zip(growers, grown, strict=True):
                trees.append(tree)
                risk.append(grower.risk(tree, at, w))
            alpha.append(vote)
            if is_last:
                break
            kernel.raise_weights(w, rows, wrong, n_wrong, math.exp(vote))
    first = task.problem.first
    out = first[bag[first] == 0]
    return Member(trees, alpha, errors, np.concatenate(risk), out, class_rows)


def _grow(grower: ProbitGrower, w: FloatArray) -> tuple[GrownProbit, FloatArray]:
    """Return the tree for these weights, and its values (n, K) at its rows."""
    check_stop()
    tree = grower.grow(w)
    return tree, grower.values(tree)


class SideBySide:
    """The values of the trees of all classes at listed rows of X, those of lost classes least."""

    def __init__(self, n: int, rows: IntArray, class_rows: NDArray[np.intp]) -> None:
        self.place = np.empty(n, dtype=np.int32)
        self.place[rows] = np.arange(len(rows), dtype=np.int32)
        self.present_classes = class_rows.nonzero()[0].tolist()
        self.out = np.full((len(rows), len(class_rows)), LEAST)

    def values(self, grown: Sequence[tuple[GrownProbit, FloatArray]]) -> FloatArray:
        """Return the values (n, J); until the next round."""
        for k in self.present_classes:
            tree, values = grown[k]
            kernel.put_beside(values, tree.rows, self.place, k, self.out)
        return self.out


def _vote(
    error: float, n_classes: int, learning_rate: float, before: list[float]
) -> tuple[float, bool]:
    """Return the vote of a tree of this weighted error, and whether it ends the boosting."""
    more = math.log(n_classes - 1) if n_classes > 2 else 0.0
    vote = learning_rate * 2 * half_log_odds(1 - error, error, 0.0) + more
    if error == 0.0:
        return sum(before) + vote, True
    if error >= chance(n_classes) or vote <= NO_VOTE:
        return 1.0, True
    return vote, False


#: Rows out of a bag whose values are gathered at a time.
BLOCK_ROWS = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class StratifiedBags(Bags):
    """Bags without replacement that hold the same share of the rows of every class.

    Attributes
    ----------
    classes : tuple of ndarray of int32
        The rows of each class that are drawn from.
    sizes : tuple of int
        How many are drawn.
    """

    classes: tuple[IntArray, ...] = ()
    sizes: tuple[int, ...] = ()

    def draw(self, member: int) -> tuple[FloatArray, np.random.Generator]:
        """Return the row weights of a member, 0 out of its bag, and its stream of numbers."""
        generator = self.stream(member)
        weights = np.zeros(len(self.weights))
        for rows, size in zip(self.classes, self.sizes, strict=True):
            weights += self.taken(generator.choice(rows, size, replace=False, shuffle=False))
        return weights, generator


def published_sbpmt_options() -> dict[str, Any]:
    """Return the options with which `fit_sbpmt` works as the code published with the method.

    Returns
    -------
    dict
        For ``fit_sbpmt(X, y, **pb.models.published_sbpmt_options())``: in the trees 20 rows for a
        split, 7 for a leaf and the pruning rule of R's rpart, which that code has by default; in
        the leaves full steps, until the deviance changes by 1e-5 or less; a tree for each of more
        than two classes; and members that vote.

    Notes
    -----
    Of that code these are not followed: it takes one row more for a subsample of two classes,
    unless the number is whole; goes on after a tree without error, which is then fitted again with
    the same weights; goes on after a tree worse than chance, which then votes for the contrary; and
    of more than two classes it compares probabilities, which are 0 and 1 in leaves of one class,
    and of equal ones takes the first, where here values are compared.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.models.published_sbpmt_options()["min_samples_leaf"]
    7
    """
    return {
        "min_samples_split": 20,
        "min_samples_leaf": 7,
        "complexity": 0.01,
        "tol": 1e-5,
        "safeguard": False,
        "voting": "hard",
        "one_vs_rest": "tree",
    }


class MemberOptions(TypedDict, total=False):
    """What members of a sum of probit trees are, and how their rows are drawn.

    Parameters
    ----------
    n_estimators : int
        Number of subsamples.
    n_boosting_rounds : int
        Greatest number of trees of a member.
    max_iter : int
        Greatest number of steps of ProbitBoost in each leaf.
    max_samples : float, int or None
        Rows of each subsample, drawn without replacement: a share in (0, 1] of those of positive
        weight, rounded down, but at least one; or how many; None: all.
    max_depth, min_samples_leaf, min_samples_split, complexity, missing, tol, safeguard :
        Options of the trees, see `fit_probit_tree`, which has other defaults: those here are of the
        published code, see `published_sbpmt_options`, but for `voting`. `missing` is "learn" or
        "error".
    learning_rate : float
        Factor in (0, 1] of the log odds in the votes and so in the change of the weights: 0.5 is
        the source's, 1.0 the textbook's AdaBoost. `pboost.bounds.training_error_bound` takes it.
    voting : {"soft", "hard"}
        What the members say of a row: the mean of their trees' probabilities, weighted by the
        trees' votes; or the label with most of these votes. `predict_proba` is the mean of that,
        and the label predicted is that of the largest. Of the two the first is better calibrated:
        on six data sets its Brier score is lower, or equal to a hundredth, and its logarithmic loss
        is finite, which that of shares is not.
    one_vs_rest : {"tree", "leaf"}
        Where each of more than two classes is told from the others: by a tree for each class, as in
        the source, or by functions in the leaves of one tree, which takes less time.
    stratify : bool
        Whether every subsample has the same share of the rows of every class, and one at least. A
        plain one may have none of a rare class; ``model.lost`` lists these.
    """

    n_estimators: Annotated[int, Option(21, check_integer, min_value=1)]
    n_boosting_rounds: Annotated[int, Option(5, check_integer, min_value=1)]
    max_iter: Annotated[int, Option(100, check_integer, min_value=1)]
    max_samples: Annotated[float | int | None, Option(0.7, check_bag)]
    max_depth: Annotated[int | None, Option(6, check_integer, min_value=0)]
    min_samples_leaf: Annotated[int, Option(7, check_integer, min_value=1)]
    min_samples_split: Annotated[int, Option(20, check_integer, min_value=2)]
    complexity: Annotated[float, Option(0.01, check_number, min_value=0.0)]
    missing: Annotated[Literal["learn", "error"], Option("learn")]
    tol: Annotated[float | None, Option(1e-5, check_number, min_value=0.0)]
    safeguard: Annotated[bool, Option(False, check_flag)]
    learning_rate: Annotated[
        float, Option(0.5, check_number, min_value=0.0, max_value=1.0, open_min=True)
    ]
    voting: Annotated[Literal["soft", "hard"], Option("soft")]
    one_vs_rest: Annotated[Literal["tree", "leaf"], Option("tree")]
    stratify: Annotated[bool, Option(False, check_flag)]


class SbpmtOptions(MemberOptions, RowOptions, FitOptions, total=False):
    """The options of `fit_sbpmt`.

    Parameters
    ----------
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows in their subsamples and in the out-of-bag error. All rows of
        positive weight are equally likely to be drawn.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness. The first k members are the same for any number of `n_estimators`.
    n_threads : int or None
        Threads, each of which fits whole members, -1 for all; None: as many as the work is worth.
        The model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each member, in order, with their number so far
        and a `pboost.growth.step.MemberStep`; returning True stops. The model then has the
        members so far, whatever the number of threads, which may have fitted a few more.
    """


@builder
def fit_sbpmt(
    X: object, y: ArrayLike | None = None, **options: Unpack[SbpmtOptions]
) -> SubaggedProbitTrees:
    """Fit boosted probit trees to many subsamples of the rows; the members are averaged.

    A member is AdaBoost, or SAMME with more than two classes, of probit trees
    (`fit_probit_tree`): small trees with a linear model of all columns in each leaf.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame or SortedColumns
        Features, some of which may be missing, see `fit_probit_tree`.
    y : array_like of shape (n,), optional
        Labels, of two or more different values.
    **options
        Those of `SbpmtOptions`.

    Returns
    -------
    SubaggedProbitTrees
        ``model[i]`` is member i, ``model.oob`` has the out-of-bag predictions and error.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described; the message names the argument.

    Notes
    -----
    A tree of weighted error e votes with ``learning_rate * ln((1 - e)/e)``, plus ``ln(J - 1)`` with
    J > 2 classes, and the weights of the rows on which it errs are multiplied by the exponential of
    that. A tree without error gets the vote of an error of 2**-52 and in addition the sum of all
    votes before it, so that it decides alone, and ends its member's boosting. A tree whose error is
    1 - 1/J or more, which is that of guessing, ends it, too, and is left out; unless it is the
    first: then it is kept, and its vote is 1. A class without a row in a subsample is never the
    answer of its member, unless it is the only class there.

    The bound of the source's theorem 3, `pboost.bounds.subagging_bound`, needs more than ln(n)**2
    members. The default of 21 is enough for up to 97 rows.

    References
    ----------
    .. [1] T. Qin and W.-M. Huang, "On subbagging boosted probit model trees".

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> model = pb.fit_sbpmt(X, y, n_estimators=5, rng=0)
    >>> len(model), bool(model.oob.error < 0.05)
    (5, True)
    >>> pb.predict_proba(model, [[0.2, -0.25, 0.0]]).round(2).tolist()
    [[0.76, 0.24]]
    """
    rows = rows_here("fit_sbpmt", X, y, options)
    data = FitData(*rows, options["n_threads"], as_generator(options["rng"]))
    subsampled = _arranged(data, options)
    with bar_of(options)(options["n_estimators"], "members") as on_step:
        return subsampled.fit(data.n_threads, on_step)


def _arranged(data: FitData, options: SbpmtOptions) -> Subsampled:
    """Return the rows and their subsamples."""
    of_trees = {**options, "criterion": "gini", "search": "exact"}
    task = probit_problem(data, of_trees)
    task.settings.update(filled(MemberOptions, options), builder="fit_sbpmt")
    bags = _subsamples(task, options["max_samples"], options["stratify"], data.generator)
    task = task._replace(problem=task.problem.sorted_once(data.n_threads))
    return Subsampled(task, _problems(task.problem, options["one_vs_rest"]), bags)


class Subsampled:
    """The rows of a fit, and the subsamples of its members, each of which is grown by itself.

    Parameters
    ----------
    task : ProbitProblem
        Rows and options.
    problems : list of Problem
        Those of which each has a tree in every round.
    bags : Bags
        The subsamples.
    """

    def __init__(self, task: ProbitProblem, problems: list[Problem], bags: Bags) -> None:
        self.task, self.problems, self.bags = task, problems, bags

    @property
    def members(self) -> int:
        """Number of members."""
        return int(self.task.settings["n_estimators"])

    def train(self, member: int) -> Member:
        """Return a member."""
        settings = self.task.settings
        bag = self.bags.draw(member)[0]
        return boost(
            self.task, self.problems, bag, settings["n_boosting_rounds"], settings["learning_rate"]
        )

    def fit(self, n_threads: int | None, callback: Callback | None) -> SubaggedProbitTrees:
        """Return the model of members, with what they say of rows out of their subsamples."""
        task, grown = self.task, list[Member]()
        tally, recorded = _tally(task), _tally(task)
        spread = column_spread(task.X, task.weights)
        join = partial(_join, task, self.problems[0], spread, task.means())

        def take(member: Member) -> bool:
            grown.append(member)
            if callback is None:
                return False
            alone = join([member])
            tally.add(*_said_out(alone, 0, task, member))
            return tally.tell(callback, len(grown), alone[0])

        train_members(self.train, self.members, n_threads, self._cells(), take)
        model = join(grown)

        def say(member: int) -> tuple[NDArray[np.intp], FloatArray]:
            return _said_out(model, member, task, grown[member])

        train_members(
            say, len(model), n_threads, self._cells(), lambda answer: recorded.add(*answer)
        )
        return replace(model, oob=recorded.close())

    def _cells(self) -> int:
        return int(self.task.X.size * self.members * self.task.settings["n_boosting_rounds"])


def _problems(problem: Problem, one_vs_rest: str) -> list[Problem]:
    """Return the problems of which each has a tree in every round."""
    assert problem.classes is not None
    j = len(problem.classes)
    if one_vs_rest == "leaf" or j == 2:
        return [problem]
    codes = ((problem.label == k).astype(np.int32) for k in range(j))
    return [replace(problem, classes=REST_OR_CLASS, label=code) for code in codes]


def _subsamples(
    task: ProbitProblem, bag: float | int | None, stratify: bool, generator: np.random.Generator
) -> Bags:
    """Return the subsamples of the members."""
    entries = task.problem.entries
    bags = make_bags(task.weights, len(task.X), bag, False, generator, _down, entries)
    if not stratify:
        return bags
    label = task.problem.label if entries is None else entries.likeliest
    codes = label[bags.rows]
    classes = [bags.rows[codes == k] for k in np.unique(codes)]
    share = bag if isinstance(bag, float) else bags.size / len(bags.rows)
    sizes = np.array([rows_of_bag(share, len(rows), _down) for rows in classes])
    # The rows that rounding down has left over go to the classes that have lost most by it.
    lost = np.array([share * len(rows) for rows in classes]) - sizes
    more = max(0, bags.size - int(sizes.sum()))
    sizes[np.argsort(-lost, kind="stable")[:more]] += 1
    return StratifiedBags(
        bags.rows,
        bags.weights,
        int(sizes.sum()),
        False,
        bags.seed,
        entries,
        tuple(classes),
        tuple(sizes.tolist()),
    )


def _down(number: float) -> int:
    """Return the whole part of a share of rows; 0.29 of 100 is 29."""
    return math.floor(number * (1 + 1e-12))


def _join(
    task: ProbitProblem,
    problem: Problem,
    spread: FloatArray,
    mean: FloatArray | None,
    grown: list[Member],
) -> SubaggedProbitTrees:
    """Return the model, without a record of rows out of the subsamples; `problem` is of a tree."""
    assert task.problem.classes is not None
    trees = [tree for member in grown for tree in member.trees]
    root, columns = tree_columns(problem, [tree.partition for tree in trees], task.limits.criterion)
    partitions = RandomForest(
        root,
        **columns,
        classes=problem.classes,
        n_features=problem.n_features,
        feature_names=problem.names,
        settings=task.settings,
        table=problem.table,
    )
    coefficient = np.concatenate([tree.coefficient for tree in trees])
    check_coefficients(coefficient)
    error = np.full((len(grown), task.settings["n_boosting_rounds"]), np.nan)
    for i, member in enumerate(grown):
        error[i, : len(member.error)] = member.error
    return SubaggedProbitTrees(
        partitions,
        coefficient,
        np.concatenate([tree.taken for tree in trees]),
        np.concatenate([member.risk for member in grown]),
        spread,
        np.array([alpha for member in grown for alpha in member.alpha]),
        np.cumsum([0, *(len(member.alpha) for member in grown)]),
        error,
        np.array([member.class_rows for member in grown]),
        task.settings["voting"],
        task.problem.classes,
        task.settings,
        leaf_mean=_means(trees),
        mean=mean,
        seen=task.problem.seen,
    )


def _means(trees: list[GrownProbit]) -> FloatArray | None:
    """Return what missing values count as in the leaves; None where there are none."""
    means = [tree.means for tree in trees if tree.means is not None]
    return np.concatenate(means) if means else None


def _tally(task: ProbitProblem) -> Tally:
    assert task.problem.classes is not None
    label, entries = task.problem.label, task.problem.entries
    return Tally(label, task.weights, len(task.problem.classes), entries)


def _said_out(
    model: SubaggedProbitTrees, number: int, task: ProbitProblem, member: Member
) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the rows that a member of the model has not seen, and what it says of them."""
    out = member.out
    blocks = (out[start : start + BLOCK_ROWS] for start in range(0, len(out), BLOCK_ROWS))
    answers = [model.said_at(number, task.codes[rows]) for rows in blocks]
    return task.problem.input_rows(out), np.concatenate(answers) if answers else np.empty(0)
