"""What theory says of every model, where the tests of the builders do not look.

Those go through the observation models that are tables, with stumps. Here are affine weak
classifiers under all observation models, and stumps under gaussian answers, for all builders.
"""

from itertools import product

import numpy as np
import pytest
from compare import stump
from reference import matryoshka
from reference.problems import Problem
from soft_models import (
    CLASS_FREE,
    OBSERVATIONS,
    arrays,
    expected_error,
    nested_bound,
    noise_of,
    noisy,
    observation,
    shrinks,
    start,
    tree_bound,
)

import pboost as pb

GROWTHS = ("largest_bound", "largest_error", "look_ahead", "breadth_first")
NOISE = ("scalar", "per feature", "per cell")
#: Weak learners and answers that go together here.
PAIRS = [("affine", kind) for kind in ("exact", *OBSERVATIONS, *NOISE)]
PAIRS += [("stump", kind) for kind in NOISE]
pairs = pytest.mark.parametrize(("weak", "kind"), PAIRS)


def tree(growth):
    return lambda X, y, n, **k: pb.fit_boosted_tree(X, y, max_nodes=n, growth=growth, **k)


def nested(shape, **options):
    """Return a builder of this shape with n classifiers in the outermost tree."""
    return lambda X, y, n, **k: pb.fit_matryoshka(X, y, shape=(*shape, n), **options, **k)


BUILDERS = {
    "chain": lambda X, y, n, **k: pb.fit_adaboost(X, y, n_estimators=n, **k),
    "symmetric": lambda X, y, n, **k: pb.fit_adaboost(X, y, n_estimators=n, votes="symmetric", **k),
    **{growth: tree(growth) for growth in GROWTHS},
    "additive": nested((2,)),
    "sign": nested((3,), collect="sign"),
    "chained": nested((2,), join="all"),
    "chained by sign": nested((2, 2), join="all", collect="sign"),
    "greedy": lambda X, y, n, **k: pb.fit_matryoshka(X, y, growth="greedy", max_nodes=2 * n, **k),
    "greedy by sign": lambda X, y, n, **k: pb.fit_matryoshka(
        X, y, growth="greedy", max_nodes=2 * n, collect="sign", **k
    ),
}
builders = pytest.mark.parametrize("builder", BUILDERS)


def overlapping(seed, n=120):
    """Draw a problem of which hardly any cut leaves a pure side, whose votes would be clipped."""
    X, y, weight = noisy(seed, n, d=2)
    wrong = np.random.default_rng(seed).random(n) < 0.15
    return Problem(X, np.where(wrong, -y, y), weight)


def draw_sigma(seed, kind, X):
    rng = np.random.default_rng(seed)
    if kind == "scalar":
        return float(rng.uniform(0.1, 0.6))
    return rng.uniform(0.1, 0.6, {"per feature": X.shape[1]}.get(kind, X.shape))


class Fitted:
    """A model with the numbers that its nodes compare, and their errors, by plain arithmetic."""

    def __init__(self, builder, weak, kind, problem, n=3, **options):
        X, y, weight = problem
        sigma = draw_sigma(1, kind, X) if kind in NOISE else None
        learners = {"stump": stump(max_bins=256), "affine": pb.weak.affine(n_directions=12)}
        answers = "gaussian" if kind in NOISE else kind
        build = BUILDERS[builder] if isinstance(builder, str) else builder
        options["observation"] = observation(answers, 0.1, sigma)
        self.model = build(X, y, n, weak_learner=learners[weak], sample_weight=weight, **options)
        self.problem, self.kind = problem, kind
        self.told = {} if sigma is None else {"sigma": sigma}
        columns, self.sigma = X, noise_of(problem, sigma)[0]
        inputs = self.model.inputs
        if inputs is not None:
            ends = zip(inputs.start[:-1], inputs.start[1:], strict=True)
            sums = [(inputs.index[a:b], inputs.coefficient[a:b]) for a, b in ends]
            columns = np.column_stack([X[:, index] @ c for index, c in sums])
            if sigma is not None:  # errors of sums of independent errors
                variance = [self.sigma[:, index] ** 2 @ c**2 for index, c in sums]
                self.sigma = np.sqrt(np.column_stack(variance))
        self.columns = Problem(columns, y, weight)
        self.graph = arrays(self.model, sigma=self.sigma)

    @property
    def certificate(self):
        return self.model.record.certificate[-1]

    def recomputed(self, model=None):
        X, y, weight = self.problem
        model = self.model if model is None else model
        return pb.certificate(model, X, y, sample_weight=weight, **self.told)

    def shrinks(self):
        return shrinks(self.model, self.columns, self.sigma)


