"""The families of models that ``many_classes`` compares, each with several settings."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oblique_trees import one_hot_and_means

import pboost as pb

#: Models are grown until rows take so many comparisons.
MOST = 200
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Split:
    """Rows to train with, and rows to test with.

    NaN is missing in X, and `categories` are its columns of level numbers. Labels are 0, 1, …; all
    are among the training rows.
    """

    X: Floats
    y: NDArray[np.int64]
    X_test: Floats
    y_test: NDArray[np.int64]
    categories: tuple[int, ...]

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.y.max()) + 1

    def as_numbers(self) -> Split:
        """Return it with a column for each level, and means for holes."""
        X, X_test = one_hot_and_means(self.X, self.X_test, self.categories)
        return replace(self, X=X, X_test=X_test, categories=())


@dataclass(frozen=True)
class Grown:
    """A model, and its first parts: nodes, trees, rounds, members.

    Attributes
    ----------
    size : int
        Number of parts.
    cost : callable
        Of the number of first parts: their comparisons for a training row, in the mean.
    test_cost : callable
        The same for a test row.
    said : callable
        Of the number of first parts: their probabilities (rows, labels) of the test rows.
    """

    size: int
    cost: Callable[[int], float]
    test_cost: Callable[[int], float]
    said: Callable[[int], Floats]


Fit = Callable[[Split], Grown]


# Models of this package


def of_own(split: Split, size: int, first: Callable[[int], Any]) -> Grown:
    """Return what stands for a model whose first k parts are the model ``first(k)``."""

    def cost(rows: Floats, k: int) -> float:
        return float(pb.prediction_cost(first(k), rows).mean())

    return Grown(
        size,
        cache(partial(cost, split.X)),
        partial(cost, split.X_test),
        lambda k: pb.predict_proba(first(k), split.X_test),
    )


def chain(leaves: int, rate: float, split: Split, **options: Any) -> Grown:
    """Chain trees whose exits have a vote for each label."""

    def fit(rounds: int) -> Any:
        return pb.fit_matryoshka(
            split.X,
            split.y,
            shape=(leaves - 1, rounds),
            join="all",
            learning_rate=rate,
            categorical_features=split.categories,
            n_threads=1,
            **options,
        )

    rounds = int(MOST / np.log2(leaves)) + 1
    model = fit(rounds)
    cost = pb.prediction_cost(model, split.X).mean()
    if cost < MOST and model.n_nodes == rounds * (leaves - 1):
        model = fit(int(1.1 * rounds * MOST / cost) + 1)
    return of_own(split, model.n_nodes, partial(pb.models.truncate, model))


def tree(nodes: int, split: Split, **options: Any) -> Grown:
    """Grow one tree."""
    model = pb.fit_boosted_tree(
        split.X,
        split.y,
        max_nodes=nodes,
        categorical_features=split.categories,
        n_threads=1,
        **options,
    )
    return of_own(split, model.n_nodes, partial(pb.models.truncate, model))


def softmax(depth: int, rate: float, split: Split, **options: Any) -> Grown:
    """Add up trees of the gradient of the softmax."""
    a_round = depth * (
        1 if options.get("multi_strategy") == "multi_output_tree" else split.n_labels
    )
    model = pb.fit_gradient_boosting(
        split.X,
        split.y,
        loss="softmax",
        max_depth=depth,
        learning_rate=rate,
        n_estimators=int(1.5 * MOST / a_round) + 1,
        categorical_features=split.categories,
        n_threads=1,
        **options,
    )
    return of_own(split, len(model), partial(pb.models.truncate, model))


def one_vs_rest(builder: Any, options: dict[str, Any], split: Split) -> Grown:
    """Fit a graph of two labels for each label."""
    full_model = pb.fit_one_vs_rest(
        builder, split.X, split.y, categorical_features=split.categories, n_threads=1, **options
    )

    def first(size: int) -> Any:
        parts = (m if size >= m.n_nodes else pb.models.truncate(m, size) for m in full_model.models)
        return replace(full_model, models=tuple(parts))

    return of_own(split, max(model.n_nodes for model in full_model.models), first)


def samme(leaves: int, rate: float, split: Split) -> Grown:
    """Boost trees that answer one of the labels."""
    base = partial(
        pb.fit_cart,
        max_leaf_nodes=leaves,
        categorical_features=split.categories,
        n_threads=1,
        search="binned",
    )
    rounds = int(MOST / np.log2(leaves)) + 1
    full_model = pb.fit_samme(
        split.X, split.y, base_learner=base, n_estimators=rounds, learning_rate=rate
    )

    def first(size: int) -> Any:
        return replace(
            full_model,
            models=full_model.models[:size],
            alpha=full_model.alpha[:size],
            error=full_model.error[:size],
        )

    return of_own(split, len(full_model.models), first)


def forest(leaves: int | None, share: str | float | None, split: Split) -> Grown:
    """Grow a random forest."""
    members = int(1.5 * MOST / np.log2(leaves or 64)) + 1
    full_model = pb.fit_random_forest(
        split.X,
        split.y,
        n_estimators=members,
        max_leaf_nodes=leaves,
        max_features=share,
        rng=0,
        categorical_features=split.categories,
        n_threads=1,
    )
    return of_own(split, members, lambda size: full_model[:size])


# Models of others


def by_part(costs: Floats, test_costs: Floats, said: Callable[[int], Floats]) -> Grown:
    """Return what stands for a model whose k-th part costs so much."""
    sums, test_sums = np.cumsum(costs), np.cumsum(test_costs)
    return Grown(len(sums), lambda k: sums[k - 1], lambda k: test_sums[k - 1], said)


def xgboost(multi: bool, depth: int, rate: float, split: Split) -> Grown:
    """Fit xgboost: a tree for each label in each round, or one for all."""
    library = importlib.import_module("xgboost")
    if multi:  # knows no categories
        split = split.as_numbers()
    d, new = split.X.shape[1], split.X_test.copy()
    for j in split.categories:  # levels that are new are missing
        new[~np.isin(new[:, j], split.X[:, j]), j] = np.nan
    types = ["c" if j in split.categories else "q" for j in range(d)]
    rows, others = (
        library.DMatrix(of, label, nthread=1, feature_types=types, enable_categorical=True)
        for of, label in ((split.X, split.y), (new, None))
    )
    options = {
        "objective": "multi:softprob",
        "num_class": split.n_labels,
        "eta": rate,
        "max_depth": depth,
        "nthread": 1,
        "tree_method": "hist",
        "verbosity": 0,
        "multi_strategy": "multi_output_tree" if multi else "one_output_per_tree",
    }
    per_round = 1 if multi else split.n_labels
    rounds = int(1.5 * MOST / (per_round * depth)) + 1
    booster = library.train(options, rows, rounds)
    document = json.loads(booster.save_raw("json").decode())
    trees = document["learner"]["gradient_booster"]["model"]["trees"]
    depths = [depths_of(of["left_children"], of["right_children"]) for of in trees]

    def costs(rows: Any, n: int) -> Floats:
        leaf = booster.predict(rows, pred_leaf=True).astype(np.intp).reshape(n, -1)
        by_tree = [depth[at].mean() for depth, at in zip(depths, leaf.T, strict=True)]
        return np.reshape(by_tree, (rounds, per_round)).sum(axis=1)

    return by_part(
        costs(rows, len(split.X)),
        costs(others, len(new)),
        lambda k: booster.predict(others, iteration_range=(0, k)),
    )


def depths_of(left: list[int], right: list[int]) -> NDArray[np.int64]:
    """Return the number of comparisons on the way to each node of a tree."""
    depth = np.zeros(len(left), dtype=np.int64)
    for node, children in enumerate(zip(left, right, strict=True)):
        if children[0] >= 0:  # "right" of the leaf of a tree for all labels is a number of leaves
            depth[list(children)] = depth[node] + 1
    return depth


def lightgbm(leaves: int, rate: float, split: Split) -> Grown:
    """Fit lightgbm, which has a tree for each label in each round."""
    library = importlib.import_module("lightgbm")
    options = {
        "objective": "multiclass",
        "num_class": split.n_labels,
        "num_leaves": leaves,
        "learning_rate": rate,
        "min_data_in_leaf": 5,
        "num_threads": 1,
        "verbosity": -1,
    }
    data = library.Dataset(
        split.X, split.y, params=options, categorical_feature=list(split.categories)
    )
    rounds = int(1.5 * MOST / (split.n_labels * np.log2(leaves))) + 1
    booster = library.train(options, data, rounds)
    trees = [tree["tree_structure"] for tree in booster.dump_model()["tree_info"]]
    depths = [dict(leaf_depths(tree)) for tree in trees]

    def costs(rows: Floats) -> Floats:
        leaf = booster.predict(rows, pred_leaf=True).astype(np.intp).reshape(len(rows), -1)
        by_tree = [
            sum(depth[at] * count for at, count in enumerate(np.bincount(of)) if count)
            for depth, of in zip(depths, leaf.T, strict=True)
        ]
        return np.reshape(by_tree, (-1, split.n_labels)).sum(axis=1) / len(rows)

    return by_part(
        costs(split.X),
        costs(split.X_test),
        lambda k: booster.predict(split.X_test, num_iteration=k),
    )


def leaf_depths(node: dict[str, Any], depth: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the number of each leaf of a tree of lightgbm, and its depth."""
    if "left_child" not in node:
        yield node.get("leaf_index", 0), depth
        return
    for child in ("left_child", "right_child"):
        yield from leaf_depths(node[child], depth + 1)


