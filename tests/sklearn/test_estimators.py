"""The estimators within scikit-learn, and their models."""

from __future__ import annotations

import pickle
from io import BytesIO

import numpy as np
import pytest

import pboost as pb

pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
import joblib
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_friedman1
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import partial_dependence
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pboost.sklearn
from pboost.sklearn import (
    AdaBoostClassifier,
    CartClassifier,
    CartRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    MatryoshkaClassifier,
    ObliqueTreeClassifier,
    RandomForestClassifier,
    SBPMTClassifier,
    SoftTreeClassifier,
)

#: Small settings.
SMALL = {
    "n_estimators": 4,
    "n_boosting_rounds": 6,
    "max_nodes": 7,
    "shape": (3, 3),
    "max_iter": 6,
    "n_stumps": 8,
    "random_state": 0,
}
BUDGETS = {"BudgetClassifier", "BudgetRegressor"}  # in test_within.py
NAMES = [name for name in pboost.sklearn.__all__ if name[0].isupper() and name not in BUDGETS]
CLASSIFIERS = [name for name in NAMES if name.endswith("Classifier")]
GRAPHS = (
    AdaBoostClassifier,
    SoftTreeClassifier,
    MatryoshkaClassifier,
    ObliqueTreeClassifier,
)
#: Those of which, as they are, each of more than two classes is told from the rest.
OF_TWO = {"MatryoshkaClassifier", "ObliqueTreeClassifier"}
X, CODES = load_iris(return_X_y=True)
SPECIES = np.array(["setosa", "versicolor", "virginica"])[CODES]
NUMBERS = X[:, 2] - X[:, 0]
TWO = CODES > 0


def small(name, **options):
    """Return an estimator that is fitted fast."""
    estimator = getattr(pboost.sklearn, name)()
    kept = {key: value for key, value in SMALL.items() if key in estimator.get_params()}
    for instead, option in (("weak_learner", "n_stumps"), ("shape", "max_nodes")):
        if instead in estimator.get_params():
            kept.pop(option, None)
    return estimator.set_params(**kept, **options)


def target(estimator):
    return SPECIES if is_classifier(estimator) else NUMBERS


@pytest.mark.parametrize("name", NAMES)
def test_model_is_that_of_the_builder(name):
    estimator = small(name)
    parameters = estimator.get_params()
    options = {
        option: parameters[{"rng": "random_state", "n_threads": "n_jobs"}.get(option, option)]
        for option in estimator._options({})
        if option not in ("weak_learner", "observation", "min_samples_leaf")
    }
    options |= {} if is_classifier(estimator) else {"task": "regression"}
    if type(estimator) is SoftTreeClassifier:
        options["observation"] = pb.observation.adatree2()
    y = TWO if is_classifier(estimator) else NUMBERS
    model = type(estimator).builder(X, y, **options)
    estimator.fit(X, y)
    assert type(estimator.model_) is type(model)
    assert pb.describe(estimator.model_) == pb.describe(model)
    np.testing.assert_array_equal(estimator.predict(X), pb.predict(model, X))


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize(
    "y",
    [SPECIES, SPECIES.astype(object), CODES, CODES + 0.0, TWO, SPECIES[:100], CODES[:100] * 5 - 1],
    ids=lambda y: f"{y.dtype}-{len(np.unique(y))}",
)
def test_labels(name, y):
    rows = X[: len(y)]
    estimator = small(name).fit(rows, y)
    labels = np.unique(y)
    np.testing.assert_array_equal(estimator.classes_, labels)
    assert estimator.classes_.dtype == y.dtype
    actual, shares = estimator.predict(rows), estimator.predict_proba(rows)
    assert actual.dtype == y.dtype
    assert (actual == y).mean() > 0.9
    assert shares.shape == (len(y), len(labels))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(labels[shares.argmax(axis=1)], actual)
    np.testing.assert_array_equal(pb.predict(estimator.model_, rows), actual)
    is_rest = len(labels) > 2 and name in OF_TWO
    assert isinstance(estimator.model_, pb.models.OneVsRest) == is_rest


