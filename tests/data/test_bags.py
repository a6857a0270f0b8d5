"""`max_samples`: a fraction or a number of rows, with one meaning everywhere."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import pboost as pb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(61, 3))
Y = X[:, 0] + X[:, 1] > 0
WEIGHT = (np.arange(61) < 41).astype(float)

#: The rows drawn for the first member.
DRAWN = {
    "bagging": lambda **o: (
        pb.fit_bagging(
            partial(pb.fit_cart, max_depth=1), X, Y, n_estimators=2, bootstrap=False, rng=0, **o
        )
        .models[0]
        .n_rows[0]
    ),
    "forest": lambda **o: pb.fit_random_forest(X, Y, n_estimators=2, bootstrap=False, rng=0, **o)[
        0
    ].n_rows[0],
    "sbpmt": lambda **o: (
        pb.fit_sbpmt(X, Y, n_estimators=2, n_boosting_rounds=1, max_iter=1, rng=0, **o)
        .class_rows[0]
        .sum()
    ),
}
each_builder = pytest.mark.parametrize("builder", DRAWN)


@each_builder
@pytest.mark.parametrize(
    ("bag", "rows"),
    [
        (None, 61),
        (1.0, 61),
        (61, 61),
        (1, 1),
        (np.int8(7), 7),
        (0.5, 30),
        (np.float32(0.25), 15),
        (0.001, 1),
    ],
)
def test_share_or_number(builder, bag, rows):
    assert DRAWN[builder](max_samples=bag) == rows


@each_builder
def test_a_share_is_rounded(builder):
    """To the nearest number, but down where the source does."""
    assert DRAWN[builder](max_samples=0.49) == (29 if builder == "sbpmt" else 30)


@each_builder
def test_of_rows_of_positive_weight(builder):
    assert DRAWN[builder](max_samples=None, sample_weight=WEIGHT) == 41
    assert DRAWN[builder](max_samples=0.5, sample_weight=WEIGHT) == 20
    with pytest.raises(ValueError, match=r"^max_samples: expected at most 41, the number of rows"):
        DRAWN[builder](max_samples=42, sample_weight=WEIGHT)


@each_builder
@pytest.mark.parametrize("bag", [0, -1, 0.0, 1.5, float("nan"), True, "half", [0.5], 10**12])
def test_neither(builder, bag):
    with pytest.raises((ValueError, TypeError), match=r"^max_samples: expected"):
        DRAWN[builder](max_samples=bag)


def test_more_rows_than_there_are():
    """With replacement."""
    forest = pb.fit_random_forest(X, Y, n_estimators=3, max_samples=200, rng=0)
    assert (forest.oob.n_estimators <= 1).mean() > 0.9


def test_strata_of_a_number_are_those_of_its_share():
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    share, number = (
        pb.fit_sbpmt(
            X,
            y,
            n_estimators=2,
            n_boosting_rounds=1,
            max_iter=1,
            stratify=True,
            max_samples=bag,
            rng=0,
        )
        for bag in (20 / 61, 20)
    )
    assert np.array_equal(share.class_rows, number.class_rows)
    assert number.class_rows.sum(axis=1).tolist() == [20, 20]


def test_the_setting_is_what_was_given():
    assert pb.fit_random_forest(X, Y, n_estimators=1).settings["max_samples"] is None
    bag = pb.fit_random_forest(X, Y, n_estimators=1, max_samples=np.float64(0.5)).settings[
        "max_samples"
    ]
    assert type(bag) is float
