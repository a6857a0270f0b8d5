"""Labels from a crowd
===================

*Several annotators labeled each row, and they disagree. Should I use the majority vote?*

No: every classifier in pboost can be fitted to class probabilities. Here five annotators label 600
pictures as bird or not. They are right with probabilities of 0.55 to 0.8.
"""

import matplotlib.pyplot as plt
import numpy as np

import pboost as pb

rng = np.random.default_rng(2)
X, sign = pb.datasets.twonorm(3600, rng=2)
is_bird = sign > 0
skill = np.array([0.55, 0.60, 0.65, 0.70, 0.80])
votes = np.where(rng.random((600, 5)) < skill, is_bird[:600, None], ~is_bird[:600, None])

# %%
# Convert the votes to probabilities: an annotator who is right with probability s contributes
# ± log(s / (1 - s)) to the log odds. The majority vote ignores these differences in skill.
log_odds = np.where(votes, 1, -1) @ np.log(skill / (1 - skill))
probability = 1 / (1 + np.exp(-log_odds))
majority = votes.sum(axis=1) > 2

# %%
# Pass ``y_proba`` instead of ``y``. Each row then counts for both classes, weighted by their
# probabilities.
models = {
    "majority vote": pb.fit_adaboost(X[:600], majority, learning_rate=0.5, n_estimators=100),
    "probabilities": pb.fit_adaboost(
        X[:600], y_proba=probability, classes=[False, True], learning_rate=0.5, n_estimators=100
    ),
    "true classes": pb.fit_adaboost(X[:600], is_bird[:600], learning_rate=0.5, n_estimators=100),
}
error = {name: np.mean(pb.predict(m, X[600:]) != is_bird[600:]) for name, m in models.items()}
print(f"{np.mean(majority != is_bird[:600]):.1%} of the majority votes are wrong")
for name, value in error.items():
    print(f"fitted to {name:14s} test error {value:.1%}")

# %%
# Test error after each boosting round:
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
rounds = np.arange(1, 101)
for name, model in models.items():
    staged = [np.mean(labels != is_bird[600:]) for labels in pb.staged_predict(model, X[600:])]
    ax.plot(rounds, 100 * np.array(staged[-100:]), label=f"fitted to {name}")
ax.set(xlabel="boosting rounds", ylabel="test error (%)", ylim=(0, 35))
ax.legend()
plt.show()
