"""Synthetic rows, and small sums of trees that imitate a model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pboost as pb
from pboost.budget import distill as distilling
from pboost.budget.distill import nearest, synthetic_rows
from pboost.data.read.check_xy import as_features

RNG = np.random.default_rng


def data(n=400, seed=0):
    rng = RNG(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + X[:, 1] * X[:, 2]
    return X, np.where(score + 0.3 * rng.normal(size=n) > 0, "yes", "no"), score


def mixed(n=60):
    """Numbers with holes and ties, levels with holes, a constant."""
    rng = RNG(3)
    X = np.column_stack(
        [rng.normal(size=n), rng.integers(0, 4, n), rng.integers(0, 3, n), np.ones(n)]
    )
    X[rng.random(n) < 0.2, 0] = np.nan
    X[rng.random(n) < 0.2, 2] = np.nan
    return as_features(X, categorical_features=[2])


def slow_distance(values, is_level, a, b):
    """Return the squared distance of two rows, from its definition."""
    total = 0.0
    for j in range(values.shape[1]):
        column = values[:, j]
        missing = np.isnan(column)
        if is_level[j]:
            same = column[a] == column[b] or (missing[a] and missing[b])
            pairs = [not (u == v or (np.isnan(u) and np.isnan(v))) for u in column for v in column]
            total += 0.0 if same else 2.0 / max(np.mean(pairs), 1 / len(column))
            continue
        there = column[~missing]
        rank = np.array([(there < v).sum() + ((there == v).sum() + 1) / 2 for v in column])
        rank = np.where(missing, 0.0, rank - rank[~missing].mean())
        rank = rank / rank.std() if rank.std() > 0 else rank
        total += (rank[a] - rank[b]) ** 2 + (bool(missing[a]) != bool(missing[b]))
    return total


def slow_least(far, first, k):
    """Return the k least of each row: sorted, equal ones as they follow the row round about."""
    n = far.shape[1]
    keys = [[((j - first - i) % n, j) for j in range(n)] for i in range(len(far))]
    return [
        [j for *_, j in sorted((row[j], turn, j) for turn, j in key)[:k]]
        for row, key in zip(far, keys, strict=True)
    ]


@pytest.mark.parametrize(("n", "k"), [(6, 5), (255, 3), (256, 3), (300, 10), (300, 140)])
def test_the_least_distances_are_in_order_and_equal_ones_take_turns(n, k):
    first = n - 4
    far = RNG(n).integers(0, 5, (4, n)).astype(float)  # most are equal to others
    far[1] = 1.0
    far[np.arange(4), first + np.arange(4)] = np.inf
    assert distilling._least(far, first, k).tolist() == slow_least(far, first, k)
    assert distilling._least(far, first, k)[1, :3].tolist() == [(n - 2 + j) % n for j in range(3)]


@pytest.mark.full
def test_the_nearest_rows_are_those_of_the_definition(monkeypatch):
    X, is_level, k = mixed(), np.array([False, False, True, False]), 5
    actual = nearest(X.values, is_level, k)
    monkeypatch.setattr(distilling, "BLOCK", 1)
    assert np.array_equal(nearest(X.values, is_level, k), actual)
    for a in range(0, 60, 7):
        far = np.array([slow_distance(X.values, is_level, a, b) for b in range(60)])
        far[a] = np.inf
        assert a not in actual[a]
        assert len(set(actual[a].tolist())) == k
        assert far[actual[a]].max() <= np.sort(far)[k - 1] + 1e-9


@pytest.mark.parametrize("kind", distilling.KINDS)
def test_values_occur_in_their_columns(kind):
    X = mixed()
    actual = synthetic_rows(X, 500, kind, 0.4, 5, RNG(0))
    assert actual.shape == (500, 4)
    for j in range(4):
        assert set(map(str, actual[:, j])) <= set(map(str, X.values[:, j]))
    assert np.isnan(actual[:, [0, 2]]).any(axis=0).all()


def test_a_row_is_another_with_a_share_of_a_third():
    X = as_features(np.arange(1.0, 301.0)[:, None] * [1, 10, 100, 1000, 10000])
    actual = synthetic_rows(X, 4000, "neighbors", 0.25, 4, RNG(0)) / [1, 10, 100, 1000, 10000]
    low, high = actual.min(axis=1), actual.max(axis=1)
    assert all(len(np.unique(row)) <= 2 for row in actual)
    assert (high - low).max() <= 4  # the rows at the ends
    # A column is another row's with 1/4: all five are of one row with (3/4)^5 + (1/4)^5.
    assert abs((high > low).mean() - (1 - 0.75**5 - 0.25**5)) < 0.03
    plain = synthetic_rows(X, 100, "neighbors", 0.0, 4, RNG(0))
    assert set(plain[:, 0]) <= set(X.values[:, 0])


def test_of_many_rows_some_are_drawn(monkeypatch):
    monkeypatch.setattr(distilling, "MANY_ROWS", 50)
    monkeypatch.setattr(distilling, "DRAWN_ROWS", 20)
    X = as_features(np.arange(100.0)[:, None])
    assert 15 < len(np.unique(synthetic_rows(X, 3000, "random", 0.5, 3, RNG(0)))) <= 20
    first = replace(X, values=X.values[:1])
    assert (synthetic_rows(first, 3, "neighbors", 0.5, 3, RNG(0)) == 0).all()


def test_a_student_is_better_than_a_sum_of_its_length():
    X, y, _ = data(3000)
    X, y, X_new, y_new = X[:500], y[:500], X[500:], y[500:]
    teacher = pb.fit_gradient_boosting(X, y, n_estimators=150, subsample=0.6, rng=0)
    student = pb.distill(teacher, X, mean_comparisons=20, rng=0)
    plain = pb.fit_gradient_boosting(X, y, max_leaf_nodes=8, learning_rate=0.3, n_estimators=7)
    assert student.classes.tolist() == ["no", "yes"]
    costs = [pb.prediction_cost(model, X_new).mean() for model in (student, plain)]
    errors = [np.mean(pb.predict(model, X_new) != y_new) for model in (student, plain)]
    assert costs[0] < costs[1]
    assert errors[0] < errors[1]
    assert student.settings["n_synthetic"] == 15_000
    assert 15 < pb.prediction_cost(student, X).mean() <= 20


def test_of_a_function_of_many_labels_and_of_numbers():
    X, _, score = data()
    first = 1.0 / (1.0 + np.exp(-4.0 * score))

    def second(Z):
        return 1.0 / (1.0 + np.exp(-4.0 * (Z[:, 0] + Z[:, 1] * Z[:, 2])))

    def both(Z):
        return np.column_stack([1.0 - second(Z), second(Z)])

    small = [pb.distill(f, X, mean_comparisons=20, n_synthetic=900, rng=0) for f in (second, both)]
    assert np.array_equal(small[0].trees.value, small[1].trees.value)
    assert small[0].classes.tolist() == [0, 1]
    assert np.corrcoef(pb.predict_proba(small[0], X)[:, 1], first)[0, 1] > 0.9

    y = np.array(["a", "b", "c"])[np.digitize(score, [-1.0, 0.5])]
    many = pb.distill(
        pb.fit_random_forest(X, y, n_estimators=30, rng=0), X, mean_comparisons=30, n_synthetic=900
    )
    assert many.classes.tolist() == ["a", "b", "c"]
    assert many.settings["multi_strategy"] == "multi_output_tree"
    assert np.mean(pb.predict(many, X) == y) > 0.8

    numbers = [
        pb.distill(
            pb.fit_gradient_boosting(X, score, n_estimators=100),
            X,
            mean_comparisons=40,
            n_synthetic=900,
        ),
        pb.distill(
            lambda Z: Z[:, 0] + Z[:, 1] * Z[:, 2], X, task="regression", mean_comparisons=40
        ),
    ]
    for model in numbers:
        assert np.corrcoef(pb.predict(model, X), score)[0, 1] > 0.9


def test_the_same_seed_gives_the_same_model_on_any_number_of_threads():
    X, y, _ = data()
    teacher = pb.fit_adaboost(X, y, n_estimators=30)
    models = [pb.distill(teacher, X, n_synthetic=3000, rng=1, n_threads=k) for k in (1, 2)]
    assert np.array_equal(*(model.trees.threshold for model in models))
    assert np.array_equal(*(model.trees.value for model in models))
    other = pb.distill(teacher, X, n_synthetic=3000, rng=2)
    assert not np.array_equal(other.trees.value, models[0].trees.value)


def test_categories_and_holes_of_a_frame():
    pandas = pytest.importorskip("pandas")
    X, y, _ = data()
    frame = pandas.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "up", "down")})
    frame.loc[::7, "b"] = None
    frame.loc[::5, "a"] = np.nan
    teacher = pb.fit_gradient_boosting(frame, y, n_estimators=40)
    small = pb.distill(teacher, frame, mean_comparisons=15, n_synthetic=2000, rng=0)
    assert small.feature_names == ("a", "b")
    assert np.mean(pb.predict(small, frame) == pb.predict(teacher, frame)) > 0.9
    with pytest.raises(NotImplementedError, match="teacher: expected a model, since X has"):
        pb.distill(lambda Z: Z[:, 0], frame)


@pytest.mark.parametrize(
    ("teacher", "kind", "message"),
    [
        (3, TypeError, "teacher: expected a model or a function of rows, got int"),
        (lambda Z: np.full(len(Z), np.nan), ValueError, "teacher: expected probabilities .* row 0"),
        (lambda Z: np.full(len(Z), 1.5), ValueError, "teacher: expected probabilities .*regress"),
        (lambda Z: Z[:, 0] > 0, ValueError, "teacher: expected probabilities, floats, .*bool"),
        (lambda Z: np.full(len(Z), "yes"), ValueError, "labels. Of an estimator"),
        (lambda Z: np.full((len(Z), 2), 0.7), ValueError, "with the sum 1"),
        (lambda Z: np.full((len(Z), 1), 0.7), ValueError, "teacher: expected an array of shape"),
        (lambda Z: np.full(3, 0.7), ValueError, "teacher: expected an array of shape"),
    ],
)
def test_teachers_that_are_none(teacher, kind, message):
    with pytest.raises(kind, match=message):
        pb.distill(teacher, data()[0], n_synthetic=100)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"mean_comparisons": 0.5}, "mean_comparisons"),
        ({"synthetic_fraction": 1.5}, "synthetic_fraction"),
        ({"kind": "near"}, "kind"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"n_synthetic": -1}, "n_synthetic"),
        ({"first_tree_comparisons": 0.5}, "first_tree_comparisons"),
        ({"task": "labels"}, "task"),
        ({"task": "regression"}, "teacher"),
    ],
)
def test_options(options, name):
    def teacher(Z):
        return np.full(len(Z), np.nan) if options.get("task") else np.full(len(Z), 0.5)

    with pytest.raises(ValueError, match=f"{name}: expected"):
        pb.distill(teacher, data()[0], **{"n_synthetic": 100, **options})
