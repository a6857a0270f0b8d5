"""Losses of numbers on six problems: absolute errors on new rows, and what quantiles cover.

Run as ``python regression_losses.py``: prints a table; ``--rows`` and ``--seeds`` say how much.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import pboost as pb

LOSSES = ("squared_error", "absolute_error", "huber")
SHARES = (0.05, 0.5, 0.95)


def mean_of(X: np.ndarray) -> np.ndarray:
    """Return Friedman's first function, of five of ten columns in [0, 1]."""
    bent = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return bent + 10 * X[:, 3] + 5 * X[:, 4]


def _outliers(r: np.random.Generator, X: np.ndarray) -> np.ndarray:
    noise = r.normal(size=len(X))
    hit = r.random(len(X)) < 0.05
    return np.where(hit, 50 * r.normal(size=len(X)), noise)


NOISES: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
    "normal": lambda r, X: r.normal(size=len(X)),
    "Student, 3 degrees": lambda r, X: r.standard_t(3, size=len(X)),
    "Student, 1.5 degrees": lambda r, X: r.standard_t(1.5, size=len(X)),
    "5 % outliers": _outliers,
    "log-normal": lambda r, X: np.exp(1.5 * r.normal(size=len(X))),
    "normal, spread by a column": lambda r, X: 5 * X[:, 5] * r.normal(size=len(X)),
}


def problem(noise: str, seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in [0, 1]^10 and numbers with noise."""
    r = np.random.default_rng(seed)
    X = r.uniform(size=(rows, 10))
    return X, mean_of(X) + NOISES[noise](r, X)


def measured(noise: str, seed: int, rows: int) -> list[float]:
    """Return the mean absolute error of each loss, and the share at or below each quantile."""
    X, y = problem(noise, seed, rows)
    new, truth = problem(noise, seed + 1000, 10_000)
    result = []
    for loss in (*LOSSES, *(pb.losses.Quantile(share) for share in SHARES)):
        f = pb.predict(
            pb.fit_gradient_boosting(X, y, loss=loss, n_estimators=200, max_depth=3), new
        )
        is_quantile = isinstance(loss, pb.losses.Quantile)
        result.append(float(np.mean(truth <= f) if is_quantile else np.mean(np.abs(truth - f))))
    return result


def table(rows: int, seeds: int) -> str:
    """Return the means over seeds of each problem."""
    heads = [*LOSSES, *(f"q = {share}" for share in SHARES)]
    lines = ["noise".ljust(28) + "".join(head.rjust(10) for head in heads)]
    for noise in NOISES:
        mean = np.mean([measured(noise, seed, rows) for seed in range(seeds)], axis=0)
        lines.append(noise.ljust(28) + "".join(f"{number:10.3f}" for number in mean))
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000, help="rows to train on")
    parser.add_argument("--seeds", type=int, default=10, help="data sets of each problem")
    options = parser.parse_args(argv)
    print(table(options.rows, options.seeds), end="")


if __name__ == "__main__":
    main()
