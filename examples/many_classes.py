"""Many classes at equal comparisons per row: graphs with J votes beside others, on real data.

Run as ``python many_classes.py --data folder``, or with the folder in the environment variable
PBOOST_DATA; it holds files as the module ``published_table`` describes them. Of each set at most
4,000 rows are drawn, and labels of fewer than ten of them left out; three times 7 in 10 rows of
each label are to train with, the others to test with. Categories are used as they are, but for
libraries that do not know them. ``--large`` takes three sets with more rows, one division and
fewer settings. Each family of models is fitted with several settings; of each model the first
parts are taken whose mean comparisons of a training row are within the budget, all trees of a round
counted. Prints tables, in the form of reStructuredText; ``--rst file`` writes them to a file, too.
With ``--results file`` outcomes are stored after each family, and not worked out again by the next
run.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from many_classes_families import GRIDS, LARGE_GRIDS, OURS, Fit, Grown, Split, families
from numpy.typing import NDArray
from oblique_trees import as_it_is, table
from table_command import Results, arguments, publish, stored, write

BUDGETS = (5, 10, 20, 50, 100, 200)  # mean comparisons per training row
SETS = (
    "iris",
    "glass",
    "balance_scale",
    "bhp",
    "obesity",
    "waveform_noise",
    "satimage",
    "pendigits",
    "nursery",
    "letter",
    "shuttle",
    "covertype",
    "kddcup99_10pct",
    "fars",
)
SPLITS, MOST_ROWS, FEWEST = 3, 4000, 10
#: Sets of which many rows are taken, at most so many.
LARGE, LARGE_ROWS = ("letter", "pendigits", "covertype"), 40_000
QUICK_SETS, QUICK_ROWS = 2, 200
#: Budgets, by their places, and families of which the errors on each set are shown.
SHOWN = (2, 3)
LEADERS = ("xgboost multi_output_tree", "catboost, symmetric trees", "scikit-learn ExtraTrees")
FIGURES = ("error", "log loss", "Brier", "comparisons")
#: Probabilities below this count as this in the log loss.
LEAST = 1e-15


# Data


def read(path: Path, most: int) -> tuple[NDArray[np.float64], NDArray[np.int64], tuple[int, ...]]:
    """Return the rows of a file, their labels 0, 1, …, and the columns of categories."""
    X, categories, target = as_it_is(path, most)
    _, label, counts = np.unique(target, return_inverse=True, return_counts=True)
    kept = counts[label] >= FEWEST
    return X[kept], np.unique(label[kept], return_inverse=True)[1].astype(np.int64), categories


def divided(
    X: NDArray[np.float64], y: NDArray[np.int64], categories: tuple[int, ...], seed: int
) -> Split:
    """Return a division of rows, label by label."""
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    train = np.sort(order[np.arange(len(y)) % 10 < 7])
    test = np.setdiff1d(order, train)
    return Split(X[train], y[train], X[test], y[test], categories)


# Outcomes


def run(split: Split, family: str, settings: dict[str, Fit], of: dict[str, list[float]]) -> bool:
    """Add what is not known yet of a division and a family; says whether there was anything."""
    missing = [name for name in settings if f"{family}: {name}" not in of]
    for name in missing:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of others are theirs to heed
            of[f"{family}: {name}"] = outcome(settings[name](split), split)
    return bool(missing)


def outcome(grown: Grown, split: Split) -> list[float]:
    """Return the figures at each budget, one budget after the other."""
    shares = np.bincount(split.y, minlength=split.n_labels) / len(split.y)
    result: list[float] = []
    for budget in BUDGETS:
        size = largest(grown, budget)
        if size:
            said, cost = grown.said(size), grown.test_cost(size)
        else:
            said, cost = np.tile(shares, (len(split.y_test), 1)), 0.0
        result += [*losses(said, split.y_test), float(cost)]
    return result


def largest(grown: Grown, budget: float) -> int:
    """Return the largest number of parts within a budget; costs rise with it."""
    low, high = 0, grown.size + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if grown.cost(middle) <= budget else (low, middle)
    return low


def losses(said: NDArray[np.float64], truth: NDArray[np.int64]) -> list[float]:
    """Return the error in %, the log loss and the Brier score."""
    rows = np.arange(len(truth))
    share = said[rows, truth]
    brier = np.sum(said**2, axis=1) - 2 * share + 1
    log_loss = -np.log(np.clip(share, LEAST, 1.0))
    wrong = said.argmax(axis=1) != truth
    return [100 * float(wrong.mean()), float(log_loss.mean()), float(brier.mean())]


# Tables


def figures(
    results: Results, sets: Iterable[str], names: list[str], what: str
) -> NDArray[np.float64]:
    """Return the means over divisions (settings, sets, budgets) of a figure."""
    of_set = []
    for data in sets:
        splits = [of for key, of in results.items() if key.rpartition(",")[0] == data]
        every = np.array([[of[name] for name in names] for of in splits])
        of_set.append(every.mean(axis=0)[:, FIGURES.index(what) :: len(FIGURES)])
    return np.stack(of_set, axis=1)


def fixed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values (sets, budgets) of the setting that is best in the mean, of each budget."""
    best = values.mean(axis=1).argmin(axis=0)
    return values[best, :, np.arange(len(BUDGETS))].T


