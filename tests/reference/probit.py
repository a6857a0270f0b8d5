"""The probit loss in 60 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext

DIGITS = 60
PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899863"
)


def tail(x):
    """Return the probability that a standard normal number exceeds x >= 0, over its density.

    The series of Phi(x) - 1/2 for small x, in digits enough for the difference; for large x the
    continued fraction 1/(x + 1/(x + 2/(x + ...))).
    """
    if x > 8:
        value = x
        for k in range(4000 if x < 60 else 400, 0, -1):
            value = x + k / value
        return 1 / value
    density = (-x * x / 2).exp() / (2 * PI).sqrt()
    term, total, k = x, x, 1
    while term > total * Decimal(10) ** -DIGITS * Decimal(10) ** -20:
        k += 2
        term *= x * x / k
        total += term
    return (Decimal("0.5") - density * total) / density


def probit(m):
    """Return -ln Phi(m), r = phi/Phi and m + r for a float m, as floats."""
    with localcontext() as context:
        context.prec = DIGITS + 30
        m = Decimal(m)
        if m <= 0:
            r = 1 / tail(-m)
            loss = m * m / 2 + (2 * PI).ln() / 2 + r.ln()
        else:
            density = (-m * m / 2).exp() / (2 * PI).sqrt()
            above = density * tail(m)
            r = density / (1 - above)
            loss = sum(above**k / k for k in range(1, 5)) if above < 1e-30 else -(1 - above).ln()
        return float(loss), float(r), float(m + r)
