"""Gaussian answers of rows in partitions that keep values: the bytes of one table."""

import numpy as np
import pytest
from partitioned import PARTS, TABLES, VALUED, contents, divided

import pboost as pb
from pboost.boosting import shards

FITS = {
    "chain": ("fit_adaboost", {"rounds": 9}),
    "tree": ("fit_boosted_tree", {"nodes": 7}),
    "deep tree": ("fit_boosted_tree", {"nodes": 7, "growth": "look-ahead", "max_depth": 3}),
    "nested": ("fit_matryoshka", {"shape": (3, 3), "join": "all"}),
    "by sign": ("fit_matryoshka", {"shape": (3, 2), "collect": "sign"}),
    "greedy": ("fit_matryoshka", {"growth": "greedy", "nodes": 8}),
}


def noise(columns, of="columns"):
    """Return answers whose standard deviations are of each column, none of those of levels."""
    if of == "all":
        return pb.observation.gaussian(0.3)
    sigma = np.array([0.1, 0.5, 0.0, 2.0, 0.3])[: columns.n_features]
    table = columns.table
    if table is not None:
        for j, of_levels in enumerate(table.levels):
            if of_levels is not None:
                sigma[j] = np.nan
        # Nothing is known of a column that is missing everywhere.
        sigma[columns.n_bins * (columns.lower[:, 0] != columns.lower[:, 0]) > 0] = np.nan
    return pb.observation.gaussian(sigma)


@pytest.mark.parametrize("name", VALUED)
@pytest.mark.parametrize("fit", FITS)
def test_partitions_give_the_bytes_of_one_table(fit, name, tmp_path):
    builder, options = FITS[fit]
    columns, y, weight = VALUED[name]
    of = "all" if name == "numbers" else "columns"
    options = {"observation": noise(columns, of), **options}
    want = contents(getattr(pb, builder)(columns, y, sample_weight=weight, **options), tmp_path)
    for n_parts in PARTS:
        parts, labels, weights = divided(VALUED[name], n_parts)
        model = getattr(pb.shards, builder)(parts, labels, sample_weight=weights, **options)
        assert contents(model, tmp_path) == want, n_parts


def test_models_are_those_of_values(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = X[:, 0] + rng.normal(size=200) > 0
    for fit in FITS:
        builder, options = FITS[fit]
        options = {"observation": pb.observation.gaussian(0.4), **options}
        parts = pb.shards.bin_columns([X[:50], X[50:]], values=True)
        model = getattr(pb.shards, builder)(parts, [y[:50], y[50:]], **options)
        whole = getattr(pb, builder)(X, y, **options)
        for name in ("feature", "threshold", "vote", "missing", "sigma"):
            assert getattr(model, name).tobytes() == getattr(whole, name).tobytes(), (fit, name)


@pytest.mark.parametrize("fit", ["chain", "tree", "greedy"])
def test_processes_and_threads(fit, tmp_path):
    builder, options = FITS[fit]
    columns, y, weight = VALUED["holes"]
    options = {"observation": noise(columns), **options}
    want = contents(getattr(pb, builder)(columns, y, sample_weight=weight, **options), tmp_path)
    parts, labels, weights = divided(VALUED["holes"], 3)
    for more in ({"n_processes": 2}, {"n_threads": 2}):
        model = getattr(pb.shards, builder)(parts, labels, sample_weight=weights, **options, **more)
        assert contents(model, tmp_path) == want


class Forgetful:
    """An engine whose places begin anew at one question in ten."""

    def __init__(self, make, rng):
        self.make, self.rng, self.begun = make, rng, None
        self.shards = make()

    def ask(self, what, *arguments):
        if what == "begin":
            self.begun = arguments
        elif self.begun is not None and self.rng.random() < 0.1:
            self.anew()
        return [getattr(shard, what)(*arguments) for shard in self.shards]

    def masses(self, told):
        if self.rng.random() < 0.1:
            self.anew()
        return [shard.masses(told) for shard in self.shards]

    def anew(self):
        self.shards = self.make()
        for shard in self.shards:
            shard.begin(*self.begun)


@pytest.mark.parametrize("fit", FITS)
def test_a_place_that_begins_anew_at_any_question_has_the_same_bits(fit, tmp_path, monkeypatch):
    builder, options = FITS[fit]
    columns, y, weight = VALUED["categories, weights"]
    options = {"observation": noise(columns), **options}
    whole = getattr(pb, builder)(columns, y, sample_weight=weight, **options)
    engines = []

    class Places:
        def __init__(self, columns, given, kind, *_):
            self.workers = pb.threads.Workers(1)
            engines.append(
                Forgetful(
                    lambda: [kind(*one, self.workers) for one in given], np.random.default_rng(0)
                )
            )

        def __enter__(self):
            return engines[-1], self.workers

        def __exit__(self, *_):
            return None

    for module in (shards, pb.boosting.shard_trees, pb.boosting.shard_matryoshka):
        monkeypatch.setattr(module, "places", Places)
    first = None
    parts, labels, weights = divided(VALUED["categories, weights"], 3)
    anew = Forgetful.anew
    monkeypatch.setattr(Forgetful, "anew", lambda e: (counted.append(1), anew(e)))
    counted = []
    first = getattr(pb.shards, builder)(parts, labels, sample_weight=weights, **options)
    assert contents(first, tmp_path) == contents(whole, tmp_path)
    assert counted


def test_what_is_refused():
    parts, labels, _ = divided(TABLES["numbers"], 2)
    measured = pb.observation.gaussian(0.1)
    for builder in ("fit_adaboost", "fit_boosted_tree", "fit_matryoshka"):
        fit = getattr(pb.shards, builder)
        with pytest.raises(ValueError, match=r"which hold none, in partition 0; pass values=True"):
            fit(parts, labels, observation=measured)
    parts, labels, _ = divided(VALUED["numbers"], 2)
    with pytest.raises(NotImplementedError, match="sigma: a standard deviation for each cell"):
        pb.shards.fit_adaboost(
            parts, labels, observation=pb.observation.gaussian(np.ones((300, 5)))
        )
    with pytest.raises(ValueError, match=r"sigma: expected a number, shape \(5,\)"):
        pb.shards.fit_adaboost(parts, labels, observation=pb.observation.gaussian([0.1, 0.1]))
    unknown = pb.observation.gaussian([0.1, np.nan, 0.1, 0.1, 0.1])
    with pytest.raises(ValueError, match=r"sigma: expected a number where X has one, got nan in"):
        pb.shards.fit_adaboost(parts, labels, observation=unknown)
    parts, labels, _ = divided(VALUED["categories"], 2)
    with pytest.raises(ValueError, match="sigma: expected 0 or NaN for a column of categories"):
        pb.shards.fit_adaboost(parts, labels, observation=pb.observation.gaussian([0.1] * 3))
    with pytest.raises(NotImplementedError, match="are gaussian, of partitions, got Sampled"):
        pb.shards.fit_adaboost(parts, labels, observation=pb.observation.sampled(3))
