"""Targets of tables in batches: classes or a regression, as all batches say."""

import numpy as np
import pytest
from target_cases import ASKS, CLASSES, REGRESSION, TARGETS, N, X, task_of

import pboost as pb
from pboost.data.on_disk import column_folder, encoded_batches


def batches(y, w=None):
    """Return batches; the first has whole numbers only, of few values."""
    cuts = (slice(0, 10), slice(10, 40), slice(40, N))
    return [(X[rows], y[rows]) if w is None else (X[rows], y[rows], w[rows]) for rows in cuts]


@pytest.mark.parametrize("edges", ["sample", "exact"])
@pytest.mark.parametrize("name", TARGETS)
def test_the_rule(name, edges, tmp_path):
    y, expected = TARGETS[name]
    if expected == ASKS:
        with pytest.raises(ValueError, match=r"y: got .* pass task="):
            pb.data.bin_files(batches(y), tmp_path, bin_edges=edges)
        y, task = np.asarray(y), REGRESSION
    else:
        task = None
    columns, actual, _ = pb.data.bin_files(batches(y), tmp_path, bin_edges=edges, task=task)
    if expected == CLASSES:
        assert actual.tolist() == np.sort(y, kind="stable").tolist()
        return
    assert actual.tolist() == y.tolist()
    assert actual.dtype == np.float64
    assert columns.codes.tolist() == pb.data.bin_columns(X).codes.tolist()
    ours = pb.fit_cart(columns, actual, task=REGRESSION)
    theirs = pb.fit_cart(pb.data.bin_columns(X), y, task=REGRESSION)
    assert task_of(ours) == REGRESSION
    for array in ("threshold", "value", "feature"):
        assert getattr(ours, array).tolist() == getattr(theirs, array).tolist()


def test_whole_numbers_of_a_regression_and_weights(tmp_path):
    y, w = TARGETS["20 integers"][0], np.arange(N) % 3.0
    columns, actual, weight = pb.data.bin_files(batches(y, w), tmp_path, task=REGRESSION)
    used = w > 0
    assert actual.tolist() == y[used].tolist()
    assert weight.tolist() == w[used].tolist()
    assert (
        columns.codes.tolist() == pb.data.bin_columns(X[used], sample_weight=w[used]).codes.tolist()
    )


@pytest.mark.parametrize(
    ("y", "task", "error", "message"),
    [
        (np.where(X[:, 0] > 0, "a", "b"), REGRESSION, TypeError, "batch 0: y: expected numbers"),
        (np.append(X[:-1, 0], 1e200), None, ValueError, "batch 2: y: expected finite numbers"),
        (X[:, 0], CLASSES, ValueError, "66 distinct non-integer numbers"),
        (X[:, 0], "ranking", ValueError, "task: expected one of"),
    ],
)
def test_what_is_refused(y, task, error, message, tmp_path):
    with pytest.raises(error, match=message):
        pb.data.bin_files(batches(y), tmp_path / "columns", task=task)


@pytest.mark.parametrize("edges", ["sample", "exact"])
def test_targets_that_change(edges, tmp_path):
    y, calls = X[:, 0].copy(), []

    def read():
        calls.append(1)  # 1: whether there are weights, 2: that it is a regression, 3: edges
        return batches(y if len(calls) < 4 else y[::-1])

    with pytest.raises(ValueError, match="expected the same rows in each pass"):
        pb.data.bin_files(read, tmp_path, bin_edges=edges)


def test_a_call_that_is_interrupted_goes_on(tmp_path, monkeypatch):
    y = X[:, 0] + X[:, 1]
    monkeypatch.setattr(encoded_batches, "SECONDS", -1.0)
    reads = []

    def read():
        reads.append(1)
        for k, batch in enumerate(batches(y)):
            if len(reads) == 4 and k == 2:
                raise KeyboardInterrupt
            yield batch

    with pytest.raises(KeyboardInterrupt):
        pb.data.bin_files(read, tmp_path)
    with pytest.raises(pb.data.FolderError, match="incomplete: bin_files was"):
        pb.data.open_columns(tmp_path)
    columns, actual, _ = pb.data.bin_files(read, tmp_path)
    assert len(reads) == 6  # whether there are weights, and the codes
    assert actual.tolist() == y.tolist()
    assert columns.codes.tolist() == pb.data.bin_columns(X).codes.tolist()


@pytest.mark.parametrize("targets", [np.ones(N - 1), np.full(N, np.nan), np.full(N, 1e300)])
def test_folders_with_other_targets(targets, tmp_path, monkeypatch):
    own = column_folder.Writer.array

    def changed(self, name, array):
        own(self, name, targets if name == "targets" else array)

    monkeypatch.setattr(column_folder.Writer, "array", changed)
    with pytest.raises(pb.data.FolderError, match="targets: expected a finite number for each row"):
        pb.data.bin_files(batches(X[:, 0]), tmp_path)
