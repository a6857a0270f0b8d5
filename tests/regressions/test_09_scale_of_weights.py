"""The unit of the weights. `fit_pruned_cart` took square roots of products of two prices, which
overflow: another tree at weights of 1e200. All weights times a power of two give every model bit
for bit, all times another factor the same structure and numbers equal but for rounding; what is in
the unit of the weights (`Tree.weight`, prices of leaves) is multiplied.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest

import pboost as pb

POWERS = (2.0**-960, 2.0**-500, 2.0, 2.0**960)
FACTORS = (1e-290, 1e290)
#: What is in the unit of the weights, of models that are not normalised inside.
IN_UNIT = {"weight", "ccp_alpha", "cost_complexity_pruning_path.risk"}

r = np.random.default_rng(7)
N = 60
X = r.normal(size=(N, 4))
SCORE = 2 * X[:, 0] - X[:, 1] + X[:, 1] * X[:, 2] + 0.5 * r.normal(size=N)
TWO = SCORE > 0
THREE = np.searchsorted([-1.0, 1.0], SCORE)
WEIGHTS = {
    "uniform": np.ones(N),
    "counts": r.integers(0, 4, N).astype(float),
    "any": r.random(N) + 0.1,
}


def train_oracle(X, y, weight, rng):
    """A stump at the mean of the column of the largest correlation."""
    middle = np.average(X, axis=0, weights=weight)
    slope = (weight * y) @ (X - middle)
    best = int(np.argmax(np.abs(slope)))
    sign = 1 if slope[best] > 0 else -1
    return lambda rows, rng: np.where(rows[:, best] > middle[best], sign, -sign)


def generic(w):
    state = pb.models.GenericGreedy(TWO, w)
    for j in range(3):
        state.step(X[:, j])
    state.step(1.0, rows=X[:, 3] > 0)
    return {"weight_": state.weight, "score": state.score, "bound": np.array(state.bound)}


def two(fit, **options):
    return lambda w: fit(X, TWO, sample_weight=w, **options)


def three(fit, **options):
    return lambda w: fit(X, THREE, sample_weight=w, **options)


def number(fit, **options):
    return lambda w: fit(X, SCORE, sample_weight=w, **options)


def stagewise(loss):
    options = {"loss": loss, "n_estimators": 4, "subsample": 0.7, "validation": 0.3, "rng": 0}
    return (number if loss == "squared_error" else two)(pb.fit_gradient_boosting, **options)


see, weak, regression = pb.observation, pb.weak, {"task": "regression"}
tree, chain = partial(two, pb.fit_boosted_tree), partial(two, pb.fit_adaboost, n_estimators=5)
FITS = {
    "adaboost": chain(),
    "adaboost symmetric": chain(votes="symmetric"),
    "adaboost binned": chain(weak_learner=weak.stump(search="binned", max_bins=20)),
    "adaboost early": chain(validation=0.3, n_iter_no_change=3, rng=0),
    "adaboost flip": chain(observation=see.flip(0.1)),
    "adaboost gaussian": chain(observation=see.gaussian(0.3)),
    "adaboost sampled": chain(observation=see.sampled(2), rng=0),
    "adaboost oracle": chain(weak_learner=weak.oracle(train_oracle), rng=0),
    "adaboost linear": chain(weak_learner=weak.linear()),
    "adaboost real": two(pb.fit_real_adaboost, n_estimators=6),
    **{f"tree {g}": tree(max_nodes=9, growth=g) for g in ("largest_bound", "look_ahead")},
    "tree largest-error": tree(max_nodes=9, growth="largest_error"),
    "tree binned": tree(max_nodes=9, weak_learner=weak.stump(search="binned", max_bins=20)),
    "tree early": tree(max_nodes=12, validation=0.3, n_iter_no_change=3, rng=0),
    "tree affine": tree(max_nodes=5, weak_learner=weak.affine(n_directions=10)),
    "tree linear": tree(max_nodes=3, weak_learner=weak.linear()),
    "tree separator": tree(max_nodes=3, weak_learner=weak.separator(n_stumps=3)),
    "tree oracle": tree(max_nodes=3, weak_learner=weak.oracle(train_oracle), rng=0),
    "tree flip": tree(max_nodes=6, observation=see.flip(0.1), growth="look_ahead"),
    "tree gaussian": tree(max_nodes=6, observation=see.gaussian(0.3)),
    "tree uniform": tree(max_nodes=6, observation=see.uniform()),
    "tree adatree2": tree(max_nodes=6, observation=see.adatree2()),
    "oblique": two(pb.fit_oblique_tree, max_nodes=3, n_stumps=3),
    "topdown": two(pb.fit_topdown_tree, max_nodes=8),
    "topdown own": two(pb.fit_topdown_tree, max_nodes=8, impurity=lambda z: 4 * z * (1 - z)),
    "matryoshka": two(pb.fit_matryoshka, shape=(3, 3)),
    "matryoshka sign": two(pb.fit_matryoshka, shape=(3, 3), collect="sign"),
    "matryoshka greedy": two(pb.fit_matryoshka, growth="greedy", max_nodes=9),
    "generic": generic,
    "cart": two(pb.fit_cart),
    "cart best-first": three(pb.fit_cart, max_leaf_nodes=7, criterion="entropy"),
    "cart binned": two(pb.fit_cart, search="binned", max_bins=20),
    "cart squares": number(pb.fit_cart, max_leaf_nodes=9, **regression),
    "pruned": two(pb.fit_pruned_cart, cv=4, rng=0),
    "pruned 1se": three(pb.fit_pruned_cart, cv=4, rule="1se", rng=0),
    "pruned squares": number(pb.fit_pruned_cart, cv=4, rng=0, **regression),
    "forest": three(pb.fit_random_forest, n_estimators=3, rng=0),
    "forest squares": number(pb.fit_random_forest, n_estimators=3, rng=0, **regression),
    "bagging": two(
        partial(pb.fit_bagging, pb.fit_boosted_tree), n_estimators=3, max_nodes=4, rng=0
    ),
    "bagging squares": number(
        partial(pb.fit_bagging, pb.fit_cart), n_estimators=3, rng=0, **regression
    ),
    "one vs rest": three(partial(pb.fit_one_vs_rest, pb.fit_adaboost), n_estimators=3),
    "samme": three(pb.fit_samme, base_learner=partial(pb.fit_cart, max_depth=2), n_estimators=3),
    "probitboost": two(pb.fit_probitboost, max_iter=10),
    "probit tree": two(pb.fit_probit_tree),
    "probit tree of three": three(pb.fit_probit_tree),
    "sbpmt": two(pb.fit_sbpmt, n_estimators=2, n_boosting_rounds=2, rng=0),
    "sbpmt of three": three(pb.fit_sbpmt, n_estimators=2, n_boosting_rounds=2, rng=0),
    **{
        f"stagewise {loss}": stagewise(loss)
        for loss in ("squared_error", "log_loss", "exponential")
    },
    "stagewise hinge": stagewise("hinge"),
}

CHAIN = pb.fit_adaboost(X[:20], TWO[:20], n_estimators=5)
THREES = pb.fit_random_forest(X[:20], THREE[:20], n_estimators=3, rng=0)
TREE = pb.fit_boosted_tree(X, TWO, max_nodes=9)
SOFT = pb.fit_boosted_tree(X, TWO, max_nodes=6, observation=see.flip(0.1))
CART, SQUARES = pb.fit_cart(X, TWO), pb.fit_cart(X, SCORE, task="regression")


def of_fold(w):
    fit = partial(pb.fit_cart, task="regression", max_depth=2)
    return pb.cross_validate(fit, X, SCORE, task="regression", cv=3, rng=0, sample_weight=w).error


def calibrated(model, y, method):
    """Weights of sum 1 made all probabilities near 1/2, since Platt's targets count rows."""
    return lambda w: pb.predict_proba(
        pb.calibrate(model, X[20:], y[20:], method=method, sample_weight=w[20:]), X
    )


