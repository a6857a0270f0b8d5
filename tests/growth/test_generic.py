"""Generic greedy boosting against its twin, and the identities that tie it to the builders."""

import math

import numpy as np
import pytest
from reference.generic import generic_greedy

import pboost as pb
from pboost._core.voting import VoteRule
from pboost.growth.generic_greedy import GenericGreedy, leverage


def problem(seed, n=60, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X @ np.arange(1, d + 1) + 2 * rng.normal(size=n) > 0, 1, -1)
    return rng, X, y


def run(y, w, steps):
    state = GenericGreedy(y, w)
    done = [state.step(h[mask], rows=mask) for mask, h in steps]
    return state, done


@pytest.mark.parametrize("seed", range(12))
def test_any_graph_against_the_twin(seed):
    """Rows reach hypotheses at random: more than any decision graph could ask for."""
    rng, X, y = problem(seed)
    w = rng.uniform(0.1, 1, len(y))
    scales = 10.0 ** rng.integers(-3, 4, 8)
    steps = [
        (rng.random(len(y)) < 0.6, scale * (X @ rng.normal(size=3) + 0.3 * y)) for scale in scales
    ]
    state, done = run(y, w, steps)
    twin = generic_greedy(y, w, steps)
    np.testing.assert_allclose([s.mu for s in done], twin.mu, rtol=0, atol=1e-13)
    np.testing.assert_allclose([s.alpha for s in done], twin.alpha, rtol=1e-10)
    np.testing.assert_allclose(state.weight, twin.weight, rtol=1e-10)
    np.testing.assert_allclose(state.score, twin.H, rtol=0, atol=1e-10)
    assert state.bound == pytest.approx(twin.bound, rel=1e-10)
    assert state.weight.sum() == pytest.approx(1, rel=1e-12)
    assert state.certificate <= state.bound * (1 + 1e-12)
    assert state.certificate < 0.999 * state.bound  # answers differ in size


@pytest.mark.parametrize("seed", range(6))
def test_soft_labels_are_rows_of_either_label(seed):
    rng, X, y = problem(seed)
    w = None if seed % 2 else rng.uniform(0.1, 1, len(y))
    share = rng.dirichlet([0.5, 0.5], size=len(y))
    share[::3] = np.eye(2)[rng.integers(0, 2, len(share[::3]))]
    state = GenericGreedy(sample_weight=w, y_proba=share, classes=["no", "yes"])
    rows, label = np.nonzero(share)
    twin = GenericGreedy(label, share[rows, label] * (1.0 if w is None else w[rows]))
    for _ in range(5):
        mask, h = rng.random(len(y)) < 0.7, X @ rng.normal(size=3)
        look = state.margin(h[mask], rows=mask)
        step = state.step(h[mask], rows=mask)
        other = twin.step(h[rows][mask[rows]], rows=mask[rows])
        assert step == look
        assert step.mu == pytest.approx(other.mu, abs=1e-12)
        assert step.alpha == pytest.approx(other.alpha, rel=1e-10)
    np.testing.assert_allclose(state.weight[rows, label], twin.weight, rtol=1e-10)
    assert not state.weight[share == 0].any()
    np.testing.assert_allclose(state.score[rows], twin.score, rtol=0, atol=1e-12)
    assert state.bound == pytest.approx(twin.bound, rel=1e-12)
    assert state.certificate == pytest.approx(twin.certificate, rel=1e-12)


