"""The part of peer_options.py for scikit-learn's trees, forests, bagging and AdaBoost."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import pboost as pb

#: Option here, library, option there, what is compared, the two outcomes, that here without the
#: option, and why the two are not the same.
Row = tuple[str, str, str, str, Any, Any, Any, str]
X = np.arange(60.0)[:, None]
#: Three classes in stretches, numbers, and two classes of which one is rare.
THREE = np.repeat([1, 2, 1, 0, 1, 2, 0], [10, 4, 5, 8, 16, 7, 10])
NUMBERS = np.round(8 * np.sin(X[:, 0] / 9) + X[:, 0] / 5, 2)
RARE = np.where(X[:, 0] > 53, 1, 0)
COLUMNS = np.random.default_rng(1).normal(size=(150, 4)).round(2)
TWO = (COLUMNS @ [1.0, -1.2, 0.8, 0.9] > 0).astype(int)
#: What both have been given beside the option.
SMALL = {"max_depth": 2}
#: Options of single trees, by their names in pboost and in scikit-learn.
OF_TREES: tuple[tuple[str, Any, str, Any], ...] = (
    ("max_depth", 4, "max_depth", 4),
    ("max_leaf_nodes", 3, "max_leaf_nodes", 3),
    ("min_samples_leaf", 10, "min_samples_leaf", 10),
    ("min_samples_split", 30, "min_samples_split", 30),
    ("sample_weight", 1.0 + THREE, "sample_weight", 1.0 + THREE),
)
OF_CLASSES: tuple[tuple[str, Any, str, Any], ...] = (
    ("criterion", "entropy", "criterion", "entropy"),
    ("sample_weight", pb.data.balanced_weights(THREE), "class_weight", "balanced"),
)


def rows() -> Iterator[Row]:
    """Yield the rows of the table."""
    for part in PARTS:
        yield from part()


def classes() -> Iterator[Row]:
    """Yield the options of trees of classes."""
    for option in (*OF_TREES, *OF_CLASSES):
        yield _of_classes(*option)


def numbers() -> Iterator[Row]:
    """Yield the options of trees of numbers."""
    for option in OF_TREES:
        yield _of_numbers(*option)


def _named(name: str, value: Any) -> str:
    return name if isinstance(value, np.ndarray) else f"{name}={value!r}".replace("'", '"')


def _fitted(kind: Any, y: np.ndarray, theirs: str, value: Any) -> Any:
    """Return a tree of scikit-learn."""
    options = {**SMALL, theirs: value}
    weight = options.pop("sample_weight", None)
    return kind(random_state=0, **options).fit(X, y, sample_weight=weight)


def _of_classes(name: str, value: Any, theirs: str, there: Any) -> Row:
    from sklearn.tree import DecisionTreeClassifier

    here, without = (
        pb.predict_proba(pb.fit_cart(X, THREE, **options), X)
        for options in ({**SMALL, name: value}, SMALL)
    )
    model = _fitted(DecisionTreeClassifier, THREE, theirs, there)
    names = _named(name, value), "DecisionTreeClassifier", _named(theirs, there)
    return (*names, "probabilities", here, model.predict_proba(X), without, "")


def _of_numbers(name: str, value: Any, theirs: str, there: Any) -> Row:
    from sklearn.tree import DecisionTreeRegressor

    here, without = (
        pb.predict(pb.fit_cart(X, NUMBERS, task="regression", **options), X)
        for options in ({**SMALL, name: value}, SMALL)
    )
    model = _fitted(DecisionTreeRegressor, NUMBERS, theirs, there)
    names = _named(name, value), "DecisionTreeRegressor", _named(theirs, there)
    return (*names, "predictions", here, model.predict(X), without, "")


def pruned() -> Iterator[Row]:
    """The cost of a leaf is counted in rows here, in shares of the rows there."""
    from sklearn.tree import DecisionTreeClassifier

    tree = pb.fit_cart(X, THREE)
    model = DecisionTreeClassifier(random_state=0, ccp_alpha=0.15).fit(X, THREE)
    leaves = pb.prune(tree, 0.15 * len(X)).n_leaves
    names = "prune, ccp_alpha=0.15 * n", "DecisionTreeClassifier", "ccp_alpha=0.15"
    yield (*names, "leaves", leaves, model.get_n_leaves(), tree.n_leaves, "")


def forest() -> Iterator[Row]:
    """Compare forests by what does not depend on random numbers."""
    from sklearn.ensemble import RandomForestClassifier

    def ours(**options: Any) -> Any:
        return pb.fit_random_forest(COLUMNS, TWO, **{"n_estimators": 40, "rng": 0, **options})

    def theirs(**options: Any) -> Any:
        options = {"n_estimators": 40, "random_state": 0, **options}
        return RandomForestClassifier(**options).fit(COLUMNS, TWO)

    def roots(trees: Any) -> int:
        return len({int(tree.feature[0]) for tree in trees})

    name = "RandomForestClassifier"
    sizes = len(ours(n_estimators=7)), len(theirs(n_estimators=7).estimators_), len(ours())
    yield ("n_estimators=7", name, "n_estimators=7", "trees", *sizes, "")
    all_rows = float(ours()[0].weight[0])
    for bag in (0.3, 40):
        here = float(ours(max_samples=bag)[0].weight[0])
        there = theirs(max_samples=bag).estimators_[0].tree_.weighted_n_node_samples[0]
        names = f"max_samples={bag}", name, f"max_samples={bag}", "rows drawn for a tree"
        yield (*names, here, float(there), all_rows, "")
    here = float(ours(bootstrap=False)[0].n_rows[0])
    there = float(theirs(bootstrap=False).estimators_[0].tree_.n_node_samples[0])
    names = "bootstrap=False", name, "bootstrap=False", "different rows of a tree"
    yield (*names, here, there, float(ours()[0].n_rows[0]), "")
    here, without = (roots(ours(max_depth=1, bootstrap=False, max_features=k)) for k in (1, None))
    model = theirs(max_depth=1, bootstrap=False, max_features=1)
    there = roots(tree.tree_ for tree in model.estimators_)
    names = "max_features=1", name, "max_features=1", "features at the roots of 40 trees"
    yield (*names, here, there, without, "")


def bagging() -> Iterator[Row]:
    """Compare bags by their sizes."""
    from sklearn.ensemble import BaggingClassifier

    peer = BaggingClassifier(n_estimators=4, max_samples=0.2, random_state=0).fit(COLUMNS, TWO)
    fit = partial(pb.fit_bagging, pb.fit_cart, COLUMNS, TWO, rng=0)
    model, usual = fit(n_estimators=4, max_samples=0.2), fit()
    name = "BaggingClassifier"
    sizes = len(model), len(peer.estimators_), len(usual)
    yield ("n_estimators=4", name, "n_estimators=4", "members", *sizes, "")
    drawn = (float(of.models[0].weight[0]) for of in (model, usual))
    here, without = drawn
    there = float(len(peer.estimators_samples_[0]))
    yield ("max_samples=0.2", name, "max_samples=0.2", "rows of a member", here, there, without, "")


def adaboost() -> Iterator[Row]:
    """Compare SAMME with AdaBoostClassifier by the votes of its members."""
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    base = partial(pb.fit_cart, max_depth=1)
    for rounds, rate in ((4, 1.0), (6, 0.5)):
        model = pb.fit_samme(
            COLUMNS, TWO, base_learner=base, n_estimators=rounds, learning_rate=rate
        )
        usual = pb.fit_samme(COLUMNS, TWO, base_learner=base, n_estimators=6)
        peer = AdaBoostClassifier(
            DecisionTreeClassifier(max_depth=1),
            n_estimators=rounds,
            learning_rate=rate,
            random_state=0,
        ).fit(COLUMNS, TWO)
        ours, theirs = (
            (f"learning_rate={rate}", f"learning_rate={rate}")
            if rate < 1
            else (f"n_estimators={rounds}", f"n_estimators={rounds}")
        )
        names = ours, "AdaBoostClassifier", theirs, "votes of the members"
        yield (*names, model.alpha, peer.estimator_weights_, usual.alpha, "")


def stump() -> Iterator[Row]:
    """At the root the share of the weight at the node is that of all weight."""
    from sklearn.tree import DecisionTreeClassifier

    def threshold(**options: Any) -> float:
        weak = pb.weak.stump(criterion="gini", **options)
        return float(pb.fit_adaboost(X, RARE, n_estimators=1, weak_learner=weak).threshold[0])

    peer = DecisionTreeClassifier(max_depth=1, min_weight_fraction_leaf=0.3).fit(X, RARE)
    names = (
        "weak.stump, min_weight_fraction=0.3",
        "DecisionTreeClassifier",
        "min_weight_fraction_leaf=0.3",
    )
    there = float(peer.tree_.threshold[0])
    yield (*names, "threshold", threshold(min_weight_fraction=0.3), there, threshold(), "")


PARTS = (classes, numbers, pruned, forest, bagging, adaboost, stump)
