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
    "adaboost_real": pb.fit_adaboost_real,
    "bagging": pb.fit_bagging,
    "boosted_tree": pb.fit_boosted_tree,
    "cart": pb.fit_cart,
    "continue_fit": pb.continue_fit,
    "forest": pb.fit_forest,
    "matryoshka": pb.fit_matryoshka,
    "oblique_tree": pb.fit_oblique_tree,
    "one_vs_rest": pb.fit_one_vs_rest,
    "probit_tree": pb.fit_probit_tree,
    "probitboost": pb.fit_probitboost,
    "pruned_cart": pb.fit_pruned_cart,
    "samme": pb.fit_samme,
    "sbpmt": pb.fit_sbpmt,
    "stagewise": pb.fit_stagewise,
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


def stump(criterion="kearns-mansour", search="exact", max_bins=256, min_weight=0.0, min_leaf=1):
    """Return a stump with every option."""
    return pb.weak.stump(
        criterion,
        search,
        max_bins=max_bins,
        min_weight=min_weight,
        min_leaf=min_leaf,
        missing="learn",
        level_smoothing=0.0,
    )


def affine(search="exact", directions=12, terms=2, seed=3):
    """Return an affine weak learner with every option."""
    return pb.weak.affine(
        "kearns-mansour",
        search,
        directions=directions,
        terms=terms,
        seed=seed,
        max_bins=64,
        min_weight=0.0,
        min_leaf=1,
    )


def separator(search="exact"):
    """Return a separator with every option."""
    return pb.weak.separator(
        6,
        smoothing=1e-3,
        learning_rate=1.0,
        votes="domain",
        criterion="kearns-mansour",
        search=search,
        max_bins=32,
    )


def linear(dense_gain=1.0):
    """Return a linear weak learner with every option."""
    return pb.weak.linear(
        "kearns-mansour", dense_gain=dense_gain, pairs=20, seed=1, min_weight=0.0, min_leaf=1
    )


