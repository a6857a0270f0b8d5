"""Decision values of least loss before anything is fitted: means."""

import math

import numpy as np
import pytest

from pboost.losses import check_loss


@pytest.mark.parametrize("of", ["squared_error", "poisson"])
def test_means_are_rounded_once_and_do_not_depend_on_the_order_of_rows(of):
    rng = np.random.default_rng(0)
    loss = check_loss(of)
    for scale in (1.0, 1e-308, 1e300, 10.0 ** rng.integers(-9, 9, 999)):
        y, weight = np.abs(rng.normal(size=999)) * scale, rng.random(999)
        actual = loss.constant(y, weight)
        mean = math.fsum(weight * y) / math.fsum(weight)
        near = mean if of == "squared_error" else np.log(mean)
        assert actual == pytest.approx(near, rel=1e-15, abs=0)
        for _ in range(5):
            order = rng.permutation(999)
            assert loss.constant(y[order], weight[order]) == actual
    assert loss.constant(np.full(4, 5e-324), np.ones(4)) != 0
