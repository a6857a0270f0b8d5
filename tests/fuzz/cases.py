"""One case, by its number: of random arrays, or of a mutated file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from fuzz import bad_input, files
from fuzz.builders import BUILDERS
from fuzz.draw import problem
from fuzz.functions import answers, call_some, check_alone, check_answers, check_same, check_threads
from fuzz.relations import RELATIONS
from fuzz.report import Finding, judge, place
from fuzz.rules import BITS, NEVER, NOT, TOLERANCE, level
from pboost import threads

#: How many relations and functions of a model are tried in a case.
RELATIONS_TRIED, FUNCTIONS_TRIED = 2, 4
#: Models whose values are products of matrices: alone or among others may differ by rounding.
BY_MATRIX = ("probit", "sbpmt", "adaboost_real, columns", "adaboost_real, functions")


def array_case(seed: int, counts: Counter[str]) -> None:
    """Fit a random problem with random options, and look at the model from all sides."""
    rng = np.random.default_rng([seed, 1])
    names = list(BUILDERS)
    name = names[seed % len(names)]
    draw, kinds = BUILDERS[name]
    counts[name] += 1
    p = problem(rng, int(rng.choice(kinds)), tame=bool(rng.random() < 0.6))
    fit = draw(rng, p)
    kind = rng.random()
    if kind < 0.2:
        return bad_input.option_case(rng, fit, p, counts)
    if kind < 0.3:
        return bad_input.data_case(rng, fit, p, counts)
    try:
        model = fit(p.X, p.y, p.weight)
    except Exception as error:
        judge(error, f"{fit.row}: fit")
        counts["refused"] += 1
        return None
    rows = np.vstack([p.X[:5], p.new_rows(rng)])
    tolerance = 1e-9 if any(word in fit.row for word in BY_MATRIX) else 0.0
    try:
        actual = answers(model, rows)
        check_answers(model, rows, actual)
        if not asks_anew(fit.row):
            check_alone(model, rows, actual, rng, tolerance)
            check_threads(model, rows, actual, rng)
        y = p.y[rng.integers(0, len(p.y), len(rows))]
        call_some(model, rows, y, rng, FUNCTIONS_TRIED)
        again = answers(model, rows)
        check_same("asked again", actual, again)
        relate(rng, fit, p, model, rows, counts)
    except Finding as finding:
        raise Finding(f"{fit.row}: {finding.where}", finding.what) from finding
    return None


def asks_anew(row: str) -> bool:
    """Return whether answers are drawn by the functions of the model, row after row."""
    return "sampled oracles" in row


def relate(rng, fit, p, model, rows, counts) -> None:  # type: ignore[no-untyped-def]
    """Try some relations, drawn at random, of those that hold."""
    names = list(RELATIONS)
    for k in rng.permutation(len(names))[:RELATIONS_TRIED].tolist():
        name = names[k]
        holds = level(fit.row, name)
        if holds in (NOT, NEVER):
            continue
        try:
            pair = RELATIONS[name](rng, fit, p, model, rows)
        except Exception as error:
            judge(error, name)
            continue
        if pair is not None:
            counts[f"relation {name}"] += 1
            check_same(name, *pair, 0.0 if holds == BITS else TOLERANCE)


CASES: dict[str, Callable[[int, Counter[str]], None]] = {"arrays": array_case, "files": files.case}


def run_case(kind: str, seed: int, counts: Counter[str]) -> Finding | None:
    """Run a case; whatever it raises is a finding."""
    # One thread where a relation does not ask for more: the machine is not asked each time.
    threads.available_threads = lambda: 1
    try:
        CASES[kind](seed, counts)
    except Finding as finding:
        return finding
    except Exception as error:
        what = f"{type(error).__name__}: {str(error)[:200]} (from {place(error)})"
        return Finding("unexpected", what)
    return None
