"""What a first call with the wrong thing is answered: what came, and what to pass instead."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb

X = np.random.default_rng(0).normal(size=(60, 2))
Y = X[:, 0] > 0
TOWNS = np.array(["Ulm", "Bonn", "Jena"] * 20)
ENCODE = (
    r"; pass categorical columns in categorical_features or encode them with "
    r"pb\.data\.one_hot\(X\)$"
)


@pytest.mark.parametrize("kind", [object, "U4"])
def test_text_in_x(kind):
    towns = TOWNS.astype(kind)[:, None]
    for text in (towns, towns.tolist(), np.column_stack([TOWNS, X.astype(str)]).astype(kind)):
        with pytest.raises(
            TypeError, match=f"^X: .*(is not numeric|expected numbers, got text){ENCODE}"
        ):
            pb.fit_cart(text, Y)
    with pytest.raises(TypeError, match=f"^X: column 1 is not numeric{ENCODE}"):
        pb.fit_cart(np.hstack([towns, towns]), Y, categorical_features=[0])
    assert pb.fit_cart(towns, Y, categorical_features=[0]).table.level_names(0) == (
        "Bonn",
        "Jena",
        "Ulm",
    )


@pytest.mark.parametrize("kind", [object, "U4"])
def test_text_in_a_frame(kind):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": X[:, 0], "town": TOWNS.astype(kind)})
    model = pb.fit_cart(frame, Y)
    assert model.table.level_names(1) == ("Bonn", "Jena", "Ulm")


def test_missing_in_x():
    spoilt = X.copy()
    spoilt[3, 1] = np.inf
    with pytest.raises(ValueError, match=r"got inf in column 1, row 3$"):
        pb.fit_cart(spoilt, Y)
    spoilt[3, 1] = np.nan
    assert pb.fit_cart(spoilt, Y).table.has_missing.tolist() == [False, True]
    with pytest.raises(
        ValueError, match=r"got nan in column 1, row 3; impute missing values first$"
    ):
        pb.fit_cart(spoilt, Y, missing="error")


def test_a_column_as_y():
    pandas = pytest.importorskip("pandas")
    column = Y[:, None]
    for y, how in (
        (column, r"y\.ravel\(\)"),
        (column.tolist(), r"np\.ravel\(y\)"),
        (pandas.DataFrame({"ill": Y}), r"y\['ill'\]"),
    ):
        for task in ("classification", "regression"):
            with pytest.raises(
                ValueError, match=rf"got shape \(60, 1\); pass a single column as {how}$"
            ):
                pb.fit_cart(X, y, task=task)
    with pytest.raises(ValueError, match=r"got shape \(60, 2\)$"):
        pb.fit_cart(X, np.column_stack([Y, Y]))


def test_estimators_are_no_models():
    pytest.importorskip("sklearn")
    from pboost.sklearn import RandomForestClassifier

    estimator = RandomForestClassifier(n_estimators=2)
    with pytest.raises(
        TypeError, match=r"such as fit_adaboost returns, got RandomForestClassifier\(.*\)$"
    ):
        pb.predict(estimator, X)
    with pytest.raises(TypeError, match=r"; pass its attribute model_$"):
        pb.predict(estimator.fit(X, Y), X)
    with pytest.raises(TypeError, match=r"; for estimators: sklearn\.model_selection\.cross_valid"):
        pb.cross_validate(estimator, X, Y)


def test_few_of_many_labels_are_listed():
    many = np.arange(60)
    forest = pb.describe(
        pb.fit_random_forest(X, many, n_estimators=1, task="classification", rng=0)
    ).splitlines()[0]
    first = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (60 classes)]"
    assert forest.endswith(f"labels {first}")
    votes = pb.describe(pb.fit_samme(X, many % 12, n_estimators=1)).splitlines()[0]
    assert votes.endswith("classes 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (12 classes)")


def test_many_labels_can_be_caught():
    with pytest.raises(pb.models.MulticlassError) as caught:
        pb.fit_matryoshka(X, TOWNS)
    assert caught.type.__module__ == "pboost.models"
