"""Sampling by the stopwatch: against the twin, and the clocks there may be."""

import itertools

import numpy as np
import pytest
from compare import assert_identical
from reference.problems import random_problem
from reference.stopwatch import fit_stopwatch_chain
from soft_models import assert_equals_soft_twin, draw_options, library, noisy, observation

import pboost as pb
from pboost.observation.sampling import rate


def ticking(seed, zeros=False):
    """Return a clock whose ticks are random, some of them of no length."""
    rng, now = np.random.default_rng(seed), itertools.count()
    times = np.cumsum(rng.uniform(0.5, 2, 5000) * (rng.random(5000) < (0.5 if zeros else 1)))
    return lambda: float(times[next(now)])


def fit(problem, clock, *, observation_="flip", rate=0.0, estimator="map", max_draws=30, **options):
    made = pb.observation.sampled(
        "stopwatch",
        estimator,
        clock=clock,
        max_draws=max_draws,
        base=observation(observation_, rate),
    )
    return library(
        lambda X, y, **others: pb.fit_adaboost(X, y, **(others | {"observation": made})),
        problem,
        **options,
    )


@pytest.mark.parametrize("of", ["exact", "flip", "adatree2"])
@pytest.mark.parametrize("estimator", ["map", "ml"])
@pytest.mark.parametrize("zeros", [False, True])
def test_random_problems(of, estimator, zeros):
    for case in range(5):
        rng = np.random.default_rng([97, case])
        options = draw_options(rng) | {"rate": 0.25, "n_estimators": 5}
        problem = noisy(case, n=40) if case % 2 else random_problem(rng)
        twin, _ = fit_stopwatch_chain(
            *problem[:2],
            sample_weight=problem.weight,
            seed=case,
            clock=ticking(case, zeros),
            estimator=estimator,
            observation=of,
            **options,
        )
        model = fit(
            problem,
            ticking(case, zeros),
            observation_=of,
            estimator=estimator,
            rng=case,
            **options,
        )
        assert_equals_soft_twin(model, twin, (case, options))


def test_the_faster_way_is_taken():
    """Where training takes long, classifiers are asked more often."""
    problem = noisy(1, n=80)
    draws = []
    for seconds in (0.01, 1.0, 100.0):
        ticks = itertools.cycle([0.0, 1.0, seconds])
        times = itertools.accumulate(ticks)
        twin, drawn = fit_stopwatch_chain(
            *problem[:2],
            sample_weight=problem.weight,
            seed=0,
            clock=times.__next__,
            n_estimators=6,
            observation="flip",
            rate=0.2,
        )
        times = itertools.accumulate(itertools.cycle([0.0, 1.0, seconds]))
        model = fit(problem, times.__next__, rate=0.2, n_estimators=6, rng=0)
        assert_equals_soft_twin(model, twin, seconds)
        draws.append(np.mean(drawn))
    assert draws[0] < draws[1] < draws[2]


def test_the_clock_is_read_three_times_per_comparison():
    readings = []

    def clock():
        readings.append(len(readings))
        return float(len(readings))

    fit(noisy(2, n=30), clock, rate=0.2, n_estimators=4, rng=0)
    assert len(readings) >= 12
    assert len(readings) % 3 == 0


def test_the_same_clock_gives_the_same_model():
    problem = noisy(3)
    models = [fit(problem, ticking(0), rate=0.2, n_estimators=5, rng=1) for _ in range(2)]
    assert_identical(*models)


def test_a_clock_that_stands_still():
    problem = noisy(4, n=40)
    model = fit(problem, lambda: 0.0, rate=0.2, n_estimators=5, rng=0)
    assert model.n_nodes == 5


def test_the_real_clock():
    made = pb.observation.sampled("stopwatch", base=pb.observation.flip(0.2), max_draws=50)
    X, y, _ = noisy(5, n=40)
    assert pb.fit_adaboost(X, y, n_estimators=3, observation=made, rng=0).n_nodes == 3


def test_draws_are_bounded():
    problem = noisy(6, n=30)
    # Training takes for ever: asking would go on as long as the estimate falls.
    times = itertools.accumulate(itertools.cycle([0.0, 1e-9, 1e9]))
    fit(problem, times.__next__, rate=0.2, n_estimators=2, rng=0, max_draws=3)
    single = fit(problem, iter(()).__next__, rate=0.2, n_estimators=2, rng=0, max_draws=1)
    assert single.n_nodes == 2


def test_rates():
    assert rate(0.5, 1.0, 2.0) == pytest.approx(np.log(0.5) / 2)
    assert rate(0.5, 1.0, 0.0) == -np.inf
    assert rate(1.0, 0.5, 0.0) == np.inf
    assert rate(0.7, 0.7, 0.0) == 0.0
    assert rate(0.0, 0.5, 3.0) == -np.inf
    assert rate(0.5, 0.0, 3.0) == np.inf
    assert rate(0.0, 0.0, 3.0) == 0.0


# Clocks that fail


@pytest.mark.parametrize(
    ("clock", "why"),
    [
        (iter([0.0, 1.0, 2.0, 3.0]).__next__, "StopIteration"),
        (iter([0.0, 1.0, 0.5]).__next__, "before"),
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: "now", "ValueError"),
        (lambda: None, "TypeError"),
        (lambda: float("nan"), "nan"),
        (lambda: float("inf"), "inf"),
    ],
    ids=["exhausted", "backwards", "raises", "text", "None", "nan", "inf"],
)
def test_clocks_that_fail(clock, why):
    with pytest.raises(RuntimeError, match=rf"clock: round \d+.*{why}"):
        fit(noisy(7, n=20), clock, rate=0.2, n_estimators=5, rng=0)


@pytest.mark.parametrize(
    ("build", "size"),
    [(pb.fit_boosted_tree, {"max_nodes": 3}), (pb.fit_matryoshka, {"shape": (2, 2)})],
    ids=["tree", "matryoshka"],
)
def test_only_chains_have_one_next_classifier(build, size):
    X, y, _ = noisy(8, n=20)
    with pytest.raises(ValueError, match=r"stopwatch.*only by fit_adaboost"):
        build(X, y, observation=pb.observation.sampled("stopwatch"), **size)
