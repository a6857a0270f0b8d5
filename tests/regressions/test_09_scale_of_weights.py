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
IN_UNIT = {"weight", "lam", "prune_path.risk"}

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
    state = pb.generic.GenericGreedy(TWO, w)
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
    options = {"loss": loss, "steps": 4, "bag": 0.7, "validation": 0.3, "rng": 0}
    return (number if loss == "squared" else two)(pb.fit_stagewise, **options)


see, weak, regression = pb.observation, pb.weak, {"task": "regression"}
tree, chain = partial(two, pb.fit_boosted_tree), partial(two, pb.fit_adaboost, rounds=5)
FITS = {
    "adaboost": chain(),
    "adaboost symmetric": chain(votes="symmetric"),
    "adaboost binned": chain(weak=weak.stump(search="binned", max_bins=20)),
    "adaboost early": chain(validation=0.3, patience=3, rng=0),
    "adaboost flip": chain(observation=see.flip(0.1)),
    "adaboost gaussian": chain(observation=see.gaussian(0.3)),
    "adaboost sampled": chain(observation=see.sampled(2), rng=0),
    "adaboost oracle": chain(weak=weak.oracle(train_oracle), rng=0),
    "adaboost linear": chain(weak=weak.linear()),
    "adaboost real": two(pb.fit_adaboost_real, rounds=6),
    **{f"tree {g}": tree(nodes=9, growth=g) for g in ("largest-bound", "look-ahead")},
    "tree largest-error": tree(nodes=9, growth="largest-error"),
    "tree binned": tree(nodes=9, weak=weak.stump(search="binned", max_bins=20)),
    "tree early": tree(nodes=12, validation=0.3, patience=3, rng=0),
    "tree affine": tree(nodes=5, weak=weak.affine(directions=10)),
    "tree linear": tree(nodes=3, weak=weak.linear()),
    "tree separator": tree(nodes=3, weak=weak.separator(stumps=3)),
    "tree oracle": tree(nodes=3, weak=weak.oracle(train_oracle), rng=0),
    "tree flip": tree(nodes=6, observation=see.flip(0.1), growth="look-ahead"),
    "tree gaussian": tree(nodes=6, observation=see.gaussian(0.3)),
    "tree uniform": tree(nodes=6, observation=see.uniform()),
    "tree adatree2": tree(nodes=6, observation=see.adatree2()),
    "oblique": two(pb.fit_oblique_tree, separators=3, stumps=3),
    "topdown": two(pb.fit_topdown_tree, nodes=8),
    "topdown own": two(pb.fit_topdown_tree, nodes=8, impurity=lambda z: 4 * z * (1 - z)),
    "matryoshka": two(pb.fit_matryoshka, shape=(3, 3)),
    "matryoshka sign": two(pb.fit_matryoshka, shape=(3, 3), collect="sign"),
    "matryoshka greedy": two(pb.fit_matryoshka, growth="greedy", nodes=9),
    "generic": generic,
    "cart": two(pb.fit_cart),
    "cart best-first": three(pb.fit_cart, max_leaves=7, criterion="entropy"),
    "cart binned": two(pb.fit_cart, search="binned", max_bins=20),
    "cart squares": number(pb.fit_cart, max_leaves=9, **regression),
    "pruned": two(pb.fit_pruned_cart, folds=4, rng=0),
    "pruned 1se": three(pb.fit_pruned_cart, folds=4, rule="1se", rng=0),
    "pruned squares": number(pb.fit_pruned_cart, folds=4, rng=0, **regression),
    "forest": three(pb.fit_forest, members=3, rng=0),
    "forest squares": number(pb.fit_forest, members=3, rng=0, **regression),
    "bagging": two(partial(pb.fit_bagging, pb.fit_boosted_tree), members=3, nodes=4, rng=0),
    "bagging squares": number(partial(pb.fit_bagging, pb.fit_cart), members=3, rng=0, **regression),
    "one vs rest": three(partial(pb.fit_one_vs_rest, pb.fit_adaboost), rounds=3),
    "samme": three(pb.fit_samme, base=partial(pb.fit_cart, max_depth=2), rounds=3),
    "probitboost": two(pb.fit_probitboost, steps=10),
    "probit tree": two(pb.fit_probit_tree),
    "probit tree of three": three(pb.fit_probit_tree),
    "sbpmt": two(pb.fit_sbpmt, members=2, rounds=2, rng=0),
    "sbpmt of three": three(pb.fit_sbpmt, members=2, rounds=2, rng=0),
    **{f"stagewise {loss}": stagewise(loss) for loss in ("squared", "logistic", "exponential")},
    "stagewise hinge": stagewise("hinge"),
}

