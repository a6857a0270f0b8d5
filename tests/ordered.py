"""Ordered categories and their rank numbers: models of both, and every function that reads rows."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pboost as pb
from pboost.models.base import Model

N = 48
RNG = np.random.default_rng(11)
#: The most frequent rank is the median, where plots hold the column.
RANK = RNG.integers(0, 3, N) + RNG.integers(0, 3, N)
OTHER, MORE = RNG.normal(size=(2, N)).round(2)
SKY = RNG.integers(0, 3, N)
NUMBER = np.array([0.0, 3.0, 1.0, 4.0, 2.0])[RANK] + OTHER + (SKY == 1)
TARGETS = {"two": NUMBER > 2, "three": np.digitize(NUMBER, [1.2, 3.0]), "numbers": NUMBER}
#: The categories in their order, which is not that of their values.
ORDERS = {
    "text": np.array(["poor", "fair", "good", "great", "best"]),
    "numbers": np.array([2.0, 0.0, 4.0, 1.0, 3.0]),
}
#: Names of columns that hold numbers alone, or an unordered category and missing values as well.
LAYOUTS = {"text": ("text", False), "numbers": ("numbers", False), "mixed": ("text", True)}


def frames(layout: str) -> tuple[Any, Any]:
    """Return a frame with an ordered category, and the same with its rank numbers instead."""
    import pandas as pd

    kind, is_mixed = LAYOUTS[layout]
    order, hidden = ORDERS[kind], np.zeros(N, dtype=bool)
    columns = {"other": OTHER, "more": MORE}
    if is_mixed:
        columns["sky"] = pd.Categorical(np.array(["blue", "grey", "black"])[SKY])
        hidden[::9] = True
    values = np.where(hidden, None, order.astype(object)[RANK])
    category = pd.Categorical(values, categories=list(order), ordered=True)
    ranks = np.where(hidden, np.nan, RANK.astype(float))
    return pd.DataFrame({"c": category, **columns}), pd.DataFrame({"c": ranks, **columns})


CART = partial(pb.fit_cart, max_depth=2)
TREE = partial(pb.fit_boosted_tree, nodes=4)
SOFT = {"observation": pb.observation.adatree2()}
#: Every builder: what it fits, and with which options.
FITS: dict[str, tuple[Any, str]] = {
    "adaboost": (partial(pb.fit_adaboost, rounds=4), "two"),
    "soft chain": (partial(pb.fit_adaboost, rounds=3, observation=pb.observation.flip(0.1)), "two"),
    "gaussian": (
        partial(pb.fit_adaboost, rounds=3, observation=pb.observation.gaussian(0.3)),
        "two",
    ),
    "affine": (partial(pb.fit_adaboost, rounds=2, weak=pb.weak.affine(seed=0)), "two"),
    "real": (partial(pb.fit_adaboost_real, rounds=4), "two"),
    "real columns": (partial(pb.fit_adaboost_real, rounds=4, weak=pb.weak.feature()), "two"),
    "boosted tree": (TREE, "two"),
    "soft tree": (partial(pb.fit_boosted_tree, nodes=4, **SOFT), "two"),
    "matryoshka": (partial(pb.fit_matryoshka, shape=(2, 2)), "two"),
    "matryoshka, sign": (partial(pb.fit_matryoshka, shape=(3, 2), collect="sign"), "two"),
    "oblique": (partial(pb.fit_oblique_tree, max_depth=1, stumps=3), "two"),
    "topdown": (partial(pb.fit_topdown_tree, nodes=4), "two"),
    "cart": (CART, "three"),
    "regression": (partial(CART, task="regression"), "numbers"),
    "pruned": (partial(pb.fit_pruned_cart, folds=2, rng=0), "two"),
    "forest": (partial(pb.fit_forest, members=3, rng=0), "three"),
    "forest of numbers": (partial(pb.fit_forest, members=3, task="regression", rng=0), "numbers"),
    "sum": (partial(pb.fit_stagewise, loss="logistic", steps=3), "two"),
    "softmax": (partial(pb.fit_stagewise, loss="softmax", steps=2), "three"),
    "sum of numbers": (partial(pb.fit_stagewise, loss="squared", steps=3), "numbers"),
    "probitboost": (partial(pb.fit_probitboost, steps=4), "two"),
    "probit tree": (partial(pb.fit_probit_tree, max_depth=1, min_leaf=9, steps=3), "three"),
    "sbpmt": (partial(pb.fit_sbpmt, members=2, rounds=2, steps=3, min_leaf=9, rng=0), "two"),
    "bagging": (partial(pb.fit_bagging, CART, members=3, rng=0), "two"),
    "bagging of numbers": (
        partial(
            pb.fit_bagging, partial(CART, task="regression"), task="regression", members=2, rng=0
        ),
        "numbers",
    ),
    "bagging of graphs": (partial(pb.fit_bagging, TREE, members=2, rng=0), "two"),
    "rest": (partial(pb.fit_one_vs_rest, TREE), "three"),
    "samme": (partial(pb.fit_samme, base=CART, rounds=3), "three"),
    "within": (partial(pb.fit_within, comparisons=4.0, folds=2, rng=0), "two"),
}
#: Builders that return no model.
NO_MODELS = {"fit_one_hot"}


def scored(model: Any, X: Any) -> list[Any]:
    """Return what a model says of rows."""
    return [pb.predict(model, X), attempt(lambda: pb.predict_proba(model, X))]


def exit_price(model: Any, X: Any, y: Any) -> Any:
    return pb.early_exit(model, X, price=1.5, prices={"c": 1.0, "other": 2.0, "more": 0.5})


def exit_comparisons(model: Any, X: Any, y: Any) -> Any:
    return pb.early_exit(model, X, comparisons=max(1.0, 0.8 * model_cost(model, X)))


def model_cost(model: Any, X: Any) -> float:
    return float(pb.evaluation_cost(model, X).mean())


def saved(model: Any, X: Any = None, y: Any = None) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        pb.save(model, path)
        return pb.load(path)


#: What is made of a fitted model.
WRAPPED: dict[str, Any] = {
    "saved": saved,
    "calibrated": lambda m, X, y: pb.calibrate(m, X, y),
    "exit": exit_comparisons,
    "exit by price": exit_price,
    "exit, never": lambda m, X, y: pb.early_exit(m, X, comparisons=1e9),
    "calibrated exit, saved": lambda m, X, y: saved(pb.calibrate(exit_comparisons(m, X, y), X, y)),
    "longer": lambda m, X, y: continued(m, X, y),
}
#: What is fitted in place of the builder.
COMPOSED: dict[str, Any] = {
    "bags": lambda fit: partial(pb.fit_bagging, fit, members=2, rng=0),
    "one to the rest": lambda fit: partial(pb.fit_one_vs_rest, fit),
    "votes": lambda fit: partial(pb.fit_samme, base=fit, rounds=2),
}


def wrapped(name: str) -> dict[str, Any]:
    """Return what fits wrapped models of a builder to rows, by names."""
    fit, target = FITS[name]
    y = TARGETS[target]
    if name == "within":  # takes long
        return {"saved": lambda X: saved(fit(X, y))}
    made = {how: lambda X, wrap=wrap: wrap(fit(X, y), X, y) for how, wrap in WRAPPED.items()}
    if target != "numbers":
        made |= {how: lambda X, compose=of: compose(fit)(X, y) for how, of in COMPOSED.items()}
    return made


def continued(m: Any, X: Any, y: Any, **more: Any) -> Any:
    unit = {pb.Forest: "members", pb.StagewiseModel: "steps"}.get(type(m), "nodes")
    return pb.continue_fit(m, X, y, **{unit: 1}, **more)


def row_of(X: Any) -> dict[str, Any]:
    row = X.iloc[3].to_dict()
    return {"c": row.pop("c"), **row}


def drawn(ax: Any) -> list[Any]:
    """Return the numbers that are drawn."""
    from matplotlib.collections import QuadMesh

    lines = [line.get_xydata() for line in ax.lines]
    marks = [c.get_linewidths() for c in ax.collections]
    areas = [c.get_array() for c in ax.collections if isinstance(c, QuadMesh)]
    edges = [p.get_linewidth() for p in ax.patches]
    return [*lines, *marks, *areas, edges]


def c_file(m: Any, X: Any) -> list[Any]:
    """Return what is known of a C file, and its text without comments."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.c"
        file = pb.export_c(m, path, "int16", X=X)
        code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    return [file, *code.encode()]


