"""Models of models and of fits: continued, cross-validated, calibrated, within budgets, pruned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fits
import numpy as np
from fits import EXACT, Made, asked, stump
from table_fits import BINNED, HELD, OF_MANY, OF_TWO, PAID
from tables import COUNTS, NUMBERS, SHARES, SOFT_THREE, SOFT_TWO, TABLES, THREE, TWO, WORDS, X

import pboost as pb

FRAME = TABLES["frame"].X
MISSING = TABLES["missing"].X
LEVELS = TABLES["categories"].X
ROWS = asked(TABLES["frame"])
ROWS_OF_LEVELS = asked(TABLES["categories"])
ROWS_OF_NUMBERS = asked(TABLES["missing"])
CHAIN = {**OF_TWO["adaboost"][0], "n_estimators": 4}
TREE = {**OF_TWO["boosted_tree"][0], "max_nodes": 4}
FOREST = {**OF_MANY["forest"][0], "n_estimators": 2}
SUM = {**OF_MANY["stagewise"][0], "n_estimators": 3}
SUM_IN_BINS = {**SUM, "search": "binned"}
ONE_TREE = {**SUM_IN_BINS, "multi_strategy": "multi_output_tree", "loss": "softmax"}
CART = {**OF_MANY["cart"][0], "max_depth": 3}
OTHER = stump("gini", "binned", 6)
CATEGORICAL = {"categorical_features": TABLES["categories"].categorical_features}


def _continued(build: Any, shared: dict[str, Any], y: Any, **more: Any) -> Made:
    """Fit, and go on with the same rows."""
    X, rows = more.pop("X", FRAME), more.pop("rows", ROWS)
    options = {"sample_weight": shared.get("sample_weight"), "rng": None, **more}

    def make(n_threads: int) -> Any:
        start = build(X, y, **shared, n_threads=n_threads)
        return pb.continue_fit(start, X, y, **options, n_threads=n_threads)

    return Made(make, rows)


def _in_steps(build: Any, shared: dict[str, Any], y: Any, **more: Any) -> Made:
    """Fit, and go on in three short calls with one state."""

    def make(n_threads: int) -> Any:
        model, state = build(FRAME, y, **shared, n_threads=n_threads), pb.models.FitState()
        options = {"sample_weight": shared.get("sample_weight"), "rng": None, **more}
        for _ in range(3):
            model = pb.continue_fit(model, FRAME, y, **options, state=state, n_threads=n_threads)
        return model

    return Made(make, ROWS)


def continued() -> dict[str, Made]:
    """Return models of every kind that went on."""
    weighted = {"sample_weight": SHARES}
    soft = {"observation": pb.observation.adatree2()}
    affine = {**CHAIN, "weak_learner": fits.affine()}
    validated = {**SUM_IN_BINS, "validation": HELD, "n_iter_no_change": 2}
    chains = {
        "chain, weights": ({**CHAIN, **weighted}, TWO, {}),
        "chain, binned": ({**CHAIN, "weak_learner": BINNED}, TWO, {}),
        "chain, three classes": (CHAIN, THREE, {}),
        "chain, adatree2": ({**CHAIN, **soft}, TWO, {}),
        "affine chain": (affine, TWO, {"X": MISSING, "rows": ROWS_OF_NUMBERS}),
        "chain by other stumps": (CHAIN, TWO, {"weak_learner": OTHER, "observation": EXACT}),
    }
    trees = {
        "tree, weights": ({**TREE, **weighted}, TWO),
        "tree, three classes": (TREE, THREE),
        "tree, adatree2": ({**TREE, **soft}, TWO),
        "tree, look-ahead": ({**TREE, "growth": "look_ahead"}, TWO),
    }
    sums = {
        "sum, weights": ({**SUM, **weighted}, TWO),
        "sum, binned, bag": ({**SUM_IN_BINS, "subsample": 0.5, "max_features": 2}, TWO),
        "sum, three classes": (SUM_IN_BINS, THREE),
        "sum, one tree": (ONE_TREE, THREE),
        "sum, prices": ({**SUM_IN_BINS, **PAID}, TWO),
        "sum, prices, three classes": ({**SUM_IN_BINS, **PAID}, THREE),
        "sum, numbers": ({**SUM, "task": "regression"}, NUMBERS),
        "sum, a share held out": ({**SUM_IN_BINS, "validation": 0.25, "n_iter_no_change": 5}, TWO),
    }
    forests = {
        "forest": (FOREST, TWO),
        "forest, three classes, binned, weights": (
            {**FOREST, "search": "binned", **weighted},
            THREE,
        ),
        "forest, numbers": (
            {**FOREST, "task": "regression", "criterion": "squared_error"},
            NUMBERS,
        ),
    }
    graph, tree_sum = pb.fit_adaboost, pb.fit_gradient_boosting
    return {
        **{
            n: _continued(graph, o, y, n_estimators=4, **more) for n, (o, y, more) in chains.items()
        },
        **{n: _continued(pb.fit_boosted_tree, o, y, max_nodes=4) for n, (o, y) in trees.items()},
        **{n: _continued(tree_sum, o, y, n_estimators=3) for n, (o, y) in sums.items()},
        **{
            n: _continued(pb.fit_random_forest, o, y, n_estimators=2)
            for n, (o, y) in forests.items()
        },
        "sum, validation": _continued(tree_sum, validated, TWO, n_estimators=3, validation=HELD),
        "chain after a tree": _continued(pb.fit_boosted_tree, TREE, TWO, n_estimators=3),
        "matryoshka": _continued(pb.fit_matryoshka, OF_TWO["matryoshka"][0], TWO, max_nodes=3),
        "state, chain": _in_steps(graph, {**CHAIN, **weighted}, TWO, n_estimators=2),
        "state, chain, binned": _in_steps(
            graph, {**CHAIN, "weak_learner": BINNED}, TWO, n_estimators=2
        ),
        "state, sum": _in_steps(tree_sum, SUM, TWO, n_estimators=2),
        "state, sum, binned, bag": _in_steps(
            tree_sum, {**SUM_IN_BINS, "subsample": 0.5, **weighted}, TWO, n_estimators=2
        ),
        "state, sum, three classes": _in_steps(tree_sum, SUM_IN_BINS, THREE, n_estimators=2),
        "state, sum, one tree": _in_steps(tree_sum, ONE_TREE, THREE, n_estimators=2),
        "state, sum, a share held out": _in_steps(
            tree_sum,
            {**SUM_IN_BINS, "validation": 0.25, "n_iter_no_change": 5},
            NUMBERS,
            n_estimators=2,
        ),
    }


def _without(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}


def cross_validated() -> dict[str, Made]:
    """Return the records of cross-validations."""

    def of(build: Any, options: dict[str, Any], y: Any, X: Any = LEVELS, **more: Any) -> Made:
        own = {**_without(options, "rng", "sample_weight"), **(CATEGORICAL if X is LEVELS else {})}
        arguments = {"task": None, "cv": 3, "rng": 4, "sample_weight": None, **more}

        def make(n_threads: int) -> Any:
            fit = partial(build, **own, n_threads=n_threads)
            return pb.cross_validate(fit, X, y, **arguments)

        return Made(make, ())

    binned = pb.data.bin_columns(
        MISSING,
        max_bins=32,
        bin_edges="sample",
        sample_weight=None,
        keep_values=True,
        n_threads=1,
    )
    return {
        "chain": of(pb.fit_adaboost, CHAIN, TWO),
        "chain, soft labels": of(
            pb.fit_adaboost, CHAIN, None, y_proba=SOFT_TWO, classes=["no", "yes"]
        ),
        "tree, three classes, weights": of(
            pb.fit_cart, _without(CART, "task"), THREE, sample_weight=SHARES
        ),
        "sum, numbers": of(pb.fit_gradient_boosting, SUM, NUMBERS, task="regression"),
        "sum, three soft labels": of(
            pb.fit_gradient_boosting, SUM_IN_BINS, None, y_proba=SOFT_THREE, classes=None
        ),
        "forest, words": of(pb.fit_random_forest, FOREST, WORDS, cv=2),
        "chain, binned columns": of(
            pb.fit_adaboost, {**CHAIN, "weak_learner": BINNED}, TWO, X=binned
        ),
    }


def _fitted(build: Any, options: dict[str, Any], y: Any, X: Any = FRAME) -> Callable[[int], Any]:
    return lambda n_threads: build(X, y, **options, n_threads=n_threads)


def _to_first(build: Any, options: dict[str, Any], y: Any) -> Callable[[int], Any]:
    """Fit to the first 200 rows, so that others are new."""
    return _fitted(build, {**options, **CATEGORICAL}, y[:200], LEVELS[:200])


def calibrated() -> dict[str, Made]:
    """Return calibrated models, early exits and models within a budget."""
    chain = _to_first(pb.fit_adaboost, CHAIN, TWO)
    three = _to_first(pb.fit_random_forest, FOREST, THREE)
    tree_sum = _to_first(pb.fit_gradient_boosting, {**SUM_IN_BINS, "n_estimators": 12}, TWO)
    many = _to_first(pb.fit_gradient_boosting, SUM_IN_BINS, THREE)
    feature_costs = {
        "feature_costs": [4.0, 1.0, 2.0, 1.0],
        "cost_groups": [[0, 3]],
        "comparison_cost": 0.5,
    }
    paid = _to_first(
        pb.fit_gradient_boosting, {**SUM_IN_BINS, **feature_costs, "n_estimators": 8}, TWO
    )
    new, y_new, y_three = LEVELS[200:], TWO[200:], THREE[200:]
    exits = {
        "mean_comparisons": None,
        "max_comparisons": None,
        "mean_feature_cost": None,
        "feature_costs": None,
        "cost_groups": None,
    }

    def of(fit: Any, y: Any, method: str, weight: Any = None) -> Made:
        options = {"method": method, "cv": None, "rng": None, "sample_weight": weight}
        return Made(lambda n: pb.calibrate(fit(n), new, y, **options), ROWS_OF_LEVELS)

    def in_folds(n_threads: int) -> Any:
        own = {**_without(CHAIN, "sample_weight", "rng"), **CATEGORICAL}
        fit = partial(pb.fit_adaboost, **own, n_threads=n_threads)
        options = {"method": "platt", "cv": 3, "rng": 6, "sample_weight": None}
        return pb.calibrate(fit, LEVELS, TWO, **options)

    def early(fit: Any, length: float | None = 3.0, **budget: Any) -> Made:
        options = {**exits, "length": length, **budget}
        return Made(lambda n: pb.early_exit(fit(n), new, **options), ROWS_OF_LEVELS)

    return {
        "calibrate: platt": of(chain, y_new, "platt"),
        "calibrate: isotonic, weights": of(chain, y_new, "isotonic", SHARES[200:]),
        "calibrate: platt, three classes": of(three, y_three, "platt"),
        "calibrate: isotonic, three classes": of(many, y_three, "isotonic"),
        "calibrate: folds": Made(in_folds, ROWS_OF_LEVELS),
        "early_exit: chain": early(chain, mean_comparisons=2.5),
        "early_exit: forest, three classes": early(three, mean_comparisons=6.0),
        "early_exit: sum, worst": early(tree_sum, mean_comparisons=8.0, max_comparisons=20.0),
        "early_exit: sum to its end": early(tree_sum, None, mean_comparisons=12.0),
        "early_exit: sum, three classes": early(many, mean_comparisons=14.0),
        "early_exit: price": early(paid, mean_feature_cost=3.0),
    }


def _scored(X: Any) -> np.ndarray:
    """Return probabilities that no model made."""
    return np.clip(X[:, 0] / 8 + 0.5, 0.125, 0.875)


def imitated() -> dict[str, Made]:
    """Return models within budgets, and those that imitate others."""
    distilled = {
        "mean_comparisons": 12.0,
        "classes": None,
        "task": None,
        "n_synthetic": 200,
        "kind": "neighbors",
        "synthetic_fraction": 0.25,
        "n_neighbors": 5,
        "learning_rate": 0.5,
        "first_tree_comparisons": 3.0,
        "tree_comparisons": 2.5,
        "categorical_features": None,
        "rng": 2,
    }
    budgets = {
        "mean_comparisons": None,
        "max_comparisons": None,
        "mean_feature_cost": None,
        "max_bytes": None,
    }
    within = {
        **budgets,
        "feature_costs": None,
        "cost_groups": None,
        "task": None,
        "cv": 2,
        "categorical_features": None,
        "rng": 3,
        "sample_weight": None,
    }

    def of(fit: Any, X: Any = FRAME, rows: Any = ROWS, **options: Any) -> Made:
        arguments = {**distilled, **options}
        return Made(lambda n: pb.distill(fit(n), X, **arguments, n_threads=n), rows)

    def budget(y: Any, X: Any, **options: Any) -> Made:
        arguments = {**within, **options}
        return Made(lambda n: pb.fit_within_budget(X, y, **arguments, n_threads=n), (X[:20],))

    forest, three = (
        _fitted(pb.fit_random_forest, FOREST, TWO),
        _fitted(pb.fit_random_forest, FOREST, THREE),
    )
    numbers = _fitted(pb.fit_gradient_boosting, {**SUM, "task": "regression"}, NUMBERS)
    return {
        "distill: forest": of(forest),
        "distill: three classes, random": of(three, kind="random", n_synthetic=100),
        "distill: numbers": of(numbers, synthetic_fraction=0.5),
        "distill: function": of(lambda n: _scored, X, (X[:40],), n_synthetic=0),
        "within: comparisons": budget(TWO[:90], MISSING[:90], mean_comparisons=6.0),
        "within: three classes": budget(THREE[:90], MISSING[:90], mean_comparisons=8.0),
        "within: price": budget(
            TWO[:90], MISSING[:90], mean_feature_cost=3.0, feature_costs=[2.0, 1, 1, 0, 1, 0]
        ),
        "within: bytes": budget(TWO[:90], X[:90], max_bytes=600),
        "within: numbers": budget(NUMBERS[:90], MISSING[:90], mean_comparisons=5.0),
    }


def pruned() -> dict[str, Made]:
    """Return pruned trees, the paths of pruning, and models of the first nodes."""
    two, three = _fitted(pb.fit_cart, CART, TWO), _fitted(pb.fit_cart, CART, THREE)
    numbers = {**CART, "task": "regression", "criterion": "squared_error"}
    regression = _fitted(pb.fit_cart, numbers, NUMBERS)
    chain = _fitted(pb.fit_adaboost, CHAIN, THREE)
    tree_sum = _fitted(pb.fit_gradient_boosting, SUM_IN_BINS, TWO)
    other = {"sample_weight": SHARES[::2]}
    return {
        "prune_path: two": Made(lambda n: pb.models.cost_complexity_pruning_path(two(n)), ()),
        "prune_path: numbers": Made(
            lambda n: pb.models.cost_complexity_pruning_path(regression(n)), ()
        ),
        "prune_path: two, other rows": Made(
            lambda n: pb.models.cost_complexity_pruning_path(
                two(n), FRAME[::2], TWO[::2], **other, criterion="entropy"
            ),
            (),
        ),
        "prune_path: numbers, other rows": Made(
            lambda n: pb.models.cost_complexity_pruning_path(
                regression(n), FRAME[::2], NUMBERS[::2], **other, criterion="squared_error"
            ),
            (),
        ),
        "prune: three": Made(lambda n: pb.prune(three(n), 0.01, criterion="entropy"), ROWS),
        "prefix: chain, three classes": Made(lambda n: pb.models.truncate(chain(n), 2), ROWS),
        "prefix: sum": Made(lambda n: pb.models.truncate(tree_sum(n), 2), ROWS),
    }


def columns() -> dict[str, Made]:
    """Return columns in bins, and what is fitted to columns in a folder."""

    def bins(X: Any, weight: Any = None, keep_values: bool = False, **options: Any) -> Made:
        arguments = {"max_bins": 16, "bin_edges": "sample", **options}
        make = partial(
            pb.data.bin_columns, X, sample_weight=weight, keep_values=keep_values, **arguments
        )
        return Made(lambda n: make(n_threads=n), ())

    def batches(X: Any, y: Any, weight: Any) -> Callable[[], Iterator[Any]]:
        def read() -> Iterator[Any]:
            for first in range(0, len(y), 150):
                part = slice(first, first + 150)
                yield (X[part], y[part]) if weight is None else (X[part], y[part], weight[part])

        return read

    def of(
        fit: Any, X: Any, y: Any, rows: Any, weight: Any = None, keep_values: bool = False
    ) -> Made:
        def make(n_threads: int) -> Any:
            options = {"target": None, "weight": None, "task": None, "bin_edges": "exact"}
            with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                path = Path(folder, "columns")
                pb.data.bin_files(
                    batches(X, y, weight),
                    path,
                    **options,
                    max_bins=32,
                    keep_values=keep_values,
                    n_threads=1,
                )
                actual = pb.data.open_columns(path, check=True)
                return fit(
                    actual.columns, actual.y, sample_weight=actual.weight, n_threads=n_threads
                )

        return Made(make, rows)

    def builder(build: Any, options: dict[str, Any], **more: Any) -> Any:
        return partial(build, **_without({**options, **more}, "sample_weight"))

    stumps = stump("kearns_mansour", "auto", 256)
    chain = builder(pb.fit_adaboost, CHAIN, weak_learner=stumps)
    tree = builder(pb.fit_boosted_tree, TREE, weak_learner=stumps)
    cart = builder(pb.fit_cart, CART, search="binned")
    tree_sum = builder(pb.fit_gradient_boosting, SUM_IN_BINS)
    held_out = builder(pb.fit_gradient_boosting, SUM_IN_BINS, validation=0.25, n_iter_no_change=2)
    forest = builder(
        pb.fit_random_forest, FOREST, search="binned", task="regression", criterion="squared_error"
    )
    numbers = ROWS_OF_NUMBERS
    return {
        "bin_columns: missing": bins(MISSING),
        "bin_columns: frame, exact": bins(FRAME, bin_edges="exact", keep_values=True),
        "bin_columns: frame, weights": bins(FRAME, SHARES),
        "folder: chain, frame": of(chain, FRAME, WORDS, ROWS),
        "folder: tree, weights": of(tree, MISSING, TWO, numbers, SHARES),
        "folder: cart, three classes": of(cart, FRAME, THREE, ROWS),
        "folder: sum, counts": of(tree_sum, MISSING, COUNTS + 0.5, numbers),
        "folder: sum, a share held out": of(held_out, FRAME, TWO, ROWS),
        "folder: forest, numbers": of(forest, MISSING, NUMBERS, numbers, keep_values=True),
    }


def derived_fits() -> dict[str, Made]:
    """Return all of them by name."""
    named = {"continue_fit": continued(), "cross_validate": cross_validated()}
    actual = {f"{kind}: {name}": fit for kind, of in named.items() for name, fit in of.items()}
    return {**actual, **calibrated(), **imitated(), **pruned(), **columns()}
