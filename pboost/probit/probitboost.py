"""ProbitBoost: a probit model built in Newton steps, each in the column that fits best."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from pboost._core.probit import boost_leaves
from pboost.data.columns.columns import values_of
from pboost.data.node_inputs.inputs import in_sums
from pboost.data.read.check_xy import AbsentClassError, as_features, training_features
from pboost.data.read.table import Takes
from pboost.data.row_digest import digest_of
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
    """Fit a linear model of the probability Phi(f) of the second label, column by column.

    Parameters
    ----------
    X : array_like of shape (n, d), or data frame
        Features. A missing value counts as the weighted mean of the others of its column.
    y : array_like of shape (n,), optional
        Labels, any two values. The lower is Y = -1, the other Y = +1.
    max_iter : int
        Greatest number of steps.
    tol : float, optional
        Fitting ends when a step changes the deviance -2 sum(w ln Phi(Y f)) by no more, w the
        weights as given. Default: never.
    safeguard : bool
        Halve a step until the risk, the weighted mean of -ln Phi(Y f), does not rise. Where 40
        halvings do not help, as at the minimum, fitting ends. Without it full steps are taken.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows, 1 by default.
    **options
        Those of `RowOptions`.

    Returns
    -------
    ProbitModel
        Intercept, slopes, and the path to them.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described; the message names the argument.

    See Also
    --------
    fit_gradient_boosting : sums of trees, with ``loss="probit"`` too.

    Notes
    -----
    With u = Y f and r = phi(u)/Phi(u), a step fits the responses z = Y/(u + r) with the weights w r
    (u + r) by a line in one column, by least squares, for each column. The one of least squared
    error, the first of equal ones, is added to f. Columns that are constant have no line; where all
    are, the constant is fitted. On rows that a column separates, f grows without end.

    Columns are centred on the rows whose value is known, by their weights, and a missing value is 0
    there. The model keeps the means, for rows to predict.

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
            f"sample_weight: expected weight on both labels, got only on {only!r}"
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
        return "all steps are there"
    if value[done, 2] > 0:
        return "no step lowers the risk"
    return "the deviance changed by no more than tol"
