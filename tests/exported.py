"""Models that are sums of trees, of every kind, and rows that meet their thresholds."""

from __future__ import annotations

from functools import partial

import numpy as np

import pboost as pb

RNG = np.random.default_rng(5)
N, D = 150, 4
#: Columns 2 and 3 are categories, with 6 and 70 levels; values lie on a grid, and many are missing.
X = (
    np.column_stack(
        [
            np.round(RNG.normal(size=N), 1),
            np.round(RNG.normal(size=N) * 1e3),
            RNG.integers(0, 6, N),
            RNG.integers(0, 70, N),
        ]
    )
    + 0.0
)
X[:, 2:][RNG.random((N, 2)) < 0.1] = np.nan
X[RNG.random(N) < 0.15, 0] = np.nan
SCORE = (
    0.4 * np.nan_to_num(X[:, 0], nan=0.5)
    + 4e-4 * X[:, 1]
    + 2.0 * np.isin(X[:, 2], [1, 4])
    + np.nan_to_num(X[:, 3]) % 3
    + 0.3 * RNG.normal(size=N)
    - 1.7
)
TWO, THREE = SCORE > 0.2, np.array(["ash", "elm", "oak"])[np.digitize(SCORE, [-0.5, 0.8])]
COUNT = np.exp(SCORE).round()
#: The first two columns, where none is missing.
PLAIN = np.nan_to_num(X[:, :2])
ADATREE = pb.observation.adatree2()
LEVELS = {"categorical_features": [2, 3]}
SMALL = {"max_depth": 3, "min_samples_leaf": 4}

#: Builders of models of X.
WITH_HOLES = {
    "chain": lambda: pb.fit_adaboost(X, TWO, n_estimators=12, **LEVELS),
    "tree": lambda: pb.fit_boosted_tree(X, TWO, max_nodes=9, **LEVELS),
    "matryoshka": lambda: pb.fit_matryoshka(X, TWO, shape=(3, 3), join="all", **LEVELS),
    "matryoshka, soft": lambda: pb.fit_matryoshka(
        X, TWO, shape=(3, 3), observation=ADATREE, **LEVELS
    ),
    "votes": lambda: pb.fit_boosted_tree(X, THREE, max_nodes=9, **LEVELS),
    "chain of votes": lambda: pb.fit_adaboost(X, THREE, n_estimators=6, **LEVELS),
    "cart": lambda: pb.fit_cart(X, TWO, **SMALL, **LEVELS),
    "cart, three": lambda: pb.fit_cart(X, THREE, **SMALL, **LEVELS),
    "cart, numbers": lambda: pb.fit_cart(X, SCORE, task="regression", **SMALL, **LEVELS),
    "pruned": lambda: pb.fit_pruned_cart(X, TWO, cv=3, rng=0, **LEVELS),
    "forest": lambda: pb.fit_random_forest(X, TWO, n_estimators=3, rng=0, **SMALL, **LEVELS),
    "forest, three": lambda: pb.fit_random_forest(
        X, THREE, n_estimators=3, rng=0, **SMALL, **LEVELS
    ),
    "forest, numbers": lambda: pb.fit_random_forest(
        X, SCORE, task="regression", n_estimators=3, rng=0, **SMALL, **LEVELS
    ),
    "log_loss": lambda: pb.fit_gradient_boosting(
        X, TWO, loss="log_loss", n_estimators=4, **SMALL, **LEVELS
    ),
    "probit": lambda: pb.fit_gradient_boosting(
        X, TWO, loss="probit", n_estimators=4, **SMALL, **LEVELS
    ),
    "squared_error": lambda: pb.fit_gradient_boosting(
        X, TWO, loss="squared_error", n_estimators=4, **SMALL, **LEVELS
    ),
    "hinge": lambda: pb.fit_gradient_boosting(
        X, TWO, loss="hinge", n_estimators=4, **SMALL, **LEVELS
    ),
    "poisson": lambda: pb.fit_gradient_boosting(
        X, COUNT, loss="poisson", n_estimators=4, **SMALL, **LEVELS
    ),
    "softmax": lambda: pb.fit_gradient_boosting(
        X, THREE, loss="softmax", n_estimators=3, **SMALL, **LEVELS
    ),
    "rest of chains": lambda: pb.fit_one_vs_rest(
        pb.fit_adaboost, X, THREE, n_estimators=5, **LEVELS
    ),
    "rest of forests": lambda: pb.fit_one_vs_rest(
        pb.fit_random_forest, X, THREE, n_estimators=2, rng=0, **SMALL, **LEVELS
    ),
    "rest of sums": lambda: pb.fit_one_vs_rest(
        pb.fit_gradient_boosting, X, THREE, loss="log_loss", n_estimators=2, **SMALL, **LEVELS
    ),
    "samme": lambda: pb.fit_samme(
        X, THREE, base_learner=partial(pb.fit_cart, max_depth=2, **LEVELS), n_estimators=4
    ),
    "samme of trees": lambda: pb.fit_samme(
        X, THREE, base_learner=partial(pb.fit_boosted_tree, max_nodes=4, **LEVELS), n_estimators=3
    ),
    "bags of trees": lambda: _bags(partial(pb.fit_cart, **SMALL), TWO, "soft"),
    "bags of answers": lambda: _bags(partial(pb.fit_cart, **SMALL), THREE, "hard"),
    "bags of forests": lambda: _bags(
        partial(pb.fit_random_forest, n_estimators=2, **SMALL), THREE, "soft"
    ),
    "bags of votes": lambda: _bags(partial(pb.fit_boosted_tree, max_nodes=5), THREE, "soft"),
}


