"""Data frames: names are kept, checked and named in errors."""

import numpy as np
import pytest

import pboost as pb

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(50, 3)), columns=["length", "width", "weight"])
Y = np.where(FRAME["width"] + 0.2 * RNG.normal(size=50) > 0, "yes", "no")

builders = pytest.mark.parametrize(
    "fit",
    [
        lambda X, y, **k: pb.fit_adaboost(X, y, n_estimators=5, **k),
        lambda X, y, **k: pb.fit_boosted_tree(X, y, max_nodes=5, **k),
    ],
    ids=["adaboost", "tree"],
)


@builders
def test_names_are_kept(fit):
    model = fit(FRAME, pd.Series(Y))
    assert model.feature_names == ("length", "width", "weight")
    bare = fit(FRAME.to_numpy(), Y)
    assert bare.feature_names is None
    assert model.vote.tobytes() == bare.vote.tobytes()
    assert model.classes.tolist() == ["no", "yes"]


@builders
def test_reordered_names_are_put_in_order(fit):
    model = fit(FRAME, Y)
    expected = pb.decision_function(model, FRAME)
    shuffled = FRAME[["weight", "length", "width"]]
    for call in (pb.decision_function, pb.predict, pb.predict_proba, pb.prediction_cost):
        np.testing.assert_array_equal(call(model, shuffled), call(model, FRAME))
    assert pb.decision_function(model, FRAME.to_numpy()).tobytes() == expected.tobytes()
    certificate = pb.certificate(model, shuffled, Y)
    assert certificate == pytest.approx(pb.certificate(model), rel=1e-9)


@builders
def test_other_names_are_refused(fit):
    model = fit(FRAME, Y)
    with pytest.raises(ValueError, match=r"height|width"):
        pb.predict(model, FRAME.rename(columns={"width": "height"}))
    with pytest.raises(ValueError):
        pb.predict(model, FRAME[["length", "width"]])
    with pytest.raises(ValueError):
        pb.predict(model, FRAME.assign(height=1.0))


@builders
def test_duplicate_names_are_refused(fit):
    twice = FRAME.set_axis(["length", "width", "width"], axis=1)
    with pytest.raises(ValueError, match="width"):
        pb.predict(fit(FRAME, Y), twice)


@builders
@pytest.mark.parametrize("kind", ["object", "dates", "spans", "complex"])
def test_a_column_that_is_not_numeric_is_named(fit, kind):
    column = {
        "object": np.array([1, "x"] * 25, dtype=object),
        "dates": pd.date_range("2020-01-01", periods=50),
        "spans": pd.to_timedelta(np.arange(50), unit="D"),
        "complex": np.full(50, 1j),
    }[kind]
    with pytest.raises((ValueError, TypeError), match="colour"):
        fit(FRAME.assign(colour=column), Y)


@builders
@pytest.mark.parametrize("value", [-np.inf, np.inf])
def test_a_cell_that_is_not_finite_is_named(fit, value):
    bad = FRAME.copy()
    bad.iloc[37, 2] = value
    with pytest.raises(ValueError, match=r"(?=.*weight)(?=.*37)"):
        fit(bad, Y)
    bad.iloc[37, 2] = -np.inf
    with pytest.raises(ValueError, match=r"(?=.*weight)(?=.*37)"):
        pb.predict(fit(FRAME, Y), bad)


@builders
def test_numeric_columns_of_any_dtype(fit):
    mixed = pd.DataFrame(
        {
            "a": np.arange(50, dtype=np.int8),
            "b": RNG.normal(size=50).astype(np.float32),
            "c": RNG.random(50) < 0.5,
        }
    )
    model = fit(mixed, Y)
    plain = np.column_stack([mixed[c].to_numpy().astype(float) for c in mixed])
    np.testing.assert_array_equal(
        pb.decision_function(model, mixed), pb.decision_function(model, plain)
    )


@builders
def test_frame_and_weights_are_left_alone(fit):
    weight = pd.Series(RNG.uniform(0.5, 1, 50), index=range(100, 150))
    frame, before = FRAME.copy(), weight.copy()
    frame.index = range(200, 250)  # rows are taken in order, whatever the index
    model = fit(frame, pd.Series(Y, index=range(300, 350)), sample_weight=weight)
    pd.testing.assert_series_equal(weight, before)
    np.testing.assert_array_equal(frame.to_numpy(), FRAME.to_numpy())
    assert model.vote.tobytes() == fit(FRAME, Y, sample_weight=weight.to_numpy()).vote.tobytes()
