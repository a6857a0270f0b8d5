"""Small fits on tables with missing values and categories, to soft labels, and of each option."""

from __future__ import annotations

from functools import partial
from typing import Any

import fits
import numpy as np
from fits import Fit, fits_of, sampled, stump
from tables import COUNTS, NUMBERS, SHARES, SOFT_THREE, SOFT_TWO, TABLES, THREE, TWO, WORDS

import pboost as pb

BINNED = stump("kearns_mansour", "binned", 64)
SMOOTHED, SMOOTHED_J = (
    pb.weak.stump(
        criterion,
        "exact",
        max_bins=256,
        min_weight_fraction=0.0,
        min_samples_leaf=5,
        missing="learn",
        categorical_smoothing=2.0,
    )
    for criterion in ("gini", "kearns_mansour")
)
SOFT = {"y": None, "y_proba": SOFT_TWO, "classes": ["no", "yes"]}
SOFT_J = {"y": None, "y_proba": SOFT_THREE, "classes": None}
WEIGHTED = {"sample_weight": SHARES}
FRAME = {"table": "frame"}
#: More than 5,000 rows, whose labels only a pair of columns tells.
CROSSED = np.random.RandomState(47).randint(0, 64, (6000, 3)).astype(float)
CROSSED_TWO = (CROSSED[:, 0] > 31) ^ (CROSSED[:, 1] > 31)
#: What no fit has if it is fitted to the first rows; its bins and levels are those of all rows.
HELD = TABLES["frame"].X[300:], TWO[300:]
HELD_J = TABLES["frame"].X[300:], THREE[300:]
PAID = {
    "feature_costs": {"a": 4.0, "b": 1.0, "text": 2.0},
    "cost_groups": [["a", "flag"]],
    "comparison_cost": 0.5,
}
PAID_IN_BINS = {**PAID, **FRAME, "search": "binned"}
#: The builders of two classes, their options here, and how they are told to search in bins.
OF_TWO: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "adaboost": ({**fits.ADABOOST, "n_estimators": 8}, {"weak_learner": BINNED}),
    "boosted_tree": ({**fits.TREE, "max_nodes": 8}, {"weak_learner": BINNED}),
    "matryoshka": ({**fits.MATRYOSHKA, "shape": (2, 3)}, {"weak_learner": BINNED}),
    "oblique_tree": ({**fits.OBLIQUE, "max_nodes": 2, "n_stumps": 3}, {}),
    "adaboost_real": ({**fits.REAL, "n_estimators": 5}, {"weak_learner": BINNED}),
    "topdown_tree": ({**fits.TOPDOWN, "max_nodes": 6}, {}),
    "probitboost": ({**fits.PROBIT, "max_iter": 6}, {}),
}
#: The builders of any number of classes.
OF_MANY: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cart": (fits.CART, {"search": "binned"}),
    "pruned_cart": ({"cv": 3, "rule": "1se", **fits.CART, "max_depth": 4}, {"search": "binned"}),
    "forest": ({**fits.FOREST, "n_estimators": 4, "max_depth": 6}, {"search": "binned"}),
    "stagewise": ({**fits.STAGEWISE, "loss": None, "n_estimators": 4}, {"search": "binned"}),
    "probit_tree": ({**fits.PROBIT_TREE, "max_depth": 1, "max_iter": 4}, {"search": "binned"}),
    "sbpmt": ({**fits.SBPMT, "n_estimators": 2, "max_iter": 3, "max_depth": 1}, {}),
}


def _on_tables(binned: dict[str, Any]) -> dict[str, dict[str, Any]]:
    actual: dict[str, dict[str, Any]] = {
        **{name: {"table": name} for name in ("missing", "categories", "levels")},
        "frame, weights": {**FRAME, **WEIGHTED},
        "soft labels, frame": {**FRAME, **SOFT},
    }
    if binned:
        actual["frame, binned"] = {**FRAME, **binned}
        actual["soft labels, binned, weights"] = {"table": "missing", **SOFT, **WEIGHTED, **binned}
    return actual


