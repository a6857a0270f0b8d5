"""AdaBoostR against its twin, and what it has in common with AdaBoost."""

import numpy as np
import pytest
from compare import assert_identical
from reference.generic import columns, fit_real, stumps

import pboost as pb


def problem(seed, n=90, d=4):
    rng = np.random.default_rng([41, seed])
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, d) + rng.normal(size=d)
    shift = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.where(shift @ [1, -1, 0.5, 0] + rng.normal(size=n) > 0.3, 1, -1)
    return X, y, rng.uniform(0.5, 1, n) if seed % 2 else None


OPTIONS = [{"smoothing": 0.0}, {"smoothing": 0.01, "learning_rate": 0.4}]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("center", ["mean", "midrange", "zero"])
@pytest.mark.parametrize("seed", range(4))
def test_columns_against_the_twin(center, seed, options):
    X, y, w = problem(seed)
    X[:, 3] = 7.0 if seed > 1 else X[:, 3]  # a constant column
    middle = {
        "mean": np.average(X, axis=0, weights=w),
        "midrange": (X.min(axis=0) + X.max(axis=0)) / 2,
        "zero": np.zeros(4),
    }[center]
    middle[3] = 7.0 if seed > 1 and center == "mean" else middle[3]  # not but for rounding
    weak = pb.weak.feature(center, include_constant=seed != 3)
    model = pb.fit_real_adaboost(
        X, y, n_estimators=30, weak_learner=weak, sample_weight=w, **options
    )
    twin = fit_real(
        X, y, n_estimators=30, answers=columns(X, y, middle, seed != 3), sample_weight=w, **options
    )
    assert model.feature.tolist() == twin.feature
    np.testing.assert_allclose(model.mu, twin.mu, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.step, twin.alpha, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.record.certificate, twin.certificate, rtol=1e-9)
    np.testing.assert_allclose(pb.decision_function(model, X), twin.H, rtol=0, atol=1e-9)
    np.testing.assert_allclose(X @ model.coefficient + model.intercept, twin.H, atol=1e-9)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("confidence", ["share", "log_odds", "sign"])
@pytest.mark.parametrize("seed", range(4))
def test_stumps_against_the_twin(confidence, seed, options):
    X, y, w = problem(seed)
    model = pb.fit_real_adaboost(
        X, y, n_estimators=25, answer_scale=confidence, sample_weight=w, **options
    )
    answers = stumps(X, y, confidence, options["smoothing"])
    twin = fit_real(X, y, n_estimators=25, answers=answers, sample_weight=w, **options)
    assert model.feature.tolist() == twin.feature
    np.testing.assert_allclose(model.record.certificate, twin.certificate, rtol=1e-9)
    np.testing.assert_allclose(pb.decision_function(model, X), twin.H, rtol=0, atol=1e-9)
    assert model.is_chain


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_signs_are_discrete_adaboost(seed, options):
    X, y, w = problem(seed, 150)
    options = options | {"n_estimators": 50, "sample_weight": w}
    model = pb.fit_real_adaboost(X, y, answer_scale="sign", **options)
    discrete = pb.fit_adaboost(X, y, votes="symmetric", **options)
    np.testing.assert_array_equal(model.feature, discrete.feature)
    np.testing.assert_array_equal(model.threshold, discrete.threshold)
    np.testing.assert_allclose(model.vote, discrete.vote, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        model.record.certificate, discrete.record.certificate, rtol=0, atol=1e-12
    )


def lines(X, y, weight, rng):
    assert not X.flags.writeable
    assert weight.sum() == pytest.approx(1)
    assert set(np.unique(y)) == {-1.0, 1.0}
    slope = rng.normal(size=X.shape[1])
    return lambda Z: np.tanh(Z @ slope)


def fits():
    yield "columns", {"weak_learner": pb.weak.feature()}
    yield "stumps", {}
    yield "log_odds", {"answer_scale": "log_odds"}
    yield "functions", {"weak_learner": pb.weak.hypothesis(lines), "rng": 3}
    yield "bounded", {"weak_learner": pb.weak.hypothesis(lines, max_abs=1.0), "rng": 3}


