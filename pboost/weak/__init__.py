"""Weak learners, which train the node classifiers of decision graphs.

Pass a weak learner as ``weak_learner=`` to a fit function. Each module defines the options, search
and factory function of one kind.
"""

from __future__ import annotations

from pboost.weak.base import KINDS as KINDS
from pboost.weak.base import Weak
from pboost.weak.function_search import FromEstimator, Oracle, RowLearner, from_estimator, oracle
from pboost.weak.linear_search import Linear, linear
from pboost.weak.real import Feature, Hypothesis, RealLearner, feature, hypothesis
from pboost.weak.separator_search import Separator, separator
from pboost.weak.stump_search import Affine, ColumnLearner, Stump, affine, stump

__all__ = [
    "Affine",
    "ColumnLearner",
    "Feature",
    "FromEstimator",
    "Hypothesis",
    "Linear",
    "Oracle",
    "RealLearner",
    "RowLearner",
    "Separator",
    "Stump",
    "Weak",
    "affine",
    "feature",
    "from_estimator",
    "hypothesis",
    "linear",
    "oracle",
    "separator",
    "stump",
]
