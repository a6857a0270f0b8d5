"""Digests of rows agree with their twin, and find rows again."""

import numpy as np
import pytest
from reference import row_digest as twin

from pboost.bounds._binomial import hypergeometric_tail
from pboost.data import row_fingerprint as module
from pboost.data.columns.bin_and_sort import bin_columns, sort_columns
from pboost.data.read.convert import Features
from pboost.data.row_fingerprint import digest_of, digest_of_rows, hashes, merged, seen_among

RNG = np.random.default_rng(0)
HOLES = np.where(RNG.random((300, 3)) < 0.3, np.nan, RNG.normal(size=(300, 3)))
TABLES = {
    "numbers": RNG.normal(size=(700, 5)),
    "one column": RNG.integers(0, 500, size=(400, 1)) / 8,
    "few values": RNG.integers(0, 3, size=(900, 5)).astype(float),
    "equal first columns": np.hstack([np.zeros((600, 2)), RNG.normal(size=(600, 2))]),
    "one row": np.zeros((1, 3)),
    "equal rows": np.zeros((70_000, 2)),
    "holes, two zeros": np.vstack([HOLES, HOLES[:50], [[0.0, -0.0, 1.0], [-0.0, 0.0, 1.0]]]),
}


@pytest.mark.parametrize("name", TABLES)
def test_digest_is_that_of_the_twin(name):
    X = TABLES[name]
    _, count = np.unique(X + 0.0, axis=0, return_counts=True, equal_nan=True)
    if name == "equal rows":
        assert digest_of_rows(X).tolist() == [twin.row_hash(X[0]) << 16 | 65535]
        return
    expected = twin.digest(X)
    assert digest_of_rows(X).tolist() == twin.numbers(expected)
    order = RNG.permutation(len(X))
    for values in (np.asfortranarray(X[order]), X[order][:, ::-1][:, ::-1]):
        assert digest_of_rows(values).tolist() == twin.numbers(expected)
    if len(expected) < 128:
        assert sorted(c for _, c in expected) == sorted(count.tolist())


@pytest.mark.parametrize("name", [name for name in TABLES if name != "equal rows"])
def test_rows_are_found_as_the_twin_does(name):
    X = TABLES[name]
    half = X[: len(X) // 2 + 1]
    for other in (X, half, X + 1, X[:1]):
        actual = seen_among(digest_of_rows(half), hashes(other))
        assert tuple(actual) == twin.seen_among(twin.digest(half), other)
    every = seen_among(digest_of_rows(X), hashes(half))
    assert every.n_found == every.compared


def test_digests_are_merged():
    X = TABLES["few values"][:, :4]
    parts = [X[:200], X[100:400], X[800:]]
    actual = merged(*map(digest_of_rows, parts), None)
    assert actual.tolist() == twin.numbers(twin.merged(*map(twin.digest, parts)))
    assert merged(None, None) is None
    apart = TABLES["numbers"]
    assert merged(*(digest_of_rows(apart[k::3]) for k in range(3))).tolist() == (
        digest_of_rows(apart).tolist()
    )


def test_rows_of_weight_zero_are_not_seen():
    X = TABLES["numbers"]
    weights = (np.arange(len(X)) % 3).astype(float)
    expected = digest_of_rows(X[weights > 0]).tolist()
    sorted_ = sort_columns(np.vstack([X, X + 1]))
    for columns, its in ((Features(X, None), weights), (sorted_, np.append(weights, 0 * weights))):
        assert digest_of(columns, its).tolist() == expected
    assert digest_of(bin_columns(X), None) is None
    assert digest_of(Features(X, None), 0 * weights).tolist() == []


def test_many_ranges_make_the_same(monkeypatch):
    from pboost import threads

    X = TABLES["numbers"]
    expected = digest_of_rows(X).tolist()
    monkeypatch.setattr(threads, "CELLS_PER_CALL", 64)
    monkeypatch.setattr(threads, "MIN_CELLS", 1)
    assert digest_of_rows(X).tolist() == expected


def test_most_rows_are_not_read_whole(monkeypatch):
    wide, read = np.random.default_rng(1).normal(size=(20_000, 4)), []
    kept = module._hashed
    monkeypatch.setattr(
        module, "_hashed", lambda X, rows: (read.append((X.shape[1], len(rows))), kept(X, rows))[1]
    )
    digest_of_rows(wide)
    assert read[0] == (2, 20_000)
    assert all(columns == 2 or rows < 600 for columns, rows in read)


@pytest.mark.parametrize("case", [(3, 5, 2, 20), (0, 5, 2, 20), (5, 5, 0, 1), (20, 30, 0, 128)])
def test_tail_is_counted(case):
    assert hypergeometric_tail(*case) == pytest.approx(twin.tail(*case), rel=1e-10)