def every_answer_vector(fitted):
    """Return the expectations of exp(-H y) and of errors, over all answers of all nodes at once.

    A node answers whether or not a row arrives there, so that nothing is said of paths.
    """
    graph, (X, y, _) = fitted.graph, fitted.columns
    n_nodes = len(graph.feature)
    q = [matryoshka.answers(graph, X, y, node) for node in range(n_nodes)]
    loss = error = 0.0
    for vector in product((0, 1), repeat=n_nodes):
        p = np.prod([q[node][a] for node, a in enumerate(vector)], axis=0)
        node, H = (0 if n_nodes else -1), graph.bias
        while node >= 0:
            H, node = H + graph.vote[node][vector[node]], graph.next[node][vector[node]]
        loss, error = loss + p * np.exp(-H * y), error + p * ((H > 0) != (y > 0))
    return float(start(fitted.columns) @ loss), float(start(fitted.columns) @ error)


@builders
@pairs
def test_the_certificate_is_that_of_all_answers(builder, weak, kind):
    for case, options in enumerate(
        [{}, {"smoothing": 0.0}, {"smoothing": 0.01, "learning_rate": 0.5}]
    ):
        fitted = Fitted(builder, weak, kind, overlapping([201, case], n=50), **options)
        loss, error = every_answer_vector(fitted)
        assert fitted.certificate == pytest.approx(loss, rel=1e-9)
        assert fitted.certificate == pytest.approx(fitted.recomputed(), rel=1e-9)
        assert 0 <= error <= fitted.certificate * (1 + 1e-12)
        if fitted.model.n_nodes <= 6:  # by paths
            assert error == pytest.approx(
                expected_error(fitted.model, fitted.columns, fitted.sigma), abs=1e-12
            )
        if kind == "exact":
            X, y, weight = fitted.problem
            hard = np.average(pb.predict(fitted.model, X) != y, weights=weight)
            assert error == pytest.approx(hard, abs=1e-12)


def walk_at_random(fitted, rng):
    """Return H of every row, for answers drawn with the q of training."""
    graph, (X, y, _) = fitted.graph, fitted.columns
    H, at = np.full(len(y), graph.bias), np.zeros(len(y), int)
    for node in range(len(graph.feature)):
        above = rng.random(len(y)) < matryoshka.answers(graph, X, y, node)[1]
        here = at == node
        H += here * np.where(above, graph.vote[node][1], graph.vote[node][0])
        at = np.where(here, np.where(above, *graph.next[node][::-1]), at)
    return H


@pytest.mark.parametrize("builder", ["chain", "largest_bound", "additive", "sign", "greedy"])
@pairs
def test_random_walks_are_certified(builder, weak, kind):
    """Models too large to go through all paths, within four standard errors."""
    fitted = Fitted(builder, weak, kind, overlapping(202), n=12)
    X, y, _ = fitted.problem
    class_free = kind in (*CLASS_FREE, *NOISE)
    rng, D, walks = np.random.default_rng(203), start(fitted.problem), 100
    losses, errors = np.zeros(len(y)), np.zeros(walks)
    for walk in range(walks):
        if class_free:
            H = pb.decision_function(fitted.model, X, route="sample", rng=walk, **fitted.told)
        else:  # the library has no walk of a row whose class it is not told
            H = walk_at_random(fitted, rng)
        losses += np.exp(-H * y) / walks
        errors[walk] = D @ ((H > 0) != (y > 0))
    assert errors.mean() <= fitted.certificate + 4 * errors.std(ddof=1) / np.sqrt(walks)
    # A few walks can hold most of the loss: its variance is not taken from those drawn.
    _, mean = matryoshka.propagate(fitted.graph, *fitted.columns[:2], lambda v: np.exp(-v * y))
    _, square = matryoshka.propagate(
        fitted.graph, *fitted.columns[:2], lambda v: np.exp(-2 * v * y)
    )
    error = np.sqrt(D**2 @ np.maximum(square - mean**2, 0) / walks)
    assert D @ losses == pytest.approx(fitted.certificate, abs=4 * error + 1e-12)


@pytest.mark.parametrize("growth", GROWTHS)
@pairs
def test_votes_telescope(growth, weak, kind):
    """In trees: half the log odds of the reach masses at each way out, theorem 2 of [G]."""
    fitted = Fitted(growth, weak, kind, overlapping(204), n=10, smoothing=0.0)
    graph, (X, y, _) = fitted.graph, fitted.columns
    certificate, n_checked = 0.0, 0
    D = start(fitted.columns)
    for p, H in matryoshka.paths(graph, X, y):
        plus, minus = (D @ (p * (y == label)) for label in (1, -1))
        certificate += 2 * np.sqrt(plus * minus)
        if min(plus, minus) > 1e-9:
            assert pytest.approx(0.5 * np.log(plus / minus), abs=1e-8) == H
            n_checked += 1
    assert n_checked >= 2
    assert fitted.certificate == pytest.approx(certificate, rel=1e-6)