def left_out(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values (sets, budgets), on each set of the setting that is best on the others."""
    best = (values.sum(axis=1, keepdims=True) - values).argmin(axis=0)
    return np.take_along_axis(values, best[None], axis=0)[0]


def one_for_all(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values (sets, budgets) of the setting that is best in the mean of all budgets."""
    return values[values.mean(axis=(1, 2)).argmin()]


#: How a setting of a family is chosen.
CHOICES = {
    "one setting for all sets, of each budget": fixed,
    "settings chosen on the other sets, of each budget": left_out,
    "one setting for all sets and budgets": one_for_all,
}


def by_budget(title: str, rows: dict[str, list[str]]) -> str:
    """Return a table with a column for each budget."""
    head = ["", *(str(budget) for budget in BUDGETS)]
    return table(title, [head, *([name, *row] for name, row in rows.items())])


def means(chosen: dict[str, NDArray[np.float64]], digits: int) -> dict[str, list[str]]:
    """Return cells with the means over sets."""
    return {name: [f"{v:.{digits}f}" for v in of.mean(axis=0)] for name, of in chosen.items()}


def against_ours(chosen: dict[str, NDArray[np.float64]], digits: int) -> dict[str, list[str]]:
    """Return cells of the others: differences to ours, sets on which ours is lower and higher."""
    cells = {}
    for name in (name for name in chosen if name != OURS):
        more = (chosen[name] - chosen[OURS]).round(9)
        error = more.std(axis=0, ddof=1) / np.sqrt(len(more)) if len(more) > 1 else 0 * more[0]
        cells[name] = [
            f"{m.mean():+.{digits}f} ± {e:.{digits}f} ({(m > 0).sum()} : {(m < 0).sum()})"
            for m, e in zip(more.T, error, strict=True)
        ]
    return cells


def settings_chosen(values: dict[str, NDArray[np.float64]], names: dict[str, list[str]]) -> str:
    """Return the table of the settings that are best in the mean, of each budget."""
    rows = {
        family: [names[family][k].partition(": ")[2] for k in of.mean(axis=1).argmin(axis=0)]
        for family, of in values.items()
    }
    return by_budget("The settings of least mean error", rows)


def by_set(chosen: dict[str, NDArray[np.float64]], sets: list[str], k: int) -> str:
    """Return the table of the errors on each set at a budget."""
    families = [name for name in chosen if name in (OURS, *LEADERS)]
    rows = [["", *families]]
    for number, name in enumerate(sets):
        rows.append([name, *(f"{chosen[family][number, k]:.1f}" for family in families)])
    title = f"Error in % on each set at {BUDGETS[k]} comparisons, one setting for all sets"
    return table(title, rows)


def tables(results: Results, names: dict[str, list[str]], sets: Iterable[str]) -> str:
    """Return all tables, given the names of the settings of each family."""
    sets = list(sets)
    every = {
        what: {family: figures(results, sets, of, what) for family, of in names.items()}
        for what in FIGURES[:3]
    }
    parts = []
    for title, choose in CHOICES.items():
        for what, digits in zip(every, (1, 3, 3), strict=True):
            if what != "error" and choose is not fixed:
                continue
            chosen = {family: choose(values) for family, values in every[what].items()}
            text = "Error in %" if what == "error" else f"{what[0].upper()}{what[1:]}"
            text = f"{text}, means of {len(sets)} sets, {title}"
            parts.append(by_budget(text, means(chosen, digits)))
            if what == "error":
                more = "more than ours (sets on which ours is better : worse)"
                parts.append(by_budget(f"The same, {more}", against_ours(chosen, digits)))
    parts.append(settings_chosen(every["error"], names))
    chosen = {family: fixed(values) for family, values in every["error"].items()}
    parts += [by_set(chosen, sets, k) for k in SHOWN]
    return "\n".join(parts)


def main(argv: list[str] | None = None) -> None:
    """Fit all models, print the tables and write them if wanted."""
    quick = f"the first {QUICK_SETS} sets, {QUICK_ROWS} rows, one division, a setting a family"
    parser, options, folder = arguments(
        __doc__,
        quick,
        argv,
        results="file of the outcomes of earlier runs, and of this one",
        large=(False, "three sets with more rows, one division, fewer settings"),
        splits=(SPLITS, "number of divisions"),
    )
    names, maximum, splits = SETS, MOST_ROWS, options.splits
    if options.large:
        names, maximum, splits = LARGE, LARGE_ROWS, 1
    fits = families(LARGE_GRIDS if options.large else GRIDS)
    if options.quick:
        names, maximum, splits = names[:QUICK_SETS], QUICK_ROWS, 1
        fits = {family: dict([*of.items()][:1]) for family, of in fits.items()}
    names = [name for name in names if (folder / f"{name}.csv.gz").exists()]
    if not names:
        parser.error(f"no data: {folder} has no file of a data set")
    results: Results = stored(options.results)
    for number in range(splits):  # one division of all sets after the other
        for name in names:
            start = time.perf_counter()
            split = divided(*read(folder / f"{name}.csv.gz", maximum), number)
            of = results.setdefault(f"{name}, split {number}", {})
            for family, settings in fits.items():
                if run(split, family, settings, of):
                    write(options.results, results)
            print(f"{name}, {number}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    shown = {f"{name}, split {number}" for name in names for number in range(splits)}
    results = {key: of for key, of in results.items() if key in shown}
    known = {family: [f"{family}: {name}" for name in of] for family, of in fits.items()}
    publish(tables(results, known, names), options.rst)


if __name__ == "__main__":
    main()
