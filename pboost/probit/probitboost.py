"""ProbitBoost fits a linear probit model by Newton steps. Each step uses one feature."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from pboost._core.probit import boost_leaves
from pboost.data.columns.columns import values_of
from pboost.data.node_inputs.inputs import in_sums
from pboost.data.read.check_xy import AbsentClassError, as_features, training_features
from pboost.data.read.table import Takes
from pboost.data.row_fingerprint import digest_of
from pboost.data.row_source import RowOptions, rows_here
from pboost.data.targets import classes_of_rows
from pboost.models.linear import ProbitModel
from pboost.probit.tree import check_coefficients
from pboost.threads import Workers
from pboost.values import FloatArray, check_flag, check_integer, check_number
from pboost.values.options import builder


@builder
def fit_probitboost(
    X: object,
    y: ArrayLike | None = None,
    *,
    max_iter: int = 100,
    tol: float | None = None,
    safeguard: bool = True,
    **options: Unpack[RowOptions],
) -> ProbitModel:
    """Fit a linear probit model by boosting. Each step uses one feature.

    Parameters
    ----------
    X : array_like of shape (n, d), or data frame
        Features. Missing values are replaced by the weighted mean of the feature.
    y : array_like of shape (n,), optional
        Two classes. The first class in sorted order is Y = -1, the second is Y = +1.
    max_iter : int
        Maximum number of steps.
    tol : float, optional
        Stop when a step changes the deviance -2 sum(w ln Phi(Y f)) by at most `tol`, where w are
        the sample weights. By default, the change is not tested.
    safeguard : bool
        Halve each step until the risk, the weighted mean of -ln Phi(Y f), does not increase.
        Fitting stops if 40 halvings do not suffice, which happens at the minimum. If False, full
        steps are taken.
    sample_weight : array_like of shape (n,), optional
        Sample weights >= 0, 1 by default.
    **options
        Options of `RowOptions`.

    Returns
    -------
    ProbitModel
        Model of P(Y = +1) = Phi(f), with intercept, coefficients and the fitted steps.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is invalid; the message names the argument.

    See Also
    --------
    fit_gradient_boosting : Fit an ensemble of trees, for example with ``loss="probit"``.

    Notes
    -----
    With u = Y f and r = phi(u)/Phi(u), each step fits one line per feature to the responses
    z = Y/(u + r) by least squares, with the weights w r (u + r). The line with the smallest squared
    error is added to f; the first feature wins ties. Constant features are skipped; if all
    features are constant, an intercept is fitted. If a feature separates the classes, f is
    unbounded.

    Features are centered by the weighted mean of their known values, and missing values become 0.
    The model stores the means for prediction.

    References
    ----------
    .. [1] T. Qin and W.-M. Huang, "On subbagging boosted probit model trees", algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.arange(10.0)[:, None]
    >>> model = pb.fit_probitboost(X, X[:, 0] + 5 * (X[:, 0] == 2) > 4, max_iter=20)
    >>> print(pb.describe(model).splitlines()[-1])
    P(True) = Phi(f), f = -1.78554 + 0.52279*x[0]
    >>> pb.predict_proba(model, [[0.0], [9.0]]).round(3).tolist()
    [[0.963, 0.037], [0.002, 0.998]]
    """
    max_iter = check_integer("max_iter", max_iter, min_value=1)
    tol = None if tol is None else check_number("tol", tol, min_value=0.0)
    safeguard = check_flag("safeguard", safeguard)
    X, y, sample_weight = rows_here("fit_probitboost", X, y, options)
    features = as_features(values_of(X))
    n = len(features.values)
    class_data = classes_of_rows(y, sample_weight, n, "")
    of_rows = class_data.weights_of_rows(sample_weight, n)
    features = training_features(features, of_rows, Takes(holes=True, levels=True))
    values = in_sums(features.values, features.table)
    label, names = class_data.label.astype(np.int32), class_data.classes
    if class_data.entries is not None:
        values = values[class_data.entries.rows]
    weights = np.ones(len(label)) if class_data.weights is None else class_data.weights
    rows = np.flatnonzero(weights > 0).astype(np.int32)
    settings = {
        "builder": "fit_probitboost",
        "max_iter": max_iter,
        "tol": tol,
        "safeguard": safeguard,
    }
    d = values.shape[1]
    feature = np.zeros(max_iter, dtype=np.int32)
    value, risk = np.zeros((max_iter, 3)), np.zeros(max_iter + 1)
    coefficient, taken = np.zeros((1, 1, 1 + d)), np.zeros((1, 1), dtype=np.int32)
    means = np.zeros((1, d))
    boost_leaves(
        values,
        rows,
        np.array([0, len(rows)], dtype=np.int32),
        label,
        weights,
        2,
        max_iter,
        tol or 0.0,
        safeguard,
        coefficient,
        taken,
        (feature, value, risk),
        stop=Workers(1).stop,
        means=means,
    )
    done = int(taken[0, 0])
    if done < 0:
        only = names[label[rows[0]]].item()
        raise AbsentClassError(
            f"sample_weight: expected positive weight for both classes, got only class {only!r}"
        )
    check_coefficients(coefficient)
    return ProbitModel(
        float(coefficient[0, 0, 0]),
        coefficient[0, 0, 1:],
        feature[:done],
        value[:done, :2],
        value[:done, 2],
        risk[: done + 1],
        names,
        settings,
        _stop_reason(done, max_iter, value),
        features.n_features,
        features.names,
        means[0],
        table=features.table,
        seen=digest_of(features, of_rows),
    )


def _stop_reason(done: int, max_iter: int, value: FloatArray) -> str:
    if done == max_iter:
        return "reached max_iter"
    if value[done, 2] > 0:
        return "no step lowers the risk"
    return "the deviance changed by at most tol"
