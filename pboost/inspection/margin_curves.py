"""Margin curves: the margin error as a function of theta, and its drawing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.splits import assign_folds
from pboost.data.targets import as_labels, as_weights
from pboost.inspection.cross_validation import fold_streams, row_selectors
from pboost.inspection.margins import as_thetas, margin_error, margins, scale_factor, share_below
from pboost.inspection.plots import axes_or_new
from pboost.models.base import Model
from pboost.models.new_rows import as_two_class
from pboost.values import FloatArray, Seed, as_array, as_generator, check_fit, check_integer, shown

__all__ = ["logistic_margin_curve", "margin_curve", "plot_margin_curve"]


def margin_curve(
    model: Model | Callable[..., Model],
    X: Any,
    y: ArrayLike,
    thetas: ArrayLike,
    *,
    folds: int | None = None,
    scale: str = "half",
    sample_weight: ArrayLike | None = None,
    rng: Seed = None,
) -> FloatArray:
    """Return the margin error at each theta, of a model or by cross-validation.

    Parameters
    ----------
    model : model or callable
        A fitted model, evaluated on X. Or, with `folds`, a function called as ``fit(X, y)`` (with
        ``sample_weight=``, if given) that returns one.
    X : array_like of shape (n, d), data frame, or SortedColumns with `folds`
        Features.
    y : array_like of shape (n,)
        Labels.
    thetas : array_like of shape (k,)
        Where the curve is wanted.
    folds : int, optional
        Number of stratified folds: each row's margin is that of the model fitted without its
        fold.
    scale : {"half", "probability"}
        See `margins`.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.
    rng : None, int or numpy.random.Generator
        Deals the rows out to folds; `model` is given a generator for each fold as in
        `cross_validate`.

    Returns
    -------
    ndarray of float64, shape (k,)
        Share of the rows whose margin is at most theta; never falling along increasing theta.

    Raises
    ------
    TypeError, ValueError
        If `model` is not a model, or with `folds` not a function that fits one; if the data are
        not as described.

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.arange(40.0).reshape(-1, 1)
    >>> y = X[:, 0] > 20
    >>> fit = partial(pb.fit_boosted_tree, nodes=1, smoothing=0.1)
    >>> pb.margin_curve(fit(X, y), X, y, [-0.5, 0.0, 0.5, 1.0]).tolist()
    [0.0, 0.0, 1.0, 1.0]
    >>> pb.margin_curve(fit, X, y, [-0.5, 0.0, 0.5, 1.0], folds=5, rng=0).shape
    (4,)
    """
    at = np.atleast_1d(as_thetas(thetas, "thetas"))
    if folds is None:
        as_two_class(model)
        curve = margin_error(model, X, y, at, scale=scale, sample_weight=sample_weight)  # type: ignore[arg-type]
        return np.asarray(curve)
    if not callable(model):
        given = shown(model)
        raise TypeError(f"model: expected, with folds, a function that fits one, got {given}")
    needs = () if sample_weight is None else ("sample_weight",)
    check_fit(margin_curve, "model", model, {}, needs)
    folds = check_integer("folds", folds, least=2)
    for_fit, for_predict, n = row_selectors(X)
    values, second = as_labels(y, n)
    labels, weight = values[second.astype(np.intp)], as_weights(sample_weight, n)
    generator = as_generator(rng)
    test_fold = assign_folds(labels, weight, folds, generator)
    streams = fold_streams(model, folds, generator)
    found = np.empty(n)
    for fold in range(folds):
        train, test = np.flatnonzero(test_fold != fold), np.flatnonzero(test_fold == fold)
        options = {} if weight is None else {"sample_weight": weight[train]}
        fitted = model(for_fit(train), labels[train], **options, **streams[fold])
        as_two_class(fitted)
        found[test] = margins(fitted, for_predict(test), labels[test], scale=scale)
    return share_below(found, weight, at)


def logistic_margin_curve(
    probability: ArrayLike,
    thetas: ArrayLike,
    *,
    scale: str = "half",
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
    >>> pb.logistic_margin_curve(p, [-0.6, -0.4, 0.4, 0.6]).round(3).tolist()
    [0.0, 0.1, 0.1, 1.0]
    >>> pb.logistic_margin_curve(p, [-0.9, 0.0, 0.9], scale="probability").round(3).tolist()
    [0.0, 0.1, 1.0]
    """
    at = np.atleast_1d(as_thetas(thetas, "thetas"))
    p = as_array("probability", probability)
    if p.dtype.kind not in "biuf":
        raise TypeError(f"probability: expected numbers, got dtype {p.dtype}")
    p = p.astype(np.float64)
    if p.ndim != 1 or not len(p):
        raise ValueError(f"probability: expected one number per row, got shape {p.shape}")
    wrong = np.flatnonzero(~((p >= 0) & (p <= 1)))
    if len(wrong):
        raise ValueError(
            f"probability: expected numbers in [0, 1], got {p[wrong[0]]} in row {wrong[0]}"
        )
    weight = as_weights(sample_weight, len(p))
    weight = np.ones(len(p)) if weight is None else weight
    # Of ½ ln(p/q): p - q over their sum, or the same of their roots.
    up, down = p ** scale_factor(scale), (1 - p) ** scale_factor(scale)
    margin = (up - down) / (up + down)
    both = np.concatenate([margin, -margin])
    return share_below(both, np.concatenate([weight * p, weight * (1 - p)]), at)


def plot_margin_curve(
    thetas: ArrayLike, curves: dict[str, ArrayLike], *, ax: Any = None, bound: Any = None
) -> Any:
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
    >>> known = pb.logistic_margin_curve([0.9, 0.1], thetas)
    >>> ax = pb.plot_margin_curve(thetas, {"true probabilities": known})
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