@pytest.mark.parametrize("name", NAMES)
def test_frames(name):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    estimator = small(name)
    y = target(estimator)
    estimator.fit(frame, pandas.Series(y))
    assert estimator.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    model = estimator.model_
    model = model.models[0] if isinstance(model, pb.models.OneVsRest) else model
    assert model.feature_names == ("a", "b", "c", "d")
    plain = clone(estimator).fit(X, y)
    np.testing.assert_array_equal(estimator.predict(frame), plain.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(frame[["b", "a", "c", "d"]])
    piped = make_pipeline(StandardScaler(), clone(estimator)).set_output(transform="pandas")
    piped.fit(frame, y)
    assert piped[-1].feature_names_in_.tolist() == ["a", "b", "c", "d"]


@pytest.mark.parametrize("name", NAMES)
def test_copies_and_files(name):
    estimator = small(name)
    estimator.fit(X, target(estimator))
    predicted = estimator.predict(X)
    file = BytesIO()
    joblib.dump(estimator, file)
    file.seek(0)
    for other in (pickle.loads(pickle.dumps(estimator)), joblib.load(file)):
        np.testing.assert_array_equal(other.predict(X), predicted)
        assert repr(other) == repr(estimator)
    again = clone(estimator)
    assert not hasattr(again, "model_")
    np.testing.assert_array_equal(again.fit(X, target(estimator)).predict(X), predicted)


@pytest.mark.parametrize("name", NAMES)
def test_stages(name):
    estimator = small(name)
    staged = [m for m in dir(estimator) if m.startswith("staged_")]
    estimator.fit(X, target(estimator))
    for method in staged:
        stages = list(getattr(estimator, method)(X))
        assert len(stages) > 1
        last = getattr(estimator, method.removeprefix("staged_"))(X)
        if last.dtype.kind == "f":
            np.testing.assert_allclose(stages[-1], last, atol=1e-12)
        else:
            np.testing.assert_array_equal(stages[-1], last)
    growing = (*GRAPHS, GradientBoostingClassifier, SBPMTClassifier)
    expected = (
        3 if isinstance(estimator, growing) else isinstance(estimator, GradientBoostingRegressor)
    )
    assert len(staged) == expected


def test_grid_search():
    grid = [
        {"weak_learner": ["stump"], "criterion": ["gini", "entropy"], "min_samples_leaf": [1, 5]},
        {"weak_learner": ["affine"], "n_directions": [20, 40]},
        {
            "weak_learner": [pb.weak.linear(max_pairs=3), "separator"],
            "observation": ["flip"],
            "flip_rate": [0.1],
        },
    ]
    estimator = AdaBoostClassifier(n_estimators=4)
    search = GridSearchCV(estimator, grid, cv=3, error_score="raise", n_jobs=2).fit(X, SPECIES)
    assert len(search.cv_results_["params"]) == 8
    assert search.best_score_ > 0.9


@pytest.mark.full
def test_calibration_and_dependence():
    forest = RandomForestClassifier(n_estimators=10, random_state=0)
    calibrated = CalibratedClassifierCV(forest, cv=3).fit(X, SPECIES, sample_weight=1.0 + CODES)
    assert calibrated.score(X, SPECIES) > 0.9
    soft = SoftTreeClassifier().fit(X, SPECIES)
    assert CalibratedClassifierCV(soft, cv=3, method="isotonic").fit(X, CODES).score(X, CODES) > 0.9
    assert partial_dependence(soft, X, [2], grid_resolution=5)["average"].shape == (3, 5)
    numbers = GradientBoostingRegressor(n_estimators=10).fit(X, NUMBERS)
    rising = partial_dependence(numbers, X, [2], grid_resolution=5)["average"][0]
    assert rising[-1] > rising[0]


@pytest.mark.parametrize("name", NAMES)
def test_importances(name):
    estimator = small(name)
    with pytest.raises(AttributeError):
        _ = estimator.feature_importances_
    estimator.fit(X, target(estimator))
    actual = estimator.feature_importances_
    np.testing.assert_array_equal(actual, pb.feature_importances(estimator.model_))
    kept = SelectFromModel(clone(estimator)).fit(X, target(estimator)).get_support()
    np.testing.assert_array_equal(kept, actual >= actual.mean())


def test_pruning():
    numbers, y = make_friedman1(300, noise=2.0, random_state=0)
    full = CartRegressor().fit(numbers, y)
    pruned = CartRegressor(pruned=True, random_state=0, cv=5).fit(numbers, y)
    small = CartRegressor(pruned=True, rule="1se", random_state=0, cv=5).fit(numbers, y)
    assert full.model_.n_leaves > pruned.model_.n_leaves > small.model_.n_leaves > 1
    custom_model = pb.fit_pruned_cart(numbers, y, task="regression", rule="1se", cv=5, rng=0)
    assert small.model_.pruning.error.tolist() == custom_model.pruning.error.tolist()
    with pytest.raises(TypeError, match="pruned: expected True or False"):
        CartClassifier(pruned="1se").fit(X, CODES)


def test_losses_without_probabilities():
    hinge = GradientBoostingClassifier(loss="hinge", n_estimators=20)
    assert not hasattr(hinge, "predict_proba")
    assert not hasattr(hinge, "staged_predict_proba")
    assert hinge.fit(X, TWO).score(X, TWO) > 0.9
    with pytest.raises(ValueError, match=r"Only binary classification is supported\."):
        hinge.fit(X, CODES)
    assert GradientBoostingClassifier(loss="probit", n_estimators=5).fit(X, CODES).predict_proba(
        X
    ).shape == (
        150,
        3,
    )


@pytest.mark.parametrize("name", ["CartClassifier", "SoftTreeClassifier", "SBPMTClassifier"])
@pytest.mark.parametrize("dtype", [float, np.float32, int])
def test_what_a_mask_hides_is_missing(name, dtype):
    """Whoever would take what is hidden fits another model."""
    rows = (X * 10).astype(dtype)
    hidden = np.ma.masked_greater(rows, 70)
    before = hidden.copy()
    holes = np.where(hidden.mask, np.nan, rows)
    actual = small(name)
    other = clone(actual).fit(holes, TWO)
    actual.fit(hidden, TWO)
    assert np.array_equal(actual.predict_proba(hidden), other.predict_proba(holes))
    assert np.array_equal(other.predict_proba(hidden), other.predict_proba(holes))
    assert np.array_equal(hidden.mask, before.mask)
    assert np.array_equal(hidden.data, before.data)
    assert actual.n_features_in_ == 4


def test_masks_where_they_mean_nothing():
    hidden = np.ma.masked_greater(X, 7.0)
    tree = CartClassifier(missing="error")
    with pytest.raises(ValueError, match="X: expected finite numbers, got nan in column 0"):
        tree.fit(hidden, CODES)
    tree.fit(np.ma.array(X), CODES)
    with pytest.raises(ValueError, match="X: expected an array without a mask"):
        tree.predict(list(hidden))
    with pytest.raises(ValueError, match=r"y: expected an array .* the first at \[3\]"):
        CartClassifier().fit(X, np.ma.array(CODES, mask=np.arange(150) == 3))
    with pytest.raises(ValueError, match="y: expected an array without a mask"):
        CartRegressor().fit(X, np.ma.array(X[:, 0], mask=np.arange(150) == 3))


def test_masks_beside_categories():
    words = np.ma.array(np.c_[SPECIES.astype(object), X[:, :1]])
    words[::7, 0] = np.ma.masked
    tree = CartClassifier(categorical_features=[0]).fit(words, CODES)
    assert tree.model_.table.level_names(0) == ("setosa", "versicolor", "virginica")
    assert tree.model_.table.has_missing.tolist() == [True, False]
    assert tree.predict(words).shape == (150,)


# Soft labels

SHARE = np.random.default_rng(3).dirichlet([0.3, 0.3, 0.3], size=150)
WEIGHTS = [None, "balanced", {"setosa": 2.0, "versicolor": 0.25}]


@pytest.mark.parametrize("class_weight", WEIGHTS, ids=["none", "balanced", "dict"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_sure_soft_labels_are_labels(name, class_weight):
    estimator = small(name, class_weight=class_weight)
    weight = np.random.default_rng(4).exponential(size=150)
    sure = np.eye(3)[CODES][:, [2, 0, 1]]
    names = ["virginica", "setosa", "versicolor"]
    actual = clone(estimator).fit(X, sample_weight=weight, y_proba=sure, classes=names)
    other = clone(estimator).fit(X, SPECIES, weight)
    assert actual.classes_.tolist() == other.classes_.tolist()
    assert np.array_equal(actual.predict_proba(X), other.predict_proba(X))
    assert np.array_equal(actual.predict(X), other.predict(X))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_soft_labels_are_those_of_the_builder(name):
    estimator = small(name)
    actual = clone(estimator).fit(X, y_proba=SHARE[:, :2] / SHARE[:, :2].sum(axis=1)[:, None])
    assert actual.classes_.tolist() == [0, 1]
    half = clone(estimator).fit(X.tolist(), y_proba=SHARE[:, 1] / SHARE[:, :2].sum(axis=1))
    assert np.allclose(half.predict_proba(X), actual.predict_proba(X))
    assert clone(estimator).fit(X, y_proba=SHARE).predict_proba(X).shape == (150, 3)


def test_class_weights_of_soft_labels_are_those_of_entries():
    """Each label of a row as a row of its own, with the weight of its class."""
    factors = {0: 1.0, 1: 3.0, 2: 0.0}
    soft = CartClassifier(class_weight=factors, min_samples_leaf=1, max_depth=3).fit(
        X, y_proba=SHARE
    )
    rows, label = np.nonzero(SHARE)
    weight = SHARE[rows, label] * np.array([1.0, 3.0, 0.0])[label]
    hard = pb.fit_cart(X[rows], label, sample_weight=weight, max_depth=3)
    assert np.array_equal(soft.model_.feature, hard.feature)
    np.testing.assert_allclose(soft.model_.value, hard.value)
    even = CartClassifier(class_weight="balanced").fit(X, y_proba=SHARE)
    np.testing.assert_allclose(even.model_.value[0], 1 / 3)


def test_labels_of_frames_of_probabilities():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(SHARE, columns=["b", "c", "a"])
    tree = CartClassifier(pruned=True, random_state=0, cv=3).fit(X, y_proba=frame)
    assert tree.classes_.tolist() == ["a", "b", "c"]
    assert set(tree.predict(X)) <= {"a", "b", "c"}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_what_soft_labels_must_be(name):
    estimator = small(name)
    with pytest.raises(ValueError, match="y: expected 150 labels, one per row of X, got shape"):
        estimator.fit(X, CODES[1:], y_proba=SHARE)
    with pytest.raises(ValueError, match=r"y: expected class labels of the model, .* got 'setosa'"):
        estimator.fit(X, SPECIES, y_proba=SHARE)
    with pytest.raises(ValueError, match="classes: expected None without y_proba"):
        estimator.fit(X, CODES, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="requires y to be passed"):
        estimator.fit(X)
    with pytest.raises(ValueError, match="y_proba: expected 150 rows, one per row of X, got 149"):
        estimator.fit(X, y_proba=SHARE[1:])
    with pytest.raises(ValueError, match="y_proba: expected probabilities that sum to 1"):
        estimator.fit(X, y_proba=0.9 * SHARE)
    with pytest.raises(ValueError, match="Input X contains infinity"):
        estimator.fit(X * [1, 1, 1, np.inf], y_proba=SHARE)


def test_regressors_have_no_soft_labels():
    with pytest.raises(TypeError, match="y_proba"):
        CartRegressor().fit(X, X[:, 0], y_proba=SHARE)


def test_soft_labels_are_routed():
    share = SHARE[:, :2] / SHARE[:, :2].sum(axis=1)[:, None]
    with sklearn.config_context(enable_metadata_routing=True):
        tree = CartClassifier().set_fit_request(y_proba=True)
        assert tree.get_metadata_routing().fit.requests["y_proba"] is True
        pipe = make_pipeline(StandardScaler(), tree).fit(X, y_proba=share)
    assert pipe.predict_proba(X).shape == (150, 2)


def test_one_class_is_refused():
    for name in CLASSIFIERS:
        with pytest.raises(ValueError, match="two classes or more, got one class, 'setosa'"):
            small(name).fit(X[:50], SPECIES[:50])


def test_no_rows_are_refused():
    pd = pytest.importorskip("pandas")
    for name in NAMES:
        for rows in (X[:0], pd.DataFrame(X[:0])):
            with pytest.raises(ValueError, match=r"at least one row|a minimum of 1 is required"):
                small(name).fit(rows, target(small(name))[:0])


SIGMA = np.abs(np.random.default_rng(1).normal(size=X.shape)) + 0.01


@pytest.mark.parametrize("cls", GRAPHS[:3])
@pytest.mark.parametrize("y", [TWO, CODES], ids=["two", "three"])
def test_errors_of_measurement(cls, y):
    estimator = small(cls.__name__, observation="gaussian").fit(X, y, sigma=SIGMA)
    noise = pb.observation.gaussian(SIGMA)
    hard = estimator.decision_function(X)
    expected = estimator.decision_function(X, sigma=0.2)
    assert (hard != expected).any()
    model = estimator.model_
    models, columns = (model.models, expected.T) if y is CODES else ([model], [expected])
    for item, column in zip(models, columns, strict=True):
        custom_scores = pb.decision_function(item, X, "expected", sigma=0.2)
        np.testing.assert_array_equal(custom_scores, column)
        assert item.settings["observation"] == noise.settings()
    share = estimator.predict_proba(X, sigma=0.2)
    np.testing.assert_array_equal(
        estimator.predict(X, sigma=0.2), estimator.classes_[share.argmax(axis=1)]
    )
    with pytest.raises(ValueError, match="sigma"):
        small(cls.__name__).fit(X, y, sigma=SIGMA)


def test_route_is_a_setting():
    hard = SoftTreeClassifier(observation="gaussian", sigma=0.3).fit(X, CODES)
    soft = clone(hard).set_params(route="expected").fit(X, CODES)
    np.testing.assert_array_equal(soft.decision_function(X), hard.decision_function(X, sigma=0.3))
    assert (soft.predict_proba(X) != hard.predict_proba(X)).any()


def test_metadata_are_routed():
    estimator = AdaBoostClassifier(n_estimators=4, observation="gaussian")
    data = {"sigma": SIGMA, "sample_weight": 1.0 + np.arange(150) % 3}
    asked = dict.fromkeys(data, True)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = clone(estimator).set_fit_request(**asked).set_score_request(**asked)
        piped = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asking)
        piped.fit(X, TWO, **data)
        search = GridSearchCV(asking, {"n_estimators": [1, 4]}, cv=3, error_score="raise")
        search.fit(X, TWO, **data)
        validated = cross_validate(asking, X, TWO, params=data, return_estimator=True, cv=3)
    scaled = StandardScaler().fit_transform(X)
    for routed, rows in ((piped[-1], scaled), (search.best_estimator_, X)):
        alone = estimator.set_params(n_estimators=routed.n_estimators).fit(rows, TWO, **data)
        assert pb.describe(routed.model_) == pb.describe(alone.model_)
    assert validated["test_score"].min() > 0.9
    assert validated["estimator"][0].model_.settings["observation"]["kind"] == "gaussian"


def test_weights_are_copies():
    weights = np.random.default_rng(0).integers(0, 4, 150)
    for name in ("CartClassifier", "AdaBoostClassifier", "GradientBoostingClassifier"):
        weighted = small(name).fit(X, CODES, sample_weight=weights)
        copied = small(name).fit(X.repeat(weights, axis=0), CODES.repeat(weights))
        rounding = (
            1e-4 if name == "GradientBoostingClassifier" else 1e-7
        )  # of derivatives, to words
        actual, expected = weighted.predict_proba(X), copied.predict_proba(X)
        np.testing.assert_allclose(actual, expected, rtol=rounding)


def rows_of_a_table(n=90):
    """Return a frame with holes and categories, and labels that depend on both."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"a": rng.normal(size=n), "sky": rng.choice(["u", "v", "w"], n)})
    frame.loc[::5, ["a", "sky"]] = None
    return frame, np.where((frame.a.fillna(0) > 0) ^ (frame.sky == "u"), "yes", "no")


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_tables_are_fitted_as_they_are(name):
    frame, y = rows_of_a_table()
    cls = getattr(pboost.sklearn, name)
    options = {option for option, value in cls().get_params().items() if value is not None}
    own = {option: SMALL[option] for option in SMALL.keys() & options}
    model = cls(**own).fit(frame, y)
    assert model.model_.table.has_missing.tolist() == [True, True]
    assert model.feature_names_in_.tolist() == ["a", "sky"]
    share = model.predict_proba(frame)
    np.testing.assert_array_equal(share, pb.predict_proba(model.model_, frame))
    assert cross_validate(cls(**own), frame, y, cv=3)["test_score"].min() > 0.5
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "b"}))
    tags = sklearn.utils.get_tags(model).input_tags
    assert tags.allow_nan
    assert tags.categorical


def test_categories_of_arrays():
    frame, y = rows_of_a_table()
    values = frame.to_numpy(dtype=object)
    model = CartClassifier(categorical_features=[1]).fit(values, y)
    assert model.model_.table.categories[1].tolist() == ["u", "v", "w"]
    assert model.predict(values).tolist() == pb.predict(model.model_, values).tolist()
    codes = np.column_stack([frame.a, frame.sky.astype("category").cat.codes])
    assert CartClassifier(categorical_features=[1]).fit(codes, y).model_.table.has_levels
    assert not CartClassifier().fit(codes, y).model_.table.has_levels
