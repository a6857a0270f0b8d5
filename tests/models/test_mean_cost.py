"""Mean comparisons of training rows, as models know them without the rows."""

from __future__ import annotations

import inspected
import numpy as np
import pytest

import pboost as pb

#: Those of which trees are grown on other rows than those that were given.
DRAWN = [kind for kind in inspected.EVERY if kind.startswith(("forest", "bagging", "sbpmt"))]


def whole_cost(model):
    return pb.prediction_cost(model, inspected.X).mean()


@pytest.mark.parametrize("kind", inspected.EVERY)
def test_mean_cost_is_that_of_the_training_rows(kind):
    model = inspected.made(kind)
    if kind in DRAWN:
        assert model.mean_prediction_cost == pytest.approx(whole_cost(model), rel=0.15)
    elif "soft" in kind or kind in ("gaussian", "sampled"):
        assert np.isfinite(model.mean_prediction_cost)  # expected, under answers that err
    else:
        assert model.mean_prediction_cost == pytest.approx(whole_cost(model), rel=1e-9)


@pytest.mark.filterwarnings("ignore:X_cal. .* rows equal rows:UserWarning")
def test_models_around_models():
    full = inspected.made("stagewise")
    small = pb.early_exit(full, inspected.X, mean_comparisons=0.6 * full.mean_prediction_cost)
    calibrated = pb.calibrate(small, inspected.X, inspected.TWO)
    assert (
        small.mean_prediction_cost
        == calibrated.mean_prediction_cost
        == pytest.approx(whole_cost(small))
    )
