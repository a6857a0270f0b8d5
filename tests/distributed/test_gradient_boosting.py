"""Sums of trees of rows in partitions: the bytes of the model of one table."""

import re
import types

import numpy as np
import pytest
from partitioned import PARTS, TABLES, contents, divided, fit_parted

import pboost as pb
from pboost.data.training_data import Problem
from pboost.distributed import partitions
from pboost.distributed import round_partitions as round_shards

OPTIONS = {
    "independent": {"growth": "independent", "max_depth": 5},
    "symmetric": {"growth": "symmetric"},
    "leaves": {"max_leaf_nodes": 6, "max_depth": None},
    "min_samples_leaf": {"min_samples_leaf": 20, "growth": "independent"},
    "wide sums": {"histogram_precision": "wide"},
    "packed sums": {"histogram_precision": "packed"},
    "newton": {"leaf_update": "newton"},
    "nothing held back": {"l2_regularization": 0.0, "max_delta_step": None},
    "columns drawn": {"max_features_per_tree": 2, "max_features": 1, "rng": 3},
    "interactions": {"interaction_cst": [[0, 1], [2]], "growth": "independent"},
    "smoothing": {"categorical_smoothing": 2.0, "growth": "independent"},
    "restraints": {
        "min_child_weight": 3.0,
        "min_split_gain": 0.5,
        "learning_rate": 1.0,
        "growth": "independent",
    },
    "from 0": {"init": "zero"},
}


