"""Bounds on error rates for new rows, computed from error counts, and PAC-Bayes bounds."""

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
    """Return the Clopper-Pearson upper bound on an error rate.

    Parameters
    ----------
    errors : array_like of int
        Number of rows with an error, from 0 to `n`.
    n : array_like of int
        Number of independent rows, >= 1.
    confidence_level : array_like of float
        Probability with which the bound holds, in (0, 1).

    Returns
    -------
    float or ndarray of float64
        The rate for which at most `errors` errors occur with probability 1 - confidence_level. It
        is the quantile confidence_level of Beta(errors + 1, n - errors), or 1 if all rows are
        errors.

    Raises
    ------
    ValueError
        If a number is out of range or not an integer.

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
    from scipy.special import betaincinv  # imported late, see _tree_bound.terms_at_2

    right = np.maximum(rows - wrong, 1.0)
    return plain(np.where(wrong < rows, betaincinv(wrong + 1, right, 1 - failing), 1.0))


def clopper_pearson_lower(
    errors: ArrayLike, n: ArrayLike, *, confidence_level: ArrayLike = 0.95
) -> float | FloatArray:
    """Return the Clopper-Pearson lower bound on an error rate.

    Parameters
    ----------
    errors, n, confidence_level : array_like
        See `clopper_pearson_upper`.

    Returns
    -------
    float or ndarray of float64
        The quantile 1 - confidence_level of Beta(errors, n - errors + 1), or 0 if there are no
        errors. For a two-sided interval with probability `confidence_level`, compute both bounds at
        (1 + confidence_level) / 2.

    Raises
    ------
    ValueError
        If a number is out of range or not an integer.

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
    """Return the p-value of the binomial test that an error rate is above a limit.

    Parameters
    ----------
    errors, n : array_like of int
        See `clopper_pearson_upper`.
    rate : array_like of float
        The limit of the error rate, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        P(Binomial(n, rate) <= errors). It is at most 1 - confidence_level if and only if
        `clopper_pearson_upper` is at most `rate`.

    Raises
    ------
    ValueError
        If a number is out of range or not an integer.

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
    """Return the Hoeffding-Bentkus p-value for a mean loss above a limit.

    Use it for losses in [0, 1]. For losses that are 0 or 1, `binomial_p_value` is smaller.

    Parameters
    ----------
    mean : array_like of float
        Mean loss of the rows, in [0, 1].
    n : array_like of int
        Number of independent rows, >= 1.
    rate : array_like of float
        The limit of the mean loss, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        The smaller of exp(-n kl(min(mean, rate), rate)) and
        e P(Binomial(n, rate) <= ceil(n mean)).

    Raises
    ------
    ValueError
        If a number is out of range, or `n` is not an integer.

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
    # A sum that differs from an integer only by rounding is treated as this integer.
    errors = np.minimum(np.ceil(rows * loss * (1 - 2.0**-50)), rows)
    bentkus = math.e * np.asarray(binomial_p_value(errors, rows, limit))
    hoeffding = np.exp(-rows * kl_divergence(np.minimum(loss, limit), limit))
    return plain(np.minimum(np.minimum(bentkus, hoeffding), 1.0))


def fixed_sequence(p_values: ArrayLike, *, confidence_level: float = 0.95) -> int:
    """Return the number of hypotheses rejected by fixed-sequence testing.

    Hypotheses are tested in order until the first one that is not rejected.

    Parameters
    ----------
    p_values : array_like of float, shape (k,)
        p-values in [0, 1], in an order that does not depend on the data.
    confidence_level : float
        Probability, in (0, 1), that no true hypothesis is rejected.

    Returns
    -------
    int
        Number of rejected hypotheses.

    Raises
    ------
    ValueError
        If a number is out of range.

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
    """Return the largest number of errors whose upper bound is at most `rate`, or -1."""
    from scipy.special import bdtr

    low, high = -1, n  # with n errors in n rows, the bound is 1
    if rate >= 1:
        return n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bdtr(middle, n, rate) <= delta else (low, middle)
    return low


def hypergeometric_tail(marked: int, drawn: int, marked_left: int, left: int) -> float:
    """Return the one-sided p-value of Fisher's exact test for the number of marked items.

    `drawn` items were drawn at random, and `marked` of these are marked. `left` items were not
    drawn, and `marked_left` of these are marked.
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
    """Return the Kullback-Leibler divergence between Bernoulli distributions of rates p and q."""
    from scipy.special import rel_entr

    divergence: FloatArray = rel_entr(p, q) + rel_entr(1 - p, 1 - q)
    return divergence


def as_failing(confidence_level: ArrayLike) -> FloatArray:
    """Check that confidence levels are in (0, 1) and return 1 minus them."""
    level = as_numbers("confidence_level", confidence_level, -math.inf)
    if not ((level > 0) & (level < 1)).all():
        wrong = level[(level <= 0) | (level >= 1)].flat[0]
        raise ValueError(f"confidence_level: expected numbers in (0, 1), got {wrong:g}")
    # Without rounding, 1 - 0.95 is not the float 0.05.
    return np.round(1 - level, 16)


def _counts(errors: ArrayLike, n: ArrayLike, confidence_level: ArrayLike) -> list[FloatArray]:
    """Check the arguments. Return errors, n and 1 - confidence_level in a common shape."""
    wrong, rows = as_integers("errors", errors, 0.0), as_integers("n", n, 1.0)
    counts = align("errors, n, confidence_level", wrong, rows, as_failing(confidence_level))
    if (counts[0] > counts[1]).any():
        raise ValueError(
            f"errors: expected at most n, got {counts[0][counts[0] > counts[1]].flat[0]}"
        )
    return counts


# PAC-Bayes bounds on votes


def kl_inverse(rate: ArrayLike, bound: ArrayLike) -> float | FloatArray:
    """Return the largest rate whose divergence from an observed rate is at most a bound.

    Parameters
    ----------
    rate : array_like of float
        Observed rate, in [0, 1].
    bound : array_like of float
        Upper limit of kl(rate, result), >= 0.

    Returns
    -------
    float or ndarray of float64
        A rate in [rate, 1], computed by bisection to full precision and rounded up.

    Raises
    ------
    ValueError
        If a number is out of range.

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
    """Return the PAC-Bayes bound on the mean error of a vote's base learners on new rows.

    Parameters
    ----------
    gibbs : array_like of float
        Mean error of the base learners on the rows, weighted by their votes; in [0, 1].
    n : array_like of float
        Number of independent rows, >= 1.
    kl : array_like of float
        Divergence between the vote weights and weights chosen before the rows were known. It is 0
        if the base learners and their weights do not depend on the rows, as for calibration rows.
    confidence_level : array_like of float
        Probability with which the bound holds, in (0, 1).

    Returns
    -------
    float or ndarray of float64
        `kl_inverse` of `gibbs` at (kl + ln(2 sqrt(n) / (1 - confidence_level))) / n.

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    This is Maurer's bound [1]_. The error of the vote is at most twice the bound. For 100 trees
    with an error of 20 % each, this gives at least 40 %, even if the vote is much better. With rows
    that were not used for training, `clopper_pearson_upper` of the errors of the vote is always
    smaller.

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
