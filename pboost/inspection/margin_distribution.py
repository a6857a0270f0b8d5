"""Margins: how far on the right side of 0 decision values lie, and what bounds them.

Two scales are in use, and their numbers differ for the same model. "half" is tanh(y H / 2), that of
the source and of its Theorem 1. "probability" is tanh(y H): y times the difference of the class
probabilities of `predict_proba`, as H is half the log odds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.read.check_xy import as_labels, as_numbers, as_weights, check_has_rows
from pboost.data.targets import CLASSIFICATION, SoftLabels, labels_of_rows, with_task
from pboost.data.training import rows_to_predict
from pboost.inspection.cross_validation import deal_rows, fold_fits
from pboost.inspection.plots import axes_or_new
from pboost.models.base import Model, TwoClassModel, decision_function
from pboost.models.evaluate.certificates import certificate, truth_for
from pboost.models.evaluate.new_rows import as_two_class, classes_of_labels, leads_of
from pboost.models.graph import DecisionGraph
from pboost.models.linear import FunctionEnsemble, LinearModel
from pboost.models.nodes import largest_score
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

#: Factor of H inside tanh.
Scale: TypeAlias = Literal["half", "probability"]
SCALES: dict[str, float] = dict(zip(get_args(Scale), (0.5, 1.0), strict=True))


def margins(model: Model, X: TableLike, y: ArrayLike, *, scale: Scale = "half") -> FloatArray:
    """Return the margin of each row, ``tanh(y H / 2)``.

    Of J > 2 labels ``y H`` is half of what the decision value of the row's label is above the
    largest of the others.

    Parameters
    ----------
    model : DecisionGraph, LinearModel or FunctionEnsemble
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    y : array_like of shape (n,)
        Labels, of the values in ``model.classes``.
    scale : {"half", "probability"}
        "half": ``tanh(y H / 2)``. "probability": ``tanh(y H)``, which is
        ``y (2 p - 1)`` with p the probability of the second label.

    Returns
    -------
    ndarray of float64, shape (n,)
        In [-1, 1], positive where the model is right.

    Raises
    ------
    ValueError
        If y holds other labels than the model.

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
    """Return the share of rows whose margin is at most theta.

    Parameters
    ----------
    model : DecisionGraph, LinearModel or FunctionEnsemble
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    y : array_like of shape (n,), or None
        Labels, of the values in ``model.classes``; None with `y_proba`.
    theta : float or array_like
        One number or several.
    scale : {"half", "probability"}
        See `margins`.
    y_proba : array_like of shape (n, 2) or (n,), or data frame, optional
        In place of `y`: probabilities of the labels, see `certificate`. A row then has two margins,
        each with its weight times the probability of the label.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    float, or ndarray of float64 of the shape of `theta`
        At ``theta=0`` the training error, rows of decision value 0 counted as errors.

    Raises
    ------
    ValueError
        If theta is NaN, or X has no rows, or y holds other labels than the model.

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
    """Return the bound of Theorem 1 on the margin error.

    Parameters
    ----------
    model : DecisionGraph, LinearModel or FunctionEnsemble
        A fitted model; its predictions must be those that the certificate is of, so its answers
        exact.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    y : array_like of shape (n,), or None
        Labels, of the values in ``model.classes``; None with `y_proba`.
    theta : float or array_like
        In (-1, 1), one number or several.
    scale : {"half", "probability"}
        See `margins`.
    y_proba : array_like of shape (n, 2) or (n,), or data frame, optional
        In place of `y`: probabilities of the labels, see `certificate`. A row then has two margins,
        each with its weight times the probability of the label.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    float, or ndarray of float64 of the shape of `theta`
        ``(1 + theta) / (1 - theta) * C``, on the scale "probability" with the square root of the
        factor. C is the model's certificate on these rows; of J > 2 labels J / 2 times this.

    Raises
    ------
    ValueError
        If theta is not in (-1, 1), the answers of the model are uncertain, or y holds other labels
        than the model.

    Notes
    -----
    The source has, in place of C, the sum over the paths p of ``w(S_p) prod(sqrt(1 - mu_t**2))``.
    That is C where hypotheses answer ± the same number, or constants, as in trees and chains with
    symmetric votes, and more than C otherwise; `pboost.models.GenericGreedy.bound` is that sum.
    The bound holds with C for any votes and any rows.

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
    >>> bool(pb.inspection.margin_error(model, X, y, 0.1) <= pb.inspection.margin_bound(model, X, y, 0.1))
    True
    """
    at = as_thetas(theta)
    if not (np.abs(at) < 1).all():
        raise ValueError(f"theta: expected numbers in (-1, 1), got {shown(theta)}")
    if isinstance(model, DecisionGraph) and model.certificate_note:
        raise ValueError(
            "model: expected exact answers; the certificate of this one " + model.certificate_note
        )
    factor = 0.5 / scale_factor(scale)
    on_rows = certificate(model, X, y, y_proba=y_proba, sample_weight=sample_weight)
    # Of J labels a wrong one leads only where exp(-F) of the right or exp(F) of the other is large.
    n_labels = 2 if model.classes is None else len(model.classes)
    bound = 0.5 * n_labels * on_rows * ((1 + at) / (1 - at)) ** factor
    return bound if np.ndim(bound) else float(bound)


def normalized_margins(model: Model, X: TableLike, y: ArrayLike) -> FloatArray:
    """Return ``y H`` divided by the largest decision value that the votes allow.

    Parameters
    ----------
    model : DecisionGraph, LinearModel or FunctionEnsemble
        A fitted model, not a FunctionEnsemble whose hypotheses have no bound.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    y : array_like of shape (n,)
        Labels, of the values in ``model.classes``.

    Returns
    -------
    ndarray of float64, shape (n,)
        For a chain ``y sum(alpha_t h_t) / sum(abs(alpha_t))`` with ``alpha_t`` the larger absolute
        vote of node t, in [-1, 1]; in a graph the sum is that of the path on which it is largest,
        so that margins of different rows have one unit. For a linear model answers are in
        [-1, 1] on the training rows; others may go beyond.

    Raises
    ------
    ValueError
        If the model has no votes, or hypotheses of unknown bound; if y holds other labels than
        the model.

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
        raise ValueError("model: expected votes, got a model without any")
    return np.asarray(signed / largest)


