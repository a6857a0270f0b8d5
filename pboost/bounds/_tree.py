"""Compute the bound F(T, rho) of a boosted tree and find the best nesting of trees.

F is a ratio of Gamma functions at two points less than 1 apart. A difference of library log-gamma
values would lose all digits for large T, so differences are computed for each term of Stirling's
series. `rho` is in [0, 1]. The argument ``rest = 1 - rho`` is passed separately, because near 1 it
cannot be computed accurately from the rounded `rho`.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pboost.values import Array, FloatArray

#: Stirling's series is evaluated at this offset, where its first seven terms give full precision.
SHIFT = 10
#: B(2k) / (2k (2k-1)) and B(2k) / (2k), where B are the Bernoulli numbers.
LOG_GAMMA_TERMS = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
DIGAMMA_TERMS = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


@cache
def terms_at_2() -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of -ln Gamma(2 - z) and of psi(2 - z) - psi(2) in powers of z.

    The derivatives of log-gamma at 2 are given by zeta(k) - 1, which decreases like 2**-k.
    """
    # SciPy is imported here because this import would make `import pboost` slow.
    from scipy.special import zetac

    orders = np.arange(2, 60)
    tails = zetac(orders)
    log_gamma = np.concatenate([[0.0, 1 - np.euler_gamma], -tails / orders])
    return log_gamma, np.concatenate([[0.0], -tails])


def log_ratio(T: FloatArray, rho: FloatArray, rest: FloatArray) -> FloatArray:
    """Return the logarithm of F(T, rho) (T + rho) / (rho (T + 1)), which has no pole at T >= 0."""
    far = T + (1 + SHIFT)
    shrink = np.log1p(-rest / far)
    total = (far - 0.5) * shrink + rest - rest * np.log(T + rho + SHIFT)
    for j, term in enumerate(LOG_GAMMA_TERMS):
        power = -1.0 - 2 * j
        total += term * far**power * np.expm1(power * shrink)
    for k in range(1, SHIFT):
        total -= np.log1p(-rest / (T + (1 + k)))
    return total + np.polynomial.polynomial.polyval(rest, terms_at_2()[0])


def tree(T: FloatArray, rho: FloatArray, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return F(T, rho) and 1 - F(T, rho). If T >= 1, both have a small relative error."""
    tail = log_ratio(T, rho, rest)
    empty = T + rho == 0
    total = np.where(empty, 1.0, T + rho)
    bound = np.minimum(np.where(T == 0, 1.0, rho * (T + 1) / total * np.exp(tail)), 1.0)
    # rho (T + 1) / (T + rho) = 1 - rest T / (T + rho)
    near_1 = -np.expm1(np.log1p(-np.minimum(rest, 0.5) * T / total) + tail)
    lack = np.where(rest <= 0.5, np.maximum(near_1, 0.0), 1 - bound)
    is_single = T == 1  # exact for a single weak classifier
    return np.where(is_single, rho, bound), np.where(is_single, rest, lack)


def doubled(levels: Array, bound: FloatArray, rest: FloatArray) -> FloatArray:
    """Return F(2, F(2, ... bound)) with `levels` levels, where F(2, rho) = rho (1 + rho) / 2."""
    for level in range(int(levels.max(initial=0))):
        # If the bound is near 1, 1 - bound is more accurate.
        high = bound >= 0.5
        next_bound, next_rest = bound * (1 + bound) / 2, rest * (3 - rest) / 2
        next_bound = np.where(high, 1 - next_rest, next_bound)
        next_rest = np.where(high, next_rest, 1 - next_bound)
        more = levels > level
        bound, rest = np.where(more, next_bound, bound), np.where(more, next_rest, rest)
    return bound


def log_bound(bound: FloatArray, rest: FloatArray) -> FloatArray:
    """Return the logarithm of a bound, given the bound and 1 - bound."""
    low = bound < 0.5
    with np.errstate(divide="ignore"):
        return np.where(low, np.log(bound), np.log1p(-np.where(low, 0.0, rest)))


def digamma_difference(T: FloatArray, rho: FloatArray, rest: FloatArray) -> FloatArray:
    """Return psi(T + rho) - psi(T + 1) for T > 0."""
    far = T + (1 + SHIFT)
    shrink = np.log1p(-rest / far)
    total = shrink - 0.5 * rest / (far * (T + rho + SHIFT))
    for j, term in enumerate(DIGAMMA_TERMS):
        power = -2.0 - 2 * j
        total -= term * far**power * np.expm1(power * shrink)
    for k in range(SHIFT):
        total -= rest / (T + (1 + k)) / (T + rho + k)
    return total


def digamma_at_2(rest: FloatArray) -> FloatArray:
    """Return psi(2 - rest) - psi(2) for `rest` in [0, 1]; all terms of the sum have one sign."""
    return np.asarray(np.polynomial.polynomial.polyval(rest, terms_at_2()[1]), dtype=np.float64)


def best_sizes(T: int, rho: float) -> tuple[int, ...]:
    """Return the sizes with the smallest nested bound and a product of at most T, innermost first.

    F increases with rho, so an outermost tree of c nodes needs the best nesting of T // c weak
    classifiers inside it. F decreases with T, so among all c with the same quotient the largest is
    best. Only quotients of T are needed, because quotients of quotients of T are quotients of T.
    """
    budgets = _quotients(T)
    bound, rest = np.full(len(budgets), rho), np.full(len(budgets), 1.0 - rho)
    outer, inner = np.ones(len(budgets), np.int64), np.zeros(len(budgets), np.int64)
    for i, n in enumerate(budgets[1:].tolist(), start=1):
        parts = _quotients(n)[:-1]  # sorted: the first budget has the largest outer tree
        at = np.searchsorted(budgets, parts)
        bounds, rests = tree((n // parts).astype(np.float64), bound[at], rest[at])
        best = int(np.argmin(log_bound(bounds, rests)))
        bound[i], rest[i] = bounds[best], rests[best]
        outer[i], inner[i] = n // parts[best], at[best]
    sizes, i = [int(outer[-1])], int(inner[-1])
    while i > 0:
        sizes.append(int(outer[i]))
        i = int(inner[i])
    return tuple(reversed(sizes))


def _quotients(n: int) -> NDArray[np.int64]:
    """Return the distinct values of n // c for c = 1 ... n in ascending order."""
    few = np.arange(1, math.isqrt(n) + 1)
    return np.unique(np.concatenate([few, n // few]))
