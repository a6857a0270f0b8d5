"""Tree ensembles of other libraries: predictions after each round, and their cost."""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from many_classes_families import depths_of
from numpy.typing import NDArray
from oblique_trees import one_hot_and_means

Floats = NDArray[Any]

#: Approximate number of comparisons of a full model, and the largest number of rounds.
MOST_COMPARISONS, MOST_ROUNDS = 600, 400
#: Minimum rows per leaf, for libraries whose default is for large data sets.
ROWS_OF_LEAF = 5
#: Largest number of categories in HistGradientBoosting; rarer categories are missing. For features
#: with more categories, catboost uses target statistics.
MOST_LEVELS = 255


@dataclass(frozen=True)
class Stages:
    """Predictions of an ensemble after 0, 1, ..., T rounds, and their cost.

    Attributes
    ----------
    score : ndarray, shape (n, T + 1) or (n, T + 1, J)
        Log odds of class 1; for multiclass problems, log probabilities up to a constant.
    cost : ndarray of int32, shape (n, T + 1)
        Comparisons in all trees so far.
    """

    score: Floats
    cost: NDArray[np.int32]

    def first(self, rounds: int) -> Stages:
        """Return the predictions of the first rounds."""
        return Stages(self.score[:, : rounds + 1], self.cost[:, : rounds + 1])


@dataclass(frozen=True)
class Rows:
    """Training rows, with NaN for missing values and `categories` for columns of categories.

    The classes are 0, 1, ..., each with at least one row.
    """

    X: Floats
    y: NDArray[np.int64]
    categories: tuple[int, ...]

    @property
    def n_labels(self) -> int:
        """Number of classes."""
        return int(self.y.max()) + 1

    @property
    def prior(self) -> Floats:
        """The score without any comparison: (1,) or (J,)."""
        shares = np.log(np.bincount(self.y) / len(self.y))
        return shares[1:] - shares[:1] if len(shares) == 2 else shares


#: Predicts rows with a fitted model.
Staged = Callable[[Floats], Stages]
#: Fits a model.
Learner = Callable[[Rows], Staged]


def stages(prior: Floats, added: Sequence[Floats] | Floats, cost: Floats) -> Stages:
    """Build `Stages` from the increments of scores (T, n, 1 or J) and costs (T, n)."""
    start = np.broadcast_to(prior, (1, *np.shape(added)[1:]))
    score = np.cumsum(np.concatenate([start, added]), axis=0, dtype=np.float64)
    return of_scores(score, cost)


def of_scores(score: Floats, cost: Floats) -> Stages:
    """Build `Stages` from scores (T + 1, n, 1 or J) and the cost of each round (T, n)."""
    score = np.ascontiguousarray(score.swapaxes(0, 1), dtype=np.float32)
    total = np.zeros((score.shape[0], score.shape[1]), dtype=np.int32)
    total[:, 1:] = np.cumsum(np.transpose(cost), axis=1)
    return Stages(score[..., 0] if score.shape[-1] == 1 else score, total)


def rounds(comparisons: float) -> int:
    """Return the number of rounds to fit, given the comparisons per round."""
    return min(MOST_ROUNDS, int(1.4 * MOST_COMPARISONS / comparisons) + 1)


# Libraries


def xgboost(depth: int, rate: float, rows: Rows, multi: bool = False) -> Staged:
    """Fit xgboost; multiclass with one tree per class, or one for all classes if `multi`."""
    library = importlib.import_module("xgboost")
    J, X, categories = rows.n_labels, rows.X, rows.categories
    types = ["c" if j in categories else "q" for j in range(X.shape[1])]
    if multi:  # does not support categories
        types = None

    def data(of: Floats, label: Any = None) -> Any:
        if multi:
            of = one_hot_and_means(X, of, categories)[1]
        elif label is None and categories:
            of = of.copy()
            for j in categories:  # unknown categories are missing
                of[~np.isin(of[:, j], X[:, j]), j] = np.nan
        start = np.tile(rows.prior, (len(of), 1))
        return library.DMatrix(
            of,
            label,
            base_margin=start if J > 2 else start[:, 0],
            nthread=1,
            feature_types=types,
            enable_categorical=True,
        )

    per_round = 1 if multi or J == 2 else J
    n_rounds = rounds(depth * per_round)
    options = {
        "objective": "binary:logistic" if J == 2 else "multi:softprob",
        "eta": rate,
        **({} if J == 2 else {"num_class": J}),
        "max_depth": depth,
        "nthread": 1,
        "tree_method": "hist",
        "verbosity": 0,
        "multi_strategy": "multi_output_tree" if multi else "one_output_per_tree",
    }
    booster = library.train(options, data(X, rows.y), n_rounds)
    document = json.loads(booster.save_raw("json").decode())
    trees = document["learner"]["gradient_booster"]["model"]["trees"]
    depths = [depths_of(of["left_children"], of["right_children"]) for of in trees]

    def staged(of: Floats) -> Stages:
        new = data(of)
        added = [
            booster.predict(new, output_margin=True, iteration_range=(k, k + 1)).reshape(
                len(of), -1
            )
            - rows.prior
            for k in range(n_rounds)
        ]
        leaf = booster.predict(new, pred_leaf=True).astype(np.intp).reshape(len(of), -1)
        cost = np.array([depth[at] for depth, at in zip(depths, leaf.T, strict=True)])
        cost = cost.reshape(n_rounds, per_round, len(of)).sum(axis=1)
        return stages(rows.prior, added, cost)

    return staged


