"""A call of bin_files that goes on where another was interrupted: the same folder."""

import os

import numpy as np
import pytest

import pboost as pb
from pboost.data.on_disk import bin_files, column_folder, encoded_batches

N_BATCHES = 5


def table(n=1000):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 3))
    X[:, 1] = np.where(rng.random(n) < 0.1, np.nan, np.round(X[:, 1], 1))
    return X, np.array(["a", "b", "c"])[rng.integers(0, 3, n)], rng.integers(0, 3, n) / 2


def reader(rows, calls, stop=None, error=KeyboardInterrupt):
    """A function that yields batches, and is interrupted in a pass (from 1) before a batch."""

    def read():
        calls.append(1)
        for k, batch in enumerate(zip(*(np.array_split(a, N_BATCHES) for a in rows), strict=True)):
            if stop == (len(calls), k):
                raise error
            yield batch

    return read


def files(folder):
    return {name: (folder / name).read_bytes() for name in sorted(os.listdir(folder))}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Nothing waits for the disk, which matters where power fails."""
    monkeypatch.setattr(column_folder.os, "fsync", lambda handle: None)


@pytest.fixture
def coded(monkeypatch):
    """How many rows have been encoded, call by call."""
    actual, code_rows = [], encoded_batches.code_rows

    def counting(gather, rows, *more):
        actual.append(len(rows))
        return code_rows(gather, rows, *more)

    monkeypatch.setattr(encoded_batches, "code_rows", counting)
    return actual


def passes(is_weighed, edges, tmp_path):
    """The number of the pass that encodes, and the folder of a call that was not interrupted."""
    calls, rows = [], table()[: 2 + is_weighed]
    pb.data.bin_files(reader(rows, calls), tmp_path / "whole", bin_edges=edges)
    return len(calls), files(tmp_path / "whole")


@pytest.mark.parametrize(
    ("is_weighed", "edges", "seconds"),
    [(False, "exact", 0.0), (True, "sample", 0.0), (True, "exact", 1e9)],
    ids=["exact", "weights", "edges are kept"],
)
def test_batches_are_not_encoded_again(is_weighed, edges, seconds, tmp_path, coded, monkeypatch):
    monkeypatch.setattr(encoded_batches, "SECONDS", seconds)
    last, full = passes(is_weighed, edges, tmp_path)
    sizes, rows = coded.copy(), table()[: 2 + is_weighed]
    for k in (0, 3):
        folder, calls = tmp_path / str(k), []
        coded.clear()
        with pytest.raises(KeyboardInterrupt):
            pb.data.bin_files(reader(rows, calls, (last, k)), folder, bin_edges=edges)
        assert coded == sizes[:k]
        with pytest.raises(pb.data.FolderError, match="incomplete: bin_files was"):
            pb.data.open_columns(folder)
        calls.clear()
        pb.data.bin_files(reader(rows, calls), folder, bin_edges=edges)
        assert len(calls) == 2  # one looks for weights
        assert coded[k:] == (sizes[k:] if seconds == 0 else sizes)
        assert files(folder) == full


def test_interrupted_time_and_again(tmp_path, coded, monkeypatch):
    monkeypatch.setattr(encoded_batches, "SECONDS", 0.0)
    last, full = passes(True, "sample", tmp_path)
    folder = tmp_path / "columns"
    coded.clear()
    for k, stop in enumerate([(1, 0), (2, 1), (last, 1), (2, 0), (2, 3), (2, 4), None]):
        source = reader(table(), [], stop)
        if stop is None:
            pb.data.bin_files(source, folder)
        else:
            with pytest.raises(KeyboardInterrupt):
                pb.data.bin_files(source, folder)
        assert k > 1 or not list(folder.iterdir())
    assert len(coded) == N_BATCHES
    assert files(folder) == full


def changed(X, y, w):
    swapped = np.arange(len(X))
    swapped[:2] = swapped[1::-1]
    return {
        "values": (X + 1, y, w),
        "order": (X[swapped], y[swapped], w[swapped]),
        "labels": (X, y[::-1], w),
        "weights": (X, y, w + 1),
        "columns": (X[:, :2], y, w),
        "fewer": (X[:-1], y[:-1], w[:-1]),
        "late": (np.r_[X[:-1], X[:1]], y, w),
        "one label": (X, np.where(y == "a", "b", y), w),
        "a new label": (X, np.char.add(y, "x"), w),
        "numbers": (X, (y == "a") + 0, w),
        "no weights": (X, y),
    }


@pytest.mark.parametrize("what", list(changed(*table())))
def test_of_another_table_nothing_is_kept(what, tmp_path, monkeypatch):
    monkeypatch.setattr(encoded_batches, "SECONDS", 0.0)
    last, _ = passes(True, "sample", tmp_path)
    rows = changed(*table())[what]
    with pytest.raises(KeyboardInterrupt):
        pb.data.bin_files(reader(table(), [], (last, 3)), tmp_path / "columns")
    pb.data.bin_files(reader(rows, []), tmp_path / "columns")
    pb.data.bin_files(reader(rows, []), tmp_path / "other")
    assert files(tmp_path / "columns") == files(tmp_path / "other")


@pytest.mark.parametrize("what", ["options", "version", "damaged", "cut", "codes", "error"])
def test_what_cannot_be_gone_on_with(what, tmp_path, coded, monkeypatch):
    monkeypatch.setattr(encoded_batches, "SECONDS", 0.0)
    last, full = passes(True, "sample", tmp_path)
    folder, error = tmp_path / "columns", OSError if what == "error" else KeyboardInterrupt
    options = {"max_bins": 9} if what == "options" else {}
    with pytest.raises(error):
        pb.data.bin_files(reader(table(), [], (last, 3), error), folder, **options)
    if what == "error":
        assert not list(folder.iterdir())
    state = folder / column_folder.STATE
    if what == "damaged":
        state.write_bytes(state.read_bytes()[:-1] + b"x")
    elif what == "cut":
        state.write_bytes(state.read_bytes()[:20])
    elif what == "codes":
        (folder / "codes.npy.part").write_bytes(b"")
    elif what == "version":
        monkeypatch.setattr(encoded_batches, "__version__", "0")
    coded.clear()
    pb.data.bin_files(reader(table(), []), folder)
    assert len(coded) == N_BATCHES
    actual = files(folder)
    assert actual == full


def test_categories(tmp_path, coded, monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setattr(encoded_batches, "SECONDS", 0.0)
    X = pandas.DataFrame({"a": list("xyzxxyzzyx"), "b": np.arange(10.0)})
    y, calls = np.arange(10) % 2, []

    def read():
        calls.append(1)
        for k in range(0, 10, 2):
            if len(calls) == 5 and k == 6:
                raise KeyboardInterrupt
            yield X[k : k + 2], y[k : k + 2]

    with pytest.raises(KeyboardInterrupt):
        pb.data.bin_files(read, tmp_path)
    columns = pb.data.bin_files(read, tmp_path).columns
    assert len(coded) == 5
    order = np.argsort(y, kind="stable")
    np.testing.assert_array_equal(columns.codes, pb.data.bin_columns(X).codes[:, order])
    assert columns.table == pb.data.bin_columns(X).table


def test_numbers_that_have_become_categories(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setattr(encoded_batches, "SECONDS", 0.0)
    y = np.arange(10) % 2
    numbers = [(pandas.DataFrame({"a": np.arange(5.0)}), y[:5])] * 2
    texts = [(pandas.DataFrame({"a": list("xyxyx")}), y[:5])] * 2

    def stopped():
        calls.append(1)
        yield numbers[0]
        if len(calls) == 3:
            raise KeyboardInterrupt
        yield numbers[1]

    calls = []
    with pytest.raises(KeyboardInterrupt):
        pb.data.bin_files(stopped, tmp_path)
    assert (tmp_path / column_folder.STATE).exists()
    assert pb.data.bin_files(texts, tmp_path).columns.table.level_names(0) == ("x", "y")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process that ends at once needs fork")
def test_a_process_that_is_killed(tmp_path, coded, monkeypatch):
    monkeypatch.setattr(encoded_batches, "SECONDS", 0.0)
    last, full = passes(False, "exact", tmp_path)
    rows, folder = table()[:2], tmp_path / "columns"
    child = os.fork()
    if not child:

        def dying():
            calls.append(1)
            for k, batch in enumerate(reader(rows, [])()):
                if (len(calls), k) == (last, 3):
                    os._exit(9)
                yield batch

        calls = []
        try:
            bin_files.bin_files(dying, folder, bin_edges="exact", n_threads=1)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    coded.clear()
    pb.data.bin_files(reader(rows, []), folder, bin_edges="exact")
    assert len(coded) == N_BATCHES - 3
    assert files(folder) == full