every = pytest.mark.parametrize("options", [o for _, o in fits()], ids=[n for n, _ in fits()])


@every
def test_functions_of_a_model(options):
    X, y, w = problem(1)
    labels = np.where(y > 0, "yes", "no")
    records = []
    model = pb.fit_real_adaboost(
        X,
        labels,
        n_estimators=20,
        sample_weight=w,
        callback=lambda _, r: records.append(r),
        **options,
    )
    assert model.n_nodes == len(records) == 20
    score = pb.decision_function(model, X)
    np.testing.assert_array_equal(pb.predict(model, X), np.where(score > 0, "yes", "no"))
    cooled = score / getattr(model, "temperature", 1.0)
    np.testing.assert_allclose(pb.predict_proba(model, X)[:, 1], 1 / (1 + np.exp(-2 * cooled)))
    stages = list(pb.staged_decision_function(model, X))
    np.testing.assert_allclose(stages[-1], score, rtol=0, atol=1e-12)
    for C, stage in zip(model.record.certificate[1:], stages, strict=True):
        assert pytest.approx(np.average(np.exp(-y * stage), weights=w)) == C
    assert pb.certificate(model) == pytest.approx(pb.certificate(model, X, labels, sample_weight=w))
    assert np.average(pb.predict(model, X) != labels, weights=w) <= pb.certificate(model)
    np.testing.assert_allclose([r.certificate for r in records], model.record.certificate[1:])
    assert all(r.certificate <= r.bound * (1 + 1e-12) for r in records)
    np.testing.assert_allclose(pb.prediction_cost(model, X), model.record.cost[-1])
    first_scores = pb.decision_function(model, X[:1].astype(np.float32))
    np.testing.assert_allclose(first_scores, score[:1], rtol=0, atol=0.5)
    text = pb.describe(model)
    assert text.startswith("fit_real_adaboost: 20 ")
    assert "labels 'no' (-) and 'yes' (+)" in text
    result = pb.cross_validate(
        lambda *a, **k: pb.fit_real_adaboost(*a, n_estimators=5, **options, **k),
        X,
        labels,
        cv=3,
        rng=0,
    )
    assert result.error.shape == (3,)


@every
def test_the_bound_is_the_product_of_shrinkages(options):
    X, y, _ = problem(2)
    records = []
    pb.fit_real_adaboost(
        X, y, n_estimators=15, smoothing=0, callback=lambda _, r: records.append(r), **options
    )
    product = np.cumprod([np.sqrt(1 - r.mu**2) for r in records])
    np.testing.assert_allclose([r.bound for r in records], product, rtol=1e-9)
    assert all(abs(r.mu) > 1e-6 for r in records)


