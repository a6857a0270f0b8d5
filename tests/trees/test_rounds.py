"""Compiled rounds of boosting on bins: the twin, the order of rows, SIMD, numbers of any size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from round_cases import (
    HELD,
    NAMES,
    OF_NUMBERS,
    as_copies,
    assert_same,
    assert_twin,
    bundled_case,
    compiled,
    in_domain,
    priced_case,
    restrained_case,
    special_case,
    wide_case,
    with_rows,
)
from shallow import fit_shallow
from special_problems import draw

import pboost as pb
from pboost._core import boost
from pboost.data.targets import weight_of_copy
from pboost.losses import LOSSES
from pboost.trees.gradients import weights_of
from pboost.trees.regularization import RESTRAINTS


@pytest.mark.parametrize("make", [special_case, restrained_case, bundled_case, priced_case])
@pytest.mark.parametrize("seed", range(0, 240, 20))
def test_equals_the_twin(seed, make):
    for number in range(seed, seed + 20):
        assert_twin(make(number), f"case {number}")


@pytest.mark.parametrize(
    ("name", "sums"), [("log_loss", "packed"), ("squared_error", "packed"), ("log_loss", "wide")]
)
def test_more_rows_than_words_have_room_for_equal_the_twin(name, sums):
    """Below a node of many rows stand two of many, one, and none."""
    *case, options = wide_case(name, max_bins=6)
    assert_twin((*case, {**options, "depth": 4, "sums": sums}), name)


@pytest.mark.parametrize("make", [special_case, restrained_case, bundled_case])
@pytest.mark.parametrize("seed", range(0, 120, 20))
def test_weights_that_are_copies_equal_the_twin_of_the_copies(seed, make):
    for number in range(seed, seed + 20):
        case, copied, rows = as_copies(make(number), number, (2, 9, 64)[number % 3])
        if case[4] is None or all(map(len, case[4])):
            assert_twin(copied, f"case {number}", case, rows)


@pytest.mark.parametrize("most", [2, 64])
def test_many_copies_have_room(most):
    """Of derivatives that are all of the largest size, where words and blocks are full."""
    columns, y, loss, weight, _, options = wide_case(n=3000 if most == 64 else 20_000, max_bins=3)
    y, options = (
        np.where(y > 2, y, 1.0),
        {**options, "bias": 0.0, "smoothing": 0.0, "min_samples_leaf": 1},
    )
    weight = np.where(np.arange(len(y)) < len(y) - 9, most, 1.0)
    case = columns, y, loss, weight, None, options
    rows = np.arange(len(y)).repeat(weight.astype(int))
    copied = with_rows(columns, rows), y[rows], loss, np.ones(len(rows)), None, options
    first, other = compiled(*case), compiled(*copied)
    for (a, f, value), (b, g, of_copies) in zip(first, other, strict=True):
        assert np.array_equal(f[rows], g)
        assert value == of_copies
        assert a is None or np.array_equal(a.mass, b.mass)


@pytest.fixture
def restored():
    yield
    boost.use_simd_level(2)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", [0, 1])
def test_without_simd_the_bits_are_the_same(name, level, restored):
    cases = [wide_case(name), *(special_case(seed) for seed in range(8))]
    cases += [as_copies(case, seed)[0] for seed, case in enumerate(cases)]
    fast = [compiled(*case) for case in cases]
    boost.use_simd_level(level)
    for case, item in zip(cases, fast, strict=True):
        assert_same(compiled(*case), item)


@pytest.mark.parametrize(
    ("name", "solved"),
    [(name, how) for name in NAMES for how in (True, False) if how or LOSSES[name].has_curvature],
)
def test_the_order_of_rows_does_not_matter(name, solved):
    columns, y, loss, weight, _, options = wide_case(name, n=9000)
    options["solved"] = solved
    first = compiled(columns, y, loss, weight, None, options)
    order = np.random.default_rng(1).permutation(len(y))
    bins = columns.columns
    shuffled = replace(
        columns, label=columns.label[order], columns=replace(bins, codes=bins.codes[:, order])
    )
    other = compiled(shuffled, y[order], loss, weight[order], None, options)
    assert_same([(a, f[order], m) for a, f, m in first], other)


def test_rows_of_weight_0_may_be_left_out():
    columns, y, loss, weight, _, options = wide_case(n=9000)
    kept, bins = np.flatnonzero(weight), columns.columns
    first = compiled(columns, y, loss, weight, None, options)
    fewer = replace(
        columns, label=columns.label[kept], columns=replace(bins, codes=bins.codes[:, kept])
    )
    other = compiled(fewer, y[kept], loss, weight[kept], None, options)
    assert_same([(a, f[kept], m) for a, f, m in first], other)


def test_growing_is_left_and_taken_up(monkeypatch):
    case = wide_case(n=3000)
    first = compiled(*case)
    monkeypatch.setattr("pboost.threads.CELLS_PER_CALL", 1)
    assert_same(compiled(*case), first)


class Own(type(LOSSES["log_loss"])):
    """The log loss, as far as the compiled code does not know it."""

    name = "own"


class NoNumber(Own):
    name = "no number"

    def gradient(self, y, f):
        actual = LOSSES["log_loss"].gradient(y, f)
        return np.where((f > 0.4) & (y > 0), np.nan, actual) if len(y) == 300 else actual


class Concave(NoNumber):
    name = "concave"

    def gradient(self, y, f):
        return LOSSES["log_loss"].gradient(y, f)

    def curvature(self, y, f):
        actual = LOSSES["log_loss"].curvature(y, f)
        return np.where(f > 0.4, -actual, actual) if len(y) == 300 else actual


def data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("leaf_update", ["line_search", "newton"])
def test_losses_of_your_own_take_the_same_steps(leaf_update):
    X, y = data(1000)
    options = {
        "n_estimators": 8,
        "leaf_update": leaf_update,
        "search": "binned",
        "l2_regularization": 0.0,
    }
    known = fit_shallow(X, y > 0, loss="log_loss", **options)
    custom_model = fit_shallow(X, y > 0, loss=Own(), **options)
    assert np.array_equal(custom_model.trees.feature, known.trees.feature)
    np.testing.assert_allclose(custom_model.trees.value, known.trees.value, atol=1e-8)
    np.testing.assert_allclose(custom_model.training_loss, known.training_loss, rtol=1e-9)


@pytest.mark.parametrize("search", ["binned", "exact"])
@pytest.mark.parametrize(("loss", "said"), [(NoNumber(), "gradient"), (Concave(), "curvature")])
def test_derivatives_that_are_no_numbers_are_refused(loss, said, search):
    X, y = data()
    message = rf"loss: {said}\(y, f\): expected .*, got .* in row \d+ with y = "
    with pytest.raises(ValueError, match=message):
        pb.fit_gradient_boosting(X, y > 0, loss=loss, n_estimators=30, search=search)


@pytest.mark.parametrize("exponent", [-150, -40, 40, 150])
def test_targets_of_any_size(exponent):
    X, y = data()
    model = pb.fit_gradient_boosting(X, y, loss="squared_error", n_estimators=20, search="binned")
    scaled = pb.fit_gradient_boosting(
        X, y * 2.0**exponent, loss="squared_error", n_estimators=20, search="binned"
    )
    assert np.array_equal(scaled.trees.feature, model.trees.feature)
    values = np.ldexp(scaled.trees.value, -exponent)
    np.testing.assert_allclose(values, model.trees.value, rtol=1e-12, atol=0)
    assert np.array_equal(scaled.trees.missing, model.trees.missing)


def test_an_outlier_does_not_spoil_leaves_elsewhere():
    X, y = data(10_000)
    y[0] = 1e12
    X[0, 0] = 50.0
    model = fit_shallow(
        X, y, search="binned", loss="squared_error", l2_regularization=0.0, max_delta_step=None
    )
    # A leaf is the mean of the residuals of its rows, whatever those of other leaves are.
    first = model.trees[0]
    leaf, value = pb.inspection.apply(first, X), first.value[first.feature < 0]
    for k in range(len(value)):
        mean = (y - model.bias)[leaf == k].mean()
        assert value[k] == pytest.approx(0.1 * mean, rel=1e-6)


def test_an_outlier_leaves_the_others_their_bits():
    X, y = data(10_000)
    y[0], X[0] = 1e12, 50.0
    rest = np.arange(1, len(y))
    options = {"loss": "squared_error", "max_depth": 4, "l2_regularization": 0.0}
    model, exact = fit_shallow(X, y, **options), fit_shallow(X, y, search="exact", **options)
    errors = [np.sqrt(np.mean((pb.predict(m, X) - y)[rest] ** 2)) for m in (model, exact)]
    assert errors[0] < 1.05 * errors[1]
    packed = fit_shallow(X, y, histogram_precision="packed", **options)
    assert np.array_equal(model.trees[0].feature[:1], exact.trees[0].feature[:1])
    assert len(packed.trees.feature) < len(model.trees.feature)


@pytest.mark.parametrize("name", NAMES)
def test_wide_sums_have_no_order_either(name):
    columns, y, loss, weight, _, options = wide_case(name, n=9000)
    options["sums"] = "wide"
    first = compiled(columns, y, loss, weight, None, options)
    order = np.random.default_rng(1).permutation(len(y))
    bins = columns.columns
    shuffled = replace(
        columns, label=columns.label[order], columns=replace(bins, codes=bins.codes[:, order])
    )
    other = compiled(shuffled, y[order], loss, weight[order], None, options)
    assert_same([(a, f[order], m) for a, f, m in first], other)


def test_options_change_models_and_are_kept():
    X, y = data(1000)
    models = [
        pb.fit_gradient_boosting(X, y > 0, n_estimators=4, rng=1, **options)
        for options in (
            {},
            {"leaf_update": "newton"},
            {"l2_regularization": 5.0},
            {"l2_regularization": 5.0, "leaf_update": "newton"},
            *({"max_depth": 5, **held} for held in HELD),
        )
    ]
    values = [model.trees.value.tolist() for model in models]
    assert all(a != b for k, a in enumerate(values) for b in values[:k])
    assert np.abs(models[2].trees.value).max() < np.abs(models[0].trees.value).max()
    for model in models:
        more = pb.continue_fit(model, X, y > 0, n_estimators=2)
        assert more.settings["leaf_update"] == model.settings["leaf_update"]
        for name in ("l2_regularization", "max_leaf_nodes", *RESTRAINTS):
            assert more.settings[name] == model.settings[name]
        assert np.array_equal(more.trees.value[: len(model.trees.value)], model.trees.value)


def test_best_first_trees_are_those_of_any_order_and_memory(monkeypatch):
    case = wide_case(n=3000)
    full = compiled(*case)
    case[-1]["max_leaf_nodes"] = 64  # all that six comparisons can part
    same = compiled(*case)
    for (a, f, _), (b, g, _) in zip(full[1:], same[1:], strict=True):
        assert np.array_equal(f, g)
        assert a.nodes["feature"].tolist() == b.nodes["feature"].tolist()
        assert np.array_equal(a.mass, b.mass)
    case[-1]["max_leaf_nodes"] = 20
    kept = compiled(*case)
    assert all((len(grown.nodes) + 1) // 2 == 20 for grown, _, _ in kept[1:])
    monkeypatch.setattr("pboost.trees.tree_rounds.SLOT_BYTES", 0)
    assert_same(compiled(*case), kept)
    monkeypatch.setattr("pboost.threads.CELLS_PER_CALL", 1)
    assert_same(compiled(*case), kept)


@pytest.mark.parametrize("name", ["l2_regularization", "min_child_weight", "min_split_gain"])
def test_options_are_in_units_of_the_weights(name):
    X, y = data(500)
    first_model = pb.fit_gradient_boosting(
        X, y > 0, n_estimators=3, **{name: 2.0}, sample_weight=np.full(500, 1.0)
    )
    other = pb.fit_gradient_boosting(
        X, y > 0, n_estimators=3, **{name: 8.0}, sample_weight=np.full(500, 4.0)
    )
    assert np.array_equal(first_model.trees.value, other.trees.value)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"leaf_update": "none"}, ValueError, "leaf_update: expected one of"),
        (
            {"leaf_update": "newton", "loss": "hinge"},
            ValueError,
            "leaf_update: .*without a second derivative",
        ),
        ({"l2_regularization": -1.0}, ValueError, "l2_regularization: "),
        ({"l2_regularization": 1.0, "search": "exact"}, NotImplementedError, "l2_regularization: "),
        ({"histogram_precision": "long"}, ValueError, "histogram_precision: expected one of"),
        ({"histogram_precision": "wide", "search": "exact"}, ValueError, "histogram_precision: "),
        ({"min_child_weight": -1.0}, ValueError, "min_child_weight: "),
        ({"min_split_gain": np.nan}, ValueError, "min_split_gain: "),
        ({"interaction_cst": [[0, 3]]}, ValueError, "interaction_cst: "),
        ({"interaction_cst": [[0], []]}, ValueError, "interaction_cst: .*empty"),
        ({"interaction_cst": [0, 1]}, TypeError, "interaction_cst: "),
        ({"interaction_cst": "pairwise"}, TypeError, "interaction_cst: expected groups"),
        ({"interaction_cst": [[0]], "search": "exact"}, NotImplementedError, "interaction_cst: "),
        ({"max_leaf_nodes": 0}, ValueError, "max_leaf_nodes: "),
        ({"monotonic_cst": {3: 1}}, ValueError, "monotonic_cst: "),
        ({"monotonic_cst": {"a": 1}}, ValueError, "monotonic_cst: .*no column names"),
        ({"monotonic_cst": {0: 2}}, ValueError, "monotonic_cst: "),
        ({"monotonic_cst": [0, 2, 0]}, ValueError, "monotonic_cst: "),
        ({"monotonic_cst": [0, 1]}, ValueError, "monotonic_cst: expected a direction for each of"),
        ({"monotonic_cst": 1}, TypeError, "monotonic_cst: expected a mapping"),
        ({"monotonic_cst": {0: 1}, "search": "exact"}, NotImplementedError, "monotonic_cst: "),
        ({"max_features_per_tree": 4}, ValueError, "max_features_per_tree: "),
        ({"max_features_per_tree": 2, "max_features": 3}, ValueError, "max_features: "),
        ({"max_features": 2, "search": "exact"}, NotImplementedError, "max_features: "),
        (
            {"min_split_gain": 1.0, "search": "exact"},
            NotImplementedError,
            "min_split_gain: .*binned",
        ),
    ],
)
def test_bad_options(options, error, message):
    X, y = data()
    with pytest.raises(error, match=message):
        pb.fit_gradient_boosting(X, y > 0, **options)


def assert_copies(X, y, copies, unit=1.0, **options):
    """Weights are copies but for the rounding of the constant before the first tree."""
    first_model = pb.fit_gradient_boosting(X, y, sample_weight=unit * copies, **options)
    other = pb.fit_gradient_boosting(X.repeat(copies, axis=0), y.repeat(copies), **options)
    for left, right in zip(first_model.trees, other.trees, strict=True):
        assert np.array_equal(left.feature, right.feature)
        assert np.array_equal(left.threshold, right.threshold)
        np.testing.assert_allclose(left.value, right.value, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(first_model.training_loss, other.training_loss, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_weight_k_is_k_copies(name):
    X, y = data(400)
    copies = np.random.default_rng(1).integers(1, 4, 400)
    if LOSSES[name].least >= 0:
        y = in_domain(LOSSES[name], np.floor(np.exp(y / 4)))
    y = y if name in OF_NUMBERS[1:] else y > 0
    task = "regression" if name in OF_NUMBERS[1:] else "classification"
    assert_copies(X, y, copies, loss=LOSSES[name], n_estimators=10, task=task)


@pytest.mark.parametrize("sums", ["packed", "wide"])
@pytest.mark.parametrize(
    "options",
    [{}, {"max_depth": 4}, {"leaf_update": "newton"}, {"max_leaf_nodes": 9}, {"max_bins": 8}],
)
def test_many_deep_trees_of_weights_are_those_of_copies(sums, options):
    """Cuts that are equally good are so in either fit, and the same one is taken."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, copies = rng.normal(size=(400, 6)), rng.integers(1, (5, 65)[seed % 2], 400)
        y = X[:, 0] * X[:, 1] + X[:, 3] + rng.normal(size=400) > 0.3
        unit = (1.0, 0.1, 1e-200)[seed % 3]
        assert_copies(
            X,
            y,
            copies,
            unit,
            **{"n_estimators": 60, "max_depth": 6, "histogram_precision": sums, **options},
        )


