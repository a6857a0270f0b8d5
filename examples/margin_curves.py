"""Figure 4 of [G]: margin curves on XD6 with 10, 20 and 30 % class noise.

[G] is C. Henry, R. Nock and F. Nielsen, "Real boosting à la carte with an application to boosting
oblique decision trees", IJCAI (2007). For each model of `MODELS`, the curve of margins on the test
folds of a 10-fold cross-validation beside that of the logistic model, which knows the noise. Run as
``python margin_curves.py --out folder``: prints the numbers and writes a PNG, for which matplotlib
is needed.

The paper draws tanh(y H / 2) of its models and y (2 p - 1) of the logistic model. With H half the
log odds these are two scales: a model that is right looks as if there were more noise. The upper
row of the figure has one scale, the lower row has both, as the paper has.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pboost as pb

NOISES = (0.1, 0.2, 0.3)
FOLDS = 10
FILE = "margin_curves.png"
#: A margin at each hundredth of [-1, 1].
THETAS = np.linspace(-1, 1, 201).round(2)
MODELS: dict[str, Callable[..., pb.models.DecisionGraph]] = {
    "tree of 39 nodes": partial(pb.fit_boosted_tree, max_nodes=39),  # that many can hold the rule
    "15 nodes, 3 columns": partial(
        pb.fit_boosted_tree, max_nodes=15, weak_learner=pb.weak.affine(n_directions=300, n_terms=3)
    ),
    "BoostODT, depth 4": pb.fit_oblique_tree,
    "100 stumps": partial(pb.fit_adaboost, n_estimators=100),
}
LOGISTIC = "logistic model"

#: Mean curves at THETAS on the scales "probability" and "half", (2, 201), by model.
Curves = dict[str, NDArray[np.float64]]


def curves_at(noise: float, n: int, repeats: int) -> Curves:
    """Return the mean curves of all models and of the logistic model, over draws of `n` rows."""
    result: dict[str, list[NDArray[Any]]] = {name: [] for name in (LOGISTIC, *MODELS)}
    # tanh(yH) is at most 2 t / (1 + t^2) where tanh(yH/2) is at most t: one fit serves both scales.
    both = np.concatenate([THETAS, 2 * THETAS / (1 + THETAS**2)])
    for seed in range(repeats):
        X, y = pb.datasets.xd6(n, rng=seed, noise=noise)
        p = pb.datasets.xd6_probability(X, noise=noise)
        scales = [
            pb.inspection.logistic_margin_curve(p, THETAS, scale=s) for s in ("probability", "half")
        ]
        result[LOGISTIC].append(np.stack(scales))
        for name, fit in MODELS.items():
            curve = pb.inspection.margin_curve(
                fit, X, y, both, cv=FOLDS, scale="probability", rng=seed
            )
            result[name].append(curve.reshape(2, -1))
    return {name: np.mean(rows, axis=0) for name, rows in result.items()}


def seeming_noise(curve: NDArray[np.float64]) -> float:
    """Return the noise of the stairs whose step is at the median size of the margins."""
    # To the hundredth, the share of margins of at most this size.
    below = np.append(0.0, curve[:-1])[::-1]
    size = THETAS[np.argmax((curve - below >= 0.5) & (THETAS >= 0))]
    return round((1 - float(size)) / 2, 3)


def table(found: dict[float, Curves]) -> str:
    """Return the numbers of all curves but those of the logistic model."""
    lines = [
        f"{'':20}{'':>8}{'test':>9}{'mean distance':>15}{'seems to add':>15}{'as drawn':>11}",
        f"{'':20}{'noise':>8}{'error':>9}{'from logistic':>15}{'(one scale)':>15}{'in [G]':>11}",
    ]
    for name in MODELS:
        for noise in NOISES:
            curve, drawn = found[noise][name]
            error = curve[THETAS == 0][0]
            distance = np.abs(curve - found[noise][LOGISTIC][0]).mean()
            lines.append(
                f"{name:20}{noise:8.0%}{error:9.1%}{distance:15.3f}"
                f"{seeming_noise(curve) - noise:+15.1%}{seeming_noise(drawn) - noise:+11.1%}"
            )
    return "\n".join(lines) + "\n"


def draw(found: dict[float, Curves], path: Path) -> None:
    """Write the figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6), layout="constrained")
    rows = ["one scale: y(2p-1)", "as in [G]: tanh(yH/2), logistic model y(2p-1)"]
    axes = figure.subplots(len(rows), len(NOISES))
    for scale, title in enumerate(rows):
        for ax, (noise, of) in zip(axes[scale], found.items(), strict=True):
            curves = {name: of[name][scale] for name in MODELS}
            pb.plot.margin_curve(THETAS, curves, ax=ax)
            ax.step(THETAS, of[LOGISTIC][0], "k", where="post", linewidth=2.5, label=LOGISTIC)
            ax.set_title(f"noise {noise:.0%}\n{title}", fontsize=9)
            ax.get_legend().remove()
    axes[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=80)


def main(arguments: list[str] | None = None) -> None:
    """Print the numbers and write the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=10, help="sets drawn per level of noise")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where to write the figure")
    options = parser.parse_args(arguments)
    result = {noise: curves_at(noise, options.rows, options.repeats) for noise in NOISES}
    print(f"{options.repeats} sets of {options.rows} rows, {FOLDS}-fold cross-validation")
    print(table(result), end="")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        draw(result, options.out / FILE)


if __name__ == "__main__":
    main()