def lightgbm(leaves: int, rate: float, rows: Rows) -> Staged:
    """Fit lightgbm, which has one tree per class."""
    library = importlib.import_module("lightgbm")
    J = rows.n_labels
    per_round = 1 if J == 2 else J
    options = {
        "objective": "binary" if J == 2 else "multiclass",
        "num_class": per_round,
        "num_leaves": leaves,
        "learning_rate": rate,
        "min_data_in_leaf": ROWS_OF_LEAF,
        "num_threads": 1,
        "verbosity": -1,
    }
    data = library.Dataset(
        rows.X, rows.y, params=options, categorical_feature=list(rows.categories)
    )
    booster = library.train(options, data, rounds(np.log2(leaves) * per_round))
    trees = [leaf_table(of["tree_structure"]) for of in booster.dump_model()["tree_info"]]

    def staged(of: Floats) -> Stages:
        leaf = booster.predict(of, pred_leaf=True).astype(np.intp).reshape(len(of), -1)
        result = np.array([tree[at] for tree, at in zip(trees, leaf.T, strict=True)])
        added, cost = (
            result[..., what].reshape(-1, per_round, len(of)).swapaxes(1, 2) for what in (0, 1)
        )
        added[0] -= rows.prior  # the leaves of the first trees include it
        return stages(rows.prior, added, cost.sum(axis=2))

    return staged


def leaf_table(tree: dict[str, Any]) -> Floats:
    """Return value and depth of each leaf (leaves, 2) of a tree of lightgbm."""
    result: dict[int, tuple[float, int]] = {}
    nodes = [(tree, 0)]
    while nodes:
        node, depth = nodes.pop()
        if "left_child" in node:
            nodes += [(node[child], depth + 1) for child in ("left_child", "right_child")]
        else:
            result[node.get("leaf_index", 0)] = node["leaf_value"], depth
    return np.array([result[k] for k in range(len(result))])


def catboost(depth: int, rate: float, rows: Rows) -> Staged:
    """Fit catboost, whose trees are symmetric and predict all classes.

    Categories are one-hot encoded, because target statistics, its default, need many more trees.
    """
    library, pandas = (importlib.import_module(name) for name in ("catboost", "pandas"))

    def data(of: Floats, label: Any = None) -> Any:
        table = of
        if rows.categories:  # must be strings
            table = pandas.DataFrame(of)
            for j in rows.categories:
                table[j] = [str(value) for value in of[:, j]]
        return library.Pool(table, label, cat_features=list(rows.categories))

    model = library.CatBoostClassifier(
        iterations=rounds(1.4 * depth),
        learning_rate=rate,
        depth=depth,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        random_seed=0,
        one_hot_max_size=MOST_LEVELS,
        loss_function="Logloss" if rows.n_labels == 2 else "MultiClass",
    ).fit(data(rows.X, rows.y))
    costs = np.log2(model.get_tree_leaf_counts())  # all rows take all comparisons of a tree

    def staged(of: Floats) -> Stages:
        every = model.staged_predict(data(of), prediction_type="RawFormulaVal", thread_count=1)
        score = [np.reshape(said, (len(of), -1)) for said in every]
        start = np.broadcast_to(rows.prior, score[0].shape)
        return of_scores(np.array([start, *score]), np.tile(costs[:, None], len(of)))

    return staged


