"""Bins of partitions: those of the whole table, for every way to divide its rows."""

import re

import numpy as np
import pytest
from partitioned import bin_parts, fit_parted

import pboost as pb
from pboost.data.columns import sampled_bin_edges as sampled_edges
from pboost.distributed import partition_tasks as tasks
from pboost.distributed import partitions

FIELDS = ("n_bins", "lower", "upper", "special")


def table(kind, n=900):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 5))
    X[:, 1] = np.round(X[:, 1], 1)
    X[::3] = X[1::3]  # rows of the same values
    X[:, 2] = 7.0
    if kind == "holes":
        X[rng.random(X.shape) < 0.1] = np.nan
        X[:, 3] = np.nan
        X[:, 4] = np.where(X[:, 1] > 1, np.nan, X[:, 4])  # in some partitions only
    return X.astype(np.float32) if kind == "float32" else X


@pytest.mark.parametrize("sample_rows", [100, 10_000])
@pytest.mark.parametrize("kind", ["numbers", "holes", "float32"])
def test_bins_are_those_of_one_table(kind, sample_rows, monkeypatch):
    monkeypatch.setattr(sampled_edges, "SAMPLE_ROWS", sample_rows)
    monkeypatch.setattr(tasks, "SAMPLE_ROWS", sample_rows)
    monkeypatch.setattr(partitions, "SAMPLE_ROWS", sample_rows)
    X = table(kind)
    for max_bins in (8, 256):
        full_columns = pb.data.bin_columns(X, max_bins=max_bins)
        for n_parts in (1, 2, 5, 16):
            rng = np.random.default_rng(n_parts)
            at = np.sort(rng.integers(0, len(X) + 1, n_parts - 1))
            rows = np.split(rng.permutation(len(X)), at)
            actual = bin_parts([X[r] for r in rows], max_bins=max_bins)
            for part, r in zip(actual, rows, strict=True):
                np.testing.assert_array_equal(part.codes, full_columns.codes[:, r])
                assert part.table == full_columns.table
                for name in FIELDS:
                    ours, theirs = getattr(part, name), getattr(full_columns, name)
                    assert (ours is None) == (theirs is None)
                    if ours is not None:  # 0 may have either sign, also in one table by its order
                        np.testing.assert_array_equal(ours, theirs, name)


def test_a_fit_on_them_is_that_on_one_table():
    X = table("holes")
    y = (np.arange(len(X)) * 7 % 10 < 3).astype(int)
    for at in ([0, 0, 400], [899], [10, 20, 500]):
        parts = bin_parts(np.split(X, at))
        model = fit_parted("fit_adaboost", parts, np.split(y, at), n_estimators=10)
        full_model = pb.fit_adaboost(pb.data.bin_columns(X), y, n_estimators=10)
        assert model.n_nodes == 10
        for name in ("feature", "threshold", "vote", "missing"):
            assert getattr(model, name).tobytes() == getattr(full_model, name).tobytes()


def refused():
    X = np.arange(8.0).reshape(4, 2)
    return {
        "no list": (X[0, 0], TypeError, "X: expected a list"),
        "none": ([], ValueError, "at least one partition"),
        "all empty": ([X[:0], X[:0]], ValueError, "all partitions are empty"),
        "columns": ([X, X[:, :1]], ValueError, "got 1 in partition 1"),
        "dtype": ([X, X.astype(np.float32)], TypeError, "got float64 in partition 0 and float32"),
        "infinity": ([X, np.full((2, 2), np.inf)], ValueError, "partition 1"),
        "text": ([X, np.array([["a", "b"]])], TypeError, "partition 1: X"),
    }


@pytest.mark.parametrize("what", list(refused()))
def test_what_is_refused(what):
    X, kind, said = refused()[what]
    with pytest.raises(kind, match=re.escape(said)):
        bin_parts(X)


def test_names_and_categories():
    pandas = pytest.importorskip("pandas")
    first = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    parts = bin_parts([first, first[:0]])
    assert parts[1].names == ("a", "b")
    assert parts[1].n_rows == 0
    with pytest.raises(ValueError, match=r"column names of partition 0 .* in partition 1"):
        bin_parts([first, first.rename(columns={"a": "c"})])
    with pytest.raises(TypeError, match="got text in partition 0 and numbers without categories"):
        bin_parts([first.assign(a=["x", "x"]), first])