@every
def test_weights_are_copies(options):
    rng = np.random.default_rng(5)
    X, y, _ = problem(2, 40)
    copies = np.append([1, 2], rng.integers(0, 4, 38))
    y[:2] = -1, 1
    repeated = np.repeat(np.arange(40), copies)
    weighted = pb.fit_real_adaboost(X, y, n_estimators=12, sample_weight=copies, **options)
    long = pb.fit_real_adaboost(X[repeated], y[repeated], n_estimators=12, **options)
    for model in (weighted, long):
        assert model.n_nodes == 12
    np.testing.assert_allclose(
        pb.decision_function(weighted, X), pb.decision_function(long, X), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize(
    "options", [{"weak_learner": pb.weak.feature()}, {}], ids=["columns", "stumps"]
)
def test_threads_do_not_matter(options):
    X, y, _ = problem(0, 4000)
    fits = [pb.fit_real_adaboost(X, y, n_estimators=20, n_threads=k, **options) for k in (1, 2, 3)]
    first = pb.decision_function(fits[0], X)
    for model in fits[1:]:
        np.testing.assert_array_equal(pb.decision_function(model, X), first)
        np.testing.assert_array_equal(model.record.certificate, fits[0].record.certificate)


def test_sorted_columns_serve():
    X, y, _ = problem(0)
    columns = pb.data.sort_columns(X)
    for weak in (pb.weak.feature(), pb.weak.stump()):
        models = [
            pb.fit_real_adaboost(Z, y, n_estimators=9, weak_learner=weak) for Z in (X, columns)
        ]
        np.testing.assert_array_equal(*[pb.decision_function(m, X) for m in models])
    with pytest.raises(TypeError, match="BinnedColumns"):
        pb.fit_real_adaboost(
            pb.data.bin_columns(X), y, n_estimators=3, weak_learner=pb.weak.feature()
        )


def test_a_perfect_column_ends_it():
    X, y = np.array([[-1.0], [-1.0], [1.0]]), [0, 0, 1]
    for options in ({"weak_learner": pb.weak.feature("zero")}, {}, {"answer_scale": "sign"}):
        model = pb.fit_real_adaboost(X, y, n_estimators=9, smoothing=0, **options)
        assert model.n_nodes == 1
        assert "certificate is 0" in model.record.stop_reason
        assert 0 < pb.certificate(model) < 1e-7
        np.testing.assert_array_equal(pb.predict(model, X), y)


def test_nothing_to_learn():
    X, y = np.ones((5, 2)), np.array([1, 1, 1, 1, -1])
    for weak in (pb.weak.feature(include_constant=False), pb.weak.stump(), zero()):
        model = pb.fit_real_adaboost(X, y, n_estimators=9, smoothing=0, weak_learner=weak)
        assert model.n_nodes == 0
        assert model.bias == pytest.approx(0.5 * np.log(4))
        assert model.record.certificate.tolist() == pytest.approx([0.8])
        assert pb.decision_function(model, X).tolist() == pytest.approx([model.bias] * 5)
        assert list(pb.staged_decision_function(model, X)) == []
    constant = pb.fit_real_adaboost(
        X, y, n_estimators=9, smoothing=0, weak_learner=pb.weak.feature()
    )
    assert constant.feature.tolist() == [-1]
    assert constant.intercept == pytest.approx(0.5 * np.log(4))
    assert "no hypothesis is left" in constant.record.stop_reason


def zero():
    return pb.weak.hypothesis(lambda X, y, w, rng: lambda Z: np.zeros(len(Z)))


def test_linear_models_are_saved(tmp_path):
    X, y, _ = problem(3)
    model = pb.fit_real_adaboost(X, y, n_estimators=12, weak_learner=pb.weak.feature("midrange"))
    pb.save(model, tmp_path / "model")
    loaded = pb.load(tmp_path / "model")
    assert isinstance(loaded, pb.models.LinearModel)
    assert repr(loaded) == repr(model)
    assert loaded.settings == model.settings
    for name in ("feature", "step", "mu", "center", "scale", "classes"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
        with pytest.raises(ValueError, match=r"read-only|WRITEABLE"):
            getattr(loaded, name)[...] = 0
    stumps = pb.fit_real_adaboost(X, y, n_estimators=12)
    pb.save(stumps, tmp_path / "stumps")
    assert_identical(pb.load(tmp_path / "stumps"), stumps)


def test_functions_are_not_saved(tmp_path):
    X, y, _ = problem(3)
    model = pb.fit_real_adaboost(
        X, y, n_estimators=2, weak_learner=pb.weak.hypothesis(lines), rng=0
    )
    with pytest.raises(TypeError, match="contains functions"):
        pb.save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    with pytest.raises(TypeError, match="FunctionEnsemble"):
        pb.inspection.reach(model, X[:1])
    for ask in (lambda: pb.explain(model, X[:1]), lambda: pb.feature_importances(model)):
        with pytest.raises(
            NotImplementedError, match="a FunctionEnsemble does not record which features"
        ):
            ask()


def bad(answer):
    def train(X, y, w, rng):
        train.calls += 1
        good = lambda Z: Z[:, 0] + 0.5  # noqa: E731
        return good if train.calls < 3 else answer

    train.calls = 0
    return pb.weak.hypothesis(train)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda Z: np.where(np.arange(len(Z)) == 7, np.nan, 1.0), "round 3.*nan.*row 7"),
        (lambda Z: np.full(len(Z), -np.inf), "round 3.*inf.*row 0"),
        (lambda Z: np.ones(len(Z) - 1), "round 3.*90 numbers"),
        (lambda Z: np.ones((len(Z), 2)), "round 3.*90 numbers"),
        (lambda Z: ["a"] * len(Z), "round 3.*real numbers"),
        (lambda Z: 1j * Z[:, 0], "round 3.*real numbers"),
        (None, "round 3.*function of X"),
    ],
)
def test_bad_hypotheses(answer, message):
    X, y, _ = problem(0)
    with pytest.raises((ValueError, TypeError), match=message):
        pb.fit_real_adaboost(X, y, n_estimators=5, weak_learner=bad(answer))


