"""Rows of weight 0 moved the thresholds of trees with a binned search, and counted in their bins.

Weight 0 leaves a row out: the model is that of the other rows.
"""

import numpy as np
import pytest

import pboost as pb

FITS = {
    "cart": lambda X, y, **more: pb.fit_cart(X, y > 0, search="binned", max_bins=8, **more),
    "regression": lambda X, y, **more: pb.fit_cart(
        X, y, task="regression", search="binned", max_depth=4, **more
    ),
    "stagewise": lambda X, y, **more: pb.fit_gradient_boosting(
        X, y > 0, loss="log_loss", n_estimators=3, search="binned", **more
    ),
    "probit tree": lambda X, y, **more: pb.fit_probit_tree(
        X, y > 0, search="binned", min_samples_leaf=30, max_depth=2, max_iter=3, **more
    ),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_rows_of_weight_0_are_left_out(fit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] * X[:, 1] + rng.normal(size=300) / 2
    weight = rng.integers(0, 3, 300).astype(float)
    kept = weight > 0
    first_model = fit(X, y, sample_weight=weight)
    other = fit(X[kept], y[kept], sample_weight=weight[kept])
    new = rng.normal(size=(500, 3))
    for ask in (pb.predict, pb.prediction_cost):
        assert ask(first_model, new).tobytes() == ask(other, new).tobytes()
