"""Trees of sums that grow level by level: the twin, threads, SIMD, what they are, errors."""

from __future__ import annotations

import numpy as np
import pytest
from reference import pooled as twin
from reference.rounds import Columns
from round_cases import assert_equals_twin, assert_same, compiled, pooled_case, wide_case
from shallow import fit_shallow

import pboost as pb
from pboost._core import boost
from pboost.trees import pooled_growth as pooling
from pboost.trees.pooled_growth import SHARES, Share


def assert_twin(case, at):
    columns, y, loss, weight, listed, options = case
    actual = compiled(columns, y, loss, weight, listed, options)
    bins = columns.columns
    special = np.zeros(len(bins.n_bins), int) if bins.special is None else bins.special
    options = {**options, "pooling": SHARES[options["growth"]]}
    del options["growth"]
    expected = twin.fit(
        Columns(bins.codes, bins.n_bins, special),
        y,
        loss,
        weight,
        n_estimators=3,
        listed=listed,
        **options,
    )
    assert [loss_ for _, _, loss_ in actual] == expected.mean_loss, at
    assert np.array_equal(actual[-1][1], expected.f), at
    for (grown, _, _), nodes, values in zip(
        actual[1:], expected.trees, expected.values, strict=True
    ):
        assert_equals_twin(grown, nodes, values, at)