MEASURES = {
    **{f"calibrate {method}": calibrated(CHAIN, TWO, method) for method in ("platt", "isotonic")},
    "calibrate three": calibrated(THREES, THREE, "platt"),
    "certificate": lambda w: np.array(pb.certificate(TREE, X, TWO, sample_weight=w)),
    "certificate soft": lambda w: np.array(pb.certificate(SOFT, X, TWO, sample_weight=w)),
    "margin error": lambda w: pb.inspection.margin_error(TREE, X, TWO, [0.0, 0.3], sample_weight=w),
    "margin bound": lambda w: np.array(
        pb.inspection.margin_bound(TREE, X, TWO, 0.1, sample_weight=w)
    ),
    "permutation": lambda w: pb.inspection.permutation_importance(
        TREE, X, TWO, sample_weight=w, rng=0
    ),
    "permutation squares": lambda w: pb.inspection.permutation_importance(
        SQUARES, X, SCORE, sample_weight=w, rng=0
    ),
    "cross-validation": of_fold,
    "cost_complexity_pruning_path": lambda w: pb.models.cost_complexity_pruning_path(
        CART, X, TWO, sample_weight=w
    ),
    "cost_complexity_pruning_path squares": lambda w: pb.models.cost_complexity_pruning_path(
        SQUARES, X, SCORE, sample_weight=w
    ),
}


