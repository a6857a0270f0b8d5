"""Gradient boosting: each tree is fitted to the gradient of the loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Any, Literal, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.columns.columns import SortedColumns
from pboost.data.columns.sparse_columns import SparseFeatures, read_sparse
from pboost.data.feature_costs import CostOptions
from pboost.data.read.convert import is_sparse
from pboost.data.resampling import check_bag
from pboost.data.row_source import RowOptions, RowSource
from pboost.growth.validation import GIVEN, ValidationOptions, held_share
from pboost.losses import Loss, LossName, check_loss, is_of_package
from pboost.losses.gradient_functions import GradientLoss
from pboost.models.gradient_boosting import GradientBoostingModel
from pboost.threads import Workers
from pboost.trees.boosting_loop import Growing, SumFit, SumRows, TableRows, is_in_bins
from pboost.trees.cart import (
    BinOptions,
    FeatureCount,
    FitData,
    SpecialOptions,
    check_labels,
    fit_cart_problem,
    limits_of_problem,
)
from pboost.trees.early_stopping import HeldOut, LossEarlyStopping, MetricOptions
from pboost.trees.gradients import Steps, loss_of, task_of_loss
from pboost.trees.pooled_growth import limits_of_growth, plain_comparisons
from pboost.trees.regularization import (
    check_or_auto,
    draws_columns,
    l2_of,
    plain_interactions,
    plain_monotone,
    read_restraints,
    refuse_restraints,
)
from pboost.trees.sparse_rounds import sparse_options
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
    shown,
)
from pboost.values.options import FitOptions, Option, builder, filled

#: Learning rate of each level of `quality`.
RATES = (0.3, 0.2, 0.1, 0.05, 0.025)
check_rate = partial(check_number, min_value=0.0, max_value=1.0, open_min=True)
#: Default `max_delta_step` for classification, the bound on the targets of LogitBoost.
MAX_STEP = 4.0
#: Options that have the same meaning in `fit_cart`.
TREE_OPTIONS = (
    "max_depth",
    "max_leaf_nodes",
    "min_samples_leaf",
    "search",
    "max_bins",
    "missing",
    "categorical_smoothing",
)


class TuningOptions(TypedDict, total=False):
    """The hyperparameters of gradient boosting to tune first.

    Parameters
    ----------
    quality : int
        Level from 1 (fastest) to 5 (most accurate). It sets the default of `learning_rate`.
    n_estimators : int or "auto"
        Maximum number of trees, or of rounds with the softmax loss.
    learning_rate : float or "auto"
        Factor in (0, 1] by which each leaf value is multiplied. Smaller values need more trees and
        often generalize better. "auto" is 0.3, 0.2, 0.1, 0.05 or 0.025 for the levels of `quality`.
    max_depth : int or None
        Maximum depth of each tree. None means no limit.
    max_leaf_nodes : int or None
        Maximum number of leaves of each tree. If given, trees grow best-first. `max_depth` also
        applies unless it is None.
    min_samples_leaf : int
        Minimum number of training rows in a leaf.
    l2_regularization : float or "auto"
        Number >= 0 added to the sum of Hessians in leaf values and split gains.
    leaf_shrinkage : float or "auto"
        Strength >= 0 with which the difference between two children is shrunk toward 0 if it is
        within its noise. Values from 1 to 3 suit deep trees; 0 disables it.
    random_strength : float or "auto"
        Size >= 0 of random numbers that are added to split scores, so that features with similar
        gains take turns. They fade during training.
    subsample : float, int, None or "auto"
        Fraction of the training rows on which each tree is grown, in (0, 1], or their mean number.
        Leaf values use all rows. None: all.
    max_features : int, float, "sqrt", "log2" or None
        Number or fraction of the features to consider for each split, drawn at random at each node.
        None: all.
    """

    quality: Annotated[int, Option(3, check_integer, min_value=1, max_value=len(RATES))]
    n_estimators: Annotated[
        int | Auto, Option("auto", check_or_auto, of=check_integer, min_value=1)
    ]
    learning_rate: Annotated[float | Auto, Option("auto", check_or_auto, of=check_rate)]
    max_depth: Annotated[int | None, Option(6, check_integer, min_value=1)]
    max_leaf_nodes: Annotated[
        int | None, Option(None, check_integer, min_value=1, max_value=MOST_NODES)
    ]
    min_samples_leaf: Annotated[int, Option(1, check_integer, min_value=1)]
    l2_regularization: Annotated[
        float | Auto, Option("auto", check_or_auto, of=check_number, min_value=0.0)
    ]
    leaf_shrinkage: Annotated[
        float | Auto, Option("auto", check_or_auto, of=check_number, min_value=0.0)
    ]
    random_strength: Annotated[
        float | Auto, Option("auto", check_or_auto, of=check_number, min_value=0.0)
    ]
    subsample: Annotated[float | int | Auto | None, Option("auto", check_or_auto, of=check_bag)]
    max_features: Annotated[FeatureCount | float | None, Option(None)]


class RegularizationOptions(TypedDict, total=False):
    """Options for the task and for the regularization of trees and leaf values.

    Parameters
    ----------
    task : {"classification", "regression"}, optional
        Type of the target. By default, it is derived from `loss`, or else from `y`: text, booleans
        and up to 20 distinct integers are classes, and non-integers are regression targets.
    min_child_weight : float
        Minimum sum of Hessians in each child of a split.
    min_split_gain : float
        Minimum gain of a split, on the scale of LightGBM's `min_split_gain` and XGBoost's `gamma`.
    max_features_per_tree : int, float, "sqrt", "log2" or None
        Number or fraction of the features that a tree can use, drawn at random. `max_features` then
        draws from these. None: all.
    monotonic_cst : mapping of str or int to int, or sequence of int, optional
        Monotonic constraints of numerical features, by name or position: predictions never decrease
        (1) or never increase (-1) with the feature. A sequence has 1, 0 or -1 per feature. Missing
        values are not constrained.
    interaction_cst : sequence of sequences of str or int, optional
        Groups of features, by name or position. Each path from the root to a leaf uses features of
        one group only. Features in no group form a further group.
    max_delta_step : float, None or "auto"
        Maximum absolute leaf value, before `learning_rate`. None means no limit. "auto" is 4 for
        classification and the Poisson loss, else None.
    init : {"constant", "zero"}
        Decision value before the first tree: the constant that minimizes the loss, or 0.
    """

    task: Annotated[Literal["classification", "regression"] | None, Option(None)]
    min_child_weight: Annotated[float, Option(0.0, check_number, min_value=0.0)]
    min_split_gain: Annotated[float, Option(0.0, check_number, min_value=0.0)]
    max_features_per_tree: Annotated[FeatureCount | float | None, Option(None)]
    monotonic_cst: Annotated[
        Mapping[str | int, int] | Sequence[int] | None, Option(None, plain_monotone)
    ]
    interaction_cst: Annotated[
        Sequence[Sequence[str | int]] | None, Option(None, plain_interactions)
    ]
    max_delta_step: Annotated[float | Auto | None, Option("auto")]
    init: Annotated[Literal["constant", "zero"], Option("constant")]


class AdvancedOptions(TypedDict, total=False):
    """Options that few users need.

    Parameters
    ----------
    cost_tradeoff : float, optional
        Loss reduction that a unit of feature cost must bring. Splits are ranked by loss reduction
        minus this times the cost.
    leaf_update : {"auto", "line_search", "newton"}
        Leaf values minimize the loss of the leaf ("line_search"), or take one Newton step, which is
        faster and needs a second derivative. "auto": "line_search", or "newton" for
        `from_gradients`.
    multi_strategy : {"one_output_per_tree", "multi_output_tree"}
        Trees per round of the softmax loss: one per class, or one tree whose leaves have a value
        for each class, which predicts faster.
    histogram_precision : {"auto", "packed", "wide"}
        Rounding of gradients and Hessians in a binned search: "packed" to 18 and 19 bits, "wide"
        to 35 bits in up to twice the time. "auto" is "wide" when a few gradients dominate.
    growth : {"auto", "independent", "pooled", "symmetric", "cost_efficient"}
        How nodes choose their splits: each node by its own gain ("independent"), all nodes of a
        level together ("symmetric"), a mix of both ("pooled"), or by the gain per comparison
        ("cost_efficient").
    min_samples_in_bin : int or "auto"
        Minimum rows per bin of a sparse matrix, see :doc:`/how_to/sparse_data`.
    tree_comparisons : float or sequence of float, optional
        Maximum mean number of comparisons per training row in a tree with
        ``growth="cost_efficient"`` (default 4). In a sequence, the last number is used for
        further trees.
    """

    cost_tradeoff: Annotated[float | None, Option(None)]
    leaf_update: Annotated[Literal["auto", "line_search", "newton"], Option("auto")]
    multi_strategy: Annotated[
        Literal["one_output_per_tree", "multi_output_tree"], Option("one_output_per_tree")
    ]
    histogram_precision: Annotated[Literal["auto", "packed", "wide"], Option("auto")]
    growth: Annotated[
        Literal["auto", "independent", "pooled", "symmetric", "cost_efficient"], Option("auto")
    ]
    min_samples_in_bin: Annotated[
        int | Auto, Option("auto", check_or_auto, of=check_integer, min_value=1)
    ]
    tree_comparisons: Annotated[float | Sequence[float] | None, Option(None, plain_comparisons)]


class FurtherOptions(
    RegularizationOptions, SpecialOptions, BinOptions, CostOptions, AdvancedOptions, total=False
):
    """The options that are stored in the settings of a model, except those to tune first."""


class SumOptions(TuningOptions, FurtherOptions, total=False):
    """The options that are stored in the settings of a model, except its loss."""


class GradientBoostingOptions(
    TuningOptions,
    ValidationOptions,
    MetricOptions,
    RowOptions,
    FitOptions,
    FurtherOptions,
    total=False,
):
    """The options of `fit_gradient_boosting`, without the loss.

    Parameters
    ----------
    feature_costs : sequence of float or mapping, optional
        Cost >= 0 of each feature, or a mapping from names or positions to costs. Each row pays once
        for a feature, even if several trees use it. Splits are ranked by gain per cost
        unless `cost_tradeoff` is given.
    search : {"auto", "exact", "binned"}
        "exact" tries all thresholds; "binned" tries the edges of `max_bins` quantile bins, which is
        faster and supports more options. "auto" is "binned" unless `X` is a
        SortedColumns.
    validation : tuple, mapping or float, optional
        Validation set for early stopping: ``(X, y)``, ``(X, y, sample_weight)``, or a fraction in
        (0, 0.5] of the training rows. The model keeps the number of trees with the lowest
        validation loss. With a mapping of names to sets, the first set decides.
    n_iter_no_change : int, optional
        Number of trees without improvement on the validation set after which training stops.
        Requires `validation`. Default: 50.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Seed of all random choices. None is the seed 0.
    callback : callable, optional
        Called as ``callback(step, record)`` after each round with its number and a
        `pboost.growth.graph_growth.GradientBoostingStep`. Return True to stop.
    """


@builder
def fit_gradient_boosting(
    X: object,
    y: ArrayLike | None = None,
    *,
    loss: LossName | Loss | None = None,
    **options: Unpack[GradientBoostingOptions],
) -> GradientBoostingModel:
    """Fit gradient-boosted trees for classification or regression.

    Tune the parameters from `quality` to `n_iter_no_change` first. For "auto"
    see Notes.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, sparse matrix, SortedColumns or BinnedColumns
        Features. Missing values go to the child that gives the better split, or, if a node had none
        in training, to the child with more weight. Categories are split into two sets.
    y : array_like of shape (n,), optional
        Target: class labels, or finite numbers for regression.
    loss : str or Loss, optional
        Loss to minimize, see `pboost.losses`. Two classes: "exponential", "log_loss", "hinge",
        "probit", "focal"; any: "softmax". Regression: "squared_error", "absolute_error",
        "huber", "expectile", "log_cosh", "mape", "poisson", "gamma", "tweedie".
        Default: "log_loss", "softmax" or "squared_error".
    **options
        See `GradientBoostingOptions`.

    Returns
    -------
    GradientBoostingModel
        The model, for `predict` and others.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid; the message names it.
    MemoryError
        If the softmax loss needs too much memory.

    Notes
    -----
    Each tree fits the Newton steps -g / h with weights h by least squares, where g and h are the
    gradient and the Hessian of each row [2]_. Without a second derivative, the targets are
    -g. The gain of a split is G1**2 / (H1 + l2) + G2**2 / (H2 + l2) - G**2 / (H + l2), where G and
    H are the sums of g and h in the two children and in the node, and l2 is `l2_regularization`.

    By default, `l2_regularization` is the weight of two rows, or of one row with the softmax and
    squared error losses. It is 0 for other regression losses, custom losses and losses without a
    second derivative.

    By default, `subsample` is 0.8 and `leaf_shrinkage` 1.5 (log loss: 2) for the log loss, softmax
    and the squared error, and `random_strength` is 0.3 for the last two. With other losses,
    "multi_output_tree" or an exact search they are off. With costs, only `leaf_shrinkage` is on.

    With a learning rate of 0.1, ``n_estimators="auto"`` is 100. It is 200 if shrinkage keeps 0.6 of
    the squared leaf values of trees 31 to 40, and 400 if it also keeps 0.7 at trees 141 to 150.
    These numbers are inversely proportional to the learning rate, from 0.01 on.

    Models of a binned search depend neither on the order of the rows nor on the processor. If all
    weights are integers up to 64 times a common weight, a row counts as this number of copies. An
    exact search does not support `l2_regularization`, `leaf_shrinkage`, `random_strength`,
    `min_child_weight`, `min_split_gain`, `max_features`, `max_features_per_tree`, constraints,
    feature costs, "multi_output_tree" and other values of `growth` than "independent".

    With two classes, softmax gives the same probabilities as the log loss [1]_. A tree with
    "multi_output_tree" uses the split with the largest sum of gains over the classes [3]_.

    ``growth="auto"`` is "pooled" with up to 5,000 rows, else "independent". With more rows and a
    built-in loss other than softmax, it is "symmetric" if two features together predict far better
    than either alone [4]_ and `max_depth` is at least 3 (4 in regression). It is "independent" with
    `max_leaf_nodes`, `max_features`, constraints, costs or "multi_output_tree". With
    "cost_efficient", use ``max_depth=None``.

    References
    ----------
    .. [1] J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of
       Statistics 29 (2001), algorithm 1.
    .. [2] J. Friedman, T. Hastie and R. Tibshirani, "Additive logistic regression: a statistical
       view of boosting", Annals of Statistics 28 (2000), algorithm 3.
    .. [3] Z. Zhang and C. Jung, "GBDT-MO: gradient-boosted decision trees for multiple outputs",
       IEEE TNNLS 32 (2021).
    .. [4] Y. Lou, R. Caruana, J. Gehrke and G. Hooker, "Accurate intelligible models with pairwise
       interactions", KDD 2013, section 4.

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
    if options["rng"] is None:
        options = {**options, "rng": 0}
    if is_sparse(X):
        min_samples = options["min_samples_in_bin"]
        X = read_sparse(X, None if isinstance(min_samples, str) else min_samples)
        options = sparse_options(options)
    data = FitData.of(X, y, options)
    task: Task | None = options["task"]
    if loss is None:
        is_source = isinstance(data.X, RowSource)
        loss = data.X.default_loss(task) if is_source else loss_of(data.y, task)
    loss = check_loss(loss)
    sum_options = {**filled(SumOptions, options), "task": task_of_loss(loss, data.y, task)}
    return grow_sum(data, loss, sum_options, HeldOut.of(options), bar_of(options))


