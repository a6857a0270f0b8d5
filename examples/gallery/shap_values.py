"""SHAP values
===========

*Which features push these predictions up or down?*

``pb.shap_values`` returns exact Shapley values for every pboost model that is equivalent to an
ensemble of trees. They work with the plots of pboost and of the package shap.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import pboost as pb

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
train, test = slice(0, 400), slice(400, None)
y = np.where(y == 1, "benign", "malignant")
model = pb.fit_gradient_boosting(
    X[train], y[train], loss="log_loss", n_estimators=100, max_depth=3, rng=0
)

# %%
# For each row, the values and the base value add up to the decision value.
shap = pb.shap_values(model, X[test])
total = shap.values.sum(axis=1) + shap.base_values
error = np.abs(total - pb.decision_function(model, X[test])).max()
print(f"largest difference between the sum and the decision value: {error:.0e}")

# %%
# All test rows, and one of them. A positive value means "malignant". For the plots of shap, pass
# ``shap.explanation()``.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
pb.plot.shap_summary(shap, max_features=8, ax=left)
pb.plot.shap_waterfall(shap, row=0, max_features=7, ax=right)
plt.show()
