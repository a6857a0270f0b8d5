"""An ordered category gives what its rank numbers give, in every function that reads rows."""

import itertools
import zlib
from functools import partial

import numpy as np
import ordered
import pytest
from ordered import FITS, FUNCTIONS, LAYOUTS, PLOTS, TARGETS

import pboost as pb

pd = pytest.importorskip("pandas")

#: Wrapped models that are made for every builder, how many others, and how many functions are
#: called for each but `predict`. ``tests/fuzz/ordered_categories.py`` has all of them.
ALWAYS, MODELS, FEW = ("exit by price", "exit, never"), 1, 2
CHEAP = [name for name in FUNCTIONS if name not in {*PLOTS, "distill"}]
#: Models for which a few functions are called that take long.
SLOW = {
    "adaboost": ["plot.graph", "plot.training_curve"],
    "cart": ["plot.tree", "distill"],
    "forest": ["plot.regions"],
    "probitboost": ["plot.coefficients"],
}


def from_place(items, place):
    """Return items over and over, from some place on."""
    return itertools.islice(itertools.cycle(items), place % len(items), None)


def test_every_function_that_reads_rows_is_here():
    assert ordered.named(ordered.OF_MODEL) == set(FUNCTIONS)
    built = {name for name in pb.__all__ if name.startswith("fit_")}
    assert {getattr(part, "func", part).__name__ for part, _ in FITS.values()} == built


@pytest.mark.parametrize("name", FITS)
def test_ordered_categories_are_their_ranks(name):
    fit, target = FITS[name]
    y, start = TARGETS[target], zlib.crc32(name.encode())
    layouts, functions = from_place(LAYOUTS, start), from_place(CHEAP, start)
    every = [*CHEAP, *SLOW.get(name, [])]
    assert (
        ordered.differences(lambda F: fit(F, y), ordered.frames(next(layouts)), y, every)[1] == []
    )
    wrapped = ordered.wrapped(name)
    others = from_place([how for how in wrapped if how not in ALWAYS], start)
    exits = dict.fromkeys((how for how in ALWAYS if how in wrapped), "text")
    some = dict(zip(itertools.islice(others, MODELS), layouts, strict=False))
    for how, layout in {**exits, **some}.items():
        X, names = ordered.frames(layout), ["predict", *itertools.islice(functions, FEW)]
        assert (how, ordered.differences(wrapped[how], X, y, names)[1]) == (how, [])


Y = TARGETS["two"]
CHAIN = partial(pb.fit_adaboost, n_estimators=9)
#: Builders that are given rows to validate with.
VALIDATED = {
    "matryoshka": partial(pb.fit_matryoshka, shape=(4, 3), collect="sign"),
    "soft chain": partial(pb.fit_adaboost, observation=pb.observation.flip(0.2)),
    "tree": pb.fit_boosted_tree,
    "sum": partial(pb.fit_gradient_boosting, loss="log_loss", n_estimators=9),
}
#: What is fitted to a part of the rows, and judged by the others.
HELD_OUT = {
    "cross_validate": lambda X: pb.cross_validate(CHAIN, X, Y, cv=3, rng=0).error,
    "calibrate": lambda X: pb.calibrate(CHAIN, X, Y, cv=3, rng=0).slope,
    "margin_curve": lambda X: pb.inspection.margin_curve(CHAIN, X, Y, [0.3], cv=3, rng=0),
    "fit_bagging": lambda X: (
        pb.fit_bagging(ordered.CART, X, Y, n_estimators=3, rng=0).oob.prediction
    ),
    "fit_random_forest": lambda X: pb.fit_random_forest(X, Y, n_estimators=3, rng=0).oob.prediction,
}
COLUMNS = {
    "frame": lambda X: X,
    "sorted": pb.data.sort_columns,
    "binned": partial(pb.data.bin_columns, keep_values=True),
}


@pytest.mark.parametrize("name", VALIDATED)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_to_validate_with(name, layout):
    actual = []
    for X in ordered.frames(layout):
        options = {"validation": (X[30:], Y[30:]), "n_iter_no_change": 3}
        model = VALIDATED[name](X[:30], Y[:30], **options)
        own = isinstance(model, pb.models.GradientBoostingModel)
        actual.append(model.validation_loss if own else model.record.validation)
    assert len(actual[0]) > 2
    np.testing.assert_array_equal(*actual)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_that_are_held_out(layout, columns):
    X = [COLUMNS[columns](F) for F in ordered.frames(layout)]
    for name, held_out in HELD_OUT.items():
        assert (name, ordered.same(*map(held_out, X))) == (name, True)


def test_categories_of_sorted_columns_are_matched_by_value():
    X = pd.DataFrame({"c": np.array(["b", "d", "a", "c"])[np.arange(120) % 4], "z": 0.0})
    y = np.isin(X["c"], ["a", "d"])
    assert not pb.cross_validate(ordered.CART, pb.data.sort_columns(X), y, cv=3, rng=0).error.any()


# Members that number categories in different ways


@pytest.fixture(scope="module")
def many():
    """Return rows with more categories than members can tell apart, and an ensemble of trees."""
    k = np.random.default_rng(0).integers(0, 300, 900)
    y = (np.random.default_rng(1).random(300) < 0.5)[k]
    X = pd.DataFrame({"c": pd.Categorical([f"v{i:03}" for i in k]), "z": np.arange(900.0)})
    return X, y, pb.fit_bagging(pb.fit_cart, X, y, n_estimators=3, max_depth=3, rng=0)


def test_members_that_number_categories_differently(many):
    X, y, model = many
    share = pb.predict_proba(model, X)
    assert len({tree.table for tree in model.models}) == 3
    never = ordered.quiet(lambda: pb.early_exit(model, X, mean_comparisons=1e9))
    np.testing.assert_allclose(pb.predict_proba(never, X), share, rtol=1e-14)
    error = np.mean(pb.predict(model, X) != y)
    shuffled = X.assign(c=X["c"].to_numpy()[np.random.default_rng(0).permutation(900)])
    rise = pb.inspection.permutation_importance(model, X, y, n_repeats=1, rng=0)[0, 0]
    assert rise == np.mean(pb.predict(model, shuffled) != y) - error
    row = {"c": "v007", "z": 3.0}
    assert (
        pb.acquisition.predict_with_acquisition(model, row).label
        == pb.predict(model, pd.DataFrame([row]))[0]
    )


def test_members_that_number_categories_differently_are_not_written_in_c(many, tmp_path):
    with pytest.raises(NotImplementedError, match="number the categories of column 'c' in diff"):
        pb.export.to_c(many[2], tmp_path / "model.c")


def test_importances_by_rows_of_models_of_sums():
    X, _ = ordered.frames("mixed")
    for name in ("probitboost", "probit tree", "affine"):
        fit, target = FITS[name]
        y = TARGETS[target]
        model = fit(X, y)
        share = pb.feature_importances(model, X=X)
        assert share.shape == (4,)
        assert share.sum() == pytest.approx(1.0)
        with pytest.warns(UserWarning, match="calibration rows equal rows"):
            wrapped = pb.calibrate(model, X, y)
        np.testing.assert_array_equal(pb.feature_importances(wrapped, X=X), share)
