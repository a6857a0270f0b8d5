"""Boosting with probabilities: a classifier is a decision graph, boosting grows its open exits."""

from pboost import bounds, datasets, observation, weak
from pboost._version import __version__
from pboost.adaboost import fit_adaboost
from pboost.boosted_tree import fit_boosted_tree
from pboost.columns import BinnedColumns, SortedColumns
from pboost.continuation import continue_fit
from pboost.encoding import OneHot, fit_one_hot, one_hot
from pboost.errors import ModelFileError
from pboost.evaluate import (
    certificate,
    decision_function,
    evaluation_cost,
    predict,
    predict_proba,
    staged_decision_function,
)
from pboost.explanation import Explanation, describe, explain
from pboost.graph import DecisionGraph, TrainingRecord
from pboost.io import load, save
from pboost.matryoshka import fit_matryoshka
from pboost.pruning import prefix
from pboost.soft_evaluate import reach
from pboost.sorting import bin_columns, sort_columns
from pboost.validation import CrossValidation, cross_validate

__all__ = [
    "BinnedColumns",
    "CrossValidation",
    "DecisionGraph",
    "Explanation",
    "ModelFileError",
    "OneHot",
    "SortedColumns",
    "TrainingRecord",
    "__version__",
    "bin_columns",
    "bounds",
    "certificate",
    "continue_fit",
    "cross_validate",
    "datasets",
    "decision_function",
    "describe",
    "evaluation_cost",
    "explain",
    "fit_adaboost",
    "fit_boosted_tree",
    "fit_matryoshka",
    "fit_one_hot",
    "load",
    "observation",
    "one_hot",
    "predict",
    "predict_proba",
    "prefix",
    "reach",
    "save",
    "sort_columns",
    "staged_decision_function",
    "weak",
]
