"""ProbitBoost: the twin, published numbers, the safeguard, files, extreme and bad input."""

from __future__ import annotations

import json
import os
import pickle
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from reference import probit as exact
from reference.probitboost import boost, boost_leaf, ratio_and_excess, risk
from scipy.special import ndtr, ndtri

import pboost as pb
from pboost._core import probit

ROOT = Path(__file__).parents[2]
GOLDEN = Path(os.environ.get("PBOOST_GOLDEN", ROOT / ".." / "shared" / "golden"))
needs_golden = pytest.mark.skipif(
    not (GOLDEN / "probitboost.json").exists(), reason="no published numbers: set PBOOST_GOLDEN"
)


def problem(n=80, d=4, seed=0):
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, d)) * 10.0 ** r.integers(-3, 3, d) + r.normal(size=d)
    score = (X - X.mean(axis=0)) / X.std(axis=0) @ r.normal(size=d)
    return X, (score + r.normal(size=n) > 0), r.uniform(0.1, 3, n)


def leaves(X, groups, label, weight, n_classes, steps, tol=0.0, safeguard=False):
    """Return coefficients and steps taken of the leaves, given as lists of rows."""
    models = 1 if n_classes == 2 else n_classes
    coefficient = np.full((len(groups), models, 1 + X.shape[1]), np.nan)
    taken = np.full((len(groups), models), -9, dtype=np.int32)
    probit.boost_leaves(
        X,
        np.concatenate(groups).astype(np.int32),
        np.cumsum([0, *map(len, groups)]).astype(np.int32),
        label.astype(np.int32),
        weight,
        n_classes,
        steps,
        tol,
        safeguard,
        coefficient,
        taken,
    )
    return coefficient, taken


# The twin


@pytest.mark.parametrize("safeguard", [False, True])
@pytest.mark.parametrize("tol", [None, 5e-2])
@pytest.mark.parametrize("seed", range(4))
def test_builder_equals_the_twin(seed, tol, safeguard):
    X, y, weight = problem(seed=seed)
    model = pb.fit_probitboost(
        X, y, max_iter=30, tol=tol, safeguard=safeguard, sample_weight=weight
    )
    b, slopes, chosen, lengths, risks = boost(X, np.where(y, 1.0, -1.0), weight, 30, tol, safeguard)
    assert model.feature.tolist() == chosen
    assert model.length.tolist() == lengths
    np.testing.assert_allclose(model.slopes, slopes, rtol=1e-9)
    np.testing.assert_allclose(model.intercept, b, rtol=1e-9)
    np.testing.assert_allclose(model.risk, risks, rtol=1e-11)
    assert (len(model) < 30) == (tol is not None)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_leaves_equal_the_twin(n_classes, dtype):
    r = np.random.default_rng(n_classes)
    n = 700
    X = r.normal(size=(2 * n, 9)).astype(dtype)[::2, ::-2]  # strides of either sign
    label = np.digitize(X[:, 0] + r.normal(size=n), np.linspace(-1, 1, n_classes - 1))
    weight = r.uniform(0.1, 3, n)
    order = r.permutation(n)
    groups = [order[:300], order[300:309], order[309:340], order[340:]]
    groups[2] = groups[2][label[groups[2]] == 1]  # of one class
    coefficient, taken = leaves(X, groups, label, weight, n_classes, 12)
    for leaf, rows in enumerate(groups):
        expected, steps = boost_leaf(
            X[rows].astype(float), label[rows], weight[rows], n_classes, 12
        )
        assert taken[leaf].tolist() == steps.tolist()
        np.testing.assert_allclose(coefficient[leaf], expected, rtol=1e-8, atol=1e-8)
    assert (coefficient[2] == 0).all()
    assert -1 in taken[2]


def test_ranges_of_leaves():
    X, y, weight = problem(200)
    rows, starts = np.arange(200, dtype=np.int32), np.array([0, 50, 120, 200], dtype=np.int32)
    full, _ = leaves(X, [np.arange(50), np.arange(50, 120), np.arange(120, 200)], y, weight, 2, 9)
    actual, taken = np.zeros((3, 1, 5)), np.zeros((3, 1), dtype=np.int32)
    for first, last in [(2, 3), (0, 2)]:
        probit.boost_leaves(
            X,
            rows,
            starts,
            y.astype(np.int32),
            weight,
            2,
            9,
            0.0,
            False,
            actual,
            taken,
            None,
            first,
            last,
        )
    np.testing.assert_array_equal(actual, full)
    with pytest.raises(ValueError, match="different sizes"):
        probit.boost_leaves(
            X, rows, starts, y.astype(np.int32), weight, 3, 9, 0.0, False, actual, taken
        )


