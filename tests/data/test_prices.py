"""Prices of columns and of groups, as options say them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pboost.data.prices import plain_groups, plain_prices, read_prices

NAMES = ("age", "iron", "sugar", "mri")


def read(prices=None, groups=None, comparison_price=None, names=NAMES):
    """Return what is read, and that settings, which are stored as JSON, say the same."""
    said = {"prices": prices, "groups": groups, "comparison_price": comparison_price}
    actual = read_prices(said, names, 4)
    plain = {**said, "prices": plain_prices("prices", prices)}
    plain["groups"] = plain_groups("groups", groups)
    again = read_prices(json.loads(json.dumps(plain)), names, 4)
    if actual is not None:
        assert np.array_equal(actual.price, again.price)
        assert np.array_equal(actual.item, again.item)
        assert actual.comparison == again.comparison
    return actual


def costs(found, *columns):
    """Return what it costs to read these columns."""
    return float(found.of_columns(np.isin(np.arange(4), columns)[None])[0])


def test_columns_cost_what_they_cost():
    assert read() is None
    for prices in (
        [1, 2, 0, 4],
        np.array([1.0, 2, 0, 4]),
        {"age": 1, "iron": 2, "mri": 4},
        {0: 1, 1: 2, "mri": 4},
    ):
        actual = read(prices)
        assert [costs(actual, j) for j in range(4)] == [1, 2, 0, 4]
        assert costs(actual) == 0
        assert costs(actual, 0, 1, 3) == 7
        assert actual.comparison == pytest.approx(0.0175)
    assert read([1, 2, 0, 4], comparison_price=0.5).comparison == 0.5
    assert read([0, 0, 0, 0]).comparison == 1.0


def test_a_group_is_paid_once():
    for groups in ({"blood": ["iron", "sugar"]}, [["iron", "sugar"]], [(1, 2)], {"blood": [1, 2]}):
        actual = read([1, 2, 3, 4], groups)  # as much as the dearest
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
        ({"prices": [1, 2]}, ValueError, "prices: expected 4 numbers, one for each column, got 2"),
        ({"prices": [1, 2, 3, -1]}, ValueError, r"prices\[3\]: expected a number in \[0"),
        ({"prices": [1, 2, np.nan, 1]}, ValueError, r"prices\[2\]: expected a number in"),
        ({"prices": {"iron": -1}}, ValueError, r"prices\['iron'\]: expected a number in"),
        ({"prices": {"iron": "dear"}}, TypeError, r"prices\['iron'\]: expected a number"),
        ({"prices": {"gold": 1}}, ValueError, "prices: expected names of columns, got 'gold'"),
        ({"prices": 3.0}, TypeError, "prices: expected a number for each column, or a mapping"),
        ({"prices": "iron"}, TypeError, "prices: expected a number for each column"),
        ({"groups": [[0, 1]]}, ValueError, "groups: expected None without prices"),
        ({"comparison_price": 1.0}, ValueError, "comparison_price: expected None without prices"),
        ({"prices": [1] * 4, "comparison_price": 0.0}, ValueError, "comparison_price: expected a"),
        ({"prices": [1] * 4, "groups": [[0, 1], [1, 2]]}, ValueError, "got column 'iron' in two"),
        ({"prices": [1] * 4, "groups": [[0, 0]]}, ValueError, "got column 'age' twice"),
        ({"prices": [1] * 4, "groups": [[0, 9]]}, ValueError, "groups: expected an integer from"),
        ({"prices": [1] * 4, "groups": 3}, TypeError, "groups: expected a mapping of names"),
        ({"prices": {"iron": 1}, "groups": {"iron": ["iron"]}}, ValueError, "other names than"),
    ],
)
def test_a_bad_price_is_refused(said, error, words):
    with pytest.raises(error, match=words):
        read(**said)
