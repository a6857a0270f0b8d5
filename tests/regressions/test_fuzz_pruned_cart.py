"""`fit_pruned_cart` with a binned search ended in an AssertionError: bins hold no values.

The trees of a binned search are tested on their folds by the values of X.
"""

import numpy as np
import pytest

import pboost as pb


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("as_list", [False, True])
def test_binned_search_is_pruned_as_the_exact_one(task, as_list):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (150, 5)).astype(float)
    y = X @ [3.0, 2.0, 1.0, 1.0, 0.0] + rng.normal(size=150)
    if task == "classification":
        y = np.where(y > 3.5, "high", "low")
    weight = rng.integers(0, 4, 150)
    # Of two values there is one cut, whatever the search.
    exact, binned = (
        pb.fit_pruned_cart(
            X.tolist() if as_list else X,
            y,
            task=task,
            search=search,
            cv=4,
            rng=1,
            sample_weight=weight,
        )
        for search in ("exact", "binned")
    )
    assert exact.n_leaves > 1
    np.testing.assert_array_equal(exact.feature, binned.feature)
    np.testing.assert_allclose(exact.pruning.error, binned.pruning.error, rtol=1e-9)
    np.testing.assert_allclose(exact.pruning.standard_error, binned.pruning.standard_error)
    assert (pb.predict(exact, X[weight > 0]) == pb.predict(binned, X[weight > 0])).all()


def test_prices_beyond_the_largest_number_are_refused():
    X, y = np.arange(12.0).reshape(-1, 1), np.arange(12) * 1e140
    with pytest.raises(ValueError, match=r"^y: expected numbers whose weighted squares"):
        pb.fit_pruned_cart(X, y, task="regression", cv=3, rng=0, sample_weight=np.full(12, 1e100))


def test_a_search_that_is_no_name():
    X, y = np.arange(12.0).reshape(-1, 1), np.arange(12) % 2
    with pytest.raises(ValueError, match=r"^search: expected one of"):
        pb.fit_bagging(pb.fit_cart, X, y, n_estimators=1, rng=0, search=np.array([1, 2]))
