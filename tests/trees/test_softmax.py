"""Sums of trees of several classes: the twin, bits, options, files, bad input."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from reference import rounds, softmax
from special_problems import draw, problem

import pboost as pb
from pboost._core import boost
from pboost._core import softmax as softmax_core
from pboost.growth.tree import CartLimits
from pboost.losses import LOSSES
from pboost.trees import softmax_rounds
from pboost.trees.rounds import Rounds
from pboost.trees.softmax_rounds import SoftmaxRounds
from pboost.trees.steps import Steps

SOFTMAX = LOSSES["softmax"]


def special_case(seed):
    """Return columns, classes, weights and options, at random; classes can lack rows."""
    rng = np.random.default_rng(seed)
    n_classes = (2, 3, 7, 26)[seed % 4]
    n = 30 if n_classes > 7 else None
    X, y, weight, levels = draw(rng, n_classes, n=n)
    n = len(y)
    if weight is None or not (weight > 0).any():
        weight = np.ones(n)
    columns = problem(X, y, None, levels, n_classes, int(rng.choice([4, 16, 255])))
    listed = None
    if seed % 5 == 0:
        used = np.flatnonzero(weight > 0)
        listed = [np.sort(rng.choice(used, max(1, len(used) // 2), replace=False)) for _ in "ab"]
    options = {
        "depth": int(rng.integers(1, 6 if n_classes < 7 else 3)),
        "min_leaf": int(rng.choice([1, 1, 2, 5])),
        "l2": float(rng.choice([0.0, 0.0, 0.5])), "smoothing": float(rng.choice([0.0, 0.0, 2.0])),
        "most": float(rng.choice([0.7, 4.0, np.inf])), "solved": bool(rng.random() < 0.6),
        "rate": float(rng.choice([0.1, 1.0])), "bias": rng.normal(size=n_classes),
        "sums": str(rng.choice(["auto", "wide"])),
    }  # fmt: skip
    return columns, y.astype(int), n_classes, weight / weight.max(), listed, options


def compiled(columns, y, n_classes, weight, listed, options, steps=2):
    """Return the rounds, and after each the trees, the scores and the mean loss."""
    limits = CartLimits("squared", options["depth"], 2**31, options["min_leaf"], 2, 1,
                        "depth-first", level_smoothing=options["smoothing"])  # fmt: skip
    step = Steps(
        options["rate"], options["most"], options["solved"], options["l2"], options["sums"]
    )
    f = np.repeat(np.asarray(options["bias"])[:, None], len(y), axis=1)
    made = SoftmaxRounds(
        y.astype(float), weight, f, step,
        lambda y, loss, weight, f, step: Rounds(columns, y, loss, weight, f, limits, step),
    )  # fmt: skip
    found = [([], f.copy(), made.mean_loss)]
    for t in range(steps):
        rows = np.flatnonzero(weight > 0) if listed is None else listed[t]
        found.append((made.grow(rows), made.f.copy(), made.mean_loss))
    return found


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_equals_the_twin(start):
    for seed in range(start, start + 20):
        columns, y, n_classes, weight, listed, options = special_case(seed)
        found = compiled(columns, y, n_classes, weight, listed, options)
        bins = columns.columns
        special = np.zeros(len(bins.n_bins), int) if bins.special is None else bins.special
        expected = softmax.fit(
            rounds.Columns(bins.codes, bins.n_bins, special), y, n_classes, weight, steps=2,
            listed=listed, **options,
        )  # fmt: skip
        assert [loss for _, _, loss in found] == expected.mean_loss, seed
        assert np.array_equal(found[-1][1], expected.f), seed
        grown = [tree for trees, _, _ in found for tree in trees]
        for tree, nodes, values in zip(grown, expected.trees, expected.values, strict=True):
            assert np.array_equal(tree.nodes["feature"], [n.feature for n in nodes]), seed
            assert np.array_equal(tree.mass[:, 0], [n.curvature for n in nodes]), seed
            assert np.array_equal(tree.nodes["missing"], [n.missing for n in nodes]), seed
            assert np.array_equal(tree.nodes["mean"], values), seed


def wide_case(n=9000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 9))
    X[:, 3] = rng.integers(0, 6, n)
    X[:, 8] = np.where(rng.random(n) < 0.1, np.nan, X[:, 0])
    y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n), [-1.5, 0, 0.4, 2])
    weight = rng.uniform(0.1, 1, n) * (rng.random(n) < 0.9)
    options = {"depth": 5, "min_leaf": 3, "l2": 0.1, "smoothing": 1.0, "most": 4.0, "solved": True,
               "rate": 0.3, "bias": rng.normal(size=5), "sums": "auto"}  # fmt: skip
    return problem(X, y, None, {3: 6}, 5, 255), y, 5, weight / weight.max(), None, options


def assert_same(one, other):
    for (trees, f, loss), (more, g, value) in zip(one, other, strict=True):
        assert np.array_equal(f, g)
        assert loss == value
        for a, b in zip(trees, more, strict=True):
            for name in ("children", "mass", "subset"):
                assert np.array_equal(getattr(a, name), getattr(b, name)), name
            assert a.nodes.tolist() == b.nodes.tolist()


@pytest.fixture
def restored():
    yield
    boost.use_simd_level(2)
    softmax_core.use_simd_level(2)


@pytest.mark.parametrize("level", [0, 1])
def test_without_simd_the_bits_are_the_same(level, restored):
    cases = [wide_case(), *(special_case(seed) for seed in range(8))]
    fast = [compiled(*case) for case in cases]
    boost.use_simd_level(level)
    softmax_core.use_simd_level(level)
    for case, found in zip(cases, fast, strict=True):
        assert_same(compiled(*case), found)


def test_neither_the_order_of_rows_matters_nor_rows_of_weight_0():
    columns, y, n_classes, weight, _, options = wide_case()
    one = compiled(columns, y, n_classes, weight, None, options)
    rng, bins = np.random.default_rng(1), columns.columns
    for rows in (rng.permutation(len(y)), np.flatnonzero(weight)):
        other = replace(columns, label=columns.label[rows],
                        columns=replace(bins, codes=bins.codes[:, rows]))  # fmt: skip
        found = compiled(other, y[rows], n_classes, weight[rows], None, options)
        assert_same([(a, f[:, rows], m) for a, f, m in one], found)


@pytest.mark.parametrize("n_classes", [2, 3, 7, 11])
def test_roots_counted_together_are_those_counted_alone(n_classes, monkeypatch):
    columns, y, _, weight, _, options = wide_case()
    y = y * 3 % n_classes
    case = columns, y, n_classes, weight, None, {**options, "bias": np.zeros(n_classes)}
    together = compiled(*case)
    few = np.arange(2000)
    bins = columns.columns
    part = replace(columns, label=columns.label[few],
                   columns=replace(bins, codes=bins.codes[:, few]))  # fmt: skip
    small = compiled(part, y[few], *case[2:3], weight[few], *case[4:])
    monkeypatch.setattr(softmax_rounds, "LEAST_ROWS", 10**9)
    assert_same(together, compiled(*case))
    assert_same(small, compiled(part, y[few], *case[2:3], weight[few], *case[4:]))
    for memory in (10**5, 3 * 10**5, 0):
        monkeypatch.setattr(softmax_rounds, "LEAST_ROWS", 0)
        monkeypatch.setattr(softmax_rounds, "SLOT_BYTES", memory)
        assert_same(together, compiled(*case))


def data(n=300, seed=0, n_classes=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.4 * rng.normal(size=n)
    edges = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return X, np.array([f"class {k}" for k in range(n_classes)])[np.digitize(score, edges)]


def assert_same_model(a, b):
    for name in ("root", "feature", "threshold", "children", "value", "weight"):
        assert np.array_equal(getattr(a.trees, name), getattr(b.trees, name)), name
    assert np.array_equal(a.bias, b.bias)
    assert a.loss == b.loss
    assert a.labels.tolist() == b.labels.tolist()
    assert np.array_equal(a.training_loss, b.training_loss)


def mean_loss(model, y, score):
    return SOFTMAX.value(np.searchsorted(model.labels, y), score).mean()


@pytest.mark.parametrize("search", ["binned", "exact"])
@pytest.mark.parametrize("leaf_step", ["best", "newton"])
def test_two_classes_are_the_log_loss(search, leaf_step):
    """Either tree goes half of the way."""
    X, y = data(n_classes=2)
    options = {"steps": 20, "search": search, "leaf_step": leaf_step, "l2": 0.0, "min_weight": 0.0}
    both = pb.fit_stagewise(X, y, loss="softmax", **options)
    one = pb.fit_stagewise(X, y, loss="logistic", **options)
    assert both.n_votes == 2
    assert pb.decision_function(both, X).shape == (300, 2)
    # Newton steps of a binned search are those of words.
    near = 1e-5 if (search, leaf_step) == ("binned", "newton") else 1e-10
    np.testing.assert_allclose(pb.predict_proba(both, X), pb.predict_proba(one, X), atol=near)
    np.testing.assert_allclose(both.training_loss, one.training_loss, rtol=near)
    assert pb.predict(both, X, threshold=0.5).tolist() == pb.predict(both, X).tolist()


@pytest.mark.parametrize("search", ["binned", "exact"])
@pytest.mark.parametrize("leaf_step", ["best", "newton"])
def test_learns_and_lowers_the_loss(search, leaf_step):
    X, y = data(900)
    new, truth = data(900, seed=9)
    model = pb.fit_stagewise(X, y, steps=50, search=search, leaf_step=leaf_step)
    assert model.settings["loss"] == "softmax"
    assert (np.diff(model.training_loss) <= 0).all()
    assert np.mean(pb.predict(model, new) == truth) > 0.65
    score = pb.decision_function(model, X)
    assert score.shape == (900, 3)
    assert mean_loss(model, y, score) == pytest.approx(model.training_loss[-1], rel=1e-12)
    share = pb.predict_proba(model, X)
    np.testing.assert_allclose(share, SOFTMAX.probability(score), rtol=1e-12)
    assert np.array_equal(model.labels[share.argmax(axis=1)], pb.predict(model, X))
    assert np.array_equal(model.labels[score.argmax(axis=1)], pb.predict(model, X))
    stages = list(pb.staged_decision_function(model, X))
    assert len(stages) == len(model) == 50
    assert len(model.trees) == 150
    assert np.array_equal(stages[-1], score)
    assert (pb.evaluation_cost(model, X) <= 3 * 150).all()


def test_trees_of_a_round_see_the_scores_before_it():
    """They are those of each class against the others, at the log odds between them."""
    X, y = data()
    options = {"steps": 1, "learning_rate": 1, "l2": 0.0, "min_weight": 0.0, "leaf_step": "newton"}
    model = pb.fit_stagewise(X, y, **options)
    for k, label in enumerate(model.labels):
        one = pb.fit_stagewise(X, y == label, loss="logistic", **options)
        assert np.array_equal(one.trees.feature, model.trees[k].feature)
        np.testing.assert_allclose(model.trees[k].value, one.trees.value, atol=2e-5)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    np.testing.assert_allclose(model.bias, np.log(shares), rtol=1e-15)


def test_few_rows_and_many_are_told_the_same():
    """Rows are walked alone, by ranks, and with missing values."""
    X, y = data(500, n_classes=5)
    X[::7, 1] = np.nan
    model = pb.fit_stagewise(X, y, steps=20, max_depth=4)
    score = pb.decision_function(model, X)
    each = np.concatenate([pb.decision_function(model, X[i : i + 1]) for i in range(40)])
    assert np.array_equal(each, score[:40])
    by_hand = model.bias + sum(
        np.column_stack([tree.predict(X) for tree in model.trees[5 * r : 5 * r + 5]])
        for r in range(20)
    )
    np.testing.assert_allclose(score, by_hand, atol=1e-12)


@pytest.mark.parametrize("validation", [None, 0.2])
def test_saved_and_pickled(validation, tmp_path):
    X, y = data()
    model = pb.fit_stagewise(X, y, steps=8, validation=validation, rng=0)
    pb.save(model, tmp_path / "m.npz")
    for again in (pb.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
        assert_same_model(model, again)
        assert again.settings == model.settings
        assert np.array_equal(pb.predict(model, X), pb.predict(again, X))
        assert (again.validation_loss is None) == (validation is None)
        assert pb.describe(again) == pb.describe(model)
        assert not again.bias.flags.writeable


def test_wrong_parts_are_named():
    X, y = data()
    model = pb.fit_stagewise(X, y, steps=3)
    for parts, message in (
        ({"bias": 0.5}, "bias: expected 3 finite numbers"),
        ({"bias": model.bias[:2]}, "bias: expected 3 finite numbers"),
        ({"bias": model.bias * np.nan}, "bias: expected 3 finite numbers"),
        ({"labels": None}, "labels: expected those|bias: "),
        (
            {"trees": model.trees[:8], "training_loss": model.training_loss[:3]},
            "trees: expected one for each of 3 labels",
        ),
        ({"labels": model.labels[:2]}, "bias: expected 2 finite numbers"),
        ({"loss": LOSSES["logistic"]}, "bias: |labels: expected"),
        ({"training_loss": model.training_loss[:2]}, "training_loss: expected shape"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(model, **parts)


def test_validation_chooses_the_number_of_rounds():
    X, y = data(600)
    new, truth = data(600, seed=4)
    options = {"steps": 200, "learning_rate": 0.4, "patience": 8}
    model = pb.fit_stagewise(X, y, validation=(new, truth), **options)
    tried = model.validation_loss
    assert len(model) == tried.argmin() == len(tried) - 9
    assert model.stop_reason == "no better on the validation rows for 8 rounds"
    stages = pb.staged_decision_function(model, new)
    losses = [mean_loss(model, truth, f) for f in stages]
    np.testing.assert_allclose(losses, tried[1 : len(model) + 1])
    # Classes may be missing there.
    some = truth != "class 1"
    model = pb.fit_stagewise(X, y, validation=(new[some], truth[some]), **options)
    assert model.validation_loss is not None
    with pytest.raises(ValueError, match="validation: y: expected labels of the model"):
        pb.fit_stagewise(X, y, validation=(new, np.full(600, "other")), **options)


def test_rows_held_out_are_of_every_class():
    X, y = data(n_classes=4)
    model = pb.fit_stagewise(X, y, steps=3, validation=0.25, rng=0)
    assert all(tree.n_rows[0] == model.trees[0].n_rows[0] < 230 for tree in model.trees)
    assert len(model.validation_loss) == 4
    two = pb.fit_stagewise(*data(n_classes=2), loss="softmax", steps=3, validation=0.25, rng=0)
    assert two.validation_loss[-1] < two.validation_loss[0] + 0.1


def test_prefix_and_continued_fits():
    X, y = data()
    options = {"bag": 0.6, "rng": 3}
    model = pb.fit_stagewise(X, y, steps=7, **options)
    shares = list(pb.staged_predict_proba(model, X))
    for n in (1, 4):
        cut = pb.prefix(model, n)
        assert_same_model(cut, pb.fit_stagewise(X, y, steps=n, **options))
        assert cut.stop_reason == f"cut to the first {n} of 7 rounds"
        assert np.array_equal(pb.predict_proba(cut, X), shares[n - 1])
        assert_same_model(pb.continue_fit(cut, X, y, steps=7 - n), model)
    exact = pb.fit_stagewise(X, y, steps=4, search="exact")
    assert_same_model(pb.continue_fit(pb.prefix(exact, 2), X, y, steps=2), exact)
    with pytest.raises(ValueError, match="n_nodes: expected"):
        pb.prefix(model, 8)


def test_weights():
    X, y = data()
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(y)).astype(float)
    model = pb.fit_stagewise(X, y, steps=5, sample_weight=weight)
    used = np.flatnonzero(weight)
    fewer = pb.fit_stagewise(X[used], y[used], steps=5, sample_weight=weight[used])
    assert_same_model(model, fewer)
    order = rng.permutation(len(y))
    shuffled = pb.fit_stagewise(X[order], y[order], steps=5, sample_weight=weight[order])
    assert_same_model(model, shuffled)
    copies = pb.fit_stagewise(
        X.repeat(weight.astype(int), 0), y.repeat(weight.astype(int)), steps=5
    )
    f, g = (pb.decision_function(m, X) for m in (model, copies))
    np.testing.assert_allclose(f, g, atol=1e-3)


def test_soft_labels():
    X, y = data()
    labels = np.unique(y)
    share = (y[:, None] == labels).astype(float)
    hard = pb.fit_stagewise(X, y, steps=5)
    soft = pb.fit_stagewise(X, y_proba=share, labels=labels, steps=5)
    assert soft.settings["loss"] == "softmax"
    assert_same_model(hard, soft)
    mixed = pb.fit_stagewise(X, y_proba=0.7 * share + 0.1, labels=labels, steps=100)
    found = pb.predict_proba(mixed, X)
    assert np.abs(found - 0.7 * share - 0.1).mean() < np.abs(found - share).mean()
    with pytest.raises(ValueError, match="y_proba: expected every label to have"):
        pb.fit_stagewise(X, y_proba=np.column_stack([share, 0 * share[:, 0]]), steps=5)


def test_explained():
    X, y = data()
    model = pb.fit_stagewise(X, y, steps=20)
    found = pb.explain(model, X[:1])
    assert found.contributions.shape == (4, 3)
    assert found.label == pb.predict(model, X[:1])[0]
    np.testing.assert_allclose(
        found.bias + found.contributions.sum(axis=0), pb.decision_function(model, X[:1])[0]
    )
    share = pb.feature_importances(model)
    assert share.sum() == pytest.approx(1.0)
    assert share[:3].min() > 3 * share[3]
    rise = pb.permutation_importance(model, X, y, repeats=2, rng=0).mean(axis=1)
    assert rise[:3].min() > 3 * abs(rise[3])
    text = pb.describe(model)
    assert text.startswith("fit_stagewise: 20 rounds of 3 trees, 4 features")
    assert "round 2, label 'class 1'" in text
    assert repr(model) == "<fit_stagewise: 20 rounds of 3 trees, 4 features, softmax loss>"


def test_callback_sees_each_round_and_stops():
    X, y = data()
    seen = []

    def look(step, record):
        seen.append((step, record.n_leaves, record.training_loss))
        return step == 3

    model = pb.fit_stagewise(X, y, steps=9, callback=look)
    assert model.stop_reason == "stopped by the callback"
    leaves = np.array([tree.n_leaves for tree in model.trees]).reshape(3, 3).sum(axis=1)
    assert seen == list(zip([1, 2, 3], leaves, model.training_loss[1:], strict=True))


def test_nothing_to_learn():
    y = np.array(["a", "b", "c"] * 10)
    model = pb.fit_stagewise(np.ones((30, 2)), y, steps=10)
    np.testing.assert_allclose(pb.predict_proba(model, np.ones((1, 2))), 1 / 3, rtol=1e-12)


def test_separable_rows_stay_finite():
    X = np.arange(40.0)[:, None]
    y = np.array(["a", "b", "c", "d"])[(X[:, 0] // 10).astype(int)]
    model = pb.fit_stagewise(X, y, steps=300, learning_rate=1, max_step=None)
    assert (pb.predict(model, X) == y).all()
    assert np.isfinite(pb.decision_function(model, X)).all()
    assert np.isfinite(model.training_loss).all()


def test_default_loss():
    X, y = data()
    numbers = np.searchsorted(np.unique(y), y)
    assert pb.fit_stagewise(X, y, steps=1).settings["loss"] == "softmax"
    of_numbers = pb.fit_stagewise(X, numbers, steps=1, task="classification")
    assert of_numbers.settings["loss"] == "softmax"
    assert pb.predict(of_numbers, X).dtype == numbers.dtype
    assert pb.fit_stagewise(X, y == "class 1", steps=1).settings["loss"] == "logistic"
    with pytest.raises(ValueError, match=r'whole numbers.*loss="softmax".*loss="squared"'):
        pb.fit_stagewise(X, numbers, steps=1)
    assert len(pb.fit_stagewise(X, numbers, steps=1, loss="softmax").labels) == 3


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ("three", {"loss": "softmax", "task": "regression"}, 'task: expected "classification"'),
        ("one", {"loss": "softmax"}, "y: expected at least two label values"),
        ("three", {"loss": "logistic"}, 'y: expected two label values, got 3.*"softmax"'),
        ("half", {"loss": "softmax"}, "y: "),
    ],
)
def test_bad_labels(y, options, message):
    X, three = data()
    given = {"three": three, "one": np.full(300, "a"), "half": X[:, 0]}[y]
    with pytest.raises(ValueError, match=message):
        pb.fit_stagewise(X, given, **options)


def test_classes_of_one_row_and_more_classes_than_rows():
    X, y = data()
    y = y.astype("U9")
    y[7] = "single"
    free = {"l2": 0.0}
    model = pb.fit_stagewise(X, y, steps=100, max_depth=4, **free)
    assert pb.predict(model, X)[7] == "single"
    X = np.arange(5.0)[:, None]
    share = np.random.default_rng(0).dirichlet(np.ones(9), 5)
    model = pb.fit_stagewise(X, y_proba=share, steps=100, learning_rate=0.5, **free)
    np.testing.assert_allclose(pb.predict_proba(model, X), share, atol=0.05)
    each = pb.fit_stagewise(X, list("abcde"), steps=20, **free)
    assert pb.predict(each, X).tolist() == list("abcde")


def test_a_class_without_weight_is_kept_and_is_never_likely():
    X, y = data()
    weight = (y != "class 1").astype(float)
    model = pb.fit_stagewise(X, y, steps=5, sample_weight=weight)
    assert model.labels.tolist() == ["class 0", "class 1", "class 2"]
    assert pb.predict_proba(model, X)[:, 1].max() < 1e-12


def test_classes_that_a_fold_lacks():
    X, y = data()
    y = y.astype("U9")
    y[:2] = "rare"
    with pytest.warns(UserWarning, match="class 'rare' has 2 rows"):
        found = pb.cross_validate(partial(pb.fit_stagewise, steps=5), X, y, folds=5, rng=0)
    assert np.isfinite(np.asarray(found.error)).all()
