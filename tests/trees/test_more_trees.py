"""continue_fit of forests and stagewise models: two fits one after the other are one fit."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from shallow import PLAIN, fit_shallow

import pboost as pb


def problem(seed=0, n=240, d=4):
    """Return rows with ties, labels, and weights of which some are 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(1)
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)
    return X, y, rng.integers(0, 4, n) / 2


def content(model, tmp_path):
    """Return the bytes of a model's file: all its fields, settings and record among them."""
    pb.save(model, tmp_path / "content.npz")
    return (tmp_path / "content.npz").read_bytes()


def stored(model, tmp_path):
    """Return the model saved and loaded."""
    pb.save(model, tmp_path / "stored.npz")
    return pb.load(tmp_path / "stored.npz")


COLUMNS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "sorted": pb.data.sort_columns,
    "binned": pb.data.bin_columns,
}
each_columns = pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)


@each_columns
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bootstrap": False, "max_samples": 90, "max_depth": 3},
        {"bootstrap": False},
        {"max_features": None, "max_leaf_nodes": 6, "criterion": "entropy"},
        {"task": "regression", "min_samples_leaf": 4, "min_samples_split": 11},
    ],
    ids=str,
)
def test_forest_goes_on(tmp_path, columns, options):
    X, y, weight = problem(1)
    if "task" not in options:
        y = np.digitize(y, [-0.5, 0.5])
    X, common = columns(X), {"sample_weight": weight, "rng": 5, **options}
    first = stored(pb.fit_random_forest(X, y, n_estimators=6, **common), tmp_path)
    at_once = content(pb.fit_random_forest(X, y, n_estimators=11, **common), tmp_path)
    for n_threads in (1, 2):
        longer = pb.continue_fit(
            first, X, y, n_estimators=5, sample_weight=weight, n_threads=n_threads
        )
        assert content(longer, tmp_path) == at_once
    steps = pb.continue_fit(
        pb.continue_fit(first, X, y, n_estimators=2, sample_weight=weight),
        X,
        y,
        n_estimators=3,
        sample_weight=weight,
    )
    assert content(steps, tmp_path) == at_once
    assert len(first) == 6


@each_columns
@pytest.mark.parametrize("loss", ["log_loss", "hinge", "squared_error"])
@pytest.mark.parametrize("bag", [None, 1.0, 0.6, 50])
def test_sum_goes_on(tmp_path, columns, loss, bag):
    X, y, weight = problem(2)
    y = y if loss == "squared_error" else np.where(y > 0, "yes", "no")
    X = columns(X)
    common = {"loss": loss, "sample_weight": weight, "rng": 5, "subsample": bag}
    first = stored(pb.fit_gradient_boosting(X, y, n_estimators=7, **common), tmp_path)
    longer = pb.continue_fit(first, X, y, n_estimators=8, sample_weight=weight)
    assert content(longer, tmp_path) == content(
        pb.fit_gradient_boosting(X, y, n_estimators=15, **common), tmp_path
    )


@pytest.mark.parametrize("patience", [2, 8, 100])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("bag", [None, 0.5])
def test_sum_with_validation_goes_on(tmp_path, patience, given, bag):
    """Trees beyond the best are not kept, and those that validation ends end the longer fit."""
    X, y, _ = problem(3)
    other = problem(4)
    common = {
        "loss": "log_loss",
        "rng": 2,
        "n_iter_no_change": patience,
        "subsample": bag,
        "learning_rate": 1.0,
        "validation": (other[0], other[1] > 0) if given else 0.3,
    }
    first = pb.fit_gradient_boosting(X, y > 0, n_estimators=9, **common)
    more = {"validation": common["validation"]} if given else {}
    longer = pb.continue_fit(stored(first, tmp_path), X, y > 0, n_estimators=6, **more)
    at_once = pb.fit_gradient_boosting(X, y > 0, n_estimators=15, **common)
    assert content(longer, tmp_path) == content(at_once, tmp_path)
    assert patience == 100 or len(first.validation_loss) <= 10