def of_every_table() -> dict[str, Fit]:
    """Return the fits of every builder on every table."""
    actual: dict[str, Fit] = {}
    for builder, (shared, binned) in (OF_TWO | OF_MANY).items():
        actual |= fits_of(builder, shared, TWO, _on_tables(binned))
    for builder, (shared, binned) in OF_MANY.items():
        changes = {
            "three classes, frame": {**FRAME, "y": THREE},
            "three classes, levels, binned": {"table": "levels", "y": THREE, **WEIGHTED, **binned},
            "three soft labels, missing": {"table": "missing", **SOFT_J},
        }
        actual |= fits_of(builder, shared, TWO, changes)
    return actual


def of_graphs() -> dict[str, Fit]:
    """Return the fits of graphs: observations, validation, prices, many classes."""
    every = {
        "smoothed levels": {"table": "levels", "weak_learner": SMOOTHED},
        "adatree2, frame": {**FRAME, "observation": pb.observation.adatree2()},
        "flip, missing": {"table": "missing", "observation": pb.observation.flip(0.125)},
        "uniform, levels, binned": {
            "table": "levels",
            "observation": pb.observation.uniform(),
            "weak_learner": BINNED,
        },
        "half, soft labels": {**SOFT, **FRAME, "observation": pb.observation.half()},
        "a share held out": {**FRAME, **WEIGHTED, "validation": 0.25, "n_iter_no_change": 3},
        "validation, binned": {
            **FRAME,
            "validation": (*HELD, SHARES[300:] + 1),
            "n_iter_no_change": 3,
            "weak_learner": BINNED,
        },
        "prices": {**FRAME, **PAID},
        "prices, binned": {**FRAME, **PAID, "weak_learner": stump("gini", "binned", 6)},
    }
    many = {
        "three classes, frame": {**FRAME, "y": THREE},
        "three classes, levels, binned": {
            "table": "levels",
            "y": THREE,
            **WEIGHTED,
            "weak_learner": BINNED,
        },
        "three classes, missing, flip": {
            "table": "missing",
            "y": THREE,
            "observation": pb.observation.flip(0.125),
        },
        "three soft labels": {**FRAME, **SOFT_J},
        "three classes, validation": {
            **FRAME,
            "y": THREE,
            "validation": HELD_J,
            "n_iter_no_change": 3,
        },
    }
    actual: dict[str, Fit] = {}
    for builder in ("adaboost", "boosted_tree", "matryoshka"):
        shared = OF_TWO[builder][0]
        joins = {"join": "all"} if builder == "matryoshka" else {}
        actual |= fits_of(builder, shared, TWO, every)
        actual |= fits_of(builder, {**shared, **joins}, TWO, many)
    levels = {"table": "levels", "weak_learner": SMOOTHED}
    actual |= fits_of(
        "adaboost",
        OF_TWO["adaboost"][0],
        TWO,
        {
            "smoothed levels, three classes": {**levels, "y": THREE, "weak_learner": SMOOTHED_J},
            "smoothed levels, adatree2": {
                **levels,
                "observation": pb.observation.adatree2(),
                **WEIGHTED,
            },
            "gaussian, missing": {
                "X": TABLES["missing"].X[:, :5],
                "observation": pb.observation.gaussian(0.25),
                "weak_learner": BINNED,
            },
        },
    )
    functions = {
        "three classes, levels": {"table": "levels", "y": THREE, "impurity": "kearns_mansour"},
        "function, frame": {**FRAME, "impurity": fits.impurity},
        "function, levels, weights": {"table": "levels", **WEIGHTED, "impurity": fits.impurity},
    }
    actual |= fits_of("topdown_tree", OF_TWO["topdown_tree"][0], TWO, functions)
    few = {
        "affine, missing": {"table": "missing", "weak_learner": fits.affine()},
        "separators, levels": {"table": "levels", "weak_learner": fits.separator("binned")},
        "linear, categories": {"table": "categories", "weak_learner": fits.linear(0.5)},
        "sampled, missing": {"table": "missing", "observation": sampled("first_increase")},
        "affine, three classes": {"y": THREE, "weak_learner": fits.affine("binned")},
    }
    actual |= fits_of("adaboost", {**fits.ADABOOST, "n_estimators": 3}, TWO, few)
    actual |= fits_of("boosted_tree", {**fits.TREE, "max_nodes": 3}, TWO, few)
    grown = {
        f"{growth}, three classes": {"y": THREE, "growth": growth, **FRAME}
        for growth in fits.GROWTHS[1:]
    }
    return actual | fits_of("boosted_tree", OF_TWO["boosted_tree"][0], TWO, grown)


