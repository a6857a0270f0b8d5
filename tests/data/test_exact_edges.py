"""Edges of bins from all rows, found by counts: those of one sorted table, however rows lie."""

import re

import numpy as np
import pytest
from partitioned import bin_parts
from reference.sort import rank_bins

import pboost as pb
from pboost.data.columns import exact_bin_edges as exact_edges
from pboost.data.columns import sampled_bin_edges as sampled_edges
from pboost.distributed import partition_tasks as tasks
from pboost.distributed import partitions

FIELDS = ("n_bins", "lower", "upper", "special")
TINY = 5e-324


def table(n):
    rng = np.random.default_rng(n)
    z = rng.normal(size=n)
    columns = [
        z,
        np.round(z, 1),
        np.round(z, 3),
        np.where(z > 0, 0.0, z),
        rng.integers(-300, 300, n),
        rng.standard_cauchy(n) ** 3,
        np.full(n, 7.0),
        np.where(z > 0.5, np.nan, z),
        np.full(n, np.nan),
        np.exp(300 * np.sign(z) * z**2 / 10),
        np.repeat(z, 2)[:n],
        rng.choice([-0.0, 0.0, TINY, -TINY, 1e-310, -1e-310], n),
        z.astype(np.float32),
        np.sign(z) * np.finfo(float).max * rng.random(n),
    ]
    return np.column_stack(columns)


def weights(kind, n):
    rng = np.random.default_rng(n + 1)
    return {
        "plain": None,
        "real": rng.exponential(size=n),
        "zeros": rng.integers(0, 3, n) + (np.arange(n) == 0.0),
        "few": (np.arange(n) < 9) + 0.0,
        "of all sizes": 10.0 ** rng.integers(-200, 100, n),
    }[kind]


