"""The fits of each library for the same work.

A fit takes the rows, classes 0/1, a size (rounds or depth), the number of threads, and weights or
None. It returns a function that scores rows; scores are positive for class 1. All libraries get the
same C-ordered float32 rows. Their options disable everything that reduces the work: subsampling of
rows or features, regularization, and early stopping.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

LEARNING_RATE = 0.5  # of the logistic boosters; it does not affect the running time

Scorer = Callable[[Any], Any]
Fit = Callable[..., Scorer]


@dataclass(frozen=True, slots=True)
class Library:
    """A library in one benchmark.

    Attributes
    ----------
    label : str
        Name in the tables.
    search : str
        "exact" or "binned".
    module : str
        Module that must be importable.
    fit : callable
        See the module docstring.
    cell_ns : float
        Approximate cost per row, feature and round, which determines the number of rounds.
    """

    label: str
    search: str
    module: str
    fit: Fit
    cell_ns: float = 1.0


# pboost


def pboost_stumps(search: str) -> Fit:
    def fit(X, y, rounds, threads, weight=None):
        import pboost as pb

        model = pb.fit_adaboost(
            X,
            y,
            n_estimators=rounds,
            weak_learner=pb.weak.stump(search=search),
            sample_weight=weight,
            n_threads=threads,
        )
        return lambda rows: pb.decision_function(model, rows)

    return fit


def pboost_tree(criterion: str, search: str = "exact") -> Fit:
    def fit(X, y, depth, threads, weight=None):
        import pboost as pb

        model = pb.fit_boosted_tree(
            X,
            y,
            max_nodes=None,
            max_depth=depth,
            weak_learner=pb.weak.stump(criterion, search),
            sample_weight=weight,
            n_threads=threads,
        )
        return lambda rows: pb.decision_function(model, rows)

    return fit


def pboost_cart(X, y, depth, threads, weight=None):
    import pboost as pb

    model = pb.fit_cart(X, y, max_depth=depth, sample_weight=weight, n_threads=threads)
    return lambda rows: pb.decision_function(model, rows)


# scikit-learn


def sklearn_adaboost(X, y, rounds, threads, weight=None):
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=rounds)
    return model.fit(X, y, sample_weight=weight).decision_function


def sklearn_tree(X, y, depth, threads, weight=None):
    from sklearn.tree import DecisionTreeClassifier

    model = DecisionTreeClassifier(max_depth=depth, random_state=0)
    model.fit(X, y, sample_weight=weight)
    return lambda rows: model.predict_proba(rows)[:, 1] - 0.5


def sklearn_histogram(depth: int | None) -> Fit:
    """Boost trees of this depth; with None, return one tree whose depth is the size."""

    def fit(X, y, size, threads, weight=None):
        from sklearn.ensemble import HistGradientBoostingClassifier

        rounds, levels = (1, size) if depth is None else (size, depth)
        model = HistGradientBoostingClassifier(
            max_iter=rounds,
            max_leaf_nodes=2**levels,
            max_depth=levels,
            min_samples_leaf=1,
            learning_rate=LEARNING_RATE,
            early_stopping=False,
        )
        return model.fit(X, y, sample_weight=weight).decision_function

    return fit


# xgboost and lightgbm


def xgboost(method: str, depth: int | None) -> Fit:
    def fit(X, y, size, threads, weight=None):
        import xgboost as xgb

        rounds, levels = (1, size) if depth is None else (size, depth)
        options = {
            "objective": "binary:logistic",
            "tree_method": method,
            "max_depth": levels,
            "eta": LEARNING_RATE,
            "lambda": 0,
            "min_child_weight": 0,
            "base_score": 0.5,
            "nthread": threads,
            "verbosity": 0,
        }
        if method == "exact":
            data = xgb.DMatrix(X, y, weight=weight, nthread=threads)
        else:
            options["max_bin"] = 256
            data = xgb.QuantileDMatrix(X, y, weight=weight, nthread=threads, max_bin=256)
        booster = xgb.train(options, data, rounds)
        return lambda rows: booster.inplace_predict(rows, predict_type="margin")

    return fit


def lightgbm(depth: int | None) -> Fit:
    def fit(X, y, size, threads, weight=None):
        import lightgbm as lgb

        rounds, levels = (1, size) if depth is None else (size, depth)
        options = {
            "objective": "binary",
            "num_leaves": 2**levels,
            "max_depth": levels,
            "learning_rate": LEARNING_RATE,
            "min_data_in_leaf": 1,
            "min_sum_hessian_in_leaf": 0.0,
            "max_bin": 255,
            "force_col_wise": True,
            "num_threads": threads,
            "verbosity": -1,
        }
        booster = lgb.train(options, lgb.Dataset(X, y, weight=weight, params=options), rounds)
        return lambda rows: booster.predict(rows, raw_score=True, num_threads=threads)

    return fit


# Yggdrasil decision forests


def _ydf(learner, X, y, threads, weight, **options):
    import ydf

    ydf.verbose(0)
    data = {"x": X, "label": y}
    if weight is not None:
        data["weight"] = weight
        options["weights"] = "weight"
    model = getattr(ydf, learner)(
        label="label", num_threads=threads, validation_ratio=0.0, min_examples=1, **options
    ).train(data, verbose=0)
    return lambda rows: np.asarray(model.predict({"x": rows}, num_threads=threads)) - 0.5


def ydf_stumps(X, y, rounds, threads, weight=None):
    # Its depth includes the level of the leaves.
    return _ydf(
        "GradientBoostedTreesLearner",
        X,
        y,
        threads,
        weight,
        num_trees=rounds,
        max_depth=2,
        shrinkage=LEARNING_RATE,
        early_stopping="NONE",
    )


def ydf_tree(X, y, depth, threads, weight=None):
    levels = -1 if depth is None else depth + 1
    return _ydf("CartLearner", X, y, threads, weight, max_depth=levels)


STUMPS = {
    "pboost-exact": Library("pboost", "exact", "pboost", pboost_stumps("exact")),
    "pboost-binned": Library("pboost", "binned", "pboost", pboost_stumps("binned")),
    "sklearn-adaboost": Library(
        "scikit-learn AdaBoost", "exact", "sklearn", sklearn_adaboost, 130.0
    ),
    "xgboost-exact": Library("xgboost", "exact", "xgboost", xgboost("exact", 1), 15.0),
    "ydf": Library("ydf", "exact", "ydf", ydf_stumps, 9.0),
    "xgboost-hist": Library("xgboost", "binned", "xgboost", xgboost("hist", 1)),
    "lightgbm": Library("lightgbm", "binned", "lightgbm", lightgbm(1)),
    "sklearn-hist": Library(
        "scikit-learn HistGradientBoosting", "binned", "sklearn", sklearn_histogram(1)
    ),
}
FULL_TREE = {
    "pboost-cart": Library("pboost, fit_cart", "exact", "pboost", pboost_cart),
    "pboost-gini": Library("pboost, gini", "exact", "pboost", pboost_tree("gini")),
    "pboost": Library("pboost", "exact", "pboost", pboost_tree("kearns_mansour")),
    "sklearn": Library("scikit-learn DecisionTree", "exact", "sklearn", sklearn_tree),
    "ydf": Library("ydf CART", "exact", "ydf", ydf_tree),
}
DEPTH_TREE = {
    **FULL_TREE,
    "pboost-binned": Library("pboost", "binned", "pboost", pboost_tree("kearns_mansour", "binned")),
    "xgboost-exact": Library("xgboost", "exact", "xgboost", xgboost("exact", None)),
    "xgboost-hist": Library("xgboost", "binned", "xgboost", xgboost("hist", None)),
    "lightgbm": Library("lightgbm", "binned", "lightgbm", lightgbm(None)),
    "sklearn-hist": Library(
        "scikit-learn HistGradientBoosting", "binned", "sklearn", sklearn_histogram(None)
    ),
}
PREDICT = {
    key: STUMPS[key]
    for key in (
        "pboost-exact",
        "sklearn-adaboost",
        "xgboost-hist",
        "lightgbm",
        "sklearn-hist",
        "ydf",
    )
}
