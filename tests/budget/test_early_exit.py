"""Models that rows leave early, within a budget."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from shallow import fit_shallow

import pboost as pb
from pboost.models.early_exit_model import Trajectory, trajectory
from pboost.models.evaluate.exits import exits_of, joints_left

RNG = np.random.default_rng(5)
X = RNG.normal(size=(1200, 4))
SIGNAL = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * RNG.normal(size=1200)
Y = np.where(SIGNAL > 0, "yes", "no")
ZONE = np.digitize(SIGNAL, [-0.5, 0.5])
FIT, CAL, TEST = X[:400], X[400:800], X[800:]
TWO, THREE = Y[:400], ZONE[:400]
CHAIN = {"shape": (5, 12), "join": "all"}
MODELS = {
    "chain": lambda: pb.fit_adaboost(FIT, TWO, n_estimators=60),
    "chain of trees": lambda: pb.fit_matryoshka(FIT, TWO, **CHAIN),
    "chain, votes": lambda: pb.fit_matryoshka(FIT, THREE, **CHAIN),
    "stagewise": lambda: fit_shallow(FIT, TWO, loss="log_loss", n_estimators=30),
    "softmax": lambda: fit_shallow(FIT, THREE, loss="softmax", n_estimators=12),
    "vectors": lambda: fit_shallow(
        FIT, THREE, loss="softmax", n_estimators=12, multi_strategy="multi_output_tree"
    ),
    "forest": lambda: pb.fit_random_forest(FIT, TWO, n_estimators=15, rng=0),
    "forest of three": lambda: pb.fit_random_forest(FIT, THREE, n_estimators=15, rng=0),
    "votes": lambda: pb.fit_samme(
        FIT, THREE, base_learner=partial(pb.fit_cart, max_depth=2), n_estimators=12
    ),
    "bags": lambda: pb.fit_bagging(pb.fit_cart, FIT, TWO, n_estimators=7, rng=0, max_depth=3),
    "probit trees": lambda: pb.fit_sbpmt(
        FIT, THREE, n_estimators=4, n_boosting_rounds=2, max_iter=5, rng=0
    ),
}
FITTED: dict = {}


def fitted(kind):
    if kind not in FITTED:
        FITTED[kind] = MODELS[kind]()
    return FITTED[kind]


def within(kind, share=0.4, **options):
    """Return the model within a share of what it costs."""
    model = fitted(kind)
    budget = share * pb.prediction_cost(model, CAL).mean()
    return pb.early_exit(model, CAL, mean_comparisons=budget, **options)


def left_one_by_one(exit_model, rows):
    """Return joint, value times slope, and cost, from the definition."""
    score, cost = trajectory(exit_model.model, rows)
    end, actual = len(score) - 1, []
    for i in range(len(rows)):
        for t in range(end + 1):
            value = score[t, i]
            if value.ndim == 0:
                size = abs(value)
            else:
                best, second = np.sort(value)[::-1][:2]
                size = best - second
            if t == end or size >= exit_model.threshold[t]:
                slope = 1.0 if t == end else exit_model.slope[t]
                actual.append((t, value, slope, cost[t, i]))
                break
    return actual


@pytest.mark.parametrize("kind", MODELS)
def test_rows_leave_where_they_are_sure(kind):
    model = within(kind)
    labels, values = pb.predict(model, TEST), pb.decision_function(model, TEST)
    share, cost = pb.predict_proba(model, TEST), pb.prediction_cost(model, TEST)
    is_mean = kind in ("forest", "forest of three", "bags", "probit trees")
    rows = left_one_by_one(model, TEST)
    assert len({t for t, *_ in rows}) > 1
    for i, (_, value, slope, comparisons) in enumerate(rows):
        assert cost[i] == comparisons
        expected = slope * value
        if is_mean:
            expected = np.clip(expected, -1, 1)
        if is_mean and value.ndim:
            expected = np.clip(1 / 3 + slope * (value - 1 / 3), 0, 1)
            expected /= expected.sum()
        np.testing.assert_allclose(values[i], expected, rtol=1e-12, atol=1e-15)
        best = int(value > 0) if value.ndim == 0 else int(np.argmax(value))
        assert labels[i] == model.classes[best]
    np.testing.assert_array_equal(labels, model.classes[share.argmax(axis=1)])
    np.testing.assert_allclose(share.sum(axis=1), 1)
    np.testing.assert_allclose(share, model.probabilities(values))


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_the_budget_is_kept_and_filled(kind, share):
    model = within(kind, share)
    cost = pb.prediction_cost(model, CAL)
    budget = share * pb.prediction_cost(model.model, CAL).mean()
    assert cost.mean() == pytest.approx(model.cost)
    error = cost.std(ddof=1) / np.sqrt(len(cost))
    assert model.settings["standard_error"] == pytest.approx(error)
    assert cost.mean() + error <= budget == model.budget
    assert cost.mean() + error >= (0.8 if len(model.threshold) < 8 else 0.93) * budget
    assert model.leaving.sum() == pytest.approx(1)


def test_thresholds_are_multiples_of_what_the_rest_adds():
    model = pb.early_exit(fitted("stagewise"), CAL, mean_comparisons=30, length=None)
    score = trajectory(model.model, CAL).score
    spread = np.sqrt(np.mean((score[-1] - score[:-1]) ** 2, axis=1))
    ratio = (model.threshold / spread)[1:]
    assert model.threshold[0] == np.inf
    assert np.median(ratio) == pytest.approx(ratio.max())
    slope = (score[:-1] * score[-1]).sum(axis=1) / (score[:-1] ** 2).sum(axis=1)
    np.testing.assert_allclose(model.slope, slope)


def test_leads_of_several_values_at_the_end():
    rng = np.random.default_rng(0)
    score = rng.normal(size=(6, 50, 3)).cumsum(axis=0)
    states = Trajectory(score, np.repeat(np.arange(6.0)[:, None], 50, axis=1))
    tree = pb.fit_gradient_boosting(
        FIT, THREE, loss="softmax", n_estimators=5, multi_strategy="multi_output_tree"
    )
    model = pb.early_exit(tree, states, mean_comparisons=2.5, length=None)
    for t in range(1, 5):
        change = []
        for i in range(50):
            first, second = np.argsort(-score[t, i])[:2]
            end = score[5, i, first] - max(np.delete(score[5, i], first))
            change.append(end - (score[t, i, first] - score[t, i, second]))
        tau = model.threshold[t] / np.sqrt(np.mean(np.square(change)))
        assert tau <= model.settings["tau"] * (1 + 1e-12)
    assert model.settings["tau"] > 0


@pytest.mark.parametrize("kind", ["chain of trees", "chain, votes", "softmax", "forest"])
def test_no_row_takes_more_than_the_worst(kind):
    model = fitted(kind)
    worst = 0.4 * pb.prediction_cost(model, TEST).mean()
    for budget in (None, 0.9 * worst):
        bounded = pb.early_exit(model, CAL, mean_comparisons=budget, max_comparisons=worst)
        rows = np.random.default_rng(0).normal(scale=9, size=(4000, 4))
        cost = pb.prediction_cost(bounded, rows)
        assert cost.max() <= worst
        end = bounded.settings["joints"]
        assert not bounded.threshold[end:].any()
        first = pb.early_exit(model, CAL, max_comparisons=worst).model.first(end)
        if budget is None:
            np.testing.assert_array_equal(pb.predict(bounded, TEST), pb.predict(first, TEST))


@pytest.mark.parametrize("kind", MODELS)
def test_the_longest_path_is_known_or_refused(kind):
    model = fitted(kind)
    if kind in ("votes", "bags", "probit trees"):
        with pytest.raises(
            NotImplementedError,
            match=r"max_comparisons: expected None for a .*, got 50; use a DecisionGraph",
        ):
            pb.early_exit(model, CAL, max_comparisons=50)
        return
    cost = trajectory(model, np.random.default_rng(1).normal(scale=2, size=(3000, 4))).cost
    longest = model.longest_costs()
    assert (cost.max(axis=1) <= longest).all()
    np.testing.assert_array_equal(cost.max(axis=1)[:2], longest[:2])


@pytest.mark.parametrize("kind", MODELS)
def test_files_and_pickles(kind, tmp_path):
    model = replace(within(kind), curve=np.arange(8.0).reshape(2, 4))
    pb.save(model, tmp_path / "model.npz")
    for other in (pb.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert type(other) is pb.models.EarlyExitModel
        for name in ("threshold", "slope", "curve", "leaving"):
            assert getattr(other, name).tobytes() == getattr(model, name).tobytes()
        assert (other.budget, other.cost) == (model.budget, model.cost)
        assert other.settings == model.settings
        assert pb.describe(other) == pb.describe(model)
        a, b = pb.decision_function(other, TEST), pb.decision_function(model, TEST)
        assert a.tobytes() == b.tobytes()


@pytest.mark.full_for("forest", "softmax")
@pytest.mark.parametrize("kind", ["chain of trees", "chain, votes", "softmax", "forest", "votes"])
def test_stages_columns_and_words(kind):
    model = within(kind)
    stages = list(pb.staged_decision_function(model, TEST))
    assert len(stages) == model.model.n_stages
    assert stages[-1].tobytes() == pb.decision_function(model, TEST).tobytes()
    score, cost = trajectory(model, TEST)
    assert score[-1].tobytes() == stages[-1].tobytes()
    np.testing.assert_array_equal(cost[-1], pb.prediction_cost(model, TEST))
    if kind != "votes":
        columns = pb.prediction_cost(model, TEST[:40], unit="features")
        for i, (t, *_) in enumerate(left_one_by_one(model, TEST[:40])):
            full_cost = pb.prediction_cost(model.model.first(t), TEST[i : i + 1], unit="features")
            assert columns[i] == full_cost[0]
    left = joints_left(
        trajectory(model.model, TEST).score, exits_of(model.threshold, model.n_votes)
    )
    row = int(np.argmin(left))
    explanation = pb.explain(model, TEST[row])
    assert f"stopped after {left[row]} of {model.model.n_stages} stages" in str(explanation)
    assert explanation.label == pb.predict(model, TEST[row : row + 1])[0]
    last = int(np.argmax(left))
    assert ("used all stages" in str(pb.explain(model, TEST[last]))) == (
        left[last] == model.model.n_stages
    )
    assert "of the rows have stopped" in pb.describe(model)


def test_a_budget_that_is_not_reached_changes_nothing():
    full_model = fitted("stagewise")
    model = pb.early_exit(full_model, CAL, mean_comparisons=1000)
    assert np.isinf(model.threshold).all()
    assert (
        pb.decision_function(model, TEST).tobytes()
        == pb.decision_function(full_model, TEST).tobytes()
    )
    assert "no row stops" in pb.describe(model)
    again = pb.early_exit(within("stagewise"), CAL, mean_comparisons=30)
    np.testing.assert_array_equal(
        again.threshold, pb.early_exit(full_model, CAL, mean_comparisons=30).threshold
    )


def test_out_of_fold_trajectories_calibrate():
    full_model = fitted("stagewise")
    parts = []
    for fold in range(2):
        model = fit_shallow(FIT[fold::2], TWO[fold::2], loss="log_loss", n_estimators=30)
        parts.append(trajectory(model, FIT[1 - fold :: 2]))
    states = Trajectory(*(np.concatenate(of, axis=1) for of in zip(*parts, strict=True)))
    model = pb.early_exit(full_model, states, mean_comparisons=30)
    assert 24 < pb.prediction_cost(model, TEST).mean() < 34


def test_frames_and_missing_values():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    frame = pandas.DataFrame(X, columns=list("abcd")).mask(rng.random(X.shape) < 0.1)
    frame["kind"] = rng.choice(["u", "v", "w"], size=len(X))
    full_model = pb.fit_gradient_boosting(frame[:400], TWO, loss="log_loss", n_estimators=20)
    model = pb.early_exit(full_model, frame[400:800], mean_comparisons=30)
    rows = frame[800:]
    for i, (t, value, slope, _) in enumerate(left_one_by_one(model, rows)):
        assert 0 < t <= 20
        assert pb.decision_function(model, rows)[i] == value * slope
        if i == 5:
            break
    assert pb.predict(model, rows.iloc[0]).tolist() == pb.predict(model, rows[:1]).tolist()


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda m: pb.early_exit(m, CAL), ValueError, "mean_comparisons: expected a budget"),
        (
            lambda m: pb.early_exit(m, CAL, mean_comparisons=0.5),
            ValueError,
            "at least 3, the mean cost",
        ),
        (
            lambda m: pb.early_exit(m, CAL, mean_comparisons=-1),
            ValueError,
            "mean_comparisons: expected",
        ),
        (
            lambda m: pb.early_exit(m, CAL, mean_comparisons=np.nan),
            ValueError,
            "mean_comparisons: expected",
        ),
        (
            lambda m: pb.early_exit(m, CAL, max_comparisons=2),
            ValueError,
            "max_comparisons: expected at least 3",
        ),
        (
            lambda m: pb.early_exit(m, CAL[:0], mean_comparisons=9),
            ValueError,
            "at least two rows, got 0",
        ),
        (lambda m: pb.early_exit(m, CAL, mean_comparisons=9, length=0.5), ValueError, "length"),
        (lambda m: pb.early_exit(m, CAL[:, :2], mean_comparisons=9), ValueError, "columns"),
        (
            lambda m: pb.early_exit(m, trajectory(m.first(4), CAL), mean_comparisons=9),
            ValueError,
            "trajectories of 30 stages",
        ),
        (
            lambda m: pb.early_exit(pb.fit_cart(FIT, TWO), CAL, mean_comparisons=9),
            ValueError,
            "got a Tree with one",
        ),
        (
            lambda m: pb.early_exit(
                pb.fit_gradient_boosting(FIT, FIT[:, 0], n_estimators=3), CAL, mean_comparisons=9
            ),
            NotImplementedError,
            "got a regression model",
        ),
        (
            lambda m: pb.early_exit("m", CAL, mean_comparisons=9),
            TypeError,
            "model: expected a model",
        ),
        (lambda m: pb.models.truncate(within("chain"), 3), TypeError, "which has early exits"),
        (
            lambda m: pb.models.EarlyExitModel(
                pb.fit_cart(FIT, TWO), [np.inf], [1.0], 9.0, 9.0, {}
            ),
            ValueError,
            "a classifier with at least two stages",
        ),
        (lambda m: replace(within("chain"), slope=np.zeros(60)), ValueError, "slope: expected"),
        (
            lambda m: replace(within("chain"), threshold=np.full(60, -1.0)),
            ValueError,
            "threshold: expected numbers >= 0",
        ),
        (lambda m: replace(within("chain"), threshold=np.ones(5)), ValueError, "threshold: shape"),
    ],
)
def test_bad_input(ask, error, said):
    if said == "threshold: shape":
        said = "threshold: expected shape"
    with pytest.raises(error, match=said):
        ask(fitted("stagewise"))