def test_processors_agree():
    """Registers of all widths give the same bits."""
    X, y, weight = problem(1003, d=7, seed=5)
    actual = []
    try:
        for level in (0, 1, 2):
            probit.use_simd_level(level)
            probit.use_simd_level(level)
            model = pb.fit_probitboost(X, y, sample_weight=weight)
            actual.append(
                (model.slopes.tobytes(), model.risk.tobytes(), pb.predict_proba(model, X))
            )
    finally:
        probit.use_simd_level(2)
        probit.use_simd_level(2)
    for slopes, risks, share in actual[1:]:
        assert (slopes, risks) == actual[0][:2]
        np.testing.assert_array_equal(share, actual[0][2])


# Published numbers


@needs_golden
@pytest.mark.parametrize("name", ["overlap", "scaled", "uniform"])
def test_published_path(name):
    golden = json.loads((GOLDEN / "probitboost.json").read_text())["sets"][name]
    data = np.genfromtxt(GOLDEN / golden["data"], delimiter=",", names=True)
    X = np.column_stack([data[c] for c in ("x1", "x2", "x3")])
    y, weight = data["y01"], data["weight"]
    for steps in (1, 2, 5, 20, 100):
        model = pb.fit_probitboost(X, y, max_iter=steps, safeguard=False, sample_weight=weight)
        expected = golden["after"][str(steps)]["fifty_digit"]
        np.testing.assert_allclose(model.intercept, expected["intercept"], rtol=1e-12)
        np.testing.assert_allclose(model.slopes, expected["slopes"], rtol=1e-12)
    assert model.feature.tolist() == golden["chosen_feature_fifty_digit"]
    np.testing.assert_allclose(model.risk, golden["risk_numpy"], rtol=1e-12)
    early = golden["reference_default_tol"]
    model = pb.fit_probitboost(X, y, tol=early["tol"], safeguard=False, sample_weight=weight)
    assert len(model) == early["iterations"]
    np.testing.assert_allclose(model.slopes, early["slopes"], rtol=1e-10)


@pytest.mark.full
def test_gradient_weight_and_response():
    """Against 60 digits, from u = -1e6 to 37."""
    u = np.concatenate([-np.logspace(6, -3, 60), np.linspace(-60, 37, 195), [0.0]])
    expected = np.array([exact.probit(float(v)) for v in u])
    r, excess = np.empty_like(u), np.empty_like(u)
    probit.ratios(u, r)
    probit.excesses(u, excess)
    np.testing.assert_allclose(r, expected[:, 1], rtol=1e-14)
    np.testing.assert_allclose(r * excess, expected[:, 1] * expected[:, 2], rtol=1e-14)
    np.testing.assert_allclose(1 / excess, 1 / expected[:, 2], rtol=1e-14)
    for mine, twin in zip((r, excess), ratio_and_excess(u), strict=True):
        np.testing.assert_allclose(twin, mine, rtol=3e-12)


# The safeguard


def heavy(seed):
    r = np.random.default_rng(seed)
    n, d = int(r.integers(5, 30)), int(r.integers(1, 4))
    X = r.standard_t(1.5, size=(n, d))
    y = r.random(n) < 0.5
    y[:2] = [False, True]
    return X, y, r.exponential(size=n) + 1e-3


