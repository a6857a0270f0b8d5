"""Boosting with probabilities: a classifier is a decision graph, boosting grows its open exits."""

from pboost import bounds, datasets, losses, observation, weak
from pboost._version import __version__, show_versions
from pboost.boosting.adaboost import fit_adaboost
from pboost.boosting.adaboost_real import fit_adaboost_real
from pboost.boosting.boosted_tree import fit_boosted_tree
from pboost.boosting.matryoshka import fit_matryoshka
from pboost.budget.answer_counts import AnswerCounts, count_answers
from pboost.budget.calibrate_exit import early_exit
from pboost.budget.distill import distill
from pboost.budget.on_demand import Decisions, decide, decisions
from pboost.budget.oracles import OracleDecision, OracleDecisions, ask_oracles, oracle_decisions
from pboost.budget.questions import Question
from pboost.budget.row_inquiry import Asked, AskError, Decision
from pboost.budget.within import fit_within
from pboost.data.bin_files import bin_files
from pboost.data.binned_values import BinnedValues
from pboost.data.column_folder import FolderError, StoredColumns, open_columns
from pboost.data.columns import BinnedColumns, SortedColumns
from pboost.data.encoding import OneHot, fit_one_hot, one_hot
from pboost.data.labels import balanced_weights
from pboost.data.made_columns import bin_columns, sort_columns
from pboost.distributed.partitions import partitions
from pboost.ensembles.bagging import fit_bagging
from pboost.ensembles.continuation import continue_fit
from pboost.ensembles.multiclass import fit_one_vs_rest, fit_samme
from pboost.ensembles.presets import fit_oblique_tree, fit_topdown_tree
from pboost.export.c_file import CFile, export_c
from pboost.export.json_text import from_json, to_json
from pboost.export.onnx_model import to_onnx
from pboost.export.shap_trees import to_shap, to_shapiq
from pboost.export.sql import to_sql
from pboost.export.treelite_model import to_treelite
from pboost.growth import generic_greedy as generic
from pboost.growth.fit_state import FitState
from pboost.inspection.calibrate import calibrate
from pboost.inspection.coefficients import Coefficients, coefficients, plot_coefficients
from pboost.inspection.cross_validation import CrossValidation, cross_validate
from pboost.inspection.explanation import Explanation, apply, decision_path, explain
from pboost.inspection.graph_plots import plot_graph
from pboost.inspection.guarantee import Guarantee, guarantee
from pboost.inspection.importance import feature_importances, permutation_importance
from pboost.inspection.label_sets import LabelSets, label_sets
from pboost.inspection.level_plots import plot_level_sets
from pboost.inspection.margins import (
    logistic_margin_curve,
    margin_bound,
    margin_curve,
    margin_error,
    margins,
    normalised_margins,
    plot_margin_curve,
)
from pboost.inspection.monotone import is_monotone
from pboost.inspection.plots import plot_budget_curve
from pboost.inspection.region_plots import plot_regions
from pboost.inspection.risk_control import RiskThreshold, risk_threshold
from pboost.inspection.step_plots import plot_pruning, plot_steps
from pboost.inspection.tree_plots import plot_tree
from pboost.models.base import (
    decision_function,
    describe,
    evaluation_cost,
    predict,
    predict_proba,
    prefix,
    staged_decision_function,
    staged_predict,
    staged_predict_proba,
)
from pboost.models.calibrated import CalibratedModel
from pboost.models.certificate import certificate
from pboost.models.early_exit import EarlyExitModel
from pboost.models.ensembles import Bagging, OneVsRest, WeightedVote
from pboost.models.files import load, save
from pboost.models.forest import Forest
from pboost.models.graph import DecisionGraph
from pboost.models.linear import HypothesisSum, LinearModel, ProbitModel
from pboost.models.probit_trees import ProbitTree
from pboost.models.soft_walk import reach
from pboost.models.stored import ModelFileError, OutOfBag, TrainingRecord
from pboost.models.subagged import SubaggedProbitTrees
from pboost.models.tree_record import TreeSum
from pboost.models.tree_sum import StagewiseModel
from pboost.models.trees import PruningTable, Tree
from pboost.models.trees_of import trees_of
from pboost.probit.probitboost import fit_probitboost
from pboost.probit.sbpmt import fit_sbpmt, sbpmt_published
from pboost.probit.tree import fit_probit_tree
from pboost.trees.cart import fit_cart
from pboost.trees.forest import fit_forest
from pboost.trees.pruning import PruningPath, fit_pruned_cart, prune, prune_path
from pboost.trees.stagewise import fit_stagewise
from pboost.values.options import ManyClassesError

