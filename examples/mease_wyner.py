"""The simulation of subagged boosted probit trees: test error against each of four options.

The source is T. Qin and W.-M. Huang, "On subbagging boosted probit model trees", section 6.1 and
Figure 2, after D. Mease and A. Wyner, "Evidence contrary to the statistical view of boosting", J.
Mach. Learn. Res. 9 (2008). Rows are uniform on the unit cube of 10 dimensions; the label is 1 with
probability q + (1 - 2 q) [x_1 + ... + x_5 > 5/2], where q, the error of Bayes' rule, is not printed
in the source and 0.1 here. 2,000 training rows, 10,000 test rows, 5 members, 5 rounds and 5 steps
of trees of depth 3 with 20 rows in a leaf, 70 % of the rows for each member; one of these is
varied. Run as ``python mease_wyner.py --out folder``: prints a table and writes one PNG, for which
matplotlib is needed. The curves are means over several data sets.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pboost as pb

FILE = "mease_wyner.png"
NOISE = 0.1
TRAINING, TEST = 2000, 10_000
SETS, QUICK_SETS = 5, 1
#: The options that are not varied.
BENCHMARK: dict[str, Any] = {
    "n_estimators": 5,
    "n_boosting_rounds": 5,
    "max_iter": 5,
    "max_samples": 0.7,
    "max_depth": 3,
    "min_samples_leaf": 20,
    "min_samples_split": 2,
    "complexity": 0.0,
    "tol": None,
    "safeguard": True,
    "voting": "hard",
}
GRIDS: dict[str, list[float]] = {
    "n_estimators": [*range(1, 11), *range(15, 101, 5)],
    "n_boosting_rounds": [*range(1, 11), *range(15, 51, 5)],
    "max_iter": [*range(1, 11), *range(15, 101, 5)],
    "max_samples": [0.05, *np.linspace(0.1, 1.0, 10).round(2).tolist()],
}
QUICK_GRIDS: dict[str, list[float]] = {
    "n_estimators": [1, 5, 10],
    "n_boosting_rounds": [1, 5],
    "max_iter": [1, 5, 20],
    "max_samples": [0.1, 0.7, 1.0],
}
TITLES = {
    "n_estimators": "members $M$",
    "n_boosting_rounds": "rounds of AdaBoost $T$",
    "max_iter": "steps of ProbitBoost $B$",
    "max_samples": r"share of the rows $\alpha$",
}

#: Test errors by value, by option.
Curves = dict[str, dict[float, float]]


def curve(option: str, grid: list[float], seed: int) -> np.ndarray:
    """Return the test errors for the values of an option, on one data set."""
    generator = np.random.default_rng(seed)
    X, y = pb.datasets.mease_wyner(TRAINING, generator, q=NOISE)
    new, truth = pb.datasets.mease_wyner(TEST, generator, q=NOISE)
    fit = partial(pb.fit_sbpmt, X, y, rng=seed)
    if option == "n_estimators":
        # The members of a small ensemble are the first of a large one.
        model = fit(**{**BENCHMARK, "n_estimators": int(max(grid))})
        stages = pb.staged_decision_function(model, new)
        errors = [np.mean((score > 0) != (truth > 0)) for score in stages]
        return np.array([errors[int(size) - 1] for size in grid])
    models = (fit(**{**BENCHMARK, option: value}) for value in grid)
    return np.array([np.mean(pb.predict(model, new) != truth) for model in models])


def curves(quick: bool) -> Curves:
    """Return the mean test error for each value of each option."""
    result: Curves = {}
    for option, grid in (QUICK_GRIDS if quick else GRIDS).items():
        runs = [curve(option, grid, seed) for seed in range(QUICK_SETS if quick else SETS)]
        result[option] = dict(zip(grid, np.mean(runs, axis=0).tolist(), strict=True))
    return result


def text(found: Curves) -> str:
    """Return the test errors in %."""
    lines = []
    for option, errors in found.items():
        lines.append(option)
        lines += [f"  {value:6g}  {100 * error:6.2f}" for value, error in errors.items()]
    return "\n".join(lines) + "\n"


def write_figure(path: Path, found: Curves) -> None:
    """Draw the four curves."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.5), layout="constrained")
    for i, (option, errors) in enumerate(found.items()):
        axes = figure.add_subplot(2, 2, i + 1, xlabel=TITLES[option], ylabel="test error")
        axes.plot(list(errors), list(errors.values()), marker=".", color="C0")
        axes.axhline(NOISE, color="0.6", linewidth=0.8)
        axes.set_ylim(bottom=0.09)
    figure.savefig(path, dpi=90, metadata={"Software": None})


def main(argv: list[str] | None = None) -> None:
    """Print the table and write the figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the figure")
    parser.add_argument("--quick", action="store_true", help="one data set, few values")
    options = parser.parse_args(argv)
    result = curves(options.quick)
    print(text(result), end="")
    options.out.mkdir(parents=True, exist_ok=True)
    write_figure(options.out / FILE, result)


if __name__ == "__main__":
    main()
