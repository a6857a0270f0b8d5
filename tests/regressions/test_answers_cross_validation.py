"""Cross-validation of a fit of the other task, of fits that draw, and of rare classes.

A seed decides the result; a task that contradicts the fit is refused; a class with fewer rows than
folds is a warning that names it.
"""

from functools import partial

import numpy as np
import pytest

import pboost as pb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + RNG.normal(size=60) > 0
RARE = np.where(np.arange(60) < 3, "rare", np.where(Y, "ash", "oak"))
DRAWING = {
    "forest": partial(pb.fit_random_forest, n_estimators=3),
    "bagging": partial(pb.fit_bagging, pb.fit_cart, n_estimators=3),
    "sbpmt": partial(pb.fit_sbpmt, n_estimators=2, n_boosting_rounds=1, max_iter=2),
    "validation": partial(pb.fit_boosted_tree, max_nodes=20, validation=0.3),
    "nested": partial(partial(pb.fit_random_forest, n_estimators=2), max_depth=3),
    "own": lambda X, y, rng: pb.fit_random_forest(X, y, n_estimators=3, rng=rng),
}


@pytest.mark.parametrize("fit", DRAWING.values(), ids=DRAWING)
def test_a_seed_decides_the_result(fit):
    def run(rng):
        validated = pb.cross_validate(fit, X, Y, cv=4, rng=rng)
        return [getattr(validated, name).tolist() for name in ("error", "cost", "n_nodes")]

    first = run(3)
    assert run(3) == first
    assert run(np.random.default_rng(3)) == first
    assert run(4) != first


def test_a_seed_decides_a_margin_curve():
    def run(rng):
        return pb.inspection.margin_curve(
            DRAWING["validation"], X, Y, [-0.5, 0.0, 0.5], cv=4, rng=rng
        )

    np.testing.assert_array_equal(run(3), run(3))


def test_the_folds_do_not_depend_on_the_fit():
    folds = [
        pb.cross_validate(fit, X, Y, cv=4, rng=3).test_fold
        for fit in (DRAWING["forest"], partial(pb.fit_cart, max_depth=2))
    ]
    np.testing.assert_array_equal(*folds)


def test_each_fold_has_a_generator_of_its_own():
    given = []

    def fit(X, y, rng):
        given.append(rng)
        return pb.fit_cart(X, y, max_depth=1)

    pb.cross_validate(fit, X, Y, cv=3, rng=0)
    assert all(isinstance(rng, np.random.Generator) for rng in given)
    assert len({rng.integers(2**62) for rng in given}) == 3


def test_a_generator_of_the_fit_is_its_own():
    seen = []

    def fit(X, y, rng="none"):
        seen.append(rng)
        return pb.fit_cart(X, y, max_depth=1)

    pb.cross_validate(partial(fit, rng=7), X, Y, cv=2, rng=0)
    pb.cross_validate(partial(partial(fit, rng=8)), X, Y, cv=2, rng=0)
    assert seen == [7, 7, 8, 8]


def test_models_of_the_other_task():
    numbers, target = Y.astype(float), X[:, 0]
    regression = partial(pb.fit_cart, task="regression")
    with pytest.raises(ValueError, match=r"^task: .*'regression', got .* classification models"):
        pb.cross_validate(lambda X, y: pb.fit_cart(X, y), X, numbers, task="regression", cv=2)
    for fit in (
        regression,
        partial(pb.fit_gradient_boosting, loss="squared_error", n_estimators=2),
    ):
        with pytest.raises(
            ValueError, match=r"^task: .*'classification', got .* regression models"
        ):
            pb.cross_validate(fit, X, numbers, task="classification", cv=2)
    assert pb.cross_validate(pb.fit_cart, X, numbers, task="regression", cv=2).r2 is not None
    assert pb.cross_validate(regression, X, target, task="regression", cv=2).error.mean() < 0.5


@pytest.mark.parametrize("weighted", [False, True])
def test_a_class_with_fewer_rows_than_folds(weighted):
    weight = np.ones(60) if weighted else None
    of = " of positive weight" if weighted else ""
    message = rf"^y: class 'rare' has 3 rows{of}, fewer than the 5 folds"
    with pytest.warns(UserWarning, match=message) as caught:
        validated = pb.cross_validate(pb.fit_cart, X, RARE, cv=5, rng=0, sample_weight=weight)
    assert caught[0].filename == __file__
    assert sorted(np.bincount(validated.test_fold[:3], minlength=5)) == [0, 0, 1, 1, 1]
    two = np.where(RARE == "rare", "rare", "other")
    with pytest.warns(UserWarning, match=message):
        pb.cross_validate(pb.fit_cart, X, two, cv=5, rng=0, sample_weight=weight)
    fit = partial(pb.fit_boosted_tree, max_nodes=2)
    with pytest.warns(UserWarning, match=r"^y: class 'rare' has 3 rows, fewer than the 5 folds"):
        pb.inspection.margin_curve(fit, X, two, [0.0], cv=5, rng=0)


def test_a_class_of_one_row():
    first = np.where(np.arange(60) == 8, "rare", RARE)
    first[:3] = "ash"
    with pytest.warns(UserWarning, match=r"^y: class 'rare' has 1 row, fewer than the 3 folds"):
        validated = pb.cross_validate(pb.fit_cart, X, first, cv=3, rng=0)
    assert validated.error[validated.test_fold[8]] > 0
    with pytest.raises(
        ValueError, match=r"^y: expected more rows of each class, so that all training sets"
    ):
        pb.cross_validate(pb.fit_cart, X, first == "rare", cv=3, rng=0)


def test_more_folds_than_rows_of_any_class():
    with pytest.raises(
        ValueError, match=r"^cv: expected at most 10 folds, .* frequent class, got 11"
    ):
        pb.cross_validate(pb.fit_cart, X[:20], np.arange(20) % 2, cv=11)
