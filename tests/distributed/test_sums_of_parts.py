"""Sums of numbers in several places are those that NumPy returns of all, bit for bit."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pboost.distributed.engine import sum_of_parts, sum_parts


@given(st.integers(0, 5000), st.lists(st.integers(0, 5000), max_size=6), st.integers(0, 9))
def test_the_sum_does_not_depend_on_places(n, cuts, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n) * np.exp(9 * rng.normal(size=n))
    bounds = [0, *sorted(min(cut, n) for cut in cuts), n]
    parts = [sum_parts(values[a:b], a, n) for a, b in pairwise(bounds)]
    assert sum_of_parts(parts, n) == float(values.sum())
    assert all(len(part) < 40 for part in parts)
