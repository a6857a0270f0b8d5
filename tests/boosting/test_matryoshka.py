"""Nested matryoshki: against the twin, and what theory says of them."""

import math

import numpy as np
import pytest
from compare import assert_same_model
from reference import matryoshka as twins
from reference.problems import Problem, random_problem
from reference.soft import NO_VOTE
from soft_models import (
    NEEDS_CLASS,
    OBSERVATIONS,
    arrays,
    assert_certified,
    assert_equals_soft_twin,
    assert_evaluated,
    draw_options,
    expected_error,
    library,
    nested_bound,
    noisy,
    shrinks,
    start,
    tree_bound,
)

import pboost as pb

SHAPES = ((5,), (2, 2), (3, 2), (1, 4), (4, 1), (2, 2, 2), (3, 1, 2), (2, 3, 2), (2, 2, 1, 2))
COLLECTS = ("additive", "sign")
JOINS = ("sign", "all")
SURE = {"rate": 0.1, "smoothing": 0.0}


def fit(problem, **options):
    return library(pb.fit_matryoshka, problem, **options)


def check(problem, options, case=""):
    X, y, weight = problem
    twin_options = {name: value for name, value in options.items() if name != "join"}
    twin = twins.fit_matryoshka(
        X, y, sample_weight=weight, join_=options.get("join", "sign"), **twin_options
    )
    model = fit(problem, **options)
    assert_equals_soft_twin(model, twin, (case, options))
    return model, twin


# Against the twin


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("collect", COLLECTS)
@pytest.mark.parametrize("observation", ["exact", *OBSERVATIONS])
def test_random_problems(observation, collect, join):
    for case in range(14):
        rng = np.random.default_rng([71, case])
        options = draw_options(rng) | {"observation": observation}
        options |= {"collect": collect, "join": join}
        options["shape"] = SHAPES[rng.integers(len(SHAPES))]
        check(random_problem(rng), options, case)


@pytest.mark.parametrize("collect", COLLECTS)
@pytest.mark.parametrize("observation", ["exact", *OBSERVATIONS])
@pytest.mark.parametrize("shape", [(4, 4), (2, 2, 2, 2)])
def test_continuous_data(observation, collect, shape):
    options = {"observation": observation, "rate": 0.1, "collect": collect, "shape": shape}
    model, _ = check(noisy(72, n=300), options)
    assert model.n_nodes == 16


@pytest.mark.parametrize("collect", COLLECTS)
@pytest.mark.parametrize("n", [2, 3])
def test_few_rows(collect, n):
    problem = Problem(np.arange(float(n))[:, None], np.array([1, -1, 1])[:n], None)
    for observation in ("exact", *OBSERVATIONS):
        for smoothing in (0.0, 1e-4):
            options = {"observation": observation, "rate": 0.2, "smoothing": smoothing}
            check(problem, options | {"collect": collect, "shape": (2, 2)}, (n, observation))


def test_nothing_to_split():
    problem = Problem(np.ones((5, 2)), np.array([1, 1, 1, 1, -1]), None)
    for options in ({}, {"collect": "sign"}, {"join": "all", "learning_rate": 1.0}):
        model, _ = check(problem, options | {"shape": (2, 2), "smoothing": 0.0})
        assert model.n_nodes == 0
        assert model.bias == pytest.approx(0.5 * np.log(4))


# Topology


def inner_exits(model, first, size):
    """Return (node, exit, votes) of every way out of a sub-tree of `size` nodes."""
    votes, actual = {first: 0.0}, []
    for node in range(first, first + size):
        for exit_ in (0, 1):
            after = votes[node] + model.vote[node, exit_]
            target = model.next[node, exit_]
            if first <= target < first + size:
                assert target not in votes, "exits join inside a sub-tree"
                votes[target] = after
            else:
                actual.append((node, exit_, after))
    return actual


