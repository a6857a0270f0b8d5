"""Nine circles: figure 2 of [A], and error against evaluation cost of all kinds of models.

[A] is E. Grossmann, "AdaTree 2: boosting to build decision trees, or improving AdaTree with soft
splitting rules" (2004); the problem is that of its section 5. Run as ``python nine_circles.py
--output folder``: prints the numbers, says whether what is expected of them holds, and writes two
PNGs, for which matplotlib is needed. ``--quick`` is for a first look.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pboost as pb

FILES = ("nine_circles_figure2.png", "nine_circles_cost.png")
SETS, QUICK_SETS = 20, 2
TEST_ROWS, QUICK_TEST_ROWS = 2000, 500  # per class
#: Numbers of nodes at which models are looked at.
SIZES, QUICK_SIZES = (np.unique(np.geomspace(1, 400, n).round().astype(int)) for n in (40, 8))

BUDGETS = (5, 10, 20, 50, 100, 400)

Array = NDArray[np.float64]
Fit = Callable[..., pb.models.DecisionGraph]
WEAK = pb.weak.affine()  # 180 directions
ADATREE2 = pb.observation.adatree2()


@dataclass(frozen=True)
class DataSet:
    """Rows to train on and rows to test on."""

    X: Array
    y: NDArray[np.int64]
    X_test: Array
    y_test: NDArray[np.int64]


def draw(number: int, test_rows: int) -> DataSet:
    """Return a data set, the same for the same number."""
    return DataSet(
        *pb.datasets.nine_circles(200, rng=number),
        *pb.datasets.nine_circles(test_rows, rng=100 + number),
    )


# Models


def chain(X: Array, y: Any, n_estimators: int = 400) -> pb.models.DecisionGraph:
    """Fit AdaBoost."""
    return pb.fit_adaboost(X, y, n_estimators=n_estimators, weak_learner=WEAK)


def tree(X: Array, y: Any, max_nodes: int | None = 400, **options: Any) -> pb.models.DecisionGraph:
    """Fit a tree; AdaTree 1 if it has exact answers and no limit."""
    return pb.fit_boosted_tree(X, y, max_nodes=max_nodes, weak_learner=WEAK, **options)


def soft_tree(X: Array, y: Any, **options: Any) -> pb.models.DecisionGraph:
    """Fit AdaTree 2 if grown by largest error."""
    return tree(X, y, observation=ADATREE2, **options)


def doll(X: Array, y: Any, *shape: int, **options: Any) -> pb.models.DecisionGraph:
    """Fit a matryoshka with the answers of AdaTree 2."""
    options = {"weak_learner": WEAK, "observation": ADATREE2, "shape": shape or None, **options}
    return pb.fit_matryoshka(X, y, **options)


#: The models of the figure in [A].
FIGURE_2: dict[str, Fit] = {
    "AdaBoost": chain,
    "AdaTree 2": lambda X, y: soft_tree(X, y, growth="largest_error"),
    "AdaTree 1": lambda X, y: tree(X, y, max_nodes=None),
}
#: Further models, whose first nodes are those of smaller ones.
FURTHER: dict[str, Fit] = {
    "AdaTree 2, largest bound": soft_tree,
    "(16, 16)": lambda X, y: doll(X, y, 16, 16),
    "(4, 4, 4, 4)": lambda X, y: doll(X, y, 4, 4, 4, 4),
    "(2,) * 8": lambda X, y: doll(X, y, *(2,) * 8),
    "greedy": lambda X, y: doll(X, y, growth="greedy", max_nodes=256),
    '(16, 16), join="all"': lambda X, y: doll(X, y, 16, 16, join="all", learning_rate=1.0),
}
#: Collecting by sign replaces votes of earlier nodes: each size is a model of its own.
SIGN = "(2,) * L by sign"
SIGN_LEVELS = range(1, 9)
#: Models of which the certificate is looked at, smoothed as by default and not at all.
CERTIFIED: dict[str, Fit] = {
    '(2,) * 8, collect="sign"': lambda X, y, **k: doll(X, y, *(2,) * 8, collect="sign", **k),
    "(2,) * 8": lambda X, y, **k: doll(X, y, *(2,) * 8, **k),
    '(16, 16), collect="sign"': lambda X, y, **k: doll(X, y, 16, 16, collect="sign", **k),
    "(16, 16)": lambda X, y, **k: doll(X, y, 16, 16, **k),
    "tree, 256 nodes": lambda X, y, **k: soft_tree(X, y, max_nodes=256, **k),
    "tree, 400 nodes": lambda X, y, **k: soft_tree(X, y, max_nodes=400, **k),
}
SMOOTHINGS = (1e-4, 0.0)
#: Figures of a prototype: per cent of test error and evaluations per row; certificates.
PROTOTYPE = {
    "AdaTree 1": (15.0, 15),
    "AdaTree 2, largest bound": (11.7, 14),
    "AdaBoost": (8.1, 400),
    "(4, 4, 4, 4)": (8.7, 47),
}
PROTOTYPE_CERTIFICATES = {
    '(2,) * 8, collect="sign"': 0.42,
    "(2,) * 8": 0.12,
    '(16, 16), collect="sign"': 0.27,
    "(16, 16)": 0.17,
    "tree, 400 nodes": 0.20,
}


# Measurements


@dataclass(frozen=True)
class Results:
    """What was measured, set by set.

    Attributes
    ----------
    first : DataSet
        The first of the sets, to be drawn.
    sizes : ndarray of int
        Numbers of nodes at which models were looked at.
    curves : dict of ndarray (sets, sizes, 3)
        By model, training error, test error, and evaluations per test row.
    whole : dict of ndarray (sets, 3)
        By model, test error, and mean and greatest number of evaluations, of all its nodes.
    certificates : dict of ndarray (sets, 2)
        By model, with either smoothing.
    """

    first: DataSet
    sizes: NDArray[Any]
    curves: dict[str, Array]
    whole: dict[str, Array]
    certificates: dict[str, Array]


def look_at(model: pb.models.DecisionGraph, data: DataSet) -> list[float]:
    """Return training error, test error and mean cost."""
    return [
        float(np.mean(pb.predict(model, data.X) != data.y)),
        float(np.mean(pb.predict(model, data.X_test) != data.y_test)),
        float(pb.prediction_cost(model, data.X_test).mean()),
    ]


def curve(model: pb.models.DecisionGraph, data: DataSet, sizes: NDArray[Any]) -> list[list[float]]:
    """Return what the first nodes do, at each number of them; a smaller model stays as it is."""
    result: dict[int, list[float]] = {}
    for size in np.minimum(sizes, model.n_nodes):
        if size not in result:
            result[size] = look_at(pb.models.truncate(model, size), data)
    return [result[size] for size in np.minimum(sizes, model.n_nodes)]


def measure(sets: int, test_rows: int, sizes: NDArray[Any]) -> Results:
    """Fit everything on every set."""
    data_sets = [draw(number, test_rows) for number in range(sets)]
    curves, full, certificates = {}, {}, {}
    for name, fit in (FIGURE_2 | FURTHER).items():
        models = [fit(data.X, data.y) for data in data_sets]
        pairs = list(zip(models, data_sets, strict=True))
        curves[name] = np.array([curve(model, data, sizes) for model, data in pairs])
        full[name] = np.array(
            [
                [*look_at(model, data)[1:], pb.prediction_cost(model, data.X_test).max()]
                for model, data in pairs
            ]
        )
    curves[SIGN] = np.array(
        [
            [look_at(doll(d.X, d.y, *(2,) * n, collect="sign"), d) for n in SIGN_LEVELS]
            for d in data_sets
        ]
    )
    for name, fit in CERTIFIED.items():
        certificates[name] = np.array(
            [[pb.certificate(fit(d.X, d.y, smoothing=s)) for s in SMOOTHINGS] for d in data_sets]
        )
    return Results(data_sets[0], sizes, curves, full, certificates)


# Numbers


def bracketed(figure: float | None, digits: int) -> str:
    """Return the prototype's figure."""
    return "" if figure is None else f"[{figure:.{digits}f}]"


