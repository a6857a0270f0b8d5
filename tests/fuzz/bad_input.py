"""Options and data that are wrong: they are refused by name, or taken."""

from __future__ import annotations

import inspect
from collections import Counter
from functools import cache
from typing import Any

import numpy as np

import pboost as pb
from fuzz.builders import Fit
from fuzz.draw import Generator, Problem
from fuzz.functions import answers, check_answers
from fuzz.report import Finding, judge

#: Values that options are set to.
WRONG: tuple[Any, ...] = (
    None,
    True,
    False,
    -1,
    0,
    1,
    2,
    2**31,
    2**40,
    10**400,
    -0.5,
    0.3,
    1.0,
    1.5,
    np.nan,
    np.inf,
    -np.inf,
    "",
    "x",
    "²",
    b"x",
    [],
    (),
    (1, 2),
    {},
    {"a": 1},
    np.int64(2),
    np.float32(0.5),
    np.array([1, 2]),
    np.array(1),
    np.array("x"),
    1j,
    object(),
    len,
    Exception,
    "gini",
    "sqrt",
    "hinge",
    "exact",
    "sign",
    float,
    [1.0, np.nan],
    (1, 0),
    (-1,),
    ([[0.0]], [0]),
    "auto",
    pb.weak.stump(),
    pb.observation.exact(),
    pb.weak.feature(),
    pb.observation.gaussian(0.5),
)
#: Options that are functions of the user, whose own errors come through.
CALLED = ("callback", "base_learner", "fit", "impurity", "progress")


@cache
def options_of(build: Any) -> tuple[str, ...]:
    taken = inspect.signature(build).parameters.values()
    return tuple(p.name for p in taken if p.kind is p.KEYWORD_ONLY)


def option_case(rng: Generator, fit: Fit, p: Problem, counts: Counter[str]) -> None:
    """Set one option to anything."""
    names = [*options_of(fit.build), "max_dept"]
    if fit.first:
        names += [*options_of(fit.first[0])]
    name = names[int(rng.integers(len(names)))]
    value = WRONG[int(rng.integers(len(WRONG)))]
    if callable(value) and name in CALLED:
        value = None
    counts["option set"] += 1
    changed = Fit(fit.row, fit.build, {**fit.options, name: value}, fit.first)
    try:
        model = changed(p.X, p.y, None if name == "sample_weight" else p.weight)
    except Exception as error:
        counts["option refused"] += 1
        judge(error, f"{fit.row}: {name}={value!r}", (name, *related(name, changed)))
        return
    if name == "max_dept":
        raise Finding(f"{fit.row}: max_dept", "taken")
    try:
        check_answers(model, p.X, answers(model, p.X))
    except Finding as finding:
        where = f"{fit.row}: {name}={value!r}: {finding.where}"
        raise Finding(where, finding.what) from finding


def related(name: str, fit: Fit) -> tuple[str, ...]:
    """Return other words that a refusal may have: options that it does not go with.

    And what is said where the value is taken and the data are of no use for the probit family.
    """
    return (*fit.options, "varies too little") if name != "max_dept" else ()


def wrong_data(rng: Generator, p: Problem) -> tuple[str, tuple[str, ...], tuple[Any, Any, Any]]:
    """Return what is wrong, whose name must be said, and X, y and weights."""
    n, d = p.X.shape
    X, y = p.X.copy(), p.y
    weight = np.ones(n)
    kind = int(rng.integers(16))
    row, column = int(rng.integers(n)), int(rng.integers(d))
    if kind < 3:
        X[row, column] = np.inf if kind % 2 else -np.inf
        return "X not finite", ("X",), (X, y, weight)
    if kind < 7:
        form = (X[0], X[None], X[:0], X[:, :0])[kind - 3]
        return "shape of X", ("X", "y"), (form, y, weight)
    if kind == 7:
        return "complex X", ("X",), (X + 1j, y, weight)
    if kind == 8:
        return "strings in X", ("X",), (X.astype(str), y, weight)
    if kind == 9:
        return "length of y", ("y",), (X, y[:-1], weight)
    if kind == 10:
        return "shape of y", ("y",), (X, np.column_stack([y, y]), weight)
    if kind == 11:
        told = y.astype(object)
        told[row] = None
        return "missing label", ("y",), (X, told, weight)
    if kind == 12:
        weight[row] = rng.choice([-1.0, np.nan, np.inf])
        return "bad weight", ("sample_weight",), (X, y, weight)
    if kind == 13:
        return "weights of 0", ("sample_weight",), (X, y, weight * 0)
    if kind == 14:
        return "length of weights", ("sample_weight",), (X, y, weight[:-1])
    return "NaN in y", ("y",), (X, np.where(np.arange(n) == row, np.nan, np.arange(n) % 2), weight)


def data_case(rng: Generator, fit: Fit, p: Problem, counts: Counter[str]) -> None:
    """Pass data that must be refused."""
    what, names, data = wrong_data(rng, p)
    where = f"{fit.row}: {what}"
    counts["data refused"] += 1
    takes_anything = "oracles" in fit.row
    # Rows may be too few to be held out, which is found first.
    options = {k: v for k, v in fit.options.items() if k not in ("validation", "n_iter_no_change")}
    fit = Fit(fit.row, fit.build, options, fit.first)
    try:
        fit(*data)
    except Exception as error:
        if takes_anything and "X" in names:
            return
        judge(error, where, names)
        return
    if not (takes_anything and "X" in names):
        raise Finding(where, "not refused")