def _bags(fit, y, vote):
    return pb.fit_bagging(fit, X, y, n_estimators=3, rng=0, voting=vote, **LEVELS)


#: Builders of models of PLAIN.
OF_NUMBERS = {
    "symmetric": lambda: pb.fit_adaboost(PLAIN, TWO, n_estimators=9, votes="symmetric"),
    "soft tree": lambda: pb.fit_boosted_tree(PLAIN, TWO, max_nodes=9, observation=ADATREE),
    "gaussian": lambda: pb.fit_boosted_tree(
        PLAIN, TWO, max_nodes=5, observation=pb.observation.gaussian([0.1, 10.0])
    ),
    "one tree a round": lambda: pb.fit_gradient_boosting(
        PLAIN, THREE, loss="softmax", n_estimators=3, multi_strategy="multi_output_tree", **SMALL
    ),
    "real": lambda: pb.fit_real_adaboost(PLAIN, TWO, n_estimators=6),
    "bags of sums": lambda: pb.fit_bagging(
        partial(pb.fit_gradient_boosting, loss="squared_error", n_estimators=3, **SMALL),
        PLAIN,
        SCORE,
        task="regression",
        n_estimators=3,
        rng=0,
    ),
    "nothing to learn": lambda: pb.fit_boosted_tree(np.ones((9, 2)), [0, 1, 1] * 3, max_nodes=3),
    "nothing of three": lambda: pb.fit_boosted_tree(np.ones((9, 2)), [0, 1, 2] * 3, max_nodes=3),
}
EVERY = {**WITH_HOLES, **OF_NUMBERS}
#: Those that are made of other models.
OF_MODELS = {kind for kind in EVERY if kind.startswith(("rest of", "samme", "bags of"))}
_MADE = {}


def made(kind):
    """Return the model of a kind; it is fitted once."""
    if kind not in _MADE:
        _MADE[kind] = EVERY[kind]()
    return _MADE[kind]


def rows_for(model, n=200, seed=0):
    """Return rows (n, d) as the trees read them, many values at thresholds, missing, or levels."""
    rng = np.random.default_rng(seed)
    trees = pb.models.as_tree_ensemble(model, max_nodes=10**6)
    known = {j: [0.0, -1e9, 1e9] for j in range(model.n_features)}
    for j, cut, number in zip(trees.feature, trees.threshold, trees.category_set, strict=True):
        if j >= 0 and number < 0 and abs(cut) < 1e100:
            known[int(j)] += [cut, np.nextafter(cut, -np.inf), np.nextafter(cut, np.inf)]
    actual = np.column_stack([rng.choice(known[j], n) for j in range(model.n_features)])
    if model.table is not None:
        for j, size in enumerate(model.table.n_levels.tolist()):
            if size:
                actual[:, j] = rng.integers(0, size, n)
    if trees.missing is not None:
        actual[rng.random(actual.shape) < 0.2] = np.nan
    return actual


def decoded(model, rows):
    """Return a frame, or matrix, whose level numbers are these."""
    if model.table is None:
        return rows
    actual = rows.copy()
    for j, levels in enumerate(model.table.categories):
        if levels is not None:
            is_known = ~np.isnan(rows[:, j])
            actual[is_known, j] = levels[rows[is_known, j].astype(int)]
    return actual