def tables(results: Results) -> str:
    """Return all numbers as text, the prototype's in brackets."""
    sets = len(next(iter(results.whole.values())))
    lines = [f"Means of {sets} data sets; sd: standard deviation of one set", ""]
    lines.append(f"{'':<28}{'test error, %':>21}{'evaluations per row':>24}")
    lines.append(f"{'':<28}{'mean':>6}{'sd':>6}{'':>9}{'mean':>8}{'longest':>9}")
    for name, values in results.whole.items():
        error, cost, longest = values.mean(axis=0)
        error_was, cost_was = PROTOTYPE.get(name, (None, None))
        lines.append(
            f"{name:<28}{100 * error:>6.1f}{100 * spread(values)[0]:>6.1f}"
            f"{bracketed(error_was, 1):>9}{cost:>8.1f}{longest:>9.1f}{bracketed(cost_was, 0):>7}"
        )
    lines += ["", f"{'':<28}{'certificate':>21}{'smoothing=0':>13}"]
    lines.append(f"{'':<28}{'mean':>15}{'sd':>6}{'mean':>7}{'sd':>6}")
    for name, values in results.certificates.items():
        (default, none), (sd, sd_none) = values.mean(axis=0), spread(values)
        lines.append(
            f"{name:<28}{default:>15.2f}{sd:>6.2f}{none:>7.2f}{sd_none:>6.2f}"
            f"{bracketed(PROTOTYPE_CERTIFICATES.get(name), 2):>8}"
        )
    return "\n".join(line.rstrip() for line in lines) + "\n"


