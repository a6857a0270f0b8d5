"""Boosting with probabilities: a classifier is a decision graph, boosting grows its open exits."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pboost._version import __version__ as __version__
from pboost._version import show_versions as show_versions

if TYPE_CHECKING:
    from pboost import bounds as bounds
    from pboost import datasets as datasets
    from pboost import losses as losses
    from pboost import observation as observation
    from pboost import weak as weak
    from pboost.boosting.adaboost import fit_adaboost as fit_adaboost
    from pboost.boosting.adaboost_real import fit_real_adaboost as fit_real_adaboost
    from pboost.boosting.boosted_tree import fit_boosted_tree as fit_boosted_tree
    from pboost.boosting.matryoshka import fit_matryoshka as fit_matryoshka
    from pboost.budget.calibrate_exit import early_exit as early_exit
    from pboost.budget.distill import distill as distill
    from pboost.budget.on_demand import AcquisitionResult as AcquisitionResult
    from pboost.budget.on_demand import AcquisitionSession as AcquisitionSession
    from pboost.budget.on_demand import predict_with_acquisition as predict_with_acquisition
    from pboost.budget.on_demand import acquisition_session as acquisition_session
    from pboost.budget.oracles import AnnotatorModel as AnnotatorModel
    from pboost.budget.oracles import AnnotationResult as AnnotationResult
    from pboost.budget.oracles import AnnotationSession as AnnotationSession
    from pboost.budget.oracles import query_annotators as query_annotators
    from pboost.budget.oracles import fit_annotators as fit_annotators
    from pboost.budget.oracles import annotation_session as annotation_session
    from pboost.budget.questions import AcquiredValue as AcquiredValue
    from pboost.budget.questions import AcquisitionError as AcquisitionError
    from pboost.budget.questions import Query as Query
    from pboost.budget.within import fit_within_budget as fit_within_budget
    from pboost.data.columns.columns import BinnedColumns as BinnedColumns
    from pboost.data.columns.columns import BinnedValues as BinnedValues
    from pboost.data.columns.columns import SortedColumns as SortedColumns
    from pboost.data.columns.making import bin_columns as bin_columns
    from pboost.data.columns.making import sort_columns as sort_columns
    from pboost.data.on_disk.bin_files import bin_files as bin_files
    from pboost.data.on_disk.column_folder import FolderError as FolderError
    from pboost.data.on_disk.column_folder import StoredColumns as StoredColumns
    from pboost.data.on_disk.column_folder import open_columns as open_columns
    from pboost.data.read.encoding import OneHot as OneHot
    from pboost.data.read.encoding import fit_one_hot as fit_one_hot
    from pboost.data.read.encoding import one_hot as one_hot
    from pboost.data.targets import balanced_weights as balanced_weights
    from pboost.distributed.partitions import partitions as partitions
    from pboost.ensembles.bagging import fit_bagging as fit_bagging
    from pboost.ensembles.continuation import FitState as FitState
    from pboost.ensembles.continuation import continue_fit as continue_fit
    from pboost.ensembles.multiclass import fit_one_vs_rest as fit_one_vs_rest
    from pboost.ensembles.multiclass import fit_samme as fit_samme
    from pboost.ensembles.presets import fit_oblique_tree as fit_oblique_tree
    from pboost.ensembles.presets import fit_topdown_tree as fit_topdown_tree
    from pboost.export.c_file import CFile as CFile
    from pboost.export.c_file import to_c as to_c
    from pboost.export.json_text import from_json as from_json
    from pboost.export.json_text import to_json as to_json
    from pboost.export.runtimes import to_onnx as to_onnx
    from pboost.export.runtimes import to_treelite as to_treelite
    from pboost.export.shap_trees import to_shap as to_shap
    from pboost.export.shap_trees import to_shapiq as to_shapiq
    from pboost.export.sql import to_sql as to_sql
    from pboost.growth import generic_greedy
    from pboost.inspection.calibrate import calibrate as calibrate
    from pboost.inspection.coefficients import Coefficients as Coefficients
    from pboost.inspection.coefficients import coefficients as coefficients
    from pboost.inspection.coefficients import plot_coefficients as plot_coefficients
    from pboost.inspection.cross_validation import CrossValidation as CrossValidation
    from pboost.inspection.cross_validation import cross_validate as cross_validate
    from pboost.inspection.explanation import Explanation as Explanation
    from pboost.inspection.explanation import apply as apply
    from pboost.inspection.explanation import decision_path as decision_path
    from pboost.inspection.explanation import explain as explain
    from pboost.inspection.graph_plots import plot_graph as plot_graph
    from pboost.inspection.graph_plots import plot_tree as plot_tree
    from pboost.inspection.guarantees import ErrorBound as ErrorBound
    from pboost.inspection.guarantees import PredictionSets as PredictionSets
    from pboost.inspection.guarantees import RiskThreshold as RiskThreshold
    from pboost.inspection.guarantees import error_bound as error_bound
    from pboost.inspection.guarantees import prediction_sets as prediction_sets
    from pboost.inspection.guarantees import risk_threshold as risk_threshold
    from pboost.inspection.importance import feature_importances as feature_importances
    from pboost.inspection.importance import permutation_importance as permutation_importance
    from pboost.inspection.margins import logistic_margin_curve as logistic_margin_curve
    from pboost.inspection.margins import margin_bound as margin_bound
    from pboost.inspection.margins import margin_curve as margin_curve
    from pboost.inspection.margins import margin_error as margin_error
    from pboost.inspection.margins import margins as margins
    from pboost.inspection.margins import normalized_margins as normalized_margins
    from pboost.inspection.margins import plot_margin_curve as plot_margin_curve
    from pboost.inspection.monotone import is_monotone as is_monotone
    from pboost.inspection.plots import plot_budget_curve as plot_budget_curve
    from pboost.inspection.plots import plot_category_splits as plot_category_splits
    from pboost.inspection.plots import plot_pruning as plot_pruning
    from pboost.inspection.plots import plot_regions as plot_regions
    from pboost.inspection.plots import plot_training_curve as plot_training_curve
    from pboost.models.base import decision_function as decision_function
    from pboost.models.base import describe as describe
    from pboost.models.base import prediction_cost as prediction_cost
    from pboost.models.base import predict as predict
    from pboost.models.base import predict_proba as predict_proba
    from pboost.models.base import truncate as truncate
    from pboost.models.base import staged_decision_function as staged_decision_function
    from pboost.models.base import staged_predict as staged_predict
    from pboost.models.base import staged_predict_proba as staged_predict_proba
    from pboost.models.calibrated import CalibratedModel as CalibratedModel
    from pboost.models.early_exit import EarlyExitModel as EarlyExitModel
    from pboost.models.ensembles import Bagging as Bagging
    from pboost.models.ensembles import OneVsRest as OneVsRest
    from pboost.models.ensembles import WeightedVote as WeightedVote
    from pboost.models.evaluate.certificate import certificate as certificate
    from pboost.models.evaluate.graph_walk import reach as reach
    from pboost.models.files import load as load
    from pboost.models.files import save as save
    from pboost.models.forest import RandomForest as RandomForest
    from pboost.models.graph import DecisionGraph as DecisionGraph
    from pboost.models.linear import FunctionEnsemble as FunctionEnsemble
    from pboost.models.linear import LinearModel as LinearModel
    from pboost.models.linear import ProbitModel as ProbitModel
    from pboost.models.probit_trees import ProbitTree as ProbitTree
    from pboost.models.stored import ModelFileError as ModelFileError
    from pboost.models.stored import OutOfBag as OutOfBag
    from pboost.models.stored import PruningTable as PruningTable
    from pboost.models.stored import TrainingRecord as TrainingRecord
    from pboost.models.subagged import SubaggedProbitTrees as SubaggedProbitTrees
    from pboost.models.tree_record import TreeEnsemble as TreeEnsemble
    from pboost.models.tree_sum import GradientBoostingModel as GradientBoostingModel
    from pboost.models.trees import Tree as Tree
    from pboost.models.trees_of import as_tree_ensemble as as_tree_ensemble
    from pboost.probit.probitboost import fit_probitboost as fit_probitboost
    from pboost.probit.sbpmt import fit_sbpmt as fit_sbpmt
    from pboost.probit.sbpmt import published_sbpmt_options as published_sbpmt_options
    from pboost.probit.tree import fit_probit_tree as fit_probit_tree
    from pboost.trees.cart import fit_cart as fit_cart
    from pboost.trees.forest import fit_random_forest as fit_random_forest
    from pboost.trees.pruning import PruningPath as PruningPath
    from pboost.trees.pruning import fit_pruned_cart as fit_pruned_cart
    from pboost.trees.pruning import prune as prune
    from pboost.trees.pruning import cost_complexity_pruning_path as cost_complexity_pruning_path
    from pboost.trees.stagewise import fit_gradient_boosting as fit_gradient_boosting
    from pboost.values.options import MulticlassError as MulticlassError

    generic = generic_greedy

#: The names that modules of the package define, which are loaded on first use.
_NAMES = {
    "boosting.adaboost": "fit_adaboost",
    "boosting.adaboost_real": "fit_real_adaboost",
    "boosting.boosted_tree": "fit_boosted_tree",
    "boosting.matryoshka": "fit_matryoshka",
    "budget.calibrate_exit": "early_exit",
    "budget.distill": "distill",
    "budget.on_demand": "AcquisitionResult AcquisitionSession predict_with_acquisition acquisition_session",
    "budget.oracles": (
        "AnnotatorModel AnnotationResult AnnotationSession query_annotators fit_annotators annotation_session"
    ),
    "budget.questions": "AcquiredValue AcquisitionError Query",
    "budget.within": "fit_within_budget",
    "data.columns.columns": "BinnedColumns BinnedValues SortedColumns",
    "data.columns.making": "bin_columns sort_columns",
    "data.on_disk.bin_files": "bin_files",
    "data.on_disk.column_folder": "FolderError StoredColumns open_columns",
    "data.read.encoding": "OneHot fit_one_hot one_hot",
    "data.targets": "balanced_weights",
    "distributed.partitions": "partitions",
    "ensembles.bagging": "fit_bagging",
    "ensembles.continuation": "FitState continue_fit",
    "ensembles.multiclass": "fit_one_vs_rest fit_samme",
    "ensembles.presets": "fit_oblique_tree fit_topdown_tree",
    "export.c_file": "CFile to_c",
    "export.json_text": "from_json to_json",
    "export.runtimes": "to_onnx to_treelite",
    "export.shap_trees": "to_shap to_shapiq",
    "export.sql": "to_sql",
    "inspection.calibrate": "calibrate",
    "inspection.coefficients": "Coefficients coefficients plot_coefficients",
    "inspection.cross_validation": "CrossValidation cross_validate",
    "inspection.explanation": "Explanation apply decision_path explain",
    "inspection.graph_plots": "plot_graph plot_tree",
    "inspection.guarantees": (
        "ErrorBound PredictionSets RiskThreshold error_bound prediction_sets risk_threshold"
    ),
    "inspection.importance": "feature_importances permutation_importance",
    "inspection.margins": (
        "logistic_margin_curve margin_bound margin_curve margin_error margins "
        "normalized_margins plot_margin_curve"
    ),
    "inspection.monotone": "is_monotone",
    "inspection.plots": "plot_budget_curve plot_category_splits plot_pruning plot_regions plot_training_curve",
    "models.base": (
        "decision_function describe prediction_cost predict predict_proba truncate "
        "staged_decision_function staged_predict staged_predict_proba"
    ),
    "models.calibrated": "CalibratedModel",
    "models.evaluate.certificate": "certificate",
    "models.early_exit": "EarlyExitModel",
    "models.ensembles": "Bagging OneVsRest WeightedVote",
    "models.files": "load save",
    "models.forest": "RandomForest",
    "models.graph": "DecisionGraph",
    "models.linear": "FunctionEnsemble LinearModel ProbitModel",
    "models.probit_trees": "ProbitTree",
    "models.evaluate.graph_walk": "reach",
    "models.stored": "ModelFileError OutOfBag PruningTable TrainingRecord",
    "models.subagged": "SubaggedProbitTrees",
    "models.tree_record": "TreeEnsemble",
    "models.tree_sum": "GradientBoostingModel",
    "models.trees": "Tree",
    "models.trees_of": "as_tree_ensemble",
    "probit.probitboost": "fit_probitboost",
    "probit.sbpmt": "fit_sbpmt published_sbpmt_options",
    "probit.tree": "fit_probit_tree",
    "trees.cart": "fit_cart",
    "trees.forest": "fit_random_forest",
    "trees.pruning": "PruningPath fit_pruned_cart prune cost_complexity_pruning_path",
    "trees.stagewise": "fit_gradient_boosting",
    "values.options": "MulticlassError",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
_MODULES = ("bounds", "datasets", "losses", "observation", "weak")
_ALIASES = {"generic": "growth.generic_greedy"}
_ROOMS = (
    *("boosting", "budget", "cli", "dask", "data", "ensembles", "export", "growth", "inspection"),
    *("models", "probit", "sklearn", "threads", "trees", "values"),
)

if not TYPE_CHECKING:  # where type checkers would take it for names of any kind
    __all__ = sorted([*_HOMES, *_MODULES, *_ALIASES, "__version__", "show_versions"])

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            found = getattr(import_module(f"pboost.{_HOMES[name]}"), name)
        elif name in _ALIASES or name in _MODULES or name in _ROOMS:
            found = import_module(f"pboost.{_ALIASES.get(name, name)}")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES, *_ALIASES})
