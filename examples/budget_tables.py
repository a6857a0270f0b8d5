"""Tables of what models say within budgets: means over sets, and differences set by set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oblique_trees import table
from scipy.stats import wilcoxon

#: Kinds of sets, as their names end, and how often a whole model costs its budget that is filled.
GROUPS, FILLED = ("two classes", "many classes", "large"), 1.5
#: Budgets at which errors are shown set by set.
SHOWN = (20, 100)
#: Figures that are shown, their digits, and the groups of sets that have them.
FIGURES = {"error": (2, GROUPS), "log loss": (4, GROUPS), "AUC": (2, ("two classes", "large"))}
TITLES = {"error": "Error in %", "log loss": "Log loss", "AUC": "Area under the ROC curve in %"}

Known = Mapping[tuple[str, int, int, str, int], dict[str, Any]]
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Outcomes:
    """What is known of the folds on which all methods have run at all budgets.

    Attributes
    ----------
    known : mapping
        Figures by set, repetition, fold, method and budget.
    budgets : tuple of int
    methods : tuple of str
        Ours first.
    folds : dict
        By set, pairs of repetition and fold.
    """

    known: Known
    budgets: tuple[int, ...]
    methods: tuple[str, ...]
    folds: dict[str, list[tuple[int, int]]]

    def sets(self, *groups: str) -> list[str]:
        """Return the names of the sets of these groups."""
        return [name for name in self.folds if name.rpartition(", ")[2] in groups]

    def values(self, sets: Iterable[str], method: str, what: str | Callable[..., float]) -> Values:
        """Return means over folds (sets, budgets) of a figure, or of a function of figures."""
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
        """Say how many sets there are, and of how many folds means are."""
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
    """Return what can be compared."""
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
    """Return a table with a column for each budget."""
    head = ["", *(str(budget) for budget in of.budgets)]
    return table(title, [head, *([name, *row] for name, row in rows.items())])


def means(of: Outcomes, sets: list[str], what: str) -> str:
    """Return the table of the means of a figure over sets."""
    digits = FIGURES[what][0]
    rows = {
        method: [f"{v:.{digits}f}" for v in of.values(sets, method, what).mean(axis=0)]
        for method in of.methods
    }
    return by_budget(of, f"{TITLES[what]}, means of {of.counted(sets)}", rows)


def paired(of: Outcomes, sets: list[str]) -> dict[str, Values]:
    """Return our errors less those of each other method (sets, budgets)."""
    ours, *others = (of.values(sets, method, "error") for method in of.methods)
    return {
        method: (ours - theirs).round(9)
        for method, theirs in zip(of.methods[1:], others, strict=True)
    }


def differences(of: Outcomes, sets: list[str]) -> str:
    """Return the table of our errors less others', with standard errors, and sets won and lost."""
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
    """Return the table of Wilcoxon's test of these differences, for which single sets count little.

    P-values are those of no difference against less error of ours.
    """
    rows = {}
    for method, less in paired(of, sets).items():
        p = [wilcoxon(d, alternative="less").pvalue if d.any() else 1.0 for d in less.T]
        rows[method] = [f"{item:.1g}" if item < 0.001 else f"{item:.3f}" for item in p]
    title = f"Wilcoxon's signed ranks: p of no difference against less error of {of.methods[0]}"
    return by_budget(of, f"{title}, {of.counted(sets)}", rows)


def costs(of: Outcomes, sets: list[str]) -> str:
    """Return the table of comparisons of test rows over the budget: the mean, and the worst set.

    Of ours there is the mean of folds whose whole model takes well more than the budget, too.
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
    """Return how much of a budget is used in folds whose whole model takes well more."""
    ours = (
        of.known[name, *fold, of.methods[0], budget] for name in sets for fold in of.folds[name]
    )
    used = [item["comparisons"] / budget for item in ours if item["whole"] >= FILLED * budget]
    return f"{np.mean(used):.3f} ({len(used)} folds)" if used else "–"


def by_set(of: Outcomes, sets: list[str], budget: int) -> str:
    """Return the table of errors set by set at a budget."""
    k = of.budgets.index(budget)
    columns = [of.values(sets, method, "error")[:, k] for method in of.methods]
    rows = [["", "folds", *of.methods]]
    for name, *errors in zip(sets, *columns, strict=True):
        rows.append([name, str(len(of.folds[name])), *(f"{error:.2f}" for error in errors)])
    return table(f"Error in % at {budget} comparisons", rows)


def seconds(of: Outcomes, sets: list[str]) -> str:
    """Return the table of the time that it takes to choose and to fit for the largest budget.

    Smaller ones are served with it: of this package those from 20 comparisons on, of others all.
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