def table_of_budgets(results: Results) -> str:
    """Return the test errors of the largest sizes of which the mean cost is within a budget."""
    lines = ["Test error, %, of the largest model within so many evaluations per row", ""]
    lines.append(f"{'':<28}" + "".join(f"{budget:>7}" for budget in BUDGETS))
    for name, values in results.curves.items():
        _, error, cost = np.moveaxis(values.mean(axis=0), 1, 0)
        line, last = f"{name:<28}", -1
        for budget in BUDGETS:
            k = int(np.flatnonzero(cost <= budget)[-1])
            # It has no more nodes to use a larger budget.
            line, last = line + (f"{100 * error[k]:>7.1f}" if k > last else " " * 7), k
        lines.append(line)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def spread(values: Array) -> Array:
    """Return the standard deviation of one set."""
    sd: Array = values.std(axis=0, ddof=1)
    return sd


def claims(results: Results) -> dict[str, bool]:
    """Return what is expected of the means, and whether it holds."""
    error = {name: 100 * values[:, 0].mean() for name, values in results.whole.items()}
    cost = {name: values[:, 1].mean() for name, values in results.whole.items()}
    C = {name: values.mean(axis=0) for name, values in results.certificates.items()}
    sign, additive, large = (
        C[name] for name in ('(2,) * 8, collect="sign"', "(2,) * 8", "tree, 256 nodes")
    )
    near = max(abs(C[name][1] - was) for name, was in PROTOTYPE_CERTIFICATES.items())
    return {
        "test error of AdaTree 1 above that of AdaTree 2 above that of AdaBoost": bool(
            error["AdaTree 1"] > error["AdaTree 2"] > error["AdaBoost"]
        ),
        "the same for AdaTree 2 grown by largest bound": bool(
            error["AdaTree 1"] > error["AdaTree 2, largest bound"] > error["AdaBoost"]
        ),
        "(4, 4, 4, 4): test error within 1 point of AdaBoost's": bool(
            error["(4, 4, 4, 4)"] <= error["AdaBoost"] + 1
        ),
        "(4, 4, 4, 4): less than a fifth of AdaBoost's cost": bool(
            cost["(4, 4, 4, 4)"] < cost["AdaBoost"] / 5
        ),
        "certificates of 256 weak classifiers: sign above tree above additive": bool(
            (sign > large).all() and (large > additive).all()
        ),
        "test errors within 1 point of the prototype's": bool(
            all(abs(error[name] - was) < 1 for name, (was, _) in PROTOTYPE.items())
        ),
        "certificates without smoothing within 0.03 of the prototype's": bool(near < 0.03),
    }


