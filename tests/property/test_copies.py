"""Weight k is k copies, for every builder that draws nothing: the same splits, and votes to 1e-10.

Options that count rows are at their least value here. Two things count rows in any case: the value
of a leaf of one class in a probit tree, and `weak.linear`, which looks for directions with a noise
that is larger where fewer rows arrive.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pboost as pb

#: The same examples in every run, so that a change and not chance makes a test fail.
bounded = settings(deadline=None, max_examples=12, derandomize=True, database=None)
answers, weak = pb.observation, pb.weak
#: Builders of two classes, and of any number. Sizes are small: what is alike is alike early.
TWO = {
    "adaboost": partial(pb.fit_adaboost, n_estimators=6),
    "symmetric": partial(pb.fit_adaboost, n_estimators=6, votes="symmetric"),
    "gini": partial(
        pb.fit_adaboost, n_estimators=6, weak_learner=weak.stump("gini", search="exact")
    ),
    "binned": partial(
        pb.fit_adaboost, n_estimators=6, weak_learner=weak.stump(search="binned", max_bins=4)
    ),
    "affine": partial(pb.fit_adaboost, n_estimators=4, weak_learner=weak.affine(n_directions=8)),
    "flip": partial(pb.fit_adaboost, n_estimators=4, observation=answers.flip(0.1)),
    "gaussian": partial(pb.fit_adaboost, n_estimators=4, observation=answers.gaussian(0.3)),
    "boosted tree": partial(pb.fit_boosted_tree, max_nodes=5),
    "full tree": partial(pb.fit_boosted_tree, max_nodes=None),
    "look_ahead": partial(pb.fit_boosted_tree, max_nodes=4, growth="look_ahead"),
    "adatree2": partial(pb.fit_boosted_tree, max_nodes=4, observation=answers.adatree2()),
    "oblique": partial(pb.fit_oblique_tree, max_depth=2, n_stumps=3),
    "top down": partial(pb.fit_topdown_tree, max_nodes=5, impurity="entropy"),
    "own impurity": partial(pb.fit_topdown_tree, max_nodes=4, impurity=lambda z: 4 * z * (1 - z)),
    "matryoshka": partial(pb.fit_matryoshka, shape=(2, 3)),
    "by sign": partial(pb.fit_matryoshka, shape=(2, 2), collect="sign"),
    "chained": partial(pb.fit_matryoshka, shape=(2, 3), join="all"),
    "greedy": partial(pb.fit_matryoshka, growth="greedy", max_nodes=6),
    "share": partial(pb.fit_real_adaboost, n_estimators=5),
    "log_odds": partial(pb.fit_real_adaboost, n_estimators=5, answer_scale="log_odds"),
    "columns": partial(pb.fit_real_adaboost, n_estimators=5, weak_learner=weak.feature()),
    "exponential": partial(
        pb.fit_gradient_boosting, n_estimators=4, loss="exponential", search="exact"
    ),
    "log_loss": partial(pb.fit_gradient_boosting, n_estimators=4, loss="log_loss", search="exact"),
    "hinge": partial(pb.fit_gradient_boosting, n_estimators=4, loss="hinge", search="exact"),
    "probitboost": partial(pb.fit_probitboost, max_iter=8),
}
_LEAVES = {"max_depth": 1, "min_samples_leaf": 1, "min_samples_split": 2, "max_iter": 4}
ANY = {
    "cart": pb.fit_cart,
    "entropy": partial(pb.fit_cart, criterion="entropy", max_leaf_nodes=5),
    "binned cart": partial(pb.fit_cart, search="binned", max_bins=4, max_depth=3),
    "forest": partial(pb.fit_random_forest, n_estimators=2, bootstrap=False, max_features=None),
    "probit tree": partial(pb.fit_probit_tree, **_LEAVES),
    "sbpmt": partial(
        pb.fit_sbpmt, n_estimators=1, n_boosting_rounds=2, max_samples=None, **_LEAVES
    ),
    "samme": partial(pb.fit_samme, n_estimators=3, base_learner=partial(pb.fit_cart, max_depth=2)),
    "samme of two": partial(
        pb.fit_samme,
        n_estimators=2,
        base_learner=partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=2),
    ),
    "one vs rest": partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=3),
    "bagging": partial(pb.fit_bagging, pb.fit_cart, n_estimators=2, bootstrap=False, max_depth=3),
}
NUMBERS = {
    "regression": partial(pb.fit_cart, task="regression"),
    "forest of numbers": partial(
        pb.fit_random_forest, task="regression", n_estimators=2, bootstrap=False, max_features=None
    ),
    "squared_error": partial(
        pb.fit_gradient_boosting, n_estimators=4, loss="squared_error", search="exact"
    ),
}
FITS = TWO | ANY | NUMBERS
#: Builders that draw in any case.
DRAWING = {"fit_pruned_cart", "fit_within_budget"}
coarse = st.sampled_from([-2.5, -1.0, 0.0, 0.5, 3.0])
fine = st.floats(-100, 100, width=32)


def test_every_builder_is_here():
    tested = {
        fit.func.__name__ if isinstance(fit, partial) else fit.__name__ for fit in FITS.values()
    }
    builders = {name for name in pb.__all__ if name.startswith("fit_")}
    assert tested == builders - DRAWING


@st.composite
def problems(draw, kind):
    """Rows, how often each stands there, and labels, soft labels or numbers as options."""
    n = draw(st.integers(8, 24))
    X = draw(hnp.arrays(np.float64, (n, 2), elements=coarse | fine))
    times = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 4)))
    j = 2 if kind in TWO else draw(st.integers(2, 3))
    times[: 2 * j] = np.maximum(times[: 2 * j], 1)
    if kind in NUMBERS:
        y = draw(hnp.arrays(np.float64, n, elements=st.integers(-40, 40).map(lambda v: v / 4)))
        return X, times, {"y": y}
    y = draw(hnp.arrays(np.int64, n, elements=st.integers(0, j - 1)))
    y[: 2 * j] = np.tile(np.arange(j), 2)
    if not draw(st.booleans()):
        return X, times, {"y": y}
    # In eighths, so that a weight times them is exact.
    share = 0.5 * np.eye(j)[y]
    share[np.arange(n), draw(hnp.arrays(np.int64, n, elements=st.integers(0, j - 1)))] += 0.375
    share[np.arange(n), draw(hnp.arrays(np.int64, n, elements=st.integers(0, j - 1)))] += 0.125
    return X, times, {"y_proba": share}


def assert_alike(first, second, votes=1e-10):
    """Same tests, and what they lead to the same to `votes`."""
    if isinstance(
        first, pb.models.GradientBoostingModel
    ):  # may go on, or not, with trees of nothing but rounding
        k = min(len(first), len(second))
        for model in (first, second):
            assert all(np.abs(tree.value).max() <= votes for tree in list(model.trees)[k:])
        first, second = pb.models.truncate(first, k), pb.models.truncate(second, k)
    for name in ("feature", "threshold", "next", "children", "root", "classes", "taken"):
        if (array := getattr(first, name, None)) is not None:
            np.testing.assert_array_equal(array, getattr(second, name), name)
    for name in ("vote", "value", "bias", "alpha", "error", "step", "intercept", "slopes"):
        if isinstance(array := getattr(first, name, None), np.ndarray | float):
            np.testing.assert_allclose(array, getattr(second, name), rtol=0, atol=votes)
    assert_inside_alike(first, second, votes)


def assert_inside_alike(first, second, votes):
    """Same coefficients and inputs, and models inside."""
    if hasattr(first, "taken"):
        # Newton steps are sums over the rows, in another order: rounding grows from step to step.
        some = first.taken > 0
        np.testing.assert_allclose(first.coefficient[some], second.coefficient[some], 1e-9, votes)
    if (inputs := getattr(first, "inputs", None)) is not None:
        pairs = zip(inputs.members().values(), second.inputs.members().values(), strict=True)
        for first_part, second_part in pairs:
            np.testing.assert_allclose(first_part, second_part, rtol=1e-9, atol=votes)
    for part in ("trees", "partition", "partitions"):
        if (inner := getattr(first, part, None)) is not None:
            assert_alike(inner, getattr(second, part), votes)
    for first_part, second_part in zip(
        getattr(first, "models", ()), getattr(second, "models", ()), strict=True
    ):
        assert_alike(first_part, second_part, votes)


@pytest.mark.full_for("adaboost", "samme of two", "squared_error")
@pytest.mark.parametrize("kind", FITS)
def test_weight_k_is_k_copies(kind):
    @bounded
    @given(st.data())
    def check(data):
        X, times, targets = data.draw(problems(kind))
        rows = np.repeat(np.arange(len(X)), times)
        weighted = FITS[kind](X, **targets, sample_weight=times)
        copied = FITS[kind](X[rows], **{name: values[rows] for name, values in targets.items()})
        assert_alike(weighted, copied)
        # In units in which nothing is exact, too.
        assert_alike(FITS[kind](X, **targets, sample_weight=times / 3), copied)

    check()


def table(seed, kind):
    """Return rows with holes, categories in the last column, how often they stand there, labels."""
    rng = np.random.default_rng(seed)
    n, j = 26, 2 if kind in TWO else 3
    X = np.column_stack([rng.normal(size=(n, 2)).round(1), rng.integers(0, 4, n)])
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:4, 2] = np.arange(4)  # a row of weight 0 names its category, copies of none do not
    times = rng.integers(0, 4, n)
    times[: 2 * j] += times[: 2 * j] == 0
    y = np.where(np.arange(n) < 2 * j, np.arange(n) % j, rng.integers(0, j, n))
    if kind in NUMBERS:
        return X, times, {"y": rng.integers(-40, 40, n) / 4}
    if seed % 2:
        return X, times, {"y": y}
    share = 0.5 * np.eye(j)[y]
    share[np.arange(n), rng.integers(0, j, n)] += 0.5
    return X, times, {"y_proba": share}


def unsmoothed(fit):
    """Return a fit whose levels are not smoothed, as smoothing counts rows."""
    handed_to = getattr(fit, "args", ())
    options = inspect.signature(handed_to[0] if handed_to else fit).parameters
    if "categorical_smoothing" in options:
        return partial(fit, categorical_smoothing=0.0)
    learner = getattr(fit, "keywords", {}).get("weak_learner", weak.stump())
    if "weak_learner" in options and isinstance(learner, type(weak.stump())):
        return partial(fit, weak_learner=replace(learner, categorical_smoothing=0.0))
    return fit


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("categorical_features", [None, [2]], ids=["holes", "categories"])
def test_weight_k_is_k_copies_of_rows_of_a_table(kind, categorical_features):
    fit = FITS[kind] if categorical_features is None else unsmoothed(FITS[kind])
    more = {} if categorical_features is None else {"categorical_features": categorical_features}
    if kind.startswith("samme") and more:
        pytest.skip("it hands rows on, not options")
    if kind == "sbpmt":  # values of leaves of one class are compared, and these count rows
        fit = partial(fit, max_depth=0)
    for seed in range(6):
        X, times, targets = table(seed, kind)
        rows = np.repeat(np.arange(len(X)), times)
        weighted = fit(X, **targets, **more, sample_weight=times)
        copied = fit(X[rows], **{name: values[rows] for name, values in targets.items()}, **more)
        assert_alike(weighted, copied)
        assert_alike(fit(X, **targets, **more, sample_weight=times / 3), copied)
