"""SHAP values
===========

*My colleagues want SHAP plots. Do they work with these models?*

Whatever is a sum of trees goes into ``shap.TreeExplainer``: chains, trees, forests, sums of trees,
and graphs whose paths join, which are written out as trees of their paths.
"""

import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.datasets import load_breast_cancer

import pboost as pb

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
train, test = slice(0, 400), slice(400, None)
y = np.where(y == 1, "benign", "malignant")
model = pb.fit_gradient_boosting(
    X[train], y[train], loss="log_loss", n_estimators=100, max_depth=3, rng=0
)

# %%
# ``to_shap`` makes the dictionary that ``shap`` takes, and ``rows`` are as the trees read them:
# numbers in the order of training, also of tables with words.
trees = pb.models.as_tree_ensemble(model, X[train])
rows = trees.rows(X[test])
explainer = shap.TreeExplainer(pb.export.to_shap(trees))
values = explainer.shap_values(rows)
total = values.sum(axis=1) + explainer.expected_value
off = np.abs(total - pb.decision_function(model, X[test])).max()
print(f"values add up to the decision value, but for {off:.0e}")

# %%
shap.summary_plot(values, rows, feature_names=list(X.columns), max_display=8, show=False, rng=0)
plt.gcf().set_size_inches(8, 4)
plt.xlabel("SHAP value (log odds of malignant)")
plt.show()
