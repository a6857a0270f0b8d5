"""Margins, their errors and bounds, and curves of them."""

import math
from functools import partial

import numpy as np
import pytest
from reference.generic import generic_greedy

import pboost as pb

THETAS = np.linspace(-1, 1, 52)[1:-1]  # 50 values


def problem(seed=0, n=200):
    rng = np.random.default_rng([61, seed])
    X = rng.normal(size=(n, 3))
    y = np.where(X @ [1, -1, 0.5] + X[:, 0] * X[:, 1] + rng.normal(size=n) > 0, "b", "a")
    return X, y, rng.uniform(0.1, 1, n)


def random_walk(X, y, w, rng):
    slope = rng.normal(size=X.shape[1])
    return lambda Z: (Z @ slope) ** 3


FITS = {
    "discrete chain": partial(pb.fit_adaboost, n_estimators=30, votes="symmetric", smoothing=0),
    "chain": partial(pb.fit_adaboost, n_estimators=30),
    "tree": partial(pb.fit_boosted_tree, max_nodes=15, smoothing=0),
    "gini": partial(pb.fit_topdown_tree, max_nodes=15, impurity="gini", growth="breadth_first"),
    "matryoshka": partial(pb.fit_matryoshka, shape=(3, 4)),
    "stumps": partial(pb.fit_real_adaboost, n_estimators=30),
    "columns": partial(pb.fit_real_adaboost, n_estimators=30, weak_learner=pb.weak.feature()),
    "functions": partial(
        pb.fit_real_adaboost, n_estimators=30, weak_learner=pb.weak.hypothesis(random_walk), rng=0
    ),
}
every = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
scales = pytest.mark.parametrize("scale", ["half", "probability"])


@every
@scales
@pytest.mark.parametrize("weighted", [False, True])
def test_theorem_1(fit, scale, weighted):
    """The margin error is at most its bound, on the training rows and on any others."""
    X, y, w = problem()
    others = problem(1)
    w = w if weighted else None
    model = fit(X, y, sample_weight=w)
    for X_, y_ in ((X, y), others[:2]):
        error = pb.inspection.margin_error(model, X_, y_, THETAS, scale=scale, sample_weight=w)
        bound = pb.inspection.margin_bound(model, X_, y_, THETAS, scale=scale, sample_weight=w)
        assert error.shape == bound.shape == (50,)
        assert (error <= bound * (1 + 1e-12)).all()
        assert (np.diff(error) >= 0).all()
    assert pb.inspection.margin_bound(model, X, y, 0.0, sample_weight=w) == pytest.approx(
        pb.certificate(model), rel=1e-9
    )


def sides(model, X, signs):
    """Return the steps of a tree of constants: those of nodes, then of leaves."""
    arrives = pb.inspection.reach(model, X) > 0
    yield arrives[:, 0], np.full(len(X), 0.7)
    for node in range(model.n_nodes):
        above = X[:, model.feature[node]] > model.threshold[node]
        for side in (~above, above):
            yield arrives[:, node] & side, np.full(len(X), next(signs))


@pytest.mark.parametrize("kind", ["tree", "discrete chain", "functions"])
def test_which_quantity_of_a_model_the_theorem_is_about(kind):
    """The sum over paths of the source is the certificate, but for answers of many sizes."""
    X, y, w = problem()
    model = FITS[kind](X, y, sample_weight=w)
    sign = np.where(y == "b", 1, -1)
    if kind == "tree":
        sign[np.random.default_rng(1).random(len(y)) < 0.3] *= -1  # no leaf is pure
        y = np.where(sign > 0, "b", "a")
        model = pb.fit_boosted_tree(
            X,
            y,
            max_nodes=6,
            smoothing=0,
            weak_learner=pb.weak.stump(min_samples_leaf=30),
            sample_weight=w,
        )
        rng = np.random.default_rng(0)
        steps = list(sides(model, X, iter(rng.normal(size=100))))
        paths = generic_greedy(sign, w, steps)
        # The steps at the exits of nodes that are themselves split are those of the children.
        assert len(set(paths.H.round(9))) == model.n_nodes + 1 > 4
    elif kind == "discrete chain":
        votes = zip(model.feature, model.threshold, model.vote, strict=True)
        everywhere = np.ones(len(y), dtype=bool)
        steps = [
            (everywhere, np.where(X[:, j] > t, np.sign(v[1]), np.sign(v[0]))) for j, t, v in votes
        ]
        paths = generic_greedy(sign, w, steps)
    else:
        everywhere = np.ones(len(y), dtype=bool)
        model = pb.fit_real_adaboost(
            X,
            y,
            n_estimators=30,
            weak_learner=pb.weak.hypothesis(random_walk),
            rng=0,
            smoothing=0,
            sample_weight=w,
        )
        paths = generic_greedy(sign, w, [(everywhere, h(X)) for h in model.hypotheses])
    np.testing.assert_allclose(paths.H, pb.decision_function(model, X), rtol=0, atol=1e-9)
    if kind == "functions":
        assert paths.bound > 1.01 * pb.certificate(model)
    else:
        assert paths.bound == pytest.approx(pb.certificate(model), rel=1e-9)
    error = pb.inspection.margin_error(model, X, y, THETAS, sample_weight=w)
    assert (error <= (1 + THETAS) / (1 - THETAS) * paths.bound).all()


