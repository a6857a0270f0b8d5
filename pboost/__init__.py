"""Boosting with probabilities: a classifier is a decision graph, boosting grows its open exits."""

from pboost import bounds, datasets, generic, observation, weak
from pboost._version import __version__
from pboost.adaboost import fit_adaboost
from pboost.adaboost_real import fit_adaboost_real
from pboost.additive import HypothesisSum, LinearModel
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
from pboost.margin import margin_bound, margin_error, margins, normalised_margins
from pboost.margin_curves import logistic_margin_curve, margin_curve, plot_margin_curve
from pboost.matryoshka import fit_matryoshka
from pboost.oblique_tree import fit_oblique_tree
from pboost.pruning import prefix
from pboost.soft_evaluate import reach
from pboost.sorting import bin_columns, sort_columns
from pboost.topdown import fit_topdown_tree
from pboost.validation import CrossValidation, cross_validate

__all__ = [
    "BinnedColumns",
    "CrossValidation",
    "DecisionGraph",
    "Explanation",
    "HypothesisSum",
    "LinearModel",
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
    "fit_adaboost_real",
    "fit_boosted_tree",
    "fit_matryoshka",
    "fit_oblique_tree",
    "fit_one_hot",
    "fit_topdown_tree",
    "generic",
    "load",
    "logistic_margin_curve",
    "margin_bound",
    "margin_curve",
    "margin_error",
    "margins",
    "normalised_margins",
    "observation",
    "one_hot",
    "plot_margin_curve",
    "predict",
    "predict_proba",
    "prefix",
    "reach",
    "save",
    "sort_columns",
    "staged_decision_function",
    "weak",
]
