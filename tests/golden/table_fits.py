"""Small fits on tables with missing values and categories, to soft labels, and of each option."""

from __future__ import annotations

from functools import partial
from typing import Any

import fits
import numpy as np
from fits import Fit, fits_of, sampled, stump
from tables import COUNTS, NUMBERS, SHARES, SOFT_THREE, SOFT_TWO, TABLES, THREE, TWO, WORDS

import pboost as pb

BINNED = stump("kearns-mansour", "binned", 64)
SMOOTHED, SMOOTHED_J = (
    pb.weak.stump(
        criterion,
        "exact",
        max_bins=256,
        min_weight=0.0,
        min_leaf=5,
        missing="learn",
        level_smoothing=2.0,
    )
    for criterion in ("gini", "kearns-mansour")
)
SOFT = {"y": None, "y_proba": SOFT_TWO, "labels": ["no", "yes"]}
SOFT_J = {"y": None, "y_proba": SOFT_THREE, "labels": None}
WEIGHTED = {"sample_weight": SHARES}
FRAME = {"table": "frame"}
#: More than 5,000 rows, whose labels only a pair of columns tells.
CROSSED = np.random.RandomState(47).randint(0, 64, (6000, 3)).astype(float)
CROSSED_TWO = (CROSSED[:, 0] > 31) ^ (CROSSED[:, 1] > 31)
#: What no fit has if it is fitted to the first rows; its bins and levels are those of all rows.
HELD = TABLES["frame"].X[300:], TWO[300:]
HELD_J = TABLES["frame"].X[300:], THREE[300:]
PAID = {
    "prices": {"a": 4.0, "b": 1.0, "text": 2.0},
    "groups": [["a", "flag"]],
    "comparison_price": 0.5,
}
PAID_IN_BINS = {**PAID, **FRAME, "search": "binned"}
#: The builders of two classes, their options here, and how they are told to search in bins.
OF_TWO: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "adaboost": ({**fits.ADABOOST, "rounds": 8}, {"weak": BINNED}),
    "boosted_tree": ({**fits.TREE, "nodes": 8}, {"weak": BINNED}),
    "matryoshka": ({**fits.MATRYOSHKA, "shape": (2, 3)}, {"weak": BINNED}),
    "oblique_tree": ({**fits.OBLIQUE, "separators": 2, "stumps": 3}, {}),
    "adaboost_real": ({**fits.REAL, "rounds": 5}, {"weak": BINNED}),
    "topdown_tree": ({**fits.TOPDOWN, "nodes": 6}, {}),
    "probitboost": ({**fits.PROBIT, "steps": 6}, {}),
}
#: The builders of any number of classes.
OF_MANY: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cart": (fits.CART, {"search": "binned"}),
    "pruned_cart": ({"folds": 3, "rule": "1se", **fits.CART, "max_depth": 4}, {"search": "binned"}),
    "forest": ({**fits.FOREST, "members": 4, "max_depth": 6}, {"search": "binned"}),
    "stagewise": ({**fits.STAGEWISE, "loss": None, "steps": 4}, {"search": "binned"}),
    "probit_tree": ({**fits.PROBIT_TREE, "max_depth": 1, "steps": 4}, {"search": "binned"}),
    "sbpmt": ({**fits.SBPMT, "members": 2, "steps": 3, "max_depth": 1}, {}),
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
        "smoothed levels": {"table": "levels", "weak": SMOOTHED},
        "adatree2, frame": {**FRAME, "observation": pb.observation.adatree2()},
        "flip, missing": {"table": "missing", "observation": pb.observation.flip(0.125)},
        "uniform, levels, binned": {
            "table": "levels",
            "observation": pb.observation.uniform(),
            "weak": BINNED,
        },
        "half, soft labels": {**SOFT, **FRAME, "observation": pb.observation.half()},
        "a share held out": {**FRAME, **WEIGHTED, "validation": 0.25, "patience": 3},
        "validation, binned": {
            **FRAME,
            "validation": (*HELD, SHARES[300:] + 1),
            "patience": 3,
            "weak": BINNED,
        },
        "prices": {**FRAME, **PAID},
        "prices, binned": {**FRAME, **PAID, "weak": stump("gini", "binned", 6)},
    }
    many = {
        "three classes, frame": {**FRAME, "y": THREE},
        "three classes, levels, binned": {
            "table": "levels",
            "y": THREE,
            **WEIGHTED,
            "weak": BINNED,
        },
        "three classes, missing, flip": {
            "table": "missing",
            "y": THREE,
            "observation": pb.observation.flip(0.125),
        },
        "three soft labels": {**FRAME, **SOFT_J},
        "three classes, validation": {**FRAME, "y": THREE, "validation": HELD_J, "patience": 3},
    }
    actual: dict[str, Fit] = {}
    for builder in ("adaboost", "boosted_tree", "matryoshka"):
        shared = OF_TWO[builder][0]
        joins = {"join": "all"} if builder == "matryoshka" else {}
        actual |= fits_of(builder, shared, TWO, every)
        actual |= fits_of(builder, {**shared, **joins}, TWO, many)
    levels = {"table": "levels", "weak": SMOOTHED}
    actual |= fits_of(
        "adaboost",
        OF_TWO["adaboost"][0],
        TWO,
        {
            "smoothed levels, three classes": {**levels, "y": THREE, "weak": SMOOTHED_J},
            "smoothed levels, adatree2": {
                **levels,
                "observation": pb.observation.adatree2(),
                **WEIGHTED,
            },
            "gaussian, missing": {
                "X": TABLES["missing"].X[:, :5],
                "observation": pb.observation.gaussian(0.25),
                "weak": BINNED,
            },
        },
    )
    functions = {
        "three classes, levels": {"table": "levels", "y": THREE, "impurity": "kearns-mansour"},
        "function, frame": {**FRAME, "impurity": fits.impurity},
        "function, levels, weights": {"table": "levels", **WEIGHTED, "impurity": fits.impurity},
    }
    actual |= fits_of("topdown_tree", OF_TWO["topdown_tree"][0], TWO, functions)
    few = {
        "affine, missing": {"table": "missing", "weak": fits.affine()},
        "separators, levels": {"table": "levels", "weak": fits.separator("binned")},
        "linear, categories": {"table": "categories", "weak": fits.linear(0.5)},
        "sampled, missing": {"table": "missing", "observation": sampled("first-increase")},
        "affine, three classes": {"y": THREE, "weak": fits.affine("binned")},
    }
    actual |= fits_of("adaboost", {**fits.ADABOOST, "rounds": 3}, TWO, few)
    actual |= fits_of("boosted_tree", {**fits.TREE, "nodes": 3}, TWO, few)
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
        **{loss: {"loss": loss} for loss in ("logistic", "exponential", "hinge", "probit")},
        **{loss: {"loss": loss, **numbers} for loss in ("squared", "absolute", "huber")},
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
        if loss in ("logistic", "exponential", "probit", "poisson", "softmax"):
            actual[f"{loss}, newton"] = {**binned, "leaf_step": "newton", "l2": "auto"}
    in_bins = {"search": "binned", "table": "frame"}
    deep = {**in_bins, "max_depth": 5}
    actual |= {
        growth: {**deep, "growth": growth} for growth in ("free", "pooled", "symmetric", "auto")
    }
    actual |= {
        f"{growth}, three classes": {**deep, "growth": growth, "y": THREE}
        for growth in ("free", "pooled", "symmetric")
    }
    per_row = {**in_bins, "growth": "per-comparison", "max_depth": None}
    one_tree = {**in_bins, "y": THREE, "trees": "one", "loss": "softmax"}
    actual |= {
        "per comparison": {**per_row, "tree_comparisons": 2.5},
        "per comparison, three classes": {**per_row, "tree_comparisons": [3.0, 2.0], "y": THREE},
        "one tree": one_tree,
        "one tree, newton, weights": {**one_tree, **WEIGHTED, "leaf_step": "newton", "l2": 0.5},
        "one tree, soft labels, leaves": {**one_tree, **SOFT_J, "max_leaves": 5, "bag": 0.5},
        "one tree, columns drawn": {**one_tree, "features_per_split": 2, "features_per_tree": 3},
        "one tree, validation": {**one_tree, "validation": HELD_J, "patience": 2},
        "best first": {**in_bins, "max_leaves": 6, "max_depth": None},
        "columns of trees drawn": {**in_bins, "features_per_tree": 0.5},
        "columns of splits drawn": {**in_bins, "features_per_split": "sqrt", "max_depth": 4},
        "l2": {**in_bins, "l2": 2.0, "loss": "logistic"},
        "held back": {**in_bins, "l2": 0.5, "min_weight": 6.0, "min_gain": 0.25, "max_depth": 6},
        "steps of at most .25": {**in_bins, "max_step": 0.25},
        "steps of any size": {**in_bins, "max_step": None, "y": THREE},
        "from zero": {**in_bins, "start": "zero"},
        "from zero, three classes": {**in_bins, "start": "zero", "y": THREE},
        "packed": {**in_bins, "sums": "packed", "loss": "squared", **numbers},
        "wide": {**in_bins, "sums": "wide", "loss": "squared", **numbers},
        "wide, three classes": {**in_bins, "sums": "wide", "y": THREE},
        "wide, weights, newton": {**in_bins, **WEIGHTED, "sums": "wide", "leaf_step": "newton"},
        "wide, one tree": {**one_tree, "sums": "wide"},
        "bag of 150": {"bag": 150, "table": "missing"},
        "bag of 150, three classes": {**in_bins, "bag": 150, "y": THREE},
        "monotone": {"search": "binned", "monotone": {0: 1, 2: -1}, "max_depth": 4},
        "monotone, frame, leaves": {**in_bins, "monotone": {"a": 1}, "max_leaves": 7},
        "interactions": {**in_bins, "interactions": [["a", "b"], ["b", "text"]], "max_depth": 4},
        "prices": {**PAID_IN_BINS},
        "prices, three classes, leaves": {**PAID_IN_BINS, "y": THREE, "max_leaves": 6},
        "prices, tradeoff": {**PAID_IN_BINS, "price_tradeoff": 1.5},
        "prices, tradeoff, leaves, numbers": {
            **PAID_IN_BINS,
            **numbers,
            "price_tradeoff": 0.25,
            "max_leaves": 6,
        },
        "a share held out": {**in_bins, "steps": 8, "validation": 0.25, "patience": 2},
        "a share held out, exact": {"table": "missing", "validation": 0.25, "patience": 2},
        "a share held out, three classes": {
            **in_bins,
            **WEIGHTED,
            "y": THREE,
            "validation": 0.25,
            "patience": 2,
        },
        "a share held out, soft labels": {**in_bins, **SOFT_J, "validation": 0.25, "patience": 2},
        "validation": {**in_bins, "steps": 8, "validation": HELD, "patience": 2},
        "validation, numbers, weights": {
            **in_bins,
            **numbers,
            **WEIGHTED,
            "validation": (TABLES["frame"].X[300:], NUMBERS[300:], SHARES[300:] + 1),
            "patience": 2,
        },
        "sorted columns": {"X": pb.sort_columns(TABLES["missing"].X, copy=True, n_threads=1)},
        "binned columns": {
            "X": pb.bin_columns(
                TABLES["missing"].X,
                max_bins=32,
                edges="exact",
                sample_weight=None,
                values=False,
                n_threads=1,
            ),
            "search": "auto",
        },
        "auto, a pair of columns": {"X": CROSSED, "y": CROSSED_TWO, "search": "binned"},
        "few bins, words": {**in_bins, "max_bins": 5, "y": WORDS},
    }
    return fits_of("stagewise", {**fits.STAGEWISE, "loss": None, "steps": 4}, TWO, actual)