class Skewed(pb.losses.Loss):
    """A loss that the package does not know: the squared loss, twice that above the target."""

    name = "skewed"
    is_regression = True

    def value(self, y, f):
        """Return the loss of each decision value."""
        return np.where(f > y, 2.0, 1.0) * (f - y) * (f - y)

    def gradient(self, y, f):
        """Return its derivative."""
        return np.where(f > y, 4.0, 2.0) * (f - y)


def of_sums() -> dict[str, Fit]:
    """Return the fits of gradient boosting."""
    numbers = {"y": NUMBERS, "task": "regression"}
    losses: dict[str, dict[str, Any]] = {
        **{loss: {"loss": loss} for loss in ("log_loss", "exponential", "hinge", "probit")},
        **{
            loss: {"loss": loss, **numbers} for loss in ("squared_error", "absolute_error", "huber")
        },
        "quantile": {"loss": pb.losses.Quantile(0.75), **numbers},
        "poisson": {"loss": "poisson", "y": COUNTS, "task": "regression"},
        "softmax": {"loss": "softmax", "y": THREE},
        "skewed": {"loss": Skewed(), **numbers},
    }
    actual = {}
    for loss, options in losses.items():
        binned = {**options, "table": "frame", "search": "binned"}
        actual[f"{loss}, frame"] = binned
        actual[f"{loss}, levels, weights"] = {**options, **WEIGHTED, "table": "levels"}
        if loss in ("log_loss", "exponential", "probit", "poisson", "softmax"):
            actual[f"{loss}, newton"] = {
                **binned,
                "leaf_update": "newton",
                "l2_regularization": "auto",
            }
    in_bins = {"search": "binned", "table": "frame"}
    deep = {**in_bins, "max_depth": 5}
    actual |= {
        growth: {**deep, "growth": growth}
        for growth in ("independent", "pooled", "symmetric", "auto")
    }
    actual |= {
        f"{growth}, three classes": {**deep, "growth": growth, "y": THREE}
        for growth in ("independent", "pooled", "symmetric")
    }
    per_row = {**in_bins, "growth": "cost_efficient", "max_depth": None}
    one_tree = {**in_bins, "y": THREE, "multi_strategy": "multi_output_tree", "loss": "softmax"}
    actual |= {
        "per comparison": {**per_row, "tree_comparisons": 2.5},
        "per comparison, three classes": {**per_row, "tree_comparisons": [3.0, 2.0], "y": THREE},
        "one tree": one_tree,
        "one tree, newton, weights": {
            **one_tree,
            **WEIGHTED,
            "leaf_update": "newton",
            "l2_regularization": 0.5,
        },
        "one tree, soft labels, leaves": {
            **one_tree,
            **SOFT_J,
            "max_leaf_nodes": 5,
            "subsample": 0.5,
        },
        "one tree, columns drawn": {**one_tree, "max_features": 2, "max_features_per_tree": 3},
        "one tree, validation": {**one_tree, "validation": HELD_J, "n_iter_no_change": 2},
        "best first": {**in_bins, "max_leaf_nodes": 6, "max_depth": None},
        "columns of trees drawn": {**in_bins, "max_features_per_tree": 0.5},
        "columns of splits drawn": {**in_bins, "max_features": "sqrt", "max_depth": 4},
        "shrunk": {**deep, "leaf_shrinkage": 2.0},
        "shrunk, numbers, weights": {**deep, **numbers, **WEIGHTED, "leaf_shrinkage": 1.5},
        "shrunk, three classes": {**deep, "leaf_shrinkage": "auto", "y": THREE},
        "random": {**deep, "random_strength": 0.5, "subsample": 0.6},
        "random, numbers, weights": {**deep, **numbers, **WEIGHTED, "random_strength": 0.3},
        "random, three classes": {**deep, "random_strength": "auto", "subsample": 0.8, "y": THREE},
        "shrunk, number of trees": {**deep, "leaf_shrinkage": 2.0, "n_estimators": "auto"},
        "l2": {**in_bins, "l2_regularization": 2.0, "loss": "log_loss"},
        "held back": {
            **in_bins,
            "l2_regularization": 0.5,
            "min_child_weight": 6.0,
            "min_split_gain": 0.25,
            "max_depth": 6,
        },
        "steps of at most .25": {**in_bins, "max_delta_step": 0.25},
        "steps of any size": {**in_bins, "max_delta_step": None, "y": THREE},
        "from zero": {**in_bins, "init": "zero"},
        "from zero, three classes": {**in_bins, "init": "zero", "y": THREE},
        "packed": {**in_bins, "histogram_precision": "packed", "loss": "squared_error", **numbers},
        "wide": {**in_bins, "histogram_precision": "wide", "loss": "squared_error", **numbers},
        "wide, three classes": {**in_bins, "histogram_precision": "wide", "y": THREE},
        "wide, weights, newton": {
            **in_bins,
            **WEIGHTED,
            "histogram_precision": "wide",
            "leaf_update": "newton",
        },
        "wide, one tree": {**one_tree, "histogram_precision": "wide"},
        "bag of 150": {"subsample": 150, "table": "missing"},
        "bag of 150, three classes": {**in_bins, "subsample": 150, "y": THREE},
        "monotone": {"search": "binned", "monotonic_cst": {0: 1, 2: -1}, "max_depth": 4},
        "monotone, frame, leaves": {**in_bins, "monotonic_cst": {"a": 1}, "max_leaf_nodes": 7},
        "interactions": {**in_bins, "interaction_cst": [["a", "b"], ["b", "text"]], "max_depth": 4},
        "prices": {**PAID_IN_BINS},
        "prices, three classes, leaves": {**PAID_IN_BINS, "y": THREE, "max_leaf_nodes": 6},
        "prices, tradeoff": {**PAID_IN_BINS, "cost_tradeoff": 1.5},
        "prices, tradeoff, leaves, numbers": {
            **PAID_IN_BINS,
            **numbers,
            "cost_tradeoff": 0.25,
            "max_leaf_nodes": 6,
        },
        "a share held out": {
            **in_bins,
            "n_estimators": 8,
            "validation": 0.25,
            "n_iter_no_change": 2,
        },
        "a share held out, exact": {"table": "missing", "validation": 0.25, "n_iter_no_change": 2},
        "a share held out, three classes": {
            **in_bins,
            **WEIGHTED,
            "y": THREE,
            "validation": 0.25,
            "n_iter_no_change": 2,
        },
        "a share held out, soft labels": {
            **in_bins,
            **SOFT_J,
            "validation": 0.25,
            "n_iter_no_change": 2,
        },
        "validation": {**in_bins, "n_estimators": 8, "validation": HELD, "n_iter_no_change": 2},
        "validation, numbers, weights": {
            **in_bins,
            **numbers,
            **WEIGHTED,
            "validation": (TABLES["frame"].X[300:], NUMBERS[300:], SHARES[300:] + 1),
            "n_iter_no_change": 2,
        },
        "sorted columns": {"X": pb.data.sort_columns(TABLES["missing"].X, copy=True, n_threads=1)},
        "binned columns": {
            "X": pb.data.bin_columns(
                TABLES["missing"].X,
                max_bins=32,
                bin_edges="exact",
                sample_weight=None,
                keep_values=False,
                n_threads=1,
            ),
            "search": "auto",
        },
        "auto, a pair of columns": {"X": CROSSED, "y": CROSSED_TWO, "search": "binned"},
        "few bins, words": {**in_bins, "max_bins": 5, "y": WORDS},
    }
    return fits_of("stagewise", {**fits.STAGEWISE, "loss": None, "n_estimators": 4}, TWO, actual)