@every
def test_margins(fit):
    X, y, w = problem()
    model = fit(X, y)
    H = pb.decision_function(model, X) * np.where(y == "b", 1, -1)
    np.testing.assert_allclose(pb.inspection.margins(model, X, y), np.tanh(H / 2), rtol=1e-12)
    p = pb.predict_proba(model.without_temperature(), X)[:, 1]
    difference = np.where(y == "b", 1, -1) * (2 * p - 1)
    np.testing.assert_allclose(
        pb.inspection.margins(model, X, y, scale="probability"), difference, rtol=0, atol=1e-12
    )
    for theta in (-0.5, 0.0, 0.3):
        expected = sum(w[i] for i in range(len(y)) if math.tanh(H[i] / 2) <= theta) / sum(w)
        actual = pb.inspection.margin_error(model, X, y, theta, sample_weight=w)
        assert isinstance(actual, float)
        assert actual == pytest.approx(expected, abs=1e-12)
    ends = pb.inspection.margin_error(model, X, y, [-np.inf, -1.0, 1.0, np.inf])
    assert ends[0] == 0
    assert ends[2:].tolist() == [1, 1]


@every
def test_normalized_margins(fit):
    X, y, _ = problem()
    model = fit(X, y)
    sign = np.where(y == "b", 1, -1)
    if isinstance(model, pb.models.FunctionEnsemble):
        with pytest.raises(ValueError, match="max_abs"):
            pb.inspection.normalized_margins(model, X, y)
        return
    actual = pb.inspection.normalized_margins(model, X, y)
    assert np.abs(actual).max() <= 1 + 1e-12
    ratio = sign * pb.decision_function(model, X) / actual
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)


def test_normalized_margins_of_known_models():
    X, y, _ = problem()
    sign = np.where(y == "b", 1, -1)
    chain = pb.fit_adaboost(X, y, n_estimators=9, votes="symmetric")
    alpha = np.abs(chain.vote[:, 0])
    H = sign * pb.decision_function(chain, X)
    np.testing.assert_allclose(
        pb.inspection.normalized_margins(chain, X, y), H / alpha.sum(), rtol=1e-12
    )
    bounded = pb.weak.hypothesis(
        lambda X, y, w, rng: partial(lambda v, Z: np.tanh(Z @ v), rng.normal(size=3)), max_abs=1.0
    )
    functions = pb.fit_real_adaboost(X, y, n_estimators=9, weak_learner=bounded, rng=1)
    H = sign * pb.decision_function(functions, X)
    np.testing.assert_allclose(
        pb.inspection.normalized_margins(functions, X, y),
        H / np.abs(functions.alpha).sum(),
        rtol=1e-12,
    )
    tree = pb.fit_boosted_tree(X, y, max_nodes=20)
    largest = max(path_sums(tree))
    H = sign * pb.decision_function(tree, X)
    np.testing.assert_allclose(
        pb.inspection.normalized_margins(tree, X, y), H / largest, rtol=1e-12
    )


def path_sums(model, node=0, total=0.0):
    if node == -1:
        yield total
        return
    for exit_ in (0, 1):
        size = abs(model.vote[node, exit_])
        yield from path_sums(model, model.next[node, exit_], total + size)


