"""Whom to ask next
================

*Experts err, students err more and cost less. Whom do I ask about this picture, and how often?*

Whoever is expected to tell most for the price, as far as the budget goes, given what was answered
so far.
"""

import matplotlib.pyplot as plt
import numpy as np

import pboost as pb

rng = np.random.default_rng(0)
truth = rng.choice(["bird", "plane"], 300, p=[0.3, 0.7])
errors = {"crowd": 0.35, "student": 0.2, "expert": 0.03}
query_costs = {"crowd": 1, "student": 3, "expert": 12}


def asked(k, whom):
    """Return what somebody says of picture k."""
    other = "plane" if truth[k] == "bird" else "bird"
    return other if rng.random() < errors[whom] else str(truth[k])


# %%
# One picture, whose ``acquired`` says who was asked, what they answered and what was paid:
annotators = {whom: (lambda whom=whom: asked(0, whom)) for whom in errors}
prior = {"bird": 0.3, "plane": 0.7}
found = pb.acquisition.query_annotators(
    annotators,
    errors,
    classes=["bird", "plane"],
    query_costs=query_costs,
    prior=prior,
    budget=20,
    max_error=0.05,
)
for entry in found.acquired:
    print(f"{entry.source:8s} {entry.value:6s} {entry.cost:g}")
print(f"{found.label}, wrong with probability {found.error:.3f}: {found.reason}")

# %%
# Many pictures are asked about side by side. The more may be paid, the fewer are wrong, and money
# that a picture does not need is kept. (The rule looks one answer ahead: with a budget of 12 it
# would do better to ask the expert at once.)
budgets = [1, 3, 6, 12, 24, 48]
paid, wrong = [], []
priors = np.tile([0.3, 0.7], (300, 1))
for budget in budgets:
    session = pb.acquisition.annotation_session(
        errors,
        priors,
        classes=["bird", "plane"],
        query_costs=query_costs,
        budget=budget,
        max_error=0.01,
    )
    while questions := session.ask():
        for question in questions:
            session.tell(question, asked(question.row, question.source))
    paid.append(np.mean([item.cost for item in session]))
    wrong.append(
        100 * np.mean([item.label != label for item, label in zip(session, truth, strict=True)])
    )
    print(f"budget {budget:2d}: {paid[-1]:5.1f} paid, {wrong[-1]:4.1f} % wrong")

# %%
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(paid, wrong, "o-", label="whoever tells most for the price")
for whom, error in errors.items():
    ax.plot(
        query_costs[whom], 100 * min(error, np.mean(truth == "bird")), "s", label=f"{whom}, once"
    )
ax.set(xlabel="paid for a picture", ylabel="wrong (%)", ylim=(0, None))
ax.legend()
plt.show()