def catboost(depth: int, rate: float, split: Split) -> Grown:
    """Fit catboost, each of whose trees is symmetric, and for all labels."""
    library = importlib.import_module("catboost")
    split = split.as_numbers()
    model = library.CatBoostClassifier(
        iterations=int(1.3 * MOST / depth) + 1,
        learning_rate=rate,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        random_seed=0,
        loss_function="MultiClass",
        depth=depth,
    ).fit(split.X, split.y)
    costs = np.log2(model.get_tree_leaf_counts())  # a row takes all comparisons of a tree
    return by_part(
        costs,
        costs,
        lambda k: model.predict(split.X_test, prediction_type="Probability", ntree_end=k),
    )


def scikit_learn(kind: str, leaves: int | None, share: str | float | None, split: Split) -> Grown:
    """Grow a forest of scikit-learn."""
    ensemble = importlib.import_module("sklearn.ensemble")
    split = split.as_numbers()
    members = int(1.5 * MOST / np.log2(leaves or 64)) + 1
    model = getattr(ensemble, kind)(
        n_estimators=members, max_leaf_nodes=leaves, max_features=share, random_state=0, n_jobs=1
    ).fit(split.X, split.y)

    def costs(rows: Floats) -> Floats:
        paths = (tree.decision_path(rows).sum() for tree in model.estimators_)
        return np.array([path / len(rows) - 1 for path in paths])  # the leaf compares nothing

    every = [tree.predict_proba(split.X_test) for tree in model.estimators_]
    return by_part(costs(split.X), costs(split.X_test), lambda k: np.mean(every[:k], axis=0))