def decided(m: Any, X: Any) -> list[Any]:
    """Return what a session decides of a row of which nothing is known at first."""
    row, session = row_of(X), pb.decisions(m, [{}], budget=2.0)
    while questions := session.ask():
        session.tell(questions[0], row[questions[0].asked])
    return [replace(item, ledger=()) for item in session]  # which has the values


def label_sets(m: Any, X: Any, y: Any) -> list[Any]:
    sets = pb.label_sets(m, X, y, alpha=0.3)
    return [sets, sets.contains(X), sets.predict(X)]


def told_of_sum(trees: Any, X: Any) -> list[Any]:
    return [trees.weight, trees.value, trees.rows(X)]


#: Every function of the package that is given a model and rows.
FUNCTIONS: dict[str, Any] = {
    "apply": lambda m, X, y: pb.apply(m, X),
    "calibrate": lambda m, X, y: scored(pb.calibrate(m, X, y, method="isotonic"), X),
    "certificate": lambda m, X, y: pb.certificate(m, X, y),
    "coefficients": lambda m, X, y: pb.coefficients(m, X),
    "continue_fit": lambda m, X, y: scored(continued(m, X, y), X),
    "decide": lambda m, X, y: replace(pb.decide(m, row_of(X)), ledger=()),
    "decision_function": lambda m, X, y: pb.decision_function(m, X),
    "decision_path": lambda m, X, y: pb.decision_path(m, X),
    "decisions": lambda m, X, y: decided(m, X),
    "distill": lambda m, X, y: scored(
        pb.distill(m, X, comparisons=6.0, synthetic=40, neighbours=3, rng=0), X
    ),
    "early_exit": lambda m, X, y: scored(pb.early_exit(m, X, worst=2.0), X),
    "evaluation_cost": lambda m, X, y: [
        pb.evaluation_cost(m, X),
        attempt(lambda: pb.evaluation_cost(m, X, "features")),
        attempt(lambda: pb.evaluation_cost(m, X, exit="proven")),
    ],
    "explain": lambda m, X, y: pb.explain(m, X.iloc[[2]]),
    "export_c": lambda m, X, y: c_file(m, X),
    "feature_importances": lambda m, X, y: pb.feature_importances(m, X=X),
    "guarantee": lambda m, X, y: pb.guarantee(m, X, y),
    "label_sets": label_sets,
    "margin_bound": lambda m, X, y: pb.margin_bound(m, X, y, 0.3),
    "margin_curve": lambda m, X, y: pb.margin_curve(m, X, y, [0.0, 0.4]),
    "margin_error": lambda m, X, y: pb.margin_error(m, X, y, 0.3),
    "margins": lambda m, X, y: pb.margins(m, X, y),
    "normalised_margins": lambda m, X, y: pb.normalised_margins(m, X, y),
    "permutation_importance": lambda m, X, y: pb.permutation_importance(m, X, y, repeats=1, rng=0),
    "plot_coefficients": lambda m, X, y: drawn(pb.plot_coefficients(m, X)),
    "plot_graph": lambda m, X, y: drawn(pb.plot_graph(m, X, y)),
    "plot_regions": lambda m, X, y: drawn(
        pb.plot_regions(m, X, features=("other", "more"), resolution=9)
    ),
    "plot_steps": lambda m, X, y: drawn(pb.plot_steps(m, X, y)),
    "plot_tree": lambda m, X, y: drawn(pb.plot_tree(m, X)),
    "predict": lambda m, X, y: pb.predict(m, X),
    "predict_proba": lambda m, X, y: [
        pb.predict_proba(m, X),
        attempt(lambda: pb.predict_proba(m, X, route="expected")),
    ],
    "prune_path": lambda m, X, y: pb.prune_path(m, X, y),
    "reach": lambda m, X, y: pb.reach(m, X, y),
    "risk_threshold": lambda m, X, y: pb.risk_threshold(m, X, y, limit=0.5),
    "staged_decision_function": lambda m, X, y: pb.staged_decision_function(m, X),
    "staged_predict": lambda m, X, y: pb.staged_predict(m, X),
    "staged_predict_proba": lambda m, X, y: pb.staged_predict_proba(m, X),
    "to_json": lambda m, X, y: told_of_sum(pb.from_json(pb.to_json(m, X)), X),
    "to_shap": lambda m, X, y: pb.to_shap(m, X),
    "to_shapiq": lambda m, X, y: [vars(tree) for tree in pb.to_shapiq(m, X)],
    "trees_of": lambda m, X, y: told_of_sum(pb.trees_of(m, X), X),
}
PLOTS = {name for name in FUNCTIONS if name.startswith("plot_")}
#: Names of a parameter that is a model, and of those that are rows.
OF_MODEL, OF_ROWS = {"model", "tree", "teacher"}, {"X", "X_cal", "x", "row", "rows"}