@pytest.mark.parametrize("observation", ["exact", "flip", "adatree2"])
def test_sub_trees_leave_by_the_sign_of_their_votes(observation):
    model = fit(noisy(73, n=400), observation=observation, rate=0.1, shape=(4, 5))
    assert model.n_nodes == 20
    entries = set()
    for first in range(0, 20, 4):
        leads = {}
        for node, exit_, votes in inner_exits(model, first, 4):
            leads.setdefault(votes > NO_VOTE, set()).add(int(model.next[node, exit_]))
        assert set(map(len, leads.values())) == {1}  # all of a group lead to one place
        targets = [t for (t,) in leads.values() if t >= 0]
        assert all(t % 4 == 0 and t not in entries for t in targets)
        entries |= set(targets)
        assert len(targets) == len(set(targets))
    assert entries == {4, 8, 12, 16}


@pytest.mark.parametrize("observation", ["flip", "adatree2"])
def test_the_largest_bound_is_next(observation):
    """Of the groups that are open when a sub-tree starts, it starts at the heaviest."""
    problem = noisy(74)
    model = fit(problem, observation=observation, rate=0.1, shape=(3, 5))
    X, y, _ = problem
    boost = lambda vote: np.exp(-vote * y)  # noqa: E731
    arriving, _ = twins.propagate(arrays(model), X, y, boost)
    weight = start(problem)[:, None] * arriving
    groups = {}
    for first in range(0, 15, 3):
        for node, exit_, votes in inner_exits(model, first, 3):
            q = twins.answers(arrays(model), X, y, node)[exit_]
            mass = math.fsum(weight[:, node] * q * boost(model.vote[node, exit_]))
            key = (first, bool(votes > NO_VOTE))
            _, so_far = groups.get(key, (0, 0.0))
            groups[key] = (int(model.next[node, exit_]), so_far + mass)
    for entry in range(3, 15, 3):
        (chosen,) = [mass for target, mass in groups.values() if target == entry]
        waiting = [
            mass
            for (first, _), (target, mass) in groups.items()
            if first < entry and not 0 <= target < entry
        ]
        assert chosen == pytest.approx(max(waiting), rel=1e-9)
        assert len(waiting) > 1


def test_sign_leaves_no_votes_inside():
    model = fit(noisy(75), observation="adatree2", collect="sign", shape=(4, 4))
    for first in range(0, 16, 4):
        after = {False: set(), True: set()}
        for node in range(first, first + 4):
            for exit_ in (0, 1):
                inside = first <= model.next[node, exit_] < first + 4
                assert (model.vote[node, exit_] == 0) == inside
                if not inside:
                    after[bool(model.vote[node, exit_] > 0)].add(model.vote[node, exit_])
        assert max(map(len, after.values())) <= 2
        assert sum(map(len, after.values())) <= 2


def test_all_exits_join():
    options = {"observation": "flip", "rate": 0.1, "shape": (3, 4), "join": "all"}
    for collect in COLLECTS:
        model = fit(noisy(76), collect=collect, **options)
        for first in range(0, 12, 3):
            targets = {model.next[n, e] for n, e, _ in inner_exits(model, first, 3)}
            assert targets == {first + 3 if first < 9 else -1}


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_one_level_is_a_tree_or_a_chain(observation):
    problem = noisy(77)
    options = {"observation": observation, "rate": 0.1}
    tree = library(pb.fit_boosted_tree, problem, max_nodes=7, **options)
    assert_same_model(fit(problem, shape=(7,), **options), tree)
    if observation in ("flip", "adatree2"):
        chain = library(pb.fit_adaboost, problem, n_estimators=7, **options)
        dolls = fit(problem, shape=(7,), join="all", learning_rate=1.0, **options)
        assert_same_model(dolls, chain)


# What theory says


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("collect", COLLECTS)
@pytest.mark.parametrize("observation", ["exact", *OBSERVATIONS])
def test_certificate_and_reach(observation, collect, join):
    for case in range(4):
        rng = np.random.default_rng([78, case])
        options = draw_options(rng) | {"observation": observation, "collect": collect}
        problem = random_problem(rng)
        model = fit(problem, shape=[(2, 2), (3, 2), (2, 2, 2), (4, 4)][case], join=join, **options)
        assert_certified(model, problem, case)
        assert_evaluated(model, problem, observation in NEEDS_CLASS)


