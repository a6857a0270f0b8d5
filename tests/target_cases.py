"""Targets of every kind, and which task they are of."""

import numpy as np

import pboost as pb

N = 66
X = np.random.default_rng(0).normal(size=(N, 2))
CLASSES, REGRESSION, ASKS = "classification", "regression", "asks"
#: Targets and the task that the rule infers from them.
TARGETS = {
    "text": (np.where(X[:, 0] > 0, "a", "b"), CLASSES),
    "objects": (np.array(["a", "b", "c"] * 22, dtype=object), CLASSES),
    "truth": (X[:, 0] > 0, CLASSES),
    "two": (np.arange(N) % 2, CLASSES),
    "two floats": (np.arange(N) % 2.0, CLASSES),
    "20 integers": (np.arange(N) % 20, CLASSES),
    "20 whole floats": (np.arange(N) % 20.0 - 7, CLASSES),
    "21 integers": (np.arange(N) % 21, ASKS),
    "21 whole floats": (np.arange(N) % 21.0, ASKS),
    "floats": (X[:, 0] + X[:, 1], REGRESSION),
    "two fractions": (np.where(X[:, 0] > 0, 0.5, 1.5), REGRESSION),
    "one fraction": (np.append(np.arange(N - 1) % 30.0, 0.5), REGRESSION),
}


def task_of(found):
    """Return the task of a model, or of a cross-validation."""
    if isinstance(found, pb.inspection.CrossValidation):
        return found.task
    return REGRESSION if found.classes is None else CLASSES
