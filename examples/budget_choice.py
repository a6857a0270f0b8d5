"""Sums of other libraries within budgets of comparisons: settings, rounds and exits by validation.

All budgets are served by the same fits: of each setting one for each inner fold, and one on all
training rows of the settings that were chosen. What rows say that an inner fit has not seen, round
by round, gives the error of each setting at each budget, and where rows may leave early.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from budget_peers import Floats, Learner, Rows, Stages
from many_classes import losses
from numpy.typing import NDArray
from scipy.special import expit, softmax

#: Rows that leave early come from a sum whose rounds cost so many times the budget.
LONGER = (1.5, 3.0)
#: Steps of the search for the strictness of an exit, and where it begins.
HALVINGS, STRICTEST = 14, 20.0
INNER_FOLDS = 3


@dataclass(frozen=True)
class Plan:
    """Rounds of a setting, and the thresholds at which rows leave before the last of them.

    Attributes
    ----------
    setting : str
        Its name.
    budget : float
        Without exits, as many rounds as it allows.
    threshold : ndarray, shape (rounds,), or None
        Of the lead after round 1, 2, …; the last is 0.
    slope : ndarray, shape (rounds + 1,), or None
        Factors of scores after 0, 1, … rounds, by which they are the most like the last.
    """

    setting: str
    budget: float
    threshold: Floats | None = None
    slope: Floats | None = None


#: What is said of rows (n, J), and comparisons of each.
Answers = tuple[Floats, Floats]
#: Figures of a choice by validation, the lower the better: error, log loss.
Worth = tuple[float, float]


def dealt(y: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.intp]:
    """Deal rows to folds, label by label."""
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(len(y), dtype=np.intp)
    fold[order] = np.arange(len(y)) % folds
    return fold


def within(
    settings: dict[str, Learner], rows: Rows, new: Floats, budgets: Iterable[int], seed: int
) -> dict[tuple[int, bool], tuple[Answers, Plan]]:
    """Return answers to new rows by budget, without exits and with them, and their plans."""
    budgets = sorted(budgets)
    fold = dealt(rows.y, INNER_FOLDS, seed)
    best: dict[tuple[int, bool], tuple[Worth, Plan]] = {}
    for name, fit in settings.items():
        unseen = out_of_fold(fit, rows, fold)
        for budget in budgets:
            for with_exit, worth, plan in candidates(name, unseen, rows.y, budget):
                for key in ((budget, with_exit), (budget, True)):  # exits need not be taken
                    if key not in best or worth < best[key][0]:
                        best[key] = worth, plan
    for before, budget in pairwise(budgets):  # nor all comparisons be made
        for with_exit in (False, True):
            best[budget, with_exit] = min(
                best[budget, with_exit], best[before, with_exit], key=lambda of: of[0]
            )
    return answers(settings, rows, new, {key: plan for key, (_, plan) in best.items()})


def out_of_fold(fit: Learner, rows: Rows, fold: NDArray[np.intp]) -> Stages:
    """Return what is said of each row by the inner fit that has not seen it."""
    parts = []
    for k in range(fold.max() + 1):
        kept = fold != k
        staged = fit(Rows(rows.X[kept], rows.y[kept], rows.categories))
        parts.append(staged(rows.X[~kept]))
    size = min(of.cost.shape[1] for of in parts)
    back = np.argsort(np.argsort(fold, kind="stable"), kind="stable")
    score, cost = (
        np.concatenate([getattr(of, what)[:, :size] for of in parts])[back]
        for what in ("score", "cost")
    )
    return Stages(score, cost)


def candidates(
    name: str, unseen: Stages, y: NDArray[np.int64], budget: float
) -> Iterable[tuple[bool, Worth, Plan]]:
    """Yield whether there are exits, worth and plan: of all rounds within a budget, and longer."""
    everywhere = np.full(len(y), size_within(unseen, budget))
    yield False, worth_of(unseen, everywhere, None, y), Plan(name, budget)
    known = set()
    for times in LONGER:
        size = size_within(unseen, times * budget)
        longer = unseen.first(size)
        if size not in known and longer.cost[:, -1].mean() > budget:
            known.add(size)
            plan = exits(name, longer, budget)
            if plan is not None:
                yield True, worth_of(longer, stops(longer, plan.threshold), plan.slope, y), plan


def size_within(of: Stages, budget: float) -> int:
    """Return the largest number of rounds whose mean cost is within a budget."""
    return int(np.searchsorted(of.cost.mean(axis=0), budget, side="right")) - 1


def exits(name: str, of: Stages, budget: float) -> Plan | None:
    """Return where rows leave so that the mean cost is within a budget, if they can.

    After round t those leave whose lead is large beside the root mean square of what the rounds
    left will change of leads; how large, is found by halving.
    """
    if of.cost.shape[1] < 3:  # there is no round before the last
        return None
    lead, at_last = leads(of.score)
    scale = np.sqrt(np.mean((at_last - lead) ** 2, axis=0))[1:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        beside = np.nan_to_num(lead[:, 1:-1] / scale, nan=0.0, posinf=np.inf)
    low, high = 0.0, STRICTEST
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        stop = first_true(beside >= middle)
        within = np.take_along_axis(of.cost, stop[:, None], axis=1).mean() <= budget
        low, high = (middle, high) if within else (low, middle)
    if low == 0:
        return None
    scores = centred(of.score)
    last = scores[:, -1:]
    axes = (0, 2) if scores.ndim == 3 else 0
    slope = (scores * last).sum(axis=axes) / np.maximum((scores**2).sum(axis=axes), 1e-9)
    return Plan(name, budget, np.append(low * scale, 0.0), slope)


def centred(score: Floats) -> Floats:
    """Return scores of many labels less their mean."""
    return score - score.mean(axis=2, keepdims=True) if score.ndim == 3 else score


def leads(score: Floats) -> tuple[Floats, Floats]:
    """Return the lead of the best label over the second (n, T + 1), and that lead in the end."""
    if score.ndim == 2:
        return np.abs(score), np.where(score > 0, score[:, -1:], -score[:, -1:])
    rest = score.copy()
    labels = []
    for _ in range(2):
        labels.append(rest.argmax(axis=2)[..., None])
        np.put_along_axis(rest, labels[-1], -np.inf, axis=2)
    last = np.broadcast_to(score[:, -1:], score.shape)
    lead, at_last = (
        (np.take_along_axis(of, labels[0], 2) - np.take_along_axis(of, labels[1], 2))[..., 0]
        for of in (score, last)
    )
    return lead, at_last


def first_true(out: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the round after which each row leaves, given whether it may after round 1, 2, …"""
    stop = out.argmax(axis=1) + 1
    stop[~out.any(axis=1)] = out.shape[1] + 1
    return stop