def test_margin_curve_of_a_model():
    X, y, w = problem()
    model = FITS["tree"](X, y)
    np.testing.assert_array_equal(
        pb.inspection.margin_curve(model, X, y, THETAS, sample_weight=w),
        pb.inspection.margin_error(model, X, y, THETAS, sample_weight=w),
    )


@every
def test_margin_curve_by_cross_validation(fit):
    """Its value below 0 counts the errors of `cross_validate` on the same folds."""
    X, y, _ = problem()
    curve = pb.inspection.margin_curve(fit, X, y, [-1.1, 0.0, 1.0], cv=4, rng=3)
    result = pb.cross_validate(fit, X, y, cv=4, rng=3)
    sizes = np.bincount(result.test_fold)
    assert curve[0] == 0
    assert curve[1] == pytest.approx((result.error * sizes).sum() / len(y))
    assert curve[2] == 1


def test_margin_curve_of_weighted_folds():
    X, y, w = problem()
    fit = FITS["chain"]
    curve = pb.inspection.margin_curve(fit, X, y, THETAS, cv=3, rng=1, sample_weight=w)
    test_fold = pb.cross_validate(fit, X, y, cv=3, rng=1, sample_weight=w).test_fold
    margin = np.empty(len(y))
    for fold in range(3):
        train, test = test_fold != fold, test_fold == fold
        model = fit(X[train], y[train], sample_weight=w[train])
        margin[test] = pb.inspection.margins(model, X[test], y[test])
    expected = [np.average(margin <= theta, weights=w) for theta in THETAS]
    np.testing.assert_allclose(curve, expected, rtol=0, atol=1e-12)
    columns = pb.data.sort_columns(X)
    again = pb.inspection.margin_curve(fit, columns, y, THETAS, cv=3, rng=1, sample_weight=w)
    np.testing.assert_allclose(again, curve)


def soft_problem():
    X, y, w = problem()
    share = np.random.default_rng(1).dirichlet([0.4, 0.4], size=len(y))
    share[::4] = np.eye(2)[(y[::4] == "b").astype(int)]
    rows, label = np.nonzero(share)
    return X, w, share, rows, label, share[rows, label]


@every
@scales
def test_soft_labels_have_two_margins_each(fit, scale):
    """Margins are those of rows that stand there once for each label that is possible."""
    X, w, share, rows, label, mass = soft_problem()
    names = np.array(["no", "yes"])
    if fit is FITS["functions"]:
        model = fit(X, names[share.argmax(axis=1)])
    else:
        model = fit(X, y_proba=share, classes=names)
    of_rows = {"sample_weight": w[rows] * mass, "scale": scale}
    soft = {"y_proba": share, "sample_weight": w, "scale": scale}
    for ask in (pb.inspection.margin_error, pb.inspection.margin_bound):
        thetas = THETAS[np.abs(THETAS) < 1]
        actual = ask(model, X, None, thetas, **soft)
        np.testing.assert_allclose(actual, ask(model, X[rows], names[label], thetas, **of_rows))
    curve = pb.inspection.margin_curve(model, X, None, THETAS, **soft)
    np.testing.assert_array_equal(curve, pb.inspection.margin_error(model, X, None, THETAS, **soft))


@pytest.mark.parametrize("fit", [FITS["chain"], FITS["tree"]])
def test_curves_of_soft_labels_by_cross_validation(fit):
    X, w, share, *_ = soft_problem()
    soft = {"y_proba": share, "classes": ["a", "b"], "sample_weight": w}
    curve = pb.inspection.margin_curve(fit, X, None, THETAS, cv=3, rng=1, **soft)
    test_fold = pb.cross_validate(fit, X, cv=3, rng=1, **soft).test_fold
    up = np.empty(len(X))
    for fold in range(3):
        train, test = test_fold != fold, test_fold == fold
        model = fit(X[train], y_proba=share[train], sample_weight=w[train])
        up[test] = np.tanh(pb.decision_function(model, X[test]) / 2)
    expected = [
        np.average(share[:, 0] * (-up <= t) + share[:, 1] * (up <= t), weights=w) for t in THETAS
    ]
    np.testing.assert_allclose(curve, expected, rtol=0, atol=1e-12)


