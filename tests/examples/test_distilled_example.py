"""What imitation is worth within a budget."""

from __future__ import annotations

import numpy as np
import pytest
from example_modules import imported

pytestmark = pytest.mark.full


def test_both_keep_their_budgets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    names = ("boosted_sets", "oblique_trees", "table_command")
    with imported("distilled", *names) as example:
        actual = example.tried(X, y, (), np.arange(500) % 5, 0)
        text = example.written({"one": actual, "other": actual})
    for name in (example.PLAIN, example.STUDENT):
        assert (actual[name][1] < 1.25 * np.array(example.BUDGETS)).all()
    assert "+0.00" in text or "-" in text
