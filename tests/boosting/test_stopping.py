"""Early stopping: the model returned is the best of all stages that growth went through."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
from model_files import assert_same
from soft_models import noisy, observation

import pboost as pb

SIZE = 60
BUILDERS = {
    "chain": partial(pb.fit_adaboost, n_estimators=SIZE),
    "tree": partial(pb.fit_boosted_tree, max_nodes=SIZE),
    "soft chain": partial(pb.fit_adaboost, n_estimators=SIZE, observation=observation("adatree2")),
    "soft tree": partial(pb.fit_boosted_tree, max_nodes=SIZE, observation=observation("flip", 0.1)),
    "matryoshka": partial(pb.fit_matryoshka, shape=(4, 4, 4)),
    "chain of trees": partial(pb.fit_matryoshka, shape=(5, 8), join="all"),
}
each_builder = pytest.mark.parametrize("fit", BUILDERS.values(), ids=BUILDERS)


def stages(model, X, y, weight):
    """Return the error of every stage, from the stages themselves; the first has no node."""
    scores = [np.zeros(len(X)), *pb.staged_decision_function(model, X)]
    return np.array([np.average((score > 0) != (y > 0), weights=weight) for score in scores])


def chosen(errors, patience):
    """Return how many nodes are grown and how many are kept, by the rule, from all errors."""
    best = 1
    for grown in range(1, len(errors)):
        if errors[grown] < errors[best] - 1e-12:
            best = grown
        if grown - best >= patience:
            break
    return grown, best


def assert_begins_as(model, full):
    n = model.n_nodes
    for name in ("feature", "threshold", "vote"):
        assert (getattr(model, name) == getattr(full, name)[:n]).all()
    assert (model.next == np.where(full.next[:n] < n, full.next[:n], -1)).all()
    assert (model.answer is None) == (full.answer is None)
    assert model.answer is None or (model.answer == full.answer[:n]).all()
    assert (model.record.certificate[:n] == full.record.certificate[:n]).all()
    np.testing.assert_allclose(model.record.certificate[n], full.record.certificate[n], rtol=1e-9)
    assert (model.record.cost == full.record.cost[: n + 1]).all()


@each_builder
@pytest.mark.parametrize("patience", [1, 7, 1000])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_the_best_of_all_stages(fit, patience, weighted):
    train, test = noisy(1, n=90), noisy(2, n=70)
    weight = test.weight if weighted else None
    full = fit(train.X, train.y)
    errors = stages(full, test.X, test.y, weight)
    grown, best = chosen(errors, patience)
    validation = (test.X, test.y) if weight is None else (test.X, test.y, weight)
    model = fit(train.X, train.y, validation=validation, n_iter_no_change=patience)
    assert model.n_nodes == best
    assert_begins_as(model, full)
    np.testing.assert_allclose(model.record.validation, errors[: grown + 1], rtol=0, atol=1e-12)
    gave_up = "did not fall" in model.record.stop_reason
    assert gave_up == (grown - best >= patience)
    assert (f"the first {best} of {grown} nodes" in model.record.stop_reason) == (best < grown)


def test_patience_is_fifty_unless_given():
    train, test = noisy(1, n=90), noisy(2, n=70)
    fit = partial(pb.fit_adaboost, train.X, train.y, n_estimators=300, validation=(test.X, test.y))
    assert (fit().record.validation == fit(n_iter_no_change=50).record.validation).all()
    assert len(fit().record.validation) < 300


@each_builder
def test_a_share_of_the_rows_is_held_out(fit):
    X, y, weight = noisy(3, n=120)
    model = fit(X, y, sample_weight=weight, validation=0.25, n_iter_no_change=5, rng=7)
    again = fit(X, y, sample_weight=weight, validation=0.25, n_iter_no_change=5, rng=7)
    other = fit(X, y, sample_weight=weight, validation=0.25, n_iter_no_change=5, rng=8)
    assert_same(model, again)
    assert not np.array_equal(model.record.validation, other.record.validation)
    assert model.settings["validation"] == 0.25
    assert model.settings["n_iter_no_change"] == 5


@pytest.mark.parametrize("kind", [np.asarray, pb.data.sort_columns, "frame", np.float32])
def test_held_out_rows_are_those_of_a_split(kind):
    """With the rows that were drawn, found from the generator, the model is the same."""
    X, y, _ = noisy(3, n=120)
    rng = np.random.default_rng(5)
    drawn = []
    for label in (-1, 1):
        rows = np.flatnonzero(y == label)
        drawn.append(rng.permutation(rows)[: round(0.25 * len(rows))])
    held = np.zeros(len(y), bool)
    held[np.concatenate(drawn)] = True
    if kind == "frame":
        kind = pytest.importorskip("pandas").DataFrame
    X = X.astype(np.float32) if kind is np.float32 else X
    given = X if kind is np.float32 else kind(X)
    options = {"max_nodes": 40, "n_iter_no_change": 10}
    model = pb.fit_boosted_tree(given, y, validation=0.25, rng=5, **options)
    split = pb.fit_boosted_tree(X[~held], y[~held], validation=(X[held], y[held]), **options)
    assert (model.threshold == split.threshold).all()
    assert (model.vote == split.vote).all()
    assert (model.record.validation == split.record.validation).all()


def test_the_callback_is_called_and_may_stop():
    train, test = noisy(1, n=90), noisy(2, n=70)
    seen = []
    model = pb.fit_boosted_tree(
        train.X,
        train.y,
        max_nodes=40,
        validation=(test.X, test.y),
        callback=lambda step, record: seen.append((step, record)) or step == 6,
    )
    assert [step for step, _ in seen] == [1, 2, 3, 4, 5, 6]
    assert model.record.stop_reason.startswith("stopped by the callback")
    assert len(model.record.validation) == 7


@each_builder
def test_records_name_the_parents(fit):
    X, y, _ = noisy(1, n=90)
    parents = []
    model = fit(X, y, callback=lambda step, record: parents.append(record.parents))
    actual = [[] for _ in range(model.n_nodes)]
    for node, exit_ in np.argwhere(model.next >= 0).tolist():
        actual[model.next[node, exit_]].append((node, exit_))
    assert list(map(sorted, parents)) == actual


def test_nothing_to_split():
    X, y = np.zeros((4, 1)), [0, 1, 1, 1]
    model = pb.fit_adaboost(X, y, n_estimators=5, validation=(X, y))
    assert model.n_nodes == 0
    assert model.record.validation.tolist() == [0.25]


def test_columns_of_a_frame_are_matched():
    pandas = pytest.importorskip("pandas")
    train, test = noisy(1, n=90), noisy(2, n=70)
    frames = [pandas.DataFrame(p.X, columns=["a", "b", "c"]) for p in (train, test)]
    plain = pb.fit_adaboost(train.X, train.y, n_estimators=40, validation=(test.X, test.y))
    model = pb.fit_adaboost(
        frames[0], train.y, n_estimators=40, validation=(frames[1][["c", "a", "b"]], test.y)
    )
    assert (model.record.validation == plain.record.validation).all()
    with pytest.raises(
        ValueError, match="validation: X: expected the features of the training data"
    ):
        pb.fit_adaboost(
            frames[0],
            train.y,
            n_estimators=4,
            validation=(frames[1].rename(columns={"a": "z"}), test.y),
        )


def test_record_survives_files_and_pickles(tmp_path):
    train, test = noisy(1, n=90), noisy(2, n=70)
    model = pb.fit_adaboost(
        train.X, train.y, n_estimators=60, validation=(test.X, test.y), n_iter_no_change=5
    )
    pb.save(model, tmp_path / "model.npz")
    for copy in (pb.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert_same(copy, model)
        assert (copy.record.validation == model.record.validation).all()
    plain = pb.fit_adaboost(train.X, train.y, n_estimators=60)
    pb.save(plain, tmp_path / "model.npz")
    assert pb.load(tmp_path / "model.npz").record.validation is None


def test_cross_validation():
    X, y, weight = noisy(4, n=150)
    fit = partial(pb.fit_boosted_tree, max_nodes=60, validation=0.2, n_iter_no_change=5, rng=0)
    result = pb.cross_validate(fit, X, y, cv=3, rng=0, sample_weight=weight)
    assert (result.n_nodes < 60).all()
    assert pb.cross_validate(fit, pb.data.sort_columns(X), y, cv=3, rng=0).error.shape == (3,)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"n_iter_no_change": 5},
            ValueError,
            "n_iter_no_change: expected None without validation, got 5",
        ),
        (
            {"validation": 0.2, "n_iter_no_change": 0},
            ValueError,
            "n_iter_no_change: expected an integer from 1",
        ),
        ({"validation": 0.2, "n_iter_no_change": 2.5}, TypeError, "n_iter_no_change"),
        ({"validation": 0.0}, ValueError, "validation: expected a number in"),
        ({"validation": 0.6}, ValueError, "validation: expected a number in"),
        ({"validation": "rows"}, TypeError, "validation: expected a number"),
        ({"validation": (1,)}, ValueError, "got 1 items"),
        ({"validation": ([[0.0, 1.0]], [1])}, ValueError, "validation: X: expected 3 columns"),
        ({"validation": ([[0.0, 1.0, np.inf]], [1])}, ValueError, "validation: X: .* finite"),
        ({"validation": (np.ones((0, 3)), [])}, ValueError, "validation: X: .* at least one row"),
        (
            {"validation": (np.ones((2, 3)), [1, 2])},
            ValueError,
            "validation: y: expected class labels",
        ),
        ({"validation": (np.ones((2, 3)), [1])}, ValueError, "validation: y: expected 2 labels"),
        (
            {"validation": (np.ones((2, 3)), [1, 1], [0, 0])},
            ValueError,
            "validation: sample_weight",
        ),
    ],
)
def test_bad_input(options, error, message):
    X, y, _ = noisy(1)
    for fit in (
        partial(pb.fit_adaboost, n_estimators=3),
        partial(pb.fit_boosted_tree, max_nodes=3),
    ):
        with pytest.raises(error, match=message):
            fit(X, y, **options)


def test_rows_that_stop_may_have_missing_values():
    X, y, _ = noisy(1)
    for fit in (
        partial(pb.fit_adaboost, n_estimators=3),
        partial(pb.fit_boosted_tree, max_nodes=3),
    ):
        model = fit(X, y, validation=([[0.0, 1.0, np.nan]], [1]))
        assert np.isin(model.record.validation, [0, 1]).all()


@pytest.mark.parametrize("patience", [1, 6, 1000])
@pytest.mark.parametrize(
    "sizes", [{"shape": (3, 8)}, {"shape": (2, 2, 6)}, {"growth": "greedy", "max_nodes": 24}]
)
def test_stages_of_models_collected_by_sign(sizes, patience):
    """The best stage, judged when the whole has been grown."""
    train, test = noisy(3, n=90), noisy(4, n=70)
    options = {"collect": "sign", "observation": observation("adatree2"), **sizes}
    full = pb.fit_matryoshka(train.X, train.y, **options)
    model = pb.fit_matryoshka(
        train.X, train.y, **options, validation=(test.X, test.y), n_iter_no_change=patience
    )
    sizes_there = [*full.record.stages] if full.record.stages is not None else [*range(1, 25)]
    errors = stages(full, test.X, test.y, None)[1:]
    best, grown = 0, 0
    for grown in range(len(errors)):
        if errors[grown] < errors[best] - 1e-12:
            best = grown
        if sizes_there[grown] - sizes_there[best] >= patience:
            break
    assert model.n_nodes == sizes_there[best]
    assert_begins_as(model, full)
    assert len(model.record.validation) == sizes_there[grown] + 1
    at = [*model.record.validation[sizes_there[: grown + 1]]]
    np.testing.assert_allclose(at, errors[: grown + 1], atol=1e-12)
    expected = list(pb.staged_decision_function(full, test.X))[best]
    assert (pb.decision_function(model, test.X) == expected).all()


def test_what_cannot_be_validated():
    X, y, _ = noisy(1)
    oracle = pb.weak.oracle(lambda X, y, weight, rng: lambda X, rng: np.sign(X[:, 0]))
    with pytest.raises(NotImplementedError, match=r"validation: .* oracles"):
        pb.fit_adaboost(X, y, n_estimators=3, weak_learner=oracle, validation=0.2)
    with pytest.raises(TypeError, match=r"validation: .*BinnedColumns"):
        pb.fit_adaboost(pb.data.bin_columns(X), y, n_estimators=3, validation=0.2)
    with pytest.raises(ValueError, match="at least two rows of each class"):
        pb.fit_adaboost([[0.0], [1.0], [2.0]], [0, 1, 1], n_estimators=3, validation=0.2)


def test_rows_of_every_class_are_held_out_of_stagewise_models():
    X, y = np.arange(40.0)[:, None], np.repeat([0, 1], [38, 2])
    for seed in range(20):
        model = pb.fit_gradient_boosting(
            X, y, loss="log_loss", n_estimators=2, validation=0.1, subsample=None, rng=seed
        )
        assert (
            model.trees[0].n_rows[0] == 35
        )  # four of one class and one of the other are not there
        low, high = pb.decision_function(model, X[[0, -1]])
        assert low < high
    with pytest.raises(ValueError, match="at least two rows of each class"):
        pb.fit_gradient_boosting(
            X, np.arange(40) == 0, loss="log_loss", n_estimators=2, validation=0.1
        )


@each_builder
def test_prefix(fit):
    X, y, _ = noisy(1, n=90)
    model = fit(X, y)
    scores = list(pb.staged_decision_function(model, X))
    for n in (1, 2, 7, model.n_nodes):
        cut = pb.models.truncate(model, n)
        assert_begins_as(cut, model)
        assert (pb.decision_function(cut, X) == scores[n - 1]).all()
        np.testing.assert_allclose(
            pb.certificate(cut, X, y), model.record.certificate[n], rtol=1e-9
        )
    assert pb.models.truncate(model, model.n_nodes) is model
    with pytest.raises(ValueError, match=f"n_nodes: expected an integer from 1 to {model.n_nodes}"):
        pb.models.truncate(model, 0)


def test_prefix_of_votes_replaced():
    X, y, _ = noisy(1)
    model = pb.fit_matryoshka(X, y, shape=(2, 3), collect="sign")
    assert model.record.stages.tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match=r"stages of the model, 2, 4, 6, got 3"):
        pb.models.truncate(model, 3)
    assert pb.models.truncate(model, 4).record.stages.tolist() == [2, 4]
