"""Models remember which rows they were fitted to, and calibration on these is told."""

import pickle
import warnings

import inspected
import numpy as np
import pytest

import pboost as pb
from pboost.data.row_fingerprint import digest_of_rows

RNG = np.random.default_rng(5)
X = RNG.normal(size=(900, 4))
NOISE = RNG.normal(size=900)
Y = X[:, 0] + NOISE > 0
FIT, NEW = slice(0, 400), slice(400, 900)
CALLS = {
    "error_bound": pb.error_bound,
    "risk_threshold": lambda *rows: pb.risk_threshold(*rows, max_risk=0.3),
    "prediction_sets": pb.prediction_sets,
    "calibrate": pb.calibrate,
    "early_exit": lambda model, X, y: pb.early_exit(model, X, mean_comparisons=9),
}


@pytest.fixture(scope="module")
def model():
    return pb.fit_adaboost(X[FIT], Y[FIT], n_estimators=20)


def is_told(model, X, y, call=pb.error_bound):
    """Return whether a warning was given, which names this file."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call(model, X, y)
    assert all(item.filename == __file__ for item in told)
    return bool(told)


@pytest.mark.parametrize("name", CALLS)
def test_rows_that_were_fitted_to_are_told(model, name):
    call = CALLS[name]
    said = r"X_cal: about 400 of 400 calibration rows equal rows that the model was fitted to"
    with pytest.warns(UserWarning, match=said) as told:
        call(model, X[FIT], Y[FIT])
    assert told[0].filename == __file__
    assert not is_told(model, X[NEW], Y[NEW], call)
    some = np.r_[0:150, 400:700]
    assert is_told(model, X[some], Y[some], call)


def test_few_rows_of_many_are_found():
    """All rows are kept of a table of no more than that."""
    model = pb.fit_adaboost(X[:100], Y[:100], n_estimators=5)
    with pytest.warns(UserWarning, match="X_cal: 30 of 100 calibration rows equal"):
        pb.error_bound(model, X[70:170], Y[70:170])
    assert not is_told(model, X[100:], Y[100:])


@pytest.mark.parametrize("levels", [2, 3, 6])
def test_equal_rows_are_natural_where_there_are_few_values(levels):
    rng = np.random.default_rng(levels)
    table = rng.integers(0, levels, size=(1400, 5)).astype(float)
    y = table[:, 0] + rng.normal(size=1400) > (levels - 1) / 2
    model = pb.fit_boosted_tree(table[:300], y[:300], max_nodes=4)
    assert np.isin(digest_of_rows(table[300:]) >> 16, model.seen >> 16).any()
    assert not is_told(model, table[300:], y[300:])
    assert is_told(model, table[:300], y[:300]) == (levels > 2)


def test_held_out_rows_and_rows_that_set_the_model_are_told():
    custom_model = pb.fit_adaboost(
        X[FIT], Y[FIT], n_estimators=60, validation=0.3, n_iter_no_change=5, rng=0
    )
    np.testing.assert_array_equal(custom_model.seen, digest_of_rows(X[FIT]))
    for fit in (pb.fit_adaboost, pb.fit_gradient_boosting):
        model = fit(X[FIT], Y[FIT], validation=(X[400:600], Y[400:600]), n_estimators=9)
        np.testing.assert_array_equal(model.seen, digest_of_rows(X[:600]))
        assert is_told(model, X[400:600], Y[400:600])
        assert not is_told(model, X[600:], Y[600:])


def test_rows_of_an_exit_and_of_a_map_are_told(model):
    small = pb.early_exit(model, X[400:600], mean_comparisons=9)
    calibrated = pb.calibrate(small, X[600:750], Y[600:750])
    for rows in (slice(0, 400), slice(400, 600), slice(600, 750)):
        assert is_told(calibrated, X[rows], Y[rows])
    assert not is_told(calibrated, X[750:], Y[750:])
    weight = np.repeat([1.0, 0.0], 150)
    part = pb.calibrate(model, X[500:800], Y[500:800], sample_weight=weight)
    np.testing.assert_array_equal(part.seen, digest_of_rows(X[500:650]))
    assert not is_told(part, X[650:], Y[650:])


def test_students_have_seen_what_their_teachers_have():
    teacher = pb.fit_random_forest(X[FIT], Y[FIT], n_estimators=5, rng=0)
    student = pb.distill(teacher, X[300:500], mean_comparisons=5, n_synthetic=300, rng=0)
    np.testing.assert_array_equal(student.seen, digest_of_rows(X[:500]))


@pytest.mark.parametrize("kind", inspected.EVERY)
def test_every_model_remembers(kind, tmp_path):
    """All kinds are fitted to the same rows, but for the bags of members."""
    model = inspected.made(kind)
    actual = model.digests()
    assert len(actual) == 1
    expected = digest_of_rows(inspected.X)
    if not kind.startswith("bagging"):
        np.testing.assert_array_equal(actual[0], expected)
    assert np.isin(expected >> 16, actual[0] >> 16).mean() > 0.9
    copies = [pickle.loads(pickle.dumps(model))]
    if type(model).file_kind:
        pb.save(model, tmp_path / "model.npz")
        copies.append(pb.load(tmp_path / "model.npz"))
    for item in copies:
        assert item.seen is model.seen is None or item.seen.dtype == np.uint64
        np.testing.assert_array_equal(item.digests(), actual)


def test_models_of_one_table_agree_however_it_is_given(model):
    pandas = pytest.importorskip("pandas")
    for given in (
        pb.data.sort_columns(X[FIT]),
        pandas.DataFrame(X[FIT]),
        np.asfortranarray(X[FIT]),
    ):
        again = pb.fit_adaboost(given, Y[FIT], n_estimators=20)
        np.testing.assert_array_equal(again.seen, model.seen)
    binned = pb.fit_boosted_tree(pb.data.bin_columns(X[FIT]), Y[FIT], max_nodes=3)
    assert binned.seen is None
    assert not is_told(binned, X[FIT], Y[FIT])


def test_levels_and_names_are_those_of_the_model():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "u", "v"), "c": X[:, 2]})
    model = pb.fit_cart(frame[FIT], Y[FIT], max_depth=3)
    turned = frame[["c", "b", "a"]]
    assert is_told(model, turned[:200], Y[:200])
    assert not is_told(model, turned[400:], Y[400:])


def test_a_digest_of_another_shape_is_refused(model):
    from dataclasses import replace

    with pytest.raises(ValueError, match="seen: expected 1 dimensions"):
        replace(model, seen=np.zeros((2, 2), dtype=np.uint64))
    assert pb.models.truncate(model, 3).seen.tolist() == model.seen.tolist()
    with pytest.raises(ValueError, match="read-only"):
        model.seen[0] = 1