@pytest.mark.full
def test_risk_never_rises_with_the_safeguard():
    halved = 0
    for seed in range(400):
        X, y, weight = heavy(seed)
        model = pb.fit_probitboost(X, y, max_iter=40, sample_weight=weight)
        assert (np.diff(model.risk) <= 1e-14 * model.risk[:-1]).all(), seed
        f = list(pb.staged_decision_function(model, X))[len(model) // 2 - 1]
        now = risk(f, np.where(y, 1.0, -1.0), weight)
        np.testing.assert_allclose(model.risk[len(model) // 2], now, rtol=1e-6, atol=1e-9)
        halved += (model.length < 1).any()
    assert halved > 5


@pytest.mark.full
def test_full_steps_can_raise_the_risk():
    """The decrease claimed in the source for full steps is not one."""
    worst = 0.0
    for seed in range(400):
        X, y, weight = heavy(seed)
        model = pb.fit_probitboost(X, y, max_iter=40, sample_weight=weight, safeguard=False)
        worst = max(worst, float((model.risk[1:] / model.risk[:-1]).max()))
        safe = pb.fit_probitboost(X, y, max_iter=40, sample_weight=weight)
        if (np.diff(model.risk) < 0).all():
            np.testing.assert_array_equal(safe.slopes, model.slopes)
    assert worst > 2


def test_tol_counts_weights_as_given():
    X, y, weight = problem()
    few = pb.fit_probitboost(X, y, tol=1e-2, sample_weight=weight / 100)
    many = pb.fit_probitboost(X, y, tol=1e-2, sample_weight=weight)
    assert len(few) < len(many) < 100
    assert many.stop_reason == "the deviance changed by at most tol"
    change = 2 * weight.sum() * np.abs(np.diff(many.risk))
    assert change[-1] <= 1e-2 < change[:-1].min()


# The model


def test_functions_of_the_model(tmp_path):
    X, y, weight = problem()
    model = pb.fit_probitboost(X, np.where(y, "yes", "no"), max_iter=25, sample_weight=weight)
    f = pb.decision_function(model, X)
    np.testing.assert_allclose(f, model.intercept + X @ model.slopes, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(pb.predict_proba(model, X), np.column_stack([ndtr(-f), ndtr(f)]))
    stages = list(pb.staged_decision_function(model, X))
    assert len(stages) == len(model) == 25
    for steps in (1, 7, 25):
        shorter = pb.fit_probitboost(X, y, max_iter=steps, sample_weight=weight)
        np.testing.assert_allclose(pb.decision_function(shorter, X), stages[steps - 1], atol=1e-9)
    assert model.n_nodes == 25
    assert repr(model).startswith("<fit_probitboost: 25 steps, 4 features, risk 0.")
    assert pb.describe(model).splitlines()[-1].startswith("P('yes') = Phi(f), f = ")
    pb.save(model, tmp_path / "m.npz")
    for copy in (pb.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
        for name in ("slopes", "feature", "step", "length", "risk", "classes"):
            np.testing.assert_array_equal(getattr(copy, name), getattr(model, name))
        for name in ("intercept", "settings", "stop_reason", "n_features", "feature_names"):
            assert getattr(copy, name) == getattr(model, name)
    with pytest.raises(ValueError, match="read-only"):
        model.slopes[0] = 1


def test_frames():
    pandas = pytest.importorskip("pandas")
    X, y, _ = problem(d=2)
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = pb.fit_probitboost(frame, y, max_iter=10)
    assert "*a" in pb.describe(model)
    np.testing.assert_array_equal(
        pb.predict_proba(model, frame[["b", "a"]]), pb.predict_proba(model, frame)
    )
    with pytest.raises(ValueError, match="missing: b"):
        pb.predict(model, frame[["a"]])


# Extreme data


def test_scale_of_columns():
    """Powers of two change nothing but the slopes; other factors only by rounding."""
    X, y, _ = problem(d=3)
    plain = pb.fit_probitboost(X, y, max_iter=40)
    factor = np.array([2.0**490, 2.0**-490, 1.0])
    model = pb.fit_probitboost(X * factor, y, max_iter=40)
    np.testing.assert_array_equal(model.slopes * factor, plain.slopes)
    np.testing.assert_array_equal(model.risk, plain.risk)
    factor = np.array([1e150, 1e-150, 1e300])
    model = pb.fit_probitboost(X * factor, y, max_iter=40)
    np.testing.assert_allclose(model.slopes * factor, plain.slopes, rtol=1e-10)
    np.testing.assert_allclose(
        pb.predict_proba(model, X * factor), pb.predict_proba(plain, X), rtol=1e-9
    )


def test_far_from_0():
    X, y, _ = problem(d=2)
    near = pb.fit_probitboost(X, y, max_iter=40)
    far = pb.fit_probitboost(X + 1e6 * X.std(axis=0), y, max_iter=40)
    np.testing.assert_allclose(far.slopes, near.slopes, rtol=1e-7)


@pytest.mark.parametrize("scale", [1e-308, 1e-160, 1e160, 1e300])
def test_scale_of_weights(scale):
    X, y, weight = problem()
    plain = pb.fit_probitboost(X, y, max_iter=30, sample_weight=weight)
    model = pb.fit_probitboost(X, y, max_iter=30, sample_weight=weight * scale)
    np.testing.assert_allclose(model.slopes, plain.slopes, rtol=1e-9)


def test_equal_columns_and_constants():
    X, y, _ = problem(d=2)
    wide = np.column_stack([np.full(80, 7.0), X[:, :1], X, -2 * X, np.zeros(80)])
    model = pb.fit_probitboost(wide, y, max_iter=30)
    plain = pb.fit_probitboost(X, y, max_iter=30)
    assert set(model.feature.tolist()) == {1, 3}
    np.testing.assert_allclose(model.slopes[[1, 3]], plain.slopes, rtol=1e-12)
    assert np.count_nonzero(model.slopes) == 2


def test_constant_columns_only():
    y, weight = np.arange(40) % 4 == 0, np.linspace(1, 2, 40)
    model = pb.fit_probitboost(np.full((40, 2), 3.0), y, sample_weight=weight)
    assert set(model.feature.tolist()) == {-1}
    assert model.slopes.tolist() == [0, 0]
    share = weight[y].sum() / weight.sum()
    np.testing.assert_allclose(model.intercept, ndtri(share), rtol=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("safeguard", [False, True])
@pytest.mark.parametrize("n", [2, 8, 51, 300])
def test_separable_rows(n, safeguard):
    """f grows without end: beyond u = 38 all weights are below the least number."""
    x = np.linspace(-1, 1, n)
    model = pb.fit_probitboost(x[:, None], x > 0, max_iter=3000, safeguard=safeguard)
    assert len(model) == 3000
    f = pb.decision_function(model, x[:, None])
    assert (np.abs(f) > 38).all()
    assert np.isfinite(f).all()
    assert (np.diff(model.risk) <= 0).all()
    np.testing.assert_array_equal(pb.predict(model, x[:, None]), x > 0)
    short = pb.fit_probitboost(x[:, None], x > 0, max_iter=60, safeguard=False)
    twin = boost(x[:, None], np.where(x > 0, 1.0, -1.0), np.ones(n), 60)
    np.testing.assert_allclose(short.slopes, twin[1], rtol=1e-7)


def test_an_outlier_counts():
    """A row that is wrong by 50 has the weight and response of the formulas."""
    r = np.random.default_rng(1)
    x = r.normal(size=60)
    y = x > 0
    x[0], y[0] = 50.0, False
    model = pb.fit_probitboost(x[:, None], y, max_iter=50, safeguard=False)
    twin = boost(x[:, None], np.where(y, 1.0, -1.0), np.ones(60), 50)
    np.testing.assert_allclose(model.slopes, twin[1], rtol=1e-9)


def test_rows_of_weight_0_do_not_count():
    X, y, weight = problem()
    weight[::3] = 0
    model = pb.fit_probitboost(X, y, max_iter=20, sample_weight=weight)
    kept = weight > 0
    same = pb.fit_probitboost(X[kept], y[kept], max_iter=20, sample_weight=weight[kept])
    np.testing.assert_array_equal(model.slopes, same.slopes)


@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
@pytest.mark.clock
def test_ctrl_c_is_noticed_inside():
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    rows = np.arange(12)
    with pytest.raises(KeyboardInterrupt):
        pb.fit_probitboost(rows[:, None], rows % 2, max_iter=5_000_000, safeguard=False)


# Bad input


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_iter": 0}, ValueError, "max_iter: expected an integer from 1"),
        ({"max_iter": 2.0}, TypeError, "max_iter: expected an integer"),
        ({"tol": -1e-9}, ValueError, "tol: expected a number in"),
        ({"tol": np.nan}, ValueError, "tol: expected a number in"),
        ({"safeguard": 1}, TypeError, "safeguard: expected True or False"),
        ({"sample_weight": -np.ones(80)}, ValueError, "sample_weight: expected finite numbers"),
        ({"sample_weight": np.zeros(80)}, ValueError, "sample_weight: expected at least one"),
    ],
)
def test_bad_options(options, error, message):
    X, y, _ = problem()
    with pytest.raises(error, match=message):
        pb.fit_probitboost(X, y, **options)


def test_bad_data():
    X, y, _ = problem()
    with pytest.raises(ValueError, match=r"got 3: .*fit_one_vs_rest\(pb.fit_probitboost, X, y\)"):
        pb.fit_probitboost(X, np.arange(80) % 3)
    with pytest.raises(ValueError, match="got only"):
        pb.fit_probitboost(X, np.ones(80))
    with pytest.raises(
        ValueError, match="sample_weight: expected positive weight for both classes"
    ):
        pb.fit_probitboost(X, y, sample_weight=y.astype(float))
    with pytest.raises(ValueError, match="X: expected finite"):
        pb.fit_probitboost(np.where(X > 0, np.inf, X), y)
    with pytest.raises(ValueError, match="column 1 varies too little"):
        pb.fit_probitboost(np.column_stack([X[:, 0] * 0, y * 5e-324]), y)