def named(takes: set[str]) -> set[str]:
    """Return the public functions that have a parameter among these names, and rows."""
    actual = set()
    for name in pb.__all__:
        value = getattr(pb, name)
        if inspect.isfunction(value):
            parameters = set(inspect.signature(value).parameters)
            if parameters & takes and parameters & OF_ROWS:
                actual.add(name)
    return actual


def attempt(call: Any) -> Any:
    """Return what is returned; of what is refused the type of the error."""
    try:
        actual = call()
        return list(actual) if isinstance(actual, Iterator) else actual
    except (TypeError, ValueError, NotImplementedError, ImportError) as error:
        return type(error)


def quiet(call: Any) -> Any:
    """Return `attempt`; rows that were trained on are used here on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return attempt(call)


def differences(make: Any, X: Any, y: Any, names: list[str]) -> tuple[int, list[str]]:
    """Return how many functions were called, and those that differ between two models.

    `make` fits to X, a frame with a category and a frame with its ranks.
    """
    models = [quiet(lambda F=F: make(F)) for F in X]
    if any(isinstance(model, type) for model in models):
        return 0, [] if models[0] is models[1] else ["fit"]
    actual = []
    for name in names:
        call = FUNCTIONS[name]
        pairs = zip(models, X, strict=True)
        first, other = (quiet(lambda m=m, F=F, call=call: call(m, F, y)) for m, F in pairs)
        if not same(first, other):
            actual.append(name)
    return len(names), actual


def numbers(value: Any) -> list[Any]:
    """Return the numbers of a value, and the types of errors, in order; names are left out."""
    if isinstance(value, Model):
        return []
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return list(itertools.chain.from_iterable(map(numbers, value)))
    if isinstance(value, np.ndarray | np.generic | int | float | bool):
        return [] if np.asarray(value).dtype.kind in "UO" else [np.asarray(value)]
    return [value] if isinstance(value, type) else []


def same(one: Any, other: Any) -> bool:
    """Return whether two results have the same numbers, bit for bit."""
    first, second = numbers(one), numbers(other)
    return len(first) == len(second) and all(
        a is b
        if isinstance(a, type) or isinstance(b, type)
        else a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)
        if a.dtype.kind == "f"
        else np.array_equal(a, b)
        for a, b in zip(first, second, strict=True)
    )
