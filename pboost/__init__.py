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
    from pboost.boosting.adaboost_real import fit_adaboost_real as fit_adaboost_real
    from pboost.boosting.boosted_tree import fit_boosted_tree as fit_boosted_tree
    from pboost.boosting.matryoshka import fit_matryoshka as fit_matryoshka
    from pboost.budget.calibrate_exit import early_exit as early_exit
    from pboost.budget.distill import distill as distill
    from pboost.budget.on_demand import Decision as Decision
    from pboost.budget.on_demand import Decisions as Decisions
    from pboost.budget.on_demand import decide as decide
    from pboost.budget.on_demand import decisions as decisions
    from pboost.budget.oracles import AnswerCounts as AnswerCounts
    from pboost.budget.oracles import OracleDecision as OracleDecision
    from pboost.budget.oracles import OracleDecisions as OracleDecisions
    from pboost.budget.oracles import ask_oracles as ask_oracles
    from pboost.budget.oracles import count_answers as count_answers
    from pboost.budget.oracles import oracle_decisions as oracle_decisions
    from pboost.budget.questions import Asked as Asked
    from pboost.budget.questions import AskError as AskError
    from pboost.budget.questions import Question as Question
    from pboost.budget.within import fit_within as fit_within
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
    from pboost.export.c_file import export_c as export_c
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
    from pboost.inspection.guarantees import Guarantee as Guarantee
    from pboost.inspection.guarantees import LabelSets as LabelSets
    from pboost.inspection.guarantees import RiskThreshold as RiskThreshold
    from pboost.inspection.guarantees import guarantee as guarantee
    from pboost.inspection.guarantees import label_sets as label_sets
    from pboost.inspection.guarantees import risk_threshold as risk_threshold
    from pboost.inspection.importance import feature_importances as feature_importances
    from pboost.inspection.importance import permutation_importance as permutation_importance
    from pboost.inspection.margins import logistic_margin_curve as logistic_margin_curve
    from pboost.inspection.margins import margin_bound as margin_bound
    from pboost.inspection.margins import margin_curve as margin_curve
    from pboost.inspection.margins import margin_error as margin_error
    from pboost.inspection.margins import margins as margins
    from pboost.inspection.margins import normalised_margins as normalised_margins
    from pboost.inspection.margins import plot_margin_curve as plot_margin_curve
    from pboost.inspection.monotone import is_monotone as is_monotone
    from pboost.inspection.plots import plot_budget_curve as plot_budget_curve
    from pboost.inspection.plots import plot_level_sets as plot_level_sets
    from pboost.inspection.plots import plot_pruning as plot_pruning
    from pboost.inspection.plots import plot_regions as plot_regions
    from pboost.inspection.plots import plot_steps as plot_steps
    from pboost.models.base import decision_function as decision_function
    from pboost.models.base import describe as describe
    from pboost.models.base import evaluation_cost as evaluation_cost
    from pboost.models.base import predict as predict
    from pboost.models.base import predict_proba as predict_proba
    from pboost.models.base import prefix as prefix
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
    from pboost.models.forest import Forest as Forest
    from pboost.models.graph import DecisionGraph as DecisionGraph
    from pboost.models.linear import HypothesisSum as HypothesisSum
    from pboost.models.linear import LinearModel as LinearModel
    from pboost.models.linear import ProbitModel as ProbitModel
    from pboost.models.probit_trees import ProbitTree as ProbitTree
    from pboost.models.stored import ModelFileError as ModelFileError
    from pboost.models.stored import OutOfBag as OutOfBag
    from pboost.models.stored import PruningTable as PruningTable
    from pboost.models.stored import TrainingRecord as TrainingRecord
    from pboost.models.subagged import SubaggedProbitTrees as SubaggedProbitTrees
    from pboost.models.tree_record import TreeSum as TreeSum
    from pboost.models.tree_sum import StagewiseModel as StagewiseModel
    from pboost.models.trees import Tree as Tree
    from pboost.models.trees_of import trees_of as trees_of
    from pboost.probit.probitboost import fit_probitboost as fit_probitboost
    from pboost.probit.sbpmt import fit_sbpmt as fit_sbpmt
    from pboost.probit.sbpmt import sbpmt_published as sbpmt_published
    from pboost.probit.tree import fit_probit_tree as fit_probit_tree
    from pboost.trees.cart import fit_cart as fit_cart
    from pboost.trees.forest import fit_forest as fit_forest
    from pboost.trees.pruning import PruningPath as PruningPath
    from pboost.trees.pruning import fit_pruned_cart as fit_pruned_cart
    from pboost.trees.pruning import prune as prune
    from pboost.trees.pruning import prune_path as prune_path
    from pboost.trees.stagewise import fit_stagewise as fit_stagewise
    from pboost.values.options import ManyClassesError as ManyClassesError

    generic = generic_greedy

#: The names that modules of the package define, which are loaded on first use.
_NAMES = {
    "boosting.adaboost": "fit_adaboost",
    "boosting.adaboost_real": "fit_adaboost_real",
    "boosting.boosted_tree": "fit_boosted_tree",
    "boosting.matryoshka": "fit_matryoshka",
    "budget.calibrate_exit": "early_exit",
    "budget.distill": "distill",
    "budget.on_demand": "Decision Decisions decide decisions",
    "budget.oracles": (
        "AnswerCounts OracleDecision OracleDecisions ask_oracles count_answers oracle_decisions"
    ),
    "budget.questions": "Asked AskError Question",
    "budget.within": "fit_within",
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
    "export.c_file": "CFile export_c",
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
        "Guarantee LabelSets RiskThreshold guarantee label_sets risk_threshold"
    ),
    "inspection.importance": "feature_importances permutation_importance",
    "inspection.margins": (
        "logistic_margin_curve margin_bound margin_curve margin_error margins "
        "normalised_margins plot_margin_curve"
    ),
    "inspection.monotone": "is_monotone",
    "inspection.plots": "plot_budget_curve plot_level_sets plot_pruning plot_regions plot_steps",
    "models.base": (
        "decision_function describe evaluation_cost predict predict_proba prefix "
        "staged_decision_function staged_predict staged_predict_proba"
    ),
    "models.calibrated": "CalibratedModel",
    "models.evaluate.certificate": "certificate",
    "models.early_exit": "EarlyExitModel",
    "models.ensembles": "Bagging OneVsRest WeightedVote",
    "models.files": "load save",
    "models.forest": "Forest",
    "models.graph": "DecisionGraph",
    "models.linear": "HypothesisSum LinearModel ProbitModel",
    "models.probit_trees": "ProbitTree",
    "models.evaluate.graph_walk": "reach",
    "models.stored": "ModelFileError OutOfBag PruningTable TrainingRecord",
    "models.subagged": "SubaggedProbitTrees",
    "models.tree_record": "TreeSum",
    "models.tree_sum": "StagewiseModel",
    "models.trees": "Tree",
    "models.trees_of": "trees_of",
    "probit.probitboost": "fit_probitboost",
    "probit.sbpmt": "fit_sbpmt sbpmt_published",
    "probit.tree": "fit_probit_tree",
    "trees.cart": "fit_cart",
    "trees.forest": "fit_forest",
    "trees.pruning": "PruningPath fit_pruned_cart prune prune_path",
    "trees.stagewise": "fit_stagewise",
    "values.options": "ManyClassesError",
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
            attribute = getattr(import_module(f"pboost.{_HOMES[name]}"), name)
        elif name in _ALIASES or name in _MODULES or name in _ROOMS:
            attribute = import_module(f"pboost.{_ALIASES.get(name, name)}")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = attribute
        return attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES, *_ALIASES})
