"""What losses, criteria and other values are called by other libraries."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb

X = np.random.default_rng(0).normal(size=(30, 2))
Y = (X[:, 0] > 0).astype(int)
LOSSES = {
    "mae": "'absolute_error'",
    "MAE": "'absolute_error'",
    "mse": "'squared_error'",
    "RMSE": "'squared_error'",
    "reg:squarederror": "'squared_error'",
    "l1": "'absolute_error'",
    "l2": "'squared_error'",
    "Poisson": "'poisson'",
    "count:poisson": "'poisson'",
    "binary": "'log_loss'",
    "binary:logistic": "'log_loss'",
    "multiclass": "'softmax'",
    "multi:softprob": "'softmax'",
    "cross_entropy": "'log_loss' for two classes or 'softmax' for more classes",
    "Logloss": "'log_loss' for two classes or 'softmax' for more classes",
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    for call in (pb.losses.check_loss, lambda loss: pb.fit_gradient_boosting(X, Y, loss=loss)):
        with pytest.raises(ValueError, match=r"^loss: expected one of") as caught:
            call(name)
        assert str(caught.value).endswith(f"or a Loss, got {name!r}; did you mean {LOSSES[name]}?")


@pytest.mark.parametrize(
    ("fit", "options", "ours"),
    [
        (pb.fit_cart, {"criterion": "log_loss"}, "'entropy'"),
        (pb.fit_cart, {"criterion": "mse", "task": "regression"}, "'squared_error'"),
        (
            pb.fit_random_forest,
            {"criterion": "friedman_mse", "task": "regression"},
            "'squared_error'",
        ),
        (pb.fit_cart, {"criterion": "Gini"}, "'gini'"),
        (pb.fit_gradient_boosting, {"search": "hist"}, "'binned'"),
        (pb.fit_gradient_boosting, {"growth": "depthwise"}, "'independent'"),
        (pb.fit_gradient_boosting, {"growth": "SymmetricTree"}, "'symmetric'"),
        (pb.fit_cart, {"growth": "lossguide"}, "'best_first'"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_other_values(fit, options, ours):
    name, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=f"^{name}: expected one of") as caught:
        fit(X, Y, **options)
    assert str(caught.value).endswith(f"got {value!r}; did you mean {ours}?")


def test_other_names_get_no_hint():
    for name in ("nonsense", "cox"):
        with pytest.raises(ValueError, match=f"or a Loss, got {name!r}$"):
            pb.losses.check_loss(name)
    with pytest.raises(ValueError, match=r"got 'mae'$"):
        pb.fit_cart(X, Y, criterion="mae")  # there is none for classes
