"""What must hold for any data."""

import os
import tempfile

import numpy as np
import pytest
from compare import assert_identical, assert_same_model, stump, truncated
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from reference.walk import path

import pboost as pb

#: The same examples in every run, so that a change and not chance makes a test fail.
bounded = settings(deadline=None, max_examples=20, derandomize=True, database=None)

FITS = {
    "adaboost": lambda weak, X, y, **k: pb.fit_adaboost(
        X, y, n_estimators=6, weak_learner=weak, **k
    ),
    "symmetric": lambda weak, X, y, **k: pb.fit_adaboost(
        X, y, n_estimators=6, weak_learner=weak, votes="symmetric", **k
    ),
    "largest_bound": lambda weak, X, y, **k: pb.fit_boosted_tree(
        X, y, max_nodes=4, weak_learner=weak, **k
    ),
    "breadth_first": lambda weak, X, y, **k: pb.fit_boosted_tree(
        X, y, max_nodes=4, weak_learner=weak, growth="breadth_first", **k
    ),
    "greedy": lambda weak, X, y, **k: pb.fit_matryoshka(
        X, y, growth="greedy", max_nodes=6, weak_learner=weak, **k
    ),
    "full": lambda weak, X, y, **k: pb.fit_boosted_tree(
        X, y, max_nodes=None, weak_learner=weak, **k
    ),
}
TREES = ("largest_bound", "breadth_first", "full")
builders = pytest.mark.parametrize("builder", FITS)
searches = pytest.mark.parametrize("max_bins", [None, 5, 256])


def fit(builder, X, y, max_bins=None, criterion="kearns_mansour", **options):
    return FITS[builder](stump(criterion, max_bins), X, y, **options)


coarse = st.sampled_from([-2.5, -1.0, 0.0, 0.5, 3.0])
fine = st.floats(-100, 100, width=32)


@st.composite
def problems(draw, elements=coarse | fine, max_rows=24):
    n, d = draw(st.integers(2, max_rows)), draw(st.integers(1, 3))
    X = draw(hnp.arrays(np.float64, (n, d), elements=elements))
    y = draw(hnp.arrays(np.int64, n, elements=st.sampled_from([-1, 1])))
    y[:2] = -1, 1
    return X, y


def counts(draw, n, least=0):
    k = draw(hnp.arrays(np.int64, n, elements=st.integers(least, 4)))
    k[:2] = np.maximum(k[:2], 1)  # both classes
    return k


def decision(model, X):
    return pb.decision_function(model, X)


@builders
@searches
@bounded
@given(data=st.data())
def test_row_order_does_not_matter(builder, max_bins, data):
    X, y = data.draw(problems())
    order = np.array(data.draw(st.permutations(range(len(y)))))
    assert_same_model(fit(builder, X, y, max_bins), fit(builder, X[order], y[order], max_bins))


@builders
@searches
@bounded
@given(data=st.data())
def test_weight_k_is_k_copies(builder, max_bins, data):
    X, y = data.draw(problems())
    k = counts(data.draw, len(y))
    weighted = fit(builder, X, y, max_bins, sample_weight=k.astype(float))
    copies = fit(builder, np.repeat(X, k, axis=0), np.repeat(y, k), max_bins)
    assert_same_model(weighted, copies)


@builders
@searches
@pytest.mark.parametrize("factor", [2.0**-30, 2.0**41, 3.7, 0.1, 1e-200, 1e200])
@settings(bounded, max_examples=8)
@given(data=st.data())
def test_scale_of_the_weights_does_not_matter(builder, max_bins, factor, data):
    X, y = data.draw(problems())
    weight = counts(data.draw, len(y)) * 0.3
    first_model = fit(builder, X, y, max_bins, sample_weight=weight)
    assert_same_model(first_model, fit(builder, X, y, max_bins, sample_weight=weight * factor))


@builders
@searches
@bounded
@given(data=st.data())
def test_weight_0_is_no_row(builder, max_bins, data):
    X, y = data.draw(problems())
    weight = counts(data.draw, len(y)) * 0.7
    kept = weight > 0
    with_zeros = fit(builder, X, y, max_bins, sample_weight=weight)
    assert_same_model(
        with_zeros, fit(builder, X[kept], y[kept], max_bins, sample_weight=weight[kept])
    )


