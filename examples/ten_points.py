"""The AdaBoost example of [L]: three rounds on ten points, their errors and votes.

[L] are the lecture notes "Tree-based learning and ensemble methods". The coordinates of the figure
there are not printed; these give the same errors. Run as ``python ten_points.py --out folder``:
prints a table and writes one PNG, for which matplotlib is needed.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pboost as pb

FILE = "ten_points.png"
ROUNDS = 3
PLUS = [(1, 3), (2, 1), (4, 8), (5, 9), (7, 7)]
MINUS = [(3, 4), (5, 2), (6, 5), (9, 8), (8, 3)]
X, Y = np.array(PLUS + MINUS, dtype=float), np.repeat([1, -1], 5)
#: Side of the square that is drawn.
SIDE = 10.0


@dataclass(frozen=True)
class Round:
    """A round: its stump, the weights it sees, its weighted error and its vote."""

    column: int
    threshold: float
    answer: np.ndarray
    weight: np.ndarray
    error: float
    alpha: float


def fit() -> pb.models.DecisionGraph:
    """Return the model: discrete AdaBoost of stumps of least error."""
    stumps = pb.weak.stump("error")
    return pb.fit_adaboost(
        X, Y, n_estimators=ROUNDS, weak_learner=stumps, votes="symmetric", smoothing=0
    )


def rounds(model: pb.models.DecisionGraph) -> list[Round]:
    """Return the rounds of a model, by the definitions: weights times exp(-alpha y h)."""
    result, weight = [], np.full(len(Y), 1 / len(Y))
    for column, threshold, votes in zip(model.feature, model.threshold, model.vote, strict=True):
        vote = np.where(X[:, column] > threshold, votes[1], votes[0])
        answer, alpha = np.sign(vote), float(abs(votes[0]))
        error = float(weight[answer != Y].sum())
        result.append(Round(int(column), float(threshold), answer, weight, error, alpha))
        weight = weight * np.exp(-alpha * answer * Y)
        weight = weight / weight.sum()
    return result


def table(model: pb.models.DecisionGraph) -> str:
    """Return the rounds as text."""
    lines = ["round  stump         error   alpha  errors so far"]
    stages = pb.staged_predict(model, X)
    for t, (first, labels) in enumerate(zip(rounds(model), stages, strict=True), 1):
        stump = f"x[{first.column}] <= {first.threshold:g}"
        wrong = int((labels != Y).sum())
        lines.append(f"{t:<6} {stump:<12}  {first.error:.3f}   {first.alpha:.3f}  {wrong}")
    return "\n".join(lines) + "\n"


def write_figure(path: Path, model: pb.models.DecisionGraph) -> None:
    """Draw each round, points as large as their weights, and the three together."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.15), layout="constrained")
    panels = figure.subplots(1, ROUNDS + 1)
    ticks = np.linspace(0, SIDE, 401)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    for t, (axes, single) in enumerate(zip(panels[:ROUNDS], rounds(model), strict=True), 1):
        above = grid[:, single.column] > single.threshold
        first = single.answer[X[:, single.column] <= single.threshold][0]
        _paint(axes, np.where(above, -first, first), single.weight)
        wrong = single.answer != Y
        axes.scatter(*X[wrong].T, s=400, facecolors="none", edgecolors="black")
        axes.set_title(f"round {t}: ε = {single.error:.2f}, α = {single.alpha:.2f}")
    _paint(panels[ROUNDS], pb.predict(model, grid), np.full(len(Y), 1 / len(Y)))
    panels[ROUNDS].set_title("sign of the sum")
    figure.savefig(path, dpi=100, metadata={"Software": None})


def _paint(axes, side: np.ndarray, weight: np.ndarray) -> None:
    """Colour the square by the answer, and draw the points."""
    n = round(len(side) ** 0.5)
    axes.imshow(
        side.reshape(n, n),
        origin="lower",
        extent=(0, SIDE, 0, SIDE),
        cmap="coolwarm",
        vmin=-2.5,
        vmax=2.5,
    )
    for label, marker, colour in ((1, "+", "darkred"), (-1, "_", "darkblue")):
        of = label == Y
        axes.scatter(*X[of].T, s=900 * weight[of], marker=marker, color=colour, linewidths=2.5)
    axes.set(xticks=[], yticks=[])


def main(argv: list[str] | None = None) -> None:
    """Print the table and write the figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the figure")
    out = parser.parse_args(argv).out
    model = fit()
    print(table(model), end="")
    out.mkdir(parents=True, exist_ok=True)
    write_figure(out / FILE, model)


if __name__ == "__main__":
    main()
