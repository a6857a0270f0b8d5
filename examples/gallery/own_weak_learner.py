"""A custom weak learner
=====================

*My features are words in a text instead of numbers. Can boosting use them?*

Yes: any function that returns yes or no for a row can be a node. Pass a training function to
``oracle``; it receives rows and weights, and returns such a function.
"""

import matplotlib.pyplot as plt
import numpy as np

import pboost as pb

rng = np.random.default_rng(0)
spam, ham = (
    ["win", "prize", "cash", "now", "free", "click"],
    ["meeting", "report", "lunch", "thanks", "monday", "draft"],
)
common = ["the", "a", "you", "we", "is", "for", "of", "today", "please", "new"]
y = np.where(rng.random(1200) < 0.5, "spam", "ham")
texts = np.array(
    [
        " ".join(rng.choice([*common, *(spam if label == "spam" else ham), *spam[:2], *ham[:2]], 8))
        for label in y
    ]
)
print(texts[:3], y[:3])


# %%
# In each round the learner chooses the word that separates the classes best under the current
# weights. X has the type that was passed to the fit function, here an array of texts.
def best_word(X, y, weight, rng):
    """Return a function that predicts the class from the presence of a word."""
    words = sorted({word for text in X for word in text.split()})
    edges = [np.sum((weight * y)[np.char.find(X, word) >= 0]) for word in words]
    k = int(np.argmax(np.abs(edges)))
    sign, word = int(np.sign(edges[k])), words[k]

    def answer(X, rng):
        return np.where(np.char.find(X, word) >= 0, sign, -sign)

    chosen.append(word)
    return answer


chosen = []
model = pb.fit_adaboost(
    texts[:600], y[:600], n_estimators=15, weak_learner=pb.weak.oracle(best_word), rng=0
)
print("chosen words:", ", ".join(chosen))
print(f"test error: {np.mean(pb.predict(model, texts[600:]) != y[600:]):.1%}")
print(pb.predict(model, ["please click for free cash", "lunch on monday"]))

# %%
# The certificate is an upper bound on the training error in each round, as for any boosted model:
error = [np.mean(labels != y[:600]) for labels in pb.staged_predict(model, texts[:600])]
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(np.arange(1, 16), error, "o-", label="training error")
ax.plot(model.record.certificate, "--", label="certificate")
ax.set(xlabel="boosting rounds", ylim=(0, None))
ax.legend()
plt.show()