# All of them

OURS = "chain of trees, J votes"


@dataclass(frozen=True)
class Grids:
    """What settings are made of: rates, and sizes of trees, their leaves or depths."""

    rates: tuple[float, ...]
    chains: tuple[int, ...]
    sums: tuple[int, ...]
    leaves: tuple[int, ...]
    samme: tuple[int, ...]
    xgboost: tuple[int, ...]
    symmetric: tuple[int, ...]
    forests: tuple[int | None, ...]


GRIDS = Grids(
    rates=(0.3, 0.5, 1.0),
    chains=(8, 16, 32, 64, 128),
    sums=(2, 3, 5),
    leaves=(4, 8, 31),
    samme=(16, 64),
    xgboost=(3, 4, 5, 6, 8, 10),
    symmetric=(3, 5),
    forests=(None, 64),
)
#: Of more rows, of which there are fewer settings.
LARGE_GRIDS = Grids(
    rates=(0.3, 0.5),
    chains=(16, 64, 256, 1024, 4096),
    sums=(3, 6),
    leaves=(8, 64),
    samme=(64, 256),
    xgboost=(5, 8, 10),
    symmetric=(5, 8),
    forests=(None, 256),
)


def families(grids: Grids) -> dict[str, dict[str, Fit]]:
    """Return the settings of each family, by names: those of others where they are installed."""
    result = own_families(grids)
    for library, of in other_families(grids).items():
        try:
            importlib.import_module(library)
        except ImportError:
            continue
        result |= of
    return result