def of_trees() -> dict[str, Fit]:
    """Return the fits of trees and ensembles of any kind."""
    numbers = {"y": NUMBERS, "task": "regression", "criterion": "squared_error"}
    trees: dict[str, dict[str, Any]] = {
        **{
            f"{criterion}, frame": {"criterion": criterion, **FRAME}
            for criterion in ("gini", "entropy", "error", "kearns_mansour")
        },
        "error, three classes, levels": {"criterion": "error", "y": THREE, "table": "levels"},
        "smoothed levels": {"table": "levels", "categorical_smoothing": 2.0},
        "smoothed levels, binned, numbers": {
            **numbers,
            "table": "levels",
            "categorical_smoothing": 2.0,
            "search": "binned",
        },
        "numbers, frame, weights": {**numbers, **FRAME, **WEIGHTED},
        "numbers, missing, best first": {**numbers, "table": "missing", "max_leaf_nodes": 8},
        "best first, three classes": {
            **FRAME,
            "y": THREE,
            "growth": "best_first",
            "min_samples_split": 20,
        },
        "prices": {**FRAME, **PAID},
        "prices, binned, three classes": {**PAID_IN_BINS, "y": THREE},
    }
    forests = {
        name: options for name, options in trees.items() if "prices" in name or "numbers" in name
    }
    forests["columns drawn, leaves"] = {**FRAME, "max_features": 2, "max_leaf_nodes": 9}
    forests["subsamples, three classes"] = {
        **FRAME,
        "y": THREE,
        "bootstrap": False,
        "max_samples": 0.5,
    }
    pruned = {
        "numbers, frame": {**numbers, **FRAME},
        "smallest error, levels": {"table": "levels", "rule": "min"},
    }
    sums = {
        "trees of each class, frame": {**FRAME, "y": THREE, "one_vs_rest": "tree"},
        "mean, levels": {"table": "levels", "voting": "soft", "stratify": True, "y": THREE},
    }
    probit = {
        "pruned, three classes": {**FRAME, "y": THREE, "complexity": 0.05, "max_depth": 3},
        "no safeguard": {"table": "missing", "safeguard": False, "tol": 1e-3, "max_iter": 20},
    }
    sorted_columns = pb.data.sort_columns(TABLES["missing"].X, copy=True, n_threads=1)
    binned = pb.data.bin_columns(
        TABLES["missing"].X,
        max_bins=16,
        bin_edges="sample",
        sample_weight=SHARES,
        keep_values=True,
        n_threads=1,
    )
    prepared = {
        "sorted columns": {"X": sorted_columns},
        "binned columns": {"X": binned, "search": "auto"},
    }
    changes = {
        "cart": trees | prepared,
        "forest": forests | prepared,
        "pruned_cart": pruned,
        "probit_tree": probit,
        "sbpmt": sums,
    }
    actual: dict[str, Fit] = {}
    for builder, of_builder in changes.items():
        actual |= fits_of(builder, OF_MANY[builder][0], TWO, of_builder)
    return actual


