"""The checks of scikit-learn, of every estimator with its defaults and with some other settings."""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
from sklearn.utils.estimator_checks import estimator_checks_generator

import pboost.sklearn
from pboost.sklearn import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    ObliqueTreeClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    SBPMTClassifier,
    SoftTreeClassifier,
)

#: Those that draw rows, each row with the same probability whatever its weight.
RESAMPLING = (RandomForestClassifier, RandomForestRegressor, SBPMTClassifier)
OTHERS = [
    AdaBoostClassifier(n_estimators=10, weak_learner="affine", n_directions=30),
    AdaBoostClassifier(n_estimators=10, observation="gaussian", sigma=0.1, route="expected"),
    SoftTreeClassifier(observation="exact"),
    ObliqueTreeClassifier(max_depth=2, n_stumps=10),
    GradientBoostingClassifier(histogram_precision="wide"),
]


#: Those whose checks the quick tier leaves out: it has three, with their defaults.
FULL = (
    "Budget*",
    "CartClassifier*",
    "RandomForest*",
    "Matryoshka*",
    "Oblique*",
    "Probit*",
    "SBPMT*",
)
FULL += ("SoftTree*", "GradientBoostingRegressor*", "*=*")


def not_expected(estimator):
    """Return the checks that an estimator does not pass, and why."""
    if not isinstance(estimator, RESAMPLING):
        return {}
    why = "bags are drawn of rows, not of copies of rows"
    return {"check_sample_weight_equivalence_on_dense_data": why}


def named(value):
    """Return the name of a check, or an estimator as it is written."""
    return getattr(getattr(value, "func", value), "__name__", None) or " ".join(repr(value).split())


#: Budgets that a fit takes little time for; all families are tried with the default.
SMALL = {"BudgetClassifier": {"mean_comparisons": 3, "cv": 2}, "BudgetRegressor": {"cv": 2}}
DEFAULTS = [
    getattr(pboost.sklearn, name)(**SMALL.get(name, {}))
    for name in pboost.sklearn.__all__
    if name[0].isupper()
]
# What parametrize_with_checks does: that of 1.6 passes a generator on, which pytest 9 refuses.
CHECKS = [
    pair
    for estimator in (*DEFAULTS, *OTHERS)
    for pair in estimator_checks_generator(
        estimator, expected_failed_checks=not_expected(estimator), mark="xfail"
    )
]


# Some checks have classes of one row.
@pytest.mark.full_for(*FULL)
@pytest.mark.filterwarnings("ignore:y. class .* fewer than the . folds:UserWarning")
@pytest.mark.parametrize(("estimator", "check"), CHECKS, ids=named)
def test_checks(estimator, check):
    check(estimator)
