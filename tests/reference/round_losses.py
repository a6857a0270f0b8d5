"""Losses of rows and their derivatives, as the rounds of boosting on bins compute them."""

from __future__ import annotations

import math

import numpy as np

from pboost._core import probit

MAGIC = 1.5 * 2.0**52


def rounded(x):
    return (x + MAGIC) - MAGIC


def exp(t):
    a = np.clip(t, -707.0, 709.0)
    k = rounded(a * 1.44269504088896340736)
    x = (a - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
    c = [1.0 / math.factorial(i) for i in range(13)]
    xx = x * x
    x4 = xx * xx
    p0 = (1.0 + x) + xx * (c[2] + x * c[3])
    p4 = (c[4] + x * c[5]) + xx * (c[6] + x * c[7])
    p8 = (c[8] + x * c[9]) + xx * (c[10] + x * c[11])
    p = p0 + x4 * (p4 + x4 * (p8 + x4 * c[12]))
    return np.where(t > 709.0, np.inf, p * np.ldexp(1.0, k.astype(int)))


def log_1_plus(e):
    s = e / (2.0 + e)
    z = s * s
    zz, c = z * z, [1.0 / (2 * i + 1) for i in range(16)]
    z4 = zz * zz
    part = [(c[i] + z * c[i + 1]) + zz * (c[i + 2] + z * c[i + 3]) for i in (0, 4, 8, 12)]
    return 2.0 * s * ((part[0] + z4 * part[1]) + (z4 * z4) * (part[2] + z4 * part[3]))


OF_RESIDUALS = (
    *("squared_error", "absolute_error", "quantile", "huber"),
    *("expectile", "mape", "log_cosh"),
)
UNCURVED = ("hinge", "absolute_error", "quantile", "huber", "mape", "log_cosh")
LOG_LINKS = ("poisson", "gamma", "tweedie")


def margins(loss, y, f, step=0.0):
    """Return what the loss is a function of: residuals, of counts the scores, or margins."""
    if loss.name in OF_RESIDUALS:
        return (f - y) + step
    if loss.name == "shares":
        up, down = exp(np.array([step, -step]))
        return np.where(f < 0, -shared(-f, down), shared(f, up))
    return f + step if loss.name in LOG_LINKS else y * (f + step)


def shared(share, odds):
    """Return shares whose odds are multiplied."""
    return share * odds / ((1.0 - share) + share * odds)


def signed(loss, y, fall):
    """Return the gradient in f."""
    return -fall if loss.name in (*OF_RESIDUALS, *LOG_LINKS, "shares") else -y * fall


def of_numbers(loss, u, y):
    """Return what `derivatives` does, of losses without curvature, of numbers and of shares."""
    zero = np.zeros(len(u))
    if loss.name in LOG_LINKS:
        return of_means(loss, u, y)
    if loss.name == "shares":
        return -u, np.abs(u) * (1.0 - np.abs(u)), zero
    if loss.name == "hinge":
        return (u < 1.0) * 1.0, zero, np.where(u < 1.0, 1.0 - u, 0.0)
    size = np.abs(u)
    if loss.name == "expectile":
        bend = np.where(u > 0.0, 2.0 - 2.0 * loss.alpha, 2.0 * loss.alpha)
        return -bend * u, bend, 0.5 * bend * u * u
    if loss.name == "log_cosh":
        e = exp(-2.0 * size)
        q = 1.0 / (1.0 + e)
        fall = np.where(u > 0.0, (e - 1.0) * q, (1.0 - e) * q)
        return fall, 4.0 * e * q * q, size + log_1_plus(e) - 0.69314718055994531
    if loss.name == "mape":
        factor = per_target(y)
        fall = np.where(u > 0.0, -factor, np.where(u < 0.0, factor, 0.0))
        return fall, zero, factor * size
    if loss.name == "huber":
        near = np.minimum(size, loss.delta)
        fall = np.where(u > 0.0, -near, near)
        return fall, (size <= loss.delta) * 1.0, near * (size - 0.5 * near)
    share, other = (
        (1.0, 1.0) if loss.name == "absolute_error" else (loss.quantile, 1.0 - loss.quantile)
    )
    fall = np.where(u > 0.0, -other, np.where(u < 0.0, share, 0.0))
    return fall, zero, np.where(u > 0.0, other * u, -share * u)


def of_means(loss, u, y):
    """Return what `derivatives` does, of losses with a log link."""
    if loss.name == "poisson":
        mean = exp(u)
        return y - mean, mean, mean - y * u
    if loss.name == "gamma":
        ratio = y * exp(-u)
        return ratio - 1.0, ratio, u + ratio
    less, more = loss.power - 1.0, 2.0 - loss.power
    a, b = y * exp(-less * u), exp(more * u)
    return a - b, less * a + more * b, a / less + b / more


def focal(loss, u):
    """Return what `derivatives` does, of the focal loss."""
    gamma, e = loss.gamma, exp(-np.abs(u))
    more, less, rest = e / (1.0 + e), 1.0 / (1.0 + e), log_1_plus(e)
    p, q = np.where(u > 0.0, less, more), np.where(u > 0.0, more, less)
    value = rest + np.where(u < 0.0, -u, 0.0)
    power = exp(-gamma * (rest + np.where(u > 0.0, u, 0.0)))
    bend = p * power * (gamma * value * (gamma * p - q) + (2.0 * gamma + 1.0) * q)
    return power * (gamma * p * value + q), bend, power * value


def per_target(y):
    """Return the factor of the absolute percentage error of each target."""
    size = np.abs(y)
    return np.where(size > 1.0, 1.0 / np.maximum(size, 1.0), 1.0)


def farthest(loss, y, f):
    """Return the margin of largest loss or the largest residual; of means what bounds them."""
    u = margins(loss, y, f)
    if loss.name in LOG_LINKS:
        scaled = {"poisson": lambda: y, "gamma": lambda: y * exp(-u)}
        target = scaled.get(loss.name, lambda: y * exp((1.0 - loss.power) * u))()
        return u.max(), target.max(), np.abs(u).max()
    if loss.name == "mape":
        return (np.abs(u) * per_target(y)).max(), 0.0, 0.0
    return (np.abs(u).max() if loss.name in (*OF_RESIDUALS, "shares") else u.min()), 0.0, 0.0


def bounds(loss, far, step):
    """Return how steep, how curved and how large the loss is at most."""
    u = far[0]
    if loss.name in LOG_LINKS:
        return bounds_of_means(loss, far, step)
    if loss.name == "mape":
        return 1.0, 0.0, u + abs(step)
    if loss.name == "expectile":
        most, u = 2.0 * max(loss.alpha, 1.0 - loss.alpha), u + abs(step)
        return most * u, most, 0.5 * most * u * u
    if loss.name == "shares":
        steepest = shared(u, exp(np.array([abs(step)]))[0])
        return steepest, steepest, 0.0
    u = u + abs(step) if loss.name in OF_RESIDUALS else u - abs(step)
    steepest, maximum, value = (float(x[0]) for x in derivatives(loss, np.array([u]), np.zeros(1)))
    steepest = abs(steepest)
    if loss.name == "log_loss":
        maximum = steepest
    if loss.name in ("huber", "log_cosh"):
        maximum = 1.0
    if loss.name == "focal":
        gamma = loss.gamma
        maximum = (2.0 * gamma + 1.0) * steepest
        if u < 0.0:
            steepest = 1.0 + 0.36787944117144233 * gamma
            maximum = 0.36787944117144233 * gamma * (gamma + 1.0) + 0.25 * (2.0 * gamma + 1.0)
    if loss.name == "quantile" and loss.quantile > 0.5:
        steepest, value = loss.quantile, loss.quantile * u
    return steepest, maximum, value


def bounds_of_means(loss, far, step):
    """Return what `bounds` does, of losses with a log link."""
    u, y, size = far
    if loss.name == "poisson":
        mean = exp(np.array([u + step]))[0]
        return max(mean, y), mean, mean + y * size
    if loss.name == "gamma":
        ratio = y * exp(np.array([-step]))[0]
        return max(ratio, 1.0), ratio, size + abs(step) + ratio
    p = loss.power
    a, b = y * exp(np.array([(1.0 - p) * step]))[0], exp(np.array([(2.0 - p) * (u + step)]))[0]
    return max(a, b), (p - 1.0) * a + (2.0 - p) * b, a / (p - 1.0) + b / (2.0 - p)


def derivatives(loss, u, y):
    """Return how fast the loss falls with the margin, its curvature and its value."""
    if loss.name in (*UNCURVED, *LOG_LINKS, "expectile", "shares"):
        return of_numbers(loss, u, y)
    if loss.name == "focal":
        return focal(loss, u)
    loss = loss.name
    if loss == "exponential":
        e = exp(-u)
        return e, e, e
    if loss == "log_loss":
        e = exp(-np.abs(u))
        q = 1.0 / (1.0 + e)
        fall = np.where(u > 0, e * q, q)
        return fall, e * q * q, log_1_plus(e) + np.where(u < 0, -u, 0.0)
    if loss == "squared_error":
        return -u, np.ones(len(u)), 0.5 * u * u
    ratio, excess, value = np.empty((3, len(u)))
    for function, out in zip(
        (probit.ratios, probit.excesses, probit.losses), (ratio, excess, value), strict=True
    ):
        function(np.ascontiguousarray(u), out)
    return ratio, excess * ratio, value


def slopes(loss, y, f, weight, limit):
    """Return weighted gradients and curvatures, and the sum of the losses."""
    used = weight > 0
    fall, bend, value = derivatives(loss, margins(loss, y, f), y)
    bend = np.maximum(bend, np.abs(fall) * (1.0 / limit))
    if loss.name in UNCURVED:
        bend = np.ones(len(y))
    gradient = signed(loss, y, fall)
    far = farthest(loss, y[used], f[used])
    scale = scale_of(2.0 * bounds(loss, far, 0.0)[2], used.sum())
    total = rounded(np.where(used, weight * value, 0.0) * scale).sum() / scale
    return np.where(used, weight * gradient, 0.0), np.where(used, weight * bend, 0.0), total


def scale_of(most, n):
    if not most > 0:
        return 1.0
    bits = 51
    while n > 2:
        n, bits = (n + 1) // 2, bits - 1
    return 2.0 ** min(bits - math.frexp(most)[1], 1000)
