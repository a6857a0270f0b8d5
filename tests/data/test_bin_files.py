"""Tables binned in batches into a folder: the bins and models of the same table in memory."""

import errno
import json
import os
import sys

import numpy as np
import pytest
from partitioned import fit_parted

import pboost as pb
from pboost.data.columns import bin_and_sort as making
from pboost.data.columns import sampled_bin_edges as sampled_edges
from pboost.data.on_disk import column_folder

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
        X[400:, 4] = np.where(X[400:, 1] > 1, np.nan, X[400:, 4])  # in some batches only
    y = np.where(np.nan_to_num(X[:, 0]) + rng.normal(size=n) > 0.5, "yes", "no")
    return X.astype(np.float32) if kind == "float32" else X, y, rng.integers(0, 4, n) / 2


def batches(sizes, *arrays):
    at = np.cumsum(sizes)[:-1]
    return list(zip(*(np.split(array, at) for array in arrays), strict=True))


SIZES = [1, 299, 0, 600]


def assert_same_bins(found, whole):
    assert found.table == whole.table
    assert found.names == whole.names
    for name in FIELDS:
        ours, theirs = getattr(found, name), getattr(whole, name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_array_equal(ours, theirs, name)


def saved(model, folder):
    pb.save(model, folder / "model")
    return (folder / "model").read_bytes()


@pytest.mark.parametrize("sample_rows", [100, 10_000])
@pytest.mark.parametrize("is_weighed", [False, True], ids=["plain", "weights"])
@pytest.mark.parametrize("kind", ["numbers", "holes", "float32"])
def test_bins_and_models_are_those_in_memory(kind, is_weighed, sample_rows, tmp_path, monkeypatch):
    monkeypatch.setattr(sampled_edges, "SAMPLE_ROWS", sample_rows)
    X, y, w = table(kind)
    given = batches(SIZES, X, y, w) if is_weighed else batches(SIZES, X, y)
    if is_weighed:
        X, y, w = X[w > 0], y[w > 0], w[w > 0]
    weights = w if is_weighed else None
    for max_bins in (8, 256):
        folder = tmp_path / str(max_bins)
        columns, labels, weight = pb.data.bin_files(given, folder, max_bins=max_bins)
        full_columns = pb.data.bin_columns(X, max_bins=max_bins, sample_weight=weights)
        assert_same_bins(columns, full_columns)
        by_class = np.argsort(y, kind="stable")
        np.testing.assert_array_equal(columns.codes, full_columns.codes[:, by_class])
        np.testing.assert_array_equal(labels, y[by_class])
        assert (weight is None) == (not is_weighed)
        ours = pb.fit_adaboost(columns, labels, n_estimators=10, sample_weight=weight)
        theirs = pb.fit_adaboost(full_columns, y, n_estimators=10, sample_weight=weights)
        assert saved(ours, tmp_path) == saved(theirs, tmp_path)
        parts = [columns], [labels], None if weight is None else [weight]
        sharded = fit_parted("fit_adaboost", *parts[:2], n_estimators=10, sample_weight=parts[2])
        for name in ("feature", "threshold", "vote", "missing"):
            assert getattr(sharded, name).tobytes() == getattr(theirs, name).tobytes()


def test_bins_do_not_depend_on_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(sampled_edges, "SAMPLE_ROWS", 100)
    X, y, w = table("holes")
    order = np.random.default_rng(0).permutation(len(X))
    first, *others = (
        pb.data.bin_files(batches(sizes, X[rows], y[rows], w[rows]), tmp_path / str(k))
        for k, (sizes, rows) in enumerate(
            [
                ([900], slice(None)),
                (SIZES, order),
                ([1] * 90 + [810], slice(None)),
            ]
        )
    )
    for other in others:
        assert_same_bins(other.columns, first.columns)


def test_a_fit_copies_no_codes(tmp_path):
    X, y, w = table("holes")
    X[:, 3], w = X[:, 0], w + 1
    columns, labels, weight = pb.data.bin_files(batches([450, 450], X, y, w), tmp_path)
    mapped = columns.codes.base.obj
    assert isinstance(mapped, np.memmap)
    rows = np.arange(900, dtype=np.int32)
    assert columns.select(rows, all_rows=True) is columns
    assert columns.select(rows[::-1].copy(), all_rows=True) is not columns
    swapped = np.flatnonzero(labels == "yes")[0]
    rows[swapped - 1 : swapped + 1] = swapped, swapped - 1
    assert columns.select(rows, all_rows=True).codes.tolist() == columns.codes[:, rows].tolist()
    problem = pb.weak.stump().read(columns, labels, weight, None)
    assert pb.weak.stump().arrange(problem, None).columns is columns


def test_three_labels_and_trees(tmp_path):
    X, _, _ = table("holes")
    y = np.arange(900) % 3
    columns, labels, _ = pb.data.bin_files(batches([450, 450], X, y), tmp_path / "columns")
    full, rows = pb.data.bin_columns(X), np.argsort(y, kind="stable")
    assert labels.tolist() == y[rows].tolist()
    for fit in (pb.fit_cart, pb.fit_adaboost):
        ours, theirs = fit(columns, labels), fit(full.select(rows.astype(np.int32)), y[rows])
        assert saved(ours, tmp_path) == saved(theirs, tmp_path)


def test_sample_is_as_large_as_that_of_memory():
    X = np.random.default_rng(0).normal(size=(50, 2))
    sample = sampled_edges.RowSample(2)
    hashed, _ = sampled_edges.hashed_rows(X, np.arange(50, dtype=np.int32), no_workers())
    sample.add(X, hashed, None)
    sample.add(X, hashed, np.full(50, 2))
    values, mass = sample.rows()
    assert mass.tolist() == [3] * 50
    assert sorted(map(tuple, values)) == sorted(map(tuple, X))
    assert not sample.is_part


def no_workers():
    return making.Workers(1, 1)


# Batches


def test_batches_that_cannot_be_read(tmp_path):
    X, y, w = table("numbers", 6)
    for source, error, match in [
        (iter([(X, y)]), TypeError, "that can be read twice, got a list_iterator"),
        (X, TypeError, "for a table in memory use pb.data.bin_columns"),
        (5, TypeError, "expected paths, a pyarrow dataset, or an iterable of batches"),
        ([], ValueError, "expected at least one batch, got none"),
        ([X], TypeError, r"batch 0: expected a tuple \(X, y\) or"),
        ([(X[:0], y[:0])], ValueError, "at least one row of positive weight, got none"),
        ([(X, y, 0 * w)], ValueError, "expected a positive, finite sum, got 0.0"),
        ([(X, y, w - 1)], ValueError, "batch 0: sample_weight: expected finite numbers >= 0"),
        ([(X, y), (X, y, w)], ValueError, "batch 1: weights: expected weights in all batches"),
        ([(X, y), (X[:, 1:], y)], ValueError, "batch 1: X: expected 5 columns, got 4"),
        ([(X, y), (X, y[1:])], ValueError, "batch 1: y: expected 6 labels"),
        ([(X, y), (X, w)], TypeError, "batch 1: y: expected class labels of one type"),
        ([(X, w * np.nan)], ValueError, "batch 0: y: missing label in row 0"),
        ([(X, np.ones(6))], ValueError, "expected at least two classes"),
        ([(np.inf * X, y)], ValueError, "batch 0: X: expected finite numbers, got -?inf"),
    ]:
        with np.errstate(all="ignore"), pytest.raises(error, match=match):
            pb.data.bin_files(source, tmp_path / "columns")
    assert not list((tmp_path / "columns").iterdir())
    with pytest.raises(ValueError, match="bin_edges"):
        pb.data.bin_files([(X, y)], tmp_path / "columns", bin_edges="all")
    with pytest.raises(ValueError, match="weight: expected None without target"):
        pb.data.bin_files([(X, y)], tmp_path / "columns", weight="w")


@pytest.mark.parametrize("change", ["values", "fewer", "more", "labels"])
def test_batches_that_change(change, tmp_path):
    X, y, _ = table("numbers")
    calls = []

    def read():
        calls.append(1)
        if len(calls) < 3:  # 1: whether there are weights
            return [(X, y)]
        return {
            "values": [(X + 1, y)],
            "fewer": [(X[1:], y[1:])],
            "more": [(X, y), (X, y)],
            "labels": [(X, y[::-1])],
        }[change]

    if change == "labels":
        y[:] = np.where(np.arange(len(y)) < 100, "yes", "no")
    with pytest.raises(ValueError, match="expected the same rows in each pass"):
        pb.data.bin_files(read, tmp_path)
    assert not list(tmp_path.iterdir())


# Folders


@pytest.fixture
def folder(tmp_path):
    X, y, w = table("holes")
    pb.data.bin_files(batches([450, 450], X, y, w + 1), tmp_path / "columns")
    return tmp_path / "columns"


def change_header(folder, **new):
    header = json.loads((folder / "header.json").read_text())
    header.update(new)
    header["digest"] = column_folder._digest(header)
    (folder / "header.json").write_text(json.dumps(header))


def test_folders_that_are_not_complete(folder):
    X, y, _ = table("numbers")
    with pytest.raises(FileExistsError, match=r"contains header\.json"):
        pb.data.bin_files([(X, y)], folder)
    os.rename(folder / "header.json", folder / "header.json.part")
    with pytest.raises(pb.data.FolderError, match="incomplete: bin_files was interrupted"):
        pb.data.open_columns(folder)
    columns, _, weight = pb.data.bin_files([(X, y)], folder)  # takes its place
    assert weight is None
    assert columns.n_rows == 900
    assert not (folder / "weights.npy").exists()
    with pytest.raises(FileNotFoundError, match="expected an existing folder"):
        pb.data.open_columns(folder / "other")
    with pytest.raises(pb.data.FolderError, match=r"header\.json is missing"):
        pb.data.open_columns(folder.parent)
    (folder.parent / "data.csv").write_text("")
    with pytest.raises(FileExistsError, match=r"contains 'columns'"):
        pb.data.bin_files([(X, y)], folder.parent)


def test_folders_of_other_versions(folder):
    change_header(folder, version=2, pboost="99.0")
    with pytest.raises(
        pb.data.FolderError, match=r"expected version 1 .* got 2, written by .*99\.0"
    ):
        pb.data.open_columns(folder)
    change_header(folder, format="other")
    with pytest.raises(pb.data.FolderError, match="expected format 'pboost-columns'"):
        pb.data.open_columns(folder)


@pytest.mark.parametrize("name", ["codes", "weights", "lower", "class_count", "category_kind"])
def test_files_that_have_changed(name, folder):
    path = folder / f"{name}.npy"
    full_content = path.read_bytes()
    path.write_bytes(full_content[:-1])
    with pytest.raises(
        pb.data.FolderError, match=rf"{name}.npy has {len(full_content) - 1} bytes, expected"
    ):
        pb.data.open_columns(folder)
    path.write_bytes(full_content[:-1] + bytes([full_content[-1] ^ 1]))
    with pytest.raises(pb.data.FolderError, match=rf"{name}.npy has been changed"):
        pb.data.open_columns(folder, check=True)
    path.unlink()
    with pytest.raises(pb.data.FolderError, match=rf"{name}.npy is missing"):
        pb.data.open_columns(folder)


def test_a_header_that_has_changed(folder):
    path = folder / "header.json"
    path.write_text(path.read_text().replace('"sample"', '"simple"'))
    with pytest.raises(pb.data.FolderError, match=r"header\.json has been changed"):
        pb.data.open_columns(folder)
    path.write_text("[1")
    with pytest.raises(pb.data.FolderError, match="damaged"):
        pb.data.open_columns(folder)


def test_codes_that_are_none_are_refused_without_a_check(folder):
    path = folder / "codes.npy"
    path.write_bytes(path.read_bytes()[:-900] + b"\xff" * 900)
    with pytest.raises(pb.data.FolderError, match="codes: expected numbers below n_bins"):
        pb.data.open_columns(folder)


@pytest.mark.parametrize("at", [6, 20, 60])
def test_a_layout_of_codes_that_has_changed(at, folder):
    path = folder / "codes.npy"
    full_content = path.read_bytes()
    path.write_bytes(full_content[:at] + b"0" + full_content[at + 1 :])
    with pytest.raises(
        pb.data.FolderError, match=r"codes\.npy differs from its entry in header\.json"
    ):
        pb.data.open_columns(folder)


@pytest.mark.parametrize("failing", ["codes", "lower", "header"])
def test_a_full_disk(failing, tmp_path, monkeypatch):
    X, y, _ = table("numbers")

    def full(file):
        if failing in os.path.basename(file.name):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(column_folder, "_flush", full)
    with pytest.raises(OSError, match=rf"No space left on device: '.*{failing}.*part'"):
        pb.data.bin_files([(X, y)], tmp_path)
    assert not list(tmp_path.iterdir())


# pyarrow


def arrow_table(n=900):
    pa = pytest.importorskip("pyarrow")
    X, y, w = table("holes", n)
    columns = {f"x{j}": pa.array(X[:, j], mask=np.isnan(X[:, j])) for j in range(5)}
    return pa.table({"label": y, **columns, "mass": w}), X[w > 0], y[w > 0], w[w > 0]


@pytest.mark.parametrize("kind", ["file", "files", "folder", "csv", "data set", "table", "frames"])
def test_files_and_record_batches(kind, tmp_path):
    actual, X, y, w = arrow_table()
    from pyarrow import csv, dataset, parquet

    for k in range(2):
        (tmp_path / "parts").mkdir(exist_ok=True)
        parquet.write_table(actual.slice(450 * k, 450), tmp_path / "parts" / f"{k}.parquet")
    parquet.write_table(actual, tmp_path / "all.parquet")
    csv.write_csv(actual, tmp_path / "all.csv")
    source = {
        "file": str(tmp_path / "all.parquet"),
        "files": [tmp_path / "parts" / f"{k}.parquet" for k in range(2)],
        "folder": tmp_path / "parts",
        "csv": tmp_path / "all.csv",
        "data set": dataset.dataset(tmp_path / "parts"),
        "table": actual,
        "frames": [
            actual.slice(0, 300).to_pandas(),
            actual.slice(300).select([2, 1, 0, 6, 5, 4, 3]),
        ],
    }[kind]
    made = pb.data.bin_files(source, tmp_path / "columns", target="label", weight="mass")
    names = tuple(f"x{j}" for j in range(5))
    full_columns = pb.data.bin_columns(X, sample_weight=w)
    assert made.columns.names == names
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(made.columns, name), getattr(full_columns, name))
    by_class = np.argsort(y, kind="stable")
    np.testing.assert_array_equal(made.columns.codes, full_columns.codes[:, by_class])
    np.testing.assert_array_equal(made.weight, w[by_class])
    assert made.y.tolist() == y[by_class].tolist()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("is_data_set", [False, True])