def test_weights_of_many_copies_are_rounded():
    """Words have no room for them; nor are weights copies whose multiples are none."""
    X, y = data(400)
    rng = np.random.default_rng(1)
    for weight, are_copies in (
        (rng.integers(1, 65, 400), True),
        (np.where(np.arange(400) == 7, 65, rng.integers(1, 5, 400)), False),
        (rng.uniform(1, 5, 400), False),
        (0.1 * rng.integers(1, 5, 400) * (1 + 1e-8 * rng.normal(size=400)), False),
    ):
        given = weight / weight.max()
        assert weights_of(given, weight_of_copy(given)).are_copies == are_copies
        model = pb.fit_gradient_boosting(X, y > 0, sample_weight=weight, n_estimators=10)
        assert model.training_loss[-1] < model.training_loss[0]


def test_weights_of_a_loss_in_python_are_copies():
    class Own(pb.losses.Logistic):
        """A loss of a user."""

    X, y = data(400)
    copies = np.random.default_rng(1).integers(1, 9, 400)
    for leaf_update in ("line_search", "newton"):
        options = {"n_estimators": 20, "max_depth": 6, "leaf_update": leaf_update}
        assert_copies(X, y > 0, copies, loss=Own(), **options)


@pytest.mark.parametrize("seed", range(30))
def test_models_of_tables_say_what_the_fit_had(seed):
    """Thresholds, sets and sides of missing rows are those of the bins."""
    rng = np.random.default_rng(seed)
    X, y, weight, levels = draw(rng, 2, n=150)
    weight = None if weight is None or not (weight > 0).all() else weight
    options = {"subsample": [None, 0.5][seed % 2], "validation": [None, 0.25][seed % 3 == 0]}
    model = pb.fit_gradient_boosting(
        X,
        y,
        loss=NAMES[seed % 4],
        task="classification",
        n_estimators=5,
        learning_rate=0.5,
        max_depth=4,
        categorical_features=sorted(levels),
        sample_weight=weight,
        rng=0,
        **options,
    )
    held = np.zeros(150, dtype=bool)
    if options["validation"]:
        state = np.random.default_rng(0)
        held[pb_held(y, weight, state)] = True
    sign, kept = 2.0 * y - 1, ~held
    f = pb.decision_function(model, X)
    mean = model.loss.reported * np.average(
        model.loss.value(sign[kept], f[kept]), weights=None if weight is None else weight[kept]
    )
    assert model.training_loss[-1] == pytest.approx(mean, rel=1e-9)
    if options["validation"]:
        value = model.loss.reported * model.loss.value(sign[held], f[held])
        mean = np.average(value, weights=None if weight is None else weight[held])
        assert model.validation_loss[len(model)] == pytest.approx(mean, rel=1e-9)


def pb_held(y, weight, generator):
    """Return the rows that a fit holds out."""
    from pboost.data.resampling import hold_out

    return hold_out([np.flatnonzero(y == k) for k in range(2)], 0.25, generator)
