"""A model for a microcontroller
=============================

*My device has a few kilobytes, no floating point and no Python. Can it have the model?*

One file of C99, in whole numbers: a valve reads four sensors through a converter of 10 bits, and
has to know whether it leaks.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pboost as pb

rng = np.random.default_rng(0)
X = rng.integers(0, 1024, size=(3000, 4))  # readings
pressure, flow, heat, sound = (X / 1024).T
leaks = (pressure * flow > 0.3) ^ (heat > 0.7) | (sound > 0.95)
y = np.where(leaks, "leak", "tight")

# %%
# A *matryoshka*, a tree of trees whose paths join again, is small and asks few questions.
# ``to_c`` writes the graph as it is, with tables of int16:
model = pb.fit_matryoshka(X[:2000], y[:2000], shape=(8, 8), observation=pb.observation.adatree2())
path = Path(tempfile.mkdtemp()) / "valve.c"
made = pb.export.to_c(model, path, "int16", prefix="valve", ranges=[(0, 1023)] * 4, grid_steps=1)
text = path.read_text()
print(text[: text.index("*/") + 2])

# %%
# The device calls ``valve_predict(row)``, which returns 0 or 1; ``valve_classes`` has the words.
# Readings are points of the grid of thresholds, so that every comparison is that of the model, and
# labels agree wherever the decision value is larger than a bound:
print(f"labels are the same beyond a decision value of {made.bound:.1e}")

# %%
# Compiled with ``-DVALVE_SELF_TEST`` the file checks itself, by rows and scores that it holds.
if shutil.which("cc"):
    program = path.with_suffix("")
    subprocess.run(["cc", "-std=c99", "-DVALVE_SELF_TEST", path, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    print(done.stdout)

# %%
# What more nodes would buy, and what they would cost the device:
shapes = [(4,), (8,), (4, 4), (8, 4), (8, 8), (12, 8), (12, 12)]
tried = [
    pb.fit_matryoshka(X[:2000], y[:2000], shape=shape, observation=pb.observation.adatree2())
    for shape in shapes
]
error = [100 * np.mean(pb.predict(m, X[2000:]) != y[2000:]) for m in tried]
cost = [pb.prediction_cost(m, X[2000:]).mean() for m in tried]
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot([m.n_nodes for m in tried], error, "o-", label="wrong on new rows (%)")
ax.plot([m.n_nodes for m in tried], cost, "s--", label="comparisons for a row")
ax.set(xlabel="nodes, of at most 16 bytes each", ylim=(0, None))
ax.legend()
plt.show()
