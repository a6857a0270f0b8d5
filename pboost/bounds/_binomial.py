"""Bounds on the error on new rows by counts of errors: of models, and of votes (PAC-Bayes)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pboost.bounds._numbers import align, as_integers, as_numbers, plain
from pboost.values import FloatArray


def clopper_pearson_upper(
    errors: ArrayLike, n: ArrayLike, *, confidence_level: ArrayLike = 0.95
) -> float | FloatArray:
    """Return what a rate is below with probability `confidence_level`, from errors among n rows.

    Parameters
    ----------
    errors : array_like of int
        Number of rows on which there was an error, from 0 to `n`.
    n : array_like of int
        Number of rows, drawn independently, >= 1.
    confidence_level : array_like of float
        Probability with which the bound holds, in (0, 1).

    Returns
    -------
    float or ndarray of float64
        The rate at which so few errors, or fewer, have probability 1 - confidence_level: the
        quantile confidence_level of Beta(errors + 1, n - errors); 1 where every row is an error.

    Raises
    ------
    ValueError
        If a number is out of its range, or no integer.

    References
    ----------
    .. [1] C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated
       in the case of the binomial", Biometrika 26 (1934).

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.clopper_pearson_upper([0, 5, 50], 1000).round(4).tolist()
    [0.003, 0.0105, 0.0629]
    """
    wrong, rows, failing = _counts(errors, n, confidence_level)
    from scipy.special import betaincinv  # not at import: see _tree_bound.terms_at_2

    right = np.maximum(rows - wrong, 1.0)
    return plain(np.where(wrong < rows, betaincinv(wrong + 1, right, 1 - failing), 1.0))


def clopper_pearson_lower(
    errors: ArrayLike, n: ArrayLike, *, confidence_level: ArrayLike = 0.95
) -> float | FloatArray:
    """Return what a rate is above with probability `confidence_level`, from errors among n rows.

    Parameters
    ----------
    errors, n, confidence_level : array_like
        See `clopper_pearson_upper`.

    Returns
    -------
    float or ndarray of float64
        The quantile 1 - confidence_level of Beta(errors, n - errors + 1); 0 where there is no
        error. Both bounds at (1 + confidence_level) / 2 hold at once with probability
        `confidence_level`.

    Raises
    ------
    ValueError
        If a number is out of its range, or no integer.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.clopper_pearson_lower([0, 5, 50], 1000).round(4).tolist()
    [0.0, 0.002, 0.0392]
    """
    wrong, rows, failing = _counts(errors, n, confidence_level)
    from scipy.special import betaincinv

    some = np.maximum(wrong, 1.0)
    return plain(np.where(wrong > 0, betaincinv(some, rows - some + 1, failing), 0.0))


def binomial_p_value(errors: ArrayLike, n: ArrayLike, rate: ArrayLike) -> float | FloatArray:
    """Return how likely n rows have so few errors, or fewer, if the rate is above a limit.

    Parameters
    ----------
    errors, n : array_like of int
        See `clopper_pearson_upper`.
    rate : array_like of float
        The limit, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        P(Binomial(n, rate) <= errors): at most 1 - confidence_level exactly where
        `clopper_pearson_upper` is at most `rate`.

    Raises
    ------
    ValueError
        If a number is out of its range, or no integer.

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.binomial_p_value(0, 149, 0.02), 4), round(0.98**149, 4)
    (0.0493, 0.0493)
    """
    wrong, rows, _ = _counts(errors, n, 0.5)
    wrong, rows, limit = align("errors, n, rate", wrong, rows, as_numbers("rate", rate, 0.0, 1.0))
    from scipy.special import betainc

    right = np.maximum(rows - wrong, 1.0)
    return plain(np.where(wrong < rows, betainc(right, wrong + 1, 1 - limit), 1.0))


def hoeffding_bentkus_p_value(mean: ArrayLike, n: ArrayLike, rate: ArrayLike) -> float | FloatArray:
    """Return a p-value for a mean loss above a limit, of losses in [0, 1] that are not 0 or 1.

    Parameters
    ----------
    mean : array_like of float
        Mean loss of the rows, in [0, 1].
    n : array_like of int
        Number of rows, drawn independently, >= 1.
    rate : array_like of float
        The limit, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        The less of exp(-n kl(min(mean, rate), rate)) and e P(Binomial(n, rate) <= ceil(n mean)).
        Of losses 0 and 1 `binomial_p_value` is less.

    Raises
    ------
    ValueError
        If a number is out of its range, or n no integer.

    References
    ----------
    .. [1] A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan and L. Lei, "Learn then test:
       calibrating predictive algorithms to achieve risk control", arXiv:2110.01052 (2021).

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.hoeffding_bentkus_p_value(0.01, 1000, 0.02), 4)
    0.0278
    """
    loss = as_numbers("mean", mean, 0.0, 1.0)
    rows, limit = as_numbers("n", n, 1.0), as_numbers("rate", rate, 0.0, 1.0)
    loss, rows, limit = align("mean, n, rate", loss, rows, limit)
    # A sum that is an integer but for rounding is that integer.
    errors = np.minimum(np.ceil(rows * loss * (1 - 2.0**-50)), rows)
    bentkus = math.e * np.asarray(binomial_p_value(errors, rows, limit))
    hoeffding = np.exp(-rows * kl_divergence(np.minimum(loss, limit), limit))
    return plain(np.minimum(np.minimum(bentkus, hoeffding), 1.0))


def fixed_sequence(p_values: ArrayLike, *, confidence_level: float = 0.95) -> int:
    """Return how many hypotheses are rejected, tested in their order up to the first that is not.

    Parameters
    ----------
    p_values : array_like of float, shape (k,)
        In an order that does not depend on the rows they are of; in [0, 1].
    confidence_level : float
        Probability with which none is rejected that is true, in (0, 1).

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.fixed_sequence([0.001, 0.04, 0.06, 0.01])
    2
    """
    p = np.atleast_1d(as_numbers("p_values", p_values, 0.0, 1.0))
    fails = p > as_failing(confidence_level)
    return int(fails.argmax()) if fails.any() else len(p)


def most_errors(n: int, rate: float, delta: float) -> int:
    """Return the most errors among n rows that prove a rate of at most `rate`; -1 if none do."""
    from scipy.special import bdtr

    low, high = -1, n  # all n errors prove nothing below 1
    if rate >= 1:
        return n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bdtr(middle, n, rate) <= delta else (low, middle)
    return low


def hypergeometric_tail(marked: int, drawn: int, marked_left: int, left: int) -> float:
    """Return the probability of as many marked ones or more among those drawn, by Fisher's test.

    `drawn` and `left` are how many were drawn at random and how many were left, `marked` and
    `marked_left` how many of each are marked.
    """
    from scipy.special import gammaln, logsumexp

    all_marked, plain = marked + marked_left, drawn + left - marked - marked_left
    count = np.arange(marked, min(drawn, all_marked) + 1)
    count = count[drawn - count <= plain]

    def log_choose(n: Any, k: Any) -> Any:
        return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)

    ways = log_choose(all_marked, count) + log_choose(plain, drawn - count)
    return float(np.exp(min(0.0, logsumexp(ways) - log_choose(drawn + left, drawn))))


def kl_divergence(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the divergence of a coin of rate p from one of rate q."""
    from scipy.special import rel_entr

    divergence: FloatArray = rel_entr(p, q) + rel_entr(1 - p, 1 - q)
    return divergence


