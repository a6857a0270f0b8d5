"""Graphs of more than two classes on partitions: the bytes of the models of one table."""

import numpy as np
import pytest
from partitioned import TABLES, VALUED, contents, continue_parted, divided, fit_parted

import pboost as pb
from pboost.distributed.engine import Serial

ADATREE2, FLIP = pb.observation.adatree2(), pb.observation.flip(0.1)
FITS = {
    "chain": ("fit_adaboost", {"n_estimators": 6}),
    "adatree2": ("fit_adaboost", {"n_estimators": 6, "observation": ADATREE2}),
    "tree": ("fit_boosted_tree", {"max_nodes": 6}),
    "soft tree": ("fit_boosted_tree", {"max_nodes": 6, "observation": FLIP, "smoothing": 0.01}),
    "trees": ("fit_matryoshka", {"shape": (3, 3), "join": "all"}),
    "soft trees": ("fit_matryoshka", {"shape": (3, 3), "join": "all", "observation": ADATREE2}),
    "uniform": ("fit_boosted_tree", {"max_nodes": 4, "observation": pb.observation.uniform()}),
}
NAMES = ("numbers", "ties", "weights", "holes", "categories, weights")


def of_classes(table, n_classes=3):
    """Return a table with several classes in place of two."""
    columns, y, weight = table
    noise = np.random.default_rng(0).integers(0, n_classes, len(y))
    second = np.unique(y, return_inverse=True)[1]
    return columns, np.array(list("abcdefghijkl"))[np.where(noise > 1, noise, second)], weight


def in_order(table, n_parts):
    """Return partitions that are the rows of a table one after another."""
    columns, y, weight = table
    rows = np.array_split(np.arange(len(y), dtype=np.int32), n_parts)
    weights = None if weight is None else [weight[r] for r in rows]
    return [columns.select(r) for r in rows], [y[r] for r in rows], weights


@pytest.mark.parametrize("name", FITS)
def test_partitions_give_the_bytes_of_one_table(name, tmp_path):
    builder, options = FITS[name]
    for of, n_classes in zip(NAMES, (3, 4, 3, 9, 3), strict=True):
        columns, y, weight = table = of_classes(TABLES[of], n_classes)
        full = getattr(pb, builder)(columns, y, sample_weight=weight, **options)
        assert full.n_nodes > 2
        for n_parts in (1, 2, 3, 5, 16) if of == "holes" else (3,):
            X, labels, weights = divided(table, n_parts)
            parted = fit_parted(builder, X, labels, sample_weight=weights, **options)
            assert contents(parted, tmp_path) == contents(full, tmp_path), (of, n_parts)


@pytest.mark.parametrize("name", ["chain", "adatree2", "soft tree", "soft trees"])
def test_rows_that_are_held_out(name, tmp_path):
    builder, options = FITS[name]
    options = options | {"validation": 0.3, "n_iter_no_change": 2, "rng": 4}
    for of in ("weights", "categories, weights"):
        columns, y, weight = table = of_classes(VALUED[of])
        full = getattr(pb, builder)(columns, y, sample_weight=weight, **options)
        for n_parts in (1, 5):
            X, labels, weights = in_order(table, n_parts)
            parted = fit_parted(builder, X, labels, sample_weight=weights, **options)
            assert contents(parted, tmp_path) == contents(full, tmp_path), (of, n_parts)


MORE = {
    "chain": {"n_estimators": 3},
    "adatree2": {"n_estimators": 3},
    "tree": {"max_nodes": 3},
    "soft tree": {"max_nodes": 3},
    "uncertain from then on": {"n_estimators": 2, "observation": FLIP},
}


@pytest.mark.parametrize("name", MORE)
def test_they_go_on(name, tmp_path):
    builder, options = FITS.get(name, FITS["chain"])
    for of, n_parts in zip(NAMES, (1, 2, 3, 5, 16), strict=True):
        _, y, weight = table = of_classes(TABLES[of])
        valued = VALUED[of][0]
        first = getattr(pb, builder)(valued, y, sample_weight=weight, **options)
        full_model = pb.continue_fit(first, valued, y, sample_weight=weight, **MORE[name])
        X, labels, weights = divided(table, n_parts)
        parted = continue_parted(first, X, labels, sample_weight=weights, **MORE[name])
        assert contents(parted, tmp_path) == contents(full_model, tmp_path), of


@pytest.mark.parametrize("name", ["chain", "adatree2", "soft trees"])
def test_a_place_that_begins_anew_at_any_question_has_the_same_bits(name, tmp_path, monkeypatch):
    builder, options = FITS[name]
    columns, y, weight = table = of_classes(TABLES["holes"])
    full = contents(getattr(pb, builder)(columns, y, sample_weight=weight, **options), tmp_path)
    begun = []

    def ask(engine, what, *given):
        begun[:] = given if what == "begin" else begun
        return [getattr(shard, what)(*given) for shard in engine._shards]

    def masses(engine, told):
        engine._shards[0].begin(*begun)
        return [shard.masses(told) for shard in engine._shards]

    monkeypatch.setattr(Serial, "ask", ask)
    monkeypatch.setattr(Serial, "masses", masses)
    X, labels, weights = divided(table, 3)
    parted = fit_parted(builder, X, labels, sample_weight=weights, **options)
    assert contents(parted, tmp_path) == full
