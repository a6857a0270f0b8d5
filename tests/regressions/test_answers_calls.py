"""Slips in calls of public functions other than builders: the argument is named, in one sentence.

Ragged lists used to be answered by NumPy, what is no model by AttributeError, integers beyond
float64 by OverflowError, arrays in place of words by "truth value of an array is ambiguous".
"""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import pboost as pb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
GRAPH = pb.fit_boosted_tree(X, Y, max_nodes=3)
CHAIN = pb.fit_adaboost(X, Y, n_estimators=3)
TREE = pb.fit_cart(X, Y)
PROBITS = pb.fit_probit_tree(X, Y, max_depth=1, max_iter=3)
DATA = {"X": X, "y": Y}
REFUSED = (TypeError, ValueError, NotImplementedError)

#: Public functions, and arguments with which they answer.
CALLS = {
    pb.predict: {"model": GRAPH, "X": X},
    pb.predict_proba: {"model": GRAPH, "X": X},
    pb.decision_function: {"model": GRAPH, "X": X},
    pb.staged_decision_function: {"model": GRAPH, "X": X},
    pb.prediction_cost: {"model": GRAPH, "X": X},
    pb.certificate: {"model": GRAPH, **DATA},
    pb.inspection.margins: {"model": GRAPH, **DATA},
    pb.inspection.normalized_margins: {"model": CHAIN, **DATA},
    pb.inspection.margin_error: {"model": GRAPH, **DATA, "theta": 0.1},
    pb.inspection.margin_bound: {"model": CHAIN, **DATA, "theta": 0.1},
    pb.inspection.margin_curve: {"model": GRAPH, **DATA, "thetas": [0.1]},
    pb.inspection.logistic_margin_curve: {"probability": [0.2, 0.9], "thetas": [0.1]},
    pb.inspection.reach: {"model": GRAPH, **DATA},
    pb.models.truncate: {"model": GRAPH, "n_nodes": 2},
    pb.continue_fit: {"model": CHAIN, **DATA, "n_estimators": 1},
    pb.inspection.apply: {"tree": TREE, "X": X},
    pb.inspection.decision_path: {"tree": TREE, "X": X},
    pb.prune: {"tree": TREE, "ccp_alpha": 1.0},
    pb.models.cost_complexity_pruning_path: {"tree": TREE, **DATA},
    pb.feature_importances: {"model": TREE},
    pb.inspection.permutation_importance: {"model": GRAPH, **DATA, "n_repeats": 1, "rng": 0},
    pb.inspection.coefficients: {"model": PROBITS, "X": X},
    pb.describe: {"model": GRAPH},
    pb.data.one_hot: {"X": X.round(), "columns": [0]},
    pb.data.fit_one_hot: {"X": X.round(), "columns": [0]},
    pb.data.sort_columns: {"X": X},
    pb.data.bin_columns: {"X": X},
    pb.weak.stump: {},
    pb.weak.affine: {},
    pb.weak.separator: {},
    pb.weak.linear: {},
    pb.weak.feature: {},
    pb.weak.hypothesis: {"train": len},
    pb.weak.oracle: {"train": len},
    pb.observation.flip: {"flip_rate": 0.1},
    pb.observation.gaussian: {"sigma": 0.1},
    pb.observation.sampled: {},
    pb.losses.check_loss: {"loss": "hinge"},
    pb.bounds.adaboost_bound: {"T": 3, "rho": 0.5},
    pb.bounds.tree_bound: {"T": 3, "rho": 0.5},
    pb.bounds.nested_bound: {"sizes": (2, 2), "rho": 0.5},
    pb.bounds.best_nesting: {"T": 9, "rho": 0.5},
    pb.datasets.twonorm: {"n": 5, "rng": 0},
    pb.datasets.led: {"n": 5, "rng": 0},
    pb.load: {"path": "nowhere"},
    pb.save: {"model": GRAPH, "path": "nowhere"},
}
#: What no argument takes.
NEVER = {
    "ragged": [[1], [1, 2]],
    "object": object(),
    "complex": 1j,
    "dict of arrays": {"a": X},
    "negative": -1.5,
    "large array": np.full((300, 300), -2.0),
}
#: Arguments that these calls do not look at.
UNASKED = {("decision_function", "rng"), ("margin_curve", "cv"), ("margin_curve", "rng")}
#: Any number is a margin to look at.
MARGINS = {
    ("margin_error", "theta"),
    ("margin_curve", "thetas"),
    ("logistic_margin_curve", "thetas"),
}
#: What some take all the same: keys of a dict are names, sizes broadcast.
FREE = {
    ("one_hot", "columns"): "dict of arrays",
    ("fit_one_hot", "columns"): "dict of arrays",
    ("nested_bound", "sizes"): "ragged",
}


