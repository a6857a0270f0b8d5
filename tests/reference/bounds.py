"""The bounds to 40 digits and more, in decimal arithmetic, and the best nesting by enumeration."""

from __future__ import annotations

import functools
import itertools
from decimal import Decimal, localcontext
from fractions import Fraction

DIGITS = 60
#: Stirling's series is applied beyond this point, where 30 terms give all digits.
FAR = 40


@functools.cache
def bernoulli(n):
    """Return B(0) ... B(n), from sum over k < m + 1 of binomial(m + 1, k) B(k) = 0."""
    numbers = [Fraction(1)]
    for m in range(1, n + 1):
        binomial, total = Fraction(1), Fraction(0)
        for k in range(m):
            total += binomial * numbers[k]
            binomial = binomial * (m + 1 - k) / (k + 1)
        numbers.append(-total / (m + 1))
    return numbers


def in_decimal(function):
    """Let a function compute with DIGITS digits, on the exact values of its floats."""

    @functools.wraps(function)
    def wrapped(*arguments):
        with localcontext() as context:
            context.prec = DIGITS
            return function(*(Decimal(argument) for argument in arguments))

    return wrapped


@functools.cache
@in_decimal
def even_terms():
    """Return (2k, B(2k)) for k = 1 ... 30."""
    numbers = enumerate(bernoulli(60))
    return [(n, Decimal(b.numerator) / b.denominator) for n, b in numbers if n % 2 == 0 and n]


@in_decimal
def log_gamma(z):
    """Return ln Gamma(z) + (a constant), for z > 0."""
    passed = Decimal(1)
    while z < FAR:
        passed *= z
        z += 1
    total = (z - Decimal("0.5")) * z.ln() - z - passed.ln()
    return total + sum(b / (n * (n - 1) * z ** (n - 1)) for n, b in even_terms())


@in_decimal
def digamma(z):
    total = Decimal(0)
    while z < FAR:
        total -= 1 / z
        z += 1
    total += z.ln() - 1 / (2 * z)
    return total - sum(b / (n * z**n) for n, b in even_terms())


@in_decimal
def tree_bound(T, rho):
    """Return Gamma(T + rho) Gamma(1) / (Gamma(T + 1) Gamma(rho))."""
    if T == 0:
        return Decimal(1)
    if rho == 0:
        return Decimal(0)
    above = log_gamma(T + rho) + log_gamma(Decimal(1))
    return (above - log_gamma(T + 1) - log_gamma(rho)).exp()


@in_decimal
def rate_simple(T, rho):
    return tree_bound(T, rho) * (digamma(T + rho) - digamma(T + 1))


@in_decimal
def rate_matryoshka(T, C):
    """Return equation 14 with psi(C) + 1 / C = psi(1 + C)."""
    return C / T * (digamma(1 + C) - 1 - digamma(Decimal(1)))


@in_decimal
def step_factor(error, step):
    """Return how much one round with this weighted error lowers the bound on the training error.

    The weights of misclassified rows are multiplied by r = ((1 - e) / e)**step. This is the sum of
    the new weights, (1 - e) + e r, over the square root of r, for 0 < e < 1.
    """
    ratio = ((1 - error) / error) ** step
    return ((1 - error) + error * ratio) / ratio.sqrt()


def nested_bound(sizes, rho):
    for size in sizes:
        rho = tree_bound(size, rho)
    return rho


def product(T, rho):
    """Return equation 9, corrected, as a fraction: T an integer, rho a fraction."""
    result = Fraction(1)
    for t in range(T):
        result *= (t + rho) / (t + 1)
    return result


def shapes(T):
    """Yield all sequences of sizes >= 2 whose product is at most T, T >= 2."""
    for size in range(2, T + 1):
        yield (size,)
        yield from ((size, *outer) for outer in (shapes(T // size) if T // size > 1 else ()))


def best_nesting(T, rho):
    """Return the least bound of all shapes, and the shapes that reach it."""

    def bound(sizes):
        return functools.reduce(lambda inner, size: product(size, inner), sizes, Fraction(rho))

    ranked = sorted((bound(sizes), sizes) for sizes in shapes(T))
    return next((value, [s for _, s in same]) for value, same in itertools.groupby(ranked, _first))


def _first(pair):
    return pair[0]