def histograms(leaves: int, rate: float, rows: Rows) -> Staged:
    """Fit scikit-learn's HistGradientBoosting, which has one tree per class."""
    ensemble, pools = (
        importlib.import_module(name) for name in ("sklearn.ensemble", "threadpoolctl")
    )
    codes = {j: common_levels(rows.X[:, j]) for j in rows.categories}

    def coded(of: Floats) -> Floats:
        of = of.copy()
        for j, levels in codes.items():
            code = np.searchsorted(levels, of[:, j])
            of[:, j] = np.where(np.append(levels, np.nan)[code] == of[:, j], code, np.nan)
        return of

    per_round = 1 if rows.n_labels == 2 else rows.n_labels
    model = ensemble.HistGradientBoostingClassifier(
        max_iter=rounds(np.log2(leaves) * per_round),
        max_leaf_nodes=leaves,
        learning_rate=rate,
        min_samples_leaf=ROWS_OF_LEAF,
        early_stopping=False,
        categorical_features=list(rows.categories) or None,
    )
    with pools.threadpool_limits(1):
        model.fit(coded(rows.X), rows.y)
    levels_of_bins, sums = model._bin_mapper.make_known_categories_bitsets(), model._predictors

    def staged(of: Floats) -> Stages:
        X = model._preprocess_X(coded(of), reset=False)
        added, cost = (
            np.array([[of_tree(tree, X, levels_of_bins) for tree in trees] for trees in sums])
            for of_tree in (values_reached, depths_reached)
        )
        return stages(model._baseline_prediction[0], added.swapaxes(1, 2), cost.sum(axis=1))

    return staged


def values_reached(tree: Any, X: Floats, levels_of_bins: Any) -> Floats:
    """Return the values of the leaves that rows reach in a tree of HistGradientBoosting."""
    return tree.predict(X, *levels_of_bins, 1)


def depths_reached(tree: Any, X: Floats, levels_of_bins: Any) -> Floats:
    """Return the depths of the leaves that rows reach."""
    nodes = tree.nodes.copy()
    nodes["value"] = nodes["depth"]
    deep = type(tree)(nodes, tree.binned_left_cat_bitsets, tree.raw_left_cat_bitsets)
    return values_reached(deep, X, levels_of_bins)


def common_levels(column: Floats) -> Floats:
    """Return the most common categories, in order."""
    levels, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    return np.sort(levels[np.argsort(-counts, kind="stable")][:MOST_LEVELS])


# Candidates: sizes of trees, depths or leaves, and learning rates

SIZES_AND_RATES: dict[str, dict[str, tuple[tuple[int, float], ...]]] = {
    "two classes": {
        "xgboost": ((5, 1.0), (8, 0.6), (4, 0.6), (6, 0.3), (3, 0.3), (4, 0.1)),
        "lightgbm": ((16, 1.0), (16, 0.5), (8, 0.3), (16, 0.1)),
        "catboost": ((5, 1.0), (6, 0.5), (6, 0.3), (4, 0.15)),
        "HistGradientBoosting": ((16, 1.0), (16, 0.3), (8, 0.15)),
    },
    "many classes": {
        "xgboost": ((5, 1.0), (4, 0.3)),
        "xgboost, one tree a round": ((4, 1.0), (8, 1.0), (8, 0.5), (4, 0.3)),
        "lightgbm": ((2, 1.0), (4, 1.0), (4, 0.5), (8, 0.3), (31, 0.3)),
        "catboost": ((5, 1.0), (5, 0.5), (6, 0.3), (4, 0.15)),
        "HistGradientBoosting": ((2, 1.0), (8, 1.0), (16, 0.3), (8, 0.15)),
    },
}
#: Modules, names and fits of the libraries; validation chooses among candidates of one name.
LIBRARIES: tuple[tuple[str, str, str, Callable[[int, float, Rows], Staged]], ...] = (
    ("xgboost", "xgboost", "xgboost", xgboost),
    ("xgboost", "xgboost", "xgboost, one tree a round", partial(xgboost, multi=True)),
    ("lightgbm", "lightgbm", "lightgbm", lightgbm),
    ("catboost", "catboost", "catboost", catboost),
    ("sklearn", "HistGradientBoosting", "HistGradientBoosting", histograms),
)


def peers(kind: str) -> dict[str, dict[str, Learner]]:
    """Return the candidates of each installed library, for binary or multiclass problems."""
    result: dict[str, dict[str, Learner]] = {}
    for module, name, fit_name, fit in LIBRARIES:
        if importlib.util.find_spec(module) is None:
            continue
        for size, rate in SIZES_AND_RATES[kind].get(fit_name, ()):
            setting = f"{fit_name}, size {size}, rate {rate}"
            result.setdefault(name, {})[setting] = partial(fit, size, rate)
    return result
