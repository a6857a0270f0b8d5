"""Labels that are missing, mixed, too large, or numbers of a regression were taken as classes.

Each is named, with its row; numbers that are not all whole are a regression, for what takes both.
"""

import numpy as np
import pytest

import pboost as pb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
TWO = np.where(X[:, 0] > 0, "ash", "oak")
BUILDERS = {
    "tree": lambda y: pb.fit_boosted_tree(X, y, max_nodes=2),
    "real": lambda y: pb.fit_real_adaboost(X, y, n_estimators=2),
    "stagewise": lambda y: pb.fit_gradient_boosting(X, y, loss="log_loss", n_estimators=2),
    "probit": lambda y: pb.fit_probitboost(X, y, max_iter=2),
    "generic": lambda y: pb.models.GenericGreedy(y),
}
SEVERAL = {
    "cart": lambda y: pb.fit_cart(X, y),
    "pruned": lambda y: pb.fit_pruned_cart(X, y, cv=2, rng=0),
    "forest": lambda y: pb.fit_random_forest(X, y, n_estimators=2, rng=0),
    "bagging": lambda y: pb.fit_bagging(pb.fit_cart, X, y, n_estimators=2, rng=0),
    "rest": lambda y: pb.fit_one_vs_rest(pb.fit_adaboost, X, y, n_estimators=2),
    "samme": lambda y: pb.fit_samme(X, y, base_learner=pb.fit_cart, n_estimators=2),
    "sbpmt": lambda y: pb.fit_sbpmt(X, y, n_estimators=2, n_boosting_rounds=1, max_iter=2, rng=0),
    "folds": lambda y: pb.cross_validate(pb.fit_cart, X, y, cv=2, rng=0),
}
EVERY = BUILDERS | SEVERAL
every = pytest.mark.parametrize("fit", EVERY.values(), ids=EVERY)
#: What takes a regression, too.
OF_BOTH = ("cart", "pruned", "forest", "bagging", "folds")
CLASSIFIERS = {kind: fit for kind, fit in EVERY.items() if kind not in OF_BOTH}


def with_label(value, row=7):
    labels = TWO.tolist()
    labels[row] = value
    return labels


@every
@pytest.mark.parametrize("value", [None, float("nan"), np.nan, np.float32("nan")], ids=repr)
def test_missing(fit, value):
    for given in (with_label(value), np.array(with_label(value), dtype=object)):
        with pytest.raises(ValueError, match=r"^y: missing label in row 7$"):
            fit(given)
    numbers = np.where(TWO == "ash", 0.0, 1.0)
    numbers[[7, 9]] = np.nan
    with pytest.raises(ValueError, match=r"^y: missing label in row 7 \(and 1 more\)$"):
        fit(numbers)
    with pytest.raises(ValueError, match=r"^y: expected class labels, got infinity in row 7$"):
        fit(np.where(np.arange(40) == 7, np.inf, TWO == "ash"))


@every
def test_missing_in_columns_of_frames(fit):
    pd = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    numbers = [None if row == 7 else row % 2 for row in range(40)]
    for given in (
        pd.Series(with_label(None)),
        pd.Series(with_label(pd.NA), dtype="string"),
        pd.Series(numbers, dtype="Int64"),
        pd.Series(with_label(None), dtype="category"),
        polars.Series(with_label(None)),
        polars.Series(numbers),
    ):
        with pytest.raises(ValueError, match=r"^y: missing label in row 7$"):
            fit(given)


@every
def test_numbers_beside_strings(fit):
    for value in (1, 1.5, True):
        with pytest.raises(
            TypeError, match=r"^y: expected class labels that are all numbers or all str"
        ):
            fit(with_label(value))


@every
def test_integers_beyond_64_bits(fit):
    for labels in ([1, 10**30], [-1, 2**63], [2**64, 2**64 + 1]):
        for given in (labels * 20, np.array(labels * 20, dtype=object)):
            with pytest.raises(ValueError, match=r"^y: .*fit into 64 bits.*to strings"):
                fit(given)


@pytest.mark.parametrize("labels", [[2**53, 2**53 + 1], [2**63, 2**64 - 1], [-(2**63), 2**63 - 1]])
@pytest.mark.parametrize("kind", ["tree", "cart", "forest", "bagging", "rest", "samme"])
def test_integers_of_64_bits_are_kept_apart(kind, labels, tmp_path):
    given = [labels[int(name == "oak")] for name in TWO]
    model = EVERY[kind](given)
    assert model.classes.tolist() == labels
    assert set(pb.predict(model, X).tolist()) == set(labels)
    assert (pb.predict(model, X) == np.array(given)).mean() > 0.9
    pb.save(model, tmp_path / "model.npz")
    assert pb.load(tmp_path / "model.npz").classes.tolist() == labels
    assert pb.inspection.permutation_importance(model, X, given, rng=0)[0].mean() > 0.1


def test_objects_that_are_all_numbers():
    model = pb.fit_cart(X, np.where(TWO == "ash", 1.0, 2.0).astype(object))
    assert model.classes.tolist() == [1.0, 2.0]


# Numbers of a regression


@pytest.mark.parametrize("fit", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_a_continuous_target(fit):
    for y in (X[:, 0], X[:, 0].astype(np.float32), np.round(X[:, 0], 1), X[:, 0].astype(object)):
        with pytest.raises(ValueError, match=r'^y: .*non-integer.*task="regression".*strings'):
            fit(y)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_two_numbers_are_two_labels(kind):
    model = EVERY[kind](np.where(TWO == "ash", 0.5, 1.5))
    if hasattr(model, "classes"):
        assert model.classes.tolist() == [0.5, 1.5]


@pytest.mark.parametrize("kind", SEVERAL)
def test_whole_numbers_are_labels(kind):
    three = np.digitize(X[:, 0], [-0.5, 0.5]) * 1.0 - 1
    model = SEVERAL[kind](three)
    if hasattr(model, "classes"):
        assert model.classes.tolist() == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize("kind", OF_BOTH)
def test_a_regression_is_one(kind):
    for y in (X[:, 0], X[:, 0].astype(object), np.where(TWO == "ash", 0.5, 1.5)):
        actual = EVERY[kind](y)
        assert getattr(actual, "task", None) == "regression" or actual.classes is None


# Encoded columns


def test_names_of_encoded_columns_are_different():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": ["x", "y"], "a=x": [1.0, 2.0]})
    for encode in (pb.data.one_hot, pb.data.fit_one_hot):
        with pytest.raises(
            ValueError, match=r"^X: expected distinct names after encoding, got 'a=x'"
        ):
            encode(frame)
    frame = pd.DataFrame({"a": ["b=c", "d"], "a=b": ["c", "e"]})
    with pytest.raises(
        ValueError, match=r"^X: expected distinct names after encoding, got 'a=b=c'"
    ):
        pb.data.one_hot(frame)
