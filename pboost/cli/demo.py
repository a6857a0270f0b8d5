"""``pboost demo``: what boosted graphs cost, and how often they err, on real data."""

from __future__ import annotations

import io
from argparse import Namespace
from functools import partial
from typing import Any

import pboost as pb
from pboost.cli.errors import UsageError, progress, require
from pboost.cli.table import check_output, write_text
from pboost.models.files import replace_file
from pboost.values import with_bar

ROUNDS = (5, 20, 100, 400)
NODES = (1, 3, 7, 15)
SOFT_NODES = (15, 31)
SHAPE = (4, 4, 4)
#: Families of models, and how a plot marks them; those with an asterisk have uncertain answers.
MARKERS = {"AdaBoost": "o", "boosted tree": "s", "soft tree*": "^", "matryoshka*": "D"}
FOOTNOTE = (
    "* answers as in AdaTree 2: certifies answers drawn at random as assumed, not the predictions"
)


def run_demo(options: Namespace) -> None:
    """Cross-validate models of several sizes and print one table."""
    datasets = require("sklearn.datasets", "demo")
    figure = None if options.plot is None else _empty_figure(options.plot)
    X, y = datasets.load_breast_cancer(return_X_y=True, as_frame=False)
    fits = _models()
    results: list[tuple[str, str, pb.CrossValidation]] = []
    folds = options.folds
    with with_bar(None, progress(), len(fits) * folds, "fits") as told:
        for family, size, fit in fits:

            def step(fold: int, error: float, before: int = len(results) * folds) -> Any:
                return told is not None and told(before + fold, error)

            done = pb.cross_validate(fit, X, y, folds=folds, rng=options.seed, callback=step)
            results.append((family, size, done))
    write_text(
        f"Breast-cancer data of scikit-learn: {X.shape[0]} rows, {X.shape[1]} features, "
        f"{folds}-fold cross-validation\n\n{_table(results)}\n\n{FOOTNOTE}\n"
    )
    if figure is not None:
        _draw(figure, results, options.plot)


def _models() -> list[tuple[str, str, partial[pb.DecisionGraph]]]:
    """Family, size and builder of the models compared."""
    fits = [("AdaBoost", f"{n} rounds", partial(pb.fit_adaboost, rounds=n)) for n in ROUNDS]
    for n in NODES:
        size = "1 node" if n == 1 else f"{n} nodes"
        fits.append(("boosted tree", size, partial(pb.fit_boosted_tree, nodes=n)))
    for n in SOFT_NODES:
        fit = partial(pb.fit_boosted_tree, nodes=n, observation=pb.observation.adatree2())
        fits.append(("soft tree*", f"{n} nodes", fit))
    size = " x ".join(map(str, SHAPE)) + " nodes"
    fit = partial(pb.fit_matryoshka, shape=SHAPE, observation=pb.observation.adatree2())
    fits.append(("matryoshka*", size, fit))
    return fits


def _table(results: list[tuple[str, str, pb.CrossValidation]]) -> str:
    """One line per model, columns aligned."""
    rows = [("model", "test error ± sd", "comparisons per row", "certificate ", "fit time")]
    rows += [
        (
            f"{family.rstrip('*')}, {size}",
            f"{100 * result.error.mean():.1f} ± {result.error_sd * 100:.1f} %",
            f"{result.cost.mean():.1f}",
            f"{result.certificate.mean():.2g}{'*' if family.endswith('*') else ' '}",
            f"{1e3 * result.fit_seconds.mean():.1f} ms",
        )
        for family, size, result in results
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *values in rows:
        cells = [value.rjust(w) for value, w in zip(values, widths[1:], strict=True)]
        lines.append("   ".join([name.ljust(widths[0]), *cells]))
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _empty_figure(path: str) -> Any:
    """A figure, once it is sure that it can be written."""
    figure = require("matplotlib.figure", "demo").Figure(figsize=(6, 4), layout="constrained")
    known = figure.canvas.get_supported_filetypes()
    if _suffix(path) not in known:
        raise UsageError(f"--plot: expected a file name that ends in one of {', '.join(known)}")
    check_output(path)
    return figure


def _suffix(path: str) -> str:
    return path.rpartition(".")[2].lower()


def _draw(figure: Any, results: list[tuple[str, str, pb.CrossValidation]], path: str) -> None:
    """Test error against cost, one line per family of models."""
    axes = figure.subplots()
    for family, marker in MARKERS.items():
        mine = [result for name, _, result in results if name == family]
        axes.errorbar(
            [result.cost.mean() for result in mine],
            [100 * result.error.mean() for result in mine],
            yerr=[100 * result.error_sd for result in mine],
            marker=marker,
            capsize=3,
            label=family.rstrip("*"),
        )
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("comparisons per row")
    axes.set_ylabel("test error (%), mean ± sd over folds")
    axes.legend()
    buffer = io.BytesIO()
    figure.savefig(buffer, format=_suffix(path), dpi=150)
    replace_file(path, buffer.getvalue())
