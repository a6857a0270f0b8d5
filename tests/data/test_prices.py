"""Prices of columns and of groups, as options say them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pboost.data.feature_costs import plain_cost_groups, plain_feature_costs, read_feature_costs

NAMES = ("age", "iron", "sugar", "mri")


def read(feature_costs=None, cost_groups=None, comparison_cost=None, names=NAMES):
    """Return what is read, and that settings, which are stored as JSON, say the same."""
    said = {
        "feature_costs": feature_costs,
        "cost_groups": cost_groups,
        "comparison_cost": comparison_cost,
    }
    actual = read_feature_costs(said, names, 4)
    plain = {**said, "feature_costs": plain_feature_costs("feature_costs", feature_costs)}
    plain["cost_groups"] = plain_cost_groups("cost_groups", cost_groups)
    again = read_feature_costs(json.loads(json.dumps(plain)), names, 4)
    if actual is not None:
        assert np.array_equal(actual.cost, again.cost)
        assert np.array_equal(actual.item, again.item)
        assert actual.comparison == again.comparison
    return actual


def costs(found, *columns):
    """Return what it costs to read these columns."""
    return float(found.of_columns(np.isin(np.arange(4), columns)[None])[0])


def test_columns_cost_what_they_cost():
    assert read() is None
    for feature_costs in (
        [1, 2, 0, 4],
        np.array([1.0, 2, 0, 4]),
        {"age": 1, "iron": 2, "mri": 4},
        {0: 1, 1: 2, "mri": 4},
    ):
        actual = read(feature_costs)
        assert [costs(actual, j) for j in range(4)] == [1, 2, 0, 4]
        assert costs(actual) == 0
        assert costs(actual, 0, 1, 3) == 7
        assert actual.comparison == pytest.approx(0.0175)
    assert read([1, 2, 0, 4], comparison_cost=0.5).comparison == 0.5
    assert read([0, 0, 0, 0]).comparison == 1.0


def test_a_group_is_paid_once():
    for cost_groups in (
        {"blood": ["iron", "sugar"]},
        [["iron", "sugar"]],
        [(1, 2)],
        {"blood": [1, 2]},
    ):
        actual = read([1, 2, 3, 4], cost_groups)  # as much as the dearest
        assert [costs(actual, j) for j in range(4)] == [1, 3, 3, 4]
        assert costs(actual, 1, 2) == 3
    actual = read({"age": 1, "blood": 2.5, "mri": 40}, {"blood": ["iron", "sugar"]})
    assert [costs(actual, 1), costs(actual, 2), costs(actual, 1, 2)] == [2.5, 2.5, 2.5]
    # A first test of blood costs the draw, too.
    actual = read({"blood": 2.1, "iron": 5.17, "sugar": 7.76}, {"blood": ["iron", "sugar"]})
    assert costs(actual, 1) == pytest.approx(7.27)
    assert costs(actual, 2) == pytest.approx(9.86)
    assert costs(actual, 1, 2) == pytest.approx(15.03)
    assert actual.comparison == pytest.approx(0.01 * (7.27 + 9.86) / 4)


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        (
            {"feature_costs": [1, 2]},
            ValueError,
            "feature_costs: expected 4 numbers, one per feature, got 2",
        ),
        (
            {"feature_costs": [1, 2, 3, -1]},
            ValueError,
            r"feature_costs\[3\]: expected a number in \[0",
        ),
        (
            {"feature_costs": [1, 2, np.nan, 1]},
            ValueError,
            r"feature_costs\[2\]: expected a number in",
        ),
        (
            {"feature_costs": {"iron": -1}},
            ValueError,
            r"feature_costs\['iron'\]: expected a number in",
        ),
        (
            {"feature_costs": {"iron": "dear"}},
            TypeError,
            r"feature_costs\['iron'\]: expected a number",
        ),
        (
            {"feature_costs": {"gold": 1}},
            ValueError,
            "feature_costs: expected column names of X, got 'gold'",
        ),
        (
            {"feature_costs": 3.0},
            TypeError,
            "feature_costs: expected one number per feature, or a mapping",
        ),
        ({"feature_costs": "iron"}, TypeError, "feature_costs: expected one number per feature"),
        ({"cost_groups": [[0, 1]]}, ValueError, "cost_groups: expected None without feature_costs"),
        (
            {"comparison_cost": 1.0},
            ValueError,
            "comparison_cost: expected None without feature_costs",
        ),
        (
            {"feature_costs": [1] * 4, "comparison_cost": 0.0},
            ValueError,
            "comparison_cost: expected a",
        ),
        (
            {"feature_costs": [1] * 4, "cost_groups": [[0, 1], [1, 2]]},
            ValueError,
            "got column 'iron' in two",
        ),
        ({"feature_costs": [1] * 4, "cost_groups": [[0, 0]]}, ValueError, "got column 'age' twice"),
        (
            {"feature_costs": [1] * 4, "cost_groups": [[0, 9]]},
            ValueError,
            "cost_groups: expected an integer from",
        ),
        (
            {"feature_costs": [1] * 4, "cost_groups": 3},
            TypeError,
            "cost_groups: expected a mapping of names",
        ),
        (
            {"feature_costs": {"iron": 1}, "cost_groups": {"iron": ["iron"]}},
            ValueError,
            "names other than",
        ),
    ],
)
def test_a_bad_price_is_refused(said, error, words):
    with pytest.raises(error, match=words):
        read(**said)
