"""Margins of predictions, margin curves and bounds on the margin error.

Margins have one of two scales. "half" is tanh(y H / 2), the scale that Henry, Nock and Nielsen
use. "probability" is tanh(y H): with H as half the log odds, this is y times the
difference of the class probabilities of `predict_proba` at the temperature 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.read.check_xy import as_labels, as_numbers, as_weights, check_has_rows
from pboost.data.targets import CLASSIFICATION, SoftLabels, labels_of_rows, with_task
from pboost.data.training_data import rows_to_predict
from pboost.inspection.cross_validation import deal_rows, fold_fits
from pboost.inspection.plots import axes_or_new
from pboost.models.base import Model, TwoClassModel, decision_function
from pboost.models.evaluate.certificates import certificate, truth_for
from pboost.models.evaluate.match_input import as_two_class, classes_of_labels, leads_of
from pboost.models.graph import DecisionGraph
from pboost.models.graph_arrays import largest_score
from pboost.models.linear import FunctionEnsemble, LinearModel
from pboost.values import (
    FloatArray,
    Seed,
    TableLike,
    as_array,
    as_generator,
    check_choice,
    check_integer,
    first_false,
    shown,
)
from pboost.values.options import builder, check_fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Factor of H inside tanh, for each scale.
Scale: TypeAlias = Literal["half", "probability"]
SCALES: dict[str, float] = dict(zip(get_args(Scale), (0.5, 1.0), strict=True))


def margins(model: Model, X: TableLike, y: ArrayLike, *, scale: Scale = "half") -> FloatArray:
    """Return the margin of each row, ``tanh(y H / 2)``.

    In multiclass models, ``y H`` is half of the difference between the decision value of the true
    class and the largest decision value of the other classes.

    Parameters
    ----------
    model : DecisionGraph, LinearModel or FunctionEnsemble
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    y : array_like of shape (n,)
        Classes, with values in ``model.classes``.
    scale : {"half", "probability"}
        "half" returns ``tanh(y H / 2)``. "probability" returns ``tanh(y H)``, which is
        ``y (2 p - 1)`` if p is the probability of the second class at the temperature 1.

    Returns
    -------
    ndarray of float64, shape (n,)
        Values in [-1, 1]; positive for correct predictions.

    Raises
    ------
    ValueError
        If `y` contains a class that the model does not have.

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting à la carte with an application to
       boosting oblique decision trees", IJCAI (2007), equation 7.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 1, 1]
    >>> model = pb.fit_boosted_tree(X, y, max_nodes=1, smoothing=0.1)
    >>> pb.inspection.margins(model, X, y).round(2).tolist()
    [0.3, 0.49, 0.49, 0.49]
    """
    model = as_two_class(model)
    score = decision_function(model, X)
    return _of_labels(score, classes_of_labels(model, y, len(score)), None, scale)[0]


def margin_error(
    model: Model,
    X: TableLike,
    y: ArrayLike | None,
    theta: ArrayLike,
    *,
    scale: Scale = "half",
    y_proba: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Return the share of rows with a margin of at most theta.

    Parameters
    ----------
    model : DecisionGraph, LinearModel or FunctionEnsemble
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    y : array_like of shape (n,), or None
        Classes, with values in ``model.classes``; None with `y_proba`.
    theta : float or array_like
        One or more thresholds on the margin.
    scale : {"half", "probability"}
        See `margins`.
    y_proba : array_like of shape (n, 2) or (n,), or data frame, optional
        Class probabilities in place of `y`, see `certificate`. Each row then has two margins, each
        weighted by the row weight times the class probability.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    float, or ndarray of float64 of the shape of `theta`
        At ``theta=0`` it is the error on these rows, if decision values of 0 count as errors.

    Raises
    ------
    ValueError
        If `theta` is NaN, X has no rows, or `y` contains a class that the model does not have.

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting à la carte with an application to
       boosting oblique decision trees", IJCAI (2007), equation 8.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 1, 1]
    >>> model = pb.fit_boosted_tree(X, y, max_nodes=1, smoothing=0.1)
    >>> pb.inspection.margin_error(model, X, y, 0.4)
    0.25
    >>> pb.inspection.margin_error(model, X, y, [0.0, 0.9]).tolist()
    [0.0, 1.0]
    """
    at = as_thetas(theta)
    model = as_two_class(model)
    truth = truth_for(model, y, y_proba)
    score = decision_function(model, X)
    n = len(score)
    if isinstance(truth, SoftLabels):
        truth.check_rows(n)
    else:
        truth = classes_of_labels(model, truth, n)
    check_has_rows(n)
    share = share_below(*_of_labels(score, truth, as_weights(sample_weight, n), scale), at)
    return share if share.ndim else float(share)


