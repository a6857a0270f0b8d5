"""Nothing that training uses depends on the rows that `validation` holds out.

X and the weights of these rows are changed arbitrarily, and y within its class (of a regression
arbitrarily): the rounds that both models have are the same on the training rows, bit for bit. Only
the number of rounds may differ, which these rows choose.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from partitioned import fit_parted

import pboost as pb
import pboost.sklearn as sk
from pboost.data.resampling import hold_out

N, SHARE, SEED = 90, 0.3, 7
r = np.random.default_rng(0)
X = np.column_stack(
    [r.normal(size=N), r.integers(0, 12, N), r.random(N).round(2), r.normal(size=N)]
)
SCORE = X[:, 0] - X[:, 2] + 0.1 * X[:, 1] * X[:, 3] + 0.5 * r.normal(size=N)
TWO, THREE = np.median(SCORE) < SCORE, np.searchsorted(np.quantile(SCORE, [0.3, 0.7]), SCORE)
COUNTS = np.exp(SCORE).round()
TARGETS = {"two": TWO, "three": THREE, "numbers": SCORE, "counts": COUNTS}
weak, see = pb.weak, pb.observation
BINNED = weak.stump(search="binned", max_bins=8)
ada, tree = partial(pb.fit_adaboost, n_estimators=5), partial(pb.fit_boosted_tree, max_nodes=5)
nested = partial(pb.fit_matryoshka, shape=(3, 3))
sums = partial(pb.fit_gradient_boosting, n_estimators=4, max_bins=16)
#: Builders, by what they are fitted to.
FITS = {
    "two": {
        "adaboost": ada,
        "adaboost binned": partial(ada, weak_learner=BINNED),
        "adaboost flip": partial(ada, observation=see.flip(0.1)),
        "adaboost gaussian": partial(ada, observation=see.gaussian(0.3)),
        "adaboost sampled": partial(ada, observation=see.sampled(2)),
        "adaboost affine": partial(ada, weak_learner=weak.affine()),
        "adaboost linear": partial(ada, weak_learner=weak.linear(max_pairs=3)),
        "boosted tree": tree,
        "boosted tree binned": partial(tree, weak_learner=BINNED),
        "boosted tree adatree2": partial(tree, observation=see.adatree2()),
        "boosted tree separators": partial(tree, weak_learner=weak.separator()),
        "oblique tree": partial(pb.fit_oblique_tree, n_stumps=2, max_nodes=2),
        "matryoshka": nested,
        "matryoshka chain": partial(nested, join="all"),
        "matryoshka sign": partial(nested, collect="sign"),
        "matryoshka greedy": partial(pb.fit_matryoshka, growth="greedy", max_nodes=6),
        "sum": sums,
        "sum exact": partial(sums, search="exact"),
        "sum exponential": partial(sums, loss="exponential", leaf_update="newton", subsample=0.6),
        "sum squared": partial(sums, loss="squared_error", task="classification"),
        "sum hinge": partial(sums, loss="hinge", max_features=2),
        "sum wide": partial(
            sums,
            histogram_precision="wide",
            growth="independent",
            l2_regularization=0.5,
            min_child_weight=0.1,
        ),
        "sum priced": partial(sums, feature_costs=[1, 2, 3, 4]),
    },
    "three": {
        "adaboost": ada,
        "boosted tree": tree,
        "matryoshka": partial(pb.fit_matryoshka, join="all", shape=(3, 3)),
        "sum": partial(sums, loss="softmax"),
        "sum one tree": partial(sums, loss="softmax", multi_strategy="multi_output_tree"),
        "sum exact": partial(sums, loss="softmax", search="exact"),
    },
    "numbers": {
        "sum": partial(sums, task="regression"),
        "sum exact": partial(sums, task="regression", search="exact"),
        "sum absolute": partial(sums, loss="absolute_error"),
        "sum huber": partial(sums, loss="huber"),
        "sum quantile": partial(sums, loss=pb.losses.Quantile(0.8)),
    },
    "counts": {"sum": partial(sums, loss="poisson")},
}
CASES = [(target, name) for target, fits in FITS.items() for name in fits]


def held_rows(y, is_class):
    """Return the rows that a fit holds out."""
    strata = [np.flatnonzero(y == k) for k in np.unique(y)] if is_class else [np.arange(len(y))]
    return hold_out(strata, SHARE, np.random.default_rng(SEED))


def staged(model, rows):
    return list(pb.staged_decision_function(model, rows))


def assert_same_rounds(one, other, rows):
    """Rounds that both models have give the same decision values."""
    pairs = list(zip(staged(one, rows), staged(other, rows), strict=False))
    assert pairs
    for k, (a, b) in enumerate(pairs):
        np.testing.assert_array_equal(a, b, err_msg=f"stage {k}")


class Changed:
    """A problem, and the same with other numbers in the rows that are held out."""

    def __init__(self, target, seed=1):
        self.y, is_class = TARGETS[target], target in ("two", "three")
        rng, self.held = np.random.default_rng(seed), held_rows(self.y, is_class)
        self.kept = np.setdiff1d(np.arange(N), self.held)
        n, self.weight = len(self.held), rng.integers(1, 4, N).astype(float)
        self.X, self.other_y, self.other_weight = X.copy(), self.y.copy(), self.weight.copy()
        self.X[self.held] = rng.normal(size=(n, 4)) * 10.0 ** rng.integers(-3, 9, (n, 4))
        self.other_weight[self.held] = 10.0 ** rng.uniform(-8, 12, n)
        if not is_class:
            self.other_y[self.held] = (10.0 ** rng.uniform(0, 9, n)).round()

    def assert_same(self, fit, one, other, cut=lambda rows: rows):
        """Fits to two forms of X have the same rounds; `cut` makes partitions of y and weights."""
        fit = partial(fit, validation=SHARE, rng=SEED, n_iter_no_change=20)
        for weight, new in (
            (self.weight, self.other_weight),
            (np.ones(N), np.where(self.weight == self.other_weight, 1.0, self.other_weight)),
        ):
            assert_same_rounds(
                fit(one, cut(self.y), sample_weight=cut(weight)),
                fit(other, cut(self.other_y), sample_weight=cut(new)),
                X[self.kept],
            )


@pytest.mark.parametrize(("target", "name"), CASES)
def test_rounds_do_not_depend_on_rows_held_out(target, name):
    problem = Changed(target)
    problem.assert_same(FITS[target][name], X, problem.X)


SUMS = [case for case in CASES if case[1].startswith("sum")]


@pytest.mark.parametrize(("target", "name"), SUMS)
def test_without_weights_neither(target, name):
    problem = Changed(target)
    fit = partial(FITS[target][name], validation=SHARE, rng=SEED, n_iter_no_change=20)
    assert_same_rounds(fit(X, problem.y), fit(problem.X, problem.other_y), X[problem.kept])


@pytest.mark.parametrize("name", ["adaboost", "adaboost affine", "boosted tree", "sum exact"])
def test_nor_do_those_of_sorted_columns(name):
    problem = Changed("two")
    problem.assert_same(FITS["two"][name], pb.data.sort_columns(X), pb.data.sort_columns(problem.X))


BINNED_BEFORE = [case for case in CASES if case[1] in ("adaboost", "boosted tree", "sum")]


@pytest.mark.parametrize(("target", "name"), BINNED_BEFORE)
def test_of_bins_made_before_only_the_bins_depend_on_all_rows(target, name):
    columns = pb.data.bin_columns(X, max_bins=9, keep_values=True)
    Changed(target).assert_same(FITS[target][name], columns, columns)


@pytest.mark.parametrize(
    ("fit", "target"),
    [
        (partial(fit_parted, "fit_adaboost", n_estimators=5), "two"),
        (partial(fit_parted, "fit_boosted_tree", max_nodes=5), "two"),
        (partial(fit_parted, "fit_matryoshka", shape=(3, 3)), "two"),
        (partial(fit_parted, "fit_gradient_boosting", n_estimators=4), "two"),
        (
            partial(fit_parted, "fit_gradient_boosting", n_estimators=4, loss="squared_error"),
            "numbers",
        ),
        (partial(fit_parted, "fit_gradient_boosting", n_estimators=4, loss="poisson"), "counts"),
    ],
)
def test_nor_do_those_of_partitions(fit, target):
    def cut(rows):
        return [rows[:20], rows[20:55], rows[55:]]

    columns = pb.data.bin_columns(X, max_bins=9, keep_values=True)
    parts = [columns.select(rows.astype(np.int32)) for rows in cut(np.arange(N))]
    Changed(target).assert_same(fit, parts, parts, cut)


SOFT = [
    ("two", "adaboost"),
    ("two", "sum"),
    ("two", "sum exact"),
    ("three", "adaboost"),
    ("three", "boosted tree"),
    ("three", "sum"),
    ("three", "sum one tree"),
]


@pytest.mark.parametrize(("target", "name"), SOFT)
def test_nor_do_those_of_soft_labels(target, name):
    """The likeliest class of a row held out stays."""
    rng, j = np.random.default_rng(5), 2 if target == "two" else 3
    share = rng.dirichlet(np.ones(j), N)
    share[::3] = np.eye(j)[share[::3].argmax(axis=1)]
    held = held_rows(share.argmax(axis=1), True)
    other, Z = share.copy(), X.copy()
    other[held] = 0.9 * np.eye(j)[share[held].argmax(axis=1)] + 0.1 / j
    Z[held] = 1e4 * rng.normal(size=(len(held), 4))
    fit = partial(FITS[target][name], validation=SHARE, rng=SEED, n_iter_no_change=20)
    kept = np.setdiff1d(np.arange(N), held)
    assert_same_rounds(fit(X, y_proba=share), fit(Z, y_proba=other), X[kept])


ESTIMATORS = [
    (sk.GradientBoostingClassifier, "two"),
    (sk.GradientBoostingClassifier, "three"),
    (sk.GradientBoostingRegressor, "numbers"),
    (sk.AdaBoostClassifier, "two"),
    (sk.AdaBoostClassifier, "three"),
    (sk.SoftTreeClassifier, "two"),
    (sk.MatryoshkaClassifier, "two"),
    (sk.ObliqueTreeClassifier, "two"),
]


@pytest.mark.parametrize(("estimator", "target"), ESTIMATORS)
def test_nor_do_those_of_estimators(estimator, target):
    """Also where classes are balanced: their weights are those of numbers of rows."""
    problem, options = Changed(target), {"validation": SHARE, "random_state": SEED}
    if target != "numbers":
        options["class_weight"] = "balanced"
    first = estimator(**options).fit(X, problem.y, problem.weight)
    other = estimator(**options).fit(problem.X, problem.other_y, problem.other_weight)
    assert_same_rounds(first.model_, other.model_, X[problem.kept])


def test_members_of_one_vs_rest_hold_out_rows_of_their_own():
    fit = partial(
        pb.fit_one_vs_rest,
        pb.fit_adaboost,
        weak_learner=BINNED,
        n_estimators=5,
        validation=SHARE,
        rng=SEED,
    )
    rng, first = np.random.default_rng(2), fit(X, THREE)
    for k in range(3):
        held, Z = held_rows(k == THREE, True), X.copy()
        Z[held] = 1e6 * rng.normal(size=(len(held), 4))
        kept = np.setdiff1d(np.arange(N), held)
        assert_same_rounds(first.models[k], fit(Z, THREE).models[k], X[kept])


def test_members_of_a_bagging_make_bins_of_their_own_rows():
    """Bins that all members share would be those of the rows held out, too."""

    def unknown(X, y, sample_weight=None, *, rng=None, n_threads=None, **options):
        return pb.fit_adaboost(X, y, sample_weight=sample_weight, rng=rng, **options)

    options = {
        "weak_learner": BINNED,
        "validation": SHARE,
        "n_estimators": 3,
    }
    first, other = (
        pb.fit_bagging(partial(fit, n_estimators=5), X, TWO, rng=SEED, **options)
        for fit in (pb.fit_adaboost, unknown)
    )
    for a, b in zip(first.models, other.models, strict=True):
        np.testing.assert_array_equal(a.threshold, b.threshold)
        np.testing.assert_array_equal(a.vote, b.vote)


def test_one_heavy_row_held_out_does_not_spoil_the_bins():
    weight, losses = np.ones(N), ([], [])
    weight[held_rows(SCORE, False)[0]] = 1e6
    for given, item in zip((None, weight), losses, strict=True):
        pb.fit_gradient_boosting(
            X,
            SCORE,
            sample_weight=given,
            n_estimators=30,
            validation=SHARE,
            rng=SEED,
            callback=lambda _, record, result=item: result.append(record.training_loss),
        )
    assert losses[0] == losses[1]
    assert losses[1][-1] < 0.2 * losses[1][0]


def test_targets_of_rows_held_out_are_no_scale():
    """Numbers of training beside those 310 orders of magnitude larger became zeros."""
    small, large = SCORE * 1e-160, SCORE * 1e-160
    held = held_rows(small, False)
    large[held] = 1e150
    fit = partial(
        pb.fit_gradient_boosting, task="regression", n_estimators=4, validation=SHARE, rng=SEED
    )
    first, other = fit(X, small), fit(X, large)
    assert_same_rounds(first, other, np.delete(X, held, axis=0))
    assert staged(other, X)[0].std() > 0


# Categories and missing values


def frame(seed, held):
    """Return two frames of numbers with missing values and of categories.

    The second one has, in the rows held out, categories and missing values that others have not.
    """
    rng = np.random.default_rng(seed)
    known = pd.DataFrame(
        {
            "a": X[:, 0],
            "b": np.where(rng.random(N) < 0.2, np.nan, X[:, 1]),
            "c": X[:, 2],
            "d": pd.Series([f"level {k}" for k in rng.integers(0, 4, N)]).astype("category"),
            "e": pd.Categorical.from_codes(
                rng.integers(0, 3, N), ["low", "mid", "top"], ordered=True
            ),
        }
    )
    other = with_new_levels(known, "d", held)
    other.loc[held[::2], ["a", "e"]] = None
    other.loc[held[1::2], ["b", "c"]] = 1e9
    return known, other


def with_new_levels(known, column, rows):
    """Return a frame in which each of some rows has a category of its own, the first in order."""
    other, new = known.copy(), [f"{k} held" for k in range(len(rows))]
    other[column] = other[column].cat.add_categories(new)
    other.loc[rows, column] = new
    return other


OF_FRAMES = (
    "adaboost",
    "adaboost affine",
    "adaboost binned",
    "adaboost linear",
    "boosted tree",
    "boosted tree separators",
    "oblique tree",
    "matryoshka",
    "sum",
    "sum exact",
    "sum one tree",
)


@pytest.mark.parametrize(("target", "name"), [case for case in CASES if case[1] in OF_FRAMES])
def test_categories_and_missing_values_of_rows_held_out_change_no_round(target, name):
    y, is_class = TARGETS[target], target in ("two", "three")
    held = held_rows(y, is_class)
    known, other = frame(3, held)
    fit = partial(FITS[target][name], validation=SHARE, rng=SEED, n_iter_no_change=20)
    first, changed = fit(known, y), fit(other, y)
    kept = np.setdiff1d(np.arange(N), held)
    assert_same_rounds(first, changed, known.iloc[kept])
    for model, rows in (first, known), (changed, other):
        check_measured(model, rows.iloc[held], y[held])


def check_measured(model, rows, y):
    """The rows held out are measured as new rows are, with categories that are not known."""
    if hasattr(model, "record"):
        error = (pb.predict(model, rows) != y).mean()
        assert model.record.validation[model.n_nodes] == pytest.approx(error)
        return
    f = pb.decision_function(model, rows)
    truth = y if model.classes is None else np.searchsorted(model.classes, y).astype(float)
    truth = 2 * truth - 1 if model.classes is not None and f.ndim == 1 else truth
    loss = model.loss.reported * model.loss.value(truth, f).mean()
    assert model.validation_loss[len(model)] == pytest.approx(loss, rel=1e-9)


@pytest.mark.parametrize("name", ["adaboost", "sum", "sum exact"])
@pytest.mark.parametrize("n_levels", [254, 255, 256])
def test_nor_do_too_many_categories(name, n_levels):
    """Beyond 255 categories the lightest of the training rows share a number."""
    rng, n = np.random.default_rng(1), 500
    y = rng.random(n) < 0.5
    held = held_rows(y, True)
    kept = np.setdiff1d(np.arange(n), held)
    level = np.zeros(n, dtype=int)
    level[kept] = np.r_[np.arange(n_levels), rng.integers(0, n_levels, len(kept) - n_levels)]
    level = pd.Series([f"level {k}" for k in level]).astype("category")
    known = pd.DataFrame({"x": rng.normal(size=n), "d": level})
    other = with_new_levels(known, "d", held)
    fit = partial(FITS["two"][name], validation=SHARE, rng=SEED, n_iter_no_change=20)
    assert_same_rounds(fit(known, y), fit(other, y), known.iloc[kept])


@pytest.mark.parametrize("name", ["sum", "sum exact"])
def test_a_longer_fit_keeps_the_categories_of_the_model(name):
    held = held_rows(TWO, True)
    known, other = frame(3, held)
    fit = partial(FITS["two"][name], validation=SHARE, rng=SEED, n_iter_no_change=20)
    goes_on = [
        pb.continue_fit(fit(rows, TWO), rows, TWO, n_estimators=4) for rows in (known, other)
    ]
    assert_same_rounds(*goes_on, known.drop(index=held))
    at_once = fit(other, TWO, n_estimators=8)
    np.testing.assert_array_equal(staged(goes_on[1], other), staged(at_once, other))