@pytest.mark.parametrize("seed", range(0, 240, 20))
def test_equals_the_twin(seed, monkeypatch):
    monkeypatch.setitem(SHARES, "pooled", Share(seed // 20 % 3, 0.1 + seed / 300))
    for number in range(seed, seed + 20):
        assert_twin(pooled_case(number), f"case {number}")


@pytest.mark.parametrize("sums", ["packed", "wide"])
def test_more_rows_than_words_have_room_for_equal_the_twin(sums):
    *case, options = wide_case(max_bins=6)
    options |= {"depth": 5, "sums": sums, "growth": "pooled"}
    assert_twin((*case, options), sums)


@pytest.fixture
def restored():
    yield
    boost.use_simd_level(2)


@pytest.mark.parametrize("level", [0, 1])
def test_without_simd_the_bits_are_the_same(level, restored):
    *large, options = wide_case(n=9000)
    cases = [
        (*large, {**options, "growth": growth, "sums": sums})
        for growth in SHARES
        for sums in ("packed", "wide")
    ]
    cases += [pooled_case(seed) for seed in range(60)]
    fast = [compiled(*case) for case in cases]
    boost.use_simd_level(level)
    for case, item in zip(cases, fast, strict=True):
        assert_same(compiled(*case), item)


def test_growing_is_left_and_taken_up(monkeypatch):
    *case, options = wide_case(n=3000)
    options["growth"] = "pooled"
    first = compiled(*case, options)
    monkeypatch.setattr("pboost.threads.CELLS_PER_CALL", 1)
    assert_same(compiled(*case, options), first)


def data(n=2000, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] + rng.normal(size=n)


def cuts_by_level(tree):
    """Return the columns and thresholds of each level."""
    actual, level = [], [0]
    while level:
        inner = [e for e in level if tree.feature[e] >= 0]
        actual.append({(int(tree.feature[e]), float(tree.threshold[e])) for e in inner})
        level = [int(child) for e in inner for child in tree.children[e]]
    return actual[:-1]


def test_nodes_of_a_level_of_a_symmetric_tree_have_one_cut_if_it_divides_them():
    X, y = data()
    for tree in pb.fit_gradient_boosting(
        X, y, growth="symmetric", max_depth=5, n_estimators=20, subsample=None
    ).trees:
        level = [(0, np.arange(len(X)))]
        while level:
            cuts = [(int(tree.feature[e]), float(tree.threshold[e])) for e, _ in level]
            assert any(
                all(
                    cut == other or len(set((X[rows, other[0]] > other[1]).tolist())) == 1
                    for (_, rows), cut in zip(level, cuts, strict=True)
                )
                for other in set(cuts)
            )
            below = []
            for (e, rows), cut in zip(level, cuts, strict=True):
                is_above = X[rows, cut[0]] > cut[1]
                below += zip(tree.children[e], (rows[~is_above], rows[is_above]), strict=True)
            level = [(e, rows) for e, rows in below if tree.feature[e] >= 0]


def test_pooled_trees_have_fewer_cuts_than_free_ones():
    X, y = data()
    free, pooled = (
        [
            cuts_by_level(tree)[4]
            for tree in pb.fit_gradient_boosting(
                X, y, growth=growth, max_depth=5, n_estimators=20
            ).trees
        ]
        for growth in ("independent", "pooled")
    )
    assert np.mean([len(cuts) for cuts in pooled]) < 0.7 * np.mean([len(cuts) for cuts in free])


def test_pooled_trees_of_few_levels_are_free():
    X, y = data(500)
    free, pooled, auto = (
        fit_shallow(X, y, growth=growth, n_estimators=5)
        for growth in ("independent", "pooled", "auto")
    )
    assert np.array_equal(free.trees.threshold, pooled.trees.threshold)
    assert np.array_equal(free.trees.value, auto.trees.value)
    assert [model.settings["growth"] for model in (free, pooled, auto)] == [
        "independent",
        "pooled",
        "pooled",
    ]


def test_many_rows_grow_freely_as_their_weights_do(monkeypatch):
    X, y = data(200)
    monkeypatch.setattr(pooling, "FEW_ROWS", 400)
    growths = [
        pb.fit_gradient_boosting(*of, max_depth=5, n_estimators=1, sample_weight=weight).settings[
            "growth"
        ]
        for of, weight in [
            ((X, y), None),
            ((X, y), np.full(200, 3.0)),
            ((X, y), np.r_[np.full(199, 3.0), 1.0]),
            ((X.repeat(3, axis=0), y.repeat(3)), None),
        ]
    ]
    assert growths == ["pooled", "pooled", "independent", "independent"]


def test_pooling_lowers_the_loss_of_products():
    X, y = data(4000)
    new, truth = data(4000, seed=1)
    error = {
        growth: np.mean(
            (pb.predict(pb.fit_gradient_boosting(X, y, growth=growth, max_depth=6), new) - truth)
            ** 2
        )
        for growth in ("auto", "independent")
    }
    assert error["auto"] < 0.95 * error["independent"]


def test_classes_take_it_too_and_fits_go_on():
    X, y = data(900)
    y = np.digitize(y, [-1, 1])
    options = {"max_depth": 5, "loss": "softmax", "growth": "symmetric"}
    full_model = pb.fit_gradient_boosting(X, y, n_estimators=4, **options)
    free = pb.fit_gradient_boosting(X, y, n_estimators=4, **{**options, "growth": "independent"})
    assert full_model.training_loss[-1] > free.training_loss[-1]
    more = pb.continue_fit(
        pb.fit_gradient_boosting(X, y, n_estimators=2, **options), X, y, n_estimators=2
    )
    assert np.array_equal(more.trees.value, full_model.trees.value)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"max_leaf_nodes": 5}, ValueError, "max_leaf_nodes: expected None"),
        ({"monotonic_cst": {0: 1}}, NotImplementedError, "monotonic_cst: expected None"),
        ({"interaction_cst": [[0, 1]]}, NotImplementedError, "interaction_cst: expected None"),
        ({"max_features": 2}, NotImplementedError, "max_features: expected None"),
        (
            {"multi_strategy": "multi_output_tree", "loss": "softmax"},
            NotImplementedError,
            'growth: expected "independent"',
        ),
        ({"search": "exact"}, NotImplementedError, 'growth: expected "independent"'),
    ],
)
def test_what_needs_cuts_of_its_own_is_refused_or_grows_freely(options, error, said):
    X, y = data(200)
    y = y > 0 if "multi_strategy" in options else y
    options = {"max_depth": 5, "n_estimators": 2, **options}
    with pytest.raises(error, match=said):
        pb.fit_gradient_boosting(X, y, growth="pooled", **options)
    assert pb.fit_gradient_boosting(X, y, **options).settings["growth"] == "independent"


def test_there_is_a_bound_on_the_memory_of_a_level(monkeypatch):
    X, y = data(200)
    monkeypatch.setattr(pooling, "MOST_BYTES", 10_000)
    with pytest.raises(
        ValueError, match=r"growth: expected at most .* for the open nodes of a level"
    ):
        pb.fit_gradient_boosting(X, y, growth="symmetric", max_depth=8)
    assert (
        pb.fit_gradient_boosting(X, y, max_depth=8, n_estimators=2).settings["growth"]
        == "independent"
    )
    with pytest.raises(ValueError, match="growth: expected"):
        pb.fit_gradient_boosting(X, y, growth="depthwise")