@builders
@searches
@pytest.mark.parametrize("criterion", ["kearns_mansour", "gini", "entropy", "error"])
@settings(bounded, max_examples=10)
@given(data=st.data())
def test_monotone_transform_keeps_the_exits(builder, max_bins, criterion, data):
    X, y = data.draw(problems())
    j = data.draw(st.integers(0, X.shape[1] - 1))
    Z = X.copy()
    Z[:, j] = np.exp(np.unique(X[:, j], return_inverse=True)[1] / 3) - 5
    first, other = fit(builder, X, y, max_bins, criterion), fit(builder, Z, y, max_bins, criterion)
    np.testing.assert_array_equal(first.feature, other.feature)
    np.testing.assert_array_equal(first.next, other.next)
    for row, image in zip(X, Z, strict=True):
        taken = path(first.feature, first.threshold, first.next, row)
        assert taken == path(other.feature, other.threshold, other.next, image)
    np.testing.assert_allclose(decision(first, X), decision(other, Z), rtol=0, atol=1e-12)


@builders
@bounded
@given(data=st.data())
def test_save_and_load(builder, data):
    X, y = data.draw(problems())
    labels = data.draw(st.sampled_from([[-1, 1], [0.5, 2.0], ["no", "yes"], [False, True]]))
    model = fit(builder, X, np.array(labels)[(y > 0).astype(int)])
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model.npz")
        pb.save(model, file)
        loaded = pb.load(file)
    assert_identical(model, loaded)
    assert model.classes.dtype == loaded.classes.dtype
    assert dict(model.settings) == dict(loaded.settings)
    assert model.feature_names == loaded.feature_names
    assert decision(model, X).tobytes() == decision(loaded, X).tobytes()


@builders
@searches
@pytest.mark.parametrize("criterion", ["kearns_mansour", "gini", "entropy", "error"])
def test_threads_do_not_change_a_bit(builder, max_bins, criterion):
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(20_000, 7)), 3)
    y = np.where(X[:, 0] * X[:, 1] + rng.normal(size=len(X)) > 0, 1, -1)
    weight = rng.uniform(size=len(X))
    if builder == "full":
        X, y, weight = X[:3000], y[:3000], weight[:3000]
    models = [
        fit(builder, X, y, max_bins, criterion, sample_weight=weight, n_threads=n)
        for n in (1, 2, 4)
    ]
    for other in models[1:]:
        assert_identical(models[0], other)


@builders
@searches
@bounded
@given(data=st.data())
def test_columns_in_place_of_rows(builder, max_bins, data):
    X, y = data.draw(problems())
    weight = counts(data.draw, len(y), least=0 if max_bins is None else 1) * 0.7
    if max_bins is None:
        columns = pb.data.sort_columns(X)
    else:
        columns = pb.data.bin_columns(X, max_bins=max_bins, sample_weight=weight)
    from_rows = fit(builder, X, y, max_bins, sample_weight=weight)
    for _ in range(2):  # a fit leaves the columns as they were
        assert_identical(from_rows, fit(builder, columns, y, max_bins, sample_weight=weight))


@builders
@searches
@pytest.mark.parametrize("smoothing", [0.0, 1e-4, 0.1])
@settings(bounded, max_examples=12)
@given(data=st.data())
def test_certificate(builder, max_bins, smoothing, data):
    X, y = data.draw(problems())
    weight = counts(data.draw, len(y)) * 0.7
    model = fit(builder, X, y, max_bins, sample_weight=weight, smoothing=smoothing)
    stored = pb.certificate(model)
    assert stored == model.record.certificate[-1]
    recomputed = pb.certificate(model, X, y, sample_weight=weight)
    assert recomputed == pytest.approx(stored, rel=1e-9)
    score = decision(model, X)
    assert stored == pytest.approx(np.average(np.exp(-score * y), weights=weight), rel=1e-9)
    error = np.average(pb.predict(model, X) != y, weights=weight)
    assert stored >= error - 1e-12
    assert model.record.certificate[0] == (1 if model.n_nodes else stored)
    if smoothing == 0 and builder != "symmetric":
        assert (np.diff(model.record.certificate) <= 1e-12).all()


