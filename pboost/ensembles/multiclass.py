"""Multiclass models: one-vs-rest and SAMME."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias, Unpack

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.columns.columns import BinnedColumns, SortedColumns
from pboost.data.read.check_xy import (
    AbsentClassError,
    as_weights,
    check_has_rows,
    label_array,
)
from pboost.data.read.convert import as_rows
from pboost.data.row_source import LabelOptions, rows_here
from pboost.data.targets import (
    CLASSIFICATION,
    Classes,
    SoftLabels,
    classes_of_rows,
    fitted,
    labels_of_rows,
    soft_validation,
    with_task,
)
from pboost.data.training_data import column_search, rows_to_predict
from pboost.ensembles.shared_rows import holds_out, read_once, shared_columns
from pboost.models.ensembles import (
    REST_OR_CLASS,
    OneVsRest,
    WeightedVote,
    answers,
    temperature_of_votes,
)
from pboost.models.gradient_boosting import GradientBoostingModel
from pboost.trees.cart import fit_cart
from pboost.values import (
    NO_VOTE,
    Array,
    FloatArray,
    bar_of,
    check_integer,
    check_number,
    half_log_odds,
    hint_missing_call,
    shown,
)
from pboost.values.options import BarOptions, builder, check_fit, unwrapped

Fit: TypeAlias = Callable[..., Any]
#: Default base learner of SAMME.
DEFAULT_BASE = partial(fit_cart, max_depth=3)
#: Lower limit of row weights, relative to the largest, so that every class keeps some weight.
LEAST_WEIGHT = 1e-300
PERFECT = "a base learner without errors determines the prediction"
NO_BETTER = "a base learner was no better than guessing and is left out"


@builder
def fit_one_vs_rest(
    fit: Fit,
    X: object,
    y: ArrayLike | None = None,
    *,
    y_proba: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    **options: Any,
) -> OneVsRest:
    """Fit one binary model per class, which separates this class from all others.

    Parameters
    ----------
    fit : callable
        A pboost function that fits a binary model, such as ``pb.fit_adaboost`` or
        ``pb.fit_cart``, or a ``functools.partial`` of one. It is called as ``fit(X, y == label,
        **options)``.
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features, or other rows that `fit` accepts. If weak classifiers are stumps and there are no
        missing values and no categorical features, X is sorted or binned once for all models.
    y : array_like of shape (n,), optional
        Class labels with at least two distinct values.
    y_proba : array_like of shape (n, J) or (n,), or data frame, optional
        Class probabilities of each row, in place of `y`. `fit` receives the probability of one
        class and the probability of all other classes.
    classes : array_like of shape (J,), optional
        The classes of the columns of `y_proba`. By default 0, 1, ..., or the column names of a data
        frame.
    **options : object
        Options of `fit`. In ``validation=(X, y)``, y contains the same classes as the training y.

    Returns
    -------
    OneVsRest
        `decision_function` returns the decision values (n, J) of the models; `predict_proba`
        returns the normalized probabilities of the models. The class with the largest probability
        is predicted. In case of a tie, the first class is predicted. `prediction_cost` is the sum
        over the models.

    Raises
    ------
    ValueError, TypeError
        If `y` has fewer than two classes, if a class has no weight, if `fit` rejects the data or an
        option, or if it does not return a binary model.

    Notes
    -----
    If the probabilities of all models underflow to 0, the class with the largest decision value
    gets probability 1. The models are fitted independently. Their probabilities do not sum to 1 and
    are therefore normalized. The normalized probabilities may be uncalibrated even if each model is
    calibrated.

    With two classes, two models are fitted, which takes twice the time of `fit` alone.

    References
    ----------
    .. [1] R. Rifkin and A. Klautau, "In defense of one-vs-all classification", J. Mach. Learn. Res.
       5 (2004).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> y = ["low", "low", "middle", "middle", "top", "top"]
    >>> model = pb.fit_one_vs_rest(pb.fit_adaboost, X, y, n_estimators=5)
    >>> pb.predict(model, [[0.5], [2.5], [9.0]]).tolist()
    ['low', 'middle', 'top']
    >>> pb.predict_proba(model, X).shape
    (6, 3)
    """
    passed_weights = options.get("sample_weight")
    of_rows = {"y_proba": y_proba, "classes": classes, "sample_weight": passed_weights}
    X, y, weights = rows_here("fit_one_vs_rest", X, y, of_rows)
    options = options if weights is passed_weights else {**options, "sample_weight": weights}
    is_soft = isinstance(y, SoftLabels)
    check_fit(fit_one_vs_rest, "fit", fit, options, needs=("y_proba",) if is_soft else ())
    n = _count_rows(X)
    class_data = _classes(y, options.get("sample_weight"), n)
    _class_weights(class_data)
    models = []
    X, options = read_once(fit, X, options)
    columns = _shared_columns(partial(fit, **options), X, n)
    for code in range(len(class_data.classes)):
        targets = class_data.label == code
        if isinstance(y, SoftLabels):
            targets = labels_of_rows(None, y.share[:, code], REST_OR_CLASS)
        model = fitted(fit, columns, targets, _with_validation(options, class_data.classes, code))
        if not np.array_equal(getattr(model, "classes", ()), REST_OR_CLASS):
            raise TypeError(f"fit: expected a function that fits binary models, got {model!r}")
        _check_probabilities(model)
        models.append(model)
    settings = {"builder": "fit_one_vs_rest", "fit": _name_of(fit), **models[0].settings}
    settings["builder"] = "fit_one_vs_rest"
    return OneVsRest(tuple(models), class_data.classes, settings)


class VoteOptions(LabelOptions, BarOptions, total=False):
    """The options that `fit_samme` shares with other fit functions."""


@builder
def fit_samme(
    X: object,
    y: ArrayLike | None = None,
    *,
    base_learner: object = None,
    n_estimators: int = 200,
    learning_rate: float = 1.0,
    **options: Unpack[VoteOptions],
) -> WeightedVote:
    """Fit SAMME, AdaBoost for classifiers with any number of classes.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame or SortedColumns
        Features, or other rows that `base_learner` accepts.
    y : array_like of shape (n,), optional
        Class labels with at least two distinct values.
    base_learner : callable or object, optional
        A function or an estimator. By default ``functools.partial(pb.fit_cart, max_depth=3)``. A
        function ``base_learner(X, y, sample_weight=w)`` returns a pboost model or an object with
        ``predict``; for example ``functools.partial(pb.fit_one_vs_rest, pb.fit_adaboost,
        n_estimators=3)``. An estimator with ``fit(X, y, sample_weight=w)`` and ``predict(X)`` is
        copied in each round. The mean of the weights is 1. If the base learner draws random
        numbers, pass a base learner with a fixed seed.
    n_estimators : int
        Maximum number of base learners.
    learning_rate : float
        Factor in (0, 1] by which each vote is multiplied. Row weights then also change less.
    callback : callable, optional
        Called as ``callback(round, error)`` after each round that adds a base learner, with the
        number of the round, starting at 1, and its weighted error. If it returns True, fitting
        stops.
    **options
        Options of `VoteOptions`.

    Returns
    -------
    WeightedVote
        `decision_function` returns the sums of the votes (n, J), `staged_decision_function` the
        sums after each base learner, and `predict_proba` probabilities, see Notes. The class with
        the largest probability is predicted. In case of a tie, the first class is predicted.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is invalid, or a base learner predicts values that are not in y.

    Notes
    -----
    A base learner with weighted error e < 1 - 1/J gets the vote ``ln((1 - e)/e) + ln(J - 1)``. The
    weights of the rows that it misclassifies are multiplied by the exponential of the vote. With
    two classes, this is discrete AdaBoost with doubled votes.

    Boosting stops at a base learner without errors, whose vote would be infinite. It gets the vote
    36.04 + ln(J - 1), which corresponds to an error of 2**-52, plus the sum of all previous votes,
    so that it determines the prediction. Boosting also stops at a base learner with an error of 1 -
    1/J or more, which is no better than guessing. This base learner is left out. If no base learner
    is left, the model predicts the class frequencies.

    Probabilities are the softmax of the sums of votes divided by ``model.temperature``, because
    the sum of many votes is overconfident. With a single base learner with e > 0, the temperature
    is 1; the predicted class has the probability 1 - e, and every other class e/(J - 1). Otherwise
    it is ``1 + J/(J - 1) L / (4 + ln(J - 1))``, where exp(-L) is the exponential loss of the
    training rows: the product of ``(1 - e) exp(-a (J - 1)/J) + e exp(a/J)`` over base learners with
    vote a. With the temperature 1, the probabilities equal the softmax of f/(J - 1) in [1]_.
    Predictions do not depend on the temperature.

    References
    ----------
    .. [1] J. Zhu, H. Zou, S. Rosset and T. Hastie, "Multi-class AdaBoost", Statistics and Its
       Interface 2 (2009), algorithm 2 and section 2.

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> y = np.array([0, 0, 1, 2, 2, 2])
    >>> stumps = partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=1)
    >>> model = pb.fit_samme(X, y, base_learner=stumps, n_estimators=10)
    >>> pb.predict(model, X).tolist()
    [0, 0, 1, 2, 2, 2]
    """
    n_estimators = check_integer("n_estimators", n_estimators, min_value=1)
    rate = check_number("learning_rate", learning_rate, min_value=0.0, max_value=1.0, open_min=True)
    X, y, sample_weight = rows_here("fit_samme", X, y, options)
    n = _count_rows(X)
    class_data = _classes(y, sample_weight, n)
    share = _class_weights(class_data)
    names, weights, codes, entries = (
        class_data.classes,
        class_data.weights,
        class_data.label,
        class_data.entries,
    )
    base_learner = DEFAULT_BASE if base_learner is None else base_learner
    fit = _as_fit(base_learner, is_soft=entries is not None)
    w = np.ones(len(codes)) if weights is None else weights / weights.max()
    floor = np.where(w > 0, LEAST_WEIGHT, 0.0)
    models: list[Any] = []
    alpha: list[float] = []
    error: list[float] = []
    stop_reason = "all rounds are done"
    X, _ = read_once(fit, X, {})
    is_sorted = isinstance(X, SortedColumns | BinnedColumns)
    rows = rows_to_predict(X).source if is_sorted else X
    columns = _shared_columns(fit, X, n, weights_change=True)
    with bar_of(options)(n_estimators, "rounds") as on_step:
        for round_ in range(n_estimators):
            of_rows, answered = _of_rows(y, class_data, w)
            member = fitted(fit, columns, answered, {"sample_weight": of_rows * (n / w.sum())})
            answer = answers(member, rows, n, names)
            wrong = (answer if entries is None else answer[entries.rows]) != codes
            error.append(float(w[wrong].sum() / w.sum()))
            vote, is_last = _samme_vote(error[-1], len(names), rate, sum(alpha))
            if vote <= NO_VOTE:
                stop_reason = NO_BETTER
                break
            models.append(member)
            alpha.append(vote)
            if (on_step is not None and on_step(round_ + 1, error[-1])) or is_last:
                stop_reason = PERFECT if is_last else "stopped by the callback"
                break
            w = np.where(wrong, w, w * math.exp(-vote))
            w = np.maximum(w / w.max(), floor)
    bias = np.zeros(len(names)) if models else np.log(share)
    settings = {
        "builder": "fit_samme",
        "base_learner": _name_of(base_learner),
        "n_estimators": n_estimators,
        "learning_rate": rate,
    }
    temperature = temperature_of_votes(np.array(alpha), np.array(error)[: len(alpha)], len(names))
    return WeightedVote(
        tuple(models),
        np.array(alpha),
        names,
        bias,
        settings,
        np.array(error),
        stop_reason,
        temperature,
    )


def _classes(y: object, sample_weight: ArrayLike | None, n: int) -> Classes:
    """Return the classes and weights of n rows; every class must be present."""
    if isinstance(y, SoftLabels):
        y.check_rows(n)
        y.check_present()
    return classes_of_rows(y, sample_weight, n)


def _of_rows(y: Any, class_data: Classes, w: FloatArray) -> tuple[FloatArray, Any]:
    """Return row weights, and the class of each row or, with `y_proba`, class probabilities."""
    if class_data.entries is None:
        return w, class_data.classes[class_data.label]
    rows, share = class_data.entries.rows, y.share.copy()
    of_rows = np.bincount(rows, w).astype(np.float64)
    known = of_rows[rows] > 0
    share[rows[known], class_data.label[known]] = w[known] / of_rows[rows[known]]
    return of_rows, SoftLabels(class_data.classes, share)


def _check_probabilities(model: object) -> None:
    """Raise ValueError for a loss without probabilities, which one-vs-rest requires."""
    if isinstance(model, GradientBoostingModel):
        try:
            model.loss.probability(np.zeros(1))
        except NotImplementedError as error:
            raise ValueError(f"fit: {error}; one-vs-rest requires probabilities") from None


def _samme_vote(error: float, n_classes: int, rate: float, before: float) -> tuple[float, bool]:
    """Return the vote of a base learner with this weighted error, and whether the error is 0."""
    vote = 2 * half_log_odds(1 - error, error, 0.0) + math.log(n_classes - 1)
    if error == 0.0:
        return before + rate * vote, True
    return rate * vote, False


def _as_fit(base: Any, is_soft: bool) -> Fit:
    """Return the function that fits a base learner."""
    is_estimator = all(callable(getattr(base, name, None)) for name in ("fit", "predict"))
    if is_estimator and isinstance(base, type):
        raise TypeError(
            f"base_learner: expected an estimator, got {shown(base)}{hint_missing_call(base)}"
        )
    if is_estimator and is_soft:
        raise TypeError(
            f"base_learner: expected a function with the parameter y_proba, got {shown(base)}"
        )
    if is_estimator:

        def fit(X: Any, y: Array, sample_weight: FloatArray) -> Any:
            estimator = copy.deepcopy(base)
            estimator.fit(X, y, sample_weight=sample_weight)
            return estimator

        return fit
    if not callable(base):
        raise TypeError(
            "base_learner: expected a function (X, y, sample_weight) or an estimator with fit() "
            f"and predict(), got {shown(base)}"
        )
    needs = ("sample_weight", "y_proba") if is_soft else ("sample_weight",)
    return with_task(check_fit(fit_samme, "base_learner", base, {}, needs=needs), CLASSIFICATION)


def _class_weights(class_data: Classes) -> FloatArray:
    """Return the share of each class in the weights; raise an error for a class without weight."""
    classes, weights = class_data.classes, class_data.weights
    scaled = None if weights is None else weights / weights.max()
    mass = np.bincount(class_data.label, weights=scaled, minlength=len(classes)).astype(np.float64)
    if not mass.all():
        raise AbsentClassError(
            "sample_weight: expected every class to have positive weight, got none for "
            f"{classes[int(np.argmin(mass))].item()!r}"
        )
    return mass / mass.sum()


def _count_rows(X: object) -> int:
    n: int = X.n_rows if isinstance(X, SortedColumns | BinnedColumns) else as_rows(X).n_rows
    check_has_rows(n)
    return n


def _shared_columns(fit: Fit, X: object, n: int, *, weights_change: bool = False) -> Any:
    """Return X, sorted or binned if all fits can share the result.

    The bin edges depend on the weights of the rows. If the weights change between fits, or if rows
    are held out, X is not binned here.
    """
    fit_options: dict[str, Any] = {}
    while isinstance(fit, partial):
        fit_options = {**fit.keywords, **fit_options}  # outer partials take precedence
        fit = fit.args[0] if fit.func is fit_one_vs_rest and fit.args else fit.func
    return shared_columns(
        column_search(fit, fit_options),
        X,
        fit_options,
        shares_bins=not (weights_change or holds_out(fit_options)),
        weights=as_weights(fit_options.get("sample_weight"), n),
    )


def _with_validation(options: Mapping[str, object], classes: Array, code: int) -> dict[str, Any]:
    """Return the options for one class, with the binary validation target of this class."""
    validation = options.get("validation")
    if not isinstance(validation, tuple | list) or len(validation) < 2:
        return dict(options)
    X, y, *rest = validation
    soft = soft_validation(y, classes)
    if soft is None:
        targets = label_array(y) == classes[code]
    else:
        targets = np.column_stack([1.0 - soft.share[:, code], soft.share[:, code]])
    return {**options, "validation": (X, targets, *rest)}


def _name_of(fit: object) -> str:
    function, _ = unwrapped(fit)
    return getattr(function, "__qualname__", type(function).__qualname__)
