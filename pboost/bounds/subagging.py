"""Bounds of subagged votes and of boosted probit model trees, with the constants of their proofs.

[QH] is T. Qin and W.-M. Huang, "On subbagging boosted probit model trees", [Ma] A. Maurer,
"Exponential finite sample bounds for incomplete U-statistics" (2022), whose inequality [QH] uses,
and [SF] R. E. Schapire and Y. Freund, "Boosting: foundations and algorithms" (2012). The errata of
the documentation say where [QH] is departed from.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pboost.bounds._numbers import align, as_numbers, plain
from pboost.values import FloatArray

_LN_2 = math.log(2)


def members_needed(n: ArrayLike) -> float | FloatArray:
    """Return ln(n)**2, which the members of a subagged vote must outnumber for `subagging_bound`.

    Parameters
    ----------
    n : array_like of float
        Number of training rows, >= 1.

    Returns
    -------
    float or ndarray of float64
        [QH], theorem 3.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.members_needed(20_000), 2)
    98.08
    """
    return plain(np.log(as_numbers("n", n, 1.0)) ** 2)


def subagging_bound(
    p: ArrayLike,
    members: ArrayLike,
    m: ArrayLike,
    n: ArrayLike,
    *,
    variance: ArrayLike | None = None,
    beta: ArrayLike | None = None,
    gamma: ArrayLike | None = None,
    delta: ArrayLike = 0.01,
) -> float | FloatArray:
    """Return the bound on how likely the majority of models of subsamples is wrong at a given row.

    Training sets of n rows are drawn independently; each member is trained, by a rule that does not
    depend on the order of the rows, on m of them, drawn without replacement. K is 1 where the model
    of m rows is wrong at the given row, and -1 where it is right.

    Parameters
    ----------
    p : array_like of float
        Probability that the model of m rows is wrong at the row, in [0, 1/2].
    members : array_like of int
        Number M of members, more than `members_needed` of n.
    m, n : array_like of int
        Rows of each subsample and of the training set, 1 <= m <= n.
    variance : array_like of float, optional
        Variance of the conditional expectation of K given one of the m rows. Default: its greatest
        value, 4 p (1 - p) / m.
    beta : array_like of float, optional
        Expectation of D**2, where D is the change of K when one row is exchanged for a new one,
        less the same change after another row has been exchanged, too. Default: its greatest value,
        16 p (1 - p); 0 where m is 1.
    gamma : array_like of float, optional
        The greatest expectation of D**2 that any values of the m rows, and of the new value of the
        first of them, have. Default: 16, the greatest number that it can be; 0 where m is 1.
    delta : array_like of float
        Probability, over the draws of the subsamples, with which the bound may fail, in (0, 1].

    Returns
    -------
    float or ndarray of float64
        ``exp(-t**2 / (2 A variance + B beta / 2 + (sqrt(B gamma) + 4 C / 3) t))`` ([Ma]) with
        t = 1 - 2 p, or 1 - 2 p + 1/M where M is odd, and, with L = ln(3 / delta),

        * sqrt(A) = m / sqrt(n) + (1 + 4 sqrt(L)) sqrt(m / M),
        * sqrt(B) = m**2 / n + (1 + 4 sqrt(L)) m / sqrt(M),
        * C = m / n + (sqrt(2 m) + 3) L / sqrt(M).

    Raises
    ------
    ValueError
        If a number is out of its range.

    Notes
    -----
    [QH], theorem 3, corrected: there B and C enter with wrong powers, and `p` is the error over new
    rows, of which the bound does not hold. The error over new rows is at most the mean of the bound
    over them, rows of p > 1/2 counting 1. It falls with `members`, but not to 0; it says something
    only where m**2 is small against n, or `beta` and `gamma` are. A vote that is tied is wrong.

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.subagging_bound(0.2, 1e6, 10, 1e6), 4)
    0.3038
    >>> pb.bounds.subagging_bound([0.2, 0.4], 1e6, 100, 1e6, beta=0, gamma=0).round(4).tolist()
    [0.0104, 0.2262]
    """
    p = as_numbers("p", p, 0.0, 0.5)
    M, m, n = (_counts(*given) for given in (("members", members), ("m", m), ("n", n)))
    failing = as_numbers("delta", delta, 0.0, 1.0, positive=True)
    p, M, m, n, failing = align("p, members, m, n, delta", p, M, m, n, failing)
    if (m > n).any():
        raise ValueError(f"m: expected at most n, got {m[m > n].flat[0]:.0f}")
    if (np.log(n) ** 2 >= M).any():
        few = np.flatnonzero((np.log(n) ** 2 >= M).ravel())[0]
        needed = np.log(n).ravel()[few] ** 2
        raise ValueError(f"members: expected more than {needed:.6g}, got {M.ravel()[few]:.0f}")
    spread = p * (1 - p)
    pairs = (m > 1).astype(np.float64)
    variance = 4 * spread / m if variance is None else as_numbers("variance", variance, 0.0, 1.0)
    beta = 16 * spread * pairs if beta is None else as_numbers("beta", beta, 0.0, 16.0)
    gamma = 16 * pairs if gamma is None else as_numbers("gamma", gamma, 0.0, 16.0)
    L = np.log(3 / failing)
    root_a = m / np.sqrt(n) + (1 + 4 * np.sqrt(L)) * np.sqrt(m / M)
    root_b = m**2 / n + (1 + 4 * np.sqrt(L)) * m / np.sqrt(M)
    C = m / n + (np.sqrt(2 * m) + 3) * L / np.sqrt(M)
    t = 1 - 2 * p + (M % 2) / M
    below = 2 * root_a**2 * variance + root_b**2 * beta / 2
    below = below + (root_b * np.sqrt(gamma) + 4 * C / 3) * t
    # Where t and the variances are 0 nothing is said.
    quotient = np.divide(t**2, below, out=np.zeros_like(below), where=below > 0)
    return plain(np.exp(-quotient))


def boosted_pmt_bound(
    risks: ArrayLike, n: ArrayLike, vc: ArrayLike, *, delta: ArrayLike = 0.01
) -> float | FloatArray:
    """Return the bound on the error on new rows of AdaBoost of probit model trees.

    Parameters
    ----------
    risks : array_like of float, shape (..., T)
        Weighted probit risk of each tree on the training rows, the mean of -ln Phi(y f) by the
        weights of its round, which sum to 1; in [0, ln(2)/2].
    n : array_like of int
        Number of training rows, drawn independently, at least T and `vc`.
    vc : array_like of int
        VC dimension of the trees, or a bound on it, >= 1.
    delta : array_like of float
        Probability with which the bound may fail, in (0, 1].

    Returns
    -------
    float or ndarray of float64, shape (...)
        At most 1: exp(-2 times the sum of the squares of 1/2 - risk / ln 2), which bounds the
        training error, and sqrt(32 (T (ln(e n / T) + vc ln(e n / vc)) + ln(8 / delta)) / n).

    Raises
    ------
    ValueError
        If a number is out of its range, or `risks` is a single number.

    Notes
    -----
    [QH], theorem 6, with the second term as it is in [SF], theorem 4.6, where T multiplies `vc`.
    The first holds for AdaBoost's own update, ``step=1``. The second is below 1 for very many rows
    only.

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.boosted_pmt_bound([0.05, 0.1, 0.1], 1e7, 20), 4)
    0.4717
    """
    risks = as_numbers("risks", risks, 0.0, _LN_2 / 2)
    if not risks.ndim or not risks.shape[-1]:
        raise ValueError("risks: expected one risk per tree")
    T = risks.shape[-1]
    rows, dimension = _counts("n", n), _counts("vc", vc)
    failing = as_numbers("delta", delta, 0.0, 1.0, positive=True)
    trained = np.exp(-2 * ((0.5 - risks / _LN_2) ** 2).sum(axis=-1))
    trained, rows, dimension, failing = align(
        "risks, n, vc, delta", trained, rows, dimension, failing
    )
    few = rows < np.maximum(dimension, T)
    if few.any():
        raise ValueError(
            f"n: expected at least the number of trees and vc, got {rows[few].flat[0]:.0f}"
        )
    growth = T * (1 + np.log(rows / T) + dimension * (1 + np.log(rows / dimension)))
    spread = np.sqrt(32 * (growth + np.log(8 / failing)) / rows)
    return plain(np.minimum(trained + spread, 1.0))


def _counts(name: str, value: ArrayLike) -> FloatArray:
    """Return integers >= 1 as numbers."""
    counts = as_numbers(name, value, 1.0)
    if (wrong := counts[counts != np.floor(counts)]).size:
        raise ValueError(f"{name}: expected integers, got {wrong.flat[0]}")
    return counts