def test_names_and_frames(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y, _ = problem(5)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    for fit, more in (
        (pb.fit_random_forest, {"rng": 1}),
        (pb.fit_gradient_boosting, {"loss": "log_loss"}),
    ):
        first = fit(frame, y > 0, n_estimators=3, **more)
        longer = pb.continue_fit(first, frame[list("dbca")], y > 0, n_estimators=3)
        assert content(longer, tmp_path) == content(
            fit(frame, y > 0, n_estimators=6, **more), tmp_path
        )
        with pytest.raises(ValueError, match="a"):
            pb.continue_fit(first, frame[list("dbc")], y > 0, n_estimators=3)


def test_a_fit_that_was_stopped_goes_on_from_there(tmp_path):
    X, y, _ = problem(6)
    stop = {"callback": lambda step, record: step == 4}
    forest = pb.fit_random_forest(X, y > 0, n_estimators=9, rng=0, **stop)
    model = pb.fit_gradient_boosting(X, y, loss="squared_error", n_estimators=9, **stop)
    assert len(forest) == len(model) == 4
    assert len(pb.continue_fit(forest, X, y > 0, n_estimators=3)) == 7
    assert content(pb.continue_fit(model, X, y, n_estimators=3), tmp_path) == content(
        pb.fit_gradient_boosting(X, y, loss="squared_error", n_estimators=7), tmp_path
    )
    cut = pb.models.truncate(
        pb.fit_gradient_boosting(X, y, loss="squared_error", n_estimators=9), 5
    )
    assert len(pb.continue_fit(cut, X, y, n_estimators=3)) == 8


def test_a_fit_that_ended_by_itself_stays(tmp_path):
    X, y = np.arange(6.0).reshape(-1, 1), np.array([0, 0, 0, 1, 1, 1.0])
    options = {"loss": "squared_error", "learning_rate": 1.0, "l2_regularization": 0.0}
    model = fit_shallow(X, y, n_estimators=40, **options)
    assert "no leaf" in model.stop_reason
    longer = pb.continue_fit(model, X, y, n_estimators=5)
    assert content(longer, tmp_path) == content(
        fit_shallow(X, y, n_estimators=45, **options), tmp_path
    )


def test_callbacks_are_told_of_new_trees_only():
    X, y, _ = problem(7)
    told = []
    forest = pb.fit_random_forest(X, y > 0, n_estimators=5, rng=0)
    pb.continue_fit(
        forest, X, y > 0, n_estimators=4, callback=lambda s, r: told.append((s, r.oob_error))
    )
    expected = []
    pb.fit_random_forest(
        X, y > 0, n_estimators=9, rng=0, callback=lambda s, r: expected.append((s, r.oob_error))
    )
    assert told == expected[5:]
    told, model = [], pb.fit_gradient_boosting(X, y, loss="squared_error", n_estimators=5)
    pb.continue_fit(model, X, y, n_estimators=9, callback=lambda s, r: told.append(s) or s == 8)
    assert told == [6, 7, 8]


def test_sum_goes_on_with_other_rows():
    """The trees stay, and the losses are those of the rows given."""
    X, y, _ = problem(8)
    model = pb.fit_gradient_boosting(X[:120], y[:120], loss="squared_error", n_estimators=6)
    longer = pb.continue_fit(model, X[120:], y[120:], n_estimators=5)
    assert (longer.trees.value[: len(model.trees.value)] == model.trees.value).all()
    values = pb.staged_decision_function(longer, X[120:])
    losses = [float(((value - y[120:]) ** 2).mean()) for value in values]
    np.testing.assert_allclose(longer.training_loss[1:], losses, rtol=1e-9)


def test_own_loss_goes_on():
    class Fourth(pb.losses.Loss):
        is_regression = True

        def value(self, y, f):
            return (y - f) ** 4 / 4

        def gradient(self, y, f):
            return -((y - f) ** 3)

    X, y, _ = problem(9)
    first = pb.fit_gradient_boosting(X, y, loss=Fourth(), n_estimators=3)
    longer = pb.continue_fit(pb.continue_fit(first, X, y, n_estimators=2), X, y, n_estimators=2)
    expected = pb.fit_gradient_boosting(X, y, loss=Fourth(), n_estimators=7)
    assert (longer.trees.value == expected.trees.value).all()
    assert (longer.training_loss == expected.training_loss).all()


# Where fits draw from


def other_generator():
    return np.random.Generator(np.random.MT19937(3))


def test_what_draws_keeps_the_state_of_its_generator(tmp_path):
    X, y, _ = problem(10)
    generator = np.random.default_rng(3)
    generator.random()
    copy = pickle.loads(pickle.dumps(generator))
    first = pb.fit_random_forest(X, y > 0, n_estimators=3, rng=generator)
    assert content(pb.continue_fit(first, X, y > 0, n_estimators=2), tmp_path) == content(
        pb.fit_random_forest(X, y > 0, n_estimators=5, rng=copy), tmp_path
    )
    kept = {
        pb.fit_gradient_boosting(X, y, loss="squared_error", n_estimators=2, **more).settings.keys()
        >= {"rng"}
        for more in ({"subsample": 0.5}, {"validation": 0.2}, {"subsample": 1, "rng": 0})
    }
    assert kept == {True}
    for more in ({}, {"validation": (X, y)}):
        assert (
            "rng"
            not in pb.fit_gradient_boosting(
                X, y, loss="squared_error", n_estimators=2, **PLAIN, **more
            ).settings
        )


def test_unknown_state_is_refused_and_can_be_given(tmp_path):
    X, y, _ = problem(11)
    forest = pb.fit_random_forest(X, y > 0, n_estimators=3, rng=other_generator())
    drawn = pb.fit_gradient_boosting(
        X, y, loss="squared_error", n_estimators=3, subsample=0.5, rng=other_generator()
    )
    assert "rng" not in forest.settings.keys() | drawn.settings.keys()
    for model, truth in ((forest, y > 0), (drawn, y)):
        with pytest.raises(ValueError, match="rng: expected the generator of the fit"):
            pb.continue_fit(model, X, truth, n_estimators=2)
    longer = pb.continue_fit(forest, X, y > 0, n_estimators=2, rng=other_generator())
    assert content(longer, tmp_path) == content(
        pb.fit_random_forest(X, y > 0, n_estimators=5, rng=other_generator()), tmp_path
    )
    with pytest.raises(ValueError, match="same rng"):
        pb.continue_fit(forest, X, y > 0, n_estimators=2, rng=4)
    # A fit that drew nothing needs no generator.
    still = pb.fit_gradient_boosting(
        X, y, loss="squared_error", n_estimators=3, rng=other_generator(), **PLAIN
    )
    assert len(pb.continue_fit(still, X, y, n_estimators=2)) == 5


def test_models_without_a_state_are_continued_with_their_seed():
    X, y, _ = problem(12)
    forest = pb.fit_random_forest(X, y > 0, n_estimators=3, rng=7, max_samples=100)
    settings = {name: value for name, value in forest.settings.items() if name != "rng"}
    old = replace(forest, settings=settings)
    with pytest.raises(ValueError, match="store only PCG64 generators"):
        pb.continue_fit(old, X, y > 0, n_estimators=2)
    longer = pb.continue_fit(old, X, y > 0, n_estimators=2, rng=7)
    assert (
        longer.settings
        == pb.fit_random_forest(X, y > 0, n_estimators=5, rng=7, max_samples=100).settings
    )


# What is refused


def test_forest_takes_the_rows_of_its_fit():
    X, y, weight = problem(13)
    forest = pb.fit_random_forest(X, y > 0, n_estimators=3, rng=0)
    order = np.random.default_rng(0).permutation(len(X))
    for data in ((X[order], y[order] > 0), (X[:-1], y[:-1] > 0), (X + 0.5, y > 0), (X, y > 0.4)):
        with pytest.raises(ValueError, match="expected the rows of the first fit"):
            pb.continue_fit(forest, *data, n_estimators=2)
    with pytest.raises(ValueError, match="sample_weight"):
        pb.continue_fit(forest, X, y > 0, n_estimators=2, sample_weight=weight)
    with pytest.raises(ValueError, match=r"(labels|classes) of the model"):
        pb.continue_fit(forest, X, np.where(y > 0, "a", "b"), n_estimators=2)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("forest", {"n_estimators": 0}, "n_estimators: expected an integer from 1"),
        (
            "forest",
            {"n_estimators": None},
            "n_estimators: expected the number of trees to add, got None; pass for",
        ),
        (
            "forest",
            {"max_nodes": 3},
            "expected a DecisionGraph for continue_fit, got a RandomForest",
        ),
        ("sum", {"max_nodes": 3}, "expected a DecisionGraph for continue_fit, got a GradientB"),
        (
            "forest",
            {"rng": 0},
            "rng: expected None, since the model stores the generator of its fit",
        ),
        (
            "forest",
            {"validation": 0.2},
            "expected a GradientBoostingModel for continue_fit",
        ),
        ("sum", {"n_estimators": 1.5}, "n_estimators: expected an integer, got 1.5"),
        ("sum", {"n_estimators": None}, "n_estimators: expected the number of trees to add"),
        (
            "sum",
            {"learning_rate": 0.5},
            "which only takes n_estimators, validation, state",
        ),
        ("sum", {"validation": ([[1.0]], [2.0])}, "validation: expected None, because the"),
    ],
    ids=str,
)
def test_refused(kind, change, message):
    X, y, _ = problem(14)
    if kind == "forest":
        model = pb.fit_random_forest(X, y, task="regression", n_estimators=3, rng=0)
    else:
        model = pb.fit_gradient_boosting(X, y, loss="squared_error", n_estimators=3)
    with pytest.raises((ValueError, TypeError)) as caught:
        pb.continue_fit(model, X, y, **{"n_estimators": 2, **change})
    assert message in str(caught.value)