def products():
    """Return rows of which pairs of columns tell much that none tells alone."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8000, 20)).round(2)
    z = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] + 0.5 * X[:, 4] * X[:, 5]
    return X, (z + rng.normal(size=len(X)) > 0).astype(int)


def of_numbers(table, seed=0):
    """Return the table with numbers in place of labels."""
    columns, y, weight = table
    return columns, np.random.default_rng(seed).poisson(1 + 3 * (y == y[0])) * 1.0, weight


def both(table, n_parts, path, **options):
    """Return the bytes of the models of one table and of partitions."""
    columns, y, weight = table
    X, labels, weights = divided(table, n_parts)
    full_model = pb.fit_gradient_boosting(
        columns, y, sample_weight=weight, **{"n_estimators": 6, **options}
    )
    parted = fit_parted(
        "fit_gradient_boosting", X, labels, sample_weight=weights, **{"n_estimators": 6, **options}
    )
    return contents(full_model, path), contents(parted, path)


@pytest.mark.parametrize("name", TABLES)
def test_partitions_give_the_bytes_of_one_table(name, tmp_path):
    for n_parts, loss in zip(PARTS, ("log_loss", "exponential", "log_loss", "probit"), strict=True):
        full, parted = both(TABLES[name], n_parts, tmp_path, loss=loss)
        assert parted == full, n_parts
    for n_parts, loss in ((2, "squared_error"), (7, "poisson")):
        full, parted = both(of_numbers(TABLES[name]), n_parts, tmp_path, loss=loss)
        assert parted == full, loss


def test_losses_with_parameters(tmp_path):
    table = columns, _, weight = TABLES["weights"]
    full, parted = both(table, 3, tmp_path, loss=pb.losses.Focal(0.5))
    assert parted == full
    numbers = of_numbers(table)[1]
    for loss, target in (("gamma", numbers + 0.5), (pb.losses.Tweedie(1.2), numbers)):
        full, parted = both((columns, target, weight), 3, tmp_path, loss=loss)
        assert parted == full, loss


@pytest.mark.parametrize("options", OPTIONS)
def test_options_mean_what_they_mean_of_one_table(options, tmp_path):
    for name in ("holes", "categories, weights"):
        for loss in ("log_loss", "exponential"):
            full, parted = both(TABLES[name], 3, tmp_path, loss=loss, **OPTIONS[options])
            assert parted == full, (name, loss)


@pytest.mark.parametrize("validation", [0.3, "given"])
def test_rows_that_are_held_out(validation, tmp_path):
    for name in ("ties", "weights", "holes, no weights", "categories, weights"):
        columns, y, weight = TABLES[name]
        for loss in ("log_loss", "exponential", "squared_error"):
            target = of_numbers(TABLES[name])[1] if loss == "squared_error" else y
            rows = np.random.default_rng(3).choice(len(y), 80).astype(np.int32)
            held = validation
            if held == "given":
                if "categories" in name:
                    continue  # words are asked for
                values = Problem.values(types.SimpleNamespace(columns=columns), rows)
                held = values, target[rows[::-1]], np.arange(80.0)
            options = {
                "loss": loss,
                "n_estimators": 30,
                "validation": held,
                "n_iter_no_change": 2,
                "rng": 8,
            }
            options["learning_rate"] = 1.0
            full_model = pb.fit_gradient_boosting(columns, target, sample_weight=weight, **options)
            cuts = [40, 40, 41, 250]
            parts = [part.astype(np.int32) for part in np.split(np.arange(len(y)), cuts)]
            weights = None if weight is None else [weight[part] for part in parts]
            parted = fit_parted(
                "fit_gradient_boosting",
                [columns.select(part) for part in parts],
                [target[part] for part in parts],
                sample_weight=weights,
                **options,
            )
            assert contents(parted, tmp_path) == contents(full_model, tmp_path), (name, loss)
            assert len(parted) < 30


def test_losses_of_many_classes_are_added_up_as_in_one_table(tmp_path):
    columns, y, weight = of_classes(TABLES["weights"], 12)
    options = {"n_estimators": 3, "validation": 0.4, "rng": 2}
    full_model = pb.fit_gradient_boosting(columns, y, sample_weight=weight, **options)
    for n_parts in (1, 3, 60):
        rows = np.array_split(np.arange(len(y), dtype=np.int32), n_parts)
        parts = [columns.select(of) for of in rows], [y[of] for of in rows]
        weights = [weight[of] for of in rows]
        parted = fit_parted("fit_gradient_boosting", *parts, sample_weight=weights, **options)
        assert contents(parted, tmp_path) == contents(full_model, tmp_path)


def test_monotone_columns(tmp_path):
    options = {"loss": "log_loss", "monotonic_cst": {0: 1, 2: -1}, "growth": "independent"}
    full, parted = both(TABLES["weights"], 4, tmp_path, **options)
    assert parted == full


@pytest.mark.parametrize("weight", [None, 2.0, 0.3])
def test_the_data_choose_the_growth(weight, tmp_path):
    X, y = products()
    weights = None if weight is None else np.full(len(y), weight)
    if weight == 0.3:
        weights[::3] = 0.77
    table = pb.data.bin_columns(X), y, weights
    full, parted = both(table, 5, tmp_path, loss="log_loss", n_estimators=2, max_depth=6)
    assert parted == full
    model = fit_parted("fit_gradient_boosting", *divided(table, 2)[:2], n_estimators=1, max_depth=6)
    assert model.settings["growth"] == "symmetric"


def test_columns_of_two_values_that_share_a_lane_in_one_table(tmp_path):
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 6, 400)
    X = np.column_stack([np.eye(6)[kind], rng.normal(size=400)])
    y = (kind % 2 + X[:, 6] + rng.normal(size=400) > 1).astype(int)
    for growth in ("independent", "symmetric"):
        full, parted = both((pb.data.bin_columns(X), y, None), 3, tmp_path, growth=growth)
        assert parted == full


def test_rows_in_another_order_give_the_bytes(tmp_path):
    for name in ("weights", "weights that add up to 1"):
        columns, y, weight = TABLES[name]
        order = np.random.default_rng(5).permutation(len(y)).astype(np.int32)
        for loss in ("log_loss", "exponential", "probit", "squared_error", "poisson"):
            _, target, _ = of_numbers(TABLES[name])
            target = target if loss in ("squared_error", "poisson") else y
            options = {"loss": loss, "n_estimators": 3}
            first = pb.fit_gradient_boosting(columns, target, sample_weight=weight, **options)
            again = pb.fit_gradient_boosting(
                columns.select(order), target[order], sample_weight=weight[order], **options
            )
            assert contents(again, tmp_path) == contents(first, tmp_path), (name, loss)


def test_partitions_without_weight_or_of_one_row(tmp_path):
    columns, y, weight = TABLES["holes"]
    weight = np.where(np.arange(len(y)) < 100, 0.0, weight)
    weight[-1] = 1.0
    cuts = [100, len(y) - 1]
    parts = [rows.astype(np.int32) for rows in np.split(np.arange(len(y)), cuts)]
    options = {"n_estimators": 5, "loss": "log_loss"}
    full_model = pb.fit_gradient_boosting(columns, y, sample_weight=weight, **options)
    parted = fit_parted(
        "fit_gradient_boosting",
        [columns.select(rows) for rows in parts],
        [y[rows] for rows in parts],
        sample_weight=[weight[rows] for rows in parts],
        **options,
    )
    assert contents(parted, tmp_path) == contents(full_model, tmp_path)


class Forgetful:
    """An engine that has its places begin anew before a question now and then."""

    def __init__(self, make, rng):
        self.make, self.rng, self.shards = make, rng, make()
        self.workers = pb.threads.Workers(1)

    def close(self):
        """Nothing is held."""

    def ask(self, what, *arguments):
        return [getattr(shard, what)(*arguments) for shard in self.make()]

    def masses(self, told):
        if self.rng.random() < 0.25:
            self.shards = self.make()
        return [shard.masses(told) for shard in self.shards]


@pytest.mark.parametrize("sums", ["packed", "wide"])
def test_a_place_that_begins_anew_at_any_question_has_the_same_bits(sums, tmp_path, monkeypatch):
    columns, y, weight = TABLES["categories, weights"]
    X, labels, weights = divided(TABLES["categories, weights"], 3)
    options = {
        "n_estimators": 6,
        "loss": "log_loss",
        "growth": "independent",
        "histogram_precision": sums,
    }
    full_model = pb.fit_gradient_boosting(columns, y, sample_weight=weight, **options)

    class Place(round_shards.RoundShard):
        made = 0

        def __init__(self, *given):
            Place.made += 1
            super().__init__(*given)

    def engine(self, given, *_):
        workers = pb.threads.Workers(1)
        return Forgetful(
            lambda: [Place(*item, workers) for item in given.values()], np.random.default_rng(0)
        )

    monkeypatch.setattr(partitions.LocalPlace, "engine", engine)
    parted = fit_parted("fit_gradient_boosting", X, labels, sample_weight=weights, **options)
    assert contents(parted, tmp_path) == contents(full_model, tmp_path)
    assert Place.made > 15


def test_what_goes_wrong_at_a_question_is_raised(monkeypatch):
    X, labels, _ = divided(TABLES["numbers"], 3)
    left = 0

    def masses(shard, told):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return answer(shard, told)

    answer = round_shards.RoundShard.masses
    monkeypatch.setattr(round_shards.RoundShard, "masses", masses)
    for last in (0, 7, 14, 25, 40, 60):  # in a look, at the root, at nodes, at leaves
        left = last
        with pytest.raises(KeyboardInterrupt):
            fit_parted("fit_gradient_boosting", X, labels, n_estimators=20)


def test_callbacks_are_told_of_every_step():
    X, labels, _ = divided(TABLES["numbers"], 2)
    told = []
    model = fit_parted(
        "fit_gradient_boosting",
        X,
        labels,
        n_estimators=9,
        callback=lambda step, record: told.append(step) or step == 4,
    )
    assert told == [1, 2, 3, 4]
    assert len(model.trees) == 4


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"loss": "absolute_error"},
            NotImplementedError,
            "loss: absolute_error requires all rows in one table",
        ),
        ({"loss": "hinge"}, NotImplementedError, "loss: hinge"),
        ({"loss": pb.losses.Huber(2.0)}, NotImplementedError, "loss: huber"),
        ({"loss": "log"}, ValueError, "loss: expected one of"),
        ({"growth": "cost_efficient"}, NotImplementedError, "growth: 'cost_efficient'"),
        ({"growth": "wild"}, ValueError, "growth"),
        ({"n_estimators": 0}, ValueError, "n_estimators"),
        ({"learning_rate": 0}, ValueError, "learning_rate"),
        ({"search": "exact"}, NotImplementedError, "search: 'exact'"),
        ({"feature_costs": {0: 1.0}}, NotImplementedError, "feature_costs"),
        ({"monotonic_cst": {9: 1}}, ValueError, "monotonic_cst"),
        ({"callback": 3}, TypeError, "callback"),
        ({"validation": 0.9}, ValueError, "validation"),
        ({"validation": (np.ones((2, 3)), [0, 1])}, ValueError, "validation: X"),
        ({"n_iter_no_change": 3}, ValueError, "n_iter_no_change: expected None without validation"),
    ],
    ids=str,
)
def test_what_is_refused(options, error, message):
    X, labels, _ = divided(TABLES["numbers"], 2)
    with pytest.raises(error, match=re.escape(message)):
        fit_parted("fit_gradient_boosting", X, labels, **options)


def test_more_rows_than_are_counted_are_refused(monkeypatch):
    monkeypatch.setattr("pboost.distributed.engine.MOST_ROWS", 299)
    X, labels, _ = divided(TABLES["numbers"], 2)
    with pytest.raises(ValueError, match="at most 299 rows in all partitions, got 300"):
        fit_parted("fit_gradient_boosting", X, labels)
    with pytest.raises(ValueError, match="at most 299 rows in all partitions, got 300"):
        fit_parted("fit_random_forest", X, labels)


def test_labels_and_numbers_that_do_not_go_with_the_loss():
    X, labels, _ = divided(TABLES["numbers"], 2)
    three = [np.arange(len(part)) % 3 for part in labels]
    with pytest.raises(ValueError, match=r"y: expected two|softmax"):
        fit_parted("fit_gradient_boosting", X, three, loss="log_loss")
    assert fit_parted("fit_gradient_boosting", X, three, n_estimators=2).loss.name == "softmax"
    with pytest.raises(ValueError, match="poisson"):
        fit_parted("fit_gradient_boosting", X, [part - 1.5 for part in labels], loss="poisson")


def of_classes(table, n_classes=3, seed=0):
    """Return the table with several classes in place of two."""
    columns, y, weight = table
    noise = np.random.default_rng(seed).integers(0, n_classes, len(y))
    return columns, np.where(np.arange(len(y)) % 3 == 0, noise, (y == y[0]) * 1), weight


@pytest.mark.parametrize("n_classes", [2, 3, 9])
@pytest.mark.parametrize("name", TABLES)
def test_classes_of_softmax(name, n_classes, tmp_path):
    table = of_classes(TABLES[name], n_classes)
    for n_parts in (1, 3):
        full, parted = both(table, n_parts, tmp_path, loss="softmax", n_estimators=3)
        assert parted == full, n_parts


@pytest.mark.parametrize("options", OPTIONS)
def test_options_with_softmax(options, tmp_path):
    table = of_classes(TABLES["categories, weights"])
    full, parted = both(
        table, 3, tmp_path, loss="softmax", **{**OPTIONS[options], "n_estimators": 3}
    )
    assert parted == full