@pytest.mark.parametrize("collect", COLLECTS)
@pytest.mark.parametrize("observation", ["exact", *OBSERVATIONS])
def test_expected_error_is_below_the_certificate(observation, collect):
    problem = noisy(79)
    for join in JOINS:
        for shape in ((2, 2), (3, 2), (2, 2, 2)):
            options = {"observation": observation, "rate": 0.1, "collect": collect}
            model = fit(problem, shape=shape, join=join, **options)
            assert 0 < expected_error(model, problem) <= model.record.certificate[-1]


@pytest.mark.parametrize("observation", ["exact", *OBSERVATIONS])
@pytest.mark.parametrize("learning_rate", [1.0, 0.5])
def test_additive_collecting_leaves_the_certificate(observation, learning_rate):
    """What the first nodes certify is certified whatever their exits join in later."""
    problem = noisy(80)
    X, y, weight = problem
    options = {"observation": observation, "rate": 0.1, "learning_rate": learning_rate}
    model = fit(problem, shape=(3, 2, 2), **options)
    for n_nodes in range(1, model.n_nodes + 1):
        bound = twins.certificate(arrays(model, n_nodes), X, y, weight)
        assert bound == pytest.approx(model.record.certificate[n_nodes], rel=1e-9)
    tree = fit(problem, shape=(6,), **options)
    collected = fit(problem, shape=(6, 1), **options)
    assert_same_model(tree, collected)
    np.testing.assert_allclose(model.record.certificate[:4], tree.record.certificate[:4])


@pytest.mark.parametrize("observation", ["flip", "adatree2", "uniform"])
@pytest.mark.parametrize("shape", [(4, 4), (8, 2), (2, 8), (2, 2, 2, 2), (3, 2, 3)])
def test_the_nested_bound(observation, shape):
    for seed in range(3):
        problem = noisy([81, seed])
        model = fit(problem, observation=observation, shape=shape, **SURE)
        assert model.n_nodes == math.prod(shape)  # the condition: all could be split
        rho = shrinks(model, problem).max()
        assert rho < 1
        assert model.record.certificate[-1] <= nested_bound(shape, rho) * (1 + 1e-12)
        assert tree_bound(math.prod(shape), rho) >= nested_bound(shape, rho)


@pytest.mark.parametrize("collect", COLLECTS)
@pytest.mark.parametrize("observation", ["flip", "adatree2", "uniform"])
def test_the_bound_of_chained_trees(observation, collect):
    for seed, (inner, outer) in enumerate([(4, 4), (2, 6), (6, 2)]):
        problem = noisy([82, seed])
        options = {"observation": observation, "collect": collect, "join": "all"} | SURE
        model = fit(problem, shape=(inner, outer), **options)
        assert model.n_nodes == inner * outer
        rho = shrinks(model, problem).max()
        certificate = model.record.certificate
        assert rho < 1
        assert certificate[-1] <= tree_bound(inner, rho) ** outer * (1 + 1e-12)
        # It is the product of the sub-trees' own certificates.
        ends = certificate[inner::inner]
        starts = certificate[:-1:inner]
        assert (ends / starts <= tree_bound(inner, rho) * (1 + 1e-12)).all()


@pytest.mark.parametrize("observation", ["exact", "flip", "adatree2", "uniform"])
def test_what_a_sign_keeps_of_a_tree(observation):
    """C <= C' <= sqrt(F (2 - F)): the geometric mean is super-additive, and error <= C / 2."""
    for seed in range(4):
        problem = noisy([83, seed])
        options = {"observation": observation} | SURE
        tree = fit(problem, shape=(6,), **options).record.certificate[-1]
        sign = fit(problem, shape=(6, 1), collect="sign", **options).record.certificate[-1]
        assert tree * (1 - 1e-6) < sign <= math.sqrt(tree * (2 - tree))