def test_sure_soft_labels_have_the_margins_of_labels():
    X, y, w = problem()
    share = np.eye(2)[(y == "b").astype(int)]
    model = FITS["tree"](X, y)
    for ask in (pb.inspection.margin_error, pb.inspection.margin_bound, pb.inspection.margin_curve):
        actual = ask(model, X, None, [-0.5, 0.0, 0.3], y_proba=share, sample_weight=w)
        np.testing.assert_array_equal(actual, ask(model, X, y, [-0.5, 0, 0.3], sample_weight=w))
    fit = FITS["tree"]
    first = pb.inspection.margin_curve(fit, X, None, THETAS, cv=3, rng=0, y_proba=share)
    np.testing.assert_array_equal(first, pb.inspection.margin_curve(fit, X, y, THETAS, cv=3, rng=0))


def test_probabilities_in_a_frame_are_told_by_name():
    pd = pytest.importorskip("pandas")
    X, _, share, *_ = soft_problem()
    model = FITS["tree"](X, y_proba=share, classes=["no", "yes"])
    turned = pd.DataFrame({"yes": share[:, 1], "no": share[:, 0]})
    expected = pb.certificate(model, X, y_proba=share)
    assert pb.certificate(model, X, y_proba=turned) == expected
    error = pb.inspection.margin_error(model, X, None, 0.1, y_proba=turned)
    assert error == pb.inspection.margin_error(model, X, None, 0.1, y_proba=share)
    more = FITS["tree"](X, y_proba=share, classes=["no", "yes"], validation=(X, turned))
    again = FITS["tree"](X, y_proba=share, classes=["no", "yes"], validation=(X, share))
    np.testing.assert_array_equal(more.record.validation, again.record.validation)
    for call in (
        lambda other: pb.certificate(model, X, y_proba=other),
        lambda other: FITS["tree"](X, y_proba=share, classes=["no", "yes"], validation=(X, other)),
    ):
        with pytest.raises(
            ValueError, match=r"y_proba: expected one column per class of the model, "
        ):
            call(turned.set_axis(["a", "b"], axis=1))


def test_logistic_margin_curve():
    """Against labels drawn with the probabilities, and a model that knows them."""
    rng = np.random.default_rng(5)
    p = rng.uniform(0.01, 0.99, 200)
    H = 0.5 * np.log(p / (1 - p))
    for scale, factor in (("half", 0.5), ("probability", 1.0)):
        curve = pb.inspection.logistic_margin_curve(p, THETAS, scale=scale)
        expected = [
            np.mean(p * (np.tanh(factor * H) <= t) + (1 - p) * (np.tanh(-factor * H) <= t))
            for t in THETAS
        ]
        np.testing.assert_allclose(curve, expected, rtol=0, atol=1e-12)
    difference = pb.inspection.logistic_margin_curve(
        [0.8, 0.2], [-0.61, -0.59, 0.59, 0.61], scale=scale
    )
    np.testing.assert_allclose(difference, [0, 0.2, 0.2, 1])
    certain = pb.inspection.logistic_margin_curve([0.0, 1.0], [-1.0, 0.0, 0.999, 1.0])
    np.testing.assert_array_equal(certain, [0, 0, 0, 1])
    weighted = pb.inspection.logistic_margin_curve([0.9, 0.5], [0.0], sample_weight=[3, 1])
    assert weighted[0] == pytest.approx((3 * 0.1 + 1) / 4)


def test_a_tree_that_finds_the_noise_has_the_logistic_curve():
    """Only on the same scale: on two the same model looks like one of more noise."""
    rng = np.random.default_rng(6)
    X = rng.uniform(size=(4000, 1))
    above = X[:, 0] > 0.5
    y = above ^ (rng.random(4000) < 0.2)
    p = np.where(above, 0.8, 0.2)
    model = pb.fit_boosted_tree(X, y, max_nodes=1, smoothing=0)
    thetas = np.array([-0.7, -0.45, 0.0, 0.45, 0.7])
    for scale in ("half", "probability"):
        actual = pb.inspection.margin_curve(model, X, y, thetas, scale=scale)
        known = pb.inspection.logistic_margin_curve(p, thetas, scale=scale)
        np.testing.assert_allclose(actual, known, rtol=0, atol=0.02)
    other = pb.inspection.logistic_margin_curve(p, thetas, scale="half")
    assert np.abs(actual - other).max() > 0.5


