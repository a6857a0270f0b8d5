"""Small fits on partitions, whose models are those of one table, however it is divided.

`partition_fit` and `table_fit` alone say how partitions are passed to a builder.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import fits
from fits import BUILDERS, Model, asked, stump
from table_fits import HELD, OF_MANY, OF_TWO
from tables import COUNTS, NUMBERS, SHARES, TABLES, THREE, TWO, WEIGHT, WORDS

import pboost as pb

#: Where rows are divided, by the number of partitions; one of five is empty.
DIVIDED = {1: (), 2: (130,), 3: (90, 310), 5: (40, 40, 201, 390)}
#: On which of them a fit is made, on how many threads. The first is that of quick tests.
TRIED = ((3, 1), (1, 1), (2, 2), (5, 4))
#: Options of the bins and of the partitions, which builders do not have.
OF_BINS = {
    "max_bins": 256,
    "bin_edges": "sample",
    "keep_values": False,
    "weighted_bin_edges": False,
}
#: The options of builders that partitions do not have.
UNUSED = {
    "feature_costs",
    "cost_groups",
    "comparison_cost",
    "cost_tradeoff",
    "categorical_features",
    "search",
    "max_bins",
    "max_samples",
    "multi_strategy",
    "tree_comparisons",
}
KEPT = {"cart": UNUSED - {"feature_costs", "cost_groups", "comparison_cost"}}
KEPT["forest"] = KEPT["cart"] - {"max_samples"}


def partition_fit(
    builder: str, X: list[Any], y: list[Any], weight: list[Any] | None, **options: Any
) -> Any:
    """Return the model of partitions: the only line that says how partitions are fitted."""
    bins = {name: options.pop(name) for name in OF_BINS}
    rows = pb.partitions(X, y, sample_weight=weight, **bins)
    start = (options.pop("start_model"),) if "start_model" in options else ()
    build = pb.continue_fit if start else BUILDERS[builder]
    return build(*start, rows, **options)


def table_fit(builder: str, X: Any, y: Any, weight: Any, **options: Any) -> Any:
    """Return the model of the same rows in one table of the same bins."""
    bins = {name: options.pop(name) for name in OF_BINS}
    edge_weight = weight if bins.pop("weighted_bin_edges") else None
    columns = pb.data.bin_columns(X, **bins, sample_weight=edge_weight)
    start = (options.pop("start_model"),) if "start_model" in options else ()
    build = pb.continue_fit if start else BUILDERS[builder]
    return build(*start, columns, y, sample_weight=weight, **options)


class PartitionFit(NamedTuple):
    """A fit on partitions and on one table."""

    builder: str
    X: Any
    y: Any
    weight: Any
    options: dict[str, Any]
    tables: tuple[Any, ...]

    def _divided(self, n_parts: int, n_threads: int) -> Any:
        ends = 0, *DIVIDED[n_parts], len(self.y)
        parts = [slice(*ends) for ends in pairwise(ends)]
        X, y = [self.X[part] for part in parts], [self.y[part] for part in parts]
        weight = None if self.weight is None else [self.weight[part] for part in parts]
        return partition_fit(self.builder, X, y, weight, **self.options, n_threads=n_threads)

    def _whole(self) -> Any:
        return table_fit(self.builder, self.X, self.y, self.weight, **self.options, n_threads=1)

    def models(self) -> dict[str, Model]:
        """Return what makes the same model in several ways."""
        divided = {
            f"{parts} partitions, {threads} threads": partial(self._divided, parts, threads)
            for parts, threads in TRIED
        }
        return {**divided, "one table": self._whole}


def _fits_of(
    builder: str, shared: dict[str, Any], changes: dict[str, dict[str, Any]]
) -> dict[str, PartitionFit]:
    """Return a fit per entry of `changes`, which can have "y" and "table", one of TABLES."""
    actual = {}
    unused = KEPT.get(builder, UNUSED)
    for name, differing in changes.items():
        options = {k: v for k, v in shared.items() if k not in unused} | OF_BINS | differing
        table = TABLES[options.pop("table", "frame")]
        y, weight = options.pop("y", TWO), options.pop("sample_weight")
        key = f"partitions, {builder}: {name}"
        actual[key] = PartitionFit(builder, table.X, y, weight, options, asked(table))
    return actual


BINS = stump("kearns_mansour", "auto", 256)
FEW = {"max_bins": 16, "weak_learner": stump("gini", "auto", 256)}
FEW_BINS = {"max_bins": 16}
WEIGHTED = {"sample_weight": SHARES}
VALUED = {"keep_values": True}


def _of_graphs() -> dict[str, PartitionFit]:
    """Return the fits of two classes; a validation of rows held out needs values."""
    table = {
        "flip": pb.observation.flip(0.125),
        "half": pb.observation.half(),
        "uniform": pb.observation.uniform(),
        "adatree2": pb.observation.adatree2(),
    }
    changes = {
        "numbers": {"table": "numbers"},
        "missing": {"table": "missing"},
        "missing, weights": {"table": "missing", "sample_weight": WEIGHT},
        "frame, words": {"y": WORDS},
        "frame, weights": WEIGHTED,
        "frame, few bins, edges by weight": {**FEW, **WEIGHTED, "weighted_bin_edges": True},
        "frame, exact edges": {"bin_edges": "exact"},
        "validation": {"validation": (*HELD, SHARES[300:] + 1), "n_iter_no_change": 3},
        "a share held out": {**WEIGHTED, **VALUED, "validation": 0.25, "n_iter_no_change": 3},
        **{name: {"observation": observation} for name, observation in table.items()},
        "adatree2, missing, weights": {
            "table": "missing",
            "observation": table["adatree2"],
            "sample_weight": WEIGHT,
        },
        "flip, a share held out": {
            "observation": table["flip"],
            **VALUED,
            "validation": 0.25,
            "n_iter_no_change": 3,
        },
    }
    trees = {
        **{growth: {"growth": growth} for growth in fits.GROWTHS[1:]},
        **{
            f"{growth}, adatree2": {"growth": growth, "observation": table["adatree2"]}
            for growth in fits.GROWTHS[1:]
        },
        "depth 3": {"max_nodes": None, "max_depth": 3},
        "target": {"max_nodes": None, "target_certificate": 0.75},
        "least leaves": {"weak_learner": stump("entropy", "auto", 256, 0.05, 20)},
    }
    nested = {
        "by sign": {"collect": "sign", "shape": (2, 2, 2)},
        "all join": {"join": "all"},
        "greedy": {"shape": None, "growth": "greedy", "max_nodes": 6},
        "greedy, missing, weights": {
            "table": "missing",
            "shape": None,
            "growth": "greedy",
            "max_nodes": 6,
            **WEIGHTED,
        },
    }
    chains = {"symmetric votes": {"votes": "symmetric"}, "slow": {"learning_rate": 0.5}}
    of_builders = {
        "adaboost": changes | chains,
        "boosted_tree": changes | trees,
        "matryoshka": changes | nested,
    }
    actual: dict[str, PartitionFit] = {}
    for builder, of_builder in of_builders.items():
        actual |= _fits_of(builder, {**OF_TWO[builder][0], "weak_learner": BINS}, of_builder)
    return actual


def _of_trees() -> dict[str, PartitionFit]:
    """Return the fits of trees and forests."""
    numbers = {"y": NUMBERS, "task": "regression", "criterion": "squared_error"}
    changes: dict[str, dict[str, Any]] = {
        "missing": {"table": "missing"},
        "frame, weights": WEIGHTED,
        "three classes, frame": {"y": THREE},
        "three classes, missing, weights": {"table": "missing", "y": THREE, **WEIGHTED},
        "numbers, frame": numbers,
        "numbers, missing, weights, few bins": {
            **numbers,
            **FEW_BINS,
            **WEIGHTED,
            "table": "missing",
            "weighted_bin_edges": True,
        },
        "entropy, exact edges": {"criterion": "entropy", "bin_edges": "exact"},
        "best first": {"max_leaf_nodes": 8, "max_depth": None, "y": THREE},
        "columns drawn": {"max_features": 2},
        "prices": {"feature_costs": {"a": 4.0, "b": 1.0}, "comparison_cost": 0.5},
        "smoothed levels": {"categorical_smoothing": 2.0, "min_samples_leaf": 5},
    }
    drawn = {
        "subsamples": {"bootstrap": False, "max_samples": 0.5},
        "bag of 100, numbers": {**numbers, "max_samples": 100},
    }
    return {
        **_fits_of("cart", fits.CART, changes),
        **_fits_of("forest", OF_MANY["forest"][0], {**changes, **drawn}),
    }


def _of_sums() -> dict[str, PartitionFit]:
    """Return the fits of gradient boosting."""
    losses = {
        **{loss: {"loss": loss} for loss in ("log_loss", "exponential", "probit")},
        "squared_error": {"loss": "squared_error", "y": NUMBERS, "task": "regression"},
        "poisson": {"loss": "poisson", "y": COUNTS, "task": "regression"},
    }
    numbers = losses["squared_error"]
    held = TABLES["frame"].X[300:], NUMBERS[300:], SHARES[300:] + 1
    changes: dict[str, dict[str, Any]] = {
        **losses,
        **{
            f"{loss}, missing, weights, newton": {
                **options,
                **WEIGHTED,
                "table": "missing",
                "leaf_update": "newton",
                "l2_regularization": "auto",
            }
            for loss, options in losses.items()
        },
        **{
            growth: {"growth": growth, "max_depth": 5}
            for growth in ("independent", "pooled", "symmetric", "auto")
        },
        "frame, words, few bins": {**FEW_BINS, "y": WORDS},
        "edges by weight": {**FEW_BINS, **WEIGHTED, "weighted_bin_edges": True},
        "exact edges, numbers": {**numbers, "bin_edges": "exact"},
        "best first": {"max_leaf_nodes": 6, "max_depth": None},
        "columns of trees drawn": {"max_features_per_tree": 0.5},
        "columns of splits drawn": {"max_features": 2, "max_depth": 4},
        "held back": {
            "l2_regularization": 0.5,
            "min_child_weight": 6.0,
            "min_split_gain": 0.25,
            "max_depth": 6,
        },
        "steps of at most .25, from zero": {"max_delta_step": 0.25, "init": "zero"},
        "shrunk": {"leaf_shrinkage": 2.0, "max_depth": 5},
        "random": {"random_strength": 0.5, "subsample": 0.6, "max_depth": 5},
        "shrunk, weights, words": {**WEIGHTED, "y": WORDS, "leaf_shrinkage": "auto"},
        "packed": {**numbers, "histogram_precision": "packed"},
        "wide": {"histogram_precision": "wide"},
        "wide, numbers, weights": {**numbers, **WEIGHTED, "histogram_precision": "wide"},
        "monotone": {"monotonic_cst": {"a": 1}, "max_depth": 4},
        "interactions": {"interaction_cst": [["a", "b"], ["b", "text"]], "max_depth": 4},
        "validation": {"n_estimators": 8, "validation": HELD, "n_iter_no_change": 2},
        "validation, numbers, weights": {**numbers, "validation": held, "n_iter_no_change": 2},
        "a share held out": {"n_estimators": 8, "validation": 0.25, "n_iter_no_change": 2},
        "a share held out, numbers, weights": {
            **numbers,
            **WEIGHTED,
            "validation": 0.25,
            "n_iter_no_change": 2,
        },
    }
    return _fits_of("stagewise", {**OF_MANY["stagewise"][0], "growth": "auto"}, changes)


def _continued() -> dict[str, PartitionFit]:
    """Return fits that went on."""
    frame = TABLES["frame"]

    def of(start: Any, y: Any = TWO, weight: Any = None, **more: Any) -> PartitionFit:
        options = {**OF_BINS, "start_model": start, "rng": None, **more}
        return PartitionFit("continue_fit", frame.X, y, weight, options, asked(frame))

    chain = {**OF_TWO["adaboost"][0], "n_estimators": 3, "weak_learner": BINS}
    soft = {"observation": pb.observation.adatree2()}
    tree = {**OF_TWO["boosted_tree"][0], **soft, "max_nodes": 3, "weak_learner": BINS}
    tree_sum = {**OF_MANY["stagewise"][0], "search": "binned", "n_estimators": 2, "subsample": None}
    chained = pb.fit_adaboost(frame.X, TWO, **chain, n_threads=1)
    soft_chain = pb.fit_adaboost(frame.X, TWO, **{**chain, **soft}, n_threads=1)
    soft_tree = pb.fit_boosted_tree(frame.X, TWO, **tree, n_threads=1)
    added = pb.fit_gradient_boosting(frame.X, NUMBERS, **tree_sum, n_threads=1)
    changes = {
        "chain": of(chained, n_estimators=3),
        "chain, weights": of(chained, weight=SHARES, n_estimators=3),
        "chain, adatree2": of(soft_chain, n_estimators=3),
        "tree, adatree2": of(soft_tree, max_nodes=3),
        "sum, numbers": of(added, NUMBERS, n_estimators=2),
        "sum, numbers, weights": of(added, NUMBERS, SHARES, n_estimators=2),
    }
    return {f"partitions, continue_fit: {name}": fit for name, fit in changes.items()}


def partition_fits() -> dict[str, PartitionFit]:
    """Return all of them by name."""
    return {**_of_graphs(), **_of_trees(), **_of_sums(), **_continued()}
