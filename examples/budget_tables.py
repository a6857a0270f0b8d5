"""Tables of results within budgets: means over data sets, and paired differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oblique_trees import table
from scipy.stats import wilcoxon

#: Kinds of data sets, and the ratio of full cost to budget above which a budget counts as filled.
GROUPS, FILLED = ("two classes", "many classes", "large"), 1.5
#: Budgets at which errors are listed by data set.
SHOWN = (20, 100)
#: Figures to list, their digits, and the kinds of data sets that have them.
FIGURES = {"error": (2, GROUPS), "log loss": (4, GROUPS), "AUC": (2, ("two classes", "large"))}
TITLES = {"error": "Error in %", "log loss": "Log loss", "AUC": "Area under the ROC curve in %"}

Known = Mapping[tuple[str, int, int, str, int], dict[str, Any]]
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Outcomes:
    """Results on the folds that are complete for all methods and budgets.

    Attributes
    ----------
    known : mapping
        Figures by data set, repetition, fold, method and budget.
    budgets : tuple of int
    methods : tuple of str
        pboost is the first.
    folds : dict
        Pairs of repetition and fold, by data set.
    """

    known: Known
    budgets: tuple[int, ...]
    methods: tuple[str, ...]
    folds: dict[str, list[tuple[int, int]]]

    def sets(self, *groups: str) -> list[str]:
        """Return the names of the data sets of some kinds."""
        return [name for name in self.folds if name.rpartition(", ")[2] in groups]

    def values(self, sets: Iterable[str], method: str, what: str | Callable[..., float]) -> Values:
        """Return means over folds (data sets, budgets) of a figure or of a function of figures."""
        take = what if callable(what) else lambda figures, _: figures[what]
        result = [
            [
                [take(self.known[name, *fold, method, b], b) for b in self.budgets]
                for fold in self.folds[name]
            ]
            for name in sets
        ]
        return np.array([np.mean(of, axis=0) for of in result])

    def counted(self, sets: list[str]) -> str:
        """Return a sentence with the numbers of data sets and folds."""
        numbers = [len(self.folds[name]) for name in sets]
        few, many = min(numbers), max(numbers)
        folds = f"{few}" if few == many else f"{few} to {many}"
        groups = [group for group in GROUPS if any(name in sets for name in self.sets(group))]
        kind = f" of {groups[0]}" if len(groups) == 1 and groups[0] != "large" else ""
        large = "large " if groups == ["large"] else ""
        return (
            f"{len(sets)} {large}set{'s'[: len(sets) > 1]}{kind}, "
            f"{folds} fold{'s'[: many > 1]} of each"
        )


def complete(known: Known, budgets: tuple[int, ...], ours: str) -> Outcomes:
    """Return the complete results."""
    result: dict[tuple[str, int, int], set[tuple[str, int]]] = {}
    for name, repetition, fold, method, budget in known:
        result.setdefault((name, repetition, fold), set()).add((method, budget))
    methods = (ours, *dict.fromkeys(key[3] for key in known if key[3] != ours))
    wanted = {(method, budget) for method in methods for budget in budgets}
    folds: dict[str, list[tuple[int, int]]] = {}
    for (name, *fold), there in result.items():
        if wanted <= there:
            folds.setdefault(name, []).append(tuple(fold))
    return Outcomes(known, budgets, methods, folds)


def by_budget(of: Outcomes, title: str, rows: dict[str, list[str]]) -> str:
    """Return a table with one column per budget."""
    head = ["", *(str(budget) for budget in of.budgets)]
    return table(title, [head, *([name, *row] for name, row in rows.items())])


def means(of: Outcomes, sets: list[str], what: str) -> str:
    """Return the table of mean figures over data sets."""
    digits = FIGURES[what][0]
    rows = {
        method: [f"{v:.{digits}f}" for v in of.values(sets, method, what).mean(axis=0)]
        for method in of.methods
    }
    return by_budget(of, f"{TITLES[what]}, means of {of.counted(sets)}", rows)


def paired(of: Outcomes, sets: list[str]) -> dict[str, Values]:
    """Return the error of pboost minus the error of each other method (data sets, budgets)."""
    ours, *others = (of.values(sets, method, "error") for method in of.methods)
    return {
        method: (ours - theirs).round(9)
        for method, theirs in zip(of.methods[1:], others, strict=True)
    }


def differences(of: Outcomes, sets: list[str]) -> str:
    """Return the table of error differences with standard errors, wins and losses."""
    rows = {}
    for method, less in paired(of, sets).items():
        error = less.std(axis=0, ddof=1) / np.sqrt(len(less)) if len(less) > 1 else 0 * less[0]
        rows[method] = [
            f"{d.mean():+.2f} ± {e:.2f} ({(d < 0).sum()} : {(d > 0).sum()})"
            for d, e in zip(less.T, error, strict=True)
        ]
    title = f"Error in %, {of.methods[0]} minus others ± standard error (sets won : lost)"
    return by_budget(of, f"{title}, {of.counted(sets)}", rows)


def ranks(of: Outcomes, sets: list[str]) -> str:
    """Return the table of Wilcoxon signed-rank tests of these differences.

    The one-sided alternative is that pboost has the smaller error.
    """
    rows = {}
    for method, less in paired(of, sets).items():
        p = [wilcoxon(d, alternative="less").pvalue if d.any() else 1.0 for d in less.T]
        rows[method] = [f"{item:.1g}" if item < 0.001 else f"{item:.3f}" for item in p]
    title = f"Wilcoxon's signed ranks: p of no difference against less error of {of.methods[0]}"
    return by_budget(of, f"{title}, {of.counted(sets)}", rows)


def costs(of: Outcomes, sets: list[str]) -> str:
    """Return the table of test comparisons divided by the budget: the mean, and the maximum.

    For pboost it also has the mean over folds in which the full model costs well over the budget.
    """
    rows = {}
    for method in of.methods:
        share = of.values(sets, method, lambda figures, budget: figures["comparisons"] / budget)
        rows[method] = [f"{s.mean():.3f}, {s.max():.3f}" for s in share.T]
    ours = of.methods[0]
    if all("whole" in of.known[name, *of.folds[name][0], ours, of.budgets[0]] for name in sets):
        rows[f"{ours}, whole models of {FILLED} budgets"] = [
            filled(of, sets, budget) for budget in of.budgets
        ]
    title = "Comparisons of a test row over the budget, mean and worst set"
    return by_budget(of, f"{title}, {of.counted(sets)}", rows)


def filled(of: Outcomes, sets: list[str], budget: int) -> str:
    """Return the used fraction of a budget, over folds whose full model costs well over it."""
    ours = (
        of.known[name, *fold, of.methods[0], budget] for name in sets for fold in of.folds[name]
    )
    used = [item["comparisons"] / budget for item in ours if item["whole"] >= FILLED * budget]
    return f"{np.mean(used):.3f} ({len(used)} folds)" if used else "–"


def by_set(of: Outcomes, sets: list[str], budget: int) -> str:
    """Return the table of errors by data set at a budget."""
    k = of.budgets.index(budget)
    columns = [of.values(sets, method, "error")[:, k] for method in of.methods]
    rows = [["", "folds", *of.methods]]
    for name, *errors in zip(sets, *columns, strict=True):
        rows.append([name, str(len(of.folds[name])), *(f"{error:.2f}" for error in errors)])
    return table(f"Error in % at {budget} comparisons", rows)


def seconds(of: Outcomes, sets: list[str]) -> str:
    """Return the table of the time to choose and fit models for the largest budget.

    This includes smaller budgets: for pboost those of at least 20 comparisons, for others all.
    """
    names = [method for method in of.methods if not method.endswith(", exit")]
    rows = [["", "mean", "longest"]]
    for method in names:
        spent = of.values(sets, method, "seconds")[:, -1]
        rows.append([method, f"{spent.mean():.1f}", f"{spent.max():.1f}"])
    title = "CPU seconds of choice and fits for the largest budget, and for smaller ones with it"
    return table(f"{title}, {of.counted(sets)}", rows)


def tables(known: Known, budgets: tuple[int, ...], ours: str) -> str:
    """Return all tables."""
    of = complete(known, budgets, ours)
    if not of.folds:
        return "No fold is complete.\n"
    real = of.sets(*GROUPS[:2])
    parts = [differences(of, real), ranks(of, real)] if real else []
    for group in GROUPS:
        if sets := of.sets(group):
            figures = [what for what, (_, groups) in FIGURES.items() if group in groups]
            error, *others = (means(of, sets, what) for what in figures)
            parts += [error, differences(of, sets), *others]
    every = real or list(of.folds)
    parts += [costs(of, every), seconds(of, every)]
    parts += [by_set(of, list(of.folds), budget) for budget in SHOWN if budget in budgets]
    return "\n".join(parts)