def as_failing(confidence_level: ArrayLike) -> FloatArray:
    """Return the probabilities of failure of confidence levels, which are checked: in (0, 1)."""
    level = as_numbers("confidence_level", confidence_level, -math.inf)
    if not ((level > 0) & (level < 1)).all():
        wrong = level[(level <= 0) | (level >= 1)].flat[0]
        raise ValueError(f"confidence_level: expected numbers in (0, 1), got {wrong:g}")
    # The double 0.05 for 0.95: 1 - 0.95 is another one. Levels below 1 are 1.1e-16 apart or more.
    return np.round(1 - level, 16)


def _counts(errors: ArrayLike, n: ArrayLike, confidence_level: ArrayLike) -> list[FloatArray]:
    """Return counts and probabilities of failure, checked and of one shape."""
    wrong, rows = as_integers("errors", errors, 0.0), as_integers("n", n, 1.0)
    counts = align("errors, n, confidence_level", wrong, rows, as_failing(confidence_level))
    if (counts[0] > counts[1]).any():
        raise ValueError(
            f"errors: expected at most n, got {counts[0][counts[0] > counts[1]].flat[0]}"
        )
    return counts


# PAC-Bayes bounds on votes, by the inverse of the divergence of two coins


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
    seen, max_divergence = align(
        "rate, bound", as_numbers("rate", rate, 0.0, 1.0), as_numbers("bound", bound, 0.0)
    )
    low, high = seen.copy(), np.ones(seen.shape)
    for _ in range(64):
        middle = (low + high) / 2
        inside = kl_divergence(seen, middle) <= max_divergence
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return plain(high)


def pac_bayes_bound(
    gibbs: ArrayLike, n: ArrayLike, *, kl: ArrayLike = 0.0, confidence_level: ArrayLike = 0.95
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
    confidence_level : array_like of float
        Probability with which the bound holds, in (0, 1).

    Returns
    -------
    float or ndarray of float64
        `kl_inverse` of `gibbs` at (kl + ln(2 sqrt(n) / (1 - confidence_level))) / n.

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
        "gibbs, n, kl, confidence_level", mean, rows, divergence, as_failing(confidence_level)
    )
    return kl_inverse(mean, (divergence + np.log(2 * np.sqrt(rows) / failing)) / rows)
