"""Columns whose values are denormal made `fit_real_adaboost` models leak warnings of NumPy.

Warnings are errors in these tests. What has no finite number is infinite, or refused.
"""

import numpy as np
import pytest

import pboost as pb

LEAST = 5e-324
STEPS = np.tile([0.0, 1.0, 2.0, 3.0], 6)
Y = STEPS > 1
Y[5] = not Y[5]
COLUMNS = {
    "denormal": STEPS * LEAST,
    "denormal beside a number": np.where(STEPS == 0, 1e308, STEPS * LEAST),
    "denormal spread": 1e-310 + STEPS * LEAST,
    "small": STEPS * 1e-308,
}
WEAK = {
    **{f"feature, {c}": pb.weak.feature(center=c) for c in ("zero", "midrange", "mean")},
    "stump": pb.weak.stump(),
    "affine": pb.weak.affine(seed=0),
    "linear": pb.weak.linear(),
    "separator": pb.weak.separator(),
}


@pytest.mark.parametrize("weak", WEAK.values(), ids=WEAK)
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_no_warning(column, weak):
    X = np.column_stack([column, STEPS % 2])
    model = pb.fit_real_adaboost(X, Y, n_estimators=6, weak_learner=weak)
    assert (pb.predict(model, X) == Y).mean() >= 0.5
    assert np.isfinite(pb.decision_function(model, X)).all()
    assert "fit_real_adaboost" in pb.describe(model)
    if isinstance(model, pb.models.LinearModel):
        assert not np.isnan(model.coefficient).any()
        assert np.isfinite(model.intercept)


def test_the_intercept_does_not_change_where_slopes_are_finite():
    X = np.column_stack([STEPS, np.roll(STEPS, 1) % 3])
    model = pb.fit_real_adaboost(X, Y, n_estimators=6, weak_learner=pb.weak.feature(center="mean"))
    expected = X @ model.coefficient + model.intercept
    np.testing.assert_allclose(pb.decision_function(model, X), expected, rtol=1e-9)


def test_hypotheses_without_a_finite_leverage():
    X = (STEPS * LEAST)[:, None]

    def train(X, y, weight, rng):
        return lambda rows: np.asarray(rows)[:, 0]

    with pytest.raises(ValueError, match=r"^h: .*finite leverage.*multiply h by a power of two"):
        pb.fit_real_adaboost(X, Y, n_estimators=2, weak_learner=pb.weak.hypothesis(train))
    pb.fit_real_adaboost(X * 2.0**1000, Y, n_estimators=2, weak_learner=pb.weak.hypothesis(train))