def grow_sum(
    data: FitData,
    loss: Loss,
    options: Mapping[str, Any],
    held_out: HeldOut,
    bar: Bar,
    first_model: GradientBoostingModel | None = None,
    n_reported: int = 0,
) -> GradientBoostingModel:
    """Return the fitted model. `callback` is not called for the first `n_reported` rounds."""
    with ExitStack() as ends:
        parts = None
        if isinstance(data.X, RowSource):
            parts = data.X.sums(loss, options, data.n_threads, ends)
        return begin_sum(data, loss, options, held_out, first_model, parts).grow(bar, n_reported)


def begin_sum(
    data: FitData,
    loss: Loss,
    options: Mapping[str, Any],
    held_out: HeldOut,
    first_model: GradientBoostingModel | None = None,
    parts: Any | None = None,
) -> SumFit:
    """Return a fit that has no trees yet; see `grow_sum`."""
    step_limit = _most(options["max_delta_step"], options["task"], loss)
    state = generator_state(data.generator)
    of_trees = {name: options[name] for name in TREE_OPTIONS}
    if options["search"] == "auto" and not isinstance(data.X, SortedColumns):
        of_trees["search"] = "binned"
    is_exact = options["search"] == "exact" or isinstance(data.X, SortedColumns)
    _check_bins(options, isinstance(data.X, SparseFeatures), is_exact)
    _check_trees(options, loss, is_exact)
    leaf_update = _leaf_update(options["leaf_update"], loss)
    of_trees["task"] = options["task"]
    hold = held_share(held_out.first, data.generator, keeps_levels=first_model is not None)
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
    watch = LossEarlyStopping(held_out, problem, loss, data.generator, rows)
    settings = {
        "builder": "fit_gradient_boosting",
        "loss": str(loss),
        **options,
        **_resolved_defaults(options, loss, is_exact),
        "leaf_update": leaf_update,
        "max_delta_step": step_limit,
        **watch.settings,
    }
    restraints = read_restraints(settings, problem, data.generator)
    if loss.is_multiclass and restraints.direction is not None:
        raise NotImplementedError(
            'monotonic_cst: expected None with loss="softmax"; use a loss with one decision value'
        )
    rows.sort_once()
    growth = limits_of_growth(options, limits, rows.problem, rows.n_copies, loss)
    settings["growth"], limits = growth
    if state is not None and draws(settings):
        settings["rng"] = state
    is_held_back = is_in_bins(rows.problem) and (
        options["task"] == "classification" or loss.name == "squared_error"
    )
    steps = Steps(
        settings["learning_rate"],
        np.inf if step_limit is None else step_limit,
        leaf_update == "line_search",
        l2_of(settings["l2_regularization"], _held(loss) if is_held_back else 0.0, rows.of_row),
        settings["histogram_precision"],
        settings["leaf_shrinkage"],
    )
    growing = Growing(
        loss, limits, steps, restraints, settings["multi_strategy"] == "multi_output_tree"
    )
    n_threads, cells = data.n_threads, problem.n_rows * problem.n_features
    with Workers(1 if parts is not None else n_threads, cells) as workers:
        case = rows, growing, watch, settings, classes, workers
        return SumFit(*case, data.generator, first_model)


