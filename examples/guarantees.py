"""Coverage of error bounds and prediction sets for new rows, by simulation.

``python examples/guarantees.py`` prints the table; ``--rst FILE`` writes it for the documentation,
and ``--repetitions N`` changes the number of repetitions from 10,000. No model is fitted: only the
errors and probabilities of the calibration rows matter, and these are drawn from a known
distribution. The coverage of the Clopper-Pearson bound is computed exactly.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import pboost as pb
from pboost.bounds._binomial import most_errors

#: Number of repetitions per block.
BLOCK = 1000
Row = tuple[str, float, float, float]


def clopper_pearson(n: int, delta: float, rates: NDArray[Any]) -> tuple[float, float]:
    """Return the exact minimum and maximum coverage of the upper bound over these rates."""
    k = np.arange(n + 1)
    upper = pb.bounds.clopper_pearson_upper(k, n, confidence_level=1 - delta)
    covered = [stats.binom.pmf(k, n, rate)[upper >= rate].sum() for rate in rates]
    return min(covered), max(covered)


def learn_then_test(
    n: int, limit: float, delta: float, repetitions: int, rng: np.random.Generator
) -> float:
    """Return how often a threshold chosen on n positive rows keeps the rate below the limit."""
    allowed, kept = most_errors(n, limit, delta), 0
    for start in range(0, repetitions, BLOCK):
        size = min(BLOCK, repetitions - start)
        # With uniform probabilities, the rate of a threshold is the threshold.
        own = np.partition(rng.random((size, n)), allowed, axis=1)
        kept += np.count_nonzero(own[:, allowed] <= limit)
    return kept / repetitions


def sets(
    n: int, alpha: float, levels: int, repetitions: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return how often sets contain the true class, with random and with conservative ties.

    `levels` is the number of distinct probabilities of the true class; 0 means no ties.
    """
    random = conservative = 0
    for start in range(0, repetitions, BLOCK):
        size = min(BLOCK, repetitions - start)
        score = rng.random((size, n + 1))
        if levels:
            score = np.floor(score * levels)
        worse = (score[:, :n] < score[:, n:]).sum(axis=1)
        equal = (score[:, :n] == score[:, n:]).sum(axis=1)
        minimum = alpha * (n + 1)
        random += np.count_nonzero(worse + rng.integers(0, equal + 1) + 1 > minimum)
        conservative += np.count_nonzero(worse + equal + 1 > minimum)
    return random / repetitions, conservative / repetitions


def pac_bayes(n: int, rate: float, delta: float, repetitions: int, rng: Any) -> float:
    """Return how often the PAC-Bayes bound holds for a single base learner."""
    errors = rng.binomial(n, rate, size=repetitions)
    return float(
        np.mean(pb.bounds.pac_bayes_bound(errors / n, n, confidence_level=1 - delta) >= rate)
    )


def coverages(repetitions: int) -> list[Row]:
    """Return name, target, coverage and standard error of each method."""
    rng, rows = np.random.default_rng(0), list[Row]()
    for n in (100, 1000, 5000):
        low, high = clopper_pearson(n, 0.05, np.linspace(0.05, 0.5, 91))
        rows += [(f"Clopper and Pearson, n = {n}, least", 0.95, low, 0.0)]
        rows += [(f"Clopper and Pearson, n = {n}, largest", 0.95, high, 0.0)]

    def add(what: str, asked: float, found: float) -> None:
        rows.append((what, asked, found, float(np.sqrt(asked * (1 - asked) / repetitions))))

    for n, limit in ((200, 0.02), (2000, 0.02), (2000, 0.1)):
        result = learn_then_test(n, limit, 0.05, repetitions, rng)
        add(f"Learn then test, n = {n}, limit {limit:.0%}", 0.95, result)
    for n, levels in ((49, 0), (49, 5), (500, 0), (500, 20)):
        random, conservative = sets(n, 0.1, levels, repetitions, rng)
        many = f"{levels} values" if levels else "no ties"
        add(f"Label sets, n = {n}, {many}, ties random", 0.9, random)
        add(f"Label sets, n = {n}, {many}, ties conservative", 0.9, conservative)
    for rate in (0.05, 0.3):
        result = pac_bayes(1000, rate, 0.05, repetitions, rng)
        add(f"PAC-Bayes, n = 1000, rate {rate:.0%}", 0.95, result)
    return rows


def looseness() -> list[tuple[str, float]]:
    """Return several bounds on the error of one AdaBoost model, by method."""
    X, y = pb.datasets.twonorm(20_000, rng=0)
    model = pb.fit_adaboost(X[:10_000], y[:10_000], n_estimators=100)
    cal = slice(10_000, 11_000)
    bounds = pb.error_bound(model, X[cal], y[cal])
    margin = pb.inspection.normalized_margins(model, X[:10_000], y[:10_000])
    theta = np.linspace(0.02, 1, 50)
    vc = 2 * (np.log2(X.shape[1]) + 1)
    by_margin = pb.bounds.margin_generalization_bound(
        [np.mean(margin <= t) for t in theta], 10_000, theta, vc=vc, confidence_level=0.95
    )
    return [
        ("error on 9,000 other rows", float(np.mean(pb.predict(model, X[11_000:]) != y[11_000:]))),
        ("error on 1,000 calibration rows", bounds.error),
        ("Clopper and Pearson, the same rows", bounds.upper),
        ("PAC-Bayes, the same rows", bounds.pac_bayes),
        ("margins of the 10,000 training rows", float(np.min(by_margin))),
    ]


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table of reStructuredText."""
    width = [max(len(row[k]) for row in (header, *rows)) for k in range(len(header))]
    rule = "  ".join("=" * w for w in width)

    def line(row: tuple[str, ...]) -> str:
        return "  ".join(cell.ljust(w) for cell, w in zip(row, width, strict=True)).rstrip()

    return "\n".join([rule, line(header), rule, *map(line, rows), rule])


def main() -> None:
    """Print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=10_000)
    parser.add_argument("--rst", type=Path)
    options = parser.parse_args()
    result = [
        (what, f"{asked:.0%}", f"{share:.2%}", f"{error:.2%}" if error else "exact")
        for what, asked, share, error in coverages(options.repetitions)
    ]
    often = table(("what", "asked", "holds", "standard error"), result)
    loose = [(what, f"{value:.2%}") for what, value in looseness()]
    text = (
        f"{often}\n\nThe next table compares the bounds for AdaBoost with 100 stumps on 10,000 "
        "rows of twonorm, at a confidence level of 95 %:\n\n"
        f"{table(('bound', 'error at most'), loose)}\n"
    )
    if options.rst:
        options.rst.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
