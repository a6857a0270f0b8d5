"""PAC-Bayes bounds on the error of votes, by the inverse of the divergence of two coins."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pboost.bounds._binomial import as_delta, kl_divergence
from pboost.bounds._numbers import align, as_numbers, plain
from pboost.values import FloatArray


def kl_inverse(rate: ArrayLike, bound: ArrayLike) -> float | FloatArray:
    """Return the largest rate whose divergence from a given one is at most a bound.

    Parameters
    ----------
    rate : array_like of float
        Rate that was observed, in [0, 1].
    bound : array_like of float
        Bound on kl(rate, result), >= 0.

    Returns
    -------
    float or ndarray of float64
        In [rate, 1], by bisection to the last bit, rounded up.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> import math
    >>> import pboost as pb
    >>> round(pb.bounds.kl_inverse(0.0, 0.01), 6), round(1 - math.exp(-0.01), 6)
    (0.00995, 0.00995)
    """
    seen, most = align(
        "rate, bound", as_numbers("rate", rate, 0.0, 1.0), as_numbers("bound", bound, 0.0)
    )
    low, high = seen.copy(), np.ones(seen.shape)
    for _ in range(64):
        middle = (low + high) / 2
        inside = kl_divergence(seen, middle) <= most
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return plain(high)


def pac_bayes_bound(
    gibbs: ArrayLike, n: ArrayLike, *, kl: ArrayLike = 0.0, delta: ArrayLike = 0.05
) -> float | FloatArray:
    """Return Maurer's bound on the mean error of members drawn at random, on new rows.

    Parameters
    ----------
    gibbs : array_like of float
        Mean, over the members by their weights in the vote, of their errors on the rows; in [0, 1].
    n : array_like of float
        Number of rows, drawn independently, >= 1.
    kl : array_like of float
        Divergence of the weights of the members from weights chosen before the rows were seen; 0
        where the members and their weights do not depend on the rows, as of calibration rows.
    delta : array_like of float
        Probability with which the bound may fail, in (0, 1).

    Returns
    -------
    float or ndarray of float64
        `kl_inverse` of `gibbs` at (kl + ln(2 sqrt(n) / delta)) / n.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Notes
    -----
    The error of the vote itself is at most twice this. That factor is why it is loose: of 100 trees
    that err on a fifth of the rows each it says at best 40 %, whatever their vote does. With rows
    that were not trained on, `clopper_pearson_upper` of the vote's own errors is always less.

    References
    ----------
    .. [1] A. Maurer, "A note on the PAC Bayesian theorem", arXiv:cs/0411099 (2004).
    .. [2] M. Seeger, "PAC-Bayesian generalisation error bounds for Gaussian process
       classification", J. Mach. Learn. Res. 3 (2002).

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.pac_bayes_bound(0.1, 1000), 4)
    0.1396
    >>> round(pb.bounds.clopper_pearson_upper(100, 1000), 4)
    0.117
    """
    mean, rows = as_numbers("gibbs", gibbs, 0.0, 1.0), as_numbers("n", n, 1.0)
    divergence = as_numbers("kl", kl, 0.0)
    mean, rows, divergence, failing = align(
        "gibbs, n, kl, delta", mean, rows, divergence, as_delta(delta)
    )
    return kl_inverse(mean, (divergence + np.log(2 * np.sqrt(rows) / failing)) / rows)
