"""AdaBoost.MH on trees and chains of trees, against the definition."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from reference import labels as reference

import pboost as pb
from pboost.data.node_inputs.inputs import Subsets
from pboost.growth import multiclass_graph as label_trees
from pboost.weak import multiclass_search as label_search

MOST = np.finfo(float).max


def problem(rng, n, J, *, holes=False, levels=False):
    """Return rows of columns of few values, and labels of which each occurs."""
    d = int(rng.integers(1, 5))
    X = rng.integers(0, rng.choice([2, 4, 12]), size=(n, d)).astype(float)
    X[:, 0] = rng.normal(size=n).round(1)
    score = X @ rng.normal(size=(d, J)) + rng.normal(size=(n, J))
    y = score.argmax(axis=1)
    y[:J] = np.arange(J)
    if holes:
        X[rng.random(X.shape) < 0.15] = np.nan
    columns = ()
    if levels:
        X[:, -1] = rng.permutation(np.arange(n) % 6)
        columns = (d - 1,)
    return X, y, columns


def check(model, nodes, columns, d):
    """Check that a model has the nodes of the reference."""
    assert model.n_nodes == len(nodes)
    edges = [()] * len(nodes)
    for before, next_ in enumerate(model.next.tolist()):
        for side, node in enumerate(next_):
            if node >= 0:
                edges[node] = (*edges[node], (before, side))
    for k, node in enumerate(nodes):
        number, threshold = int(model.feature[k]), float(model.threshold[k])
        if node.levels:
            assert number >= d, k
            assert isinstance(model.inputs, Subsets)
            words = model.inputs.member[number - d].astype("<u8").tobytes()
            actual = {b for b in range(256) if int.from_bytes(words, "little") >> b & 1}
            assert int(model.inputs.column[number - d]) == node.feature
            assert node.levels <= actual, k  # levels that did not arrive are where missing rows are
        elif node.levels is None:
            assert (number, threshold) == (node.feature, node.threshold), k
        if node.missing is not None:
            assert model.missing[k] == node.missing, k
        np.testing.assert_allclose(model.vote[k], node.votes, rtol=1e-9, atol=1e-10)
        assert model.record.certificate[k + 1] == pytest.approx(node.certificate, rel=1e-9)
        assert edges[k] == node.edges
        if model.answer is not None:
            np.testing.assert_allclose(model.answer[k], node.answer, atol=1e-9)
            assert np.diff(model.record.cost)[k] == pytest.approx(node.reach, abs=1e-9)


#: Answers, with numbers.
ANSWERS = (("adatree2", 1.0), ("adatree2", 0.3), ("flip", 0.1), ("uniform",), ("half",))


def observation(kind, *numbers):
    return getattr(pb.observation, kind)(*numbers)


def compare(rng, X, y, columns, answers, kind, smoothing):
    """Compare a random fit with the reference."""
    rate = float(rng.choice([0.5, 1.0]))
    weight = None if rng.random() < 0.5 else rng.integers(1, 4, len(y)).astype(float)
    pull, minimum = float(rng.choice([0.0, 2.0])), int(rng.choice([1, 1, 3]))
    # With so few bins the exact search has cuts to find inside of them.
    search, bins = [("auto", 256), ("exact", int(rng.integers(2, 6)))][int(rng.integers(2))]
    weak = pb.weak.stump(
        categorical_smoothing=pull,
        min_samples_leaf=minimum,
        search=search,
        max_bins=256 if columns else bins,
    )
    common = {"smoothing": smoothing, "learning_rate": rate}
    options = {
        **common,
        "weak_learner": weak,
        "sample_weight": weight,
        "categorical_features": columns or None,
        "observation": observation(*answers),
    }
    theirs = {
        **common,
        "weight": weight,
        "levels": columns,
        "categorical_smoothing": pull,
        "min_samples_leaf": minimum,
        "observation": answers,
    }
    if kind == 0:
        model = pb.fit_adaboost(X, y, n_estimators=6, **options)
        nodes = reference.fit(X, y, n_estimators=6, **theirs)
    elif kind == 1:
        growth = str(rng.choice(["largest_bound", "largest_error", "look_ahead", "breadth_first"]))
        depth = int(rng.integers(1, 5))
        model = pb.fit_boosted_tree(X, y, max_nodes=7, growth=growth, max_depth=depth, **options)
        nodes = reference.fit(X, y, max_nodes=7, growth=growth, max_depth=depth, **theirs)
    else:
        model = pb.fit_matryoshka(X, y, shape=(3, 3), join="all", **options)
        nodes = reference.fit(X, y, n_estimators=3, max_nodes=3, **theirs)
    check(model, nodes, columns, X.shape[1])


@pytest.mark.parametrize("seed", range(300))
def test_equals_the_definition(seed):
    rng = np.random.default_rng(seed)
    n, J = int(rng.integers(4, 40)), int(rng.integers(3, 8))
    n = max(n, J + 1, 6)
    X, y, columns = problem(rng, n, J, holes=rng.random() < 0.4, levels=rng.random() < 0.4)
    kind = rng.integers(3)
    # Between trees, weights are rounded to fixed point: those by the votes of pure exits are lost.
    smoothing = float(rng.choice([0.0 if kind == 1 else 1e-3, 1e-4, 0.1]))
    compare(rng, X, y, columns, ("exact",), kind, smoothing)


@pytest.mark.parametrize("seed", range(150))
def test_uncertain_answers_equal_the_definition(seed):
    rng = np.random.default_rng(seed)
    J = int(rng.integers(3, 6))
    n = int(rng.integers(J + 3, 40))
    X, y, columns = problem(rng, n, J, holes=rng.random() < 0.4, levels=rng.random() < 0.4)
    smoothing = float(rng.choice([1e-3, 1e-4, 0.1]))
    compare(rng, X, y, columns, ANSWERS[seed % 5], rng.integers(3), smoothing)


X, Y = problem(np.random.default_rng(1), 300, 4)[:2]
HOLED = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
FITS = {
    "chain": partial(pb.fit_adaboost, n_estimators=25),
    "tree": partial(pb.fit_boosted_tree, max_nodes=20),
    "trees": partial(pb.fit_matryoshka, shape=(7, 5), join="all"),
    "exact": partial(
        pb.fit_matryoshka,
        shape=(4, 3),
        join="all",
        weak_learner=pb.weak.stump(search="exact", max_bins=8),
    ),
    "affine": partial(
        pb.fit_adaboost, n_estimators=8, weak_learner=pb.weak.affine(n_directions=12)
    ),
}
SOFT = {
    "soft chain": partial(pb.fit_adaboost, n_estimators=12, observation=pb.observation.adatree2()),
    "soft tree": partial(pb.fit_boosted_tree, max_nodes=11, observation=pb.observation.adatree2()),
    "soft trees": partial(
        pb.fit_matryoshka, shape=(4, 4), join="all", observation=pb.observation.adatree2(0.3)
    ),
    "flip": partial(
        pb.fit_matryoshka, shape=(4, 4), join="all", observation=pb.observation.flip(0.1)
    ),
}
each = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
each_soft = pytest.mark.parametrize("fit", SOFT.values(), ids=SOFT)
every = pytest.mark.parametrize("fit", [*FITS.values(), *SOFT.values()], ids=[*FITS, *SOFT])


def digest(model):
    arrays = [model.feature, model.threshold, model.next, model.vote, model.record.certificate]
    if model.answer is not None:
        arrays.append(model.answer)
    return [array.tobytes() for array in arrays]


@each
def test_bounds_hold_at_every_stage(fit):
    for rows in (X, HOLED):
        model = fit(rows, Y)
        sign = 2 * np.eye(4)[Y] - 1
        stages = pb.staged_decision_function(model, rows)
        for score, certificate in zip(stages, model.record.certificate[1:], strict=True):
            assert np.exp(-sign * score).mean() == pytest.approx(certificate, rel=1e-9)
            assert (sign * score <= 0).mean() <= certificate + 1e-12
            assert (score.argmax(axis=1) != Y).mean() <= 2 * certificate + 1e-12
        assert pb.certificate(model, rows, Y) == pytest.approx(pb.certificate(model), rel=1e-9)
        assert pb.certificate(model) < 1


@each_soft
def test_certificates_of_uncertain_answers(fit):
    """They are the expected loss where answers are drawn, so that they bound expected errors."""
    for rows in (X, HOLED):
        model = fit(rows, Y)
        assert model.answer.shape == (model.n_nodes, 2, 4)
        for size in (1, 2, model.n_nodes - 1, model.n_nodes):
            first = pb.models.truncate(model, size)
            bound = pb.certificate(first, rows, Y)
            assert bound == pytest.approx(pb.certificate(first), rel=1e-9)
    assert "error of predict" in str(model.certificate_note)


def test_expected_errors_of_a_tree():
    """Every path of a soft tree, with its probability."""
    model = SOFT["soft tree"](HOLED, Y)
    for size in range(1, model.n_nodes + 1):
        tree = pb.models.truncate(model, size)
        arrives = pb.inspection.reach(tree, HOLED, Y)
        hamming = top = 0.0
        total = np.zeros(len(Y))
        gathered = {0: np.zeros(4)}
        sign = 2 * np.eye(4)[Y] - 1
        for node in range(size):
            x = HOLED[:, tree.feature[node]]
            above = (x > tree.threshold[node]) | (np.isnan(x) & (tree.missing[node] == 1))
            q = tree.answer[node][above.astype(int), Y]
            for exit_, p in enumerate((arrives[:, node] * (1 - q), arrives[:, node] * q)):
                score = gathered[node] + tree.vote[node, exit_]
                to = int(tree.next[node, exit_])
                if to >= 0:
                    gathered[to] = score
                    continue
                hamming += (p[:, None] * (sign * score <= 0)).mean()
                top += (p * (score.argmax() != Y)).mean()
                total += p
        np.testing.assert_allclose(total, 1, atol=1e-12)
        assert hamming <= pb.certificate(tree) + 1e-12
        assert top <= 2 * pb.certificate(tree) + 1e-12


@pytest.mark.parametrize("answers", ANSWERS[:4], ids=str)
def test_of_two_labels_uncertain_answers_are_those_of_one_vote(answers):
    y = (Y > 1).astype(int)
    options = {
        "observation": observation(*answers),
        "smoothing": 0,
    }  # else of another mass in trees
    theirs = {"observation": answers, "smoothing": 0}
    for model, nodes in (
        (
            pb.fit_adaboost(X, y, n_estimators=8, **options),
            reference.fit(X, y, n_estimators=8, **theirs),
        ),
        (
            pb.fit_boosted_tree(X, y, max_nodes=8, **options),
            reference.fit(X, y, max_nodes=8, **theirs),
        ),
        (
            pb.fit_matryoshka(X, y, shape=(3, 3), join="all", learning_rate=1.0, **options),
            reference.fit(X, y, n_estimators=3, max_nodes=3, **theirs),
        ),
    ):
        votes = np.array([node.votes for node in nodes])
        np.testing.assert_allclose(votes[..., 1], model.vote, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(votes[..., 0], -model.vote, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose([n.answer for n in nodes], model.answer, atol=1e-9)
        np.testing.assert_allclose([n.certificate for n in nodes], model.record.certificate[1:])


@every
def test_same_for_any_threads_and_order_of_rows(fit):
    rng = np.random.default_rng(5)
    many, labels = np.tile(HOLED, (40, 1)), np.tile(Y, 40)
    many[:, 0] += rng.normal(size=len(many))
    first = digest(fit(many, labels, n_threads=1))
    for n_threads in (2, 4):
        assert digest(fit(many, labels, n_threads=n_threads)) == first
    order = rng.permutation(len(many))
    assert digest(fit(many[order], labels[order])) == first


@every
def test_weights_are_copies_and_zero_weights_absent_rows(fit):
    weight = np.random.default_rng(3).integers(0, 4, len(Y))
    weight[:4] = 1
    copies = np.repeat(np.arange(len(Y)), weight)
    model = fit(X, Y, sample_weight=weight)
    expected = fit(X[copies], Y[copies])
    if model.inputs is None:
        assert digest(model)[:3] == digest(expected)[:3]
        np.testing.assert_allclose(model.vote, expected.vote, rtol=1e-9, atol=1e-12)
    scaled = fit(X, Y, sample_weight=weight * 8.0)
    assert digest(scaled) == digest(model)


@every
def test_names_and_order_of_labels_do_not_matter(fit):
    model = fit(X, Y)
    order = np.array([2, 0, 3, 1])
    other = fit(X, np.array(list("abcd"))[order[Y]])
    assert other.classes.tolist() == list("abcd")
    assert digest(other)[:3] == digest(model)[:3]
    np.testing.assert_allclose(other.vote[..., order], model.vote, rtol=1e-9, atol=1e-12)


@every
def test_soft_labels_are_entries(fit):
    share = np.eye(4)[Y] * 0.75
    share[np.arange(len(Y)), (Y + 1) % 4] = 0.25
    model = fit(X, y_proba=share)
    both = fit(
        np.repeat(X, 2, axis=0),
        np.column_stack([Y, (Y + 1) % 4]).ravel(),
        sample_weight=np.tile([3.0, 1.0], len(Y)),
    )
    assert pb.certificate(model) == pytest.approx(pb.certificate(both), rel=1e-9)
    assert pb.certificate(model, X, y_proba=share) == pytest.approx(pb.certificate(model), rel=1e-9)


def test_exits_of_a_split_are_balanced():
    """At rate 1 without smoothing the rows of each label weigh what the others do."""
    model = pb.fit_adaboost(X, Y, n_estimators=1, smoothing=0)
    score = pb.decision_function(model, X)
    weight = np.exp(-(2 * np.eye(4)[Y] - 1) * score)
    for exit_ in (0, 1):
        here = np.isclose(score, model.vote[0, exit_]).all(axis=1)
        for k in range(4):
            own, other = weight[here & (k == Y), k].sum(), weight[here & (k != Y), k].sum()
            assert own == pytest.approx(other, rel=1e-9) or min(own, other) < 1e-4


def test_of_two_labels_it_is_adaboost():
    """By the definition; builders have two labels in one vote."""
    y = (Y > 1).astype(int)
    nodes = reference.fit(X, y, n_estimators=8)
    model = pb.fit_adaboost(X, y, n_estimators=8)
    votes = np.array([node.votes for node in nodes])
    np.testing.assert_allclose(votes[..., 1], model.vote, rtol=1e-8)
    np.testing.assert_allclose(votes[..., 0], -model.vote, rtol=1e-8)
    np.testing.assert_allclose([n.certificate for n in nodes], model.record.certificate[1:])


@every
def test_files_and_prefixes(fit, tmp_path):
    model = fit(HOLED, Y)
    pb.save(model, tmp_path / "model.npz")
    loaded = pb.load(tmp_path / "model.npz")
    assert digest(loaded) == digest(model)
    assert dict(loaded.settings) == dict(model.settings)
    score = pb.decision_function(model, HOLED)
    assert pb.decision_function(loaded, HOLED).tobytes() == score.tobytes()
    first = pb.models.truncate(model, 4)
    assert pb.certificate(first, HOLED, Y) == pytest.approx(pb.certificate(first), rel=1e-9)


@every
def test_validation_and_callbacks(fit):
    rows, held = np.arange(200), np.arange(200, 300)
    seen = []
    model = fit(
        HOLED[rows],
        Y[rows],
        validation=(HOLED[held], Y[held]),
        n_iter_no_change=5,
        callback=lambda step, record: seen.append((step, record)),
    )
    errors = model.record.validation
    assert errors[model.n_nodes] == errors.min()
    wrong = (pb.predict(model, HOLED[held]) != Y[held]).mean()
    assert wrong == pytest.approx(errors[model.n_nodes], abs=1e-12)
    assert [step for step, _ in seen] == list(range(1, len(seen) + 1))
    assert np.shape(seen[0][1].votes) == (2, 4)
    drawn = fit(X, Y, validation=0.3, rng=0)
    assert len(drawn.record.validation) > 1
    stopped = fit(X, Y, callback=lambda step, record: step == 3)
    assert (stopped.n_nodes, stopped.record.stop_reason) == (3, "stopped by the callback")


def test_exact_search_does_not_depend_on_bins():
    rows = X + np.random.default_rng(4).normal(size=X.shape) * 1e-3
    for make in (pb.weak.stump, partial(pb.weak.affine, n_directions=12)):
        fits = [
            digest(
                pb.fit_adaboost(
                    rows, Y, n_estimators=6, weak_learner=make(search="exact", max_bins=bins)
                )
            )
            for bins in (2, 9, 256)
        ]
        assert fits[0] == fits[1] == fits[2]
    weak = pb.weak.stump(search="exact")
    sorted_once = digest(
        pb.fit_adaboost(pb.data.sort_columns(rows), Y, n_estimators=6, weak_learner=weak)
    )
    assert sorted_once == digest(pb.fit_adaboost(rows, Y, n_estimators=6, weak_learner=weak))
    binned = pb.fit_adaboost(
        rows, Y, n_estimators=6, weak_learner=pb.weak.stump(search="binned", max_bins=2)
    )
    full_model = pb.fit_adaboost(
        pb.data.sort_columns(rows), Y, n_estimators=6, weak_learner=pb.weak.stump(search="exact")
    )
    assert pb.certificate(full_model) < pb.certificate(binned)
    half = pb.continue_fit(
        pb.fit_adaboost(rows, Y, n_estimators=2, weak_learner=weak), rows, Y, n_estimators=4
    )
    assert digest(half) == sorted_once


def test_fitting_goes_on():
    full_model = pb.fit_adaboost(HOLED, Y, n_estimators=12)
    half = pb.continue_fit(pb.fit_adaboost(HOLED, Y, n_estimators=5), HOLED, Y, n_estimators=7)
    assert digest(half) == digest(full_model)
    full_model = pb.fit_boosted_tree(HOLED, Y, max_nodes=12)
    half = pb.continue_fit(pb.fit_boosted_tree(HOLED, Y, max_nodes=5), HOLED, Y, max_nodes=7)
    assert digest(half) == digest(full_model)
    soft = {"observation": pb.observation.adatree2(0.5)}
    full_model = pb.fit_boosted_tree(HOLED, Y, max_nodes=9, **soft)
    half = pb.continue_fit(
        pb.fit_boosted_tree(HOLED, Y, max_nodes=4, **soft), HOLED, Y, max_nodes=5
    )
    assert digest(half) == digest(full_model)
    full_model = pb.fit_adaboost(HOLED, Y, n_estimators=5, **soft)
    half = pb.continue_fit(
        pb.fit_adaboost(HOLED, Y, n_estimators=2, **soft), HOLED, Y, n_estimators=3
    )
    assert digest(half) == digest(full_model)
    for first, second in ((soft, pb.observation.exact()), ({}, soft["observation"])):
        more = pb.continue_fit(
            pb.fit_boosted_tree(HOLED, Y, max_nodes=4, **first),
            HOLED,
            Y,
            max_nodes=4,
            observation=second,
        )
        assert pb.certificate(more, HOLED, Y) == pytest.approx(pb.certificate(more), rel=1e-9)
    trees = pb.fit_matryoshka(HOLED, Y, shape=(4, 3), join="all", learning_rate=1.0)
    more = pb.continue_fit(trees, HOLED, Y, n_estimators=3)
    assert more.n_nodes == 15
    assert pb.certificate(more, HOLED, Y) == pytest.approx(pb.certificate(more), rel=1e-9)
    leads = trees.next.copy()
    leads[:4][leads[:4] == 4] = -1
    leads[3] = 4
    with pytest.raises(NotImplementedError, match=r"(node 4)"):
        pb.continue_fit(replace(trees, next=leads), HOLED, Y, n_estimators=1)
    with pytest.raises(ValueError, match="expected class labels of the model"):
        pb.continue_fit(trees, HOLED, Y + 1, n_estimators=1)
    with pytest.raises(
        ValueError, match="observation: expected observations that are not gaussian"
    ):
        pb.continue_fit(trees, HOLED, Y, n_estimators=1, observation=pb.observation.gaussian(0.1))


@pytest.mark.full
def test_trees_of_chains_are_larger():
    many, two = (pb.fit_matryoshka(X, y, join="all") for y in (Y, Y > 1))
    assert (list(many.settings["shape"]), list(two.settings["shape"])) == ([31, 30], [8, 30])


def test_levels_of_data_frames():
    frame = pd.DataFrame({"a": X[:, 0], "kind": np.array(list("uvwxyz"))[np.arange(300) % 6]})
    y = np.array(["p", "q", "r"])[(np.arange(300) % 6) // 2]
    model = pb.fit_boosted_tree(frame, y, max_nodes=2)
    assert (pb.predict(model, frame) == y).all()
    assert isinstance(model.inputs, Subsets)
    assert "kind" in pb.describe(model)


def test_nothing_to_split():
    model = pb.fit_adaboost(np.zeros((6, 2)), [0, 0, 0, 1, 1, 2])
    assert model.n_nodes == 0
    assert model.bias.shape == (3,)
    share = pb.predict_proba(model, np.zeros((1, 2)))[0]
    np.testing.assert_allclose(share, [1 / 2, 1 / 3, 1 / 6], rtol=1e-3)
    assert pb.certificate(model, np.zeros((6, 2)), [0, 0, 0, 1, 1, 2]) == pytest.approx(
        pb.certificate(model)
    )


def test_chains_go_on_without_errors():
    """Smoothed votes of pure exits differ, and so do the next weights."""
    fit = partial(pb.fit_matryoshka, np.array([0.0, 0, 0, 1, 2, 2])[:, None], [0, 0, 0, 1, 2, 2])
    model = fit(shape=(2, 4), join="all")
    assert (model.n_nodes, model.record.stop_reason) == (8, "all rounds are done")
    model = fit(shape=(2, 400), join="all")
    assert model.n_nodes < 400
    assert model.record.certificate[-3] > 1e-9 > pb.certificate(model)
    assert "certificate is 0" in model.record.stop_reason
    model = fit(shape=(2, 4), join="all", smoothing=0)
    assert model.n_nodes == 2
    assert "certificate is 0" in model.record.stop_reason


@pytest.mark.parametrize(
    ("fit", "said"),
    [
        (partial(pb.fit_adaboost, votes="symmetric"), "votes='symmetric'"),
        (
            partial(pb.fit_adaboost, weak_learner=pb.weak.stump(criterion="gini")),
            "criterion='gini'",
        ),
        (partial(pb.fit_adaboost, weak_learner=pb.weak.separator()), "weak_learner=Separator"),
        (
            partial(pb.fit_adaboost, observation=pb.observation.gaussian(0.1)),
            "observation=Gaussian",
        ),
        (partial(pb.fit_adaboost, observation=pb.observation.sampled()), "observation=Sampled"),
        (pb.fit_matryoshka, "join='sign'"),
        (partial(pb.fit_matryoshka, shape=(2, 2, 2), join="all"), "3 levels"),
        (partial(pb.fit_matryoshka, growth="greedy"), "join='sign'"),
    ],
)
def test_what_takes_two_labels_says_so(fit, said):
    with pytest.raises(pb.models.MulticlassError, match=f"expected two classes with .*{said}"):
        fit(X, Y)


def test_a_label_without_weight():
    with pytest.raises(ValueError, match="every class"):
        pb.fit_adaboost(X, Y, sample_weight=(Y > 0).astype(float))
    assert pb.fit_one_vs_rest(pb.fit_adaboost, X, Y).classes.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("module", "said"), [(label_trees, 19200), (label_search, 32768)])
def test_what_memory_does_not_hold_is_said_in_bytes(monkeypatch, module, said):
    def full(*args):
        raise MemoryError

    rows = np.arange(600.0).reshape(300, 2) % 256
    monkeypatch.setattr(module, "aligned", full)
    with pytest.raises(MemoryError, match=f"{said} bytes.*fit_one_vs_rest"):
        pb.fit_adaboost(rows, Y, n_estimators=1)


def test_cross_validation():
    table = pb.cross_validate(partial(pb.fit_adaboost, n_estimators=5), X, Y, cv=3, rng=0)
    assert table.error.mean() < 0.5
    assert np.isfinite(table.log_loss).all()