def test_hypotheses_that_fail_later():
    X, y, _ = problem(0)
    model = pb.fit_real_adaboost(
        X,
        y,
        n_estimators=1,
        weak_learner=pb.weak.hypothesis(lambda *_: lambda Z: np.log(Z[:, 0] ** 2 + 1)),
    )
    broken = type(model)((lambda Z: Z[:, 0] * np.nan,), *model.__reduce__()[1][1:])
    with pytest.raises(ValueError, match=r"round 1.*nan"):
        pb.predict(broken, X)


def test_broken_promises():
    X, y, _ = problem(0)
    weak = pb.weak.hypothesis(lambda *_: lambda Z: 2 * np.tanh(Z[:, 0]), max_abs=1.0)
    with pytest.raises(ValueError, match=r"round 1.*max_abs=1.0"):
        pb.fit_real_adaboost(X, y, n_estimators=5, weak_learner=weak)


def test_rows_far_away():
    X, y, _ = problem(0)
    model = pb.fit_real_adaboost(X / 1e200, y, n_estimators=5, weak_learner=pb.weak.feature())
    with pytest.raises(ValueError, match=r"row 0.*too far"):
        pb.predict(model, np.full((1, 4), 1.7e308))
    with pytest.raises(ValueError, match=r"range.*column 1"):
        pb.fit_real_adaboost(
            [[0, -1e308], [1, 1e308]], [0, 1], n_estimators=1, weak_learner=pb.weak.feature()
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_estimators": 0}, "n_estimators"),
        ({"weak_learner": "stump"}, "weak_learner"),
        ({"answer_scale": "loud"}, "answer_scale"),
        ({"answer_scale": "sign", "weak_learner": pb.weak.feature()}, "answer_scale"),
        ({"smoothing": 2}, "smoothing"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"n_threads": 0, "weak_learner": pb.weak.feature()}, "n_threads"),
        ({"n_threads": 0, "weak_learner": pb.weak.hypothesis(lines)}, "n_threads"),
        ({"callback": 3}, "callback"),
        ({"rng": "a"}, "rng"),
        ({"sample_weight": np.zeros(90), "weak_learner": pb.weak.feature()}, "sample_weight"),
    ],
)
def test_bad_options(options, message):
    X, y, _ = problem(0)
    with pytest.raises((ValueError, TypeError), match=message):
        pb.fit_real_adaboost(X, y, **({"n_estimators": 3} | options))


def test_weights_of_one_class():
    X, y, _ = problem(0)
    for weak in (pb.weak.feature(), pb.weak.stump()):
        with pytest.raises(ValueError, match="both classes"):
            pb.fit_real_adaboost(
                X, y, n_estimators=3, weak_learner=weak, sample_weight=(y > 0).astype(float)
            )


@pytest.mark.parametrize("weak", [pb.weak.feature(), pb.weak.hypothesis(lines)])
def test_other_builders_refuse_real_answers(weak):
    X, y, _ = problem(0)
    with pytest.raises(ValueError, match="fit_real_adaboost"):
        pb.fit_adaboost(X, y, n_estimators=3, weak_learner=weak)
    with pytest.raises(ValueError, match="fit_real_adaboost"):
        pb.fit_boosted_tree(X, y, max_nodes=3, weak_learner=weak)


