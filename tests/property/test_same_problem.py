"""The same problem put in another way gives the same predictions, for every builder.

Weights in another unit, rows in another order, every row twice in place of weights twice as large,
and a feature recoded by an increasing function. What differs is listed in `DIFFERENCES`, with the
words by which ``docs/how_to/reproducibility.rst`` says so, and is shown to differ.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import pboost as pb

N = 120
r = np.random.default_rng(4)
X = r.normal(size=(N, 4))
SCORE = X[:, 0] - X[:, 1] + X[:, 2] * X[:, 3] + 0.7 * r.normal(size=N)
TARGETS = {
    "two": SCORE > 0,
    "three": np.searchsorted([-1.0, 1.0], SCORE),
    "numbers": SCORE,
    "counts": np.exp(SCORE).round(),
}
WEIGHT = r.uniform(1.0, 2.0, N)
UNITS = (1e-6, 0.1, 1e6)
weak, see = pb.weak, pb.observation
chain, tree = partial(pb.fit_adaboost, n_estimators=4), partial(pb.fit_boosted_tree, max_nodes=4)
sums = partial(pb.fit_gradient_boosting, n_estimators=4)
drawn = {"rng": 0}
#: A fit of each builder, and what it is fitted to.
FITS = {
    "adaboost": (chain, "two"),
    "adaboost of three": (chain, "three"),
    "adaboost symmetric": (partial(chain, votes="symmetric"), "two"),
    "adaboost binned": (partial(chain, weak_learner=weak.stump(search="binned")), "two"),
    "adaboost uniform": (partial(chain, observation=see.uniform()), "two"),
    "adaboost gaussian": (partial(chain, observation=see.gaussian(0.3)), "two"),
    "adaboost sampled": (partial(chain, observation=see.sampled(3), **drawn), "two"),
    "adaboost affine": (partial(chain, weak_learner=weak.affine(n_directions=20)), "two"),
    "adaboost linear": (partial(chain, weak_learner=weak.linear(max_pairs=3)), "two"),
    "adaboost separator": (partial(chain, weak_learner=weak.separator(n_stumps=3)), "two"),
    "adaboost held out": (partial(chain, validation=0.3, **drawn), "two"),
    "adaboost_real": (partial(pb.fit_real_adaboost, n_estimators=4), "two"),
    "adaboost_real of columns": (
        partial(pb.fit_real_adaboost, n_estimators=4, weak_learner=weak.feature()),
        "two",
    ),
    "boosted_tree": (tree, "two"),
    "boosted_tree of three": (tree, "three"),
    "oblique_tree": (partial(pb.fit_oblique_tree, n_stumps=2, max_nodes=2), "two"),
    "topdown_tree": (partial(pb.fit_topdown_tree, max_nodes=4), "two"),
    "matryoshka": (partial(pb.fit_matryoshka, shape=(2, 2)), "two"),
    "matryoshka greedy": (partial(pb.fit_matryoshka, growth="greedy", max_nodes=5), "two"),
    "cart": (pb.fit_cart, "three"),
    "cart of numbers": (partial(pb.fit_cart, task="regression"), "numbers"),
    "pruned_cart": (partial(pb.fit_pruned_cart, cv=4, **drawn), "two"),
    "forest": (partial(pb.fit_random_forest, n_estimators=3, **drawn), "three"),
    "forest of all rows": (
        partial(pb.fit_random_forest, n_estimators=2, bootstrap=False, max_features=None, **drawn),
        "two",
    ),
    "bagging": (
        partial(pb.fit_bagging, pb.fit_boosted_tree, n_estimators=3, max_nodes=3, **drawn),
        "two",
    ),
    **{
        f"stagewise {loss}": (partial(sums, loss=loss, task="classification"), "two")
        for loss in ("log_loss", "exponential", "probit", "hinge", "squared_error")
    },
    "stagewise softmax": (partial(sums, loss="softmax"), "three"),
    "stagewise one tree": (
        partial(sums, loss="softmax", multi_strategy="multi_output_tree"),
        "three",
    ),
    "stagewise exact": (partial(sums, search="exact"), "two"),
    **{
        f"stagewise {loss} of numbers": (partial(sums, loss=loss, task="regression"), "numbers")
        for loss in ("squared_error", "absolute_error", "huber", pb.losses.Quantile(0.5))
    },
    "stagewise poisson": (partial(sums, loss="poisson"), "counts"),
    "stagewise l2_regularization": (partial(sums, l2_regularization=3.0), "two"),
    "stagewise min_child_weight": (partial(sums, min_child_weight=4.0, l2_regularization=0), "two"),
    "stagewise min_split_gain": (partial(sums, min_split_gain=1.0, l2_regularization=0), "two"),
    "stagewise bag": (partial(sums, subsample=0.5, **drawn), "two"),
    "one_vs_rest": (partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=3), "three"),
    "samme": (
        partial(pb.fit_samme, base_learner=partial(pb.fit_cart, max_depth=2), n_estimators=3),
        "three",
    ),
    "probitboost": (partial(pb.fit_probitboost, max_iter=5), "two"),
    "probitboost tol": (partial(pb.fit_probitboost, max_iter=99, tol=0.1), "two"),
    "probit_tree": (partial(pb.fit_probit_tree, max_iter=3), "two"),
    "sbpmt": (partial(pb.fit_sbpmt, n_estimators=2, n_boosting_rounds=2, **drawn), "two"),
    "within": (partial(pb.fit_within_budget, mean_comparisons=3, **drawn), "two"),
    "cart min_samples_leaf": (partial(pb.fit_cart, min_samples_leaf=9), "two"),
}


def scores(model, rows):
    """Return what a model says of rows, as numbers."""
    if getattr(model, "classes", None) is None:
        return pb.predict(model, rows)
    return (
        pb.predict_proba(model, rows)
        if "hinge" not in str(model)
        else pb.decision_function(model, rows)
    )


def units(fit, y):
    first = scores(fit(X, y, sample_weight=WEIGHT), X)
    return [(first, scores(fit(X, y, sample_weight=WEIGHT * unit), X)) for unit in UNITS]


def order(fit, y):
    rows = np.random.default_rng(1).permutation(N)
    first = scores(fit(X, y, sample_weight=WEIGHT), X)
    return [(first, scores(fit(X[rows], y[rows], sample_weight=WEIGHT[rows]), X))]


def copies(fit, y):
    weight = np.random.default_rng(2).integers(1, 4, N).astype(float)
    twice, doubled = np.r_[X, X], 2 * weight
    first = scores(fit(X, y, sample_weight=doubled), X)
    return [(first, scores(fit(twice, np.r_[y, y], sample_weight=np.r_[weight, weight]), X))]


def recoded(fit, y):
    Z = X.copy()
    Z[:, 0] = np.exp(3 * X[:, 0])
    first = scores(fit(X, y, sample_weight=WEIGHT), X)
    return [(first, scores(fit(Z, y, sample_weight=WEIGHT), Z))]


RELATIONS = {"units": units, "order": order, "copies": copies, "recoded": recoded}
#: Words of the page that say why predictions differ, and of which fits they do.
DRAWN = "the order of the rows, unless rows are drawn at random. Bootstrap samples, folds"
COUNTED = (
    "parameters that count rows: ``min_samples_leaf``, ``min_samples_split``, "
    "``categorical_smoothing``"
)
MULTIPLES = (
    '``l2_regularization="auto"`` and ``leaf_shrinkage`` in gradient boosting. Their unit is the '
    "greatest common divisor of the weights"
)
IN_UNIT = (
    "``l2_regularization``, ``min_child_weight`` and ``min_split_gain`` are in the unit of the "
    "weights"
)
BETWEEN = "a new row between these values can therefore take the other branch"
VALUES = "and gaussian observations depend on the values of the features"
HASHED = "``subsample`` in gradient boosting draws other rows"
NOISE = "``pb.weak.linear``, in which the search depends on the number of rows at a node"
DIFFERENCES = {
    ("units", IN_UNIT): (
        "stagewise l2_regularization",
        "stagewise min_child_weight",
        "stagewise min_split_gain",
        "probitboost tol",
    ),
    ("order", DRAWN): (
        "adaboost held out",
        "pruned_cart",
        "forest",
        "bagging",
        "sbpmt",
        "within",
    ),
    ("copies", DRAWN): ("pruned_cart", "forest", "bagging", "sbpmt", "within"),
    ("copies", COUNTED): (
        "adaboost held out",
        "probit_tree",
        "cart min_samples_leaf",
    ),
    ("copies", MULTIPLES): (
        "stagewise log_loss",
        "stagewise bag",
        "stagewise exponential",
        "stagewise probit",
        "stagewise squared_error",
        "stagewise softmax",
        "stagewise one tree",
        "stagewise squared_error of numbers",
        "stagewise l2_regularization",
        "stagewise min_child_weight",
        "stagewise min_split_gain",
    ),
    ("copies", NOISE): ("adaboost linear",),
    ("recoded", BETWEEN): ("forest", "bagging"),
    ("recoded", HASHED): (
        "stagewise log_loss",
        "stagewise squared_error",
        "stagewise softmax",
        "stagewise squared_error of numbers",
        "stagewise l2_regularization",
        "stagewise min_child_weight",
        "stagewise min_split_gain",
        "stagewise bag",
    ),
    ("recoded", VALUES): (
        "adaboost gaussian",
        "adaboost affine",
        "adaboost linear",
        "adaboost_real of columns",
        "probitboost",
        "probitboost tol",
        "probit_tree",
        "sbpmt",
    ),
}
PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "reproducibility.rst"


@pytest.mark.full_for("within-units")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", FITS)
def test_the_same_problem_gives_the_same_predictions(name, relation):
    fit, target = FITS[name]
    pairs = RELATIONS[relation](fit, TARGETS[target])
    same = all(np.allclose(item, other, rtol=1e-6, atol=1e-9) for item, other in pairs)
    listed = any(name in names for (of, _), names in DIFFERENCES.items() if of == relation)
    assert same != listed


@pytest.mark.skipif(not PAGE.exists(), reason="no pages beside tests/")
def test_every_difference_is_on_the_page():
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    for _, words in DIFFERENCES:
        assert words in text


def test_every_builder_is_fitted():
    """Also within others, by the functions that they are made of."""
    built = {builder_of(fit) for fit, _ in FITS.values()}
    names = {name for name in pb.__all__ if name.startswith("fit_")}
    assert names - built == set()


def builder_of(fit):
    """Return the name of the builder of a fit."""
    while isinstance(fit, partial):
        fit = fit.func
    return fit.__name__
