"""Losses in many digits, and their minimisation on fine grids."""

from __future__ import annotations

from decimal import MAX_EMAX, Decimal, localcontext

import numpy as np

from reference.probit import probit


def exponential(m):
    return (-m).exp(), -(-m).exp(), (-m).exp()


def log_loss(m):
    p = 1 / (1 + m.exp())
    # ln(1 + x) loses all digits of a small x.
    x = (-m).exp()
    loss = x - x * x / 2 if x < Decimal("1e-40") else (1 + x).ln()
    return loss, -p, p / (1 + x)


def focal(m):
    """Return the focal loss of gamma = 2; a negative second derivative counts as 0."""
    value, slope, _ = log_loss(m)
    p, q = 1 + slope, -slope  # of the label, and of the other
    return (
        q**2 * value,
        -(q**2) * (2 * p * value + q),
        max(p * q**2 * (2 * value * (2 * p - q) + 5 * q), Decimal(0)),
    )


def hinge(m):
    return max(Decimal(0), 1 - m), Decimal(-1 if m < 1 else 0), None


def squared_error(m):
    return (1 - m) ** 2 / 2, m - 1, Decimal(1)


def derivatives(name, margin):
    """Return loss, first and second derivative in the margin, of labels -1 and +1, as floats."""
    if name == "probit":
        loss, ratio, excess = probit(margin)
        return loss, -ratio, ratio * excess
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 120, MAX_EMAX, -MAX_EMAX
        actual = globals()[name](Decimal(margin))
        return tuple(None if v is None else float(v) for v in actual)


def best_step(loss, y, f, weight, direction, lowest, highest):
    """Return the step of least loss by a grid that is made finer around its best point."""
    for _ in range(12):
        steps = np.linspace(lowest, highest, 401)
        total = [float((weight * loss.value(y, f + s * direction)).sum()) for s in steps]
        k = int(np.argmin(total))
        lowest, highest = steps[max(k - 1, 0)], steps[min(k + 1, 400)]
    return steps[k], total[k]
