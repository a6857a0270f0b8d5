"""Validate and explain models: cross-validation, explanations, importances and margins."""

from typing import TYPE_CHECKING

from pboost._lazy import lazy_names

if TYPE_CHECKING:
    from pboost.inspection.cross_validation import CrossValidation as CrossValidation
    from pboost.inspection.error_bounds import ErrorBound as ErrorBound
    from pboost.inspection.error_bounds import PredictionSets as PredictionSets
    from pboost.inspection.error_bounds import RiskThreshold as RiskThreshold
    from pboost.inspection.explanation import Explanation as Explanation
    from pboost.inspection.explanation import apply as apply
    from pboost.inspection.explanation import decision_path as decision_path
    from pboost.inspection.hyperparameter_ranges import SearchRange as SearchRange
    from pboost.inspection.importance import permutation_importance as permutation_importance
    from pboost.inspection.linear_coefficients import Coefficients as Coefficients
    from pboost.inspection.linear_coefficients import coefficients as coefficients
    from pboost.inspection.margin_distribution import logistic_margin_curve as logistic_margin_curve
    from pboost.inspection.margin_distribution import margin_bound as margin_bound
    from pboost.inspection.margin_distribution import margin_curve as margin_curve
    from pboost.inspection.margin_distribution import margin_error as margin_error
    from pboost.inspection.margin_distribution import margins as margins
    from pboost.inspection.margin_distribution import normalized_margins as normalized_margins
    from pboost.inspection.monotone import is_monotone as is_monotone
    from pboost.inspection.shapley_values import ShapValues as ShapValues
    from pboost.models.evaluate.graph_walk import reach as reach

_NAMES = {
    "pboost.inspection.cross_validation": "CrossValidation",
    "pboost.inspection.explanation": "Explanation apply decision_path",
    "pboost.inspection.error_bounds": "ErrorBound PredictionSets RiskThreshold",
    "pboost.inspection.importance": "permutation_importance",
    "pboost.inspection.linear_coefficients": "Coefficients coefficients",
    "pboost.inspection.margin_distribution": (
        "logistic_margin_curve margin_bound margin_curve margin_error margins normalized_margins"
    ),
    "pboost.inspection.monotone": "is_monotone",
    "pboost.inspection.hyperparameter_ranges": "SearchRange",
    "pboost.inspection.shapley_values": "ShapValues",
    "pboost.models.evaluate.graph_walk": "reach",
}

if not TYPE_CHECKING:  # type checkers would otherwise accept any name
    __all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
