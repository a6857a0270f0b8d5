"""Folders of columns that were made to take memory are refused before they do; text stays codes."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

import numpy as np
import pytest
from damaged_folders import signed
from measured import FREE, OF_FILES, peak

import pboost as pb
from pboost.data.on_disk import encoded_batches
from pboost.data.on_disk.column_folder import HEADER, STATE
from pboost.data.on_disk.encoded_batches import Encoding

RNG = np.random.default_rng(4)
N = 600
X = RNG.normal(size=(N, 3))
HOLED = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
HOLED[:, 2] = X[:, 2]
TEXT = np.where(X[:, 0] > 0, "yes", "no")
LONG = "z" * 2_000_000


def size_of(folder):
    return sum(path.stat().st_size for path in folder.iterdir())


def forged(folder, arrays, **fields):
    """Have a folder hold other arrays, and digests that fit them."""
    header = json.loads((folder / HEADER).read_text()) | fields
    for name, array in arrays.items():
        content = array
        if isinstance(array, np.ndarray):
            np.save(folder / f"{name}.npy", array)
            header["arrays"][name] |= {"dtype": array.dtype.str, "shape": list(array.shape)}
        else:
            (folder / f"{name}.npy").write_bytes(content)
    signed(folder, header, set(arrays))
    return folder


def refused(folder, message, check=False):
    def opened():
        with pytest.raises(pb.data.FolderError, match=message):
            pb.data.open_columns(folder, check=check)

    assert peak(opened) < OF_FILES * size_of(folder) + FREE


@pytest.fixture
def folder(tmp_path):
    pb.data.bin_files([(HOLED, TEXT)], tmp_path / "columns", keep_values=True, max_bins=8)
    return tmp_path / "columns"


def head(descr: bytes, shape: bytes, body: bytes = b"") -> bytes:
    text = b"{'descr': " + descr + b", 'fortran_order': False, 'shape': " + shape + b", }\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


HEADS = {
    "1e13 entries": (head(b"'<f8'", b"(10000000000000,)"), "needs 80000000000000 bytes"),
    "1e13 rows of none": (head(b"'<f8'", b"(10000000000000, 0, 10000000000000)"), "bad array head"),
    "brackets": (head(b"[" * 2000, b"(1,)"), "bad array header"),
    "more brackets": (head(b"[" * 60000, b"(1,)"), "bad array header"),
    "objects": (head(b"'|O'", b"(1,)", b"\x80\x04N."), "expected numbers or strings"),
    "version 3": (b"\x93NUMPY\x03\x00" + bytes(200), r"expected \.npy version 1\.0"),
}


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("name", ["lower", "classes"])
def test_arrays_that_claim_more_than_they_hold(folder, name, kind):
    content, message = HEADS[kind]
    refused(forged(folder, {name: content}), message)


TEXTS = {"brackets": "[" * 100_000, "tables": '{"":' * 100_000, "lists": "[" + "[0]," * 9000 + "0]"}


@pytest.mark.parametrize("kind", TEXTS)
def test_headers_that_say_too_much(monkeypatch, folder, kind):
    monkeypatch.setattr("pboost.values.json_texts.FREE_BYTES", 0)
    (folder / HEADER).write_text(TEXTS[kind])
    refused(folder, "damaged header.json: (expected at most 32|needs more memory)")


def test_counts_that_are_absurd(folder):
    refused(forged(folder, {"class_count": np.array([2**62, -(2**62) + N])}), "class_count")
    refused(forged(folder, {"class_count": np.array([2**63 - 1, 2**63 - 1])}), "class_count")


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(("column", "value"), [(0, np.inf), (0, np.nan), (2, np.nan), (2, -np.inf)])
def test_values_that_no_reader_writes(folder, check, column, value):
    codes, values = np.load(folder / "codes.npy"), np.load(folder / "values.npy")
    row = np.flatnonzero(np.isfinite(values[column]))[7]
    values[column, row] = value
    forged(folder, {"values": values})
    message = f"values: expected finite numbers or missing values in column {column}"
    refused(folder, message, check)
    if column == 0:  # infinite where a value is missing
        codes[column, row] = codes[column].max()
        values[column, row] = np.inf
        forged(folder, {"values": values, "codes": codes})
        refused(folder, "values: expected finite numbers", check)


@pytest.mark.full
def test_one_long_label_of_many_rows(tmp_path):
    rows = 20_000
    long = "a" * 2000
    y = np.array(["b", long], dtype=object)[(np.arange(rows) % 3 == 0).astype(int)]
    folder = tmp_path / "columns"
    pb.data.bin_files([(np.arange(rows * 1.0)[:, None] % 7, y)], folder)
    opened = []
    # As an array of strings, the labels of the rows would take 160 MB.
    assert (
        peak(lambda: opened.append(pb.data.open_columns(folder)))
        < OF_FILES * size_of(folder) + FREE
    )
    columns, labels, _ = opened[0]
    for fit in (pb.fit_adaboost, pb.fit_cart, pb.fit_gradient_boosting, pb.fit_random_forest):
        options = {"n_estimators": 2, "rng": 0} if fit is pb.fit_random_forest else {}
        options |= {"n_estimators": 3} if fit is pb.fit_adaboost else {}
        options |= {"n_estimators": 3} if fit is pb.fit_gradient_boosting else {}
        made = []
        assert peak(lambda: made.append(fit(columns, labels, **options))) < 20_000_000  # noqa: B023
        assert made[0].classes.tolist() == [long, "b"]
    assert peak(lambda: pb.data.balanced_weights(labels)) < 2_000_000


def test_a_folder_label_of_8_mb(folder):
    forged(folder, {"classes": np.array(["a", LONG])})
    opened = []
    assert (
        peak(lambda: opened.append(pb.data.open_columns(folder)))
        < OF_FILES * size_of(folder) + FREE
    )
    assert len(opened[0].y) == N


def test_text_of_rows_is_what_an_array_is(folder):
    columns, y, _ = pb.data.open_columns(folder)
    array = np.sort(TEXT)
    assert (len(y), y.shape, y.size, y.ndim, y.dtype) == (N, (N,), N, 1, array.dtype)
    assert np.asarray(y).tolist() == y.tolist() == list(y) == array.tolist()
    assert (y == "yes").tolist() == (array == "yes").tolist() == ("yes" == y).tolist()  # noqa: SIM300
    assert (y != array).tolist() == [False] * N == (y != y[:]).tolist()
    assert y[3] == array[3]
    assert y[::7].tolist() == array[::7].tolist()
    assert y[array == "no"].tolist() == array[array == "no"].tolist()
    assert np.unique(y).tolist() == ["no", "yes"]
    assert repr(y) == f"<labels of {N} rows: no, yes>"
    for fit in (pb.fit_cart, pb.fit_probit_tree):
        first, two = fit(columns, y), fit(columns, array)
        actual = (pb.predict_proba(model, HOLED).tobytes() for model in (first, two))
        assert next(actual) == next(actual)
        assert first.classes.tolist() == two.classes.tolist() == ["no", "yes"]
    model = pb.fit_adaboost(HOLED, TEXT, n_estimators=3)
    of_text = type(y)(y.classes, np.searchsorted(y.classes, TEXT).astype(np.uint8))
    assert (
        pb.inspection.margins(model, HOLED, of_text).tolist()
        == pb.inspection.margins(model, HOLED, TEXT).tolist()
    )
    with pytest.raises(ValueError, match="expected at least two classes, got only 'no'"):
        pb.fit_adaboost(HOLED[: len(y[y == "no"])], y[y == "no"])
    with pytest.raises(ValueError, match="copy: expected True or None"):
        np.asarray(y, copy=False)


def large_state(kind):
    """What an interrupted call leaves, of which one array claims more than it holds."""
    buffer = io.BytesIO()
    if kind == "compressed":
        np.savez_compressed(buffer, key=np.zeros(2_500_000))
    else:
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("key.npy", HEADS[kind][0])
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["1e13 entries", "compressed"])
def test_states_that_claim_more_than_they_hold(tmp_path, kind):
    content = large_state(kind)
    (tmp_path / STATE).write_bytes(hashlib.sha256(content).digest() + content)
    opened = []
    maximum = peak(lambda: opened.append(pb.data.bin_files([(X, TEXT)], tmp_path)))
    assert maximum < FREE
    assert opened[0].columns.codes.shape == (3, N)
    assert not (tmp_path / STATE).exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_bins": np.array([300, 8, 8], dtype=np.int32)},
        {"n_bins": np.zeros(0, np.int32)},
        {"lower": np.zeros((3, 1))},
        {"count": np.array([-1, N + 1])},
        {"at": np.array([0, 2 * N])},
        {"ends_rows": np.zeros((1, 1), np.int32)},
        {"content": np.zeros(9, np.uint64)},
        {"names": np.frombuffer(b"[" * 9999, np.uint8)},
        {"names": np.frombuffer(b'["a"]', np.uint8)},
    ],
    ids=lambda wrong: "".join(wrong),
)
def test_states_that_no_call_has_left(monkeypatch, tmp_path, wrong):
    batches, encode, encoded = [(X, TEXT)] * 2, Encoding._encode, []

    def interrupted(self, rows, *more):
        if encoded:
            raise KeyboardInterrupt
        encoded.append(rows.batch)
        encode(self, rows, *more)

    monkeypatch.setattr(encoded_batches, "SECONDS", -1)
    monkeypatch.setattr(Encoding, "_encode", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pb.data.bin_files(batches, tmp_path)
    monkeypatch.undo()
    full = (tmp_path / STATE).read_bytes()
    with np.load(io.BytesIO(full[32:])) as actual:
        state = {**actual, **wrong}
    buffer = io.BytesIO()
    np.savez(buffer, **state)
    content = buffer.getvalue()
    (tmp_path / STATE).write_bytes(hashlib.sha256(content).digest() + content)
    columns, y, _ = pb.data.bin_files(batches, tmp_path)
    assert columns.codes.shape == (3, 2 * N)
    assert y.tolist() == np.sort([*TEXT, *TEXT]).tolist()
