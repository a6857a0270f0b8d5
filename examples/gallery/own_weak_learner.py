"""A weak learner of my own
========================

*My questions are not comparisons: they are words in a text. Can boosting use them?*

Whatever answers yes or no can be a node. ``oracle`` takes a function that is given rows and
weights, and returns one that answers.
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
# The learner looks for the word that tells the labels apart best, by the weights of this round.
# Rows are what the builder was given: here, texts.
def best_word(X, y, weight, rng):
    """Return a function that answers +1 where a text has the word, or has not."""
    words = sorted({word for text in X for word in text.split()})
    edges = [np.sum((weight * y)[np.char.find(X, word) >= 0]) for word in words]
    k = int(np.argmax(np.abs(edges)))
    sign, word = int(np.sign(edges[k])), words[k]

    def answer(X, rng):
        return np.where(np.char.find(X, word) >= 0, sign, -sign)

    asked.append(word)
    return answer


asked = []
model = pb.fit_adaboost(
    texts[:600], y[:600], n_estimators=15, weak_learner=pb.weak.oracle(best_word), rng=0
)
print("asked:", ", ".join(asked))
print(f"wrong on new texts: {np.mean(pb.predict(model, texts[600:]) != y[600:]):.1%}")
print(pb.predict(model, ["please click for free cash", "lunch on monday"]))

# %%
# It is boosting like any other: the certificate bounds the training error, and each question has
# its votes.
wrong = [np.mean(said != y[:600]) for said in pb.staged_predict(model, texts[:600])]
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(np.arange(1, 16), wrong, "o-", label="wrong in training")
ax.plot(model.record.certificate, "--", label="certificate")
ax.set(xlabel="questions", ylim=(0, None))
ax.legend()
plt.show()