@pytest.mark.parametrize("learning_rate", [1.0, 0.5])
@pytest.mark.parametrize("growth", ["nested", "greedy"])
@pairs
def test_additive_collecting_leaves_the_certificate(growth, learning_rate, weak, kind):
    """What a model's first nodes certify is what was certified when they were all of it."""
    builder = nested((3, 2)) if growth == "nested" else "greedy"
    problem = overlapping(205)
    fitted = Fitted(
        builder, weak, kind, problem, n=2 if growth == "nested" else 8, learning_rate=learning_rate
    )
    joined = len({target for target in fitted.model.next.flat if target >= 0})
    if growth == "nested":
        assert joined < (fitted.model.next >= 0).sum()  # something was collected
    for n in range(1, fitted.model.n_nodes + 1):
        actual = fitted.recomputed(pb.models.truncate(fitted.model, n))
        assert actual == pytest.approx(fitted.model.record.certificate[n], rel=1e-9)
    size = {"learning_rate": learning_rate}
    alone = Fitted(nested(()), weak, kind, problem, n=5, **size)
    full = Fitted(nested((5,)), weak, kind, problem, n=1, **size)
    assert full.certificate == pytest.approx(alone.certificate, rel=1e-12)


@pairs
def test_the_bound_of_trees(weak, kind):
    for seed in range(3):
        fitted = Fitted("largest_bound", weak, kind, overlapping([206, seed]), n=20, smoothing=0.0)
        factors = fitted.shrinks()
        for t, item in enumerate(fitted.model.record.certificate[1:], start=1):
            assert item <= tree_bound(t, factors[:t].max()) * (1 + 1e-9)


@pytest.mark.parametrize("shape", [(4, 4), (2, 2, 2, 2), (3, 2, 3)])
@pairs
def test_the_nested_bound(shape, weak, kind):
    """Under its condition: every exit of largest bound could be split."""
    fitted = Fitted(
        nested(shape[:-1]), weak, kind, overlapping(207, n=300), n=shape[-1], smoothing=0.0
    )
    if fitted.model.n_nodes == np.prod(shape):
        bound = nested_bound(shape, fitted.shrinks().max())
        assert fitted.certificate <= bound * (1 + 1e-9)
    else:  # exact answers leave pure exits behind, and half has nothing more to say
        assert kind in ("exact", "half")


@pairs
def test_the_error_of_chains_is_below_the_product_of_z(weak, kind):
    fitted = Fitted("chain", weak, kind, overlapping(208), n=8, smoothing=0.0)
    product_of_z = np.cumprod(fitted.shrinks())
    np.testing.assert_allclose(product_of_z, fitted.model.record.certificate[1:], rtol=1e-9)
    assert expected_error(fitted.model, fitted.columns, fitted.sigma) <= product_of_z[-1]


@pytest.mark.full_for("map-look_ahead", "map-sign", "ml-look_ahead", "ml-sign")
@pytest.mark.parametrize("builder", ["chain", "largest_bound", "look_ahead", "additive", "sign"])
@pytest.mark.parametrize("estimator", ["map", "ml"])
def test_sampled_answers_approach_those_that_are_drawn(builder, estimator):
    """Over whole models: splits and votes become those of flip(0.2) as answers are drawn."""
    problem = noisy(209, n=100)
    of = pb.observation.flip(0.2)
    options = {"sample_weight": problem.weight}
    known = BUILDERS[builder](problem.X, problem.y, 2, observation=of, **options)
    gaps = []
    for draws in (10, 200, 60_000):
        gap = 0.0
        for seed in range(4):
            made = pb.observation.sampled(draws, estimator, base=of)
            model = BUILDERS[builder](
                problem.X, problem.y, 2, observation=made, rng=seed, **options
            )
            gap = max(gap, abs(model.record.certificate[1] - known.record.certificate[1]))
        gaps.append(gap)
    np.testing.assert_array_equal(model.feature, known.feature)
    np.testing.assert_array_equal(model.threshold, known.threshold)
    np.testing.assert_array_equal(model.next, known.next)
    np.testing.assert_allclose(model.vote, known.vote, rtol=0, atol=0.01)
    assert gaps[0] > gaps[1] > gaps[2]
