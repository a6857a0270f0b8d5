"""Small fits of every builder, each with every option explicit, for hashes of their models.

Only public names are used, and no default: neither moves within the package nor new defaults
touch what is fitted here. The data are made by additions and products from a stream of random
numbers that NumPy keeps for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from tables import NUMBERS, SIGMA, TABLES, THREE, TWO, WEIGHT, WORDS, Table, X

import pboost as pb

#: The builders by the names that they have in the lists of hashes.
BUILDERS = {
    "adaboost": pb.fit_adaboost,
    "adaboost_real": pb.fit_real_adaboost,
    "bagging": pb.fit_bagging,
    "boosted_tree": pb.fit_boosted_tree,
    "cart": pb.fit_cart,
    "continue_fit": pb.continue_fit,
    "forest": pb.fit_random_forest,
    "matryoshka": pb.fit_matryoshka,
    "oblique_tree": pb.fit_oblique_tree,
    "one_vs_rest": pb.fit_one_vs_rest,
    "probit_tree": pb.fit_probit_tree,
    "probitboost": pb.fit_probitboost,
    "pruned_cart": pb.fit_pruned_cart,
    "samme": pb.fit_samme,
    "sbpmt": pb.fit_sbpmt,
    "stagewise": pb.fit_gradient_boosting,
    "topdown_tree": pb.fit_topdown_tree,
}
THREADS = (1, 2, 4)
#: Training rows that a model is asked, beside new ones.
ASKED = 64
Model: TypeAlias = Callable[[], Any]


def asked(table: Table, X: Any = None) -> tuple[Any, ...]:
    """Return some training rows and all new rows of a table, with the columns of X."""
    known = X if hasattr(X, "shape") else table.X
    is_part = known.shape[1] < table.X.shape[1]
    return known[:ASKED], table.rows[:, : known.shape[1]] if is_part else table.rows


class Fit(NamedTuple):
    """One fit: a builder, what it is given, its options, and tables that its model is asked."""

    build: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    tables: tuple[Any, ...] = asked(TABLES["numbers"])

    def model(self, n_threads: int) -> Any:
        """Return the model, fitted on this many threads where the builder can."""
        threads = {} if self.build in WITHOUT_THREADS else {"n_threads": n_threads}
        return self.build(*self.arguments, **self.options, **threads)

    def models(self) -> dict[str, Model]:
        """Return what makes the same model in several ways; the first is the fastest."""
        every = THREADS[:1] if self.build in WITHOUT_THREADS else THREADS
        return {f"{n} threads": partial(self.model, n) for n in every}


class Made(NamedTuple):
    """What a function of a number of threads returns: models, or records of them."""

    make: Callable[[int], Any]
    tables: tuple[Any, ...] = asked(TABLES["numbers"])

    def models(self) -> dict[str, Model]:
        """Return what makes the same model in several ways."""
        return {f"{n} threads": partial(self.make, n) for n in THREADS}


def stump(
    criterion="kearns_mansour",
    search="exact",
    max_bins=256,
    min_weight_fraction=0.0,
    min_samples_leaf=1,
):
    """Return a stump with every option."""
    return pb.weak.stump(
        criterion,
        search,
        max_bins=max_bins,
        min_weight_fraction=min_weight_fraction,
        min_samples_leaf=min_samples_leaf,
        missing="learn",
        categorical_smoothing=0.0,
    )


def affine(search="exact", n_directions=12, n_terms=2, seed=3):
    """Return an affine weak learner with every option."""
    return pb.weak.affine(
        "kearns_mansour",
        search,
        n_directions=n_directions,
        n_terms=n_terms,
        seed=seed,
        max_bins=64,
        min_weight_fraction=0.0,
        min_samples_leaf=1,
    )


def separator(search="exact"):
    """Return a separator with every option."""
    return pb.weak.separator(
        6,
        smoothing=1e-3,
        learning_rate=1.0,
        votes="domain",
        criterion="kearns_mansour",
        search=search,
        max_bins=32,
    )


def linear(dense_gain=1.0):
    """Return a linear weak learner with every option."""
    return pb.weak.linear(
        "kearns_mansour",
        dense_gain=dense_gain,
        max_pairs=20,
        seed=1,
        min_weight_fraction=0.0,
        min_samples_leaf=1,
    )


def sampled(n_draws, estimator="map", base=None, max_draws=64, clock=None):
    """Return estimated answers with every option."""
    return pb.observation.sampled(n_draws, estimator, max_draws=max_draws, clock=clock, base=base)


def ticking():
    """Return a clock on which each look takes a second."""
    ticks = iter(range(10**9))
    return lambda: float(next(ticks))


def _best(X, pull):
    return int(np.argmax(np.abs((pull[:, None] * X[:, :4]).sum(axis=0))))


def train_column(X, y, weight, rng):
    """Return a weak classifier: the side of 0 of the best column; it errs once in eight times."""
    j = _best(X, y * weight)
    return lambda X, rng: np.where((X[:, j] > 0) ^ (rng.integers(0, 8, len(X)) == 0), 1, -1)


def train_hypothesis(X, y, weight, rng):
    """Return a weak hypothesis: the best column, within [-1, 1]."""
    j = _best(X, y * weight)
    return lambda X: X[:, j] / 4


def impurity(q):
    """Return a permissible function that has no name."""
    return 2 * np.sqrt(q * (1 - q)) / 2 + 2 * q * (1 - q)


EXACT = pb.observation.exact()
ORACLE = pb.weak.oracle(train_column)
COLUMNS = {"categorical_features": None}
TREE_COLUMNS = {"missing": "learn", "categorical_smoothing": 0.0, **COLUMNS}
SHARED = {"sample_weight": None, "rng": 5}
STOPPING = {"validation": None, "n_iter_no_change": None}
VOTING = {"smoothing": 1e-4, "learning_rate": 1.0}
PRICES = {"feature_costs": None, "cost_groups": None, "comparison_cost": None}
ADABOOST = {
    "n_estimators": 12,
    "weak_learner": stump(),
    "votes": "domain",
    "observation": EXACT,
    **VOTING,
    **COLUMNS,
    **SHARED,
    **STOPPING,
    **PRICES,
}
TREE = {
    "max_nodes": 12,
    "weak_learner": stump(),
    "observation": EXACT,
    "growth": "largest_bound",
    "target_certificate": None,
    "max_depth": None,
    **VOTING,
    **COLUMNS,
    **SHARED,
    **STOPPING,
    **PRICES,
}
MATRYOSHKA = {
    "shape": (3, 3),
    "growth": "nested",
    "max_nodes": None,
    "collect": "additive",
    "join": "sign",
    "weak_learner": stump(),
    "observation": EXACT,
    **VOTING,
    **COLUMNS,
    **SHARED,
    **STOPPING,
    **PRICES,
}
OBLIQUE = {
    "max_nodes": 4,
    "max_depth": 3,
    "n_stumps": 5,
    "growth": "breadth_first",
    "observation": EXACT,
    "smoothing": 1e-4,
    **COLUMNS,
    **SHARED,
    **STOPPING,
}
REAL = {
    "n_estimators": 8,
    "weak_learner": stump(),
    "answer_scale": None,
    **VOTING,
    **COLUMNS,
    **SHARED,
}
TOPDOWN = {
    "max_nodes": 10,
    "impurity": "gini",
    "growth": "largest_bound",
    "target_certificate": None,
    "max_depth": None,
    "min_weight_fraction": 0.0,
    "min_samples_leaf": 1,
    "categorical_smoothing": 2.0,
    **VOTING,
    **COLUMNS,
    "sample_weight": None,
}
CART = {
    "task": "classification",
    "criterion": "gini",
    "max_depth": 6,
    "min_samples_leaf": 1,
    "min_samples_split": 2,
    "max_leaf_nodes": None,
    "max_features": None,
    "growth": None,
    "search": "exact",
    "max_bins": 256,
    **PRICES,
    **TREE_COLUMNS,
    **SHARED,
}
FOREST = {
    "n_estimators": 6,
    "task": "classification",
    "max_features": "sqrt",
    "bootstrap": True,
    "max_samples": None,
    "criterion": "gini",
    "max_depth": None,
    "min_samples_leaf": 1,
    "min_samples_split": 2,
    "max_leaf_nodes": None,
    "search": "exact",
    "max_bins": 256,
    **PRICES,
    **TREE_COLUMNS,
    **SHARED,
}
BAGGING = {
    "n_estimators": 5,
    "task": "classification",
    "max_samples": None,
    "bootstrap": True,
    "voting": "hard",
    **SHARED,
}
STAGEWISE = {
    "loss": "log_loss",
    "task": None,
    "n_estimators": 6,
    "quality": 3,
    "metric": None,
    "greater_is_better": False,
    "tol": 0.0,
    "min_samples_in_bin": "auto",
    "learning_rate": 0.5,
    "max_depth": 3,
    "max_leaf_nodes": None,
    "min_samples_leaf": 2,
    "leaf_update": "line_search",
    "l2_regularization": 0.0,
    "leaf_shrinkage": 0.0,
    "random_strength": 0.0,
    "min_child_weight": 0.0,
    "min_split_gain": 0.0,
    "max_features_per_tree": None,
    "max_features": None,
    "monotonic_cst": None,
    "interaction_cst": None,
    "max_delta_step": "auto",
    "init": "constant",
    "subsample": 1.0,
    "search": "exact",
    "max_bins": 256,
    "histogram_precision": "auto",
    "multi_strategy": "one_output_per_tree",
    "growth": "auto",
    "tree_comparisons": None,
    **PRICES,
    "cost_tradeoff": None,
    **TREE_COLUMNS,
    **SHARED,
    **STOPPING,
}
PROBIT = {"max_iter": 15, "tol": None, "safeguard": True, **COLUMNS, "sample_weight": None}
PROBIT_TREE = {
    "max_depth": 2,
    "min_samples_leaf": 20,
    "min_samples_split": 2,
    "max_iter": 12,
    "tol": None,
    "safeguard": True,
    "criterion": "gini",
    "complexity": 0.0,
    "search": "exact",
    "max_bins": 256,
    "missing": "learn",
    "categorical_smoothing": 0.0,
    **COLUMNS,
    "sample_weight": None,
}
SBPMT = {
    "n_estimators": 3,
    "n_boosting_rounds": 2,
    "max_iter": 8,
    "max_samples": 0.7,
    "max_depth": 2,
    "min_samples_leaf": 20,
    "min_samples_split": 2,
    "complexity": 0.0,
    "tol": None,
    "safeguard": True,
    "learning_rate": 0.5,
    "voting": "hard",
    "one_vs_rest": "leaf",
    "stratify": False,
    "missing": "learn",
    **COLUMNS,
    **SHARED,
}
WITHOUT_THREADS = (pb.fit_probitboost, pb.fit_samme)


def fits_of(
    builder: str, shared: dict[str, Any], y: Any, changes: dict[str, dict[str, Any]]
) -> dict[str, Fit]:
    """Return a fit per entry of `changes`: the options that differ from those shared.

    Entries can have "X", "y" and "table", one of TABLES.
    """
    actual = {}
    for name, differing in changes.items():
        options = {**shared, **differing}
        table = TABLES[options.pop("table", "numbers")]
        X = options.pop("X", table.X)
        if table.categorical_features is not None:
            options["categorical_features"] = table.categorical_features
        given = X, options.pop("y", y)
        actual[f"{builder}: {name}"] = Fit(BUILDERS[builder], given, options, asked(table, X))
    return actual


def _continued(build: Any, shared: dict[str, Any], **more: Any) -> Fit:
    """Go on with a model of a few nodes, with the options that it has."""
    start = build(X, TWO, **shared, n_threads=1)
    unused = dict.fromkeys(("n_estimators", "max_nodes", "growth", "validation"))
    options = {
        **unused,
        "weak_learner": shared["weak_learner"],
        "observation": EXACT,
        **VOTING,
        **SHARED,
        **more,
    }
    return Fit(pb.continue_fit, (start, X, TWO), options)


CRITERIA = {
    f"{criterion}, {search}": {"weak_learner": stump(criterion, search, 64)}
    for criterion in ("kearns_mansour", "gini", "entropy", "error")
    for search in ("exact", "binned")
}
OBSERVATIONS: dict[str, dict[str, Any]] = {
    "flip": {"observation": pb.observation.flip(0.1)},
    "half": {"observation": pb.observation.half()},
    "uniform": {"observation": pb.observation.uniform()},
    "adatree2": {"observation": pb.observation.adatree2()},
    "adatree2, binned": {
        "observation": pb.observation.adatree2(),
        "weak_learner": stump(search="binned"),
    },
    "gaussian": {
        "observation": pb.observation.gaussian(0.25),
        "weak_learner": stump(search="binned"),
        "X": X[:, :5],
    },
    "gaussian by column": {
        "observation": pb.observation.gaussian(SIGMA),
        "weak_learner": stump(search="binned"),
    },
}
LEARNERS = {
    "affine, exact": {"weak_learner": affine()},
    "affine of three columns, binned": {"weak_learner": affine("binned", n_terms=3)},
    "separators": {"weak_learner": separator()},
    "linear": {"weak_learner": linear()},
    "oracles": {"weak_learner": ORACLE},
}
GROWTHS = ("largest_bound", "largest_error", "look_ahead", "breadth_first")
WEIGHTED = {"sample_weight": WEIGHT}


def _sampled() -> dict[str, dict[str, Any]]:
    return {
        "sampled to the first rise": {"observation": sampled("first_increase")},
        "sampled oracles": {"observation": sampled("first_increase"), "weak_learner": ORACLE},
        "sampled ten times, adatree2": {
            "observation": sampled(10, base=pb.observation.adatree2(), max_draws=None)
        },
    }


def two_class_fits() -> dict[str, Fit]:
    """Return the fits of graphs and of their like."""
    sorted_columns = pb.data.sort_columns(X, copy=True, n_threads=1)
    binned = pb.data.bin_columns(X, max_bins=64, sample_weight=None, n_threads=1)
    chains = {
        **CRITERIA,
        **OBSERVATIONS,
        **LEARNERS,
        **_sampled(),
        "sampled by the stopwatch": {"observation": sampled("stopwatch", clock=ticking())},
        "symmetric votes": {"votes": "symmetric"},
        "weights": WEIGHTED,
        "weights, binned": {**WEIGHTED, "weak_learner": stump("gini", "binned", 16)},
        "no smoothing": {"smoothing": 0.0, "learning_rate": 0.5},
        "sides of a least weight": {
            "weak_learner": stump(min_weight_fraction=0.2, min_samples_leaf=40)
        },
        "float32, words": {"X": X.astype(np.float32), "y": WORDS},
        "sorted columns": {"X": sorted_columns},
        "binned columns": {"X": binned, "weak_learner": stump(search="auto")},
        "validation": {"validation": (X[:100], TWO[:100]), "n_iter_no_change": 4},
    }
    trees = {
        **CRITERIA,
        **OBSERVATIONS,
        **LEARNERS,
        **_sampled(),
        **{
            f"{g}, {c}": {"growth": g, "weak_learner": stump(c, s)}
            for g in GROWTHS
            for c, s in (("kearns_mansour", "exact"), ("gini", "binned"))
        },
        **{
            f"{g}, adatree2": {"growth": g, "observation": pb.observation.adatree2()}
            for g in GROWTHS
        },
        "weights": WEIGHTED,
        "depth 4": {"max_nodes": None, "max_depth": 4},
        "target": {"max_nodes": None, "target_certificate": 0.4},
        "separators of bins": {"weak_learner": separator("binned"), "max_nodes": 4},
    }
    nested = {
        "additive": {},
        "three deep, by sign": {"shape": (2, 2, 2), "collect": "sign"},
        "all join": {"join": "all"},
        "greedy": {"shape": None, "growth": "greedy", "max_nodes": 9},
        "adatree2": {"observation": pb.observation.adatree2()},
        "weights, affine": {**WEIGHTED, "weak_learner": affine()},
        "gaussian": OBSERVATIONS["gaussian"],
    }
    real = {
        "stumps": {},
        "log odds": {"answer_scale": "log_odds"},
        "columns": {"weak_learner": pb.weak.feature("mean", include_constant=True)},
        "columns, weights": {
            "weak_learner": pb.weak.feature("midrange", include_constant=False),
            **WEIGHTED,
        },
        "hypotheses": {"weak_learner": pb.weak.hypothesis(train_hypothesis, max_abs=1.0)},
    }
    impurities = {
        "gini": {},
        "entropy, weights": {"impurity": "entropy", **WEIGHTED},
        **{f"function, {g}": {"impurity": impurity, "growth": g} for g in GROWTHS},
    }
    return {
        **fits_of("adaboost", ADABOOST, TWO, chains),
        **fits_of("boosted_tree", TREE, TWO, trees),
        **fits_of("matryoshka", MATRYOSHKA, TWO, nested),
        **fits_of("oblique_tree", OBLIQUE, TWO, {"breadth first": {}, "weights": WEIGHTED}),
        **fits_of("adaboost_real", REAL, TWO, real),
        **fits_of("topdown_tree", TOPDOWN, TWO, impurities),
        "continue_fit: chain": _continued(pb.fit_adaboost, ADABOOST, n_estimators=5),
        "continue_fit: tree": _continued(
            pb.fit_boosted_tree, TREE, max_nodes=5, growth="largest_bound"
        ),
    }


def other_fits() -> dict[str, Fit]:
    """Return the fits of trees of any number of classes, ensembles and probit models."""
    regression = {"task": "regression", "criterion": "squared_error", "y": NUMBERS}
    carts = {
        "gini": {},
        "entropy": {"criterion": "entropy"},
        "three classes": {"y": THREE},
        "three classes, binned": {"y": THREE, "search": "binned"},
        "three classes, entropy": {"y": THREE, "criterion": "entropy", **WEIGHTED},
        "regression": regression,
        "regression, binned": {**regression, "search": "binned"},
        "weights": {**WEIGHTED, "min_samples_leaf": 4},
        "best first": {"max_leaf_nodes": 9, "max_depth": None},
        "columns drawn": {"max_features": "sqrt"},
    }
    pruned = {"cv": 4, "rule": "min", **CART}
    forests = {
        "exact": {},
        "three classes, binned": {"y": THREE, "search": "binned"},
        "regression": regression,
        "weights": WEIGHTED,
        "without replacement": {"bootstrap": False, "max_samples": 200, "max_depth": 5},
    }
    tree = {k: v for k, v in CART.items() if k not in ("task", "rng", "sample_weight")}
    chain = {k: v for k, v in ADABOOST.items() if k not in ("rng", "sample_weight")}
    softmax = {"loss": "softmax", "y": THREE}
    steps = {
        **{loss: {"loss": loss} for loss in ("log_loss", "exponential", "hinge", "probit")},
        "squared_error": {"loss": "squared_error", "y": NUMBERS},
        "binned, half of the rows": {"search": "binned", "subsample": 0.5},
        "weights": WEIGHTED,
        "softmax": {
            **softmax,
            "leaf_update": "newton",
            "l2_regularization": 1.0,
            "search": "binned",
        },
        "softmax, exact": softmax,
        "softmax, weights, columns drawn": {
            **softmax,
            **WEIGHTED,
            "search": "binned",
            "max_features": 2,
            "subsample": 0.5,
            "max_leaf_nodes": 5,
            "max_depth": None,
        },
    }
    sums = {
        "shared trees": {},
        "trees of each class": {"one_vs_rest": "tree"},
        "two classes, mean": {"y": TWO, "voting": "soft", "stratify": True},
    }
    base = partial(
        pb.fit_cart, **{**tree, "max_depth": 2}, task="classification", rng=0, n_threads=1
    )
    rest = partial(
        pb.fit_one_vs_rest, pb.fit_adaboost, **{**chain, "n_estimators": 2}, rng=0, n_threads=1
    )
    again = {"n_estimators": 3, "learning_rate": 1.0, "sample_weight": None}
    return {
        **fits_of("cart", CART, TWO, carts),
        **fits_of(
            "pruned_cart",
            pruned,
            TWO,
            {"two": {}, "three": {"y": THREE, "rule": "1se"}, "regression": regression},
        ),
        **fits_of("forest", FOREST, TWO, forests),
        "bagging: trees": Fit(pb.fit_bagging, (pb.fit_cart, X, THREE), {**BAGGING, **tree}),
        "bagging: regression": Fit(
            pb.fit_bagging,
            (pb.fit_cart, X, NUMBERS),
            {
                **BAGGING,
                **tree,
                "task": "regression",
                "criterion": "squared_error",
                "voting": "soft",
            },
        ),
        "bagging: chains, subsamples": Fit(
            pb.fit_bagging,
            (partial(pb.fit_adaboost, n_estimators=12), X, TWO),
            {**chain, **BAGGING, "bootstrap": False, "max_samples": 250},
        ),
        "one_vs_rest: chains": Fit(pb.fit_one_vs_rest, (pb.fit_adaboost, X, THREE), ADABOOST),
        "samme: trees": Fit(pb.fit_samme, (X, THREE), {**again, "base_learner": base}),
        "samme: one-vs-rest": Fit(pb.fit_samme, (X, THREE), {**again, "base_learner": rest}),
        **fits_of("stagewise", STAGEWISE, TWO, steps),
        **fits_of(
            "probitboost",
            PROBIT,
            TWO,
            {"steps": {}, "weights": WEIGHTED, "no safeguard": {"safeguard": False, "tol": 1e-5}},
        ),
        **fits_of(
            "probit_tree",
            PROBIT_TREE,
            TWO,
            {"two": {}, "three": {"y": THREE}, "pruned": {"complexity": 0.01, "search": "binned"}},
        ),
        **fits_of("sbpmt", SBPMT, THREE, sums),
    }


def all_fits() -> dict[str, Fit]:
    """Return every fit by name."""
    return {**two_class_fits(), **other_fits()}
