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
TREE = partial(pb.fit_boosted_tree, max_nodes=4)
SOFT = {"observation": pb.observation.adatree2()}
#: Every builder: what it fits, and with which options.
FITS: dict[str, tuple[Any, str]] = {
    "adaboost": (partial(pb.fit_adaboost, n_estimators=4), "two"),
    "soft chain": (
        partial(pb.fit_adaboost, n_estimators=3, observation=pb.observation.flip(0.1)),
        "two",
    ),
    "gaussian": (
        partial(pb.fit_adaboost, n_estimators=3, observation=pb.observation.gaussian(0.3)),
        "two",
    ),
    "affine": (
        partial(pb.fit_adaboost, n_estimators=2, weak_learner=pb.weak.affine(seed=0)),
        "two",
    ),
    "real": (partial(pb.fit_real_adaboost, n_estimators=4), "two"),
    "real columns": (
        partial(pb.fit_real_adaboost, n_estimators=4, weak_learner=pb.weak.feature()),
        "two",
    ),
    "boosted tree": (TREE, "two"),
    "soft tree": (partial(pb.fit_boosted_tree, max_nodes=4, **SOFT), "two"),
    "matryoshka": (partial(pb.fit_matryoshka, shape=(2, 2)), "two"),
    "matryoshka, sign": (partial(pb.fit_matryoshka, shape=(3, 2), collect="sign"), "two"),
    "oblique": (partial(pb.fit_oblique_tree, max_depth=1, n_stumps=3), "two"),
    "topdown": (partial(pb.fit_topdown_tree, max_nodes=4), "two"),
    "cart": (CART, "three"),
    "regression": (partial(CART, task="regression"), "numbers"),
    "pruned": (partial(pb.fit_pruned_cart, cv=2, rng=0), "two"),
    "forest": (partial(pb.fit_random_forest, n_estimators=3, rng=0), "three"),
    "forest of numbers": (
        partial(pb.fit_random_forest, n_estimators=3, task="regression", rng=0),
        "numbers",
    ),
    "sum": (partial(pb.fit_gradient_boosting, loss="log_loss", n_estimators=3), "two"),
    "softmax": (partial(pb.fit_gradient_boosting, loss="softmax", n_estimators=2), "three"),
    "sum of numbers": (
        partial(pb.fit_gradient_boosting, loss="squared_error", n_estimators=3),
        "numbers",
    ),
    "probitboost": (partial(pb.fit_probitboost, max_iter=4), "two"),
    "probit tree": (
        partial(pb.fit_probit_tree, max_depth=1, min_samples_leaf=9, max_iter=3),
        "three",
    ),
    "sbpmt": (
        partial(
            pb.fit_sbpmt, n_estimators=2, n_boosting_rounds=2, max_iter=3, min_samples_leaf=9, rng=0
        ),
        "two",
    ),
    "bagging": (partial(pb.fit_bagging, CART, n_estimators=3, rng=0), "two"),
    "bagging of numbers": (
        partial(
            pb.fit_bagging,
            partial(CART, task="regression"),
            task="regression",
            n_estimators=2,
            rng=0,
        ),
        "numbers",
    ),
    "bagging of graphs": (partial(pb.fit_bagging, TREE, n_estimators=2, rng=0), "two"),
    "rest": (partial(pb.fit_one_vs_rest, TREE), "three"),
    "samme": (partial(pb.fit_samme, base_learner=CART, n_estimators=3), "three"),
    "within": (partial(pb.fit_within_budget, mean_comparisons=4.0, cv=2, rng=0), "two"),
}


def scored(model: Any, X: Any) -> list[Any]:
    """Return the predictions and probabilities of rows."""
    return [pb.predict(model, X), attempt(lambda: pb.predict_proba(model, X))]


def exit_price(model: Any, X: Any, y: Any) -> Any:
    return pb.early_exit(
        model, X, mean_feature_cost=1.5, feature_costs={"c": 1.0, "other": 2.0, "more": 0.5}
    )


def exit_comparisons(model: Any, X: Any, y: Any) -> Any:
    return pb.early_exit(model, X, mean_comparisons=max(1.0, 0.8 * model_cost(model, X)))


