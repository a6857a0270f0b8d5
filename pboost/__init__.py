"""Boosting, decision trees and decision graphs for tabular data."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pboost._lazy import lazy_names
from pboost._version import __version__ as __version__
from pboost._version import show_versions as show_versions

if TYPE_CHECKING:
    from pboost import acquisition as acquisition
    from pboost import bounds as bounds
    from pboost import data as data
    from pboost import datasets as datasets
    from pboost import export as export
    from pboost import inspection as inspection
    from pboost import losses as losses
    from pboost import models as models
    from pboost import observation as observation
    from pboost import plot as plot
    from pboost import weak as weak
    from pboost.boosting.adaboost import fit_adaboost as fit_adaboost
    from pboost.boosting.boosted_tree import fit_boosted_tree as fit_boosted_tree
    from pboost.boosting.matryoshka import fit_matryoshka as fit_matryoshka
    from pboost.boosting.real_adaboost import fit_real_adaboost as fit_real_adaboost
    from pboost.budget.distill import distill as distill
    from pboost.budget.exit_thresholds import early_exit as early_exit
    from pboost.budget.select_model import fit_within_budget as fit_within_budget
    from pboost.distributed.partitions import partitions as partitions
    from pboost.ensembles.bagging import fit_bagging as fit_bagging
    from pboost.ensembles.multiclass import fit_one_vs_rest as fit_one_vs_rest
    from pboost.ensembles.multiclass import fit_samme as fit_samme
    from pboost.ensembles.presets import fit_oblique_tree as fit_oblique_tree
    from pboost.ensembles.presets import fit_topdown_tree as fit_topdown_tree
    from pboost.ensembles.warm_start import continue_fit as continue_fit
    from pboost.inspection.calibration import calibrate as calibrate
    from pboost.inspection.cross_validation import cross_validate as cross_validate
    from pboost.inspection.error_bounds import error_bound as error_bound
    from pboost.inspection.error_bounds import prediction_sets as prediction_sets
    from pboost.inspection.error_bounds import risk_threshold as risk_threshold
    from pboost.inspection.explanation import explain as explain
    from pboost.inspection.hyperparameter_ranges import search_space as search_space
    from pboost.inspection.importance import feature_importances as feature_importances
    from pboost.inspection.shapley_values import shap_values as shap_values
    from pboost.models.base import decision_function as decision_function
    from pboost.models.base import describe as describe
    from pboost.models.base import predict as predict
    from pboost.models.base import predict_proba as predict_proba
    from pboost.models.base import prediction_cost as prediction_cost
    from pboost.models.base import staged_decision_function as staged_decision_function
    from pboost.models.base import staged_predict as staged_predict
    from pboost.models.base import staged_predict_proba as staged_predict_proba
    from pboost.models.evaluate.certificates import certificate as certificate
    from pboost.models.files import load as load
    from pboost.models.files import save as save
    from pboost.models.single_rows import row_predictor as row_predictor
    from pboost.probit.probitboost import fit_probitboost as fit_probitboost
    from pboost.probit.sbpmt import fit_sbpmt as fit_sbpmt
    from pboost.probit.tree import fit_probit_tree as fit_probit_tree
    from pboost.trees.cart import fit_cart as fit_cart
    from pboost.trees.gradient_boosting import fit_gradient_boosting as fit_gradient_boosting
    from pboost.trees.pruning import fit_pruned_cart as fit_pruned_cart
    from pboost.trees.pruning import prune as prune
    from pboost.trees.random_forest import fit_random_forest as fit_random_forest

#: The modules of the package that define public names, which are loaded on first use.
_NAMES = {
    "pboost.boosting.adaboost": "fit_adaboost",
    "pboost.boosting.real_adaboost": "fit_real_adaboost",
    "pboost.boosting.boosted_tree": "fit_boosted_tree",
    "pboost.boosting.matryoshka": "fit_matryoshka",
    "pboost.budget.exit_thresholds": "early_exit",
    "pboost.budget.distill": "distill",
    "pboost.budget.select_model": "fit_within_budget",
    "pboost.distributed.partitions": "partitions",
    "pboost.ensembles.bagging": "fit_bagging",
    "pboost.ensembles.warm_start": "continue_fit",
    "pboost.ensembles.multiclass": "fit_one_vs_rest fit_samme",
    "pboost.ensembles.presets": "fit_oblique_tree fit_topdown_tree",
    "pboost.inspection.calibration": "calibrate",
    "pboost.inspection.cross_validation": "cross_validate",
    "pboost.inspection.explanation": "explain",
    "pboost.inspection.error_bounds": "error_bound prediction_sets risk_threshold",
    "pboost.inspection.importance": "feature_importances",
    "pboost.inspection.hyperparameter_ranges": "search_space",
    "pboost.inspection.shapley_values": "shap_values",
    "pboost.models.base": (
        "decision_function describe predict predict_proba prediction_cost "
        "staged_decision_function staged_predict staged_predict_proba"
    ),
    "pboost.models.evaluate.certificates": "certificate",
    "pboost.models.files": "load save",
    "pboost.models.single_rows": "row_predictor",
    "pboost.probit.probitboost": "fit_probitboost",
    "pboost.probit.sbpmt": "fit_sbpmt",
    "pboost.probit.tree": "fit_probit_tree",
    "pboost.trees.cart": "fit_cart",
    "pboost.trees.random_forest": "fit_random_forest",
    "pboost.trees.pruning": "fit_pruned_cart prune",
    "pboost.trees.gradient_boosting": "fit_gradient_boosting",
}
_MODULES = (
    *("acquisition", "bounds", "data", "datasets", "export", "inspection", "losses", "models"),
    *("observation", "plot", "weak"),
)
#: Public modules that require other packages.
_OPTIONAL = ("dask", "sklearn")
#: Private modules that are loaded on first use.
_ROOMS = (
    "boosting",
    "budget",
    "cli",
    "ensembles",
    "growth",
    "probit",
    "threads",
    "trees",
    "values",
)

if not TYPE_CHECKING:  # a type checker would accept any name because of __getattr__
    __all__, _get, _dir = lazy_names(__name__, _NAMES, _MODULES)
    __all__ += ["__version__", "show_versions"]

    def __getattr__(name: str) -> Any:
        return import_module(f"pboost.{name}") if name in (*_OPTIONAL, *_ROOMS) else _get(name)

    def __dir__() -> list[str]:
        return sorted({*_dir(), *_OPTIONAL, "__version__", "show_versions"})
