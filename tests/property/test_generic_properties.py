"""What generic greedy boosting and margins promise for any data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pboost as pb
from pboost.growth.generic_greedy import GenericGreedy

bounded = settings(deadline=None, max_examples=60, derandomize=True, database=None)
answers = st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) > 1e-6)


@st.composite
def runs(draw):
    """Draw labels, weights, and steps: masks of rows and answers on them, not all 0."""
    n = draw(st.integers(2, 12))
    y = draw(hnp.arrays(np.int64, n, elements=st.sampled_from([-1, 1])))
    y[:2] = -1, 1
    w = draw(hnp.arrays(np.float64, n, elements=st.floats(0.01, 10)))
    steps = []
    for _ in range(draw(st.integers(1, 6))):
        mask = draw(hnp.arrays(np.bool_, n))
        mask[draw(st.integers(0, n - 1))] = True
        h = draw(hnp.arrays(np.float64, int(mask.sum()), elements=answers))
        h[draw(st.integers(0, len(h) - 1))] = draw(st.sampled_from([-1.0, 0.5, 2.0]))
        steps.append((mask, h))
    return y, w, steps


@pytest.mark.full
@bounded
@given(run=runs(), smoothing=st.sampled_from([0.0, 1e-4, 0.1]), rate=st.sampled_from([1.0, 0.3]))
def test_theorem_1_on_any_graph(run, smoothing, rate):
    y, w, steps = run
    state = GenericGreedy(y, w, smoothing=smoothing, learning_rate=rate)
    for mask, h in steps:
        mass = state.weight[mask].sum()
        step = state.step(h, rows=mask)
        assert state.weight[mask].sum() == pytest.approx(mass, rel=1e-9)
        assert 0 < step.shrink <= 1 + 1e-12
    assert state.certificate <= state.bound * (1 + 1e-9)
    margin = np.tanh(y * state.score / 2)
    for theta in np.linspace(-1, 1, 52)[1:-1]:
        error = w[margin <= theta].sum() / w.sum()
        assert error <= (1 + theta) / (1 - theta) * state.bound * (1 + 1e-9)


@pytest.mark.full
@bounded
@given(run=runs())
def test_the_bound_of_a_chain_is_a_product(run):
    y, w, steps = run
    state, product = GenericGreedy(y, w), 1.0
    for _, h in steps:
        step = state.step(np.resize(h, len(y)))
        product *= step.shrink
        assert state.bound == pytest.approx(product, rel=1e-9)


@pytest.mark.full
@bounded
@given(run=runs())
def test_answers_of_one_size_have_no_slack(run):
    y, w, steps = run
    state = GenericGreedy(y, w)
    for mask, h in steps:
        state.step(np.where(h > 0, 3.0, -3.0), rows=mask)
    assert state.certificate == pytest.approx(state.bound, rel=1e-9)


@st.composite
def problems(draw):
    n = draw(st.integers(4, 20))
    X = draw(hnp.arrays(np.float64, (n, 2), elements=st.sampled_from([-2.0, -1.0, 0.0, 0.5, 3.0])))
    y = draw(hnp.arrays(np.int64, n, elements=st.sampled_from([0, 1])))
    y[:2] = 0, 1
    return X, y


FITS = {
    "columns": {"weak_learner": pb.weak.feature()},
    "centred": {"weak_learner": pb.weak.feature("midrange", include_constant=False)},
    "share": {},
    "log_odds": {"answer_scale": "log_odds"},
}


@pytest.mark.parametrize("options", FITS.values(), ids=FITS)
@bounded
@given(problem=problems(), smoothing=st.sampled_from([0.0, 0.01]))
def test_real_models_keep_their_promises(options, problem, smoothing):
    X, y = problem
    records = []
    model = pb.fit_real_adaboost(
        X,
        y,
        n_estimators=8,
        smoothing=smoothing,
        callback=lambda _, r: records.append(r),
        **options,
    )
    C = pb.certificate(model)
    assert pytest.approx(pb.certificate(model, X, y), rel=1e-6) == C
    assert np.mean(pb.predict(model, X) != y) <= C * (1 + 1e-9)
    assert all(r.certificate <= r.bound * (1 + 1e-9) for r in records)
    if model.n_nodes:
        thetas = np.linspace(-0.95, 0.95, 20)
        error = pb.inspection.margin_error(model, X, y, thetas)
        assert (error <= pb.inspection.margin_bound(model, X, y, thetas) * (1 + 1e-9)).all()
        assert np.abs(pb.inspection.normalized_margins(model, X, y)).max() <= 1 + 1e-9


@bounded
@given(problem=problems(), power=st.floats(0.5, 1.0), nodes=st.integers(1, 9))
def test_leaves_of_any_impurity_vote_half_the_log_odds(problem, power, nodes):
    X, y = problem
    model = pb.fit_topdown_tree(
        X, y, max_nodes=nodes, impurity=lambda z: (4 * z * (1 - z)) ** power, smoothing=0
    )
    score = pb.decision_function(model, X)
    alike = {}
    for row, value in zip(X, score, strict=True):
        alike.setdefault(tuple(row), value)
        assert alike[tuple(row)] == value
    for value in np.unique(score):
        plus, minus = (np.sum((score == value) & (y == label)) for label in (1, 0))
        if plus and minus:
            assert value == pytest.approx(0.5 * np.log(plus / minus), abs=1e-9)
        else:
            assert (value > 0) == (plus > 0)
