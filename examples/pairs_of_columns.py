"""Independent and symmetric trees on data in which only a pair of features is informative.

Run as ``python pairs_of_columns.py --data folder``, or set the environment variable PBOOST_DATA to
the folder, with files as described in the module ``published_table``. Multiclass data sets become
binary, first class against the rest. Up to 20,000 rows of the numeric features train 100 trees, and
up to 20,000 other rows give the log loss. Two normal features are added to the data, and a fraction
of 0, 0.3 or 0.7 of the targets is replaced by whether both have the same sign. "chosen" is the
default choice of `fit_gradient_boosting`. Prints reStructuredText tables; ``--rst file`` also
writes them to a file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oblique_trees import native, table
from table_command import arguments, publish

import pboost as pb

SETS = (
    "adult_census",
    "electricity",
    "magic04",
    "higgs_sample",
    "skin",
    "mushroom",
    "pendigits",
    "letter",
    "shuttle",
    "fars",
    "covertype",
)
QUICK_SETS = ("higgs_sample",)
SHARES, DEPTHS, MOST_ROWS = (0.0, 0.3, 0.7), (3, 6), 20_000
OPTIONS: dict[str, Any] = {"n_estimators": 100, "learning_rate": 0.1, "loss": "log_loss"}


def with_pair(
    X: NDArray[np.float64], y: NDArray[np.bool_], share: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the data with two more features, which determine a fraction of the classes."""
    two = rng.normal(size=(len(y), 2))
    told = rng.random(len(y)) < share
    return np.hstack([X, two]), np.where(told, two[:, 0] * two[:, 1] > 0, y)


def losses(X: NDArray[np.float64], y: NDArray[np.bool_], depth: int) -> tuple[list[float], str]:
    """Return the test log losses of independent and symmetric trees, and the chosen growth."""
    n = min(MOST_ROWS, len(y) * 3 // 4)
    rest = slice(n, n + MOST_ROWS)
    result = []
    for growth in ("independent", "symmetric"):
        model = pb.fit_gradient_boosting(X[:n], y[:n], max_depth=depth, growth=growth, **OPTIONS)
        margin = np.where(y[rest], 1, -1) * pb.decision_function(model, X[rest])
        result.append(float(np.logaddexp(0, -margin).mean()))
    first = pb.fit_gradient_boosting(X[:n], y[:n], max_depth=depth, **OPTIONS | {"n_estimators": 1})
    return result, first.settings["growth"]


def outcomes_on(path: Path) -> dict[float, list[tuple[list[float], str]]]:
    """Return losses and choices for a data set, by fraction of the pair and then by depth."""
    X, labels, categories = native(path)
    X = np.delete(X, categories, axis=1)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(labels))
    X, y = X[order], (labels == np.unique(labels)[0])[order]
    made = {share: with_pair(X, y, share, rng) for share in SHARES}
    return {share: [losses(*of, depth) for depth in DEPTHS] for share, of in made.items()}


def tables(outcomes: dict[str, dict[float, list[tuple[list[float], str]]]]) -> str:
    """Return the tables of the data sets and of the mean differences."""
    rows = [["data set", "share of the pair"]]
    rows[0] += [f"depth {depth}, {of}" for depth in DEPTHS for of in ("independent", "symmetric")]
    rows[0] += ["chosen"]
    for name, item in outcomes.items():
        for share, of in item.items():
            figures = [f"{loss:.4f}" for pair, _ in of for loss in pair]
            rows.append([name, f"{share:g}", *figures, " or ".join(sorted({to for _, to in of}))])
    means = [["share of the pair", *(f"depth {depth}" for depth in DEPTHS)]]
    for share in SHARES:
        pairs = np.array([[pair for pair, _ in result[share]] for result in outcomes.values()])
        gain = pairs[..., 1] - pairs[..., 0]
        error = gain.std(axis=0, ddof=1) / len(gain) ** 0.5 if len(gain) > 1 else gain[0] * 0
        means.append(
            [
                f"{share:g}",
                *(f"{m:+.4f} +- {e:.4f}" for m, e in zip(gain.mean(axis=0), error, strict=True)),
            ]
        )
    return table("Log loss on new rows", rows) + "\n" + table("Symmetric minus independent", means)


def main(argv: list[str] | None = None) -> None:
    """Compare the growths and print the tables."""
    parser, options, folder = arguments(__doc__, "one set", argv)
    outcomes = {}
    for name in QUICK_SETS if options.quick else SETS:
        path = folder / f"{name}.csv.gz"
        if path.exists():
            outcomes[name] = outcomes_on(path)
            print(name, file=sys.stderr)
    if not outcomes:
        parser.error(f"no data: {folder} has none of {', '.join(SETS)}")
    publish(tables(outcomes), options.rst)


if __name__ == "__main__":
    main()
