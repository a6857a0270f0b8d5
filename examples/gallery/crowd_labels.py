"""Labels from a crowd
===================

*Several people have labelled each row, and they disagree. Do I have to take the majority?*

No: every builder of classifiers takes probabilities in place of labels. Here five annotators, who
are right with 55 to 80 %, say of 600 pictures whether they show a bird.
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
# From votes to probabilities: an annotator who is right with probability s adds ± log(s / (1 - s))
# to the log odds. Of five votes by people of different skill the majority says less than that.
log_odds = np.where(votes, 1, -1) @ np.log(skill / (1 - skill))
share = 1 / (1 + np.exp(-log_odds))
majority = votes.sum(axis=1) > 2

# %%
# ``y_proba`` takes the place of ``y``. A row then counts for both labels, for each as much as it
# is probable.
models = {
    "majority": pb.fit_adaboost(X[:600], majority, learning_rate=0.5, n_estimators=100),
    "probabilities": pb.fit_adaboost(
        X[:600], y_proba=share, classes=[False, True], learning_rate=0.5, n_estimators=100
    ),
    "the truth": pb.fit_adaboost(X[:600], is_bird[:600], learning_rate=0.5, n_estimators=100),
}
wrong = {name: np.mean(pb.predict(m, X[600:]) != is_bird[600:]) for name, m in models.items()}
print(f"the majority is wrong on {np.mean(majority != is_bird[:600]):.1%} of the rows labelled")
for name, error in wrong.items():
    print(f"fitted to {name:14s} wrong on {error:.1%} of 3,000 new rows")

# %%
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
rounds = np.arange(1, 101)
for name, model in models.items():
    staged = [np.mean(said != is_bird[600:]) for said in pb.staged_predict(model, X[600:])]
    ax.plot(rounds, 100 * np.array(staged[-100:]), label=f"fitted to {name}")
ax.set(xlabel="rounds of boosting", ylabel="wrong on new rows (%)", ylim=(0, 35))
ax.legend()
plt.show()