CHAIN = pb.fit_adaboost(X[:20], TWO[:20], rounds=5)
THREES = pb.fit_forest(X[:20], THREE[:20], members=3, rng=0)
TREE = pb.fit_boosted_tree(X, TWO, nodes=9)
SOFT = pb.fit_boosted_tree(X, TWO, nodes=6, observation=see.flip(0.1))
CART, SQUARES = pb.fit_cart(X, TWO), pb.fit_cart(X, SCORE, task="regression")


def of_fold(w):
    fit = partial(pb.fit_cart, task="regression", max_depth=2)
    return pb.cross_validate(
        fit, X, SCORE, task="regression", folds=3, rng=0, sample_weight=w
    ).error


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
    "margin error": lambda w: pb.margin_error(TREE, X, TWO, [0.0, 0.3], sample_weight=w),
    "margin bound": lambda w: np.array(pb.margin_bound(TREE, X, TWO, 0.1, sample_weight=w)),
    "permutation": lambda w: pb.permutation_importance(TREE, X, TWO, sample_weight=w, rng=0),
    "permutation squares": lambda w: pb.permutation_importance(
        SQUARES, X, SCORE, sample_weight=w, rng=0
    ),
    "cross-validation": of_fold,
    "prune_path": lambda w: pb.prune_path(CART, X, TWO, sample_weight=w),
    "prune_path squares": lambda w: pb.prune_path(SQUARES, X, SCORE, sample_weight=w),
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
    elif isinstance(value, pb.PruningPath):
        yield "lam", value.lam
        yield "prune_path.risk", value.risk
        yield "n_leaves", value.n_leaves
    elif dataclasses.is_dataclass(value):
        for f in dataclasses.fields(value):
            if f.name != "settings":
                yield from arrays(getattr(value, f.name), f.name)
    elif hasattr(value, "__dict__"):
        yield from arrays(vars(value), name)


def unit(name, model, factor):
    """Return what an array of a model is multiplied by, where all weights are by `factor`."""
    inside = isinstance(model, pb.StagewiseModel | pb.SubaggedProbitTrees | pb.WeightedVote)
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
                assert np.array_equal(first, other, equal_nan=first.dtype.kind == "f"), (key, factor)


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
    plain = pb.fit_pruned_cart(X, SCORE, folds=4, rng=0, **regression)
    large = pb.fit_pruned_cart(X, SCORE * power, folds=4, rng=0, **regression)
    assert np.array_equal(large.threshold, plain.threshold)
    assert np.array_equal(large.value, plain.value * power)
    assert np.array_equal(large.pruning.error, plain.pruning.error * power**2)
    heavy = np.full(N, 2.0**960)
    options = {"members": 4, "max_depth": 2, "rng": 0, **regression}
    for fit in (pb.fit_forest, partial(pb.fit_bagging, pb.fit_cart)):
        expected = fit(X, SCORE, **options).oob.error * power**2
        assert fit(X, SCORE * power, sample_weight=heavy, **options).oob.error == expected
    rise = pb.permutation_importance(SQUARES, X, SCORE * power, rng=0)
    weighted = pb.permutation_importance(SQUARES, X, SCORE * power, rng=0, sample_weight=heavy)
    assert np.array_equal(rise, weighted)
