"""One tree for all labels beside one for each: what is compared is what the models say."""

from __future__ import annotations

import numpy as np
import pytest
from example_modules import imported

import pboost as pb

pytestmark = pytest.mark.full

MODULES = "softmax_trees", "boosted_sets", "oblique_trees", "table_command"


@pytest.mark.parametrize("trees", ["multi_output_tree", "one_output_per_tree"])
def test_figures_are_those_of_the_models(trees, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.2, 2.5]).astype(np.int64)
    with imported(*MODULES) as example:
        monkeypatch.setattr(example, "ROUNDS", 9)
        monkeypatch.setattr(example, "STAGES", (2, 9))
        monkeypatch.setattr(example, "BUDGETS", (1, 20))
        data = example.DataSet("some", X, (), y, np.arange(200) % 5)
        actual = example.curve(data, 0, trees, 0.3)
        test = data.fold == 0
        model = pb.fit_gradient_boosting(
            X[~test],
            y[~test],
            loss="softmax",
            multi_strategy=trees,
            n_estimators=9,
            max_depth=None,
            max_leaf_nodes=8,
            learning_rate=0.3,
            leaf_update="newton",
        )
        stages = [pb.models.truncate(model, k) for k in range(1, 10)]
        cost = [pb.prediction_cost(stage, X[test]).mean() for stage in stages]
        np.testing.assert_allclose(example.costs(model, X[test]), cost)
        fits = max([k for k in range(9) if cost[k] <= 20], default=0)
        for at, k in enumerate((1, 8, 0, fits)):
            share = pb.predict_proba(stages[k], X[test])
            np.testing.assert_allclose(actual[at], example.losses(share, y[test]))
