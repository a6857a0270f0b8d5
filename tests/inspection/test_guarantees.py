"""What holds on new rows: bounds on the error, thresholds, sets of labels."""

import numpy as np
import pytest
from scipy import stats

import pboost as pb
from pboost.inspection.error_bounds import PredictionSets

RNG = np.random.default_rng(3)
X = RNG.normal(size=(1600, 4))
NOISE = RNG.normal(size=1600)
Y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * NOISE > 0, "yes", "no")
THREE = np.digitize(X[:, 0] + 0.5 * NOISE, [-0.5, 0.5])
TRAIN, CAL = slice(0, 800), slice(800, 1600)


@pytest.fixture(scope="module")
def model():
    return pb.fit_adaboost(X[TRAIN], Y[TRAIN], n_estimators=40)


@pytest.fixture(scope="module")
def of_three():
    return pb.fit_random_forest(X[TRAIN], THREE[TRAIN], n_estimators=10, rng=0)


def test_numbers_of_a_guarantee(model):
    bounds = pb.error_bound(model, X[CAL], Y[CAL], confidence_level=0.9)
    wrong = pb.predict(model, X[CAL]) != Y[CAL]
    assert (bounds.n_rows, bounds.errors) == (800, wrong.sum())
    assert bounds.upper == pb.bounds.clopper_pearson_upper(wrong.sum(), 800, confidence_level=0.9)
    assert bounds.lower < bounds.error < bounds.upper <= bounds.pac_bayes
    for k, label in enumerate(["no", "yes"]):
        rows = Y[CAL] == label
        assert bounds.class_error[k] == pytest.approx(wrong[rows].mean())
        expected = stats.beta.ppf(0.9, wrong[rows].sum() + 1, rows.sum() - wrong[rows].sum())
        assert bounds.class_upper[k] == pytest.approx(expected)
    assert bounds.certificate == pb.certificate(model)
    assert bounds.cost == bounds.whole_cost == 40
    text = str(bounds)
    for said in ("certificate   training error <=", "with 90 %", "40 per row", "of 'yes'"):
        assert said in text


def test_of_early_exits_both_costs(model):
    small = pb.early_exit(model, X[TRAIN] + 1e-9, mean_comparisons=10)
    bounds = pb.error_bound(small, X[CAL], Y[CAL])
    assert bounds.cost < 15 < bounds.whole_cost == 40
    assert "40 without early exits" in str(bounds)
    assert bounds.errors == (pb.predict(small, X[CAL]) != Y[CAL]).sum()


def test_out_of_bag_is_an_estimate(of_three):
    bounds = pb.error_bound(of_three, X[CAL], THREE[CAL])
    assert bounds.out_of_bag == of_three.oob.error
    assert "an estimate" in str(bounds)
    assert "not available for this kind of model" in str(bounds)


def test_a_label_without_rows_is_not_bounded(of_three):
    rows = np.flatnonzero(THREE[CAL] != 1) + 800
    bounds = pb.error_bound(of_three, X[rows], THREE[rows])
    assert np.isnan(bounds.class_error[1])
    assert bounds.class_upper[1] == 1
    assert "of 1: no bound, because there are no rows" in str(bounds)


@pytest.mark.parametrize(
    "call", [pb.error_bound, pb.prediction_sets, lambda *a: pb.risk_threshold(*a, max_risk=0.1)]
)
def test_bad_calibration_rows(model, call):
    with pytest.raises(ValueError, match="X_cal: expected calibration rows, got none"):
        call(model, X[:0], Y[:0])
    yes = Y == "yes"
    with pytest.raises(ValueError, match=r"y_cal: expected rows of two classes.*cannot be bounded"):
        call(model, X[yes], Y[yes])
    with pytest.raises(
        ValueError, match=r"y_cal: expected class labels of the model.*'perhaps' in row 0"
    ):
        call(model, X[:2], ["perhaps", "no"])
    with pytest.raises(ValueError, match="y_cal: expected 2 labels, one per row of X_cal"):
        call(model, X[:2], ["no"])
    regression = pb.fit_cart(X[TRAIN], X[TRAIN, 0], task="regression")
    with pytest.raises(NotImplementedError, match="classifier"):
        call(regression, X[CAL], X[CAL, 0])


@pytest.mark.parametrize("delta", [0, 1, -1, 2.0, np.nan])
def test_confidence_level_and_alpha_are_probabilities(model, delta):
    with pytest.raises(ValueError, match="confidence_level: "):
        pb.error_bound(model, X[CAL], Y[CAL], confidence_level=1 - delta)
    with pytest.raises(ValueError, match="confidence_level: "):
        pb.risk_threshold(model, X[CAL], Y[CAL], max_risk=0.1, confidence_level=1 - delta)
    with pytest.raises(ValueError, match="alpha: "):
        pb.prediction_sets(model, X[CAL], Y[CAL], alpha=delta)


