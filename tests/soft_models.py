"""Helpers of the tests of uncertain answers: models, twins, and how they compare."""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np
from compare import assert_equals_twin, stump
from reference import matryoshka
from reference.problems import Problem, random_options
from reference.soft import Graph

import pboost as pb

OBSERVATIONS = ("flip", "half", "uniform", "adatree2")
#: Answers that do not depend on the class: evaluation needs no labels.
CLASS_FREE = ("exact", "flip", "half")
NEEDS_CLASS = ("uniform", "adatree2")
#: Orders in which trees grow.
GROWTHS = ("largest_bound", "largest_error", "look_ahead", "breadth_first")


def observation(kind, rate=0.0, sigma=None):
    make = getattr(pb.observation, kind)
    arguments = {"flip": (rate,), "gaussian": (sigma,)}.get(kind, ())
    return make(*arguments)


def library(
    fit,
    problem,
    *,
    observation="exact",
    rate=0.0,
    criterion="kearns_mansour",
    max_bins=None,
    min_weight_fraction=0.0,
    min_samples_leaf=1,
    sigma=None,
    **options,
):
    """Call a builder with the options of the twins."""
    if observation == "gaussian" and max_bins is None:
        max_bins = 256  # there is no exact search
    return fit(
        problem.X,
        problem.y,
        weak_learner=stump(criterion, max_bins, min_weight_fraction, min_samples_leaf),
        observation=globals()["observation"](observation, rate, sigma),
        sample_weight=problem.weight,
        **options,
    )


def graphs(X, y, kind, sigma=None, **options):
    """Fit one model of each topology."""
    options["observation"] = observation(kind, 0.1, sigma)
    return [
        pb.fit_adaboost(X, y, n_estimators=6, **options),
        pb.fit_boosted_tree(X, y, max_nodes=6, **options),
        pb.fit_matryoshka(X, y, shape=(3, 3), **options),
        pb.fit_matryoshka(X, y, shape=(3, 3), collect="sign", **options),
        pb.fit_matryoshka(X, y, shape=(3, 3), join="all", **options),
        pb.fit_matryoshka(X, y, max_nodes=6, growth="greedy", **options),
    ]


def draw_options(rng):
    """Draw what all builders take."""
    return random_options(rng) | {
        "smoothing": float(rng.choice([0.0, 1e-4])),
        "learning_rate": float(rng.choice([1.0, 0.5])),
        "rate": float(rng.choice([0.0, 0.05, 0.25, 0.45])),
        "max_bins": [None, None, 4, 256][rng.integers(4)],
    }


def noisy(seed, n=120, d=3):
    """Draw a problem without ties, which no tree of a few nodes solves."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1, -1)
    return Problem(X, y, rng.uniform(0.5, 1, n))


def assert_equals_soft_twin(model, twin, case=""):
    assert_equals_twin(model, twin, case)
    answer = arrays(model).answer
    np.testing.assert_allclose(answer, twin.answer, rtol=0, atol=1e-9, err_msg=f"case {case}")
    np.testing.assert_allclose(
        model.record.cost, twin.cost, rtol=1e-9, atol=1e-12, err_msg=f"case {case}"
    )


def arrays(model, n_nodes=None, sigma=None):
    """Return the first nodes of a model as the twins hold them; exits cut off lead out.

    `sigma`: of the rows at hand, by cell, where answers are gaussian.
    """
    n_nodes = model.n_nodes if n_nodes is None else n_nodes
    next_ = model.next[:n_nodes].copy()
    next_[next_ >= n_nodes] = -1
    answer = model.answer
    if answer is None:
        answer = np.tile([[[0.0, 0.0], [1.0, 1.0]]], (model.n_nodes, 1, 1))
    return Graph(
        model.feature[:n_nodes],
        model.threshold[:n_nodes],
        next_,
        model.vote[:n_nodes],
        answer[:n_nodes],
        model.record.certificate[: n_nodes + 1],
        model.record.cost[: n_nodes + 1],
        model.bias,
        sigma,
    )


def start(problem):
    """Return D."""
    weight = np.ones(len(problem.y)) if problem.weight is None else problem.weight
    return weight / math.fsum(weight)


def noise_of(problem, sigma):
    """Return sigma by cell for the twins, and the arguments for the library."""
    if sigma is None:
        return None, {}
    return np.broadcast_to(np.asarray(sigma, float), problem.X.shape), {"sigma": sigma}


def assert_certified(model, problem, case="", sigma=None):
    """The certificate recomputed in three ways is the stored one."""
    X, y, weight = problem
    by_cell, told = noise_of(problem, sigma)
    graph, stored = arrays(model, sigma=by_cell), model.record.certificate[-1]
    np.testing.assert_allclose(
        matryoshka.certificate(graph, X, y, weight), stored, rtol=1e-9, err_msg=f"case {case}"
    )
    bound = pb.certificate(model, X, y, sample_weight=weight, **told)
    np.testing.assert_allclose(bound, stored, rtol=1e-9, err_msg=f"case {case}")
    if model.n_nodes <= 8:
        every_path = sum(p * np.exp(-H * y) for p, H in matryoshka.paths(graph, X, y))
        np.testing.assert_allclose(start(problem) @ every_path, stored, rtol=1e-9)


def assert_evaluated(model, problem, needs_class, sigma=None):
    """Reach and expected votes are those of plain propagation."""
    X, y, _ = problem
    by_cell, told = noise_of(problem, sigma)
    graph = arrays(model, sigma=by_cell)
    expected = matryoshka.reach(graph, X, y)
    actual = (
        pb.inspection.reach(model, X, y) if needs_class else pb.inspection.reach(model, X, **told)
    )
    assert actual.shape == (len(X), model.n_nodes)
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-15)
    if not needs_class:
        H = matryoshka.expected_votes(graph, X, y)
        actual = pb.decision_function(model, X, route="expected", **told)
        np.testing.assert_allclose(actual, H, rtol=1e-9, atol=1e-9)


def expected_error(model, problem, sigma=None):
    """Return the training error of the randomised classifier, by enumeration of paths."""
    X, y, _ = problem
    graph = arrays(model, sigma=noise_of(problem, sigma)[0])
    wrong = sum(p * ((H > 0) != (y > 0)) for p, H in matryoshka.paths(graph, X, y))
    return float(start(problem) @ wrong)


def shrinks(model, problem, sigma=None):
    """Return Z of every node: what its split makes of the weights that arrive."""
    X, y, _ = problem
    graph = arrays(model, sigma=noise_of(problem, sigma)[0])
    arriving, _ = matryoshka.propagate(graph, X, y, lambda vote: np.exp(-vote * y))
    weight = start(problem)[:, None] * arriving
    after = np.zeros(model.n_nodes)
    for node in range(model.n_nodes):
        for vote, q in zip(graph.vote[node], matryoshka.answers(graph, X, y, node), strict=True):
            after[node] += math.fsum(weight[:, node] * q * np.exp(-vote * y))
    return after / weight.sum(axis=0)


def tree_bound(nodes, rho):
    """Return F(T, rho), theory page, section 4."""
    return math.prod((t + rho) / (t + 1) for t in range(nodes))


def nested_bound(shape, rho):
    """Return F(T_L, ... F(T_1, rho)), theory page, section 5."""
    return list(accumulate(shape, lambda bound, nodes: tree_bound(nodes, bound), initial=rho))[-1]
