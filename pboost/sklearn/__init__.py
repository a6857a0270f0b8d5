"""Scikit-learn estimators. Their parameters are the options of the fit functions.

The estimators require scikit-learn 1.6 or later: ``pip install "pboosting[sklearn]"``. Import them
with ``import pboost.sklearn`` or ``from pboost.sklearn import RandomForestClassifier``. A plain
``import pboost`` does not import them.
"""

from __future__ import annotations

from pboost.values import install_hint

try:
    from sklearn.utils.validation import validate_data  # noqa: F401
except ImportError as error:
    raise ImportError(
        "pboost.sklearn needs scikit-learn 1.6 or later: "
        f"{install_hint('sklearn', 'scikit-learn')} ({error})"
    ) from error

from pboost.sklearn.costs import (
    BudgetClassifier,
    BudgetRegressor,
    best_within_budget,
    cheapest_within_standard_error,
    cost_scorer,
)
from pboost.sklearn.graphs import (
    AdaBoostClassifier,
    MatryoshkaClassifier,
    ObliqueTreeClassifier,
    SoftTreeClassifier,
)
from pboost.sklearn.trees import (
    CartClassifier,
    CartRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    ProbitTreeClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    SBPMTClassifier,
)

__all__ = [
    "AdaBoostClassifier",
    "BudgetClassifier",
    "BudgetRegressor",
    "CartClassifier",
    "CartRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "MatryoshkaClassifier",
    "ObliqueTreeClassifier",
    "ProbitTreeClassifier",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "SBPMTClassifier",
    "SoftTreeClassifier",
    "best_within_budget",
    "cheapest_within_standard_error",
    "cost_scorer",
]