__all__ = [
    "AnswerCounts",
    "AskError",
    "Asked",
    "Bagging",
    "BinnedColumns",
    "BinnedValues",
    "CFile",
    "CalibratedModel",
    "Coefficients",
    "CrossValidation",
    "Decision",
    "DecisionGraph",
    "Decisions",
    "EarlyExitModel",
    "Explanation",
    "FitState",
    "FolderError",
    "Forest",
    "Guarantee",
    "HypothesisSum",
    "LabelSets",
    "LinearModel",
    "ManyClassesError",
    "ModelFileError",
    "OneHot",
    "OneVsRest",
    "OracleDecision",
    "OracleDecisions",
    "OutOfBag",
    "ProbitModel",
    "ProbitTree",
    "PruningPath",
    "PruningTable",
    "Question",
    "RiskThreshold",
    "SortedColumns",
    "StagewiseModel",
    "StoredColumns",
    "SubaggedProbitTrees",
    "TrainingRecord",
    "Tree",
    "TreeSum",
    "WeightedVote",
    "__version__",
    "apply",
    "ask_oracles",
    "balanced_weights",
    "bin_columns",
    "bin_files",
    "bounds",
    "calibrate",
    "certificate",
    "coefficients",
    "continue_fit",
    "count_answers",
    "cross_validate",
    "datasets",
    "decide",
    "decision_function",
    "decision_path",
    "decisions",
    "describe",
    "distill",
    "early_exit",
    "evaluation_cost",
    "explain",
    "export_c",
    "feature_importances",
    "fit_adaboost",
    "fit_adaboost_real",
    "fit_bagging",
    "fit_boosted_tree",
    "fit_cart",
    "fit_forest",
    "fit_matryoshka",
    "fit_oblique_tree",
    "fit_one_hot",
    "fit_one_vs_rest",
    "fit_probit_tree",
    "fit_probitboost",
    "fit_pruned_cart",
    "fit_samme",
    "fit_sbpmt",
    "fit_stagewise",
    "fit_topdown_tree",
    "fit_within",
    "from_json",
    "generic",
    "guarantee",
    "is_monotone",
    "label_sets",
    "load",
    "logistic_margin_curve",
    "losses",
    "margin_bound",
    "margin_curve",
    "margin_error",
    "margins",
    "normalised_margins",
    "observation",
    "one_hot",
    "open_columns",
    "oracle_decisions",
    "partitions",
    "permutation_importance",
    "plot_budget_curve",
    "plot_coefficients",
    "plot_graph",
    "plot_level_sets",
    "plot_margin_curve",
    "plot_pruning",
    "plot_regions",
    "plot_steps",
    "plot_tree",
    "predict",
    "predict_proba",
    "prefix",
    "prune",
    "prune_path",
    "reach",
    "risk_threshold",
    "save",
    "sbpmt_published",
    "show_versions",
    "sort_columns",
    "staged_decision_function",
    "staged_predict",
    "staged_predict_proba",
    "to_json",
    "to_onnx",
    "to_shap",
    "to_shapiq",
    "to_sql",
    "to_treelite",
    "trees_of",
    "weak",
]
