"""Interactions by which large tables choose a growth: the twin, what counts, what is found."""

from __future__ import annotations

import numpy as np
import pytest
from reference import pairs as twin

import pboost as pb
from pboost.trees import pooled_growth as pooling
from pboost.trees.gradients import weights_of


def drawn(seed, n=60, d=5):
    """Return codes with ties and copied columns, gradients, and weights that may be 0."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 1 + rng.integers(0, 6, (d, 1)), (d, n)).astype(np.uint8)
    codes[1] = codes[0] if seed % 3 == 0 else codes[1]
    signs = np.where(codes[2] > codes[2].max() // 2, 1, -1) * np.where(codes[3] > 1, 1, -1)
    gradient = rng.normal(size=n) + (0, 0.7, 2)[seed % 3] * signs
    weight = (None, rng.integers(1, 5, n).astype(float), rng.uniform(0.1, 1, n))[seed // 3 % 3]
    return codes, gradient, weight


@pytest.mark.parametrize("first", range(0, 90, 30))
def test_equals_the_twin(first, monkeypatch):
    answers = []
    for seed in range(first, first + 30):
        codes, gradient, weight = drawn(seed)
        case = codes, *pooling.rounded(gradient, weight, seed // 3 % 3 < 2)
        maximum = twin.ratio(codes.tolist(), *case[1:], pooling.CHANCE)
        for times, is_found in ((1 - 1e-9, maximum > 0), (1 + 1e-9, False)):
            monkeypatch.setattr(pooling, "RATIO", float(maximum) * times)
            assert pooling.has_pure_interaction(*case) == is_found, seed
        answers.append(maximum > 1)
    assert 3 < sum(answers) < 27


def test_rounded_are_whole_numbers_near_what_was_given():
    for seed in range(12):
        _, gradient, weight = drawn(seed)
        are_copies = seed // 3 % 3 < 2
        sums, mass, chance = pooling.rounded(gradient * 1e300, weight, are_copies)
        assert np.array_equal(sums, np.rint(sums))
        assert np.array_equal(mass, np.rint(mass))
        weight = np.ones(len(gradient)) if weight is None else weight
        given = weight * gradient
        assert np.allclose(sums / sums[0], given / given[0], rtol=1e-3, atol=1e-4)
        # By chance a cut of some rows gains the mean of squares.
        copies = mass.astype(int) if are_copies else np.ones(len(mass), dtype=int)
        each = np.repeat(sums / copies, copies)
        assert chance == pytest.approx((each**2).sum() / mass.sum())
    assert pooling.rounded(np.zeros(3), None, True)[2] == 0


def looked_at(columns, numbers, copies):
    """Return the numbers of the rows that are looked at, and their codes."""
    weights = weights_of(copies, 1.0)
    rows, codes = pooling.scanned_part(columns, copies > 0, weights.n_copies)
    codes, actual, _ = pooling.few_rows(codes, numbers[rows] * 1.0, None, weights.n_copies)
    return actual.astype(int), codes


def test_rows_are_taken_by_what_is_in_them(monkeypatch):
    monkeypatch.setattr(pooling, "LEAST_ROWS", 10)
    rng = np.random.default_rng(0)
    for n, limit, values in ((50, 100, 9), (400, 100, 9), (400, 100, 0.4)):
        monkeypatch.setattr(pooling, "MOST_ROWS", limit)
        X = np.round(rng.uniform(0, values, (n, 3)))
        copies = rng.integers(0, 3, n).astype(float)
        columns = pb.data.bin_columns(X)
        actual, codes = looked_at(columns, np.arange(n), copies)
        expected = twin.rows_of_scan(columns.codes, copies, limit)
        assert actual.tolist() == expected
        assert np.array_equal(codes, columns.codes[:, actual])
        assert (len(actual) > 0) == (values > 1)
        order = rng.permutation(n).astype(np.int32)
        again, codes = looked_at(columns.select(order), order, copies[order])
        assert sorted(again.tolist()) == expected
        assert np.array_equal(codes, columns.codes[:, again])
    monkeypatch.setattr(pooling, "MOST_WORK", 80)
    assert len(looked_at(columns, np.arange(n), copies)[0]) == 0


def test_hashes_are_those_of_the_twin():
    codes = np.random.default_rng(0).integers(0, 256, (5, 9000)).astype(np.uint8)
    actual = pooling.hashes(codes)
    assert actual[::50].tolist() == [twin.content(of) for of in codes.T[::50]]
    assert abs(np.mean(actual < 2**63) - 0.5) < 0.02


def products(n=8000, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20)).round(2)
    z = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] + 0.5 * X[:, 4] * X[:, 5]
    return X, (z + rng.normal(size=n) > 0).astype(int)


def regions(n=8000, seed=0):
    """Return rows of which another column counts in each of eight regions."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 11))
    region = (X[:, :3] > 0) @ [1, 2, 4]
    return X, (X[np.arange(n), 3 + region] + 0.3 * rng.normal(size=n) > 0).astype(int)


