"""Estimators of scikit-learn, each a builder of this package with its options as parameters.

They need scikit-learn 1.6 or later, ``pip install "pboosting[sklearn]"``, and are imported by
``import pboost.sklearn`` or ``from pboost.sklearn import RandomForestClassifier``, not by
``import pboost``.
"""

from __future__ import annotations

from pboost.values import install_hint

try:
    from sklearn.utils.validation import validate_data  # noqa: F401  # new in 1.6
except ImportError as error:
    raise ImportError(
        "pboost.sklearn needs scikit-learn 1.6 or later: "
        f"{install_hint('sklearn', 'scikit-learn')} ({error})"
    ) from error

from pboost.sklearn.costs import (
    BudgetClassifier,
    BudgetRegressor,
    best_within_budget,
    cost_scorer,
    cheapest_within_standard_error,
)
from pboost.sklearn.graphs import (
    MatryoshkaClassifier,
    ObliqueTreeClassifier,
    AdaBoostClassifier,
    SoftTreeClassifier,
)
from pboost.sklearn.trees import (
    CartClassifier,
    CartRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    ProbitTreeClassifier,
    SBPMTClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
)

__all__ = [
    "BudgetClassifier",
    "BudgetRegressor",
    "CartClassifier",
    "CartRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "MatryoshkaClassifier",
    "ObliqueTreeClassifier",
    "AdaBoostClassifier",
    "ProbitTreeClassifier",
    "SBPMTClassifier",
    "SoftTreeClassifier",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "best_within_budget",
    "cost_scorer",
    "cheapest_within_standard_error",
]