def as_thetas(theta: ArrayLike, name: str = "theta") -> FloatArray:
    """Return margins to look at as numbers, checked."""
    at = as_array(name, theta)
    if at.dtype.kind not in "iuf" or np.isnan(at).any() or at.ndim > 1:
        raise ValueError(f"{name}: expected a number or a list of numbers, got {shown(theta)}")
    return at.astype(np.float64)


def scale_factor(scale: str) -> float:
    """Return what H is multiplied by inside tanh."""
    return SCALES[check_choice("scale", scale, tuple(SCALES))]


def share_below(margin: FloatArray, weight: FloatArray | None, at: FloatArray) -> FloatArray:
    """Return the weighted share of margins that are at most each of `at`."""
    order = np.argsort(margin, kind="stable")
    weight = np.ones(len(margin)) if weight is None else weight / weight.max()
    mass = np.concatenate([[0.0], np.cumsum(weight[order])])
    share: FloatArray = mass[np.searchsorted(margin[order], at, side="right")] / mass[-1]
    return share


def _of_labels(
    score: FloatArray, truth: Any, weight: FloatArray | None, scale: str
) -> tuple[FloatArray, FloatArray | None]:
    """Return margins and their weights, given decision values and the classes of rows.

    Of `SoftLabels` there is one for each label that is possible.
    """
    if isinstance(truth, SoftLabels):
        _, label, weight, entries = truth.expanded(weight)
        score = score if entries is None else score[entries.rows]
        truth = label == 1 if score.ndim == 1 else label
    return np.tanh(scale_factor(scale) * leads_of(score, truth)), weight


