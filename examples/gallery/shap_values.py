"""SHAP values
===========

*My colleagues use SHAP plots. Do they work with these models?*

Yes: ``shap.TreeExplainer`` supports every pboost model that is equivalent to an ensemble of trees.
Decision graphs whose paths join are expanded to trees.
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
# ``to_shap`` converts an ensemble to the dictionary format of ``shap``. ``trees.rows`` converts X
# to the numeric matrix that the trees read, with categories encoded.
trees = pb.models.as_tree_ensemble(model, X[train])
rows = trees.rows(X[test])
explainer = shap.TreeExplainer(pb.export.to_shap(trees))
values = explainer.shap_values(rows)
total = values.sum(axis=1) + explainer.expected_value
error = np.abs(total - pb.decision_function(model, X[test])).max()
print(f"largest difference between the sum and the decision value: {error:.0e}")

# %%
# The summary plot of the test rows:
shap.summary_plot(values, rows, feature_names=list(X.columns), max_display=8, show=False, rng=0)
plt.gcf().set_size_inches(8, 4)
plt.xlabel("SHAP value (log odds of malignant)")
plt.show()