def _resolved_defaults(
    options: Mapping[str, Any], loss: Loss, is_exact: bool
) -> dict[str, float | None]:
    """Return the options whose default depends on the loss or on `quality`, without "auto"."""
    is_shrunk = options["multi_strategy"] == "one_output_per_tree" and not is_exact
    is_shrunk = is_shrunk and is_of_package(loss)
    is_random = is_shrunk and _may_jitter(options)
    defaults = {
        "leaf_shrinkage": loss.shrinkage if is_shrunk else 0.0,
        "random_strength": loss.random_strength if is_random else 0.0,
        "subsample": loss.subsample if is_random else None,
        "learning_rate": RATES[options["quality"] - 1],
    }
    explicit = {name: options[name] for name in defaults if not isinstance(options[name], str)}
    return {**defaults, **explicit}


def _may_jitter(options: Mapping[str, Any]) -> bool:
    """Return whether costs leave room for random scores."""
    return options["feature_costs"] is None and options["growth"] != "cost_efficient"


def _leaf_update(leaf_update: str, loss: Loss) -> str:
    """Return "line_search" or "newton", checked against the loss."""
    if leaf_update == "auto":
        return "newton" if isinstance(loss, GradientLoss) else "line_search"
    if leaf_update == "newton" and not loss.has_curvature:
        raise ValueError(
            f'leaf_update: expected "line_search" for a loss without a second derivative, got '
            f"{leaf_update!r}"
        )
    return leaf_update


