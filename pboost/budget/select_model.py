"""Fit the most accurate model within a budget, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.budget.candidates import (
    FAMILIES,
    LONG,
    FamilyModel,
    Fits,
    costly_path,
    families,
    first,
    fitted_in_bytes,
    longest,
    path_of,
)
from pboost.budget.exit_thresholds import calibrated, check_no_feature_costs, end_of, upper
from pboost.budget.model_choice import (
    Data,
    ModelChoice,
    Promise,
    Shortlist,
    Tried,
    best,
    by_weight,
    first_part,
    joined,
    options,
    read_data,
    sharpened,
)
from pboost.data.columns.columns import values_of
from pboost.data.feature_costs import (
    CostGroupOption,
    CostOptions,
    FeatureCostOption,
    FeatureCosts,
    read_feature_costs,
)
from pboost.data.read.check_xy import as_features
from pboost.data.read.convert import Features
from pboost.data.read.table import Categorical
from pboost.data.row_source import OneTable, RowSource, rows_here
from pboost.inspection.cross_validation import deal_rows
from pboost.models.base import Model
from pboost.models.early_exit_model import EarlyExitModel, Trajectory, where_left
from pboost.values import (
    Array,
    FloatArray,
    Seed,
    TableLike,
    Task,
    as_generator,
    check_integer,
    check_number,
    child,
    draw_seed,
)
from pboost.values.options import builder, checked

#: Maximum number of training rows on which the model of all rows is compared with the fold models.
#: The cost ratio is raised to the power TRUST, because training rows exaggerate it.
MOST_SEEN, TRUST = 4000, 0.5


def fitted_within(
    full_fits: Fits, tried: Tried, chosen: ModelChoice
) -> EarlyExitModel | FamilyModel | None:
    """Return a candidate fitted to all rows, or None if it exceeds its limits.

    A model of all rows may cost more than the fold models. The difference is estimated on training
    rows.
    """
    full_model, promise = full_fits.of(chosen.family), chosen.promise
    model = first(full_model, chosen.joints)
    seen = TrainedRows(model, tried, full_fits)
    joints = seen.joints
    bound = upper(tried.path.cost[: joints + 1]) * np.append(1.0, seen.more())
    keeps = (bound <= promise.mean_comparisons) & (
        longest(model)[: joints + 1] <= promise.max_comparisons
    )
    if not keeps[1]:
        return None
    if not chosen.has_exits:
        joints = int(np.flatnonzero(keeps)[-1])
    # No row reaches the last stage, so each decision value is scaled by the slope of an exit.
    longer = first(full_model, joints + 1)
    if not tried.has_exits or longer.n_stages < 2:
        return first(full_model, joints)
    exit_model = _with_exits(longer, joints, tried, seen, chosen, full_fits.feature_costs)
    sharpness, _ = sharpened(exit_model, _left(exit_model, tried.path)[0], tried.truth)
    return replace(exit_model, slope=exit_model.slope * sharpness)


def _with_exits(
    model: FamilyModel,
    joints: int,
    tried: Tried,
    seen: TrainedRows,
    chosen: ModelChoice,
    feature_costs: FeatureCosts | None,
) -> EarlyExitModel:
    """Add exits at the first stages of a model of all rows, based on the fold models."""
    promise, item = chosen.promise, None if feature_costs is None else feature_costs.item
    end = joints
    if promise.max_comparisons < np.inf:
        end = min(joints, end_of(model, promise.max_comparisons))
    options = {
        tried.unit: _plain(promise.mean_comparisons),
        "max_comparisons": _plain(promise.max_comparisons),
        "length": None,
    }
    paths = [first_part(of, joints) for of in (tried.path, seen.every, *seen.others)]
    exit_model = calibrated(model, paths, end, options, _takes, item)
    if not chosen.has_exits:
        return exit_model
    return replace(exit_model, cost=exit_model.cost * seen.longer(exit_model))


def _takes(costs: Sequence[FloatArray]) -> float:
    """Return the estimated mean cost of new rows in a model of all rows, plus a standard error.

    The estimate is based on out-of-fold costs, corrected by the costs of training rows.
    """
    return float(upper(costs[0])) * _more(costs[1], costs[2:])


def _more(every: FloatArray, others: Sequence[FloatArray]) -> float:
    """Return the estimated cost of a model of all rows, relative to the fold models.

    The estimate is based on the training rows of each model.
    """
    usual = np.mean([cost.mean() for cost in others])
    return float((every.mean() / usual) ** TRUST) if usual else 1.0


class TrainedRows:
    """Costs of training rows in the model of all rows and in the fold models."""

    def __init__(self, model: FamilyModel, tried: Tried, full_fits: Fits) -> None:
        X = full_fits.X

        def path(of: FamilyModel, rows: NDArray[np.intp]) -> Trajectory:
            rows = rows[:: -(-len(rows) // MOST_SEEN)]
            return path_of(of, X.take(rows), full_fits.feature_costs)

        self.every = path(model, by_weight(full_fits.weight, X.n_rows))
        self.joints = min(len(self.every.cost), len(tried.path.cost)) - 1
        self.others = [path(first(of, self.joints), rows) for of, rows in tried.models]

    def more(self) -> FloatArray:
        """Return the cost of the model up to each stage, relative to the fold models."""
        others = [of.cost[1 : self.joints + 1].mean(axis=1) for of in self.others]
        every: FloatArray = self.every.cost[1 : self.joints + 1].mean(axis=1)
        usual = np.mean(others, axis=0)
        return np.divide(every, usual, out=np.ones_like(every), where=usual > 0)

    def longer(self, model: EarlyExitModel) -> float:
        """Return the cost of the model with early exits, relative to the fold models."""
        every, *others = (_left(model, path)[1] for path in (self.every, *self.others))
        return _more(every, others)


def _left(model: EarlyExitModel, path: Trajectory) -> tuple[FloatArray, FloatArray]:
    """Return the scaled decision values and the costs of rows at their exits."""
    joints = min(len(model.threshold), len(path.cost) - 1)
    path = first_part(path, joints)
    joint = where_left(path, model.threshold[:joints], model.item is not None)
    rows = np.arange(len(joint))
    slope = np.append(model.slope, 1.0)[joint].reshape(-1, *[1] * (path.score.ndim - 2))
    return path.score[joint, rows] * slope, path.cost[joint, rows]


# Choice of the model

#: Maximum number of rows for the comparison of models, and maximum number of decision values in
#: memory.
MOST_ROWS, MOST_NUMBERS = 20_000, 2**26
#: The curve has these smaller budgets: numbers of comparisons or, for other units, fractions of the
#: budget.
BUDGETS = (5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
PARTS = np.array([0.125, 0.25, 0.5])


@builder
def fit_within_budget(
    X: TableLike | RowSource | OneTable,
    y: ArrayLike | None = None,
    *,
    y_proba: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    mean_comparisons: float | Sequence[float] | None = None,
    max_comparisons: float | None = None,
    mean_feature_cost: float | Sequence[float] | None = None,
    max_bytes: int | Sequence[int] | None = None,
    feature_costs: FeatureCostOption = None,
    cost_groups: CostGroupOption = None,
    task: Task | None = None,
    cv: int = 3,
    categorical_features: Categorical = None,
    rng: Seed = None,
    n_threads: int | None = None,
) -> Any:
    """Fit the model with the smallest cross-validated error within a cost budget.

    Several families of models are compared by cross-validation: gradient boosting with trees of
    several sizes, single trees and, for two classes, models distilled from gradient boosting (see
    `distill`). Additional candidates are gradient boosting with small steps and its mixture with a
    random forest for large budgets, chains of deep trees and stumps for more classes, and large
    trees for many rows. Each model has a size that suits the budget and uses early exits (see
    `early_exit`). The best model is fitted to all rows.

    Parameters
    ----------
    X : array_like of shape (n, d), or data frame
        Features, see `fit_gradient_boosting`.
    y : array_like of shape (n,)
        Class labels with at least two distinct values; for regression, finite numbers.
    y_proba : array_like of shape (n, J) or (n,), or data frame, optional
        Class probabilities of each row, in place of `y`. A one-dimensional array contains the
        probability of the second of two classes.
    classes : array_like of shape (J,), optional
        The classes of the columns of `y_proba`. By default 0, 1, ..., or the column names of a data
        frame.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows, in fits and in the comparison of models.
    mean_comparisons : float or sequence of float, optional
        Budget for the mean number of comparisons per row, at least 1. For a sequence of budgets, a
        single cross-validation returns a list of models. It takes little longer than a fit for the
        largest budget.
    max_comparisons : float, optional
        Maximum number of comparisons for any row, at least 1.
    mean_feature_cost : float or sequence of float, optional
        Budget for the mean feature cost of a row, in place of `mean_comparisons`.
    max_bytes : int or sequence of int, optional
        Budget for the size of the model on a small device, in place of `mean_comparisons`. The size
        includes code and tables of `to_c` with ``dtype="int16"``, see `CFile.n_bytes`.
    feature_costs, cost_groups : optional
        Costs of features, and groups of features that are acquired together, for
        `mean_feature_cost`; see `fit_gradient_boosting`.
    task : {"classification", "regression"}, optional
        The task. By default, text, booleans and at most 20 different integers are treated as
        classes. If any number is not an integer, the task is regression. With more than 20
        different integers, pass the task.
    cv : int
        Number of folds of the cross-validation, at least 2.
    categorical_features : sequence of str or int, optional
        Names or indices of categorical features, in addition to text and categorical columns of
        a data frame.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness for folds and for random samples of rows and features.
    n_threads : int or None
        Number of threads; -1 uses all cores. By default, the number depends on the amount of work.
        The model does not depend on it.

    Returns
    -------
    EarlyExitModel, or another model
        An `EarlyExitModel` if the model is a classifier with stages and the budget is not in bytes,
        else a `DecisionGraph` or a `GradientBoostingModel`. ``settings`` contains the
        "chosen" family and the cross-validated errors of all families ("tried"). The field
        ``curve`` of an `EarlyExitModel` (``settings["curve"]`` of other models) has one row for
        this budget and for each of several smaller budgets. A row contains the budget, and the mean
        comparisons, error and standard error of the model that would be chosen; see
        `plot.budget_curve`. For a sequence of budgets, a list of models is returned.

    Raises
    ------
    ValueError
        If a budget of comparisons is below 1 or below the cost of the smallest model; if
        `mean_feature_cost` is not positive; if only one of `mean_feature_cost` and `feature_costs`
        is passed; if budgets of two kinds are passed; if the data are invalid; or if there are more
        folds than rows of the most frequent class.
    TypeError
        If no budget is passed.

    Warns
    -----
    UserWarning
        If a class has fewer rows than there are folds.

    See Also
    --------
    early_exit : Add early exits to a fitted model.

    Notes
    -----
    The mean number of comparisons of new rows, plus its standard error, is within the budget. Exits
    are based on out-of-fold rows. A model of all rows may be less certain than the fold models, or
    need more comparisons. The out-of-fold cost is therefore multiplied by the square root of a
    ratio: the mean cost of training rows in the model of all rows, divided by their mean cost in
    the fold models. Thresholds are chosen for this product.

    The chosen model has the least log loss among all models whose error is within half a standard
    error of the smallest error. This is because the log loss varies less by chance. The standard
    error is that of the difference on the same rows. Models that cost less than the budget are
    candidates as well, which limits overfitting. The model of a smaller budget is one of them, and
    all others need a lower log loss. The cross-validated log loss therefore never increases with
    the budget.

    Each leaf of a single tree counts four additional rows with the class shares of all rows, so
    that small leaves are not overconfident.

    Probabilities are calibrated by the factor of decision values that minimizes the log loss on
    out-of-fold rows. The error of the chosen model is slightly optimistic, because it is the best
    of several.

    Weights and class probabilities are passed to the fit functions. For the comparison of models,
    rows are sampled in proportion to their weights, and classes in proportion to their
    probabilities. The budget therefore limits the weighted mean cost of rows. Models are
    bit-identical if weights are multiplied by a power of two, if equal weights or rows of weight 0
    are left out, or if class probabilities of 0 and 1 are replaced by classes. A row of weight 2
    counts as two copies in fits, but is always in one fold.

    Candidates for budgets of bytes have no early exits. They are gradient boosting with trees of
    two, four or eight leaves and, for classification, chains of trees with seven nodes and single
    trees. With two classes, AdaBoost with stumps is a candidate as well.

    Models are compared on at most 20,000 rows, or fewer with many classes. With 6,000 rows or more,
    there are candidates with large trees, which have 48 rows per leaf and at most 2,048 leaves.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> y = X[:, 0] + X[:, 1] * X[:, 2] > 0
    >>> model = pb.fit_within_budget(X[:400], y[:400], mean_comparisons=10, rng=0)
    >>> cost = pb.prediction_cost(model, X[400:]).mean()
    >>> accuracy = np.mean(pb.predict(model, X[400:]) == y[400:])
    >>> print(f"{cost:.1f} comparisons per row, accuracy {accuracy:.2f}")
    9.2 comparisons per row, accuracy 0.91
    """
    budgets, is_list = _budgets(mean_comparisons, max_comparisons, mean_feature_cost, max_bytes)
    if isinstance(X, RowSource | OneTable):
        row_options = {"y_proba": y_proba, "classes": classes, "sample_weight": sample_weight}
        X, y, sample_weight = rows_here("fit_within_budget", X, y, row_options)
    features = as_features(values_of(X), categorical_features)
    data, rows = read_data(y, y_proba, classes, sample_weight, features.n_rows, task)
    features = features if rows is None else features.take(rows)
    cv = check_integer("cv", cv, min_value=2)
    generator = as_generator(rng)
    seed = draw_seed(generator)
    paid, cost_options = _feature_costs(features, mean_feature_cost, feature_costs, cost_groups)
    n = features.n_rows
    full_fits = Fits(
        features,
        data.y,
        data.task,
        max(budgets),
        n,
        partial(child, seed),
        n_threads,
        paid,
        cost_options,
        weight=data.weight,
        is_device=max_bytes is not None,
    )
    names = [name for name in FAMILIES if any(name in _families(full_fits, b) for b in budgets)]
    tried = _try(full_fits, data, names, cv, generator)
    promises = [
        Promise(
            np.inf if mean_comparisons is None and full_fits.unit == "mean_comparisons" else budget,
            np.inf if max_comparisons is None else max_comparisons,
        )
        for budget in budgets
    ]
    shortlists = _shortlists(full_fits, tried, promises)
    models = [_model(full_fits, tried, shortlists, promise, cv) for promise in promises]
    return models if is_list else models[0]


def _feature_costs(
    features: Features,
    mean_feature_cost: object,
    feature_costs: FeatureCostOption,
    cost_groups: CostGroupOption,
) -> tuple[FeatureCosts | None, dict[str, Any]]:
    """Return the feature costs and the corresponding options of fit functions."""
    if mean_feature_cost is None:
        check_no_feature_costs(feature_costs, cost_groups)
        return None, {}
    if feature_costs is None:
        raise ValueError("feature_costs: expected feature costs with mean_feature_cost, got None")
    options = checked(CostOptions, {"feature_costs": feature_costs, "cost_groups": cost_groups})
    cost_table = read_feature_costs(options, features.names, features.n_features)
    return cost_table, {"feature_costs": feature_costs, "cost_groups": cost_groups}


def _budgets(
    mean_comparisons: object, max_comparisons: object, mean_feature_cost: object, room: object
) -> tuple[list[float], bool]:
    """Return the budgets as a list, and True if the user passed a sequence."""
    if mean_feature_cost is not None:
        if mean_comparisons is not None or max_comparisons is not None or room is not None:
            raise ValueError(
                "mean_feature_cost: expected no other budget; set mean_comparisons, "
                "max_comparisons and max_bytes to None"
            )
        return _numbers("mean_feature_cost", mean_feature_cost, 0.0)
    if room is not None:
        if mean_comparisons is not None or max_comparisons is not None:
            raise ValueError(
                "max_bytes: expected no other budget; set mean_comparisons and max_comparisons "
                "to None"
            )
        return _numbers("max_bytes", room, 1.0)
    if mean_comparisons is None and max_comparisons is None:
        raise TypeError(
            "mean_comparisons, max_comparisons, mean_feature_cost, max_bytes: expected one of "
            "them, got None"
        )
    path_limit = (
        None
        if max_comparisons is None
        else check_number("max_comparisons", max_comparisons, min_value=1.0)
    )
    if mean_comparisons is None and path_limit is not None:
        return [path_limit], False
    return _numbers("mean_comparisons", mean_comparisons, 1.0)


def _numbers(name: str, value: Any, minimum: float) -> tuple[list[float], bool]:
    """Return checked numbers as a list, and True if `value` is a sequence."""
    is_list = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
    values = list(value) if is_list else [value]
    if not values:
        raise ValueError(f"{name}: expected at least one budget, got an empty sequence")
    checked = [check_number(name, each, min_value=minimum, open_min=not minimum) for each in values]
    return checked, is_list


def _try(
    full_fits: Fits, data: Data, names: Sequence[str], folds: int, generator: np.random.Generator
) -> dict[str, Tried]:
    """Fit the models of each family to each fold and return out-of-fold scores and costs."""
    test_fold = deal_rows(data.truth, data.task, None, folds, generator)
    seed, n_votes = draw_seed(generator), 1 if data.task != "many" else data.n_labels
    max_rows = min(MOST_ROWS, MOST_NUMBERS // (LONG * n_votes)) // folds
    fold_results: dict[str, list[Any]] = {name: [] for name in names}
    tested: list[Array] = []
    for fold in range(folds):
        train, test = np.flatnonzero(test_fold != fold), np.flatnonzero(test_fold == fold)
        test, true = data.compared(_some(test, max_rows, generator))
        tested.append(true)
        rng = partial(child, (*seed, fold))
        part = data.part(train)
        fits = replace(
            full_fits,
            X=full_fits.X.take(train),
            y=part.numbered(),
            weight=part.weight,
            rng=rng,
            made={},
        )
        for name in names:
            model = fits.of(name)
            path = costly_path(full_fits, model, full_fits.X.take(test))
            path = path._replace(score=_of_all(path.score, model.classes, data.n_labels))
            fold_results[name].append((path, model, data.often(train)))
    truth = np.concatenate(tested)
    tried = {}
    for name, of_folds in fold_results.items():
        paths, models, _ = zip(*of_folds, strict=True)
        knows_all = max(model.n_votes for model in models) == (1 if data.task == "two" else n_votes)
        has_joints = all(model.n_stages > 1 for model in models)
        exits = data.task != "regression" and has_joints and knows_all and not full_fits.is_device
        path, far = joined(paths, [longest(model) for model in models])
        models_of = [of[1:] for of in of_folds]
        tried[name] = Tried(name, path, far, truth, models_of, exits, full_fits.unit)
    return tried


def _some(
    rows: NDArray[np.intp], max_rows: int, generator: np.random.Generator
) -> NDArray[np.intp]:
    """Return at most `max_rows` rows, drawn at random if there are more."""
    if len(rows) <= max_rows:
        return rows
    return np.sort(generator.choice(rows, max_rows, replace=False))


def _of_all(score: FloatArray, known: Array | None, n_labels: int) -> FloatArray:
    """Return the decision values of all classes; unknown classes get the lowest value."""
    if known is None or len(known) == n_labels:
        return score
    if score.ndim == 2:
        score = np.stack([-score, score], axis=2)
    scores = np.repeat(score.min(axis=2, keepdims=True), n_labels, axis=2)
    scores[:, :, known] = score
    return scores


def _shortlists(
    full_fits: Fits, tried: Mapping[str, Tried], promises: Sequence[Promise]
) -> dict[Promise, Shortlist]:
    """Return the candidates for each budget, and for the smaller budgets of its curve.

    The model for a smaller budget is a candidate as well, and the others must have less log loss.
    A larger budget therefore never has a larger log loss.
    """
    parts = {part for promise in promises for part in _parts(full_fits, promise)}
    shortlists: dict[Promise, Shortlist] = {}
    before = None
    for promise in sorted(parts, key=min):
        # For a budget that was not asked for, there may be none of its own families.
        names = tried if promise not in promises else _families(full_fits, min(promise))
        every = [option for name in names for option in options(tried[name], promise)]
        candidates = every
        if before is not None:
            candidates = [before, *(of for of in every if of.log_loss < before.log_loss)]
        shortlists[promise] = Shortlist(candidates, every)
        before = best(candidates)
    return shortlists


def _families(full_fits: Fits, budget: float) -> list[str]:
    """Return the families that are tried for a budget."""
    return families(full_fits.task, budget, full_fits.n_rows, full_fits.unit)


def _parts(full_fits: Fits, promise: Promise) -> list[Promise]:
    """Return the budgets of the curve, in increasing order. The last is the whole budget."""
    budget = min(promise)
    parts = BUDGETS if full_fits.unit == "mean_comparisons" else PARTS * budget
    return [*(promise.at_most(float(part)) for part in parts if part < budget), promise]


def _model(
    full_fits: Fits,
    tried: Mapping[str, Tried],
    shortlists: Mapping[Promise, Shortlist],
    promise: Promise,
    cv: int,
) -> Model:
    """Return the best candidate for a budget, fitted to all rows."""
    budget, unit = min(promise), full_fits.unit
    for chosen in shortlists[promise].in_turn():
        if (model := _fitted(full_fits, tried[chosen.family], chosen)) is not None:
            break
    else:
        names = _families(full_fits, budget)
        min_cost = min(float(upper(tried[name].path.cost)[1]) for name in names)
        raise ValueError(
            f"{unit}: expected at least {min_cost:.4g}, the mean cost of the smallest model plus "
            f"its standard error, got {budget:.4g}"
        )
    *before, _ = _parts(full_fits, promise)
    on_the_way = [(min(part), option) for part in before if (option := shortlists[part].chosen)]
    curve = [
        (part, option.cost, option.error, option.standard_error)
        for part, option in [*on_the_way, (budget, chosen)]
    ]
    errors: dict[str, float] = {}
    for option in shortlists[promise].every:
        errors[option.family] = min(option.error, errors.get(option.family, np.inf))
    settings = {
        **model.settings,
        "builder": "fit_within_budget",
        unit: _plain(promise.mean_comparisons),
        "max_comparisons": _plain(promise.max_comparisons),
        "cv": cv,
        **checked(CostOptions, full_fits.cost_options),
        "tried": errors,
        "chosen": chosen.family,
    }
    if isinstance(model, EarlyExitModel):
        return replace(model, budget=budget, settings=settings, curve=np.array(curve))
    # Only an EarlyExitModel has a field for the curve.
    return replace(model, settings={**settings, "curve": curve})


def _fitted(
    full_fits: Fits, tried: Tried, chosen: ModelChoice
) -> EarlyExitModel | FamilyModel | None:
    """Return a candidate fitted to all rows, or None if it exceeds its limits."""
    if full_fits.is_device:
        return fitted_in_bytes(full_fits, chosen.family, chosen.joints, min(chosen.promise))
    return fitted_within(full_fits, tried, chosen)


def _plain(number: float) -> float | None:
    """Return a number, or None if it is infinite."""
    return number if np.isfinite(number) else None