def of_ensembles() -> dict[str, Fit]:
    """Return the fits of builders that take another builder."""
    tree = {k: v for k, v in fits.CART.items() if k not in ("rng", "sample_weight", "task")}
    chain = {k: v for k, v in fits.ADABOOST.items() if k not in ("rng", "sample_weight")}
    frame, levels = TABLES["frame"], TABLES["levels"]
    trees = {**fits.BAGGING, **tree, "n_estimators": 3, "max_depth": 3}
    rest = {**fits.ADABOOST, "n_estimators": 3}
    of_levels = {"categorical_features": levels.categorical_features}
    base = partial(pb.fit_cart, **{**tree, "max_depth": 2}, task="classification", rng=0)
    again = {"n_estimators": 3, "learning_rate": 0.5, "base_learner": base}
    both, of_300 = fits.asked(frame), fits.asked(levels)
    return {
        "bagging: soft labels, frame": Fit(
            pb.fit_bagging,
            (pb.fit_cart, frame.X, None),
            {**trees, "y_proba": SOFT_THREE, "classes": None, "voting": "soft"},
            both,
        ),
        "bagging: chains, levels, weights": Fit(
            pb.fit_bagging,
            (partial(pb.fit_adaboost, n_estimators=3), levels.X, TWO),
            {**chain, **fits.BAGGING, **of_levels, **WEIGHTED, "max_samples": 0.75},
            of_300,
        ),
        "one_vs_rest: chains, frame, weights": Fit(
            pb.fit_one_vs_rest, (pb.fit_adaboost, frame.X, THREE), {**rest, **WEIGHTED}, both
        ),
        "one_vs_rest: soft labels, levels": Fit(
            pb.fit_one_vs_rest,
            (pb.fit_adaboost, levels.X, None),
            {**rest, **of_levels, "y_proba": SOFT_THREE, "classes": None},
            of_300,
        ),
        "samme: trees, frame, weights": Fit(
            pb.fit_samme, (frame.X, THREE), {**again, **WEIGHTED}, both
        ),
        "samme: soft labels": Fit(
            pb.fit_samme,
            (frame.X, None),
            {**again, "y_proba": SOFT_THREE, "classes": None, "sample_weight": None},
            both,
        ),
    }


def more_fits() -> dict[str, Fit]:
    """Return every fit of this file by name."""
    return {**of_every_table(), **of_graphs(), **of_sums(), **of_trees(), **of_ensembles()}