def own_families(grids: Grids) -> dict[str, dict[str, Fit]]:
    """Return those of this package."""
    rates = grids.rates
    nodes = 2 * max(grids.chains) - 1
    return {
        OURS: by_size("leaves", grids.chains, rates, chain),
        "one tree, J votes": {
            growth: partial(tree, nodes, growth=growth)
            for growth in ("largest_bound", "look_ahead")
        },
        "softmax, J trees a round": by_size("depth", grids.sums, rates, softmax),
        "one against the rest": {
            "trees": partial(one_vs_rest, pb.fit_boosted_tree, {"max_nodes": 63}),
            "stumps": partial(one_vs_rest, pb.fit_adaboost, {"n_estimators": 70}),
            "chains": partial(one_vs_rest, pb.fit_matryoshka, {"shape": (7, 25), "join": "all"}),
        },
        "SAMME of trees": by_size("leaves", grids.samme, rates[1:], samme),
        "forest": of_forests(grids, forest),
    }


def other_families(grids: Grids) -> dict[str, dict[str, dict[str, Fit]]]:
    """Return those of other libraries, by the modules that they need."""
    rates = grids.rates
    return {
        "xgboost": {
            "xgboost multi_output_tree": by_size(
                "depth", grids.xgboost, rates, partial(xgboost, True)
            ),
            "xgboost multi:softprob": by_size(
                "depth", grids.xgboost, rates, partial(xgboost, False)
            ),
        },
        "lightgbm": {"lightgbm multiclass": by_size("leaves", grids.leaves, rates, lightgbm)},
        "catboost": {
            "catboost, symmetric trees": by_size("depth", grids.symmetric, rates, catboost)
        },
        "sklearn": {
            "scikit-learn forest": of_forests(
                grids, partial(scikit_learn, "RandomForestClassifier")
            ),
            "scikit-learn ExtraTrees": of_forests(
                grids, partial(scikit_learn, "ExtraTreesClassifier")
            ),
        },
    }


def by_size(
    unit: str, sizes: Iterable[int], rates: Iterable[float], fit: Callable[..., Grown]
) -> dict[str, Fit]:
    """Return settings of trees of these sizes, and factors of their votes."""
    name = "{} leaves, rate {}" if unit == "leaves" else "depth {}, rate {}"
    return {name.format(size, rate): partial(fit, size, rate) for size in sizes for rate in rates}


def of_forests(grids: Grids, grow: Callable[..., Grown]) -> dict[str, Fit]:
    """Return settings of a forest: trees with and without a bound, of few columns and of all."""
    return {
        f"{leaves or 'all'} leaves, {share or 'all'} columns": partial(grow, leaves, share)
        for leaves in grids.forests
        for share in ("sqrt", None)
    }
