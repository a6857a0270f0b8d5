"""Calibrated models: their maps, what they say, their files, and what cannot be calibrated."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from functools import partial

import inspected
import numpy as np
import pytest
from reference import calibration as reference
from shallow import PLAIN

import pboost as pb
from pboost.data.resampling import assign_folds
from pboost.inspection.calibration import isotonic, platt

RNG = np.random.default_rng(11)
N, D = inspected.X.shape
CAL = RNG.normal(size=(160, D))
NOISE = RNG.normal(size=160)
LABELS = {
    2: CAL[:, 0] + NOISE > 0,
    3: np.digitize(CAL[:, 0] + NOISE, [-0.5, 0.7]),
}
METHODS = ["platt", "isotonic"]
#: Those that tell labels.
KINDS = [kind for kind in inspected.EVERY if "numbers" not in kind]
MADE: dict = {}


def made(kind, method):
    if (kind, method) not in MADE:
        model = inspected.made(kind)
        labels = model.classes[LABELS[len(model.classes)].astype(int)]
        MADE[kind, method] = pb.calibrate(model, CAL, labels, method=method)
    return MADE[kind, method]


def whole_values(model, rows):
    """Return the decision values (n, K) of a model, shares where it has no others."""
    try:
        score = pb.decision_function(model, rows)
    except TypeError:
        score = pb.predict_proba(model, rows)
    if score.ndim == 1:
        return score[:, None]
    return score[:, 1:] - score[:, :1] if len(model.classes) == 2 else score


VALUES = {
    "many": RNG.normal(size=60),
    "ties": RNG.integers(0, 5, size=60).astype(float),
    "equal": np.full(60, 2.5),
    "two": np.repeat([0.0, 1.0], 30),
    "far": 1e9 + RNG.normal(size=60),
    "small": 1e-9 * RNG.normal(size=60),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("weighted", [False, True])
def test_maps_are_those_of_the_twin(kind, weighted):
    values = VALUES[kind]
    spread = values.std() or 1.0
    is_one = (values - values.mean()) / spread + NOISE[:60] > 0
    weight = RNG.exponential(size=60) if weighted else np.ones(60)
    slope, intercept = platt(values, is_one, weight)
    if kind == "equal":
        assert slope == 0
        mass = weight[is_one].sum(), weight[~is_one].sum()
        mean = mass[0] * (mass[0] + 1) / (mass[0] + 2) + mass[1] / (mass[1] + 2)
        share = 1 / (1 + np.exp(-intercept))
        np.testing.assert_allclose(share, mean / sum(mass), rtol=1e-12)
    else:
        scaled = (values - values.mean()) / spread  # the twin takes no care of scales
        a, b = reference.platt(scaled.tolist(), is_one.tolist(), weight.tolist())
        odds = a * scaled + b
        np.testing.assert_allclose(slope * values + intercept, odds, rtol=1e-5, atol=1e-6)
    knot, share = isotonic(values, is_one, weight)
    twin = reference.isotonic(values.tolist(), is_one.tolist(), weight.tolist())
    for x in (*np.unique(values), values.min() - 1, values.max() + 1, *values[:9] / 3):
        expected = reference.between(x, *twin)
        assert np.interp(x, knot, share) == pytest.approx(expected, rel=1e-12, abs=1e-13)
    assert (np.diff(knot) > 0).all()
    assert (np.diff(share) >= 0).all()
    same = (share[2:] == share[1:-1]) & (share[1:-1] == share[:-2])
    assert not same.any()


def test_separable_values_have_a_finite_slope():
    values, is_one = np.arange(40.0), np.arange(40) > 25
    slope, intercept = platt(values, is_one, np.ones(40))
    a, b = reference.platt(((values - 20) / 10).tolist(), is_one.tolist(), [1.0] * 40)
    np.testing.assert_allclose([slope * 10, intercept + slope * 20], [a, b], rtol=1e-6)
    assert 0.5 < 1 / (1 + np.exp(-(slope * 26 + intercept))) < 14 / 15
    # Values that nothing in float64 can be said of beyond their order.
    slope, intercept = platt(values * 1e300, is_one, np.ones(40))
    assert np.isfinite([slope, intercept]).all()
    assert slope > 0


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_copies(method):
    model = inspected.made("chain")
    y = model.classes[LABELS[2].astype(int)]
    times = RNG.integers(0, 4, size=len(CAL))
    calibrated = pb.calibrate(model, CAL, y, method=method, sample_weight=times)
    copies = pb.calibrate(model, CAL.repeat(times, axis=0), y.repeat(times), method=method)
    a, b = (pb.predict_proba(each, CAL) for each in (calibrated, copies))
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert calibrated.settings["rows"] == np.count_nonzero(times)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_model_of_labels(kind, method):
    model, inner = made(kind, method), inspected.made(kind)
    values = whole_values(inner, inspected.X[:60])
    chance = model.chances(values)
    share = pb.predict_proba(model, inspected.X[:60])
    if len(model.classes) == 2:
        expected = np.column_stack([1 - chance, chance])
    else:
        total = chance.sum(axis=1, keepdims=True)
        expected = np.where(total > 0, chance / np.where(total > 0, total, 1), 1 / 3)
    np.testing.assert_allclose(share, expected, atol=1e-12)
    np.testing.assert_allclose(share.sum(axis=1), 1)
    labels = pb.predict(model, inspected.X[:60])
    np.testing.assert_array_equal(labels, model.classes[share.argmax(axis=1)])
    score = pb.decision_function(model, inspected.X[:60])
    assert np.isfinite(score).all()
    assert score.shape == ((60,) if len(model.classes) == 2 else (60, 3))
    np.testing.assert_array_equal(
        pb.prediction_cost(model, inspected.X[:60]), pb.prediction_cost(inner, inspected.X[:60])
    )
    np.testing.assert_array_equal(pb.feature_importances(model), pb.feature_importances(inner))
    assert pb.describe(inner).splitlines()[0] in pb.describe(model)
    assert pb.describe(model).startswith(f"calibrate: {method}, on 160 rows\n")
    explanation = pb.explain(model, inspected.X[5])
    assert explanation.label == labels[5]
    np.testing.assert_array_equal(
        explanation.contributions, pb.explain(inner, inspected.X[5]).contributions
    )
    assert f"calibrated: {model.classes[0].item()!r} {share[5, 0]:.4f}, " in str(explanation)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["chain", "cart, three", "forest", "sbpmt, three", "samme"])
def test_files_and_pickles(kind, method, tmp_path):
    model = made(kind, method)
    pb.save(model, tmp_path / "model.npz")
    for other in (pb.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert type(other) is pb.models.CalibratedModel
        assert other.settings == model.settings
        assert pb.describe(other) == pb.describe(model)
        a, b = pb.decision_function(other, CAL), pb.decision_function(model, CAL)
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["chain", "stagewise", "sbpmt, three", "samme", "soft tree"])
def test_stages_end_with_the_model(kind, method):
    model, inner = made(kind, method), inspected.made(kind)
    stages = list(pb.staged_decision_function(model, CAL))
    assert len(stages) == len(list(pb.staged_decision_function(inner, CAL)))
    np.testing.assert_allclose(stages[-1], pb.decision_function(model, CAL), atol=1e-12)


@pytest.mark.filterwarnings("ignore:X_cal. .* rows equal rows:UserWarning")
@pytest.mark.parametrize("method", METHODS)
def test_routes(method):
    soft = made("soft chain", method)
    expected = pb.decision_function(inspected.made("soft chain"), CAL, "expected")
    np.testing.assert_array_equal(
        pb.decision_function(soft, CAL, "expected"), soft.calibrated(expected)
    )


@pytest.mark.filterwarnings("ignore:X_cal. .* rows equal rows:UserWarning")
@pytest.mark.parametrize("method", METHODS)
def test_rows_that_leave_early_do(method):
    full = inspected.made("stagewise")
    small = pb.early_exit(full, CAL, mean_comparisons=0.6 * pb.prediction_cost(full, CAL).mean())
    y = full.classes[LABELS[2].astype(int)]
    model = pb.calibrate(small, CAL, y, method=method)
    for exit in (None, "none"):
        np.testing.assert_array_equal(
            pb.prediction_cost(model, CAL, exit=exit), pb.prediction_cost(small, CAL, exit=exit)
        )
    np.testing.assert_array_equal(
        pb.prediction_cost(model, CAL, exit="proven"), pb.prediction_cost(full, CAL)
    )
    again = pb.calibrate(pb.calibrate(small, CAL, ~y, method="platt"), CAL, y, method=method)
    assert again.model is small
    assert pb.describe(again) == pb.describe(model)
    with pytest.raises(ValueError, match="got a CalibratedModel with one"):
        pb.early_exit(model, CAL, mean_comparisons=9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["chain", "forest, three", "samme", "rest", "cart", "stagewise"])
def test_values_of_a_row_that_are_asked_for(kind, method):
    model = made(kind, method)
    rows = inspected.X[:8]
    labels, scores = pb.predict(model, rows), pb.decision_function(model, rows)
    calls = [0, 0]
    for row, label, score in zip(rows, labels, scores, strict=True):
        full_outcome = pb.acquisition.predict_with_acquisition(model, row, exit="none")
        assert full_outcome.label == label
        assert np.array_equal(full_outcome.score, score)
        ask = {j: partial(row.item, j) for j in range(D)}
        early = pb.acquisition.predict_with_acquisition(model, ask)
        assert (early.label, early.is_settled) == (label, True)
        assert ((early.bounds[0] <= score) & (score <= early.bounds[1])).all()
        outcome = pb.acquisition.predict_with_acquisition(model, ask, budget=1)
        assert ((outcome.bounds[0] <= score) & (score <= outcome.bounds[1])).all()
        calls[0] += early.calls
        calls[1] += pb.acquisition.predict_with_acquisition(model, ask, exit="none").calls
    assert calls[0] <= calls[1]


def test_labels_follow_probabilities():
    """A model that has learnt the opposite of what holds here."""
    X = np.arange(200.0)[:, None]
    model = pb.fit_adaboost(X, X[:, 0] < 100, n_estimators=1)
    y = X[:, 0] >= 100
    X += 0.1  # rows that were not seen
    platts = pb.calibrate(model, X, y)
    assert platts.slope[0] < 0
    assert (pb.predict(platts, X) == y).all()
    flat = pb.calibrate(model, X, y, method="isotonic")
    assert pb.predict_proba(flat, X).tolist() == [[0.5, 0.5]] * 200
    assert not pb.predict(flat, X).any()


@pytest.mark.parametrize("method", METHODS)
def test_equal_rows(method):
    model = inspected.made("cart, three")
    y = model.classes[[0, 0, 1, 2]]
    calibrated = pb.calibrate(model, np.zeros((4, D)), y, method=method)
    share = pb.predict_proba(calibrated, CAL)
    np.testing.assert_array_equal(share, share[:1].repeat(len(CAL), axis=0))
    if method == "isotonic":
        np.testing.assert_allclose(share[0], [0.5, 0.25, 0.25])


def test_probabilities_of_none():
    """Where each label has probability 0, all have the same."""
    model = made("cart, three", "isotonic")
    none = replace(model, share=np.zeros(len(model.share)))
    np.testing.assert_allclose(pb.predict_proba(none, CAL), 1 / 3)


def test_frames_and_missing_values():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(CAL, columns=list("abcdefgh"[:D])).mask(RNG.random(CAL.shape) < 0.1)
    frame["kind"] = RNG.choice(["u", "v", "w"], size=len(CAL))
    full_model = pb.fit_random_forest(frame[:80], LABELS[3][:80], n_estimators=5, rng=0)
    model = pb.calibrate(full_model, frame[80:], LABELS[3][80:])
    assert model.feature_names == tuple(frame.columns)
    turned = frame[frame.columns[::-1]]
    np.testing.assert_array_equal(pb.predict_proba(model, turned), pb.predict_proba(model, frame))
    assert "\ncalibrated: 0 0." in str(pb.explain(model, frame.iloc[90]))


CHAIN = partial(inspected.made, "chain")


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"method": "sigmoid"}, ValueError, "method: expected one of 'platt'"),
        ({"model": "m"}, TypeError, "model: expected a model"),
        ({"X_cal": CAL[:0], "y_cal": []}, ValueError, "X_cal: expected calibration rows, got none"),
        ({"X_cal": CAL[:, :2]}, ValueError, "columns"),
        ({"y_cal": LABELS[2][:9]}, ValueError, "y_cal: expected 160 labels, one per row of X_cal"),
        ({"y_cal": ["a"] * 160}, ValueError, "y_cal: expected class labels of the model"),
        ({"sample_weight": -np.ones(160)}, ValueError, "sample_weight: expected finite numbers"),
        ({"sample_weight": 1.0 * LABELS[2]}, ValueError, "y_cal: .* every class .* none of"),
    ],
    ids=["method", "model", "none", "columns", "length", "labels", "weights", "weightless"],
)
def test_bad_input(options, error, said):
    model = options.pop("model", None) or CHAIN()
    y = CHAIN().classes[LABELS[2].astype(int)]
    arguments = {"X_cal": CAL, "y_cal": y} | options
    with pytest.raises(error, match=said):
        pb.calibrate(model, **arguments)


def test_labels_that_are_not_there():
    labels = CHAIN().classes
    with pytest.raises(
        ValueError, match=r"got .* class .*: the probability for rows of other classes"
    ):
        pb.calibrate(CHAIN(), CAL, labels[[0] * 160])
    three = inspected.made("cart, three")
    y = three.classes[LABELS[3] % 2]
    with pytest.raises(ValueError, match=f"none of class {three.classes[2].item()!r}"):
        pb.calibrate(three, CAL, y)
    with pytest.raises(NotImplementedError, match="expected a classifier"):
        pb.calibrate(inspected.made("cart, numbers"), CAL, NOISE)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"slope": [1.0, 2.0], "intercept": [1.0, 2.0]}, "slope: expected 1 numbers"),
        ({"intercept": None}, "slope: expected either slope and intercept, or knot"),
        ({"knot": [1.0], "share": [1.0], "start": [0, 1]}, "expected either slope and intercept"),
        ({"slope": [np.nan]}, "slope: expected finite"),
    ],
    ids=["two", "half", "both", "nan"],
)
def test_wrong_lines(fields, said):
    with pytest.raises(ValueError, match=said):
        replace(made("chain", "platt"), **fields)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"knot": [1.0, 1.0], "share": [0.1, 0.2], "start": [0, 2]},
            "knot: expected increasing numbers",
        ),
        (
            {"knot": [1.0, 2.0], "share": [0.3, 0.2], "start": [0, 2]},
            "share: expected nondecreasing",
        ),
        (
            {"knot": [1.0, 2.0], "share": [0.3, 1.2], "start": [0, 2]},
            "share: expected nondecreasing",
        ),
        ({"knot": [1.0, 2.0], "share": [0.3], "start": [0, 2]}, "one share per knot"),
        ({"knot": [1.0, 2.0], "share": [0.3, 0.4], "start": [0, 3]}, "start: expected numbers"),
        ({"knot": [1.0, 2.0], "share": [0.3, 0.4], "start": [0, 1, 2]}, "start: expected 2"),
        ({"model": inspected.made("cart, numbers")}, "model: expected a classifier"),
    ],
    ids=["ties", "falls", "above", "short", "end", "maps", "regression"],
)
def test_wrong_steps(fields, said):
    with pytest.raises(ValueError, match=said):
        replace(made("chain", "isotonic"), **fields)


def mean_1(weight):
    """Return weights in the unit in which scikit-learn counts them as rows, as we do in any."""
    return weight / weight.mean()


SKLEARN = {"platt": "sigmoid", "isotonic": "isotonic"}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["AdaBoost", "Cart", "RandomForest", "GradientBoosting"])
@pytest.mark.parametrize("labels", [2, 3])
def test_equal_to_sklearn(name, labels, weighted, method):
    pytest.importorskip("sklearn.frozen", reason="scikit-learn is not installed")
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    import pboost.sklearn

    small = {"AdaBoost": {"n_estimators": 8}, "Cart": {"min_samples_leaf": 5}}
    small |= {
        "RandomForest": {"n_estimators": 6, "random_state": 0},
        "GradientBoosting": {"n_estimators": 5},
    }
    estimator = getattr(pboost.sklearn, f"{name}Classifier")(**small[name])
    y = LABELS[labels]
    weight = mean_1(RNG.exponential(size=100)) if weighted else None
    estimator.fit(CAL[:60], y[:60])
    other = CalibratedClassifierCV(FrozenEstimator(estimator), method=SKLEARN[method])
    with warnings.catch_warnings():  # that weights are not those of the frozen estimator's fit
        warnings.simplefilter("ignore")
        other.fit(CAL[60:], y[60:], sample_weight=weight)
    model = pb.calibrate(estimator.model_, CAL[60:], y[60:], method=method, sample_weight=weight)
    rows = np.vstack([CAL, 3 * CAL[:50]])
    np.testing.assert_allclose(
        pb.predict_proba(model, rows), other.predict_proba(rows), rtol=0, atol=1e-6
    )


# Out of fold

FITS = {
    "chain": partial(pb.fit_adaboost, n_estimators=8),
    "cart": partial(pb.fit_cart, min_samples_leaf=5),
    "sum": partial(pb.fit_gradient_boosting, n_estimators=5, **PLAIN),
}
OF_FITS = {
    "chain": ("AdaBoostClassifier", {"n_estimators": 8}),
    "cart": ("CartClassifier", {"min_samples_leaf": 5}),
    "sum": ("GradientBoostingClassifier", {"n_estimators": 5, **PLAIN}),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("labels", [2, 3])
def test_out_of_fold_is_that_of_sklearn(kind, labels, weighted, method):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import PredefinedSplit

    import pboost.sklearn

    y, fit = LABELS[labels], FITS[kind]
    if kind == "sum":
        fit = partial(fit, loss="log_loss" if labels == 2 else "softmax")
    weight = mean_1(RNG.exponential(size=len(CAL))) if weighted else None
    calibrated = pb.calibrate(fit, CAL, y, cv=4, rng=5, method=method, sample_weight=weight)
    assert calibrated.settings["cv"] == 4
    parts = PredefinedSplit(assign_folds(y, weight, 4, np.random.default_rng(5)))
    name, options = OF_FITS[kind]
    other = CalibratedClassifierCV(
        getattr(pboost.sklearn, name)(**options), cv=parts, method=SKLEARN[method], ensemble=False
    ).fit(CAL, y, sample_weight=weight)
    rows = np.vstack([CAL, 3 * CAL[:50]])
    np.testing.assert_allclose(
        pb.predict_proba(calibrated, rows), other.predict_proba(rows), rtol=0, atol=1e-6
    )
    # Decision values of rows that a model has seen would be others.
    with pytest.warns(UserWarning, match="rows equal rows"):
        seen = pb.calibrate(calibrated.model, CAL, y, method=method, sample_weight=weight)
    assert np.abs(pb.predict_proba(seen, rows) - pb.predict_proba(calibrated, rows)).max() > 1e-3


def test_out_of_fold_of_what_draws_and_of_frames(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(CAL, columns=list("abcdef")[:D]).assign(word=np.where(NOISE > 0, "u", "v"))
    y = np.where(LABELS[2], "yes", "no")
    fit = partial(pb.fit_random_forest, n_estimators=5)
    first, same = (pb.calibrate(fit, frame, y, cv=3, rng=1) for _ in range(2))
    other = pb.calibrate(fit, frame, y, cv=3, rng=2)
    assert pb.predict_proba(first, frame).tobytes() == pb.predict_proba(same, frame).tobytes()
    assert not np.array_equal(pb.predict_proba(first, frame), pb.predict_proba(other, frame))
    assert first.table is not None
    assert pb.describe(first).startswith("calibrate: platt, 3-fold cross-validation on 160 rows\n")
    pb.save(first, tmp_path / "one.npz")
    again = pb.load(tmp_path / "one.npz")
    assert again.settings["cv"] == 3
    assert pb.predict_proba(again, frame).tobytes() == pb.predict_proba(first, frame).tobytes()


def test_out_of_fold_rows_of_no_weight_count_for_nothing():
    y, weight = LABELS[2].copy(), np.ones(len(CAL))
    weight[::5] = 0
    calibrated = pb.calibrate(FITS["chain"], CAL, y, cv=4, rng=0, sample_weight=weight)
    y[::5] = ~y[::5]
    other = pb.calibrate(FITS["chain"], CAL, y, cv=4, rng=0, sample_weight=weight)
    assert calibrated.settings["rows"] == np.count_nonzero(weight)
    np.testing.assert_allclose(pb.predict_proba(calibrated, CAL), pb.predict_proba(other, CAL))


def test_what_cannot_be_calibrated_out_of_fold():
    model = inspected.made("chain")
    with pytest.raises(TypeError, match=r"model: expected a function .* cv, got a fitted"):
        pb.calibrate(model, CAL, LABELS[2], cv=3)
    with pytest.raises(TypeError, match="model: expected a fitted model, got a function"):
        pb.calibrate(pb.fit_adaboost, CAL, LABELS[2])
    with pytest.raises(ValueError, match="cv: expected"):
        pb.calibrate(pb.fit_adaboost, CAL, LABELS[2], cv=1)
    with pytest.raises(ValueError, match="rng: expected None without cv"):
        pb.calibrate(model, CAL, LABELS[2], rng=0)
    y = LABELS[3].copy()
    y[y == 2] = 1
    y[7] = 2
    with (
        pytest.warns(UserWarning, match="fewer than the 3 folds"),
        pytest.raises(ValueError, match="every class in each training part, got none of class 2"),
    ):
        pb.calibrate(pb.fit_cart, CAL, y, cv=3, rng=0)
    with pytest.raises(NotImplementedError, match="fits a classifier"):
        pb.calibrate(partial(pb.fit_cart, task="regression"), CAL, LABELS[3], cv=3, rng=0)