def of_trees() -> dict[str, Fit]:
    """Return the fits of trees and ensembles of any kind."""
    numbers = {"y": NUMBERS, "task": "regression", "criterion": "squared"}
    trees: dict[str, dict[str, Any]] = {
        **{
            f"{criterion}, frame": {"criterion": criterion, **FRAME}
            for criterion in ("gini", "entropy", "error", "kearns-mansour")
        },
        "error, three classes, levels": {"criterion": "error", "y": THREE, "table": "levels"},
        "smoothed levels": {"table": "levels", "level_smoothing": 2.0},
        "smoothed levels, binned, numbers": {
            **numbers,
            "table": "levels",
            "level_smoothing": 2.0,
            "search": "binned",
        },
        "numbers, frame, weights": {**numbers, **FRAME, **WEIGHTED},
        "numbers, missing, best first": {**numbers, "table": "missing", "max_leaves": 8},
        "best first, three classes": {**FRAME, "y": THREE, "growth": "best-first", "min_split": 20},
        "prices": {**FRAME, **PAID},
        "prices, binned, three classes": {**PAID_IN_BINS, "y": THREE},
    }
    forests = {
        name: options for name, options in trees.items() if "prices" in name or "numbers" in name
    }
    forests["columns drawn, leaves"] = {**FRAME, "features_per_split": 2, "max_leaves": 9}
    forests["subsamples, three classes"] = {**FRAME, "y": THREE, "replace": False, "bag": 0.5}
    pruned = {
        "numbers, frame": {**numbers, **FRAME},
        "smallest error, levels": {"table": "levels", "rule": "min"},
    }
    sums = {
        "trees of each class, frame": {**FRAME, "y": THREE, "one_vs_all": "tree"},
        "mean, levels": {"table": "levels", "vote": "average", "stratify": True, "y": THREE},
    }
    probit = {
        "pruned, three classes": {**FRAME, "y": THREE, "complexity": 0.05, "max_depth": 3},
        "no safeguard": {"table": "missing", "safeguard": False, "tol": 1e-3, "steps": 20},
    }
    sorted_columns = pb.sort_columns(TABLES["missing"].X, copy=True, n_threads=1)
    binned = pb.bin_columns(
        TABLES["missing"].X,
        max_bins=16,
        edges="sample",
        sample_weight=SHARES,
        values=True,
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
    trees = {**fits.BAGGING, **tree, "members": 3, "max_depth": 3}
    rest = {**fits.ADABOOST, "rounds": 3}
    of_levels = {"categorical": levels.categorical}
    base = partial(pb.fit_cart, **{**tree, "max_depth": 2}, task="classification", rng=0)
    again = {"rounds": 3, "learning_rate": 0.5, "base": base}
    both, of_300 = fits.asked(frame), fits.asked(levels)
    return {
        "bagging: soft labels, frame": Fit(
            pb.fit_bagging,
            (pb.fit_cart, frame.X, None),
            {**trees, "y_proba": SOFT_THREE, "labels": None, "vote": "average"},
            both,
        ),
        "bagging: chains, levels, weights": Fit(
            pb.fit_bagging,
            (pb.fit_adaboost, levels.X, TWO),
            {**fits.BAGGING, **chain, **of_levels, "rounds": 3, **WEIGHTED, "bag": 0.75},
            of_300,
        ),
        "one_vs_rest: chains, frame, weights": Fit(
            pb.fit_one_vs_rest, (pb.fit_adaboost, frame.X, THREE), {**rest, **WEIGHTED}, both
        ),
        "one_vs_rest: soft labels, levels": Fit(
            pb.fit_one_vs_rest,
            (pb.fit_adaboost, levels.X, None),
            {**rest, **of_levels, "y_proba": SOFT_THREE, "labels": None},
            of_300,
        ),
        "samme: trees, frame, weights": Fit(
            pb.fit_samme, (frame.X, THREE), {**again, **WEIGHTED}, both
        ),
        "samme: soft labels": Fit(
            pb.fit_samme,
            (frame.X, None),
            {**again, "y_proba": SOFT_THREE, "labels": None, "sample_weight": None},
            both,
        ),
    }


def more_fits() -> dict[str, Fit]:
    """Return every fit of this file by name."""
    return {**of_every_table(), **of_graphs(), **of_sums(), **of_trees(), **of_ensembles()}
