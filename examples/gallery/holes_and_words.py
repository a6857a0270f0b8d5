"""Missing values and categories
=============================

*My table has missing values and text columns. How do I have to preprocess it?*

Not at all. Splits send missing values to the side that fits better, and split text columns as
categorical features, by sets of categories.
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
price = {"Altstadt": 1.3, "Westend": 1.4, "Nordend": 1.1, "Hafen": 0.9, "Siedlung": 0.7}
rent = 9 * flats["area"] * flats["district"].map(price) * rng.lognormal(0, 0.1, n)
rent *= np.where(flats["built"] > 1995, 1.25, np.where(flats["built"] < 1950, 0.7, 1.0))
unknown = np.where(flats["built"] < 1950, 0.8, 0.05)  # the year is often unknown for old houses
flats.loc[rng.random(n) < unknown, "built"] = np.nan
flats.loc[rng.random(n) < 0.1, "district"] = None
y = np.where(rent > 900, "above 900", "below")
train, test = slice(0, 2000), slice(2000, n)
print(flats.head())

# %%
# A pruned tree shows the side of missing values at each split:
tree = pb.fit_pruned_cart(flats[train], y[train], rule="1se", rng=0)
print(pb.describe(tree))
print(f"test error: {np.mean(pb.predict(tree, flats[test]) != y[test]):.1%}")

# %%
# New rows may have categories that did not occur in training; these count as missing. Columns are
# matched by name, in any order.
new = pd.DataFrame({"district": ["Westend", "Moon"], "built": [2010, np.nan], "area": [70, 110]})
print(pb.predict(tree, new))
print(pb.explain(tree, new.iloc[[1]]))

# %%
# A missing value can be informative. Here it indicates an old house, because the year of old houses
# is often unknown. Imputing the mean would suggest that the house was built around 1970.
model = pb.fit_gradient_boosting(flats[train], y[train], loss="log_loss", n_estimators=100)
area = np.arange(30, 140)
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for built, style in ((2010, "-"), (1970, "-"), (1920, "-"), (np.nan, "k:")):
    rows = pd.DataFrame({"area": area, "district": "Nordend", "built": float(built)})
    name = "unknown" if np.isnan(built) else f"{built}"
    ax.plot(area, pb.predict_proba(model, rows)[:, 0], style, label=f"built {name}")
ax.set(xlabel="area", ylabel="probability of a rent above 900")
ax.legend()
plt.show()
