"""What models of partitions store, where weights go over many decades, is that of one table."""

import numpy as np
import pytest
from partitioned import bin_parts, fit_parted

import pboost as pb

ADATREE = {"observation": pb.observation.adatree2()}
TREE = {"max_nodes": 5, "smoothing": 0}
FITS = {
    "chain": ("fit_adaboost", {"n_estimators": 5, "smoothing": 0}),
    "soft chain": ("fit_adaboost", {"n_estimators": 5, "smoothing": 0, **ADATREE}),
    "tree": ("fit_boosted_tree", TREE),
    "soft tree": ("fit_boosted_tree", {**TREE, **ADATREE}),
    "by sign": ("fit_matryoshka", {"shape": (3, 2), "collect": "sign", "smoothing": 0, **ADATREE}),
}


def problem(seed):
    """Return a few rows, some values missing, two classes, and weights over thirty decades."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (12, 2)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = rng.permutation(np.arange(12) % 2)
    return X, y, 10.0 ** rng.uniform(-30, 0, 12)


@pytest.mark.parametrize("name", FITS)
def test_stored_numbers_do_not_depend_on_partitions(name):
    builder, options = FITS[name]
    for seed in range(8):
        X, y, weight = problem(seed)
        full = getattr(pb, builder)(pb.data.bin_columns(X), y, sample_weight=weight, **options)
        parts = bin_parts([X[:5], X[5:]])
        model = fit_parted(
            builder, parts, [y[:5], y[5:]], sample_weight=[weight[:5], weight[5:]], **options
        )
        assert model.bias == full.bias
        for field in ("certificate", "cost"):
            stored, expected = (getattr(m.record, field) for m in (model, full))
            np.testing.assert_array_equal(stored, expected)
        anew = pb.certificate(model, X, y, sample_weight=weight)
        assert pb.certificate(model) == pytest.approx(anew, rel=1e-9)


def test_a_soft_tree_of_partitions_may_have_no_nodes():
    X, y, weight = np.zeros((6, 1)), np.arange(6) % 2, np.arange(1.0, 7.0)
    full_model = pb.fit_boosted_tree(
        pb.data.bin_columns(X), y, sample_weight=weight, **TREE, **ADATREE
    )
    model = fit_parted(
        "fit_boosted_tree",
        bin_parts([X[:2], X[2:]]),
        [y[:2], y[2:]],
        sample_weight=[weight[:2], weight[2:]],
        **TREE,
        **ADATREE,
    )
    assert model.n_nodes == full_model.n_nodes == 0
    assert pb.certificate(model) == pb.certificate(full_model)