def test_softmax_adds_rounds():
    X, y, _ = problem(14)
    model = pb.fit_gradient_boosting(X, np.digitize(y, [-1.0, 1.0]), n_estimators=2)
    with pytest.raises(TypeError, match=r"^n_estimators: expected the number of rounds to add"):
        pb.continue_fit(model, X, np.digitize(y, [-1.0, 1.0]))


def test_what_is_no_fit_is_refused():
    X, y, _ = problem(15)
    forest = pb.fit_random_forest(X, y > 0, n_estimators=3, rng=0)
    model = pb.fit_gradient_boosting(X, y, loss="squared_error", n_estimators=3, validation=(X, y))
    with pytest.raises(ValueError, match="a whole forest"):
        pb.continue_fit(forest[:2], X, y > 0, n_estimators=1)
    with pytest.raises(ValueError, match="settings of fit_random_forest"):
        pb.continue_fit(model.trees, X, y, n_estimators=1)
    with pytest.raises(ValueError, match="which a model does not store"):
        pb.continue_fit(model, X, y, n_estimators=1)
    validations = (
        (None, "fitted without validation"),
        (0.2, r"fitted with validation=0\.2; pass all"),
    )
    for validation, message in validations:
        model = pb.fit_gradient_boosting(X, y, n_estimators=3, validation=validation, rng=0)
        with pytest.raises(ValueError, match=message):
            pb.continue_fit(model, X, y, n_estimators=1, validation=(X, y))
    with pytest.raises(
        TypeError, match="RandomForest and GradientBoostingModel are supported, too"
    ):
        pb.continue_fit(pb.fit_cart(X, y > 0), X, y > 0, max_nodes=1)
    forest = pb.fit_random_forest(X, y > 0, n_estimators=2, rng=0)
    with pytest.raises(TypeError, match="which only takes n_estimators"):
        pb.continue_fit(forest, X, y > 0, n_estimators=1, max_nodes=1)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"bit_generator": "PCG64"},
        {"bit_generator": ["PCG64"]},
        {"bit_generator": "MT19937", "state": {"key": [0] * 624, "pos": 10**6}},
        {
            "bit_generator": "PCG64",
            "state": {"state": 2**200, "inc": 1},
            "has_uint32": 0,
            "uinteger": 0,
        },
        {
            "bit_generator": "PCG64",
            "state": {"state": "1", "inc": 1},
            "has_uint32": 0,
            "uinteger": 0,
        },
    ],
    ids=str,
)
def test_wrong_states_of_files_are_refused(tmp_path, state):
    X, y, _ = problem(16)
    forest = pb.fit_random_forest(X, y > 0, n_estimators=3, rng=0)
    wrong = stored(replace(forest, settings={**forest.settings, "rng": state}), tmp_path)
    with pytest.raises(ValueError, match="expected the state of a generator"):
        pb.continue_fit(wrong, X, y > 0, n_estimators=1)


