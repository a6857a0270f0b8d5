"""Estimators in pipelines of scikit-learn that make sparse matrices."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import pboost as pb
from pboost.sklearn import (
    CartClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
)

RNG = np.random.default_rng(0)
X = RNG.integers(0, 6, (120, 3))
WORDS = np.array(["ash", "elm", "oak", "yew", "fir", "bay"])
TEXTS = [" ".join(WORDS[row]) for row in X]
Y = np.array(["low", "mid", "high"])[np.digitize(X[:, 0] + 0.1 * X[:, 1], [2, 4])]


def test_text_and_one_hot_columns():
    boosting = GradientBoostingClassifier(n_estimators=5, min_samples_in_bin=1)
    one_hot = make_pipeline(OneHotEncoder(), boosting)
    assert cross_val_score(one_hot, X, Y, cv=3).min() > 0.8
    encoded = OneHotEncoder().fit_transform(X)
    fitted = pickle.loads(pickle.dumps(one_hot.fit(X, Y)))
    dense = fitted[-1].predict_proba(encoded.toarray())
    assert np.array_equal(fitted.predict_proba(X), dense)
    assert np.array_equal([*fitted[-1].staged_predict_proba(encoded)][-1], dense)
    assert fitted[-1].apply(encoded).shape == (120, 15)
    assert fitted[-1].n_features_in_ == 18
    words = make_pipeline(TfidfVectorizer(), boosting).fit(TEXTS, Y == "low")
    assert words.decision_function(TEXTS).shape == (120,)
    numbers = make_pipeline(OneHotEncoder(), GradientBoostingRegressor(n_estimators=20))
    assert numbers.fit(X, X[:, 0] / 3).score(X, X[:, 0] / 3) > 0.8


def test_other_estimators_only_predict_from_sparse_rows():
    given = sparse.csr_matrix(X)
    with pytest.raises(TypeError, match="sparse matrices are not supported"):
        CartClassifier().fit(given, Y)
    tree = CartClassifier(max_depth=3).fit(X, Y)
    assert np.array_equal(tree.predict(given), tree.predict(X))


def test_cross_validation_equals_that_of_dense_rows():
    def boosting(X, y, **options):
        return pb.fit_gradient_boosting(
            X, y, n_estimators=4, random_strength=0, growth="independent", max_depth=3, **options
        )

    given, labels = sparse.csc_array(X), Y == "low"
    options = {"cv": 3, "rng": 0, "sample_weight": RNG.integers(1, 3, 120)}
    result = pb.cross_validate(boosting, given, labels, **options)
    dense = pb.cross_validate(boosting, X, labels, **options)
    for name in ("error", "log_loss", "cost", "proven_cost"):
        assert np.array_equal(getattr(result, name), getattr(dense, name))
