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
from pboost.data.node_inputs.imputation import column_spread
from pboost.data.resampling import Bags, check_bag, make_bags, rows_of_bag
from pboost.data.row_source import RowOptions, rows_here
from pboost.data.training_data import Problem
from pboost.growth.graph_growth import Callback
from pboost.growth.tree import tree_columns
from pboost.models.ensembles import REST_OR_CLASS, chance
from pboost.models.probit_trees import LEAST
from pboost.models.random_forest import RandomForest
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
from pboost.trees.parallel_members import Tally, train_members
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
    """A boosted ensemble of probit trees on one subsample.

    Attributes
    ----------
    trees : list of GrownProbit
        Trees, in the order of the rounds. A round has one tree, or one per class.
    alpha : list of float
        Votes of the rounds.
    error : list of float
        Weighted errors of all rounds.
    risk : ndarray of float64, shape (leaves, K)
        Weighted mean loss in the leaves of the trees.
    out : ndarray, shape (n_out,)
        Rows that are not in the subsample.
    class_rows : ndarray, shape (J,)
        Number of rows of each class in the subsample.
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
    """Run AdaBoost with probit trees on the rows of positive weight.

    Parameters
    ----------
    task : ProbitProblem
        Data and options.
    problems : sequence of Problem
        The problem of `task`, or one problem per class against the rest. One tree is fitted to each
        problem in each round.
    bag : ndarray of float64, shape (n,)
        Weights of the rows.
    n_rounds : int
        Maximum number of rounds.
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
    """Fit a tree with weights `w`. Return the tree and its values (n, K) for its training rows."""
    check_stop()
    tree = grower.grow(w)
    return tree, grower.values(tree)


class SideBySide:
    """Collects the values of one tree per class. Absent classes get the value `LEAST`."""

    def __init__(self, n: int, rows: IntArray, class_rows: NDArray[np.intp]) -> None:
        self.place = np.empty(n, dtype=np.int32)
        self.place[rows] = np.arange(len(rows), dtype=np.int32)
        self.present_classes = class_rows.nonzero()[0].tolist()
        self.out = np.full((len(rows), len(class_rows)), LEAST)

    def values(self, grown: Sequence[tuple[GrownProbit, FloatArray]]) -> FloatArray:
        """Return the values (n, J) of rows for all classes. The next call overwrites them."""
        for k in self.present_classes:
            tree, values = grown[k]
            kernel.put_beside(values, tree.rows, self.place, k, self.out)
        return self.out


def _vote(
    error: float, n_classes: int, learning_rate: float, before: list[float]
) -> tuple[float, bool]:
    """Return the vote of a tree with weighted error `error`, and True if boosting stops."""
    more = math.log(n_classes - 1) if n_classes > 2 else 0.0
    vote = learning_rate * 2 * half_log_odds(1 - error, error, 0.0) + more
    if error == 0.0:
        return sum(before) + vote, True
    if error >= chance(n_classes) or vote <= NO_VOTE:
        return 1.0, True
    return vote, False


#: Number of out-of-bag rows per block of predictions.
BLOCK_ROWS = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class StratifiedBags(Bags):
    """Subsamples without replacement that contain the same fraction of each class.

    Attributes
    ----------
    classes : tuple of ndarray of int32
        Rows of each class to draw from.
    sizes : tuple of int
        Number of rows to draw from each class.
    """

    classes: tuple[IntArray, ...] = ()
    sizes: tuple[int, ...] = ()

    def draw(self, member: int) -> tuple[FloatArray, np.random.Generator]:
        """Return the row weights and the random number generator of one subsample."""
        generator = self.stream(member)
        weights = np.zeros(len(self.weights))
        for rows, size in zip(self.classes, self.sizes, strict=True):
            weights += self.taken(generator.choice(rows, size, replace=False, shuffle=False))
        return weights, generator


