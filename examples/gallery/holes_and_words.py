"""Holes and words
===============

*My table has missing values and columns of text. What has to be done to it first?*

Nothing. A test sends what is missing to the side that is better, and says so; a column of words is
cut by a set of words.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pboost as pb

rng = np.random.default_rng(0)
n = 6000
flats = pd.DataFrame(
    {
        "area": rng.uniform(25, 140, n).round(),
        "district": rng.choice(["Altstadt", "Nordend", "Hafen", "Westend", "Siedlung"], n),
        "built": rng.integers(1890, 2025, n).astype(float),
    }
)
dear = {"Altstadt": 1.3, "Westend": 1.4, "Nordend": 1.1, "Hafen": 0.9, "Siedlung": 0.7}
rent = 9 * flats["area"] * flats["district"].map(dear) * rng.lognormal(0, 0.1, n)
rent *= np.where(flats["built"] > 1995, 1.25, np.where(flats["built"] < 1950, 0.7, 1.0))
unknown = np.where(flats["built"] < 1950, 0.8, 0.05)  # nobody has looked into the old files
flats.loc[rng.random(n) < unknown, "built"] = np.nan
flats.loc[rng.random(n) < 0.1, "district"] = None
y = np.where(rent > 900, "above 900", "below")
train, test = slice(0, 2000), slice(2000, n)
print(flats.head())

# %%
tree = pb.fit_pruned_cart(flats[train], y[train], rule="1se", rng=0)
print(pb.describe(tree))
print(f"wrong on new rows: {np.mean(pb.predict(tree, flats[test]) != y[test]):.1%}")

# %%
# New rows may hold words that the training rows did not, and these count as missing. Columns are
# matched by their names, in any order.
new = pd.DataFrame({"district": ["Westend", "Moon"], "built": [2010, np.nan], "area": [70, 110]})
print(pb.predict(tree, new))
print(pb.explain(tree, new.iloc[[1]]))

# %%
# What a hole says is learnt: here, that the house is old, since nobody has looked into the old
# files. Filled with the mean it would say that the house is of 1970.
model = pb.fit_gradient_boosting(flats[train], y[train], loss="log_loss", n_estimators=100)
area = np.arange(30, 140)
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for built, style in ((2010, "-"), (1970, "-"), (1920, "-"), (np.nan, "k:")):
    asked = pd.DataFrame({"area": area, "district": "Nordend", "built": float(built)})
    name = "unknown" if np.isnan(built) else f"{built}"
    ax.plot(area, pb.predict_proba(model, asked)[:, 0], style, label=f"built {name}")
ax.set(xlabel="area", ylabel="probability of a rent above 900")
ax.legend()
plt.show()