def test_sure_soft_labels_are_labels():
    rng, X, y = problem(3)
    w = rng.uniform(0.1, 1, len(y))
    state, other = (
        GenericGreedy(y, w),
        GenericGreedy(y_proba=np.eye(2)[(y + 1) // 2], sample_weight=w),
    )
    for h in (X[:, 0], np.sign(X[:, 1]), y * 2.0, 1.0):  # the third is perfect
        assert state.step(h) == other.step(h)
    assert np.array_equal(state.weight, other.weight.sum(axis=1))
    assert state.bound == other.bound
    assert state.certificate == other.certificate


def test_wrong_soft_labels():
    with pytest.raises(
        TypeError, match="y: expected class labels, or class probabilities as y_proba"
    ):
        GenericGreedy()
    with pytest.raises(ValueError, match="y_proba: expected two columns, one per class, got 3"):
        GenericGreedy(y_proba=np.eye(3))
    with pytest.raises(ValueError, match="every class to have positive probability"):
        GenericGreedy(y_proba=[0.0, 0.0])
    with pytest.raises(ValueError, match="y_proba: expected at least one row"):
        GenericGreedy(y_proba=np.empty((0, 2)))


@pytest.mark.parametrize("seed", range(5))
def test_adaboost_is_a_chain(seed):
    _, X, y = problem(seed, 150)
    model = pb.fit_adaboost(X, y, n_estimators=40, votes="symmetric", smoothing=0)
    state = GenericGreedy(y)
    for j, t, vote in zip(model.feature, model.threshold, model.vote, strict=True):
        step = state.step(np.where(X[:, j] <= t, np.sign(vote[0]), np.sign(vote[1])))
        assert step.alpha == pytest.approx(abs(vote[0]), abs=1e-12)
    np.testing.assert_allclose(state.score, pb.decision_function(model, X), rtol=0, atol=1e-12)
    assert state.certificate == pytest.approx(pb.certificate(model), abs=1e-12)
    assert state.bound == pytest.approx(pb.certificate(model), abs=1e-12)


def paths(model, X):
    """Return for each node of a tree the mask of the rows that arrive, then those of its exits."""
    arrives = pb.inspection.reach(model, X) > 0
    for node in range(model.n_nodes):
        yield arrives[:, node]
        above = X[:, model.feature[node]] > model.threshold[node]
        for exit_, side in enumerate((~above, above)):
            if model.next[node, exit_] == -1:
                yield arrives[:, node] & side


@pytest.mark.parametrize("seed", range(5))
def test_theorem_2(seed):
    """Constants of any size and sign on a tree give its leaves half the log odds."""
    rng, X, y = problem(seed, 400)
    y[rng.random(400) < 0.3] *= -1  # no leaf is pure
    w = rng.uniform(0.2, 1, len(y))
    weak = pb.weak.stump(min_samples_leaf=20)
    model = pb.fit_boosted_tree(X, y, max_nodes=6, smoothing=0, weak_learner=weak, sample_weight=w)
    state = GenericGreedy(y, w)
    for mask in paths(model, X):
        constant = rng.choice([-1, 1]) * 10.0 ** rng.integers(-6, 6)
        state.step(constant, rows=mask)
    score = pb.decision_function(model, X)
    leaves = [score == value for value in np.unique(score)]
    masses = [(w[leaf & (y > 0)].sum(), w[leaf & (y < 0)].sum()) for leaf in leaves]
    assert len(leaves) > 4
    for leaf, (plus, minus) in zip(leaves, masses, strict=True):
        assert plus * minus > 0
        np.testing.assert_allclose(state.score[leaf], 0.5 * math.log(plus / minus), atol=1e-10)
    np.testing.assert_allclose(score, state.score, rtol=0, atol=1e-10)
    # Equation 11, and the certificate of the tree that the library grows by other steps.
    loss = sum(2 * math.sqrt(p * m) for p, m in masses) / w.sum()
    assert state.certificate == pytest.approx(loss, rel=1e-12)
    assert state.bound == pytest.approx(loss, rel=1e-12)
    assert pb.certificate(model) == pytest.approx(loss, rel=1e-9)


def test_the_bound_may_rise_where_paths_join():
    """A row that gained much on its own path has its full weight again where it meets others."""
    state = GenericGreedy([-1, 1])
    state.step(-1.0, rows=[0])
    assert state.bound == pytest.approx(0.5)
    state.step([-1.0, 0.0])
    assert state.bound == pytest.approx(1 / math.sqrt(3))
    assert state.certificate < 0.51  # what it bounds does not rise


def test_scale_of_hypotheses_does_not_matter():
    rng, X, y = problem(3)
    h = [X @ rng.normal(size=3) for _ in range(5)]
    first, other = GenericGreedy(y), GenericGreedy(y)
    for k, answers in enumerate(h):
        first.step(answers)
        other.step(-(10.0 ** (40 * k - 80)) * answers)
    np.testing.assert_allclose(first.score, other.score, rtol=1e-12)


def test_a_given_bound_is_used():
    _, X, y = problem(4)
    h = np.tanh(X[:, 2])
    own, given = GenericGreedy(y).margin(h), GenericGreedy(y).margin(h, max_abs=1.0)
    assert given.max_abs == 1.0
    assert own.max_abs == np.abs(h).max()
    assert given.mu == pytest.approx(own.mu * own.max_abs, rel=1e-12)
    assert GenericGreedy(y).step(h).alpha > given.alpha


@pytest.mark.parametrize("sign", [1, -1])
def test_perfect_hypotheses_are_clipped(sign):
    y = np.array([-1, -1, 1, 1, 1])
    state = GenericGreedy(y)
    step = state.step(3.0 * sign * y)
    assert step.perfect
    assert step.mu == sign
    assert step.vote == pytest.approx(sign * 0.5 * math.log(2.0**52))
    np.testing.assert_array_equal(state.weight, np.full(5, 0.2))
    assert 0 < state.bound < 1e-7
    assert state.certificate == pytest.approx(state.bound)
    assert not leverage(0.5, 1.0, VoteRule("domain", 0.0, 1.0)).perfect


def test_margin_changes_nothing():
    _, X, y = problem(5)
    state = GenericGreedy(y)
    before = state.weight.copy(), state.score.copy()
    step = state.margin(X[:, 0], rows=np.arange(len(y)))
    np.testing.assert_array_equal(state.weight, before[0])
    np.testing.assert_array_equal(state.score, before[1])
    assert step == state.step(X[:, 0])


@pytest.mark.parametrize(
    ("h", "options", "message"),
    [
        (np.nan, {}, "finite"),
        (np.array([1, 2, np.inf, 4.0]), {}, "row 2"),
        (np.ones(3), {}, "4 numbers"),
        (np.ones((4, 1)), {}, "4 numbers"),
        (0.0, {}, "other than 0"),
        (np.array(["a"] * 4), {}, "real numbers"),
        (2.0, {"max_abs": 1.0}, "at most max_abs=1.0"),
        (1.0, {"max_abs": 0.0}, "max_abs"),
        (1.0, {"rows": [False] * 4}, "rows"),
    ],
)
def test_bad_steps(h, options, message):
    state = GenericGreedy([0, 1, 0, 1])
    with pytest.raises((ValueError, TypeError), match=message):
        state.step(h, **options)
    np.testing.assert_array_equal(state.weight, np.full(4, 0.25))


@pytest.mark.parametrize(
    "arguments",
    [([0, 0, 0],), ([0, 1, 2],), (3,), ([0, 1], [1.0]), ([0, 1], [-1.0, 1.0])],
)
def test_bad_training_sets(arguments):
    with pytest.raises(ValueError, match=r"y|sample_weight"):
        GenericGreedy(*arguments)


@pytest.mark.parametrize("options", [{"smoothing": -1}, {"learning_rate": 0}])
def test_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        GenericGreedy([0, 1], **options)
