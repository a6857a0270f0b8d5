"""What takes a row source as X, and what does not."""

import re
from functools import partial

import numpy as np
import pytest
from partitioned import TABLES, VALUED, contents, divided
from shallow import PLAIN

import pboost as pb

FLIP = pb.observation.flip(0.1)


def in_order(table, n_parts=4):
    """Return the row source of a table, its rows in their order, one partition empty."""
    columns, y, weight = table
    parts = np.array_split(np.arange(len(y), dtype=np.int32), n_parts)
    parts.insert(1, parts[0][:0])
    weights = None if weight is None else [weight[rows] for rows in parts]
    return pb.partitions(
        [columns.select(rows) for rows in parts], [y[rows] for rows in parts], sample_weight=weights
    )


def of_many(table, n_classes):
    """Return a table with more classes, some of which a feature predicts."""
    columns, _, weight = table
    rng = np.random.default_rng(n_classes)
    label = rng.integers(0, n_classes, columns.n_rows)
    is_low = columns.codes[1] <= columns.n_bins[1] // 2
    return columns, np.where(is_low, label, label % 2), weight


MANY = {
    "chain": ("fit_adaboost", {"n_estimators": 8}),
    "tree": ("fit_boosted_tree", {"max_nodes": 9}),
    "chain of trees": ("fit_matryoshka", {"shape": (3, 2), "join": "all"}),
    "limits": (
        "fit_boosted_tree",
        {
            "max_nodes": 9,
            "weak_learner": pb.weak.stump(min_samples_leaf=9, min_weight_fraction=0.05),
            "smoothing": 0.0,
        },
    ),
    "validation": (
        "fit_adaboost",
        {"n_estimators": 20, "validation": 0.3, "n_iter_no_change": 2, "rng": 0},
    ),
}


@pytest.mark.parametrize("kind", MANY)
def test_graphs_of_more_than_two_classes_are_those_of_one_table(kind, tmp_path):
    builder, options = MANY[kind]
    for n_classes, name in zip(
        (3, 5, 17), ("weights", "holes", "categories, weights"), strict=True
    ):
        table = of_many(VALUED[name], n_classes)
        columns, y, weight = table
        full = getattr(pb, builder)(columns, y, sample_weight=weight, **options)
        actual = getattr(pb, builder)(in_order(table), **options)
        assert actual.n_nodes > 0
        assert contents(actual, tmp_path) == contents(full, tmp_path), name