def margin_bound(
    model: Model,
    X: TableLike,
    y: ArrayLike | None,
    theta: ArrayLike,
    *,
    scale: Scale = "half",
    y_proba: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Return an upper bound on the margin error (Theorem 1 of [1]_).

    Parameters
    ----------
    model : DecisionGraph, LinearModel or FunctionEnsemble
        A fitted model. Its certificate must apply to its predictions, so the observation model of
        training must be exact.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    y : array_like of shape (n,), or None
        Classes, with values in ``model.classes``; None with `y_proba`.
    theta : float or array_like
        One or more thresholds on the margin, in (-1, 1).
    scale : {"half", "probability"}
        See `margins`.
    y_proba : array_like of shape (n, 2) or (n,), or data frame, optional
        Class probabilities in place of `y`, see `certificate`. Each row then has two margins, each
        weighted by the row weight times the class probability.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    float, or ndarray of float64 of the shape of `theta`
        ``(1 + theta) / (1 - theta) * C``, where C is the certificate of the model on these rows.
        With scale "probability", the factor is replaced by its square root. With J > 2 classes, the
        bound is multiplied by J / 2.

    Raises
    ------
    ValueError
        If `theta` is not in (-1, 1), the observation model is not exact, or `y` contains a class
        that the model does not have.

    Notes
    -----
    In [1]_ the bound contains, in place of C, the sum of ``w(S_p) prod(sqrt(1 - mu_t**2))`` over
    the paths p. This sum equals C if each hypothesis returns a constant, or plus or minus a
    constant, as in trees and in chains with symmetric votes. Otherwise it is larger than C. The sum
    is returned by `pboost.models.GenericGreedy.bound`. The bound with C holds for any votes and any
    rows.

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting à la carte with an application to
       boosting oblique decision trees", IJCAI (2007), Theorem 1.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1]
    >>> model = pb.fit_boosted_tree(X, y, max_nodes=1)
    >>> error = pb.inspection.margin_error(model, X, y, 0.1)
    >>> bound = pb.inspection.margin_bound(model, X, y, 0.1)
    >>> print(f"{error:.2f} <= {bound:.2f}")
    0.25 <= 0.87
    """
    at = as_thetas(theta)
    if not (np.abs(at) < 1).all():
        raise ValueError(f"theta: expected numbers in (-1, 1), got {shown(theta)}")
    if isinstance(model, DecisionGraph) and model.certificate_note:
        raise ValueError(
            "model: expected exact observations; the certificate of this model "
            + model.certificate_note
        )
    factor = 0.5 / scale_factor(scale)
    on_rows = certificate(model, X, y, y_proba=y_proba, sample_weight=sample_weight)
    # A wrong class wins only if exp(-F) of the true class or exp(F) of the wrong class is large.
    n_labels = 2 if model.classes is None else len(model.classes)
    bound = 0.5 * n_labels * on_rows * ((1 + at) / (1 - at)) ** factor
    return bound if np.ndim(bound) else float(bound)


def normalized_margins(model: Model, X: TableLike, y: ArrayLike) -> FloatArray:
    """Return ``y H`` divided by the largest decision value that the votes can produce.

    Parameters
    ----------
    model : DecisionGraph, LinearModel or FunctionEnsemble
        A fitted model. The hypotheses of a FunctionEnsemble must be bounded.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    y : array_like of shape (n,)
        Classes, with values in ``model.classes``.

    Returns
    -------
    ndarray of float64, shape (n,)
        For a chain, ``y sum(alpha_t h_t) / sum(abs(alpha_t))``, where ``alpha_t`` is the larger
        absolute vote of node t; these values are in [-1, 1]. In a graph, the divisor is the largest
        sum over all paths, so that margins of different rows are comparable. For a linear model,
        the values are in [-1, 1] on the training rows, but can be outside on other rows.

    Raises
    ------
    ValueError
        If the model has no votes, its hypotheses have no known bound, or `y` contains a class that
        the model does not have.

    References
    ----------
    .. [1] R. E. Schapire, Y. Freund, P. Bartlett and W. S. Lee, "Boosting the margin: a new
       explanation for the effectiveness of voting methods", Ann. Statist. 26 (1998).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1]
    >>> model = pb.fit_adaboost(X, y, n_estimators=3, votes="symmetric", smoothing=0)
    >>> pb.inspection.normalized_margins(model, X, y).round(2).tolist()
    [0.32, 0.21, 0.46, 0.32]
    """
    model = as_two_class(model)
    score = decision_function(model, X)
    signed = leads_of(score, classes_of_labels(model, y, len(score)))
    largest = _largest_score(model)
    if not largest > 0:
        raise ValueError("model: expected a model with votes, got a model without votes")
    return np.asarray(signed / largest)


def as_thetas(theta: ArrayLike, name: str = "theta") -> FloatArray:
    """Check margin thresholds and return them as floats."""
    at = as_array(name, theta)
    if at.dtype.kind not in "iuf" or np.isnan(at).any() or at.ndim > 1:
        raise ValueError(f"{name}: expected a number or a list of numbers, got {shown(theta)}")
    return at.astype(np.float64)


def scale_factor(scale: str) -> float:
    """Return the factor of H inside tanh."""
    return SCALES[check_choice("scale", scale, tuple(SCALES))]


def share_below(margin: FloatArray, weight: FloatArray | None, at: FloatArray) -> FloatArray:
    """Return the weighted share of margins that are at most each threshold `at`."""
    order = np.argsort(margin, kind="stable")
    weight = np.ones(len(margin)) if weight is None else weight / weight.max()
    mass = np.concatenate([[0.0], np.cumsum(weight[order])])
    share: FloatArray = mass[np.searchsorted(margin[order], at, side="right")] / mass[-1]
    return share


def _of_labels(
    score: FloatArray, truth: Any, weight: FloatArray | None, scale: str
) -> tuple[FloatArray, FloatArray | None]:
    """Return the margins and weights for decision values and classes of rows.

    With `SoftLabels`, each possible class of a row has its own margin.
    """
    if isinstance(truth, SoftLabels):
        _, label, weight, entries = truth.expanded(weight)
        score = score if entries is None else score[entries.rows]
        truth = label == 1 if score.ndim == 1 else label
    return np.tanh(scale_factor(scale) * leads_of(score, truth)), weight


def _largest_score(model: TwoClassModel) -> float:
    """Return the largest sum of absolute votes over all paths."""
    if isinstance(model, LinearModel):
        return float(np.abs(model.step).sum()) + abs(model.bias)
    if isinstance(model, FunctionEnsemble):
        max_abs = model.settings.get("weak_learner", {}).get("max_abs")
        if max_abs is None:
            raise ValueError("model: expected bounded hypotheses; pass max_abs in training")
        return float(np.abs(model.alpha).sum()) * max_abs + abs(model.bias)
    assert isinstance(model, DecisionGraph)
    return largest_score(model)


@builder
def margin_curve(
    model: Model | Callable[..., Model],
    X: TableLike,
    y: ArrayLike | None,
    thetas: ArrayLike,
    *,
    cv: int | None = None,
    scale: Scale = "half",
    y_proba: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    rng: Seed = None,
) -> FloatArray:
    """Return the margin error at each theta on the given rows or by cross-validation.

    Parameters
    ----------
    model : model or callable
        A fitted model, which is evaluated on X. With `cv`, a function ``fit(X, y)`` that returns a
        model; it is also called with ``sample_weight`` if weights are passed, and with ``y_proba``
        and ``classes`` instead of y if class probabilities are passed.
    X : array_like of shape (n, d), data frame, or SortedColumns with `cv`
        Features.
    y : array_like of shape (n,), or None
        Classes; None with `y_proba`.
    thetas : array_like of shape (k,)
        Margin thresholds at which the curve is evaluated.
    cv : int, optional
        Number of stratified folds. The margin of each row is computed with the model that was
        fitted without its fold.
    scale : {"half", "probability"}
        See `margins`.
    y_proba : array_like of shape (n, 2) or (n,), or data frame, optional
        Class probabilities in place of `y`. Each row then has two margins, each weighted by the row
        weight times the class probability.
    classes : array_like of shape (2,), optional
        The classes of the columns of `y_proba`, with `cv`. By default 0 and 1, or the column names
        of a data frame.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness for the folds, and for the fits as in `cross_validate`.

    Returns
    -------
    ndarray of float64, shape (k,)
        Share of the rows with a margin of at most theta; it never decreases with theta.

    Raises
    ------
    TypeError, ValueError
        If `model` is not a model (with `cv`: not a fit function), or the data are invalid.

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.arange(40.0).reshape(-1, 1)
    >>> y = X[:, 0] > 20
    >>> fit = partial(pb.fit_boosted_tree, max_nodes=1, smoothing=0.1)
    >>> thetas = [-0.5, 0.0, 0.5, 1.0]
    >>> pb.inspection.margin_curve(fit(X, y), X, y, thetas).tolist()
    [0.0, 0.0, 1.0, 1.0]
    >>> pb.inspection.margin_curve(fit, X, y, thetas, cv=5, rng=0).shape
    (4,)
    """
    at = np.atleast_1d(as_thetas(thetas, "thetas"))
    if cv is None:
        if classes is not None:
            raise ValueError("classes: expected None without cv; the model stores its classes")
        two_class = as_two_class(model)
        share = margin_error(
            two_class, X, y, at, scale=scale, y_proba=y_proba, sample_weight=sample_weight
        )
        return np.asarray(share)
    if not callable(model):
        received = shown(model)
        raise TypeError(f"model: expected a fit function because cv is passed, got {received}")
    truth: Any = labels_of_rows(y, y_proba, classes)
    wanted = {"sample_weight": sample_weight, "y_proba": y_proba}
    check_fit(margin_curve, "model", model, {}, [k for k, v in wanted.items() if v is not None])
    model = with_task(model, CLASSIFICATION)
    cv, generator = check_integer("cv", cv, min_value=2), as_generator(rng)
    rows = rows_to_predict(X)
    n, second = rows.n_rows, truth
    weight = as_weights(sample_weight, n)
    if isinstance(truth, SoftLabels):
        truth.check_rows(n)
        truth.check_two()
        values = truth.classes
    else:
        values, second = as_labels(truth, n)
        truth = values[second.astype(np.intp)]
    test_fold = deal_rows(truth, CLASSIFICATION, weight, cv, generator)
    score = np.empty(n)
    fits = fold_fits(model, X, rows, truth, weight, test_fold, cv, generator)
    for fitted, test, test_rows, _ in fits:
        known = as_two_class(fitted).classes
        if not np.array_equal(known, values):
            raise ValueError(
                f"model: expected a function that fits models with the classes {values.tolist()}, "
                f"got a model with {shown(known.tolist())}"
            )
        score[test] = decision_function(fitted, test_rows)
    return share_below(*_of_labels(score, second, weight, scale), at)


def logistic_margin_curve(
    probability: ArrayLike,
    thetas: ArrayLike,
    *,
    scale: Scale = "half",
    sample_weight: ArrayLike | None = None,
) -> FloatArray:
    """Return the margin curve of a model that predicts the true class probabilities.

    Parameters
    ----------
    probability : array_like of shape (n,)
        The true probability P(y = +1 | x) of the second class for each row.
    thetas : array_like of shape (k,)
        Margin thresholds at which the curve is evaluated.
    scale : {"half", "probability"}
        See `margins`. The decision value is ``H = 0.5 ln(p / (1 - p))``, the minimizer of the
        exponential loss. "half" is comparable with `margin_curve` of the same scale. "probability"
        returns the curve of ``y (2 p - 1)``, the staircase of Fig. 4 of [1]_.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    ndarray of float64, shape (k,)
        Expected share of margins of at most theta if the class of each row is random.

    Raises
    ------
    ValueError
        If a probability is not in [0, 1].

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting à la carte with an application to
       boosting oblique decision trees", IJCAI (2007), Fig. 4.

    Examples
    --------
    One tenth of the labels is flipped:

    >>> import pboost as pb
    >>> p = [0.9, 0.1, 0.9, 0.1]
    >>> curve = pb.inspection.logistic_margin_curve
    >>> curve(p, [-0.6, -0.4, 0.4, 0.6]).round(3).tolist()
    [0.0, 0.1, 0.1, 1.0]
    >>> curve(p, [-0.9, 0.0, 0.9], scale="probability").round(3).tolist()
    [0.0, 0.1, 1.0]
    """
    at = np.atleast_1d(as_thetas(thetas, "thetas"))
    p = as_numbers("probability", probability)
    if p.ndim != 1 or not len(p):
        raise ValueError(f"probability: expected one number per row, got shape {p.shape}")
    if (row := first_false((p >= 0) & (p <= 1))) >= 0:
        raise ValueError(f"probability: expected numbers in [0, 1], got {p[row]} in row {row}")
    weight = as_weights(sample_weight, len(p))
    weight = np.ones(len(p)) if weight is None else weight
    # tanh(ln(p / q) / 2) = (p - q) / (p + q); the scale "half" uses square roots of p and q.
    up, down = p ** scale_factor(scale), (1 - p) ** scale_factor(scale)
    margin = (up - down) / (up + down)
    both = np.concatenate([margin, -margin])
    return share_below(both, np.concatenate([weight * p, weight * (1 - p)]), at)


def plot_margin_curve(
    thetas: ArrayLike,
    curves: dict[str, ArrayLike],
    *,
    ax: Axes | None = None,
    bound: ArrayLike | None = None,
) -> Axes:
    """Draw margin curves with matplotlib.

    Parameters
    ----------
    thetas : array_like of shape (k,)
        Margin thresholds, in increasing order.
    curves : dict of str to array_like of shape (k,)
        Margin errors; the keys are shown in the legend.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created that is not registered with pyplot.
    bound : array_like of shape (k,), optional
        Values of `margin_bound`, drawn as a dashed line and clipped at 1.

    Returns
    -------
    matplotlib.axes.Axes
        Save the plot with ``ax.figure.savefig``.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If the length of a curve differs from `thetas`.

    Examples
    --------
    >>> import pboost as pb
    >>> thetas = [-1.0, -0.5, 0.0, 0.5, 1.0]
    >>> known = pb.inspection.logistic_margin_curve([0.9, 0.1], thetas)
    >>> ax = pb.plot.margin_curve(thetas, {"true probabilities": known})
    >>> ax.get_xlabel()
    'margin'
    """
    at = np.atleast_1d(as_thetas(thetas, "thetas"))
    if not isinstance(curves, Mapping):
        raise TypeError(f"curves: expected a dict of names and margin errors, got {shown(curves)}")
    lines = {name: np.asarray(curve, dtype=np.float64) for name, curve in curves.items()}
    if bound is not None:
        lines["bound"] = np.asarray(bound, dtype=np.float64)
    for name, line in lines.items():
        if line.shape != at.shape:
            raise ValueError(f"{name}: expected shape {at.shape}, got {line.shape}")
    ax = axes_or_new(ax, 5, 4)
    dashed = None if bound is None else lines.pop("bound")
    for name, line in lines.items():
        ax.step(at, line, where="post", label=name)
    if dashed is not None:
        ax.plot(at, np.minimum(dashed, 1.0), "--", color="gray", label="bound")
    ax.set(xlabel="margin", ylabel="share of rows", xlim=(-1, 1), ylim=(0, 1.02))
    if lines or dashed is not None:
        ax.legend()
    return ax
