"""`fit_one_vs_rest` asked whether an array given as `weak_learner` is true."""

import numpy as np
import pytest

import pboost as pb

X, Y = np.arange(12.0).reshape(-1, 1), np.arange(12) % 3


@pytest.mark.parametrize("weak", [np.array([1, 2]), np.array([]), None, 0])
def test_what_is_no_weak_learner_is_named(weak):
    with pytest.raises(TypeError, match=r"^weak_learner: expected one of pboost\.weak,"):
        pb.fit_one_vs_rest(pb.fit_adaboost, X, Y, n_estimators=2, weak_learner=weak)