@pytest.mark.parametrize(
    ("lacking", "problem"), [(0, "has the additional column 'x1'"), (1, "has no column 'x1'")]
)
def test_a_feature_that_a_file_lacks_is_refused(lacking, problem, is_data_set, kind, tmp_path):
    actual, *_ = arrow_table(30)
    from pyarrow import csv, dataset, parquet

    write = {"parquet": parquet.write_table, "csv": csv.write_csv}[kind]
    paths = [tmp_path / f"{k}.{kind}" for k in range(2)]
    for k, path in enumerate(paths):
        write(actual.drop(["x1"] if k == lacking else []), path)
    source = dataset.dataset([str(path) for path in paths], format=kind) if is_data_set else paths
    with pytest.raises(ValueError, match=rf"source: .*/1\.{kind}' {problem}"):
        pb.data.bin_files(source, tmp_path / "columns", target="label", weight="mass")


def test_columns_in_the_names_of_folders(tmp_path):
    actual, *_ = arrow_table(60)
    from pyarrow import dataset

    parts = {"format": "parquet", "partitioning": dataset.partitioning(flavor="hive")}
    actual = actual.append_column("year", [[2001, 2002] * 30])
    dataset.write_dataset(
        actual,
        tmp_path / "years",
        format="parquet",
        partitioning=dataset.partitioning(actual.select(["year"]).schema, flavor="hive"),
    )
    source = dataset.dataset(tmp_path / "years", **parts)
    made = pb.data.bin_files(source, tmp_path / "columns", target="label", weight="mass")
    assert made.columns.names == ("x0", "x1", "x2", "x3", "x4", "year")
    assert made.columns.n_bins[5] == 2


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    actual, _, _, _ = arrow_table(30)
    text = actual.append_column("name", [["a", "b", "c"] * 10])
    folder = tmp_path / "columns"
    for source, options, error, match in [
        ([actual], {}, TypeError, r"batch 0: expected a tuple .* pass target="),
        (actual, {"target": "y"}, ValueError, "target: expected a column name, got 'y'; ba"),
        (actual, {"target": 0}, TypeError, "target: expected a column name"),
        (actual, {"target": "label", "weight": "w"}, ValueError, "weight: expected a column name"),
        ([actual, actual.drop(["x1"])], {"target": "label"}, ValueError, "batch 1: .*missing: x1"),
        ([actual, text], {"target": "label"}, ValueError, "batch 1: X: .* unknown: name"),
        (actual.to_reader(), {"target": "label"}, TypeError, "that can be read twice"),
        (
            tmp_path / "none.parquet",
            {"target": "label"},
            FileNotFoundError,
            "expected an existing file or folder",
        ),
        ([tmp_path, actual], {"target": "label"}, TypeError, "got both in one list"),
    ]:
        with pytest.raises(error, match=match):
            pb.data.bin_files(source, folder, **options)
    (tmp_path / "rows.txt").write_text("1")
    with pytest.raises(ValueError, match=r"expected files with extension \.parquet, \.pq"):
        pb.data.bin_files(tmp_path / "rows.txt", folder, target="label")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "pboosting\[parquet\]"'):
        pb.data.bin_files(tmp_path / "rows.txt", folder, target="label")
