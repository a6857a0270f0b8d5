"""Classes of fitted models, and functions that convert or truncate them."""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from pboost._lazy import lazy_names

if TYPE_CHECKING:
    from pboost.ensembles.warm_start import FitState as FitState
    from pboost.growth.generic_greedy import GenericGreedy as GenericGreedy
    from pboost.models.as_trees import as_tree_ensemble as as_tree_ensemble
    from pboost.models.base import truncate as truncate
    from pboost.models.calibrated import CalibratedModel as CalibratedModel
    from pboost.models.early_exit_model import EarlyExitModel as EarlyExitModel
    from pboost.models.ensembles import Bagging as Bagging
    from pboost.models.ensembles import OneVsRest as OneVsRest
    from pboost.models.ensembles import WeightedVote as WeightedVote
    from pboost.models.gradient_boosting import GradientBoostingModel as GradientBoostingModel
    from pboost.models.graph import DecisionGraph as DecisionGraph
    from pboost.models.linear import FunctionEnsemble as FunctionEnsemble
    from pboost.models.linear import LinearModel as LinearModel
    from pboost.models.linear import ProbitModel as ProbitModel
    from pboost.models.probit_trees import ProbitTree as ProbitTree
    from pboost.models.random_forest import RandomForest as RandomForest
    from pboost.models.schema import ModelFileError as ModelFileError
    from pboost.models.schema import OutOfBag as OutOfBag
    from pboost.models.schema import PruningTable as PruningTable
    from pboost.models.schema import TrainingRecord as TrainingRecord
    from pboost.models.single_tree import Tree as Tree
    from pboost.models.subagged import SubaggedProbitTrees as SubaggedProbitTrees
    from pboost.models.tree_ensemble import TreeEnsemble as TreeEnsemble
    from pboost.probit.sbpmt import published_sbpmt_options as published_sbpmt_options
    from pboost.trees.pruning import PruningPath as PruningPath
    from pboost.trees.pruning import cost_complexity_pruning_path as cost_complexity_pruning_path
    from pboost.values.options import MulticlassError as MulticlassError

_NAMES = {
    "pboost.ensembles.warm_start": "FitState",
    "pboost.growth.generic_greedy": "GenericGreedy",
    "pboost.models.base": "truncate",
    "pboost.models.calibrated": "CalibratedModel",
    "pboost.models.early_exit_model": "EarlyExitModel",
    "pboost.models.ensembles": "Bagging OneVsRest WeightedVote",
    "pboost.models.random_forest": "RandomForest",
    "pboost.models.graph": "DecisionGraph",
    "pboost.models.linear": "FunctionEnsemble LinearModel ProbitModel",
    "pboost.models.probit_trees": "ProbitTree",
    "pboost.models.schema": "ModelFileError OutOfBag PruningTable TrainingRecord",
    "pboost.models.subagged": "SubaggedProbitTrees",
    "pboost.models.tree_ensemble": "TreeEnsemble",
    "pboost.models.gradient_boosting": "GradientBoostingModel",
    "pboost.models.single_tree": "Tree",
    "pboost.models.as_trees": "as_tree_ensemble",
    "pboost.probit.sbpmt": "published_sbpmt_options",
    "pboost.trees.pruning": "PruningPath cost_complexity_pruning_path",
    "pboost.values.options": "MulticlassError",
}

if not TYPE_CHECKING:  # type checkers must reject unknown names
    __all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)

# Load all modules, so that `load` finds every class with a `file_kind`.
for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