def arrays(value, name=""):
    """Yield the numbers of a model, of its members and records, each with its name."""
    if isinstance(value, np.ndarray | float):
        yield name, np.asarray(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from arrays(item, key)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from arrays(item, name)
    elif isinstance(value, pb.models.PruningPath):
        yield "ccp_alpha", value.ccp_alpha
        yield "cost_complexity_pruning_path.risk", value.risk
        yield "n_leaves", value.n_leaves
    elif dataclasses.is_dataclass(value):
        for f in dataclasses.fields(value):
            if f.name != "settings":
                yield from arrays(getattr(value, f.name), f.name)
    elif hasattr(value, "__dict__"):
        yield from arrays(vars(value), name)


def unit(name, model, factor):
    """Return what an array of a model is multiplied by, where all weights are by `factor`."""
    inside = isinstance(
        model,
        pb.models.GradientBoostingModel | pb.models.SubaggedProbitTrees | pb.models.WeightedVote,
    )
    return factor if name in IN_UNIT and not inside else 1.0


@pytest.mark.parametrize("name", [*FITS, *MEASURES])
def test_powers_of_two_change_no_bit(name):
    fit = {**FITS, **MEASURES}[name]
    for kind in ("uniform", "counts", "any"):
        model = fit(WEIGHTS[kind])
        plain = list(arrays(model))
        assert plain
        for factor in POWERS if kind == "counts" else POWERS[::3]:
            scaled = list(arrays(fit(WEIGHTS[kind] * factor)))
            assert [key for key, _ in scaled] == [key for key, _ in plain]
            for (key, first), (_, other) in zip(plain, scaled, strict=True):
                if first.dtype.kind == "f":
                    first = first * unit(key, model, factor)
                assert np.array_equal(first, other, equal_nan=first.dtype.kind == "f"), (
                    key,
                    factor,
                )


@pytest.mark.parametrize("name", [*FITS, *MEASURES])
def test_other_factors_change_rounding_only(name):
    """Directions are found by a descent, whose last steps magnify rounding."""
    fit = {**FITS, **MEASURES}[name]
    loose = 1e-3 if "linear" in name else 1e-6
    model = fit(WEIGHTS["uniform"])
    plain = list(arrays(model))
    for factor in FACTORS:
        scaled = list(arrays(fit(WEIGHTS["uniform"] * factor)))
        for (key, first), (_, other) in zip(plain, scaled, strict=True):
            assert first.shape == other.shape, (key, factor)
            if first.dtype.kind == "f":
                other = other / unit(key, model, factor)
                assert np.allclose(first, other, rtol=loose, atol=loose, equal_nan=True), key
            else:
                assert np.array_equal(first, other), key


@pytest.mark.parametrize("size", [1e10, 1e80])
def test_large_targets_and_large_weights(size):
    """Errors of a regression are averages: the unit of the weights must not get in their way."""
    power = 2.0 ** np.rint(np.log2(size))
    plain = pb.fit_pruned_cart(X, SCORE, cv=4, rng=0, **regression)
    large = pb.fit_pruned_cart(X, SCORE * power, cv=4, rng=0, **regression)
    assert np.array_equal(large.threshold, plain.threshold)
    assert np.array_equal(large.value, plain.value * power)
    assert np.array_equal(large.pruning.error, plain.pruning.error * power**2)
    heavy = np.full(N, 2.0**960)
    options = {"n_estimators": 4, "max_depth": 2, "rng": 0, **regression}
    for fit in (pb.fit_random_forest, partial(pb.fit_bagging, pb.fit_cart)):
        expected = fit(X, SCORE, **options).oob.error * power**2
        assert fit(X, SCORE * power, sample_weight=heavy, **options).oob.error == expected
    rise = pb.inspection.permutation_importance(SQUARES, X, SCORE * power, rng=0)
    weighted = pb.inspection.permutation_importance(
        SQUARES, X, SCORE * power, rng=0, sample_weight=heavy
    )
    assert np.array_equal(rise, weighted)