@pytest.mark.parametrize("risk", ["false_negatives", "false_positives"])
def test_threshold_is_the_last_of_a_fixed_sequence(model, risk):
    """The twin tests every threshold at which something changes, one after the other."""
    limit = 0.1
    actual = pb.risk_threshold(model, X[CAL], Y[CAL], risk=risk, max_risk=limit)
    p = pb.predict_proba(model, X[CAL])[:, 1]
    own = Y[CAL] == ("yes" if risk == "false_negatives" else "no")
    grid = np.concatenate([p, np.nextafter(p, -1)])
    grid = np.sort(grid) if risk == "false_negatives" else np.sort(grid)[::-1]
    said = [(p[own] > t) != (risk == "false_negatives") for t in grid]
    p_values = [pb.bounds.binomial_p_value(item.sum(), own.sum(), limit) for item in said]
    last = pb.bounds.fixed_sequence(p_values) - 1
    assert actual.threshold == grid[last]
    assert actual.errors == said[last].sum()
    assert actual.upper <= limit
    predicted = pb.predict(model, X[CAL], threshold=actual.threshold)
    assert actual.errors == (predicted != Y[CAL])[own].sum()
    assert actual.other_errors == (predicted != Y[CAL])[~own].sum()
    assert f"{risk}: {actual.errors} of {own.sum()}" in str(actual)


def test_too_few_rows_to_prove_a_limit(model, of_three):
    with pytest.raises(ValueError, match="at least 149 rows of class 'yes' to prove false_neg"):
        pb.risk_threshold(model, X[800:1000], Y[800:1000], max_risk=0.02)
    with pytest.raises(ValueError, match="model: expected a binary classifier, got 3"):
        pb.risk_threshold(of_three, X[CAL], THREE[CAL], max_risk=0.1)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("ties", ["conservative", "random"])
def test_sets_from_the_definition(of_three, per_class, ties):
    alpha, new = 0.15, X[TRAIN][:60]
    sets = pb.prediction_sets(
        of_three, X[CAL], THREE[CAL], alpha=alpha, per_class=per_class, ties=ties
    )
    actual = sets.contains(new, rng=0)
    custom_probabilities = pb.predict_proba(of_three, X[CAL])[np.arange(800), THREE[CAL]]
    for row, p in enumerate(pb.predict_proba(of_three, new)):
        for k in range(3):
            score = custom_probabilities[THREE[CAL] == k] if per_class else custom_probabilities
            worse, equal = (score < p[k]).sum(), (score == p[k]).sum()
            share = (1 + worse + np.array([0, equal])) / (1 + len(score))
            if ties == "conservative":
                assert actual[row, k] == (share[1] > alpha)
            elif (share > alpha).all() or not (share > alpha).any():
                assert actual[row, k] == (share[0] > alpha)
    assert sets.predict(new, rng=0) == [tuple(np.flatnonzero(row).tolist()) for row in actual]
    assert (actual == sets.contains(new, rng=0)).all()


def test_a_class_of_few_rows_is_always_in_the_set(of_three):
    rare = np.flatnonzero(THREE == 2)[-8:]
    rows = np.concatenate([np.flatnonzero(THREE[CAL] != 2) + 800, rare])
    sets = pb.prediction_sets(of_three, X[rows], THREE[rows], alpha=0.1, per_class=True)
    assert sets.contains(X)[:, 2].all()
    assert "2: 8 rows, fewer than 9: always in the set" in str(sets)
    sets = pb.prediction_sets(of_three, X[rows], THREE[rows], alpha=0.4, per_class=True)
    assert not sets.contains(X)[:, 2].all()
    assert "always" not in str(sets)
    few = pb.prediction_sets(of_three, X[800:808], THREE[800:808], alpha=0.1)
    assert few.contains(X).all()
    assert "every set has all classes" in str(few)


class _Said:
    """A model that says the numbers that it is given."""

    def predict_proba(self, X):
        return X


def test_coverage_of_sets_by_repetition():
    """Probabilities with many ties: random ones between the bounds, conservative ones above."""
    rng, n, alpha, repetitions = np.random.default_rng(0), 49, 0.1, 3000
    covered = {"random": 0, "conservative": 0}
    for _ in range(repetitions):
        score = rng.integers(0, 5, size=n + 1) / 4
        for ties in covered:
            sets = PredictionSets(_Said(), alpha, ties, False, (np.sort(score[:n]),), np.array([0]))
            covered[ties] += sets.contains(score[n:, None], rng=rng)[0, 0]
    error = 3 * np.sqrt(alpha * (1 - alpha) / repetitions)
    assert covered["conservative"] / repetitions >= 1 - alpha - error
    assert 1 - alpha - error <= covered["random"] / repetitions <= 1 - alpha + 1 / (n + 1) + error


def test_risk_of_thresholds_by_repetition(model):
    """Probabilities whose distribution is known: uniform numbers of positive rows."""
    rng, n, limit, delta, repetitions = np.random.default_rng(1), 1000, 0.05, 0.1, 3000
    allowed = np.count_nonzero(stats.binom.cdf(np.arange(n), n, limit) <= delta) - 1
    threshold = np.partition(rng.random((repetitions, n)), allowed, axis=1)[:, allowed]
    kept = np.mean(threshold <= limit)
    error = 3 * np.sqrt(delta * (1 - delta) / repetitions)
    assert 1 - delta - error <= kept <= 1 - delta + 0.05
