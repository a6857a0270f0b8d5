"""Whom to ask next
================

*Experts are accurate and students are cheap. Whom do I ask about this picture, and how often?*

``query_annotators`` chooses the annotator with the largest expected gain for the cost, given all
previous answers, until the budget is spent or the error is small enough.
"""

import matplotlib.pyplot as plt
import numpy as np

import pboost as pb

rng = np.random.default_rng(0)
truth = rng.choice(["bird", "plane"], 300, p=[0.3, 0.7])
errors = {"crowd": 0.35, "student": 0.2, "expert": 0.03}
query_costs = {"crowd": 1, "student": 3, "expert": 12}


def annotate(k, annotator):
    """Return the class that an annotator assigns to picture k."""
    other = "plane" if truth[k] == "bird" else "bird"
    return other if rng.random() < errors[annotator] else str(truth[k])


# %%
# Annotate one picture. ``acquired`` lists the annotators asked, their answers and their costs:
annotators = {name: (lambda name=name: annotate(0, name)) for name in errors}
prior = {"bird": 0.3, "plane": 0.7}
result = pb.acquisition.query_annotators(
    annotators,
    errors,
    classes=["bird", "plane"],
    query_costs=query_costs,
    prior=prior,
    budget=20,
    max_error=0.05,
)
for entry in result.acquired:
    print(f"{entry.source:8s} {entry.value:6s} {entry.cost:g}")
print(f"{result.label}, error probability {result.error:.3f}: {result.reason}")

# %%
# Annotate many pictures in one session. A larger budget gives fewer errors, and costs stay below
# the budget for easy pictures. The rule looks only one answer ahead: with a budget of 12, asking
# the expert at once would be better.
budgets = [1, 3, 6, 12, 24, 48]
costs, error_rates = [], []
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
    while queries := session.ask():
        for query in queries:
            session.tell(query, annotate(query.row, query.source))
    costs.append(np.mean([item.cost for item in session]))
    error_rates.append(
        100 * np.mean([item.label != label for item, label in zip(session, truth, strict=True)])
    )
    print(f"budget {budget:2d}: mean cost {costs[-1]:5.1f}, error {error_rates[-1]:4.1f} %")

# %%
# Compare with asking a single annotator once:
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(costs, error_rates, "o-", label="adaptive queries")
for name, error in errors.items():
    ax.plot(
        query_costs[name], 100 * min(error, np.mean(truth == "bird")), "s", label=f"{name}, once"
    )
ax.set(xlabel="mean cost per picture", ylabel="error (%)", ylim=(0, None))
ax.legend()
plt.show()
