"""Gradient boosting with trees of depth 3, without shrinkage and randomness."""

import pboost as pb

#: Options without random choices.
PLAIN = {"random_strength": 0.0, "subsample": None}


def fit_shallow(X, y=None, **options):
    plain = {"n_estimators": 100, "max_depth": 3, "leaf_shrinkage": 0.0, **PLAIN}
    return pb.fit_gradient_boosting(X, y, **{**plain, **options})
