"""The search over error and cost at once."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
from example_modules import imported

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def example():
    with imported("grid_of_costs") as module:
        yield module


def test_front(example):
    results = {
        "mean_test_score": np.array([-0.3, -0.2, -0.2, -0.5, -0.1]),
        "mean_test_cost": -np.array([5.0, 7.0, 6.0, 6.0, 9.0]),
    }
    assert example.front(results) == [0, 2, 4]


def test_searches(example, monkeypatch, capsys):
    rows = np.random.default_rng(0).normal(size=(160, 3))
    noise = np.random.default_rng(1).normal(size=160)
    data = {"drawn": lambda return_X_y: (rows, (rows[:, 0] + 0.5 * noise > 0).astype(int))}
    monkeypatch.setattr(example, "SETS", data)
    example.main(["--quick"])
    output = capsys.readouterr().out
    lines = output.splitlines()
    assert lines[0].startswith("drawn: settings that no other beats")
    within = next(line for line in lines if line.strip().startswith("best within 20"))
    assert float(within.split()[-1]) <= 20
    assert "BudgetClassifier: " in lines[-1]