def _largest_score(model: TwoClassModel) -> float:
    """Return the sum of the largest absolute votes on the path where it is largest."""
    if isinstance(model, LinearModel):
        return float(np.abs(model.step).sum()) + abs(model.bias)
    if isinstance(model, FunctionEnsemble):
        max_abs = model.settings.get("weak_learner", {}).get("max_abs")
        if max_abs is None:
            raise ValueError("model: expected hypotheses of known bound; give max_abs in training")
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
    """Return the margin error at each theta, of a model or by cross-validation.

    Parameters
    ----------
    model : model or callable
        A fitted model, evaluated on X. Or, with `cv`, a function called as ``fit(X, y)`` that
        returns one; with ``sample_weight=`` if given, with ``y_proba=`` and ``classes=`` in place
        of y if these are.
    X : array_like of shape (n, d), data frame, or SortedColumns with `cv`
        Features.
    y : array_like of shape (n,), or None
        Labels; None with `y_proba`.
    thetas : array_like of shape (k,)
        Where the curve is wanted.
    cv : int, optional
        Number of stratified folds: each row's margin is that of the model fitted without its
        fold.
    scale : {"half", "probability"}
        See `margins`.
    y_proba : array_like of shape (n, 2) or (n,), or data frame, optional
        In place of `y`: probabilities of the labels. A row then has two margins, each with its
        weight times the probability of the label.
    classes : array_like of shape (2,), optional
        With `y_proba` and `cv`: the labels of its columns; default 0 and 1, or the names of its
        columns. Those of a model are known.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Deals the rows out to folds; `model` is given a generator for each fold as in
        `cross_validate`.

    Returns
    -------
    ndarray of float64, shape (k,)
        Share of the rows whose margin is at most theta; never falling along increasing theta.

    Raises
    ------
    TypeError, ValueError
        If `model` is not a model, or with `cv` not a function that fits one; if the data are
        not as described.

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.arange(40.0).reshape(-1, 1)
    >>> y = X[:, 0] > 20
    >>> fit = partial(pb.fit_boosted_tree, max_nodes=1, smoothing=0.1)
    >>> pb.inspection.margin_curve(fit(X, y), X, y, [-0.5, 0.0, 0.5, 1.0]).tolist()
    [0.0, 0.0, 1.0, 1.0]
    >>> pb.inspection.margin_curve(fit, X, y, [-0.5, 0.0, 0.5, 1.0], cv=5, rng=0).shape
    (4,)
    """
    at = np.atleast_1d(as_thetas(thetas, "thetas"))
    if cv is None:
        if classes is not None:
            raise ValueError("classes: expected None without cv, as the model knows its labels")
        two_class = as_two_class(model)
        share = margin_error(
            two_class, X, y, at, scale=scale, y_proba=y_proba, sample_weight=sample_weight
        )
        return np.asarray(share)
    if not callable(model):
        received = shown(model)
        raise TypeError(f"model: expected, with cv, a function that fits one, got {received}")
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
                f"model: expected a function that fits models of the labels {values.tolist()}, got "
                f"one of {shown(known.tolist())}"
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
    """Return the margin curve of a model that knows the probability of the second label.

    Parameters
    ----------
    probability : array_like of shape (n,)
        The true P(y = +1 | x) of each row.
    thetas : array_like of shape (k,)
        Where the curve is wanted.
    scale : {"half", "probability"}
        See `margins`. The model's decision value is ``H = 0.5 ln(p / (1 - p))``, that which
        minimises the exponential loss. "half" is thus comparable with `margin_curve` of the same
        scale; "probability" gives ``y (2 p - 1)``, the stairs of the source's Fig. 4.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    ndarray of float64, shape (k,)
        Expected share, over the labels given the rows, of margins of at most theta.

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
    Labels of which a tenth are flipped:

    >>> import pboost as pb
    >>> p = [0.9, 0.1, 0.9, 0.1]
    >>> pb.inspection.logistic_margin_curve(p, [-0.6, -0.4, 0.4, 0.6]).round(3).tolist()
    [0.0, 0.1, 0.1, 1.0]
    >>> pb.inspection.logistic_margin_curve(p, [-0.9, 0.0, 0.9], scale="probability").round(3).tolist()
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
    # Of ½ ln(p/q): p - q over their sum, or the same of their roots.
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
    """Draw margin curves, with matplotlib.

    Parameters
    ----------
    thetas : array_like of shape (k,)
        Increasing.
    curves : dict of str to array_like of shape (k,)
        Margin errors, by the name that the legend shows.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: in a new figure, which pyplot does not know of.
    bound : array_like of shape (k,), optional
        From `margin_bound`: drawn as a dashed line, up to 1.

    Returns
    -------
    matplotlib.axes.Axes
        Its ``figure`` can be saved with ``savefig``.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If a curve has another length than `thetas`.

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
        raise TypeError(f"curves: expected a dict of margin errors by name, got {shown(curves)}")
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
