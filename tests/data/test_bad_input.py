"""Bad input: a clear error that names the argument, and nothing lost."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from compare import assert_identical, stump

import pboost as pb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 20))
Y = np.where(X[:, 3] + RNG.normal(size=60) > 0, 1, -1)
for array in (X, Y):
    array.setflags(write=False)

FITS = {
    "adaboost": lambda X, y, **k: pb.fit_adaboost(X, y, **({"n_estimators": 5} | k)),
    "tree": lambda X, y, **k: pb.fit_boosted_tree(X, y, **({"max_nodes": 5} | k)),
}
builders = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
REFUSED = (ValueError, TypeError)


def spoilt(value, *cells):
    Z = X.copy()
    for cell in cells:
        Z[cell] = value
    return Z


@builders
@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_not_finite(fit, value, dtype):
    Z = spoilt(value, (37, 13), (52, 17)).astype(dtype)
    with pytest.raises(ValueError, match=r"(?i)(?=.*\b13\b)(?=.*\b37\b)(nan|inf|finite)?"):
        fit(Z, Y)


def test_not_finite_at_prediction():
    model = pb.fit_adaboost(X, Y, n_estimators=5)
    for call in (pb.predict, pb.predict_proba, pb.decision_function, pb.prediction_cost):
        with pytest.raises(ValueError, match=r"(?=.*\b13\b)(?=.*\b37\b)"):
            call(model, spoilt(-np.inf, (37, 13)))
    with pytest.raises(ValueError, match=r"(?=.*\b13\b)(?=.*\b37\b)"):
        pb.certificate(model, spoilt(np.inf, (37, 13)), Y)
    with pytest.raises(ValueError, match=r"(?=.*\b13\b)(?=.*\b37\b)"):
        list(pb.staged_decision_function(model, spoilt(np.inf, (37, 13))))


@pytest.mark.parametrize("sort", [pb.data.sort_columns, pb.data.bin_columns])
def test_columns_of_bad_rows(sort):
    with pytest.raises(ValueError, match=r"(?=.*\b13\b)(?=.*\b37\b)"):
        sort(spoilt(np.inf, (37, 13)))
    with pytest.raises(REFUSED):
        sort(X[0])
    with pytest.raises(ValueError):
        sort(X[:0])


@pytest.mark.parametrize("max_bins", [0, 1, 257, -3, 2.5])
def test_number_of_bins(max_bins):
    with pytest.raises(REFUSED, match="max_bins"):
        pb.data.bin_columns(X, max_bins=max_bins)
    with pytest.raises(REFUSED, match="max_bins"):
        pb.weak.stump(max_bins=max_bins)


@builders
@pytest.mark.parametrize("shape", [(0, 20), (60, 0), (0, 0)])
def test_empty(fit, shape):
    with pytest.raises(ValueError):
        fit(np.zeros(shape), Y[: shape[0]])


@builders
@pytest.mark.parametrize("bad", [X[0], X[:, :, None], 3.0, None, "rows", [[1.0, 2.0], [3.0]]])
def test_not_two_dimensional(fit, bad):
    with pytest.raises(REFUSED, match="X"):
        fit(bad, Y)


#: Fit functions whose first argument is not X, or that need another argument.
OTHER_FITS = {
    "fit_bagging": partial(pb.fit_bagging, pb.fit_cart),
    "fit_one_vs_rest": partial(pb.fit_one_vs_rest, pb.fit_adaboost),
    "fit_samme": partial(pb.fit_samme, base_learner=pb.fit_cart),
    "fit_within_budget": partial(pb.fit_within_budget, mean_comparisons=10),
}
PATHS = ["rows.csv", b"rows.csv", Path("rows.csv")]


@pytest.mark.parametrize("name", [name for name in pb.__all__ if name.startswith("fit_")])
def test_path_as_rows_of_a_fit(name):
    fit = OTHER_FITS.get(name, getattr(pb, name))
    for path in PATHS:
        with pytest.raises(TypeError, match=r"^X: .* the path b?'rows.csv'; read .*bin_files"):
            fit(path, Y)


def test_path_as_rows_of_a_prediction():
    models = [
        pb.fit_adaboost(X, Y, n_estimators=2),
        pb.fit_one_vs_rest(pb.fit_adaboost, X, Y, n_estimators=2),
        pb.fit_gradient_boosting(X, Y, n_estimators=2),
    ]
    for model in models:
        for call in (pb.predict, pb.decision_function, pb.prediction_cost, pb.explain):
            for path in PATHS:
                with pytest.raises(TypeError, match=r"^X: .* the path b?'rows.csv'; read .*csv"):
                    call(model, path)


@builders
@pytest.mark.parametrize("dtype", [complex, "U8", "S8", "datetime64[s]"])
def test_not_numeric(fit, dtype):
    bad = X.round().astype(np.int64).astype(dtype)
    with pytest.raises(REFUSED):
        fit(bad, Y)


@builders
def test_one_class(fit):
    for y in (np.ones(60), np.zeros(60, dtype=bool), np.array(["a"] * 60)):
        with pytest.raises(ValueError, match=r"class|label"):
            fit(X, y)


@builders
@pytest.mark.parametrize(
    "y",
    [Y[:-1], np.append(Y, 1), np.column_stack([Y, Y]), np.where(Y > 0, 1.0, np.nan), None],
    ids=["short", "long", "2-D", "NaN", "None"],
)
def test_bad_labels(fit, y):
    with pytest.raises(REFUSED, match=r"\by\b|label"):
        fit(X, y)


BAD_WEIGHTS = {
    "short": np.ones(59),
    "long": np.ones(61),
    "2-D": np.ones((60, 1)),
    "scalar": 2.0,
    "negative": np.where(np.arange(60) == 41, -1.0, 1.0),
    "NaN": np.where(np.arange(60) == 41, np.nan, 1.0),
    "infinite": np.where(np.arange(60) == 41, np.inf, 1.0),
    "zero": np.zeros(60),
    "text": np.array(["1"] * 60),
    "complex": np.ones(60, dtype=complex),
}


@builders
@pytest.mark.parametrize("weight", BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_bad_weights(fit, weight):
    with pytest.raises(REFUSED, match="sample_weight"):
        fit(X, Y, sample_weight=weight)


@builders
def test_bad_weight_row_is_named(fit):
    for kind in ("negative", "NaN", "infinite"):
        with pytest.raises(ValueError, match=r"\b41\b"):
            fit(X, Y, sample_weight=BAD_WEIGHTS[kind])


@builders
def test_weights_that_leave_one_class(fit):
    with pytest.raises(ValueError, match=r"class|label"):
        fit(X, Y, sample_weight=(Y > 0).astype(float))


OPTIONS = {
    "smoothing": [-1e-4, np.nan, np.inf, "little"],
    "learning_rate": [0.0, -0.1, 1.5, np.nan, "slow"],
    "n_threads": [0, 1.5, "all"],
    "rng": ["dice", 1.5],
    "weak_learner": ["stump", 3, pb.weak.stump],
    "callback": [3, "stop"],
}


@builders
@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in OPTIONS.items() for value in values]
)
def test_unknown_option(fit, name, value):
    with pytest.raises(REFUSED, match=name):
        fit(X, Y, **{name: value})


@pytest.mark.parametrize("value", [-1, 0, 2.5, "10", None, 2**31])
def test_rounds(value):
    with pytest.raises(REFUSED, match="n_estimators"):
        pb.fit_adaboost(X, Y, n_estimators=value)


@pytest.mark.parametrize("value", [-1, 0, 2.5, "10", 2**31])
def test_nodes(value):
    with pytest.raises(REFUSED, match="max_nodes"):
        pb.fit_boosted_tree(X, Y, max_nodes=value)


@pytest.mark.parametrize(
    ("fit", "options"),
    [
        ("adaboost", {"votes": "real"}),
        ("tree", {"growth": "deepest"}),
        ("tree", {"max_depth": -1}),
        ("tree", {"max_depth": 2.5}),
        ("tree", {"observation": "exact"}),
    ],
)
def test_unknown_choice(fit, options):
    (name,) = options
    with pytest.raises(REFUSED, match=name):
        FITS[fit](X, Y, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"criterion": "ginny"},
        {"search": "best"},
        {"min_weight_fraction": -0.1},
        {"min_weight_fraction": np.nan},
        {"min_weight_fraction": 1.5},
        {"min_samples_leaf": -1},
        {"min_samples_leaf": 1.5},
        {"min_samples_leaf": "2"},
    ],
)
def test_unknown_stump(options):
    ((name, value),) = options.items()
    with pytest.raises(REFUSED, match=name) as error:
        pb.weak.stump(**options)
    assert str(value) in str(error.value)


@builders
def test_unknown_argument(fit):
    with pytest.raises(TypeError):
        fit(X, Y, colour="red")
    with pytest.raises(TypeError):
        pb.fit_adaboost(X, Y, 5)  # settings are keyword-only


def test_unit_of_cost():
    model = pb.fit_adaboost(X, Y, n_estimators=5)
    with pytest.raises(ValueError, match=r"unit.*hours|hours.*unit"):
        pb.prediction_cost(model, X, unit="hours")


def test_other_number_of_columns():
    model = pb.fit_adaboost(X, Y, n_estimators=5)
    for wrong in (X[:, :19], np.column_stack([X, X[:, 0]])):
        for call in (pb.predict, pb.predict_proba, pb.decision_function, pb.prediction_cost):
            with pytest.raises(ValueError, match=r"20.*(19|21)|(19|21).*20"):
                call(model, wrong)
    with pytest.raises(REFUSED):
        pb.predict(model, X[0, 0])


def test_columns_of_other_data():
    columns = pb.data.sort_columns(X)
    with pytest.raises(ValueError):
        pb.fit_adaboost(columns, Y[:-1], n_estimators=5)
    with pytest.raises(ValueError, match=r"binned|exact"):
        pb.fit_adaboost(pb.data.bin_columns(X), Y, n_estimators=5, weak_learner=stump())


@builders
def test_callback_stops(fit):
    seen = []

    def callback(step, record):
        seen.append((step, record))
        return step == 3

    model = fit(
        X, Y, callback=callback, **({"n_estimators": 50} if fit is FITS["adaboost"] else {})
    )
    assert model.n_nodes == 3
    assert "callback" in model.record.stop_reason
    assert [step for step, _ in seen] == [1, 2, 3]
    for step, record in seen:
        node = step - 1
        assert record.node == node
        assert record.feature == model.feature[node]
        assert record.threshold == model.threshold[node]
        assert isinstance(record.votes, tuple)
        assert record.votes == tuple(model.vote[node])
        assert record.certificate == pytest.approx(model.record.certificate[step], rel=1e-12)
        assert 0 < record.bound <= 1
    assert seen[0][1].bound == 1
    fewer = fit(X, Y, **({"n_estimators": 3} if fit is FITS["adaboost"] else {"max_nodes": 3}))
    for name in ("feature", "threshold", "next", "vote"):
        np.testing.assert_array_equal(getattr(model, name), getattr(fewer, name))


@builders
def test_callback_that_does_not_stop(fit):
    for answer in (None, False, 0):
        assert_identical(fit(X, Y), fit(X, Y, callback=lambda step, record, a=answer: a))


@builders
def test_error_in_a_callback_comes_through(fit):
    def callback(step, record):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fit(X, Y, callback=callback)
    assert fit(X, Y).n_nodes == 5
