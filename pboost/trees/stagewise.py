"""Forward stagewise additive modelling: trees fitted to the gradient of a loss, one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Annotated, Any, Literal, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.columns.columns import BinnedColumns, SortedColumns
from pboost.data.prices import CostOptions
from pboost.data.row_source import RowOptions, RowSource
from pboost.data.splits import check_bag
from pboost.growth.validation import GIVEN, ValidationOptions, held_share
from pboost.losses import Loss, LossName, check_loss, is_of_package
from pboost.models.tree_sum import GradientBoostingModel
from pboost.threads import Workers
from pboost.trees.cart import (
    BinOptions,
    FeatureCount,
    FitData,
    SpecialOptions,
    check_labels,
    fit_cart_problem,
    limits_of_problem,
)
from pboost.trees.pooling import limits_of_growth, plain_comparisons
from pboost.trees.restraints import (
    check_l2,
    draws_columns,
    l2_of,
    plain_interactions,
    plain_monotone,
    read_restraints,
    refuse_restraints,
)
from pboost.trees.sum_growth import Growing, LossEarlyStopping, SumFit, SumRows, TableRows
from pboost.trees.targets import Steps, loss_of, task_of_loss
from pboost.values import (
    MOST_NODES,
    Auto,
    Bar,
    Task,
    bar_of,
    check_choice,
    check_integer,
    check_number,
    generator_state,
)
from pboost.values.options import FitOptions, Option, builder, filled

#: Bound on what a leaf adds to decision values of labels: that of LogitBoost's targets.
MAX_STEP = 4.0
#: The options of a sum of trees that are those of `fit_cart`, and mean the same.
TREE_OPTIONS = (
    "max_depth",
    "max_leaf_nodes",
    "min_samples_leaf",
    "search",
    "max_bins",
    "missing",
    "categorical_smoothing",
)


class SumTreeOptions(TypedDict, total=False):
    """What each tree of a sum is fitted to, how large it is and what holds it back.

    Parameters
    ----------
    task : {"classification", "regression"}, optional
        What `y` is. By default `loss` decides if it is given: a loss of numbers is of a regression.
        Otherwise text, booleans and at most 20 different whole numbers are classes, and numbers
        that are not all whole are a regression. With more different whole numbers it must be given.
    multi_strategy : {"one_output_per_tree", "multi_output_tree"}
        Trees of a round of softmax: one for each label, or one for all of them, whose leaves add a
        step to the decision value of each label, so that a row is compared as often as by a single
        tree. "multi_output_tree" with a binned search.
    n_estimators : int
        Greatest number of rounds: of trees, with softmax of as many trees as there are labels, all
        of which see the decision values before the round, unless `multi_strategy` is
        "multi_output_tree".
    learning_rate : float
        Factor in (0, 1] of what each tree adds.
    max_depth : int or None
        Greatest depth of each tree; 1 gives stumps.
    max_leaf_nodes : int or None
        Greatest number of leaves of each tree, within `max_depth`, which None lifts. Where it is
        given, the node whose split gains most is split next.
    growth : {"auto", "independent", "pooled", "symmetric", "cost_efficient"}
        How splits of the nodes of a level are chosen: "independent" by what each gains in its node;
        "symmetric" by what it gains in all nodes of the level together, so that they have one split
        wherever it divides them; "pooled" from the fourth level on by 0.8 of what it gains in all
        of them and 0.2 of what it gains in its node. "auto" is pooled of up to 5,000 rows; of more
        symmetric, where a pair of columns tells far more than either (see Notes), else independent.
        It is independent with an option or a search that goes another way: with
        ``multi_strategy="multi_output_tree"``, `max_leaf_nodes`, `monotonic_cst`,
        `interaction_cst`, `max_features`, `feature_costs` or an exact search, and where the open
        nodes of a level would take more than 256 MB. "cost_efficient" splits the node next whose
        split gains most for each row that it compares, as long as `tree_comparisons` lasts: trees
        that are short for most rows, for models within a budget. `max_depth` holds, so that None is
        best; without `max_leaf_nodes` there are 1024 leaves at most.
    tree_comparisons : float or sequence of float, optional
        Mean number of comparisons, at least 1, that the training rows of a tree take in it at most,
        by their weights, with ``growth="cost_efficient"``; default 4. A sequence has those of the
        first trees, of which the last is that of all others.
    min_samples_leaf : int
        Least number of training rows in a leaf.
    leaf_update : {"auto", "line_search", "newton"}
        What a leaf adds, before `learning_rate`: the step of least loss on its rows
        (``Loss.leaf_value``), or one Newton step, which is shorter work and needs a curvature.
        "auto" is "line_search".
    l2_regularization : float or "auto"
        Number >= 0 that is added to the sum of Hessians of each side of a split and of each leaf,
        so that leaf values become smaller. The Hessian of a row is its weight times the second
        derivative of the loss: p (1 - p) with the log loss, 1 with the squared loss and with losses
        without a second derivative. "auto" is, for classes and a named loss with a second
        derivative, the weight of two rows (softmax, the squared loss: of one row), else 0. The
        weight of a row is 1 without weights; with them, the weight of which all are multiples, or
        their mean if there is none. A number is in the unit of the weights, as are
        `min_child_weight` and `min_split_gain`. With a loss of your own, leaf values do not depend
        on `l2_regularization`, unless `leaf_update` is "newton". With a binned search.
    min_child_weight : float
        Number >= 0: the least sum of Hessians on each side of a split, as `min_child_weight` of
        xgboost and `min_sum_hessian_in_leaf` of lightgbm. With a binned search.
    min_split_gain : float
        Number >= 0: the least gain of a split, G1**2 / (H1 + l2_regularization) + G2**2 / (H2 +
        l2_regularization) - G**2 / (H + l2_regularization), where G and H are the sums of gradients
        and Hessians of the two sides and of the node. It is `gamma` of xgboost and `min_split_gain`
        of lightgbm. A split takes about half of its gain from the sum of the losses; with the
        squared loss, all of it from the sum of squared errors. With one tree for all classes, the
        gains of the classes are added. With 0, splits are made even if `l2_regularization` makes
        their gain negative; xgboost and lightgbm do not make them, nor does
        ``min_split_gain=1e-6``. With a binned search.
    max_features_per_tree : int, float, "sqrt", "log2" or None
        Number of columns that a tree is grown on, drawn anew for each tree: how many, a share in
        (0, 1], the root or the logarithm of the number of columns; None: all. With a binned search.
    max_features : int, float, "sqrt", "log2" or None
        As `max_features_per_tree`, of the columns of the tree those in which a node is searched,
        drawn anew for each node.
    monotonic_cst : mapping of str or int to int, or sequence of int, optional
        By their names or positions, columns of numbers with which decision values never fall (1) or
        never rise (-1), whatever the values of others: of each tree, and of the sum; or 1, 0 or -1
        for each column. See
        `is_monotone`. Where the value is missing it is free. With a binned search.
    interaction_cst : sequence of sequences of str or int, optional
        Groups of columns, by their names or positions: all columns that are compared on the way to
        a leaf are in one of them. Columns in no group are one more. With a binned search.
    """

    task: Annotated[Literal["classification", "regression"] | None, Option(None)]
    multi_strategy: Annotated[
        Literal["one_output_per_tree", "multi_output_tree"], Option("one_output_per_tree")
    ]
    n_estimators: Annotated[int, Option(100, check_integer, min_value=1)]
    learning_rate: Annotated[
        float, Option(0.1, check_number, min_value=0.0, max_value=1.0, open_min=True)
    ]
    max_depth: Annotated[int | None, Option(3, check_integer, min_value=1)]
    max_leaf_nodes: Annotated[
        int | None, Option(None, check_integer, min_value=1, max_value=MOST_NODES)
    ]
    growth: Annotated[
        Literal["auto", "independent", "pooled", "symmetric", "cost_efficient"], Option("auto")
    ]
    tree_comparisons: Annotated[float | Sequence[float] | None, Option(None, plain_comparisons)]
    min_samples_leaf: Annotated[int, Option(1, check_integer, min_value=1)]
    leaf_update: Annotated[Literal["auto", "line_search", "newton"], Option("auto")]
    l2_regularization: Annotated[float | Auto, Option("auto", check_l2)]
    min_child_weight: Annotated[float, Option(0.0, check_number, min_value=0.0)]
    min_split_gain: Annotated[float, Option(0.0, check_number, min_value=0.0)]
    max_features_per_tree: Annotated[FeatureCount | float | None, Option(None)]
    max_features: Annotated[FeatureCount | float | None, Option(None)]
    monotonic_cst: Annotated[
        Mapping[str | int, int] | Sequence[int] | None, Option(None, plain_monotone)
    ]
    interaction_cst: Annotated[
        Sequence[Sequence[str | int]] | None, Option(None, plain_interactions)
    ]


class SumStepOptions(TypedDict, total=False):
    """What trees of a sum add, and on which rows they are grown.

    Parameters
    ----------
    cost_tradeoff : float, optional
        Number >= 0: what a unit of cost that a row pays has to take from the sum of losses, with
        the squared loss from the sum of squared errors. A split is then chosen by what it takes
        less this times what the rows at the node have to pay, `comparison_cost` included, and made
        only where that is above 0; with `max_leaf_nodes` the node where it is largest is split
        next. The larger the number, the less is paid. Default: splits are chosen by the ratio, and
        all are made.
    max_delta_step : float, None or "auto"
        Bound on the size of what a leaf adds, before `learning_rate`; None or infinity: only the
        `limit` of the loss. On rows of one class many losses are least at infinity. "auto" is 4 of
        a classification and of the Poisson loss, None of other numbers.
    init : {"constant", "zero"}
        Decision value before the first tree: the constant of least loss, or 0.
    subsample : float, int or None
        Rows to which each tree is fitted, drawn without replacement: a share in (0, 1] of those of
        positive weight, rounded to the nearest number, at least one; or how many; None: all.
    """

    cost_tradeoff: Annotated[float | None, Option(None)]
    max_delta_step: Annotated[float | Auto | None, Option("auto")]
    init: Annotated[Literal["constant", "zero"], Option("constant")]
    subsample: Annotated[float | int | None, Option(None, check_bag)]


class RoundingOption(TypedDict, total=False):
    """How exact the sums of a binned search are.

    Parameters
    ----------
    histogram_precision : {"auto", "packed", "wide"}
        How a binned search rounds gradients and curvatures: "packed" to 18 bits of the largest
        gradient and 19 of the largest curvature; "wide" to 35 bits of both, of more than 131,072
        rows to a bit less for each doubling, which takes up to twice the time. "auto" is wide for
        trees before which fewer than one in a hundred gradients has 1/4096 of the largest.
    """

    histogram_precision: Annotated[Literal["auto", "packed", "wide"], Option("auto")]


class SumOptions(
    SumTreeOptions,
    CostOptions,
    SumStepOptions,
    BinOptions,
    RoundingOption,
    SpecialOptions,
    total=False,
):
    """What a sum of trees is fitted with beside its loss, as in its settings."""


class GradientBoostingOptions(SumOptions, RowOptions, ValidationOptions, FitOptions, total=False):
    """The options of `fit_gradient_boosting` but for the loss.

    Parameters
    ----------
    feature_costs : sequence of float or mapping, optional
        What columns cost, numbers >= 0: one for each, or a mapping of names or positions, where
        others cost nothing. A row pays for a column once, whatever compares it. A split is then
        chosen by how much it lowers the loss, by `comparison_cost` plus what the rows at the node
        have still to pay in the mean. With a binned search.
    search : {"auto", "exact", "binned"}
        "exact" tries every cut between two different values, "binned" the edges of `max_bins` bins
        of about equal weight, in a small part of the time. "auto" is binned, but for columns that
        are sorted already.
    validation : tuple or float, optional
        Rows by whose mean loss the number of trees is chosen: ``(X, y)``, ``(X, y,
        sample_weight)``, or a share in (0, 0.5] of the rows (of each label), drawn with `rng` and
        not trained on: they choose the number of trees, and nothing else depends on them but the
        bins of columns that were binned before. The model has at least one tree.
    n_iter_no_change : int, optional
        With `validation`: fitting ends after so many trees without improvement; default 50.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness for `subsample`, `validation` and columns that are drawn.
    callback : callable, optional
        Called as ``callback(step, record)`` after each tree with their number so far and a
        `pboost.growth.step.GradientBoostingStep`; returning True stops.
    """


@builder
def fit_gradient_boosting(
    X: object,
    y: ArrayLike | None = None,
    *,
    loss: LossName | Loss | None = None,
    **options: Unpack[GradientBoostingOptions],
) -> GradientBoostingModel:
    """Fit a sum of trees, each of which lowers the loss that the ones before it leave.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features. A test sends rows whose value is missing to the exit that lowers the criterion
        most; where no training row at the node was missing, to the exit of larger reach. A category
        is split by a set of its levels.
    y : array_like of shape (n,), optional
        Labels, any two values, of softmax two or more; of a regression, finite numbers.
    loss : str or Loss, optional
        What is minimised, see `pboost.losses`: "exponential", "log_loss", "hinge" or "probit" of
        two labels, of which the lower is -1 to it, the other +1; "softmax" of any number of labels;
        "squared_error", "absolute_error", "huber", "quantile" or "poisson" of numbers. Default:
        "squared_error" of a regression, "log_loss" of two classes, "softmax" of more.
    **options
        Those of `GradientBoostingOptions`.

    Returns
    -------
    GradientBoostingModel
        For `predict`, `decision_function`, `staged_decision_function` and others.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described; the message names the argument.
    MemoryError
        If there is no room for two numbers of each label and row with softmax.

    Notes
    -----
    A step fits a regression tree by squared error. Where the loss has a curvature h > 0, the
    targets are the Newton steps -g / h with weights h, g the gradient; h is raised where a target
    would be beyond the `limit` of the loss. Otherwise the targets are -g. So a split is best whose
    sides have the greatest sum of G**2 / (H + l2_regularization), G and H their sums of g and h.
    Each leaf then adds the step that `leaf_update` names, times `learning_rate`.

    A binned search rounds derivatives as `histogram_precision` says, and curvatures at least to 1:
    sums are then exact, so that no order of rows and no processor changes a model. Weights that are
    multiples of one weight, up to 64 times it, are numbers of copies: what is
    rounded is multiplied, so that the trees are those of the copies. What leaves
    add is found with at least 33 bits of the largest derivative in the leaf. Of such trees
    ``weight`` is counted in a unit of which the largest curvature of a row is between 1/2 and 1,
    and ``impurity`` is what all splits below a node gain, by its weight.

    Along the score of one label, the others held, the loss of softmax is the log loss of this label
    against the others together. The tree of a label is one of that loss, at the log odds of the
    label. With two labels leaves add half of their step, since both scores move at once: so the
    probabilities are those of the log loss [1]_. With more they add all of it.

    One tree for all labels is split where the sum over labels of what their own trees would gain is
    largest, if it gains anything; its leaves add to each label what a leaf of its tree with these
    rows would [3]_. The levels of a category are put in order by the step of each label in turn.

    Trees of more than 5,000 rows are by default symmetric where two columns tell much together and
    little alone, else independent. Of all pairs of columns of numbers, with a cut near the middle
    of each, some pair then lowers the squares of the gradients at the start, by a mean in each of
    the four parts, 9 times as much as the best cut of either column does, and 108 times as much as
    a cut does by chance [4]_. 20,000 rows are looked at, of more than 40 columns fewer, of more
    than 183 none; which of them is told by what is in them, so that neither their order nor copies
    in place of weights change the growth. Trees of three levels may be symmetric with labels only;
    shallower ones, those of softmax and of losses of your own never are by default.

    With the exponential loss, -g / h is the label and h the boosted weight, so that squared error
    is twice the Gini index. With stumps, ``init="zero"``, ``learning_rate=1``,
    ``max_delta_step=None`` and ``l2_regularization=0`` the decision values are those of
    `fit_adaboost` with ``votes="domain"``, ``smoothing=0`` and ``weak.stump(criterion="gini")``,
    and of other criteria as long as they find the same splits.

    References
    ----------
    .. [1] J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of
       Statistics 29 (2001), algorithm 1.
    .. [2] J. Friedman, T. Hastie and R. Tibshirani, "Additive logistic regression: a statistical
       view of boosting", Annals of Statistics 28 (2000), algorithm 3.
    .. [3] Z. Zhang and C. Jung, "GBDT-MO: gradient-boosted decision trees for multiple outputs",
       IEEE Transactions on Neural Networks and Learning Systems 32 (2021).
    .. [4] Y. Lou, R. Caruana, J. Gehrke and G. Hooker, "Accurate intelligible models with pairwise
       interactions", KDD 2013, section 4: pairs are judged by the four parts of two cuts.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = pb.fit_gradient_boosting(X, y, loss="log_loss", n_estimators=50)
    >>> model
    <fit_gradient_boosting: 50 trees, 4 features, loss log_loss>
    >>> pb.predict(model, [[1.0, 1.0, 0.0, 0.0], [1.0, -1.0, 0.0, 0.0]]).tolist()
    ['same', 'other']
    """
    data = FitData.of(X, y, options)
    task: Task | None = options["task"]
    if loss is None:
        is_source = isinstance(data.X, RowSource)
        loss = data.X.default_loss(task) if is_source else loss_of(data.y, task)
    loss = check_loss(loss)
    sum_options = {**filled(SumOptions, options), "task": task_of_loss(loss, data.y, task)}
    held_out = options["validation"], options["n_iter_no_change"]
    return grow_sum(data, loss, sum_options, held_out, bar_of(options))


def grow_sum(
    data: FitData,
    loss: Loss,
    options: Mapping[str, Any],
    held_out: tuple[Any, Any],
    bar: Bar,
    first_model: GradientBoostingModel | None = None,
    n_reported: int = 0,
) -> GradientBoostingModel:
    """Return the sum of so many trees, of which the first may be given; `n_reported`: of how many."""
    with ExitStack() as ends:
        parts = None
        if isinstance(data.X, RowSource):
            parts = data.X.sums(loss, options, data.n_threads, ends)
        return begin_sum(data, loss, options, held_out, first_model, parts).grow(bar, n_reported)


def begin_sum(
    data: FitData,
    loss: Loss,
    options: Mapping[str, Any],
    held_out: tuple[Any, Any],
    first_model: GradientBoostingModel | None = None,
    parts: Any | None = None,
) -> SumFit:
    """Return the fit of a sum before its first tree; see `grow_sum`."""
    step_limit = _most(options["max_delta_step"], options["task"], loss)
    state = generator_state(data.generator)
    of_trees = {name: options[name] for name in TREE_OPTIONS}
    if options["search"] == "auto" and not isinstance(data.X, SortedColumns):
        of_trees["search"] = "binned"
    is_exact = options["search"] == "exact" or isinstance(data.X, SortedColumns)
    _check_trees(options, loss, is_exact)
    if is_exact:
        refuse_restraints(options)
        if options["histogram_precision"] != "auto":
            raise ValueError(
                'histogram_precision: expected "auto" with search="exact", whose sums are wider'
            )
    leaf_update = _leaf_update(options["leaf_update"], loss)
    of_trees["task"] = options["task"]
    hold = held_share(held_out[0], data.generator, keeps_levels=first_model is not None)
    rows: SumRows
    if parts is None:
        problem, limits, _, _ = fit_cart_problem(data, of_trees, hold)
        rows = TableRows(problem, data.X, data.n_threads)
    else:
        rows = parts.rows(hold)
        limits = limits_of_problem(rows.problem, of_trees)
    problem = rows.problem
    if first_model is not None:
        check_labels(problem, first_model.classes)
    classes = rows.take_targets(loss, data.y)
    watch = LossEarlyStopping(*held_out, problem, loss, data.generator, rows)
    settings = {
        "builder": "fit_gradient_boosting",
        "loss": str(loss),
        **options,
        "leaf_update": leaf_update,
        "max_delta_step": step_limit,
        **watch.settings,
    }
    restraints = read_restraints(options, problem, data.generator)
    if loss.is_multiclass and restraints.direction is not None:
        raise NotImplementedError(
            "monotonic_cst: expected None with softmax, whose probabilities do not follow one score"
        )
    rows.sort_once()
    growth = limits_of_growth(options, limits, rows.problem, rows.n_copies, loss)
    settings["growth"], limits = growth
    if state is not None and draws(settings):
        settings["rng"] = state
    is_held_back = (
        isinstance(rows.problem.columns, BinnedColumns) and options["task"] == "classification"
    )
    steps = Steps(
        options["learning_rate"],
        np.inf if step_limit is None else step_limit,
        leaf_update == "line_search",
        l2_of(settings["l2_regularization"], _held(loss) if is_held_back else 0.0, rows.of_row),
        settings["histogram_precision"],
    )
    growing = Growing(
        loss, limits, steps, restraints, settings["multi_strategy"] == "multi_output_tree"
    )
    n_threads, cells = data.n_threads, problem.n_rows * problem.n_features
    with Workers(1 if parts is not None else n_threads, cells) as workers:
        case = rows, growing, watch, settings, classes, workers
        return SumFit(*case, data.generator, first_model)


def _leaf_update(leaf_update: str, loss: Loss) -> str:
    """Return how the step of a leaf is found, "line_search" or "newton"."""
    if leaf_update == "auto":
        return "line_search"
    if leaf_update == "newton" and not loss.has_curvature:
        raise ValueError(
            f'leaf_update: expected "line_search" for a loss without curvature, got {leaf_update!r}'
        )
    return leaf_update


def _check_trees(options: Mapping[str, object], loss: Loss, is_exact: bool) -> None:
    """Raise ValueError or NotImplementedError unless a round can have such trees."""
    if options["multi_strategy"] == "one_output_per_tree":
        return
    if options["feature_costs"] is not None:
        raise NotImplementedError(
            'feature_costs: expected None with multi_strategy="multi_output_tree", whose splits do not know what rows have paid; '
            'multi_strategy="one_output_per_tree" takes them'
        )
    if not loss.is_multiclass:
        raise ValueError(
            f'multi_strategy: expected "one_output_per_tree" with loss="{loss}", which has one decision value and '
            'one tree a round; loss="softmax" has one for each label'
        )
    if is_exact:
        raise NotImplementedError(
            'multi_strategy: expected "one_output_per_tree" with search="exact"; a binned search grows one tree for '
            "all labels"
        )


def _held(loss: Loss) -> float:
    """Return by the weight of how many rows `l2_regularization` holds trees of labels back by default."""
    return loss.held if is_of_package(loss) and loss.has_curvature else 0.0


def draws(settings: Mapping[str, object]) -> bool:
    """Return whether fits of these settings draw rows or columns, for trees or for validation."""
    bag = settings["subsample"]
    is_all = bag is None or (isinstance(bag, float) and bag == 1.0)  # 1 is one row
    is_validated = settings.get("validation", GIVEN) != GIVEN
    return not is_all or is_validated or draws_columns(settings)


def _most(max_delta_step: object, task: str, loss: Loss) -> float | None:
    """Return the bound on what a leaf adds, None where there is none."""
    if isinstance(max_delta_step, str):
        check_choice("max_delta_step", max_delta_step, get_args(Auto))
        return MAX_STEP if task == "classification" else loss.max_delta_step
    if max_delta_step is None or (
        isinstance(max_delta_step, float | np.floating) and max_delta_step == np.inf
    ):
        return None
    return check_number("max_delta_step", max_delta_step, min_value=0.0, open_min=True)
