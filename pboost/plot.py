"""Plots of models, predictions and training, drawn with matplotlib (extra ``plot``)."""

from pboost.inspection.graph_plots import plot_graph as graph
from pboost.inspection.graph_plots import plot_tree as tree
from pboost.inspection.linear_coefficients import plot_coefficients as coefficients
from pboost.inspection.margin_distribution import plot_margin_curve as margin_curve
from pboost.inspection.plots import plot_budget_curve as budget_curve
from pboost.inspection.plots import plot_category_splits as category_splits
from pboost.inspection.plots import plot_pruning as pruning
from pboost.inspection.plots import plot_regions as regions
from pboost.inspection.plots import plot_training_curve as training_curve
from pboost.inspection.shapley_plots import plot_shap_bar as shap_bar
from pboost.inspection.shapley_plots import plot_shap_dependence as shap_dependence
from pboost.inspection.shapley_plots import plot_shap_summary as shap_summary
from pboost.inspection.shapley_plots import plot_shap_waterfall as shap_waterfall

__all__ = [
    "budget_curve",
    "category_splits",
    "coefficients",
    "graph",
    "margin_curve",
    "pruning",
    "regions",
    "shap_bar",
    "shap_dependence",
    "shap_summary",
    "shap_waterfall",
    "training_curve",
    "tree",
]