def _check_bins(options: Mapping[str, Any], has_sparse_rows: bool, is_exact: bool) -> None:
    """Raise an error if an option does not suit the search or the kind of `X`."""
    if not has_sparse_rows and options["min_samples_in_bin"] not in ("auto", 1):
        raise NotImplementedError(
            'min_samples_in_bin: expected "auto" or 1 unless X is a sparse matrix, got '
            f"{options['min_samples_in_bin']}; use max_bins"
        )
    if not is_exact:
        return
    refuse_restraints(options)
    if options["histogram_precision"] != "auto":
        raise ValueError(
            'histogram_precision: expected "auto" with search="exact", got '
            f'{options["histogram_precision"]!r}; use search="binned"'
        )


def _check_trees(options: Mapping[str, object], loss: Loss, is_exact: bool) -> None:
    """Raise an error if an option does not support feature costs or "multi_output_tree"."""
    if options["random_strength"] not in ("auto", 0.0) and not _may_jitter(options):
        raise NotImplementedError(
            'random_strength: expected "auto" or 0 with feature costs or growth="cost_efficient", '
            f"got {shown(options['random_strength'])}"
        )
    if options["multi_strategy"] == "one_output_per_tree":
        return
    if options["feature_costs"] is not None:
        raise NotImplementedError(
            'feature_costs: expected None with multi_strategy="multi_output_tree"; '
            'use multi_strategy="one_output_per_tree"'
        )
    if not loss.is_multiclass:
        raise ValueError(
            f'multi_strategy: expected "one_output_per_tree" with loss="{loss}", got '
            '"multi_output_tree"; it needs loss="softmax"'
        )
    for name in ("leaf_shrinkage", "random_strength"):
        if options[name] not in ("auto", 0.0):
            raise NotImplementedError(
                f'{name}: expected "auto" or 0 with multi_strategy="multi_output_tree", got '
                f'{shown(options[name])}; use multi_strategy="one_output_per_tree"'
            )
    if is_exact:
        raise NotImplementedError(
            'multi_strategy: expected "one_output_per_tree" with search="exact", got '
            '"multi_output_tree"; use search="binned"'
        )


def _held(loss: Loss) -> float:
    """Return the default of `l2_regularization` as a multiple of the weight of a row."""
    return loss.held if is_of_package(loss) and loss.has_curvature else 0.0


def draws(settings: Mapping[str, object]) -> bool:
    """Return whether a fit with these settings draws random rows or features."""
    bag = settings["subsample"]
    is_all = bag is None or (isinstance(bag, float) and bag == 1.0)  # the integer 1 means one row
    is_validated = settings.get("validation", GIVEN) != GIVEN
    is_plain = is_all and settings["random_strength"] == 0.0
    return not is_plain or is_validated or draws_columns(settings)


def _most(max_delta_step: object, task: str, loss: Loss) -> float | None:
    """Return the maximum absolute leaf value, or None without a limit."""
    if isinstance(max_delta_step, str):
        check_choice("max_delta_step", max_delta_step, get_args(Auto))
        return MAX_STEP if task == "classification" else loss.max_delta_step
    if max_delta_step is None or (
        isinstance(max_delta_step, float | np.floating) and max_delta_step == np.inf
    ):
        return None
    return check_number("max_delta_step", max_delta_step, min_value=0.0, open_min=True)