def test_a_class_without_weight_is_refused():
    columns, y, _ = of_many(TABLES["numbers"], 3)
    with pytest.raises(ValueError, match="expected every class to have positive weight"):
        pb.fit_adaboost(in_order((columns, y, (y > 0) * 1.0)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_certificates_of_a_source_are_those_of_one_table(n_classes):
    table = VALUED["categories, weights"]
    table = table if n_classes == 2 else of_many(table, n_classes)
    columns, y, weight = table
    model = pb.fit_adaboost(in_order(table), n_estimators=5)
    bound = pb.certificate(model, in_order(table))
    assert bound == pb.certificate(model, columns.features(), y, sample_weight=weight)
    assert bound == pytest.approx(pb.certificate(model), rel=1e-12)
    with pytest.raises(TypeError, match=r"expected values .*, got BinnedColumns without values"):
        pb.certificate(model, in_order(TABLES["categories, weights"]))


@pytest.mark.parametrize(
    "fit", [pb.fit_adaboost, partial(pb.fit_gradient_boosting, n_estimators=20)]
)
def test_validation_rows_can_be_a_source(fit):
    columns, y, weight = VALUED["holes"]
    rows, (X, truth, of_rows) = in_order(VALUED["holes"]), (columns.features(), y, weight)
    model = fit(rows, validation=in_order(VALUED["holes"]), n_iter_no_change=2)
    full_model = fit(rows, validation=(X, truth, of_rows), n_iter_no_change=2)
    assert model.settings == full_model.settings
    np.testing.assert_array_equal(
        pb.decision_function(model, X), pb.decision_function(full_model, X)
    )


@pytest.mark.parametrize(
    ("fit", "task"),
    [
        (partial(pb.fit_adaboost, n_estimators=5), None),
        (partial(pb.fit_cart, max_depth=3), "classification"),
        (partial(pb.fit_gradient_boosting, n_estimators=5, **PLAIN), "regression"),
    ],
)
def test_cross_validation_has_the_folds_of_one_table(fit, task):
    columns, y, weight = VALUED["weights"]
    if task == "regression":
        y = y + columns.features().values[:, 0]
    rows = in_order((columns, y, weight))
    validated = pb.cross_validate(fit, rows, task=task, cv=3, rng=0)
    X = columns.features().values
    full_validated = pb.cross_validate(fit, X, y, sample_weight=weight, task=task, cv=3, rng=0)
    np.testing.assert_array_equal(validated.test_fold, full_validated.test_fold)
    # The bins are those of all rows here, of the training rows there.
    np.testing.assert_allclose(validated.error, full_validated.error, atol=0.1)
    for fold in range(3):
        train = np.flatnonzero(validated.test_fold != fold).astype(np.int32)
        test = np.flatnonzero(validated.test_fold == fold).astype(np.int32)
        model = fit(columns.select(train), y[train], sample_weight=weight[train])
        wrong = pb.predict(model, X[test]) - y[test]
        loss = wrong**2 if task == "regression" else wrong != 0
        assert validated.error[fold] == pytest.approx(np.average(loss, weights=weight[test]))


IN_ONE_PLACE = {
    "fit_real_adaboost": {},
    "fit_bagging": {"fit": pb.fit_adaboost, "n_estimators": 3, "rng": 0},
    "fit_one_vs_rest": {"fit": pb.fit_adaboost},
    "fit_oblique_tree": {},
    "fit_probit_tree": {},
    "fit_probitboost": {"max_iter": 3},
    "fit_pruned_cart": {"rng": 0},
    "fit_samme": {"n_estimators": 3},
    "fit_sbpmt": {"n_estimators": 2, "rng": 0},
    "fit_within_budget": {"mean_comparisons": 5, "rng": 0},
}


@pytest.mark.parametrize("builder", IN_ONE_PLACE)
def test_other_builders_take_all_rows_in_one_table(builder):
    rows, options = in_order(VALUED["numbers"]), dict(IN_ONE_PLACE[builder])
    first = [options.pop("fit")] if "fit" in options else []
    fit = getattr(pb, builder)
    with pytest.raises(NotImplementedError, match=r"pass rows\.gather\(\)"):
        fit(*first, rows, **options)
    columns, y, _ = VALUED["numbers"]
    actual, full_model = fit(*first, rows.gather(), **options), fit(*first, columns, y, **options)
    X = columns.features()
    np.testing.assert_array_equal(pb.predict(actual, X), pb.predict(full_model, X))


def test_gathered_rows_are_those_of_the_partitions():
    columns, y, weight = VALUED["holes"]
    actual = in_order(VALUED["holes"]).gather()
    np.testing.assert_array_equal(actual.X.codes, columns.codes)
    np.testing.assert_array_equal(actual.X.features().values, columns.features().values)
    np.testing.assert_array_equal(actual.y, y)
    np.testing.assert_array_equal(actual.sample_weight, weight)
    assert pb.partitions(*divided(TABLES["numbers"], 2)[:2]).gather().sample_weight is None


def test_inputs_are_not_changed_by_fits():
    table = VALUED["weights"]
    rows, before = in_order(table), contents_of(table)
    for _ in range(2):
        pb.fit_adaboost(rows, n_estimators=3, validation=0.3, rng=0)
        pb.fit_random_forest(rows, n_estimators=2, rng=0)
    assert contents_of(table) == before
    again = pb.fit_adaboost(in_order(table), n_estimators=3).vote
    np.testing.assert_array_equal(pb.fit_adaboost(rows, n_estimators=3).vote, again)


def contents_of(table):
    columns, y, weight = table
    return columns.codes.tobytes(), y.tobytes(), weight.tobytes()


GIVEN_TWICE = {
    "y": {"y": [0, 1]},
    "sample_weight": {"sample_weight": [1.0, 1.0]},
    "y_proba": {"y_proba": [0.5, 0.5]},
    "classes": {"classes": ["a", "b"]},
    "categorical_features": {"categorical_features": [0]},
}


@pytest.mark.parametrize("name", GIVEN_TWICE)
def test_what_a_source_has_is_not_given_again(name):
    rows, message = in_order(TABLES["numbers"]), f"{name}: expected None, because the row source X"
    for builder in (
        "fit_adaboost",
        "fit_boosted_tree",
        "fit_cart",
        "fit_random_forest",
        "fit_gradient_boosting",
    ):
        for X in (rows, rows.gather()):
            with pytest.raises(ValueError, match=re.escape(message)):
                getattr(pb, builder)(X, **GIVEN_TWICE[name])


@pytest.mark.parametrize(
    ("fit", "options"),
    [
        (pb.fit_adaboost, {"weak_learner": pb.weak.affine()}),
        (pb.fit_adaboost, {"observation": pb.observation.gaussian(0.1)}),
        (pb.fit_adaboost, {"observation": pb.observation.sampled()}),
        (pb.fit_adaboost, {"feature_costs": {0: 1.0}}),
        (pb.fit_boosted_tree, {"weak_learner": pb.weak.stump(search="exact")}),
        (pb.fit_cart, {"search": "exact"}),
        (pb.fit_gradient_boosting, {"loss": "absolute_error", "task": "regression"}),
    ],
)
def test_options_that_need_all_rows_in_one_place(fit, options):
    with pytest.raises(NotImplementedError, match=r"rows\.gather\(\)"):
        fit(in_order(VALUED["numbers"]), **options)