def growth_of(X, y, **options):
    return pb.fit_gradient_boosting(
        X, y, **{"max_depth": 6, "n_estimators": 2, **options}
    ).settings["growth"]


@pytest.mark.full
def test_what_a_pair_alone_tells_is_shared_and_what_one_column_tells_is_not():
    X, y = products()
    assert growth_of(X, y) == "symmetric"
    assert growth_of(X, X[:, 0] * X[:, 1] + X[:, 2] + y) == "symmetric"
    assert growth_of(*regions()) == "independent"
    assert growth_of(X, X[:, 0] > 0.5 * X[:, 1]) == "independent"
    assert growth_of(X, (X[:, 0] > 0) & (X[:, 1] > 0)) == "independent"
    assert growth_of(X, np.random.default_rng(0).integers(0, 2, len(X))) == "independent"


@pytest.mark.full
def test_missing_values_and_levels():
    X, y = products()
    X[::7, 0] = np.nan
    assert growth_of(X, y) == "symmetric"
    levels = X.copy()
    levels[:, [0, 4]] = np.nan_to_num(np.clip(np.round(X[:, [0, 4]]), -2, 2)) + 2
    assert growth_of(levels, y, categorical_features=[0, 4]) == "independent"


@pytest.mark.full
def test_the_model_is_that_of_the_growth_it_says_and_goes_on():
    X, y = products()
    auto = pb.fit_gradient_boosting(X, y, max_depth=6, n_estimators=4)
    symmetric = pb.fit_gradient_boosting(X, y, max_depth=6, n_estimators=4, growth="symmetric")
    assert np.array_equal(auto.trees.value, symmetric.trees.value)
    more = pb.continue_fit(
        pb.fit_gradient_boosting(X, y, max_depth=6, n_estimators=2), X, y, n_estimators=2
    )
    assert np.array_equal(more.trees.value, auto.trees.value)


def same(first, second, X):
    assert first.settings["growth"] == second.settings["growth"]
    return np.array_equal(pb.decision_function(first, X), pb.decision_function(second, X))


@pytest.mark.full_for("products")
@pytest.mark.parametrize("make", [products, regions])
def test_order_threads_rows_without_weight_and_copies_are_no_matter(make, monkeypatch):
    monkeypatch.setattr(pooling, "FEW_ROWS", 1000)
    monkeypatch.setattr(pooling, "MOST_ROWS", 2000)
    X, y = make(3000)
    order = np.random.default_rng(1).permutation(len(y))
    options = {"max_depth": 6, "n_estimators": 3}
    first_model = pb.fit_gradient_boosting(X, y, n_threads=1, **options)
    assert same(first_model, pb.fit_gradient_boosting(X, y, n_threads=3, **options), X)
    assert same(first_model, pb.fit_gradient_boosting(X[order], y[order], **options), X)
    more = np.vstack([X, X[:500] + 7]), np.append(y, 1 - y[:500])
    weight = np.repeat([1.0, 0.0], [3000, 500])
    assert same(first_model, pb.fit_gradient_boosting(*more, sample_weight=weight, **options), X)
    copies = np.random.default_rng(2).integers(0, 4, len(y))
    options["histogram_precision"] = "wide"
    weighed = pb.fit_gradient_boosting(X, y, sample_weight=2.5 * copies, **options)
    copied = pb.fit_gradient_boosting(X.repeat(copies, axis=0), y.repeat(copies), **options)
    assert same(weighed, copied, X)


@pytest.mark.full
def test_scale_is_no_matter():
    X, y = products()
    z = X[:, 0] * X[:, 1] + y
    assert growth_of(X, z * 1e149, loss="squared_error") == growth_of(X, z, loss="squared_error")
    assert growth_of(X, np.full(len(X), 3.0), loss="squared_error") == "independent"


@pytest.mark.parametrize(
    ("options", "growth"),
    [
        ({"loss": "softmax"}, "independent"),
        ({"max_depth": 2}, "independent"),
        ({"max_depth": 3}, "symmetric"),
        ({"max_leaf_nodes": 9}, "independent"),
        ({"monotonic_cst": {0: 1}}, "independent"),
        ({"max_features_per_tree": 16, "rng": 0}, "symmetric"),
        ({"loss": "exponential"}, "symmetric"),
        ({"validation": 0.2, "rng": 0}, "symmetric"),
        ({"growth": "independent"}, "independent"),
    ],
)
def test_where_it_is_asked(options, growth):
    assert growth_of(*products(), **options) == growth
    if growth == "symmetric":
        X, y = products()
        numbers = growth_of(X, X[:, 0] * X[:, 1] + y, max_depth=options.get("max_depth", 6))
        assert numbers == ("independent" if "max_depth" in options else "symmetric")
