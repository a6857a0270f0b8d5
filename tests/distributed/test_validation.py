"""Rows held out from fits on partitions: the models are those of one table, with their records."""

import re

import numpy as np
import pytest
from partitioned import PARTS, TABLES, VALUED, contents, divided, fit_parted

import pboost as pb

#: Builders, with options by which growth is judged while it goes on, and when it has ended.
FITS = {
    "chain": ("fit_adaboost", {"n_estimators": 12}),
    "uncertain chain": (
        "fit_adaboost",
        {"n_estimators": 9, "observation": pb.observation.adatree2()},
    ),
    "symmetric votes": ("fit_adaboost", {"n_estimators": 9, "votes": "symmetric"}),
    "tree": ("fit_boosted_tree", {"max_nodes": 9}),
    "uncertain tree": (
        "fit_boosted_tree",
        {"max_nodes": 6, "observation": pb.observation.flip(0.1)},
    ),
    "matryoshka": ("fit_matryoshka", {"shape": (3, 3)}),
    "collected": ("fit_matryoshka", {"shape": (3, 3), "collect": "sign"}),
}
ROWS = 100


def models(table, n_parts, name, path, **options):
    """Return the models of one table and of partitions; their bytes are the same."""
    columns, y, weight = table
    X, labels, weights = divided(table, n_parts)
    builder, own = FITS[name]
    options = own | options
    full = getattr(pb, builder)(columns, y, sample_weight=weight, **options)
    parted = fit_parted(builder, X, labels, sample_weight=weights, **options)
    assert contents(parted, path) == contents(full, path), (name, n_parts)
    np.testing.assert_array_equal(parted.record.validation, full.record.validation)
    return parted


def some_rows(name, seed=5):
    """Return rows of a table with some of their labels exchanged, (X, y, weight)."""
    columns, y, _ = VALUED[name]
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(y), ROWS)
    values = np.unique(y)
    labels = np.where(rng.random(ROWS) < 0.2, rng.choice(values, ROWS), y[rows])
    return columns.features().values[rows], labels, rng.random(ROWS)


@pytest.mark.parametrize("name", FITS)
def test_rows_that_are_given(name, tmp_path):
    for n_parts, of in zip(PARTS, ("numbers", "ties", "weights", "holes"), strict=True):
        X, y, weight = some_rows(of)
        options = {"validation": (X, y, weight) if n_parts > 1 else (X, y), "n_iter_no_change": 3}
        parted = models(TABLES[of], n_parts, name, tmp_path, **options)
        assert len(parted.record.validation) >= parted.n_nodes + 1


def test_levels_of_rows_that_are_given(tmp_path):
    names = ["red", "green", "blue", "black", "a", "white", None]
    rng = np.random.default_rng(0)
    X = np.empty((ROWS, 3), dtype=object)
    X[:, 0], X[:, 1], X[:, 2] = (
        rng.choice(names[:5], ROWS),
        rng.normal(size=ROWS),
        rng.choice(names, ROWS),
    )
    for name in ("chain", "uncertain tree"):
        models(TABLES["categories"], 3, name, tmp_path, validation=(X, rng.integers(0, 2, ROWS)))


def in_order(table, cuts):
    """Return partitions that are the rows of a table one after another."""
    columns, y, weight = table
    rows = np.split(np.arange(len(y), dtype=np.int32), cuts)
    weights = None if weight is None else [weight[r] for r in rows]
    return [columns.select(r) for r in rows], [y[r] for r in rows], weights


@pytest.mark.parametrize("name", FITS)
def test_a_share_is_drawn_by_the_numbers_of_rows(name, tmp_path):
    builder, options = FITS[name]
    options = options | {"validation": 0.3, "n_iter_no_change": 3}
    for of in ("ties", "weights", "holes, no weights"):
        columns, y, weight = VALUED[of]
        full = getattr(pb, builder)(columns, y, sample_weight=weight, rng=4, **options)
        for cuts in ([], [0, 50, 51, 280]):
            X, labels, weights = in_order(VALUED[of], cuts)
            parted = fit_parted(builder, X, labels, sample_weight=weights, rng=4, **options)
            assert contents(parted, tmp_path) == contents(full, tmp_path), (of, cuts)


def test_it_ends_growth_and_says_why():
    X, labels, _ = divided(TABLES["ties"], 3)
    values, y, _ = some_rows("ties")
    model = fit_parted(
        "fit_adaboost", X, labels, n_estimators=60, validation=(values, y), n_iter_no_change=2
    )
    assert model.record.stop_reason.startswith("the validation error did not fall for 2 nodes")
    assert model.n_nodes + 3 == len(model.record.validation)
    assert model.settings["n_iter_no_change"] == 2


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"validation": 0.2}, TypeError, "validation: expected rows with values"),
        ({"validation": 0.7}, ValueError, "validation: expected a number in (0.0, 0.5]"),
        ({"n_iter_no_change": 3}, ValueError, "n_iter_no_change: expected None without validation"),
        ({"validation": (np.ones((3, 4)), [0, 1, 1])}, ValueError, "validation: X"),
        ({"validation": (np.ones((3, 5)), [0, 1, 2])}, ValueError, "validation: y"),
        ({"validation": (np.ones((3, 5)),)}, ValueError, "validation: expected (X, y)"),
    ],
    ids=str,
)
def test_what_is_refused(options, kind, said):
    X, labels, _ = divided(TABLES["numbers"], 2)
    for builder in ("fit_adaboost", "fit_boosted_tree", "fit_matryoshka"):
        with pytest.raises(kind, match=re.escape(said)):
            fit_parted(builder, X, labels, **options)
