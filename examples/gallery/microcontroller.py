"""A model for a microcontroller
=============================

*My device has a few kilobytes of memory and no floating-point unit. Can it run the model?*

``to_c`` writes one C99 file with integer arithmetic. Here a valve has four sensors with 10-bit
converters, and the model detects whether it leaks.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pboost as pb

rng = np.random.default_rng(0)
X = rng.integers(0, 1024, size=(3000, 4))  # sensor readings
pressure, flow, heat, sound = (X / 1024).T
leaks = (pressure * flow > 0.3) ^ (heat > 0.7) | (sound > 0.95)
y = np.where(leaks, "leak", "tight")

# %%
# A *matryoshka*, a nested decision graph whose paths join again, is small and fast. ``to_c`` writes
# the graph with tables of int16:
model = pb.fit_matryoshka(X[:2000], y[:2000], shape=(8, 8), observation=pb.observation.adatree2())
path = Path(tempfile.mkdtemp()) / "valve.c"
made = pb.export.to_c(model, path, "int16", prefix="valve", ranges=[(0, 1023)] * 4, grid_steps=1)
text = path.read_text()
print(text[: text.index("*/") + 2])

# %%
# The device calls ``valve_predict(row)``, which returns 0 or 1, the index into ``valve_classes``.
# Sensor readings lie on the grid of thresholds, so all comparisons are exact. The predicted class
# is the same as in Python if the decision value exceeds a bound:
print(f"classes agree if the decision value exceeds {made.bound:.1e}")

# %%
# Compiled with ``-DVALVE_SELF_TEST``, the program checks itself on the rows that it contains.
if shutil.which("cc"):
    program = path.with_suffix("")
    subprocess.run(["cc", "-std=c99", "-DVALVE_SELF_TEST", path, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    print(done.stdout)

# %%
# A larger model is more accurate, but takes more memory and more comparisons:
shapes = [(4,), (8,), (4, 4), (8, 4), (8, 8), (12, 8), (12, 12)]
models = [
    pb.fit_matryoshka(X[:2000], y[:2000], shape=shape, observation=pb.observation.adatree2())
    for shape in shapes
]
error = [100 * np.mean(pb.predict(m, X[2000:]) != y[2000:]) for m in models]
cost = [pb.prediction_cost(m, X[2000:]).mean() for m in models]
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot([m.n_nodes for m in models], error, "o-", label="test error (%)")
ax.plot([m.n_nodes for m in models], cost, "s--", label="comparisons per row")
ax.set(xlabel="nodes (at most 16 bytes each)", ylim=(0, None))
ax.legend()
plt.show()
