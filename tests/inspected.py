"""Models of every builder, for the tests of what is inspected."""

from __future__ import annotations

from functools import partial

import numpy as np
from shallow import PLAIN

import pboost as pb

RNG = np.random.default_rng(3)
#: The third column is constant, so that no model reads it.
X = RNG.normal(size=(160, 5)) * [1.0, 5.0, 0.0, 0.1, 1.0]
SCORE = X[:, 0] + 0.1 * X[:, 1] * X[:, 3] + np.sin(X[:, 4]) + 0.5 * RNG.normal(size=160)
TWO, THREE = SCORE > 0.2, np.digitize(SCORE, [-0.5, 0.5])
WORDS = np.array(["ash", "elm", "oak"])[THREE]
ADATREE = pb.observation.adatree2()
SHALLOW = {"max_depth": 2, "min_samples_leaf": 20}
CHAIN = partial(pb.fit_adaboost, n_estimators=6)

#: Builders whose models are graphs, by names; each is given X.
GRAPHS = {
    "chain": lambda X: CHAIN(X, TWO),
    "symmetric": lambda X: CHAIN(X, TWO, votes="symmetric", learning_rate=0.5),
    "tree": lambda X: pb.fit_boosted_tree(X, TWO, max_nodes=4),
    "soft tree": lambda X: pb.fit_boosted_tree(X, TWO, max_nodes=6, observation=ADATREE),
    "soft chain": lambda X: CHAIN(X, TWO, observation=pb.observation.flip(0.1)),
    "gaussian": lambda X: CHAIN(X, TWO, observation=pb.observation.gaussian(0.1)),
    "matryoshka": lambda X: pb.fit_matryoshka(X, TWO, shape=(3, 3), collect="additive"),
    "soft matryoshka": lambda X: pb.fit_matryoshka(
        X, TWO, shape=(2, 3), collect="additive", observation=pb.observation.half()
    ),
    "topdown": lambda X: pb.fit_topdown_tree(X, TWO, max_nodes=6, impurity="entropy"),
    "real": lambda X: pb.fit_real_adaboost(X, TWO, n_estimators=6),
    "affine": lambda X: pb.fit_boosted_tree(
        X, TWO, max_nodes=5, weak_learner=pb.weak.affine(seed=0)
    ),
    "linear": lambda X: CHAIN(X, TWO, weak_learner=pb.weak.linear(seed=0)),
    "separators": lambda X: pb.fit_oblique_tree(X, TWO, max_nodes=3, n_stumps=4),
}
#: Those whose certificates are not those of the votes at the end.
COLLECTED = {
    "by sign": lambda X: pb.fit_matryoshka(X, TWO, shape=(3, 3), collect="sign"),
    "sampled": lambda X: CHAIN(X, TWO, observation=pb.observation.sampled(5), rng=0),
}
OTHERS = {
    "columns": lambda X: pb.fit_real_adaboost(
        X, TWO, n_estimators=9, weak_learner=pb.weak.feature()
    ),
    "cart": lambda X: pb.fit_cart(X, TWO, **SHALLOW),
    "cart, three": lambda X: pb.fit_cart(X, WORDS, criterion="entropy", **SHALLOW),
    "cart, numbers": lambda X: pb.fit_cart(X, SCORE, task="regression", **SHALLOW),
    "pruned": lambda X: pb.fit_pruned_cart(X, TWO, cv=3, rng=0),
    "forest": lambda X: pb.fit_random_forest(
        X, TWO, n_estimators=5, max_features=None, rng=0, **SHALLOW
    ),
    "forest, three": lambda X: pb.fit_random_forest(X, WORDS, n_estimators=5, rng=0),
    "forest, numbers": lambda X: pb.fit_random_forest(
        X, SCORE, task="regression", n_estimators=5, rng=0
    ),
    "stagewise": lambda X: pb.fit_gradient_boosting(
        X, TWO, loss="log_loss", n_estimators=5, **SHALLOW, **PLAIN
    ),
    "stagewise, numbers": lambda X: pb.fit_gradient_boosting(
        X, SCORE, loss="squared_error", n_estimators=5, **SHALLOW, **PLAIN
    ),
    "probit": lambda X: pb.fit_probitboost(X, TWO, max_iter=9),
    "probit tree": lambda X: pb.fit_probit_tree(
        X, TWO, max_depth=2, max_iter=9, min_samples_leaf=20
    ),
    "probit tree, three": lambda X: pb.fit_probit_tree(
        X, WORDS, max_depth=1, max_iter=9, min_samples_leaf=20
    ),
    "sbpmt": lambda X: pb.fit_sbpmt(
        X,
        TWO,
        n_estimators=3,
        n_boosting_rounds=2,
        max_iter=5,
        min_samples_leaf=20,
        voting="hard",
        rng=0,
    ),
    "sbpmt, three": lambda X: pb.fit_sbpmt(
        X,
        WORDS,
        n_estimators=3,
        n_boosting_rounds=2,
        max_iter=5,
        min_samples_leaf=20,
        voting="hard",
        one_vs_rest="leaf",
        rng=0,
    ),
    "sbpmt, mean": lambda X: pb.fit_sbpmt(
        X,
        WORDS,
        n_estimators=3,
        n_boosting_rounds=2,
        max_iter=5,
        min_samples_leaf=20,
        one_vs_rest="tree",
        voting="soft",
        rng=0,
    ),
    "rest": lambda X: pb.fit_one_vs_rest(CHAIN, X, WORDS),
    "rest of pairs": lambda X: pb.fit_one_vs_rest(
        partial(pb.fit_samme, base_learner=partial(pb.fit_cart, max_depth=1), n_estimators=3),
        X,
        WORDS,
    ),
    "samme": lambda X: pb.fit_samme(
        X, WORDS, base_learner=partial(pb.fit_cart, max_depth=2), n_estimators=3
    ),
    "samme of rest": lambda X: pb.fit_samme(
        X, WORDS, base_learner=partial(pb.fit_one_vs_rest, CHAIN), n_estimators=2
    ),
    "bagging": lambda X: pb.fit_bagging(
        pb.fit_cart, X, WORDS, n_estimators=3, voting="hard", rng=0, **SHALLOW
    ),
    "bagging, mean": lambda X: pb.fit_bagging(
        pb.fit_cart, X, WORDS, n_estimators=3, rng=0, **SHALLOW
    ),
    "bagging of chains": lambda X: pb.fit_bagging(CHAIN, X, TWO, n_estimators=3, rng=0),
    "bagging of probits": lambda X: pb.fit_bagging(
        pb.fit_probitboost, X, TWO, n_estimators=3, rng=0, max_iter=5
    ),
    "bagging of numbers": lambda X: pb.fit_bagging(
        pb.fit_cart, X, SCORE, task="regression", n_estimators=3, rng=0, **SHALLOW
    ),
}
EVERY = {**GRAPHS, **COLLECTED, **OTHERS}
#: Those that draw columns or directions, or in which columns tie.
DRAW = {"affine", "linear", "forest, three", "forest, numbers", "sbpmt, mean"}
_MADE = {}


def made(kind):
    """Return the model of a kind for X; it is fitted once."""
    if kind not in _MADE:
        _MADE[kind] = EVERY[kind](X)
    return _MADE[kind]
