"""Soft labels: a row stands for each label, with weight times probability."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import pboost as pb
from pboost.data.resampling import HoldOut
from pboost.data.targets import labels_of_rows
from pboost.data.training_data import boosted_problem

sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))
import digests

RNG = np.random.default_rng(0)
N = 60
X = np.round(RNG.normal(size=(N, 3)), 1)
Y = ((X[:, 0] * X[:, 1] > 0) ^ (np.arange(N) < 9)).astype(int)
Y3 = Y + (X[:, 2] > 0.5)
LABELS = np.array(["no", "or", "yes"])
WEIGHT = np.where(np.arange(N) % 7 == 0, 0.0, RNG.uniform(0.5, 2, N))
SIGMA = RNG.uniform(0.1, 0.2, X.shape)


def draw(j):
    share = RNG.dirichlet(np.ones(j), size=N)
    share[::3] = np.eye(j)[np.arange(N)[::3] % j]
    return share


SHARE = {j: draw(j) for j in (2, 3)}


class Means:
    def fit(self, X, y, sample_weight):
        low, high = (np.average(X[y == k], axis=0, weights=sample_weight[y == k]) for k in (-1, 1))
        self.middle, self.direction = (low + high) / 2, high - low

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-(X - self.middle) @ self.direction))
        return np.stack([1 - p, p], axis=1)


#: Builders that draw nothing, of two classes, and of any number.
TWO = {
    "adaboost": partial(pb.fit_adaboost, n_estimators=8),
    "symmetric": partial(pb.fit_adaboost, n_estimators=8, votes="symmetric"),
    "binned": partial(
        pb.fit_adaboost, n_estimators=8, weak_learner=pb.weak.stump(search="binned", max_bins=99)
    ),
    "affine": partial(pb.fit_adaboost, n_estimators=8, weak_learner=pb.weak.affine(n_directions=8)),
    "adatree2": partial(pb.fit_boosted_tree, max_nodes=7, observation=pb.observation.adatree2()),
    "boosted tree": partial(pb.fit_boosted_tree, max_nodes=12),
    "linear": partial(pb.fit_boosted_tree, max_nodes=5, weak_learner=pb.weak.linear()),
    "oblique": partial(pb.fit_oblique_tree, max_depth=2, n_stumps=3),
    "matryoshka": partial(pb.fit_matryoshka, shape=(3, 3)),
    "greedy": partial(pb.fit_matryoshka, growth="greedy", max_nodes=9),
    "top down": partial(pb.fit_topdown_tree, max_nodes=9, impurity=lambda z: 4 * z * (1 - z)),
    "adaboost real": partial(pb.fit_real_adaboost, n_estimators=8),
    "columns": partial(pb.fit_real_adaboost, n_estimators=8, weak_learner=pb.weak.feature()),
    "gaussian": partial(pb.fit_adaboost, n_estimators=5, observation=pb.observation.gaussian(0.2)),
    "stagewise": partial(pb.fit_gradient_boosting, n_estimators=5, loss="exponential"),
    "probitboost": partial(pb.fit_probitboost, max_iter=9),
}
ANY = {
    "cart": pb.fit_cart,
    "binned cart": partial(pb.fit_cart, search="binned", max_bins=256),
    "probit tree": partial(pb.fit_probit_tree, max_depth=2, min_samples_leaf=9, max_iter=5),
    "samme": partial(pb.fit_samme, n_estimators=4),
    "one vs rest": partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=4),
}
DRAWN = {
    "pruned": partial(pb.fit_pruned_cart, rng=0),
    "forest": partial(pb.fit_random_forest, n_estimators=4, rng=0),
    "subsamples": partial(
        pb.fit_random_forest, n_estimators=4, max_samples=0.4, bootstrap=False, rng=0
    ),
    "sbpmt": partial(pb.fit_sbpmt, n_estimators=2, n_boosting_rounds=2, rng=0),
    "stratified": partial(
        pb.fit_sbpmt, n_estimators=2, n_boosting_rounds=2, max_samples=0.3, stratify=True, rng=0
    ),
    "bagging": partial(pb.fit_bagging, pb.fit_cart, n_estimators=4, rng=0),
}
DRAWN_OF_TWO = {
    "held out": partial(pb.fit_adaboost, n_estimators=9, validation=0.3, n_iter_no_change=3, rng=0),
    "stagewise bags": partial(
        pb.fit_gradient_boosting, n_estimators=4, subsample=0.5, validation=0.2, rng=0
    ),
    "bagging of two": partial(
        pb.fit_bagging, partial(pb.fit_adaboost, n_estimators=3), n_estimators=3, rng=0
    ),
    "sampled": partial(
        pb.fit_adaboost,
        n_estimators=3,
        weak_learner=pb.weak.from_estimator(Means()),
        rng=0,
        observation=pb.observation.sampled(),
    ),
}
CASES = [(name, 2) for name in TWO | ANY | DRAWN | DRAWN_OF_TWO] + [
    (name, 3) for name in ANY | DRAWN
]
FITS = TWO | ANY | DRAWN | DRAWN_OF_TWO
each_fit = pytest.mark.parametrize(("name", "j"), CASES)


def same(one, other):
    if one.settings.get("weak_learner", {}).get("kind") == "from_estimator":  # in no file
        return np.array_equal(one.vote, other.vote)
    return digests.digest(one) == digests.digest(other)


@each_fit
def test_rows_of_one_label_give_the_model_of_labels(name, j):
    y, labels = (Y if j == 2 else Y3), LABELS[:j]
    for weight in ({}, {"sample_weight": WEIGHT}):
        given = FITS[name](X, labels[y], **weight)
        soft = FITS[name](X, y_proba=np.eye(j)[y], classes=labels, **weight)
        assert same(given, soft)
        order = np.arange(j)[::-1]  # columns in another order
        soft = FITS[name](X, y_proba=np.eye(j)[y][:, order], classes=labels[order], **weight)
        assert same(given, soft)


def doubled(j):
    """Rows for each label that is not impossible, with labels and weights."""
    rows, label = np.nonzero(SHARE[j])
    return X[rows], LABELS[:j][label], WEIGHT[rows] * SHARE[j][rows, label]


@pytest.mark.parametrize(("name", "j"), [case for case in CASES if case[0] in TWO | ANY])
def test_a_row_stands_for_each_of_its_labels(name, j):
    soft = FITS[name](X, y_proba=SHARE[j], classes=LABELS[:j], sample_weight=WEIGHT)
    X2, y2, weight = doubled(j)
    other = FITS[name](X2, y2, sample_weight=weight)
    assert soft.classes.tolist() == LABELS[:j].tolist()
    np.testing.assert_allclose(
        pb.predict_proba(soft, X), pb.predict_proba(other, X), rtol=0, atol=1e-10
    )
    if isinstance(soft, pb.models.DecisionGraph | pb.models.LinearModel):
        again = pb.certificate(soft, X, y_proba=SHARE[2], sample_weight=WEIGHT)
        np.testing.assert_allclose(again, pb.certificate(soft), rtol=1e-9)


@pytest.mark.parametrize("make", [pb.data.sort_columns, pb.data.bin_columns])
@pytest.mark.parametrize("name", ["adaboost", "cart"])
def test_columns_made_before(make, name):
    fit = partial(FITS[name].func, n_estimators=8) if name == "adaboost" else FITS[name]
    if make is pb.data.bin_columns and name == "adaboost":
        fit = FITS["binned"]
    soft = fit(make(X), y_proba=SHARE[2])
    rows, label = np.nonzero(SHARE[2])
    other = fit(X[rows], label, sample_weight=SHARE[2][rows, label])
    np.testing.assert_allclose(pb.predict_proba(soft, X), pb.predict_proba(other, X), atol=1e-10)


@pytest.mark.parametrize("name", DRAWN | DRAWN_OF_TWO)
def test_all_labels_of_a_row_are_drawn_or_none(name):
    model = FITS[name](X, y_proba=SHARE[2], sample_weight=WEIGHT)
    if (oob := getattr(model, "oob", None)) is not None:
        assert len(oob.n_estimators) == N
        tested = np.flatnonzero(oob.n_estimators * WEIGHT > 0)
        wrong = 1 - oob.prediction[tested].argmax(axis=1)
        share = SHARE[2][tested, wrong]
        assert oob.error == pytest.approx(np.average(share, weights=WEIGHT[tested]))
    plain = FITS[name](X, Y, sample_weight=WEIGHT)
    if oob is not None and "sbpmt" not in name and "strat" not in name:
        np.testing.assert_array_equal(oob.n_estimators, plain.oob.n_estimators)  # the same bags


def test_rows_held_out_are_those_of_all_their_labels():
    hold = HoldOut(0.3, np.random.default_rng(5))
    problem = boosted_problem(X, labels_of_rows(None, SHARE[2]), WEIGHT, "")
    held = problem.hold_out(hold).held.rows
    rows = problem.input_rows(held)
    left = problem.input_rows(np.setdiff1d(np.flatnonzero(problem.weights > 0), held))
    assert not set(rows) & set(left)
    assert (WEIGHT[rows] > 0).all()
    assert len(np.unique(rows)) == pytest.approx(0.3 * np.count_nonzero(WEIGHT), abs=1)


def test_validation_rows_may_have_soft_labels():
    fit = partial(pb.fit_adaboost, n_estimators=30, n_iter_no_change=5)
    hard = fit(X, Y, validation=(X[::2], Y[::2]))
    soft = fit(X, Y, validation=(X[::2], np.eye(2)[Y[::2]]))
    assert hard.record.validation.tolist() == soft.record.validation.tolist()
    model = fit(X, Y, validation=(X, SHARE[2], WEIGHT))
    wrong = pb.predict(model, X) == 0
    share = np.where(wrong, SHARE[2][:, 1], SHARE[2][:, 0])
    expected = np.average(share, weights=WEIGHT)
    assert model.record.validation[model.n_nodes] == pytest.approx(expected)


def test_the_certificate_bounds_the_expected_error():
    model = pb.fit_adaboost(X, y_proba=SHARE[2], sample_weight=WEIGHT, n_estimators=40)
    wrong = 1 - pb.predict(model, X)
    error = np.average(SHARE[2][np.arange(N), wrong], weights=WEIGHT)
    assert error <= pb.certificate(model)
    first_bound = pb.certificate(model, X, y_proba=SHARE[2][:, 1], sample_weight=WEIGHT)
    assert first_bound == pytest.approx(pb.certificate(model), rel=1e-9)


def test_gaussian_errors_of_cells():
    fit = partial(pb.fit_adaboost, n_estimators=4, observation=pb.observation.gaussian(SIGMA))
    soft = fit(X, y_proba=SHARE[2])
    rows, label = np.nonzero(SHARE[2])
    other = pb.fit_adaboost(
        X[rows],
        label,
        n_estimators=4,
        sample_weight=SHARE[2][rows, label],
        observation=pb.observation.gaussian(SIGMA[rows]),
    )
    np.testing.assert_allclose(soft.vote, other.vote, atol=1e-10)
    again = pb.certificate(soft, X, y_proba=SHARE[2], sigma=SIGMA)
    assert again == pytest.approx(pb.certificate(soft), rel=1e-9)


def test_cross_validation_of_soft_labels():
    fit = partial(pb.fit_cart, max_depth=2)
    validated = pb.cross_validate(fit, X, y_proba=SHARE[3], cv=4, rng=0, sample_weight=WEIGHT)
    for fold in range(4):
        train, test = validated.test_fold != fold, validated.test_fold == fold
        model = fit(X[train], y_proba=SHARE[3][train], sample_weight=WEIGHT[train])
        answer, share = pb.predict(model, X[test]), pb.predict_proba(model, X[test])
        truth, weight = SHARE[3][test], WEIGHT[test]
        error = np.average(1 - truth[np.arange(len(truth)), answer], weights=weight)
        assert validated.error[fold] == pytest.approx(error)
        loss = -(truth * np.log(share.clip(2.0**-52, 1 - 2.0**-52))).sum(axis=1)
        assert validated.log_loss[fold] == pytest.approx(np.average(loss, weights=weight))
        brier = (truth * (1 - 2 * share + (share**2).sum(axis=1, keepdims=True))).sum(axis=1)
        assert validated.brier[fold] == pytest.approx(np.average(brier, weights=weight))


def test_cross_validation_cuts_errors_of_cells():
    fit = partial(pb.fit_adaboost, n_estimators=4)
    noisy = partial(fit, observation=pb.observation.gaussian(SIGMA))
    validated = pb.cross_validate(noisy, X, Y, cv=3, rng=0)
    train = validated.test_fold != 0
    model = fit(X[train], Y[train], observation=pb.observation.gaussian(SIGMA[train]))
    assert validated.certificate[0] == pb.certificate(model)


def test_fitting_goes_on():
    for fit, more in (
        (partial(pb.fit_adaboost, n_estimators=4), 3),
        (partial(pb.fit_random_forest, n_estimators=3, rng=0), 2),
        (partial(pb.fit_gradient_boosting, n_estimators=3), 2),
    ):
        soft = {"y_proba": SHARE[2], "classes": ["a", "b"]}
        model = pb.continue_fit(fit(X, **soft), X, y_proba=SHARE[2], n_estimators=more)
        full_model = fit(X, **soft, n_estimators=fit.keywords["n_estimators"] + more)
        np.testing.assert_array_equal(pb.predict_proba(model, X), pb.predict_proba(full_model, X))
    with pytest.raises(ValueError, match="y_proba: expected one column per class of the model"):
        pb.continue_fit(
            pb.fit_adaboost(X, Y, n_estimators=1),
            X,
            y_proba=SHARE[2],
            classes=["a", "b"],
            n_estimators=1,
        )


def test_a_label_without_mass():
    share = np.column_stack([SHARE[2][:, 0], np.zeros(N), SHARE[2][:, 1]])
    for name in ("cart", "probit tree", "forest", "sbpmt", "pruned", "bagging"):
        model = FITS[name](X, y_proba=share, classes=LABELS)
        assert model.classes.tolist() == LABELS.tolist()
        probabilities = pb.predict_proba(model, X)
        assert (probabilities[:, 1] == 0).all() if "prob" not in name and name != "sbpmt" else True
        assert (pb.predict(model, X) != "or").all()
    for fit in (*TWO.values(), ANY["one vs rest"], ANY["samme"]):
        with pytest.raises(ValueError, match="y_proba: expected every class to have positive"):
            fit(X, y_proba=np.column_stack([np.ones(N), np.zeros(N)]))


def test_labels_of_columns():
    assert pb.fit_cart(X, y_proba=SHARE[3]).classes.tolist() == [0, 1, 2]
    second = np.rint(64 * SHARE[2][:, 1]) / 64
    model = pb.fit_cart(X, y_proba=second, classes=[True, False])
    other = pb.fit_cart(X, y_proba=np.column_stack([second, 1 - second]), classes=[False, True])
    assert same(model, other)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(SHARE[3], columns=["z", "a", "m"])
    assert pb.fit_cart(X, y_proba=frame).classes.tolist() == ["a", "m", "z"]
    assert same(
        pb.fit_cart(X, y_proba=frame),
        pb.fit_cart(X, y_proba=frame[["a", "m", "z"]].to_numpy(), classes=["a", "m", "z"]),
    )
    assert pb.fit_cart(X, y_proba=pd.DataFrame(SHARE[2])).classes.tolist() == [0, 1]


def test_rows_are_divided_by_their_sum():
    near = SHARE[2] * (1 + 5e-7)
    near[0] = 1.0 + 4e-7, 0.0
    model, other = pb.fit_cart(X, y_proba=near), pb.fit_cart(X, y_proba=SHARE[2])
    np.testing.assert_allclose(pb.predict_proba(model, X), pb.predict_proba(other, X), atol=1e-12)
    before = near.copy()
    pb.fit_adaboost(X, y_proba=near, n_estimators=2)
    np.testing.assert_array_equal(near, before)


def changed(row, column, value):
    share = SHARE[2].copy()
    share[row, column] = value
    return share


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "y: expected class labels, or class probabilities as y_proba, got neither"),
        (
            {"y": Y, "y_proba": SHARE[2]},
            "y, y_proba: expected only one of these arguments, got both",
        ),
        ({"y": Y, "classes": [0, 1]}, "classes: expected None without y_proba"),
        ({"y_proba": changed(4, 1, -0.1)}, r"got -0.1 in row 4, column 1"),
        ({"y_proba": changed(4, 1, np.nan)}, r"got a missing value in row 4, column 1"),
        ({"y_proba": changed(4, 1, np.inf)}, r"got inf in row 4, column 1"),
        ({"y_proba": changed(3, 1, 0.5)}, r"sum to 1 in each row, got 0.5 in row 3"),
        ({"y_proba": SHARE[2][:-1]}, "y_proba: expected 60 rows, one per row of X, got 59"),
        ({"y_proba": SHARE[2][:, :1]}, r"expected two or more columns.*got shape \(60, 1\)"),
        ({"y_proba": SHARE[2][..., None]}, r"got shape \(60, 2, 1\)"),
        ({"y_proba": [["a", "b"]] * N}, "y_proba: expected numbers, got dtype <U1"),
        (
            {"y_proba": SHARE[2][:, 1] * 1.5 + 0.5},
            r"y_proba: expected probabilities in \[0, 1\], got 1\.",
        ),
        (
            {"y_proba": SHARE[2], "classes": [0]},
            r"classes: expected 2 class labels, one per column of y_proba",
        ),
        (
            {"y_proba": SHARE[2], "classes": ["a", "a"]},
            "classes: expected distinct class labels, got 'a'",
        ),
        ({"y_proba": SHARE[2], "classes": ["a", None]}, "classes: missing label in row 1"),
        (
            {"y_proba": SHARE[2], "classes": [1, "a"]},
            "classes: expected class labels that are all num",
        ),
    ],
)
def test_wrong_soft_labels(options, message):
    for fit in (
        pb.fit_adaboost,
        pb.fit_cart,
        pb.fit_probitboost,
        pb.fit_samme,
        pb.fit_random_forest,
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            fit(X, **options)


def test_what_takes_no_soft_labels():
    hypothesis = pb.weak.hypothesis(lambda X, y, weight, rng: lambda X: X[:, 0])
    with pytest.raises(ValueError, match=r"y_proba: expected None with weak.hypothesis"):
        pb.fit_real_adaboost(X, y_proba=SHARE[2], weak_learner=hypothesis)
    for fit in (pb.fit_cart, pb.fit_random_forest, partial(pb.fit_bagging, pb.fit_cart)):
        with pytest.raises(ValueError, match="y_proba: expected None for regression"):
            fit(X, y_proba=SHARE[2], task="regression")
    for options in ({"loss": "poisson"}, {"loss": "squared_error", "task": "regression"}):
        with pytest.raises(ValueError, match="y_proba: expected None for regression"):
            pb.fit_gradient_boosting(X, y_proba=SHARE[2], **options)
    with pytest.raises(TypeError, match="an argument y_proba"):
        pb.fit_samme(X, y_proba=SHARE[2], base_learner=lambda X, y, sample_weight: None)
    with pytest.raises(pb.models.MulticlassError, match=r"two columns.*fit_one_vs_rest"):
        pb.fit_matryoshka(X, y_proba=SHARE[3])


def test_balanced_weights():
    weight = pb.data.balanced_weights(LABELS[Y3], WEIGHT)
    mass = np.bincount(Y3, weight)
    np.testing.assert_allclose(mass, WEIGHT.sum() / 3)
    for k in range(3):
        share = weight[k == Y3] / mass[k]
        np.testing.assert_allclose(share, WEIGHT[k == Y3] / WEIGHT[k == Y3].sum())
    assert pb.data.balanced_weights(Y).sum() == pytest.approx(N)
    with pytest.raises(ValueError, match="expected every class to have positive weight"):
        pb.data.balanced_weights(Y, (Y == 1).astype(float))


def test_threshold():
    model = pb.fit_random_forest(X, LABELS[Y], n_estimators=9, rng=0)
    share = pb.predict_proba(model, X)[:, 1]
    for threshold in (0.0, 0.2, float(np.median(share)), 1.0):
        expected = LABELS[(share > threshold).astype(int)]
        assert pb.predict(model, X, threshold=threshold).tolist() == expected.tolist()
    with pytest.raises(ValueError, match="threshold: expected None for a model that is not binary"):
        pb.predict(pb.fit_cart(X, Y3), X, threshold=0.5)
    with pytest.raises(ValueError, match="threshold"):
        pb.predict(model, X, threshold=1.5)


@pytest.mark.parametrize("make", [pb.data.sort_columns, pb.data.bin_columns])
def test_columns_made_before_of_a_table(make):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abc")).assign(sky=np.array(["rain", "sun", "ice"])[Y3])
    frame.loc[::5, ["a", "sky"]] = None
    weak = pb.weak.stump(search="exact" if make is pb.data.sort_columns else "binned")
    fit = partial(pb.fit_adaboost, n_estimators=9, weak_learner=weak)
    first, other = fit(make(frame), y_proba=SHARE[2]), fit(frame, y_proba=SHARE[2])
    np.testing.assert_allclose(first.vote, other.vote, rtol=0, atol=1e-10)
    assert first.table == other.table


@pytest.mark.parametrize("name", ["affine", "oblique", "columns", "probitboost", "adaboost"])
def test_rows_of_a_table_stand_for_each_of_their_labels(name):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abc")).assign(sky=np.array(["rain", "sun", "ice"])[Y3])
    frame.loc[::5, ["a", "sky"]] = None
    rows, label = np.nonzero(SHARE[2])
    soft = TWO[name](frame, y_proba=SHARE[2])
    other = TWO[name](frame.iloc[rows], label, sample_weight=SHARE[2][rows, label])
    share = pb.predict_proba(soft, frame)
    np.testing.assert_allclose(share, pb.predict_proba(other, frame), rtol=0, atol=1e-9)