def test_wrong_settings_are_refused():
    X, y, _ = problem(17)
    forest = pb.fit_random_forest(X, y > 0, n_estimators=3, rng=0)
    with pytest.raises(ValueError, match=r"settings\['rng'\]: expected a table"):
        replace(forest, settings={**forest.settings, "rng": 3})
    for name in ("min_samples_leaf", "search", "max_features", "max_samples"):
        wrong = replace(forest, settings={**forest.settings, name: "?"})
        with pytest.raises((ValueError, TypeError), match=name):
            pb.continue_fit(wrong, X, y > 0, n_estimators=1)
    model = pb.fit_gradient_boosting(X, y, loss="squared_error", n_estimators=3, **PLAIN)
    for name in ("n_estimators", "subsample", "init", "max_delta_step"):
        wrong = replace(model, settings={**model.settings, name: "?"})
        with pytest.raises((ValueError, TypeError), match=name):
            pb.continue_fit(wrong, X, y, n_estimators=1, rng=0)


@pytest.mark.parametrize("search", ["auto", "exact"])
def test_trees_that_are_there_see_values_and_no_bins(search):
    """Bins of other rows do not end where theirs did."""
    X, y, weight = problem(3, n=600)
    X += 0.01 * np.random.default_rng(3).normal(size=X.shape)
    first, other = slice(300), slice(300, 600)
    model = pb.fit_gradient_boosting(
        X[first], y[first] > 0, n_estimators=6, search=search, max_bins=20
    )
    more = pb.continue_fit(
        model, X[other], y[other] > 0, n_estimators=3, sample_weight=weight[other]
    )
    sign = np.where(y[other] > 0, 1.0, -1.0)
    stages = [np.full(300, model.bias), *pb.staged_decision_function(model, X[other])]
    losses = [np.average(model.loss.value(sign, f), weights=weight[other]) for f in stages]
    np.testing.assert_allclose(more.training_loss[:7], losses, rtol=1e-9)
