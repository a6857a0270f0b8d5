"""Whom to ask? People and tests that err and have a price, asked by what their answer is worth.

Of a third of the patients it is true that they are ill. A crowd, a student, a test, a nurse and a
doctor can be asked, again and again; how they err is known from a hundred patients whose label is
known. Run as ``python oracles.py``: prints, for budgets of a patient, the error of labels if the
next question is the one of largest expected decrease of the entropy per price, and what is added
to it, with the standard error over patients, if the dearest that can be paid is asked, if all are
asked in turn, and if anyone is asked at random. All policies get the same answers, and label by the
same probabilities.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pboost as pb

LABELS = ("ill", "well")
ILL = 1 / 3
#: The probabilities of the right answer, about the ill and about the well.
RIGHT = {
    "crowd": (0.65, 0.65),
    "student": (0.75, 0.75),
    "test": (0.95, 0.7),
    "nurse": (0.8, 0.9),
    "doctor": (0.97, 0.97),
}
PRICES = {"crowd": 1.0, "student": 2.0, "test": 3.0, "nurse": 4.0, "doctor": 12.0}
KNOWN, PATIENTS = 100, 1000
BUDGETS = (3.0, 6.0, 12.0, 24.0, 48.0)
BY_WORTH, DEAREST, IN_TURN, AT_RANDOM = "by worth", "dearest first", "in turn", "at random"
#: What answers to a question, with the label as a number.
Answers = dict[str, NDArray[np.int64]]


class Within(NamedTuple):
    """What a policy is worth within a budget: what it paid, and where it erred."""

    paid: float
    errs: NDArray[np.bool_]


def answers_about(ill: NDArray[np.bool_], times: int, rng: np.random.Generator) -> Answers:
    """Return what everyone says of patients (n, times), as places in `LABELS`."""
    truth = np.where(ill, 0, 1)[:, None]
    result = {}
    for name, right in RIGHT.items():
        is_right = rng.random((len(ill), times)) < np.array(right)[truth]
        result[name] = np.where(is_right, truth, 1 - truth)
    return result


def by_worth(
    errors: dict[str, pb.acquisition.AnnotatorModel], said: Answers, row: int, budget: float
) -> tuple[str, float]:
    """Return label and price of a patient about whom `pboost.acquisition.query_annotators` asks."""
    annotators = {name: partial(_answer, iter(said[name][row])) for name in RIGHT}
    prior = {"ill": ILL, "well": 1 - ILL}
    outcome = pb.acquisition.query_annotators(
        annotators, errors, prior=prior, query_costs=PRICES, budget=budget
    )
    return outcome.label, outcome.cost


def by_order(
    errors: dict[str, pb.acquisition.AnnotatorModel],
    said: Answers,
    row: int,
    budget: float,
    order: Callable[[list[str], list[str]], str],
) -> tuple[str, float]:
    """Return label and price of a patient about whom some order says who is asked next."""
    asked: list[str] = []
    paid = 0.0
    while payable := [name for name in RIGHT if paid + PRICES[name] <= budget]:
        asked.append(order(payable, asked))
        paid += PRICES[asked[-1]]
    return label_of(errors, {name: said[name][row, : asked.count(name)] for name in RIGHT}), paid


def in_turn(payable: list[str], asked: list[str]) -> str:
    """Return the first one after the one that was asked last, in their order."""
    names = list(RIGHT)
    last = names.index(asked[-1]) if asked else -1
    return min(payable, key=lambda name: (names.index(name) - last - 1) % len(names))


def label_of(errors: dict[str, pb.acquisition.AnnotatorModel], told: Answers) -> str:
    """Return the more probable label, given answers: one answer after the other, as from urns."""
    log = np.log([ILL, 1 - ILL])
    for name, answers in told.items():
        urn = errors[name].counts + 1.0
        for k in answers:
            log += np.log(urn[:, k] / urn.sum(axis=1))
            urn[:, k] += 1.0
    return LABELS[int(log.argmax())]


def compare(
    patients: int = PATIENTS, budgets: tuple[float, ...] = BUDGETS, seed: int = 0
) -> dict[float, dict[str, Within]]:
    """Return, for each budget, what policies are worth."""
    rng = np.random.default_rng(seed)
    ill = rng.random(KNOWN) < ILL
    known = answers_about(ill, 1, rng)
    labels = np.array(LABELS)
    errors = {
        name: pb.acquisition.fit_annotators(labels[said[:, 0]], np.where(ill, *LABELS))
        for name, said in known.items()
    }
    ill = rng.random(patients) < ILL
    said = answers_about(ill, int(max(budgets)) + 1, rng)
    truth = np.where(ill, *LABELS)
    policies: dict[str, Callable[[int, float], tuple[str, float]]] = {
        BY_WORTH: lambda row, budget: by_worth(errors, said, row, budget),
        DEAREST: lambda row, budget: by_order(
            errors, said, row, budget, lambda names, _: max(names, key=PRICES.__getitem__)
        ),
        IN_TURN: lambda row, budget: by_order(errors, said, row, budget, in_turn),
        AT_RANDOM: lambda row, budget: by_order(
            errors, said, row, budget, lambda names, _: names[int(rng.integers(len(names)))]
        ),
    }
    result: dict[float, dict[str, Within]] = {}
    for budget in budgets:
        result[budget] = {}
        for name, policy in policies.items():
            given, paid = zip(*[policy(row, budget) for row in range(patients)], strict=True)
            result[budget][name] = Within(float(np.mean(paid)), np.array(given) != truth)
    return result


def _answer(stream: Any) -> str:
    return LABELS[next(stream)]


def main(arguments: list[str] | None = None) -> None:
    """Print errors against prices."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patients", type=int, default=PATIENTS, help="new patients")
    options = parser.parse_args(arguments)
    others = (DEAREST, IN_TURN, AT_RANDOM)
    print("errors in %, and what others add, with standard errors")
    print(f"budget   paid {BY_WORTH:>9}" + "".join(f"{name:>17}" for name in others))
    for budget, within in compare(options.patients).items():
        best = within[BY_WORTH]
        line = f"{budget:6.0f} {best.paid:6.1f} {100 * best.errs.mean():9.1f}"
        for name in others:
            more = 100.0 * (within[name].errs.astype(float) - best.errs)
            line += f"{more.mean():+11.1f} ± {more.std(ddof=1) / len(more) ** 0.5:.1f}"
        print(line)


if __name__ == "__main__":
    main()