def test_plots():
    pytest.importorskip("matplotlib")
    import sys

    X, y, _ = problem()
    model = FITS["tree"](X, y)
    curve, bound = (
        f(model, X, y, THETAS) for f in (pb.inspection.margin_error, pb.inspection.margin_bound)
    )
    ax = pb.plot.margin_curve(THETAS, {"tree": curve, "other": curve / 2}, bound=bound)
    assert [line.get_label() for line in ax.get_lines()] == ["tree", "other", "bound"]
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), curve)
    assert ax.get_lines()[2].get_ydata().max() == 1
    # Another test may have imported pyplot, whose figures have numbers.
    assert "matplotlib.pyplot" not in sys.modules or getattr(ax.figure, "number", None) is None
    assert pb.plot.margin_curve(THETAS, {"more": curve}, ax=ax) is ax
    assert len(ax.get_lines()) == 4
    with pytest.raises(ValueError, match=r"tree.*shape"):
        pb.plot.margin_curve(THETAS, {"tree": curve[1:]})


@pytest.mark.parametrize("theta", [-1.0, 1.0, 1.5, np.nan, [0.0, 1.0]])
def test_bounds_need_theta_inside(theta):
    X, y, _ = problem()
    model = FITS["tree"](X, y)
    with pytest.raises(ValueError, match="theta"):
        pb.inspection.margin_bound(model, X, y, theta)


def test_uncertain_answers_have_no_margin_bound():
    X, y, _ = problem()
    model = pb.fit_boosted_tree(X, y, max_nodes=5, observation=pb.observation.flip(0.1))
    assert pb.inspection.margin_error(model, X, y, 0.0) < 0.5
    with pytest.raises(ValueError, match="exact observations"):
        pb.inspection.margin_bound(model, X, y, 0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X, y: pb.inspection.margins(m, X, y, scale="full"), "scale"),
        (lambda m, X, y: pb.inspection.margins(m, X, np.repeat("c", len(y))), "y: "),
        (lambda m, X, y: pb.inspection.margins(m, X, y[1:]), "y: "),
        (lambda m, X, y: pb.inspection.margins(m, X[:, 1:], y), "X: "),
        (lambda m, X, y: pb.inspection.margin_error(m, X, y, "a"), "theta"),
        (lambda m, X, y: pb.inspection.margin_error(m, X, y, np.nan), "theta"),
        (lambda m, X, y: pb.inspection.margin_error(m, X, y, np.zeros((2, 2))), "theta"),
        (
            lambda m, X, y: pb.inspection.margin_error(m, X, y, 0, sample_weight=[1]),
            "sample_weight",
        ),
        (lambda m, X, y: pb.inspection.margin_curve(m, X, y, [0], cv=3), "model"),
        (lambda m, X, y: pb.inspection.margin_curve(FITS["tree"], X, y, [0]), "model"),
        (lambda m, X, y: pb.inspection.margin_curve(lambda X, y: 3, X, y, [0], cv=3), "model"),
        (lambda m, X, y: pb.inspection.margin_curve(FITS["tree"], X, y, [0], cv=1), "cv"),
        (lambda m, X, y: pb.inspection.margin_curve(FITS["tree"], X, y, [0], cv=500), "cv"),
        (lambda m, X, y: pb.inspection.logistic_margin_curve([0.5, 1.2], [0]), "probability"),
        (lambda m, X, y: pb.inspection.logistic_margin_curve([[0.5]], [0]), "probability"),
        (lambda m, X, y: pb.inspection.logistic_margin_curve([], [0]), "probability"),
        (lambda m, X, y: pb.inspection.logistic_margin_curve([0.5], [0], scale="x"), "scale"),
    ],
)
def test_bad_input(call, message):
    X, y, _ = problem()
    model = FITS["tree"](X, y)
    with pytest.raises((ValueError, TypeError), match=message):
        call(model, X, y)


def test_a_model_without_votes_has_no_normalized_margins():
    X, y = np.ones((4, 1)), [0, 1, 0, 1]
    model = pb.fit_boosted_tree(X, y, max_nodes=1)
    assert pb.inspection.margins(model, X, y).tolist() == [0, 0, 0, 0]
    with pytest.raises(ValueError, match="votes"):
        pb.inspection.normalized_margins(model, X, y)
