"""Models do not depend on the order of the rows: what is summed over rows is summed in integers."""

import math

import numpy as np
import pytest
from partitioned import TABLES, VALUED, contents

import pboost as pb
from pboost.data.read.check_xy import as_features
from pboost.growth.matryoshki import Matryoshka
from pboost.threads import Workers
from pboost.weak.base import Weights

FITS = {
    "chain": lambda X, y, w: pb.fit_adaboost(X, y, sample_weight=w, n_estimators=9),
    "tree": lambda X, y, w: pb.fit_boosted_tree(X, y, sample_weight=w, max_nodes=9),
    "soft tree": lambda X, y, w: pb.fit_boosted_tree(
        X, y, sample_weight=w, max_nodes=7, observation=pb.observation.adatree2()
    ),
    "cart": lambda X, y, w: pb.fit_cart(X, y, sample_weight=w),
}
SHAPES = {
    "nested": {"shape": (3, 3)},
    "deep": {"shape": (2, 2, 2)},
    "joined": {"shape": (4, 3), "join": "all"},
    "by sign": {"shape": (3, 3), "collect": "sign"},
    "greedy": {"growth": "greedy", "max_nodes": 12},
    "greedy, by sign": {"growth": "greedy", "max_nodes": 12, "collect": "sign"},
    "soft": {"shape": (3, 2), "observation": pb.observation.uniform()},
    "soft, by sign": {
        "shape": (3, 2),
        "observation": pb.observation.flip(0.1),
        "collect": "sign",
    },
}
for _name, _options in SHAPES.items():
    FITS[f"matryoshka, {_name}"] = lambda X, y, w, options=_options: pb.fit_matryoshka(
        X, y, sample_weight=w, **options
    )


MEASURED = {
    "gaussian chain": lambda X, y, w, o: pb.fit_adaboost(
        X, y, sample_weight=w, observation=o, n_estimators=9
    ),
    "gaussian tree": lambda X, y, w, o: pb.fit_boosted_tree(
        X, y, sample_weight=w, observation=o, max_nodes=7
    ),
    "gaussian matryoshka": lambda X, y, w, o: pb.fit_matryoshka(
        X, y, sample_weight=w, observation=o, shape=(3, 2)
    ),
    "gaussian matryoshka, by sign": lambda X, y, w, o: pb.fit_matryoshka(
        X, y, sample_weight=w, observation=o, shape=(3, 2), collect="sign"
    ),
}


@pytest.mark.parametrize("fit", MEASURED)
def test_answers_of_rows_in_another_order_give_the_same_bytes(fit, tmp_path):
    for name in ("numbers", "ties", "holes", "categories, weights"):
        columns, y, weight = VALUED[name]
        rng = np.random.default_rng(len(name))
        rows = rng.permutation(len(y)).astype(np.int32)
        cells = rng.random((len(y), columns.n_features)) / 2
        if columns.table is not None:
            cells[:, [j for j, of in enumerate(columns.table.categories) if of is not None]] = 0.0
        for sigma in (cells[0], cells):
            noise = [
                pb.observation.gaussian(s)
                for s in (sigma, sigma[rows] if sigma is cells else sigma)
            ]
            model = MEASURED[fit](columns, y, weight, noise[0])
            other = MEASURED[fit](
                columns.select(rows), y[rows], None if weight is None else weight[rows], noise[1]
            )
            assert contents(model, tmp_path) == contents(other, tmp_path), name


@pytest.mark.parametrize("fit", FITS)
def test_rows_in_another_order_give_the_same_bytes(fit, tmp_path):
    for name in ("numbers", "holes", "categories, weights", "weights that add up to 1"):
        columns, y, weight = TABLES[name]
        rows = np.random.default_rng(len(name)).permutation(len(y)).astype(np.int32)
        model = FITS[fit](columns, y, weight)
        other = FITS[fit](columns.select(rows), y[rows], None if weight is None else weight[rows])
        assert contents(model, tmp_path) == contents(other, tmp_path), name


def growth(n):
    """Return a matryoshka that has not begun, of n rows of either class."""
    fitted = []

    class Kept(Matryoshka):
        def __init__(self, *given):
            super().__init__(*given)
            fitted.append(self)

    X = as_features(np.arange(2.0 * n)[:, None], None)
    y = np.repeat([0, 1], n)
    weak = pb.weak.stump()
    data = weak.arrange(weak.read(X, y, None, None), 1)
    with Workers(1) as workers:
        observer = pb.observation.exact().bind(data, weak, workers, np.random.default_rng(0))
        Kept(data, observer, None, "additive")
    return fitted[0]


@pytest.mark.parametrize("decades", [0, 12, 200])
def test_sums_are_those_of_real_weights_but_for_rounding(decades):
    n = 300
    grown = growth(n)
    rng = np.random.default_rng(decades)
    real = rng.random(2 * n) / n * 10.0 ** -rng.uniform(0, decades, 2 * n) * 10.0**-decades
    weights = Weights(real, np.empty(2 * n, dtype=np.int64), 2.0**59, (0, 0))
    grown.search.fill_fixed(weights)
    actual = grown.class_sums(weights)
    total = math.fsum(real)
    for mass, part in zip(actual, (real[:n], real[n:]), strict=True):
        assert abs(mass - math.fsum(part)) <= 2.0**-40 * total


def test_nobody_arrives():
    grown = growth(2)
    for real in (np.zeros(4), np.full(4, 1e-290)):
        weights = Weights(real, np.empty(4, dtype=np.int64), 1.0, (0, 0))
        assert max(grown.class_sums(weights)) < 1e-280