def stops(of: Stages, threshold: Floats | None) -> NDArray[np.intp]:
    """Return the round after which each row leaves; without thresholds, the last."""
    last = of.cost.shape[1] - 1
    if threshold is None or last < 2:
        return np.full(len(of.cost), last)
    lead = leads(of.score)[0]
    return first_true(lead[:, 1:last] >= threshold[: last - 1])


def said(of: Stages, stop: NDArray[np.intp], slope: Floats | None) -> Answers:
    """Return shares of labels, and comparisons, of rows that leave after these rounds."""
    rows = np.arange(len(stop))
    score = np.asarray(centred(of.score[rows, stop][:, None])[:, 0], dtype=np.float64)
    if slope is not None:
        score = (score.T * slope[stop]).T
    if score.ndim == 1:
        share = expit(score)
        return np.column_stack([1 - share, share]), of.cost[rows, stop]
    return softmax(score, axis=1), of.cost[rows, stop]


def worth_of(
    of: Stages, stop: NDArray[np.intp], slope: Floats | None, y: NDArray[np.int64]
) -> Worth:
    """Return the error and the log loss."""
    error, log_loss, _ = losses(said(of, stop, slope)[0], y)
    return error, log_loss


def answers(
    settings: dict[str, Learner], rows: Rows, new: Floats, plans: dict[tuple[int, bool], Plan]
) -> dict[tuple[int, bool], tuple[Answers, Plan]]:
    """Fit the settings that were chosen to all rows, and answer by their plans."""
    result = {}
    for name in dict.fromkeys(plan.setting for plan in plans.values()):
        staged = settings[name](rows)
        seen, of_new = staged(rows.X), staged(new)
        for key, plan in plans.items():
            if plan.setting != name:
                continue
            if plan.threshold is None:
                size = size_within(seen, plan.budget)
            else:
                size = min(len(plan.threshold), of_new.cost.shape[1] - 1)
            of = of_new.first(size)
            result[key] = said(of, stops(of, plan.threshold), plan.slope), plan
    return result
