"""Calibration of predicted probabilities on rows that were not used for training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.read.check_xy import as_classes, as_weights, check_has_rows
from pboost.data.row_fingerprint import digest
from pboost.data.targets import CLASSIFICATION, fitted, weight_of_copy, with_task
from pboost.data.training_data import rows_to_predict
from pboost.inspection.cross_validation import deal_rows, fold_fits
from pboost.inspection.error_bounds import calibration_rows
from pboost.models.base import Model, check_model
from pboost.models.calibrated import CalibratedModel, as_values
from pboost.models.evaluate.match_input import table_for
from pboost.models.shares import two_probabilities
from pboost.values import (
    Array,
    FloatArray,
    Seed,
    TableLike,
    as_generator,
    check_choice,
    check_integer,
    shown,
)
from pboost.values.options import check_fit, takes_rng

CalibrationMethod: TypeAlias = Literal["platt", "isotonic"]
METHODS: tuple[CalibrationMethod, ...] = get_args(CalibrationMethod)
#: Newton's method takes at most `STEPS` steps, halves each step at most `HALVINGS` times, and stops
#: if the relative decrease of the loss is below `SMALLEST`.
STEPS, SMALLEST, HALVINGS = 100, 1e-15, 50
#: This number is added to the diagonal of the Hessian, because the Hessian can be singular.
RIDGE = 1e-14


def calibrate(
    model: Model | Callable[..., Model],
    X_cal: TableLike,
    y_cal: ArrayLike,
    *,
    method: CalibrationMethod = "platt",
    cv: int | None = None,
    rng: Seed = None,
    sample_weight: ArrayLike | None = None,
) -> CalibratedModel:
    """Calibrate the predicted probabilities of a classifier on new rows.

    With more than two classes, each class is calibrated against the rest, and the probabilities
    are divided by their sum.

    Parameters
    ----------
    model : DecisionGraph, RandomForest, EarlyExitModel or another classifier; callable with `cv`
        A fitted model. If it is a `CalibratedModel`, the model inside it is calibrated again. With
        `cv`, a function ``fit(X, y)`` that returns a classifier, such as
        ``partial(pb.fit_random_forest, n_estimators=100)``.
    X_cal : array_like of shape (n, d), or data frame
        Rows that the model was not fitted to; a model is overconfident on its training rows. With
        `cv`, the training rows.
    y_cal : array_like of shape (n,)
        Class labels of these rows. Every class of the model needs at least one row.
    method : {"platt", "isotonic"}
        "platt" fits a logistic function of the decision value. It has two parameters and suits
        models that are overconfident, or underconfident, for all rows. "isotonic" fits a
        nondecreasing function, which needs about a thousand rows or more.
    cv : int, optional
        Number of folds. The calibrator is fitted to out-of-fold decision values, and is then
        combined with a model that is fitted to all rows.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState, optional
        Source of randomness, which assigns rows to stratified folds with `cv`. If `model` has an
        option `rng` that is not set, each fit receives a generator derived from this one.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows; a row of weight k counts as k copies of the row. With `cv`, the
        weights are also passed to the fits.

    Returns
    -------
    CalibratedModel
        A model that returns calibrated probabilities and predicts the most probable class. Its
        predictions can differ from ``model.model``.

    Raises
    ------
    ValueError
        If there are no rows; if a class of the model has no row of positive weight; if `y_cal`
        contains a class that the model does not have; if a class has too few rows for `cv`; or if
        `rng` is passed without `cv`.
    TypeError
        If `cv` is passed with a fitted model, or a function without `cv`.
    NotImplementedError
        If the model is a regression model.

    Warns
    -----
    UserWarning
        If many of the rows are also training rows of the model, according to ``model.seen``.

    See Also
    --------
    risk_threshold, prediction_sets : Statistical bounds that hold on new rows.

    Notes
    -----
    Platt's targets are ``(N+ + 1) / (N+ + 2)`` for the N+ rows of the class and ``1 / (N- + 2)``
    for the other N- rows, so that no probability is 0 or 1. To count rows, weights are divided by
    their greatest common divisor or, if there is none, by their mean. The scale of the weights
    therefore has no effect. The likelihood is maximized by Newton's method with step halving [3]_.

    The isotonic function minimizes the squared error. It is linear between the decision values of
    the rows and constant outside their range. Its probabilities can be 0 and 1; a row with
    probability 0 for every class gets equal probabilities.

    "platt" with a positive slope keeps the order of the rows, and therefore the AUC. "isotonic"
    introduces ties.

    With `cv`, the result is the same as with scikit-learn's
    ``CalibratedClassifierCV(ensemble=False)``, except that scikit-learn does not scale the weights
    in Platt's targets. To get the same result, pass weights with mean 1.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines and comparisons to
       regularized likelihood methods", Advances in Large Margin Classifiers (1999).
    .. [2] B. Zadrozny and C. Elkan, "Transforming classifier scores into accurate multiclass
       probability estimates", KDD (2002): isotonic regression and the multiclass case.
    .. [3] H.-T. Lin, C.-J. Lin and R. C. Weng, "A note on Platt's probabilistic outputs for support
       vector machines", Machine Learning 68 (2007).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 3))
    >>> y = X[:, 0] + rng.normal(size=3000) > 0
    >>> model = pb.fit_adaboost(X[:500], y[:500], n_estimators=300)
    >>> calibrated = pb.calibrate(model, X[500:1000], y[500:1000])
    >>> for classifier in model, calibrated:
    ...     proba = pb.predict_proba(classifier, X[1000:])
    ...     print(round(float(-np.log(np.where(y[1000:], proba[:, 1], proba[:, 0])).mean()), 2))
    0.67
    0.57
    """
    check_choice("method", method, METHODS)
    if cv is not None:
        return _out_of_fold(model, X_cal, y_cal, method, cv, as_generator(rng), sample_weight)
    if callable(model):
        raise TypeError(
            "model: expected a fitted model, got a function; pass cv=5 to calibrate a function "
            "fit(X, y) by cross-validation"
        )
    if rng is not None:
        raise ValueError(
            f"rng: expected None without cv, got {rng!r}; random numbers are only used with cv"
        )
    check_model(model)
    of: Any = model.model if isinstance(model, CalibratedModel) else model
    rows = calibration_rows(of, X_cal, y_cal, "the probability", "found")
    weight = as_weights(sample_weight, rows.n_rows)
    values = as_values(of.values_at_end(rows.X), _n_maps(len(of.classes)))
    calibrated = _mapped(of, method, values, rows.code, weight)
    if rows.hashed is None:
        return calibrated
    counts = slice(None) if weight is None else weight > 0
    return replace(calibrated, seen=digest(rows.hashed[counts]))


def _n_maps(n_labels: int) -> int:
    """Return the number of calibrators: 1 for a binary model, else one per class."""
    return 1 if n_labels == 2 else n_labels


def _out_of_fold(
    fit: Model | Callable[..., Model],
    X: TableLike,
    y: ArrayLike,
    method: str,
    cv: int,
    generator: np.random.Generator,
    sample_weight: ArrayLike | None,
) -> CalibratedModel:
    """Fit a model to all rows and calibrate it on out-of-fold decision values."""
    if not callable(fit):
        raise TypeError(
            "model: expected a function fit(X, y) with cv, got a fitted model; to calibrate it on "
            "new rows, leave out cv"
        )
    check_fit(calibrate, "model", fit, {}, [] if sample_weight is None else ["sample_weight"])
    fit = with_task(fit, CLASSIFICATION)
    cv = check_integer("cv", cv, min_value=2)
    rows = rows_to_predict(X)
    check_has_rows(rows.n_rows)
    weight = as_weights(sample_weight, rows.n_rows)
    classes, code = as_classes(y, rows.n_rows)
    truth, values = classes[code], np.empty((rows.n_rows, _n_maps(len(classes))))
    test_fold = deal_rows(truth, CLASSIFICATION, weight, cv, generator)
    for model, test, test_rows, _ in fold_fits(
        fit, X, rows, truth, weight, test_fold, cv, generator
    ):
        _check_labels(model, classes)
        values[test] = as_values(model.values_at_end(table_for(model, test_rows)), values.shape[1])
    options: dict[str, Any] = {} if weight is None else {"sample_weight": weight}
    if takes_rng(fit):
        options["rng"] = generator
    full_model = fitted(fit, X, truth, options)
    _check_labels(full_model, classes)
    return _mapped(full_model, method, values, np.asarray(code), weight, {"cv": cv})


def _check_labels(model: Model, classes: Array) -> None:
    """Raise an error unless the fitted model is a classifier with all classes."""
    check_model(model)
    if model.classes is None:
        raise NotImplementedError("model: expected a function that fits a classifier")
    absent = np.setdiff1d(classes, model.classes)
    if len(absent):
        raise ValueError(
            f"y_cal: expected rows of every class in each training part, got none of class "
            f"{shown(absent[0].item())}; add rows of this class or reduce cv"
        )


def _mapped(
    model: Model,
    method: str,
    values: FloatArray,
    code: NDArray[np.intp],
    weight: FloatArray | None,
    more: dict[str, Any] | None = None,
) -> CalibratedModel:
    """Return a model with calibrators fitted to decision values (n, K) and class codes."""
    weight = np.ones(len(code)) if weight is None else weight
    classes = np.asarray(model.classes)
    mass = np.bincount(code, weights=weight, minlength=len(classes))
    if not mass.all():
        absent = shown(classes[mass == 0][0].item())
        raise ValueError(
            f"y_cal: expected rows of every class of the model with weights > 0, got none of "
            f"class {absent}"
        )
    counts = weight > 0
    values, code, weight = values[counts], code[counts], weight[counts]
    settings = {"builder": "calibrate", "method": method, "rows": len(code), **(more or {})}
    of = [1] if len(classes) == 2 else range(len(classes))
    if method == "platt":
        weight = weight / weight_of_copy(weight)  # Platt's targets count rows
    maps = [(values[:, k], code == label, weight) for k, label in enumerate(of)]
    if method == "platt":
        slope, intercept = np.array([platt(*each) for each in maps]).T
        return CalibratedModel(model, settings, slope, intercept)
    steps = [isotonic(*each) for each in maps]
    start = np.cumsum([0, *(len(knot) for knot, _ in steps)])
    knot, share = (np.concatenate(parts) for parts in zip(*steps, strict=True))
    return CalibratedModel(model, settings, None, None, knot, share, start)


def platt(value: FloatArray, is_one: NDArray[np.bool_], weight: FloatArray) -> tuple[float, float]:
    """Return the slope and the intercept of Platt's logistic function."""
    ones, others = weight[is_one].sum(), weight[~is_one].sum()
    target = np.where(is_one, (ones + 1) / (ones + 2), 1 / (others + 2))
    weight = weight / weight.sum()
    largest = float(np.abs(value).max()) or 1.0
    value = value / largest  # the squares of large values would overflow
    centre = float(weight @ value)
    around = value - centre
    spread = float(np.sqrt(weight @ np.square(around)))
    if value.min() == value.max() or not spread > 0:
        share = float(weight @ target)
        return 0.0, float(np.log(share) - np.log1p(-share))
    slope, intercept = _newton(around / spread, target, weight)
    slope /= spread
    return slope / largest, intercept - slope * centre