@pytest.mark.parametrize("builder", TREES)
@searches
@bounded
@given(data=st.data())
def test_votes_telescope(builder, max_bins, data):
    """Without smoothing the score of a leaf is half the log odds of its rows."""
    X, y = data.draw(problems(max_rows=40))
    weight = counts(data.draw, len(y), least=1) * 0.7
    model = fit(builder, X, y, max_bins, sample_weight=weight, smoothing=0.0)
    leaves = {}
    for i, row in enumerate(X):
        steps = path(model.feature, model.threshold, model.next, row)
        leaves.setdefault(steps[-1] if steps else None, []).append(i)
    score, bound = decision(model, X), 0.0
    for rows in leaves.values():
        plus, minus = (weight[rows][y[rows] == label].sum() for label in (1, -1))
        bound += 2 * np.sqrt(plus * minus) / weight.sum()
        if plus and minus:
            np.testing.assert_allclose(score[rows], 0.5 * np.log(plus / minus), atol=1e-9)
        else:  # the vote of a pure leaf would be infinite
            assert (score[rows] * (1 if plus else -1) > 9).all()
    assert pb.certificate(model) == pytest.approx(bound, abs=1e-7)


@builders
@searches
@bounded
@given(data=st.data())
def test_inputs_are_left_alone(builder, max_bins, data):
    X, y = data.draw(problems())
    weight = counts(data.draw, len(y)) * 0.7
    before = [a.copy() for a in (X, y, weight)]
    for array in (X, y, weight):
        array.setflags(write=False)
    model = fit(builder, X, y, max_bins, sample_weight=weight)
    pb.predict_proba(model, X)
    pb.certificate(model, X, y, sample_weight=weight)
    pb.prediction_cost(model, X, unit="features")
    list(pb.staged_decision_function(model, X))
    for array, copy in zip((X, y, weight), before, strict=True):
        assert array.tobytes() == copy.tobytes()
    for name in ("feature", "threshold", "next", "vote", "classes"):
        assert not getattr(model, name).flags.writeable


@builders
@searches
@bounded
@given(data=st.data())
def test_layout_and_dtype_do_not_matter(builder, max_bins, data):
    X, y = data.draw(problems())
    weight = counts(data.draw, len(y)) * 0.7
    model = fit(builder, X, y, max_bins, sample_weight=weight)
    strided = np.full((2 * len(X), 3 * X.shape[1]), np.nan)
    strided[::2, ::3] = X
    forms = [
        np.asfortranarray(X),
        strided[::2, ::3],
        X[::-1].copy()[::-1],
        X.astype(np.float32),
        X.astype(">f8"),
        X.tolist(),
    ]
    for form in forms:
        assert_identical(model, fit(builder, form, y, max_bins, sample_weight=weight))
        assert decision(model, form).tobytes() == decision(model, X).tobytes()
    doubled = np.repeat(weight, 2)[::2], np.repeat(y, 2)[::2]
    assert_identical(model, fit(builder, X, doubled[1], max_bins, sample_weight=doubled[0]))
    assert_identical(model, fit(builder, X, y.tolist(), max_bins, sample_weight=weight.tolist()))


@builders
@bounded
@given(data=st.data())
def test_stages(builder, data):
    X, y = data.draw(problems())
    model = fit(builder, X, y)
    stages = list(pb.staged_decision_function(model, X))
    assert len(stages) == model.n_nodes
    for t, score in enumerate(stages, start=1):
        np.testing.assert_allclose(score, decision(truncated(model, t), X), rtol=0, atol=1e-12)
    if stages:
        assert stages[-1].tobytes() == decision(model, X).tobytes()


@builders
@bounded
@given(data=st.data())
def test_label_values_do_not_matter(builder, data):
    X, y = data.draw(problems())
    model = fit(builder, X, y)
    named = fit(builder, X, np.where(y > 0, "spam", "ham"))
    assert named.classes.tolist() == ["ham", "spam"]
    assert decision(model, X).tobytes() == decision(named, X).tobytes()
    answers = pb.predict(named, X)
    np.testing.assert_array_equal(answers, np.where(decision(model, X) > 0, "spam", "ham"))
    probability = pb.predict_proba(named, X)
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-15)
    margin = 2 * decision(model, X) / getattr(model, "temperature", 1.0)
    np.testing.assert_allclose(probability[:, 1], 1 / (1 + np.exp(-margin)))
