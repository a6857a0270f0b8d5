"""Categories where columns are added up: as columns of zeros and ones, one for each level."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb
from pboost.data.node_inputs.inputs import indicators_of
from pboost.data.read.table import Table

pd = pytest.importorskip("pandas")


def frame(seed, n=240, holes=True):
    """Return a frame with a category of four levels and one of two, and columns of numbers."""
    r = np.random.default_rng([16, seed])
    colour = r.choice(["blue", "green", "red", "white"], n)
    size = r.choice(["large", "small"], n)
    age, height = r.normal(40, 10, n).round(1), r.normal(size=n).round(2)
    score = np.select([colour == "red", colour == "blue"], [1.0, -1.0], 0.2) + (age - 40) / 10
    score += (size == "large") * height + 0.5 * r.normal(size=n)
    y = score > np.median(score)
    if holes:
        colour = np.where(r.random(n) < 0.15, None, colour)
        age[r.random(n) < 0.15] = np.nan
    X = pd.DataFrame({"age": age, "colour": colour, "height": height, "size": size})
    return X, y, r.uniform(0.2, 2, n)


def expanded(X):
    """Return the columns that sums read, by hand, and their names."""
    columns, names = [], []
    for name in X:
        if X[name].dtype.kind == "f":
            columns.append(X[name].to_numpy())
            names.append(name)
            continue
        missing = X[name].isna().to_numpy()
        for level in sorted(set(X[name].dropna())):
            columns.append(np.where(missing, np.nan, (X[name] == level).to_numpy().astype(float)))
            names.append(f"{name}={level}")
    return np.column_stack(columns), names


FITS = {
    "affine": lambda X, y, w: pb.fit_boosted_tree(
        X, y, max_nodes=6, weak_learner=pb.weak.affine(n_directions=30), sample_weight=w
    ),
    "linear": lambda X, y, w: pb.fit_adaboost(
        X, y, n_estimators=4, weak_learner=pb.weak.linear(), sample_weight=w
    ),
    "separators": lambda X, y, w: pb.fit_boosted_tree(
        X, y, max_nodes=4, weak_learner=pb.weak.separator(6), sample_weight=w
    ),
    "columns": lambda X, y, w: pb.fit_real_adaboost(
        X, y, n_estimators=20, weak_learner=pb.weak.feature(), sample_weight=w
    ),
    "probit": lambda X, y, w: pb.fit_probitboost(X, y, max_iter=15, sample_weight=w),
}
every = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)


def test_indicators():
    X, _, _ = frame(0)
    model = pb.fit_probitboost(X, np.arange(240) % 2)
    actual = indicators_of(model.table)
    names = expanded(X)[1]
    assert list(actual.names(model.feature_names)) == names
    assert actual.column.tolist() == [0, 1, 1, 1, 1, 2, 3, 3]
    np.testing.assert_array_equal(actual.by_column(np.arange(8.0)), [0, 10, 5, 13])
    assert indicators_of(None) is None
    assert indicators_of(Table.of_numbers(3)) is None
    codes = np.array([[1.5, np.nan, 0.0, 1.0], [np.nan, 2.0, 1.0, 0.0]])
    expected = [[1.5, *[np.nan] * 4, 0, 0, 1], [np.nan, 0, 0, 1, 0, 1, 1, 0]]
    np.testing.assert_array_equal(actual.values(codes), expected)


@every
@pytest.mark.parametrize("holes", [False, True])
def test_models_are_those_of_zeros_and_ones(fit, holes):
    X, y, weight = frame(1, holes=holes)
    Z, _ = expanded(X)
    model, twin = fit(X, y, weight), fit(Z, y, weight)
    assert (model.n_features, twin.n_features) == (4, 8)
    assert model.feature_names == ("age", "colour", "height", "size")
    # Sums down the columns of a matrix depend on its layout.
    atol = 1e-12 if isinstance(model, pb.models.LinearModel) else 0
    actual, expected = pb.decision_function(model, X), pb.decision_function(twin, Z)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)
    if hasattr(model, "record"):
        actual, expected = model.record.certificate, twin.record.certificate
        np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)
        actual = pb.certificate(model, X, y, sample_weight=weight)
        np.testing.assert_allclose(actual, model.record.certificate[-1], rtol=1e-9)
    for column in (pb.feature_importances(model), pb.feature_importances(model, X=X)):
        assert column.shape == (4,)
        np.testing.assert_allclose(column.sum(), 1.0)
    custom_importances = pb.feature_importances(twin)
    expected = [
        custom_importances[0],
        custom_importances[1:5].sum(),
        custom_importances[5],
        custom_importances[6:].sum(),
    ]
    np.testing.assert_allclose(pb.feature_importances(model), expected, atol=1e-12)


@every
def test_rows_to_predict(fit, tmp_path):
    X, y, weight = frame(2)
    model = fit(X, y, weight)
    score = pb.decision_function(model, X)
    np.testing.assert_array_equal(pb.decision_function(model, X[["size", *X.columns[:3]]]), score)
    first = np.concatenate([pb.decision_function(model, X[i : i + 1]) for i in range(20)])
    np.testing.assert_array_equal(first, score[:20])
    pb.save(model, tmp_path / "model")
    read = pb.load(tmp_path / "model")
    np.testing.assert_array_equal(pb.decision_function(read, X), score)
    unseen = X.assign(colour="black")
    missing = X.assign(colour=None)
    np.testing.assert_array_equal(
        pb.decision_function(model, unseen), pb.decision_function(model, missing)
    )
    *_, last = pb.staged_decision_function(model, X)
    np.testing.assert_allclose(last, score, atol=1e-9)
    assert (pb.prediction_cost(model, X, unit="features") <= 8).all()
    parts = model.contributions(X[:1])
    assert parts.shape == (5,)
    np.testing.assert_allclose(parts.sum(), score[0])
    assert "colour=" in pb.describe(model) or "separator" in pb.describe(model)
    with pytest.raises(ValueError, match="got inf in column 'age'"):
        pb.predict(model, X.assign(age=np.inf))


def test_coefficients_speak_of_levels():
    X, y, _ = frame(3)
    summary = pb.inspection.coefficients(pb.fit_probitboost(X, y, max_iter=10), X)
    assert summary.names == tuple(expanded(X)[1])
    assert summary.slopes.shape == (1, 1, 8)


def test_measured_sums_of_categories():
    X, y, _ = frame(4)
    Z, _ = expanded(X)
    weak = pb.weak.affine(n_directions=20)
    fit = pb.fit_adaboost
    sigma = np.array([1.0, np.nan, 0.1, 0.0])
    wide = np.array([1.0, 0, 0, 0, 0, 0.1, 0, 0])
    model = fit(X, y, n_estimators=4, weak_learner=weak, observation=pb.observation.gaussian(sigma))
    twin = fit(Z, y, n_estimators=4, weak_learner=weak, observation=pb.observation.gaussian(wide))
    np.testing.assert_array_equal(model.record.certificate, twin.record.certificate)
    np.testing.assert_array_equal(
        pb.decision_function(model, X, route="expected"),
        pb.decision_function(twin, Z, route="expected"),
    )
    np.testing.assert_allclose(pb.certificate(model, X, y), model.record.certificate[-1], rtol=1e-9)
    with pytest.raises(ValueError, match=r"sigma: expected 0 or NaN .* got 0\.5 for column 'size'"):
        fit(X, y, observation=pb.observation.gaussian([1.0, 0.0, 0.1, 0.5]))


# Probit trees


@pytest.mark.parametrize("holes", [False, True])
def test_one_leaf_is_probitboost(holes):
    X, y, weight = frame(5, holes=holes)
    tree = pb.fit_probit_tree(X, y, max_depth=0, max_iter=15, sample_weight=weight)
    model = pb.fit_probitboost(X, y, max_iter=15, sample_weight=weight)
    np.testing.assert_array_equal(tree.coefficient[0, 0, 1:], model.slopes)
    np.testing.assert_array_equal(tree.leaf_mean[0], model.mean)
    actual, expected = pb.decision_function(tree, X), pb.decision_function(model, X)
    np.testing.assert_allclose(actual, expected, rtol=1e-13)


@pytest.mark.parametrize("classes", [2, 3])
def test_leaves_read_levels_as_columns(classes, tmp_path):
    X, y, weight = frame(6)
    y = y.astype(int) + (np.arange(len(y)) % 3 == 0) * (classes == 3)
    Z, names = expanded(X)
    tree = pb.fit_probit_tree(
        X, y, max_depth=2, min_samples_leaf=30, max_iter=8, sample_weight=weight
    )
    assert tree.coefficient.shape == (tree.n_leaves, 1 if classes == 2 else 3, 9)
    leaf = tree.partition.leaf[tree.partition.nodes_of(X)]
    values = tree.values(X)
    for i in range(len(X)):
        row = np.where(np.isnan(Z[i]), tree.leaf_mean[leaf[i]], Z[i])
        at = tree.coefficient[leaf[i], :, 1:] @ row + tree.coefficient[leaf[i], :, 0]
        np.testing.assert_allclose(values[i], at, rtol=1e-11, atol=1e-11)
    first = np.concatenate([tree.values(X[i : i + 1]) for i in range(30)])
    np.testing.assert_array_equal(first, values[:30])
    parts = tree.contributions(X[:1])
    np.testing.assert_allclose(parts.sum(axis=0), values[0] if classes == 3 else values[0, 0])
    assert len(parts) == 5
    assert pb.feature_importances(tree).shape == (4,)
    assert (pb.prediction_cost(tree, X, unit="features") <= 4).all()
    assert pb.inspection.coefficients(tree).names == tuple(names)
    assert any(name in pb.describe(tree) for name in names if "=" in name)
    pb.save(tree, tmp_path / "tree")
    np.testing.assert_array_equal(pb.load(tmp_path / "tree").values(X), values)


def test_sbpmt_of_categories(tmp_path):
    X, y, weight = frame(7)
    model = pb.fit_sbpmt(
        X, y, n_estimators=4, n_boosting_rounds=2, max_iter=5, rng=0, sample_weight=weight
    )
    share = pb.predict_proba(model, X)
    assert np.mean(pb.predict(model, X) == y) > 0.75
    assert model.oob.error < 0.4
    pb.save(model, tmp_path / "model")
    np.testing.assert_array_equal(pb.predict_proba(pb.load(tmp_path / "model"), X), share)
    assert pb.feature_importances(model).shape == (4,)