def _newton(z: FloatArray, target: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Return the slope and the intercept that minimize the cross-entropy for scaled values."""

    def loss_at(line: FloatArray) -> float:
        odds = line[0] * z + line[1]
        return float(weight @ (np.logaddexp(0.0, odds) - target * odds))

    share = float(weight @ target)
    line = np.array([0.0, np.log(share) - np.log1p(-share)])
    loss = loss_at(line)
    for _ in range(STEPS):
        chance = two_probabilities((line[0] * z + line[1]) / 2)[:, 1]
        off, bend = weight * (chance - target), weight * chance * (1 - chance)
        slant = float(bend @ z)
        hessian = np.array([[bend @ np.square(z) + RIDGE, slant], [slant, bend.sum() + RIDGE]])
        step = np.linalg.solve(hessian, np.array([off @ z, off.sum()]))
        for _ in range(HALVINGS):
            new_loss = loss_at(line - step)
            if new_loss < loss:
                break
            step /= 2
        else:
            break  # no step reduces the loss, apart from rounding errors
        gained, line, loss = loss - new_loss, line - step, new_loss
        if gained <= SMALLEST * loss:
            break
    return float(line[0]), float(line[1])


def isotonic(
    value: FloatArray, is_one: NDArray[np.bool_], weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the knots of the weighted isotonic regression and the probabilities at the knots.

    Rows with equal values are pooled. Only the first and last knot of each constant segment are
    kept.
    """
    from scipy.optimize import isotonic_regression

    knot, place = np.unique(value, return_inverse=True)
    mass = np.bincount(place, weights=weight)
    share = np.bincount(place, weights=weight * is_one) / mass
    share = np.clip(np.asarray(isotonic_regression(share, weights=mass).x), 0.0, 1.0)
    is_new = share[1:] != share[:-1]
    kept = np.append(True, is_new) | np.append(is_new, True)
    return knot[kept], share[kept]
