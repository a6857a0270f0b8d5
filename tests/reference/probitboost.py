"""ProbitBoost in plain NumPy: a step is a weighted regression of the responses on each column."""

from __future__ import annotations

import numpy as np
from scipy.special import erfcx, log_ndtr


def ratio_and_excess(u):
    """Return r = phi/Phi and u + r."""
    r = np.sqrt(2 / np.pi) / erfcx(-u / np.sqrt(2))
    x = np.maximum(-u, 1.0)
    series = (1 - 2 / x**2 + 10 / x**4 - 74 / x**6 + 706 / x**8) / x
    return r, np.where(u < -50, series, u + r)


def line(x, z, w):
    """Return intercept and slope of the weighted regression of z on x, and by how much it lowers
    the squared error of a constant."""
    w = w / w.sum()
    x_mean, z_mean = w @ x, w @ z
    variance = w @ (x - x_mean) ** 2
    slope = (w @ ((x - x_mean) * (z - z_mean))) / variance
    return z_mean - slope * x_mean, slope, slope**2 * variance


def risk(f, sign, weight):
    return float(weight @ -log_ndtr(sign * f) / weight.sum())


def boost(X, sign, weight, max_iter, tol=None, safeguard=False):
    """Return intercept, slopes, columns chosen, lengths of the steps, and risks.

    A column is better only where it lowers the error by more than one before, beyond rounding.
    """
    d = X.shape[1]
    f, intercept, slopes = np.zeros(len(X)), 0.0, np.zeros(d)
    chosen, lengths, risks = [], [], [risk(f, sign, weight)]
    varies = [j for j in range(d) if X[:, j].min() < X[:, j].max()]
    for _ in range(max_iter):
        r, excess = ratio_and_excess(sign * f)
        z, w = sign / excess, weight * r * excess
        best, maximum = (w @ z / w.sum(), 0.0, -1), 0.0
        for j in varies:
            b, a, gain = line(X[:, j], z, w)
            if best[2] < 0 or gain > maximum * (1 + 1e-12):
                best, maximum = (b, a, j), gain
        b, a, j = best
        length, move = 1.0, b + (a * X[:, j] if j >= 0 else 0.0)
        if safeguard:
            maximum = risks[-1] * (1 + 1e-14)
            while length > 1e-12 and risk(f + length * move, sign, weight) > maximum:
                length /= 2
            if length <= 1e-12:
                break
        f = f + length * move
        intercept += length * b
        if j >= 0:
            slopes[j] += length * a
        chosen.append(j)
        lengths.append(length)
        risks.append(risk(f, sign, weight))
        if tol is not None and 2 * weight.sum() * abs(risks[-1] - risks[-2]) <= tol:
            break
    return intercept, slopes, chosen, lengths, risks


def filled(X, weight):
    """Return X with the weighted mean of the known values of a column where there is none, and
    these means."""
    X, means = X.astype(float), np.zeros(X.shape[1])
    for j, column in enumerate(X.T):
        known = ~np.isnan(column)
        if known.any():
            mean = np.average(column[known], weights=weight[known])
            means[j] = np.clip(mean, column[known].min(), column[known].max())
        column[~known] = means[j]
    return X, means


def boost_leaf(X, label, weight, n_classes, steps, **options):
    """Return coefficients (models, 1 + d) and steps taken; -1 and -2 for classes all and none."""
    coefficients, taken = [], []
    for k in [1] if n_classes == 2 else range(n_classes):
        sign = np.where(label == k, 1.0, -1.0)
        coefficient, count = np.zeros(1 + X.shape[1]), -1 if sign[0] > 0 else -2
        if len(set(sign)) == 2:
            b, slopes, chosen, _, _ = boost(X, sign, weight, steps, **options)
            coefficient, count = np.array([b, *slopes]), len(chosen)
        coefficients.append(coefficient)
        taken.append(count)
    return np.array(coefficients), np.array(taken)