def sampled(stop, estimator="map", of=None, max_draws=64, clock=None):
    """Return estimated answers with every option."""
    return pb.observation.sampled(stop, estimator, max_draws=max_draws, clock=clock, of=of)


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
COLUMNS = {"categorical": None}
TREE_COLUMNS = {"missing": "learn", "level_smoothing": 0.0, **COLUMNS}
SHARED = {"sample_weight": None, "rng": 5}
STOPPING = {"validation": None, "patience": None}
VOTING = {"smoothing": 1e-4, "learning_rate": 1.0}
PRICES = {"prices": None, "groups": None, "comparison_price": None}
ADABOOST = {
    "rounds": 12,
    "weak": stump(),
    "votes": "domain",
    "observation": EXACT,
    **VOTING,
    **COLUMNS,
    **SHARED,
    **STOPPING,
    **PRICES,
}
TREE = {
    "nodes": 12,
    "weak": stump(),
    "observation": EXACT,
    "growth": "largest-bound",
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
    "nodes": None,
    "collect": "additive",
    "join": "sign",
    "weak": stump(),
    "observation": EXACT,
    **VOTING,
    **COLUMNS,
    **SHARED,
    **STOPPING,
    **PRICES,
}
OBLIQUE = {
    "separators": 4,
    "max_depth": 3,
    "stumps": 5,
    "growth": "breadth-first",
    "observation": EXACT,
    "smoothing": 1e-4,
    **COLUMNS,
    **SHARED,
    **STOPPING,
}
REAL = {"rounds": 8, "weak": stump(), "confidence": None, **VOTING, **COLUMNS, **SHARED}
TOPDOWN = {
    "nodes": 10,
    "impurity": "gini",
    "growth": "largest-bound",
    "target_certificate": None,
    "max_depth": None,
    "min_weight": 0.0,
    "min_leaf": 1,
    "level_smoothing": 2.0,
    **VOTING,
    **COLUMNS,
    "sample_weight": None,
}
CART = {
    "task": "classification",
    "criterion": "gini",
    "max_depth": 6,
    "min_leaf": 1,
    "min_split": 2,
    "max_leaves": None,
    "features_per_split": None,
    "growth": None,
    "search": "exact",
    "max_bins": 256,
    **PRICES,
    **TREE_COLUMNS,
    **SHARED,
}
FOREST = {
    "members": 6,
    "task": "classification",
    "features_per_split": "sqrt",
    "replace": True,
    "bag": None,
    "criterion": "gini",
    "max_depth": None,
    "min_leaf": 1,
    "min_split": 2,
    "max_leaves": None,
    "search": "exact",
    "max_bins": 256,
    **PRICES,
    **TREE_COLUMNS,
    **SHARED,
}
BAGGING = {
    "members": 5,
    "task": "classification",
    "bag": None,
    "replace": True,
    "vote": "majority",
    **SHARED,
}
STAGEWISE = {
    "loss": "logistic",
    "task": None,
    "steps": 6,
    "learning_rate": 0.5,
    "max_depth": 3,
    "max_leaves": None,
    "min_leaf": 2,
    "leaf_step": "best",
    "l2": 0.0,
    "min_weight": 0.0,
    "min_gain": 0.0,
    "features_per_tree": None,
    "features_per_split": None,
    "monotone": None,
    "interactions": None,
    "max_step": "auto",
    "start": "constant",
    "bag": 1.0,
    "search": "exact",
    "max_bins": 256,
    "sums": "auto",
    "trees": "per-class",
    "growth": "auto",
    "tree_comparisons": None,
    **PRICES,
    "price_tradeoff": None,
    **TREE_COLUMNS,
    **SHARED,
    **STOPPING,
}
PROBIT = {"steps": 15, "tol": None, "safeguard": True, **COLUMNS, "sample_weight": None}
PROBIT_TREE = {
    "max_depth": 2,
    "min_leaf": 20,
    "min_split": 2,
    "steps": 12,
    "tol": None,
    "safeguard": True,
    "criterion": "gini",
    "complexity": 0.0,
    "search": "exact",
    "max_bins": 256,
    "missing": "learn",
    "level_smoothing": 0.0,
    **COLUMNS,
    "sample_weight": None,
}
SBPMT = {
    "members": 3,
    "rounds": 2,
    "steps": 8,
    "bag": 0.7,
    "max_depth": 2,
    "min_leaf": 20,
    "min_split": 2,
    "complexity": 0.0,
    "tol": None,
    "safeguard": True,
    "step": 0.5,
    "vote": "majority",
    "one_vs_all": "leaf",
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
        if table.categorical is not None:
            options["categorical"] = table.categorical
        given = X, options.pop("y", y)
        actual[f"{builder}: {name}"] = Fit(BUILDERS[builder], given, options, asked(table, X))
    return actual


def _continued(build: Any, shared: dict[str, Any], **more: Any) -> Fit:
    """Go on with a model of a few nodes, with the options that it has."""
    start = build(X, TWO, **shared, n_threads=1)
    unused = dict.fromkeys(("rounds", "nodes", "growth", "members", "steps", "validation"))
    options = {
        **unused,
        "weak": shared["weak"],
        "observation": EXACT,
        **VOTING,
        **SHARED,
        **more,
    }
    return Fit(pb.continue_fit, (start, X, TWO), options)


CRITERIA = {
    f"{criterion}, {search}": {"weak": stump(criterion, search, 64)}
    for criterion in ("kearns-mansour", "gini", "entropy", "error")
    for search in ("exact", "binned")
}
OBSERVATIONS: dict[str, dict[str, Any]] = {
    "flip": {"observation": pb.observation.flip(0.1)},
    "half": {"observation": pb.observation.half()},
    "uniform": {"observation": pb.observation.uniform()},
    "adatree2": {"observation": pb.observation.adatree2()},
    "adatree2, binned": {
        "observation": pb.observation.adatree2(),
        "weak": stump(search="binned"),
    },
    "gaussian": {
        "observation": pb.observation.gaussian(0.25),
        "weak": stump(search="binned"),
        "X": X[:, :5],
    },
    "gaussian by column": {
        "observation": pb.observation.gaussian(SIGMA),
        "weak": stump(search="binned"),
    },
}
LEARNERS = {
    "affine, exact": {"weak": affine()},
    "affine of three columns, binned": {"weak": affine("binned", terms=3)},
    "separators": {"weak": separator()},
    "linear": {"weak": linear()},
    "oracles": {"weak": ORACLE},
}
GROWTHS = ("largest-bound", "largest-error", "look-ahead", "breadth-first")
WEIGHTED = {"sample_weight": WEIGHT}


def _sampled() -> dict[str, dict[str, Any]]:
    return {
        "sampled to the first rise": {"observation": sampled("first-increase")},
        "sampled oracles": {"observation": sampled("first-increase"), "weak": ORACLE},
        "sampled ten times, adatree2": {
            "observation": sampled(10, of=pb.observation.adatree2(), max_draws=None)
        },
    }


def two_class_fits() -> dict[str, Fit]:
    """Return the fits of graphs and of their like."""
    sorted_columns = pb.sort_columns(X, copy=True, n_threads=1)
    binned = pb.bin_columns(X, max_bins=64, sample_weight=None, n_threads=1)
    chains = {
        **CRITERIA,
        **OBSERVATIONS,
        **LEARNERS,
        **_sampled(),
        "sampled by the stopwatch": {"observation": sampled("stopwatch", clock=ticking())},
        "symmetric votes": {"votes": "symmetric"},
        "weights": WEIGHTED,
        "weights, binned": {**WEIGHTED, "weak": stump("gini", "binned", 16)},
        "no smoothing": {"smoothing": 0.0, "learning_rate": 0.5},
        "sides of a least weight": {"weak": stump(min_weight=0.2, min_leaf=40)},
        "float32, words": {"X": X.astype(np.float32), "y": WORDS},
        "sorted columns": {"X": sorted_columns},
        "binned columns": {"X": binned, "weak": stump(search="auto")},
        "validation": {"validation": (X[:100], TWO[:100]), "patience": 4},
    }
    trees = {
        **CRITERIA,
        **OBSERVATIONS,
        **LEARNERS,
        **_sampled(),
        **{
            f"{g}, {c}": {"growth": g, "weak": stump(c, s)}
            for g in GROWTHS
            for c, s in (("kearns-mansour", "exact"), ("gini", "binned"))
        },
        **{
            f"{g}, adatree2": {"growth": g, "observation": pb.observation.adatree2()}
            for g in GROWTHS
        },
        "weights": WEIGHTED,
        "depth 4": {"nodes": None, "max_depth": 4},
        "target": {"nodes": None, "target_certificate": 0.4},
        "separators of bins": {"weak": separator("binned"), "nodes": 4},
    }
    nested = {
        "additive": {},
        "three deep, by sign": {"shape": (2, 2, 2), "collect": "sign"},
        "all join": {"join": "all"},
        "greedy": {"shape": None, "growth": "greedy", "nodes": 9},
        "adatree2": {"observation": pb.observation.adatree2()},
        "weights, affine": {**WEIGHTED, "weak": affine()},
        "gaussian": OBSERVATIONS["gaussian"],
    }
    real = {
        "stumps": {},
        "log odds": {"confidence": "log-odds"},
        "columns": {"weak": pb.weak.feature("mean", constant=True)},
        "columns, weights": {"weak": pb.weak.feature("midrange", constant=False), **WEIGHTED},
        "hypotheses": {"weak": pb.weak.hypothesis(train_hypothesis, h_max=1.0)},
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
        "continue_fit: chain": _continued(pb.fit_adaboost, ADABOOST, rounds=5),
        "continue_fit: tree": _continued(
            pb.fit_boosted_tree, TREE, nodes=5, growth="largest-bound"
        ),
    }


def other_fits() -> dict[str, Fit]:
    """Return the fits of trees of any number of classes, ensembles and probit models."""
    regression = {"task": "regression", "criterion": "squared", "y": NUMBERS}
    carts = {
        "gini": {},
        "entropy": {"criterion": "entropy"},
        "three classes": {"y": THREE},
        "three classes, binned": {"y": THREE, "search": "binned"},
        "three classes, entropy": {"y": THREE, "criterion": "entropy", **WEIGHTED},
        "regression": regression,
        "regression, binned": {**regression, "search": "binned"},
        "weights": {**WEIGHTED, "min_leaf": 4},
        "best first": {"max_leaves": 9, "max_depth": None},
        "columns drawn": {"features_per_split": "sqrt"},
    }
    pruned = {"folds": 4, "rule": "min", **CART}
    forests = {
        "exact": {},
        "three classes, binned": {"y": THREE, "search": "binned"},
        "regression": regression,
        "weights": WEIGHTED,
        "without replacement": {"replace": False, "bag": 200, "max_depth": 5},
    }
    tree = {k: v for k, v in CART.items() if k not in ("task", "rng", "sample_weight")}
    chain = {k: v for k, v in ADABOOST.items() if k not in ("rng", "sample_weight")}
    softmax = {"loss": "softmax", "y": THREE}
    steps = {
        **{loss: {"loss": loss} for loss in ("logistic", "exponential", "hinge", "probit")},
        "squared": {"loss": "squared", "y": NUMBERS},
        "binned, half of the rows": {"search": "binned", "bag": 0.5},
        "weights": WEIGHTED,
        "softmax": {**softmax, "leaf_step": "newton", "l2": 1.0, "search": "binned"},
        "softmax, exact": softmax,
        "softmax, weights, columns drawn": {
            **softmax,
            **WEIGHTED,
            "search": "binned",
            "features_per_split": 2,
            "bag": 0.5,
            "max_leaves": 5,
            "max_depth": None,
        },
    }
    sums = {
        "shared trees": {},
        "trees of each class": {"one_vs_all": "tree"},
        "two classes, mean": {"y": TWO, "vote": "average", "stratify": True},
    }
    base = partial(
        pb.fit_cart, **{**tree, "max_depth": 2}, task="classification", rng=0, n_threads=1
    )
    rest = partial(
        pb.fit_one_vs_rest, pb.fit_adaboost, **{**chain, "rounds": 2}, rng=0, n_threads=1
    )
    again = {"rounds": 3, "learning_rate": 1.0, "sample_weight": None}
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
            {**BAGGING, **tree, "task": "regression", "criterion": "squared", "vote": "average"},
        ),
        "bagging: chains, subsamples": Fit(
            pb.fit_bagging,
            (pb.fit_adaboost, X, TWO),
            {**BAGGING, **chain, "replace": False, "bag": 250},
        ),
        "one_vs_rest: chains": Fit(pb.fit_one_vs_rest, (pb.fit_adaboost, X, THREE), ADABOOST),
        "samme: trees": Fit(pb.fit_samme, (X, THREE), {**again, "base": base}),
        "samme: one-vs-rest": Fit(pb.fit_samme, (X, THREE), {**again, "base": rest}),
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