@pytest.mark.parametrize("function", CALLS, ids=lambda function: function.__name__)
def test_each_argument(function):
    given = CALLS[function]
    if function not in (pb.load, pb.save):
        function(**given)
    for name in inspect.signature(function).parameters:
        for slip, value in NEVER.items():
            at = (function.__name__, name)
            if at in UNASKED or (at in MARGINS and slip in ("negative", "large array")):
                continue
            if at in FREE and slip == FREE[at]:
                continue
            if name in ("X", "columns") and slip == "large array":
                continue
            with pytest.raises(REFUSED) as caught:
                function(**(given | {name: value}))
            text = str(caught.value)
            assert re.match(rf"(\w+, )*{name}\b.*: ", text), (name, slip, text)
            assert len(text) < 300, (name, slip)
            assert "\n" not in text, (name, slip, text)


def test_integers_beyond_the_numbers():
    for ask, name in (
        (lambda: pb.bounds.tree_bound(10**400, 0.5), "T"),
        (lambda: pb.bounds.best_nesting(9, 10**400), "rho"),
        (lambda: pb.prune(TREE, 10**400), "ccp_alpha"),
        (lambda: pb.models.truncate(GRAPH, 10**6000), "n_nodes"),
    ):
        with pytest.raises(ValueError, match=rf"^{name}: expected .*, got an integer of \d+ bits$"):
            ask()


def test_words_that_are_arrays():
    for value in (np.array(["hard", "hard"]), np.ones(2), ["hard"]):
        with pytest.raises(ValueError, match=r"^route: expected one of 'hard', 'expected'"):
            pb.decision_function(GRAPH, X, value)
    with pytest.raises(TypeError, match=r"^copy: expected True or False, got array"):
        pb.data.sort_columns(X, copy=np.array([True, False]))
    with pytest.raises(TypeError, match=r"^even: expected True or False, got array"):
        pb.datasets.led(5, rng=0, even=np.array([True, False]))


def test_sizes_of_nested_bounds():
    for value in (4, 4.0, None, {4}):
        with pytest.raises(TypeError, match=r"^sizes: expected a sequence such as \(4, 4\), got"):
            pb.bounds.nested_bound(value, 0.5)


def test_columns_of_one_hot():
    for value in (2.5, "a", b"a", 3, len):
        for encode in (pb.data.one_hot, pb.data.fit_one_hot):
            with pytest.raises(TypeError, match=r"^columns: expected a sequence of names or posit"):
                encode(X.round(), value)


def test_axes():
    pytest.importorskip("matplotlib")
    for draw in (
        lambda ax: pb.plot.coefficients(PROBITS, ax=ax),
        lambda ax: pb.plot.margin_curve([0.0], {"a": [0.5]}, ax=ax),
    ):
        for value in (3, "axes", X):
            with pytest.raises(TypeError, match=r"^ax: expected matplotlib's axes or None, got"):
                draw(value)
        draw(draw(None))
    with pytest.raises(
        TypeError, match=r"^curves: expected a dict of names and margin errors, got"
    ):
        pb.plot.margin_curve([0.0], [0.5])