# Pictures


def band(axes: Any, x: Array, y: Array, **style: Any) -> None:
    """Draw the mean over sets in per cent, and one standard error of it to either side."""
    mean, error = 100 * y.mean(axis=0), 100 * spread(y) / np.sqrt(len(y))
    (line,) = axes.plot(x, mean, **style)
    axes.fill_between(x, mean - error, mean + error, color=line.get_color(), alpha=0.2, lw=0)


def draw_figure_2(results: Results, path: Path) -> None:
    """Draw the four panels of [A]'s figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, 7), layout="constrained")
    panels = figure.subplots(2, 2)
    (points, training), (rounds, cost) = panels
    for label, style in ((-1, "C0."), (1, "C1+")):
        of = results.first.X[results.first.y == label]
        points.plot(*of.T, style, ms=4, label=f"class {label:+}")
    points.set(aspect="equal", xticks=[], yticks=[], title="one data set")
    points.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    for name in FIGURE_2:
        training_error, error, of_rows = np.moveaxis(results.curves[name], 2, 0)
        band(training, results.sizes, training_error, label=name)
        band(rounds, results.sizes, error, label=name)
        band(cost, of_rows.mean(axis=0), error, label=name)
    training.set(xscale="log", xlabel="rounds or nodes", ylabel="training error, %", ylim=(0, 50))
    rounds.set(xscale="log", xlabel="rounds or nodes", ylabel="test error, %", ylim=(0, 50))
    cost.set(xscale="log", xlabel="mean evaluations per row", ylabel="test error, %", ylim=(0, 50))
    training.legend(fontsize=8)
    figure.savefig(path, dpi=72)


def draw_cost(results: Results, path: Path) -> None:
    """Draw test error against evaluation cost of all kinds of models."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, 5), layout="constrained")
    axes = figure.subplots()
    names = [name for name in results.curves if name != "AdaTree 2"]  # the same to the eye
    for i, name in enumerate(names):
        _, error, cost = np.moveaxis(results.curves[name], 2, 0)
        style = {"color": f"C{i}"}
        if name == "AdaBoost":
            style = {"color": "k", "ls": "--"}
        elif name == SIGN:  # no models between these
            style |= {"ls": ":", "marker": "o", "ms": "4"}
        band(axes, cost.mean(axis=0), error, label=name, **style)
    axes.set(xscale="log", xlabel="mean evaluations per row", ylabel="test error, %")
    axes.set(xlim=(3, 450), ylim=(6, 38))
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=72)


def main(argv: list[str] | None = None) -> None:
    """Print the numbers and write the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", type=int, help=f"number of data sets, at least 2; {SETS}")
    parser.add_argument("--quick", action="store_true", help="2 small sets, unless told otherwise")
    parser.add_argument("--output", type=Path, default=Path(), help="folder of the figures")
    options = parser.parse_args(argv)
    quick = options.quick
    sets = options.sets or (QUICK_SETS if quick else SETS)
    if sets < 2:
        parser.error("--sets: expected at least 2, for the spread")
    results = measure(
        sets, QUICK_TEST_ROWS if quick else TEST_ROWS, QUICK_SIZES if quick else SIZES
    )
    print(tables(results))
    print(table_of_budgets(results))
    for claim, holds in claims(results).items():
        print(f"{'holds' if holds else 'does not hold'}: {claim}")
    options.output.mkdir(parents=True, exist_ok=True)
    for name, picture in zip(FILES, (draw_figure_2, draw_cost), strict=True):
        picture(results, options.output / name)
        print(f"written: {options.output / name}")


if __name__ == "__main__":
    main()