def model_cost(model: Any, X: Any) -> float:
    return float(pb.prediction_cost(model, X).mean())


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
    "exit, never": lambda m, X, y: pb.early_exit(m, X, mean_comparisons=1e9),
    "calibrated exit, saved": lambda m, X, y: saved(pb.calibrate(exit_comparisons(m, X, y), X, y)),
    "longer": lambda m, X, y: continued(m, X, y),
}
#: What is fitted in place of the builder.
COMPOSED: dict[str, Any] = {
    "bags": lambda fit: partial(pb.fit_bagging, fit, n_estimators=2, rng=0),
    "one to the rest": lambda fit: partial(pb.fit_one_vs_rest, fit),
    "votes": lambda fit: partial(pb.fit_samme, base_learner=fit, n_estimators=2),
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
    unit = {
        pb.models.RandomForest: "n_estimators",
        pb.models.GradientBoostingModel: "n_estimators",
    }.get(type(m), "max_nodes")
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
        file = pb.export.to_c(m, path, "int16", X=X)
        code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    return [file, *code.encode()]


def decided(m: Any, X: Any) -> list[Any]:
    """Return what a session decides of a row of which nothing is known at first."""
    row, session = row_of(X), pb.acquisition.acquisition_session(m, [{}], budget=2.0)
    while questions := session.ask():
        session.tell(questions[0], row[questions[0].source])
    return [replace(item, ledger=()) for item in session]  # which has the values


def prediction_sets(m: Any, X: Any, y: Any) -> list[Any]:
    sets = pb.prediction_sets(m, X, y, alpha=0.3)
    return [sets, sets.contains(X), sets.predict(X)]


def told_of_sum(trees: Any, X: Any) -> list[Any]:
    return [trees.weight, trees.value, trees.rows(X)]


#: Every function of the package that is given a model and rows.
FUNCTIONS: dict[str, Any] = {
    "apply": lambda m, X, y: pb.inspection.apply(m, X),
    "calibrate": lambda m, X, y: scored(pb.calibrate(m, X, y, method="isotonic"), X),
    "certificate": lambda m, X, y: pb.certificate(m, X, y),
    "coefficients": lambda m, X, y: pb.inspection.coefficients(m, X),
    "continue_fit": lambda m, X, y: scored(continued(m, X, y), X),
    "predict_with_acquisition": lambda m, X, y: replace(
        pb.acquisition.predict_with_acquisition(m, row_of(X)), ledger=()
    ),
    "decision_function": lambda m, X, y: pb.decision_function(m, X),
    "decision_path": lambda m, X, y: pb.inspection.decision_path(m, X),
    "acquisition_session": lambda m, X, y: decided(m, X),
    "distill": lambda m, X, y: scored(
        pb.distill(m, X, mean_comparisons=6.0, n_synthetic=40, n_neighbors=3, rng=0), X
    ),
    "early_exit": lambda m, X, y: scored(pb.early_exit(m, X, max_comparisons=2.0), X),
    "prediction_cost": lambda m, X, y: [
        pb.prediction_cost(m, X),
        attempt(lambda: pb.prediction_cost(m, X, "features")),
        attempt(lambda: pb.prediction_cost(m, X, exit="proven")),
    ],
    "explain": lambda m, X, y: pb.explain(m, X.iloc[[2]]),
    "to_c": lambda m, X, y: c_file(m, X),
    "feature_importances": lambda m, X, y: pb.feature_importances(m, X=X),
    "error_bound": lambda m, X, y: pb.error_bound(m, X, y),
    "prediction_sets": prediction_sets,
    "margin_bound": lambda m, X, y: pb.inspection.margin_bound(m, X, y, 0.3),
    "margin_curve": lambda m, X, y: pb.inspection.margin_curve(m, X, y, [0.0, 0.4]),
    "margin_error": lambda m, X, y: pb.inspection.margin_error(m, X, y, 0.3),
    "margins": lambda m, X, y: pb.inspection.margins(m, X, y),
    "normalized_margins": lambda m, X, y: pb.inspection.normalized_margins(m, X, y),
    "permutation_importance": lambda m, X, y: pb.inspection.permutation_importance(
        m, X, y, n_repeats=1, rng=0
    ),
    "plot.coefficients": lambda m, X, y: drawn(pb.plot.coefficients(m, X)),
    "plot.graph": lambda m, X, y: drawn(pb.plot.graph(m, X, y)),
    "plot.regions": lambda m, X, y: drawn(
        pb.plot.regions(m, X, features=("other", "more"), resolution=9)
    ),
    "plot.training_curve": lambda m, X, y: drawn(pb.plot.training_curve(m, X, y)),
    "plot.tree": lambda m, X, y: drawn(pb.plot.tree(m, X)),
    "predict": lambda m, X, y: pb.predict(m, X),
    "predict_proba": lambda m, X, y: [
        pb.predict_proba(m, X),
        attempt(lambda: pb.predict_proba(m, X, route="expected")),
    ],
    "cost_complexity_pruning_path": lambda m, X, y: pb.models.cost_complexity_pruning_path(m, X, y),
    "reach": lambda m, X, y: pb.inspection.reach(m, X, y),
    "risk_threshold": lambda m, X, y: pb.risk_threshold(m, X, y, max_risk=0.5),
    "shap_values": lambda m, X, y: pb.shap_values(m, X).values,
    "staged_decision_function": lambda m, X, y: pb.staged_decision_function(m, X),
    "staged_predict": lambda m, X, y: pb.staged_predict(m, X),
    "staged_predict_proba": lambda m, X, y: pb.staged_predict_proba(m, X),
    "to_json": lambda m, X, y: told_of_sum(pb.export.from_json(pb.export.to_json(m, X)), X),
    "to_shap": lambda m, X, y: pb.export.to_shap(m, X),
    "to_shapiq": lambda m, X, y: [vars(tree) for tree in pb.export.to_shapiq(m, X)],
    "as_tree_ensemble": lambda m, X, y: told_of_sum(pb.models.as_tree_ensemble(m, X), X),
}
PLOTS = {name for name in FUNCTIONS if name.startswith("plot.")}
#: Names of a parameter that is a model, and of those that are rows.
OF_MODEL, OF_ROWS = {"model", "tree", "teacher"}, {"X", "X_cal", "x", "row", "rows"}


def public() -> dict[str, Any]:
    """Return the public names and what they are; plots are called ``plot.tree``."""
    spaces = (pb, pb.acquisition, pb.data, pb.export, pb.inspection, pb.models)
    every = {name: getattr(space, name) for space in spaces for name in space.__all__}
    return every | {f"plot.{name}": getattr(pb.plot, name) for name in pb.plot.__all__}


def named(takes: set[str]) -> set[str]:
    """Return the public functions that have a parameter among these names, and rows."""
    actual = set()
    for name, value in public().items():
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