def dealt(n, n_parts, seed):
    """Rows of partitions, some of which are empty, in any order."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.integers(0, n + 1, n_parts - 1)) // 2 * 2
    return np.split(rng.permutation(n), at)


def assert_rows_of(parts, whole, rows):
    for part, r in zip(parts, rows, strict=True):
        np.testing.assert_array_equal(part.codes, whole.codes[:, r])
        assert part.table == whole.table
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name), name)


@pytest.mark.parametrize("cells", [1 << 5, 1 << 18], ids=["few cells", "many"])
@pytest.mark.parametrize("kind", ["plain", "real", "zeros", "few", "of all sizes"])
def test_bins_are_those_of_one_table(kind, cells, monkeypatch):
    monkeypatch.setattr(exact_edges, "CELLS", cells)
    for n, max_bins, n_parts in [(1, 2, 1), (3, 256, 5), (700, 7, 2), (700, 256, 5), (900, 2, 1)]:
        X, w, rows = table(n), weights(kind, n), dealt(n, n_parts, max_bins)
        full_columns = pb.data.bin_columns(X, max_bins=max_bins, bin_edges="exact", sample_weight=w)
        parts = bin_parts(
            [X[r] for r in rows],
            max_bins=max_bins,
            bin_edges="exact",
            sample_weight=None if w is None else [w[r] for r in rows],
        )
        assert_rows_of(parts, full_columns, rows)


def test_of_few_rows_both_kinds_of_edges_are_the_same():
    X, w = table(500), weights("real", 500)
    assert_rows_of(
        [pb.data.bin_columns(X, bin_edges="exact", sample_weight=w)],
        pb.data.bin_columns(X, sample_weight=w),
        [np.arange(500)],
    )


def test_edges_of_many_rows_are_those_of_all(monkeypatch):
    monkeypatch.setattr(sampled_edges, "SAMPLE_ROWS", 50)
    x = np.round(np.random.default_rng(0).normal(size=400), 2)
    weight = np.arange(400) % 3 + 1
    _, edges = rank_bins(x, weight, 20)
    columns = pb.data.bin_columns(x[:, None], max_bins=20, bin_edges="exact", sample_weight=weight)
    np.testing.assert_array_equal((columns.upper[0, :-1] + columns.lower[0, 1:]) / 2, edges)
    sampled = pb.data.bin_columns(x[:, None], max_bins=20, sample_weight=weight)
    assert not np.array_equal(columns.upper, sampled.upper)


@pytest.mark.parametrize("sample_rows", [100, 10_000])
@pytest.mark.parametrize("kind", ["real", "zeros", "few"])
def test_weights_of_a_sample(kind, sample_rows, monkeypatch):
    for module in (sampled_edges, tasks, partitions):
        monkeypatch.setattr(module, "SAMPLE_ROWS", sample_rows)
    X, w = table(700), weights(kind, 700)
    full_columns = pb.data.bin_columns(X, max_bins=50, sample_weight=w)
    for n_parts in (1, 4):
        rows = dealt(700, n_parts, 1)
        given = [X[r] for r in rows], [w[r] for r in rows]
        parts = bin_parts(given[0], max_bins=50, sample_weight=given[1])
        assert_rows_of(parts, full_columns, rows)


def counted(x, n_parts, max_bins=256):
    """The numbers of cells counted in each pass, and the values below and above edges."""
    search, passes = exact_edges.EdgeSearch(max_bins, False), []
    parts = [exact_edges.sorted_keys(part, None) for part in np.array_split(x, n_parts)]
    while (question := search.question()) is not None:
        cells = [exact_edges.count_cells(part, question) for part in parts]
        passes.append(max(len(part.rows) for part in cells))
        search.take(exact_edges.joined_cells(cells, question))
    return passes, search.ends()


def test_passes_and_cells_are_few():
    z = np.random.default_rng(0).normal(size=60_000)
    for x, most_passes, most_cells in [
        (z, 2, 60_000),
        (np.round(z, 2), 2, 1300),
        (np.where(z > 0, 0, z), 2, 30_000),
        (np.full(60_000, 0.1), 1, 1),
        (np.arange(60_000) % 100 / 7, 2, 200),
    ]:
        passes, _ = counted(x, 3)
        assert len(passes) <= most_passes
        assert sum(passes) <= most_cells


def test_cells_are_bounded_by_what_is_asked_for(monkeypatch):
    monkeypatch.setattr(exact_edges, "CELLS", 1 << 13)
    x = np.random.default_rng(0).normal(size=60_000)
    passes, (below, above) = counted(x, 2)
    assert 2 < len(passes) < 8
    assert max(passes) < 1 << 14
    ranks = np.searchsorted(np.sort(x), below) + 1
    np.testing.assert_array_equal(np.sort(x)[ranks], above)
    assert np.diff(ranks).min() >= 60_000 // 256


def test_what_is_refused():
    X = np.arange(8.0).reshape(4, 2)
    for options, error, match in [
        ({"bin_edges": "all"}, ValueError, "bin_edges: expected"),
        ({"sample_weight": [np.ones(4)]}, ValueError, "sample_weight: expected 2 partitions"),
        ({"sample_weight": [np.ones(4), None]}, ValueError, "got None for partition 1"),
        ({"sample_weight": [np.ones(4), -np.ones(4)]}, ValueError, "partition 1: sample_weight:"),
        ({"sample_weight": [np.zeros(4)] * 2}, ValueError, "at least one weight > 0"),
        ({"sample_weight": np.ones(8)}, TypeError, "sample_weight: expected a list"),
    ]:
        with pytest.raises(error, match=re.escape(match)):
            bin_parts([X, X], **options)
    with pytest.raises(ValueError, match="bin_edges: expected"):
        pb.data.bin_columns(X, bin_edges="all")


def test_threads_change_nothing():
    X = table(3000)
    first, two = (pb.data.bin_columns(X, bin_edges="exact", n_threads=k) for k in (1, 2))
    assert_rows_of([first], two, [slice(None)])
