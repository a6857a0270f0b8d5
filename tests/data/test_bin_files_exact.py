"""Tables binned in batches with edges from all rows: the bins of the same table in memory."""

import numpy as np
import pytest

import pboost as pb
from pboost.data.columns import exact_bin_edges as exact_edges
from pboost.data.on_disk import bin_files

FIELDS = ("n_bins", "lower", "upper", "special")


def table(n=3000):
    rng = np.random.default_rng(5)
    z = rng.normal(size=n)
    X = np.column_stack(
        [
            z,
            np.round(z, 1),
            np.where(z > 0, 0.0, z),
            np.full(n, 7.0),
            np.full(n, np.nan),
            np.where(rng.random(n) < 0.1, np.nan, z),
            rng.standard_cauchy(n) ** 3,
            np.repeat(z, 2)[:n],
            rng.choice([-0.0, 0.0, 1.0], n),
        ]
    )
    return X, np.where(z + rng.normal(size=n) > 0.5, "yes", "no"), rng.integers(0, 4, n) / 2


def batches(sizes, *arrays):
    at = np.cumsum(sizes)[:-1]
    return list(zip(*(np.split(array, at) for array in arrays), strict=True))


SIZES = [1, 299, 0, 1700, 1000]


@pytest.mark.parametrize("cells", [1 << 6, 1 << 18], ids=["few cells", "many"])
@pytest.mark.parametrize("is_weighed", [False, True], ids=["plain", "weights"])
def test_bins_are_those_in_memory(is_weighed, cells, tmp_path, monkeypatch):
    monkeypatch.setattr(exact_edges, "CELLS", cells)
    monkeypatch.setattr(exact_edges, "LEAST_CELLS", 100)
    X, y, w = table()
    order = np.random.default_rng(0).permutation(len(X))
    given = [X[order], y[order], w[order]][: 2 + is_weighed]
    if is_weighed:
        X, y, w = X[w > 0], y[w > 0], w[w > 0]
    by_class = np.argsort(y, kind="stable")
    for max_bins in (5, 256):
        full_columns = pb.data.bin_columns(
            X, max_bins=max_bins, bin_edges="exact", sample_weight=w if is_weighed else None
        )
        columns, labels, _ = pb.data.bin_files(
            batches(SIZES, *given), tmp_path / str(max_bins), max_bins=max_bins, bin_edges="exact"
        )
        assert columns.table == full_columns.table
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(columns, name), getattr(full_columns, name), name)
        # Rows of other order: as many of each label and bin.
        np.testing.assert_array_equal(labels, y[by_class])
        for ours, theirs in zip(columns.codes, full_columns.codes[:, by_class], strict=True):
            for label in ("no", "yes"):
                first = labels == label
                np.testing.assert_array_equal(np.bincount(ours[first]), np.bincount(theirs[first]))


def test_the_folder_says_which_edges_it_has(tmp_path):
    X, y, _ = table(300)
    pb.data.bin_files([(X, y)], tmp_path, bin_edges="exact")
    assert '"bin_edges": "exact"' in (tmp_path / "header.json").read_text()
    columns, labels, _ = pb.data.open_columns(tmp_path, check=True)
    assert len(labels) == columns.n_rows == 300


def test_passes_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(exact_edges, "CELLS", 1 << 12)
    X, y, _ = table(20_000)
    calls = []

    def read():
        calls.append(1)
        yield from batches([10_000, 10_000], X, y)

    pb.data.bin_files(read, tmp_path, bin_edges="exact")
    assert 4 <= len(calls) <= 9  # one looks for weights, the last writes codes


def test_of_many_columns_each_has_fewer_cells():
    counts = exact_edges.BatchCounts(np.zeros(1000, np.int32), False)
    asked = [total.asked for total in counts._sums.values()]
    assert {int(item.to[0]) for item in asked} == {64 - 14}
    counts = exact_edges.BatchCounts(np.array([0, 7, 0], np.int32), True)
    assert [*counts._sums] == [0, 2]
    assert int(counts._sums[0].asked.to[0]) == 64 - 18


@pytest.mark.parametrize("change", ["values", "fewer", "more"])
def test_batches_that_change_while_they_are_counted(change, tmp_path, monkeypatch):
    monkeypatch.setattr(exact_edges, "CELLS", 1 << 8)
    X, y, _ = table()
    calls = []

    def read():
        calls.append(1)
        if len(calls) < 3:
            return [(X, y)]
        return {"values": [(X + 1, y)], "fewer": [(X[1:], y[1:])], "more": [(X, y), (X, y)]}[change]

    with pytest.raises(ValueError, match="expected the same rows in each pass"):
        pb.data.bin_files(read, tmp_path, bin_edges="exact")
    assert len(calls) == 3
    assert not list(tmp_path.iterdir())
    assert bin_files.EDGES == ("sample", "exact")