def published_sbpmt_options() -> dict[str, Any]:
    """Return the options of `fit_sbpmt` that match the published code of the method.

    Returns
    -------
    dict
        Options for ``fit_sbpmt(X, y, **pb.models.published_sbpmt_options())``. Trees use the
        defaults of R's rpart: 20 rows per split, 7 rows per leaf, and its pruning rule. Leaves use
        full steps until the deviance changes by at most 1e-5. Multiclass problems have one tree per
        class, and the base learners vote for classes.

    Notes
    -----
    The published code differs from `fit_sbpmt` in four details:

    * For two classes, the number of rows in a subsample is rounded up instead of down.
    * Boosting continues after a tree without errors, and the same tree is fitted again.
    * Boosting continues after a tree that is worse than chance, with a negative vote.
    * For more classes, probabilities are compared. They are 0 and 1 in leaves with one class, and
      the first class wins ties. `fit_sbpmt` compares the values of the linear functions.

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
    """Options of the base learners of SBPMT and of their subsamples.

    Parameters
    ----------
    n_estimators : int
        Number of subsamples, with one boosted ensemble each.
    n_boosting_rounds : int
        Maximum number of boosting rounds on each subsample.
    max_iter : int
        Maximum number of ProbitBoost steps in each leaf.
    max_samples : float, int or None
        Size of each subsample, which is drawn without replacement: the number of rows, or a
        fraction in (0, 1] of the rows with positive weight. A fraction is rounded down to at least
        one row. None uses all rows.
    max_depth, min_samples_leaf, min_samples_split, complexity, missing, tol, safeguard :
        Options of the trees, see `fit_probit_tree`. Except for `max_depth`, the defaults are those
        of `published_sbpmt_options`. `missing` is "learn" or "error".
    learning_rate : float
        Factor in (0, 1] of the log odds in votes and weight updates. The reference uses 0.5.
        Standard AdaBoost uses 1.0; see `pboost.bounds.training_error_bound`.
    voting : {"soft", "hard"}
        How the base learners are combined. "soft" averages the class probabilities of their trees,
        weighted by the votes; "hard" counts the class that each base learner predicts. "soft" gives
        better calibrated probabilities.
    one_vs_rest : {"tree", "leaf"}
        Trees for more than two classes. "tree" fits one tree per class against the rest, as in the
        reference. "leaf" fits a single tree with one linear function per class in each leaf, which
        is faster.
    stratify : bool
        Whether each subsample contains the same fraction of every class, and at least one row.
        Otherwise a subsample may miss a rare class; ``model.lost`` lists such cases.
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
        Sample weights >= 0 for the fits and for the out-of-bag error. All rows with positive weight
        are equally likely to be drawn.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness. The first k base learners do not depend on `n_estimators`.
    n_threads : int or None
        Number of threads; -1 uses all cores. By default, the number depends on the amount of work.
        The model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each base learner, with the number of base
        learners so far and a `pboost.growth.graph_growth.MemberStep`. Return True to stop the fit.
    """


@builder
def fit_sbpmt(
    X: object, y: ArrayLike | None = None, **options: Unpack[SbpmtOptions]
) -> SubaggedProbitTrees:
    """Fit an ensemble of boosted probit trees on subsamples (SBPMT).

    Each base learner is an ensemble of probit trees, boosted by AdaBoost or SAMME on one subsample.
    A probit tree is a small tree with a linear probit model in each leaf, see `fit_probit_tree`.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame or SortedColumns
        Features; missing values are handled as in `fit_probit_tree`.
    y : array_like of shape (n,), optional
        Class labels.
    **options
        Options of `SbpmtOptions`.

    Returns
    -------
    SubaggedProbitTrees
        ``model[i]`` is base learner i; ``model.oob`` has the out-of-bag predictions and error.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is invalid; the message names the argument.

    Notes
    -----
    A tree with weighted error e has the vote ``learning_rate * ln((1 - e)/e)``, plus ``ln(J - 1)``
    if there are J > 2 classes. The weights of its misclassified rows are multiplied by the
    exponential of the vote. Boosting stops after a tree without errors. The vote of this tree is
    the vote for e = 2**-52 plus the sum of all previous votes, so that it outvotes all other trees.
    Boosting also stops at a tree with an error of at least 1 - 1/J, the error of guessing. This
    tree is discarded, but if it is the first tree, it is kept with vote 1. A base learner only
    predicts classes that have rows in its subsample.

    The bound of theorem 3 in the reference, `pboost.bounds.subagging_bound`, requires more than
    ln(n)**2 base learners. The default of 21 suffices for up to 97 rows.

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
    >>> len(model), round(float(model.oob.error), 2)
    (5, 0.04)
    >>> pb.predict_proba(model, [[0.2, -0.25, 0.0]]).round(2).tolist()
    [[0.76, 0.24]]
    """
    rows = rows_here("fit_sbpmt", X, y, options)
    data = FitData(*rows, options["n_threads"], as_generator(options["rng"]))
    subsampled = _arranged(data, options)
    with bar_of(options)(options["n_estimators"], "members") as on_step:
        return subsampled.fit(data.n_threads, on_step)


def _arranged(data: FitData, options: SbpmtOptions) -> Subsampled:
    """Check the options and draw the subsamples."""
    of_trees = {**options, "criterion": "gini", "search": "exact"}
    task = probit_problem(data, of_trees)
    task.settings.update(filled(MemberOptions, options), builder="fit_sbpmt")
    bags = _subsamples(task, options["max_samples"], options["stratify"], data.generator)
    task = task._replace(problem=task.problem.sorted_once(data.n_threads))
    return Subsampled(task, _problems(task.problem, options["one_vs_rest"]), bags)


class Subsampled:
    """The training rows and the subsamples, to which base learners are fitted independently.

    Parameters
    ----------
    task : ProbitProblem
        Rows and options.
    problems : list of Problem
        The problems, see `boost`.
    bags : Bags
        The subsamples.
    """

    def __init__(self, task: ProbitProblem, problems: list[Problem], bags: Bags) -> None:
        self.task, self.problems, self.bags = task, problems, bags

    @property
    def members(self) -> int:
        """Number of base learners."""
        return int(self.task.settings["n_estimators"])

    def train(self, member: int) -> Member:
        """Fit one base learner."""
        settings = self.task.settings
        bag = self.bags.draw(member)[0]
        return boost(
            self.task, self.problems, bag, settings["n_boosting_rounds"], settings["learning_rate"]
        )

    def fit(self, n_threads: int | None, callback: Callback | None) -> SubaggedProbitTrees:
        """Fit all base learners. Return the model with its out-of-bag predictions."""
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
    """Return a list with one problem, or with one problem per class against the rest."""
    assert problem.classes is not None
    j = len(problem.classes)
    if one_vs_rest == "leaf" or j == 2:
        return [problem]
    codes = ((problem.label == k).astype(np.int32) for k in range(j))
    return [replace(problem, classes=REST_OR_CLASS, label=code) for code in codes]


def _subsamples(
    task: ProbitProblem, bag: float | int | None, stratify: bool, generator: np.random.Generator
) -> Bags:
    """Draw the subsamples of the base learners."""
    entries = task.problem.entries
    bags = make_bags(task.weights, len(task.X), bag, False, generator, _down, entries)
    if not stratify:
        return bags
    label = task.problem.label if entries is None else entries.likeliest
    codes = label[bags.rows]
    classes = [bags.rows[codes == k] for k in np.unique(codes)]
    share = bag if isinstance(bag, float) else bags.size / len(bags.rows)
    sizes = np.array([rows_of_bag(share, len(rows), _down) for rows in classes])
    # The classes with the largest remainders get the rows that rounding down has removed.
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
    """Round a number of rows down. A tolerance makes 100 * 0.29 equal to 29."""
    return math.floor(number * (1 + 1e-12))


def _join(
    task: ProbitProblem,
    problem: Problem,
    spread: FloatArray,
    mean: FloatArray | None,
    grown: list[Member],
) -> SubaggedProbitTrees:
    """Combine base learners into a model without out-of-bag predictions."""
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
    """Return the values that replace missing values in the leaves, or None if there are none."""
    means = [tree.means for tree in trees if tree.means is not None]
    return np.concatenate(means) if means else None


def _tally(task: ProbitProblem) -> Tally:
    assert task.problem.classes is not None
    label, entries = task.problem.label, task.problem.entries
    return Tally(label, task.weights, len(task.problem.classes), entries)


def _said_out(
    model: SubaggedProbitTrees, number: int, task: ProbitProblem, member: Member
) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the out-of-bag rows of a base learner and the predictions for these rows."""
    out = member.out
    blocks = (out[start : start + BLOCK_ROWS] for start in range(0, len(out), BLOCK_ROWS))
    answers = [model.said_at(number, task.codes[rows]) for rows in blocks]
    return task.problem.input_rows(out), np.concatenate(answers) if answers else np.empty(0)