@pytest.mark.parametrize(
    "call",
    [
        lambda: pb.weak.feature("median"),
        lambda: pb.weak.feature(include_constant=1),
        lambda: pb.weak.hypothesis(3),
        lambda: pb.weak.hypothesis(lines, max_abs=-1),
    ],
)
def test_bad_learners(call):
    with pytest.raises((ValueError, TypeError), match=r"center|constant|train|max_abs"):
        call()


def test_a_callback_stops():
    X, y, _ = problem(0)
    for options in (
        {"weak_learner": pb.weak.feature()},
        {},
        {"weak_learner": pb.weak.hypothesis(lines)},
    ):
        model = pb.fit_real_adaboost(
            X, y, n_estimators=9, callback=lambda step, _: step == 4, **options
        )
        assert model.n_nodes == 4
        assert model.record.stop_reason == "stopped by the callback"


@pytest.mark.parametrize("confidence", ["share", "log_odds", "sign"])
def test_projections_are_boosted_as_columns_are(confidence):
    X, y, _ = problem(0)
    options = {"n_estimators": 12, "answer_scale": confidence}
    weak = pb.weak.affine(n_directions=20, seed=3)
    model = pb.fit_real_adaboost(X, y, weak_learner=weak, **options)
    Z = model.inputs.values(X)
    assert 1 < Z.shape[1] < 24
    on_columns = pb.fit_real_adaboost(Z, y, **options)
    # Fewer columns than directions, yet among them the best of each round.
    assert np.array_equal(model.vote, on_columns.vote)
    assert pb.certificate(model, X, y) == pytest.approx(pb.certificate(model), rel=1e-9)


def test_functions_with_two_sides_are_boosted_as_stumps_are():
    X, y, _ = problem(2)
    stumps_ = pb.fit_real_adaboost(X, y, n_estimators=8)
    tests = iter(zip(stumps_.feature.tolist(), stumps_.threshold.tolist(), strict=True))

    def train(X, y, weight, rng):
        feature, threshold = next(tests)
        return lambda X, rng: np.where(X[:, feature] > threshold, 1, -1)

    model = pb.fit_real_adaboost(X, y, n_estimators=8, weak_learner=pb.weak.oracle(train))
    assert np.array_equal(model.vote, stumps_.vote)
    assert np.array_equal(pb.decision_function(model, X), pb.decision_function(stumps_, X))


@pytest.mark.parametrize("weak", [pb.weak.feature(), pb.weak.hypothesis(lambda *_: None)])
def test_other_builders_refuse_hypotheses_without_exits(weak):
    X, y, _ = problem(0)
    fits = [
        lambda: pb.fit_adaboost(X, y, n_estimators=2, weak_learner=weak),
        lambda: pb.fit_boosted_tree(X, y, max_nodes=2, weak_learner=weak),
        lambda: pb.fit_matryoshka(X, y, shape=(2, 2), weak_learner=weak),
        lambda: pb.continue_fit(
            pb.fit_adaboost(X, y, n_estimators=2), X, y, n_estimators=2, weak_learner=weak
        ),
    ]
    for fit in fits:
        with pytest.raises(
            ValueError, match=r"^weak_learner: expected a weak learner with two exits"
        ):
            fit()


def test_what_speaks_of_nodes_or_errors_refuses_a_linear_model():
    X, y, _ = problem(0)
    model = pb.fit_real_adaboost(X, y, n_estimators=5, weak_learner=pb.weak.feature())
    with pytest.raises(TypeError, match="for truncate, got a LinearModel"):
        pb.models.truncate(model, 2)
    with pytest.raises(TypeError, match="for continue_fit, got a LinearModel"):
        pb.continue_fit(model, X, y, n_estimators=2)
    with pytest.raises(ValueError, match="sigma: expected None for a model"):
        pb.decision_function(model, X, route="expected", sigma=1.0)
    with pytest.raises(ValueError, match="sigma: expected None for a model"):
        pb.certificate(model, X, y, sigma=1.0)
    with pytest.raises(ValueError, match='sigma: expected None with route="hard"'):
        pb.decision_function(model, X, sigma=1.0)
