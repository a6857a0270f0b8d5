"""Model files that are truncated, tampered with, foreign or of another version."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile

import numpy as np
import pytest
from model_files import (
    assert_same,
    forge,
    forge_column,
    header_of,
    members_of,
    npy,
    tree,
    zip_up,
)

from pboost.models import ModelFileError
from pboost.models.files import load, save
from pboost.models.graph import COLUMNS


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


@pytest.fixture
def members(path):
    save(tree(), path)
    return members_of(path)


def test_truncated_file(path):
    save(tree(), path)
    content = path.read_bytes()
    n = len(content)
    for length in (*range(0, n, 7), *range(n - 100, n)):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match=r"model\.npz: "):
            load(path)


@pytest.mark.full
def test_no_flipped_byte_changes_the_model(path):
    model = tree(("no", "yes"), n_nodes=1, feature_names=None, settings={})
    save(model, path)
    content = path.read_bytes()
    harmless = 0
    for i in range(len(content)):
        damaged = bytearray(content)
        damaged[i] ^= (0x01, 0x80, 0xFF)[i % 3]
        path.write_bytes(damaged)
        try:
            loaded = load(path)
        except ModelFileError:
            continue
        harmless += 1
        assert_same(model, loaded)
    # Dates and attributes in the zip directory carry nothing.
    assert harmless < len(content) / 4


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"hello, world\n" * 100, b"PK\x05\x06" + b"\0" * 18, bytes(range(256)) * 40],
    ids=["empty", "magic", "text", "empty-zip", "bytes"],
)
def test_not_a_model_at_all(path, content):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"model\.npz: .*(zip|header)"):
        load(path)


def test_npz_of_somebody_else(path):
    np.savez(path, x=np.arange(3))
    with pytest.raises(ModelFileError, match="not a pboost model"):
        load(path)
    np.savez(path, header=np.frombuffer(b'{"format": "other"}', np.uint8))
    with pytest.raises(ModelFileError, match="not a pboost model"):
        load(path)


def test_repacked_members_still_load(path, members):
    zip_up(path, dict(reversed(members.items())))
    assert_same(tree(), load(path))


@pytest.mark.parametrize("name", [*COLUMNS, "classes", "certificate", "cost"])
def test_changed_column_is_noticed(path, members, name):
    content = members[f"{name}.npy"]
    zip_up(path, {**members, f"{name}.npy": content[:-1] + bytes([content[-1] ^ 1])})
    with pytest.raises(ModelFileError, match=f"column '{name}' was changed"):
        load(path)


@pytest.mark.parametrize("name", [*COLUMNS, "classes", "certificate", "cost"])
def test_missing_column_is_named(path, members, name):
    zip_up(path, {key: value for key, value in members.items() if key != f"{name}.npy"})
    with pytest.raises(ModelFileError, match=f"'{name}.npy' is missing"):
        load(path)
    columns = header_of(members)["columns"]
    columns.pop(name)
    zip_up(path, forge(members, columns=columns))
    with pytest.raises(ModelFileError, match=f"'{name}.npy' is not listed"):
        load(path)
    members.pop(f"{name}.npy")
    zip_up(path, forge(members, columns=columns))
    with pytest.raises(ModelFileError, match=f"column '{name}' is missing"):
        load(path)


def test_swapped_columns_are_noticed(path, members):
    a, b = "certificate.npy", "cost.npy"
    zip_up(path, {**members, a: members[b], b: members[a]})
    with pytest.raises(ModelFileError, match="was changed"):
        load(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("settings", {}),
        ("n_features", 5),
        ("n_features", 4.0),
        ("feature_names", ["d", "c", "b", "a"]),
        ("bias", 1e-300),
        ("stop_reason", "because"),
        ("pboost", "99.0"),
        ("kind", "tree"),
        ("columns", {}),
        ("digest", "0" * 64),
    ],
)
def test_changed_header_is_noticed(path, members, field, value):
    zip_up(path, forge(members, sealed=False, **{field: value}))
    with pytest.raises(ModelFileError, match=r"header: was changed .*digest"):
        load(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("settings", [1]),
        ("n_features", "4"),
        ("n_features", True),
        ("n_features", 4.0),
        ("feature_names", "abcd"),
        ("feature_names", [1, 2, 3, 4]),
        ("bias", "0"),
        ("bias", 0),
        ("stop_reason", 1),
        ("kind", "cloud"),
        ("version", "1.0"),
        ("version", [1]),
        ("version", [True, 0]),
        ("columns", [1]),
        ("columns", {"feature": 1}),
    ],
)
def test_header_field_of_a_wrong_type_is_named(path, members, field, value):
    zip_up(path, forge(members, **{field: value}))
    with pytest.raises(ModelFileError, match=f"header: .*{field}"):
        load(path)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"3", b"\xff\xfe", b"[" * 100_000, b'{"a": 1' + b"0" * 9999 + b"}"],
    ids=["empty", "open", "list", "number", "utf", "deep", "long"],
)
def test_header_that_is_no_json_object(path, members, text):
    zip_up(path, {**members, "header.npy": npy(np.frombuffer(text, np.uint8))})
    with pytest.raises(ModelFileError, match="header: "):
        load(path)
    zip_up(path, {**members, "header.npy": text})
    with pytest.raises(ModelFileError, match=r"header\.npy"):
        load(path)


@pytest.mark.parametrize("version", [[1, 0], [1, 2], [2, 3]])
def test_another_version_is_refused_and_names_the_writer(path, members, version):
    zip_up(path, forge(members, version=version, pboost="7.1.0", sealed=False))
    message = re.escape(f"expected format version [1, 1], got {version}, written by pboost ")
    with pytest.raises(ModelFileError, match=message + r"'7\.1\.0'; fit the model again"):
        load(path)


def test_columns_that_are_unknown(path, members):
    columns = header_of(members)["columns"]
    entry = {"dtype": "<i8", "shape": [3], "sha256": "?"}
    more = {**members, "extra.npy": npy(np.arange(3))}
    zip_up(path, forge(more, columns={**columns, "extra": entry}))
    with pytest.raises(ModelFileError, match="column 'extra' is unknown"):
        load(path)
    zip_up(path, more)
    with pytest.raises(ModelFileError, match=r"'extra\.npy' is not listed"):
        load(path)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("feature", np.zeros(3)),
        ("feature", np.zeros(3, np.int64)),
        ("threshold", np.zeros(3, ">f8")),
        ("vote", np.zeros((3, 2), np.float32)),
        ("classes", np.array([b"a", b"b"])),
        ("classes", np.array([0, 1], "c16")),
        ("cost", np.zeros(4, [("x", "f8")])),
    ],
)
def test_column_of_an_unexpected_dtype_is_named(path, members, name, array):
    zip_up(path, forge_column(members, name, array))
    with pytest.raises(ModelFileError, match=f"column '{name}': unexpected dtype"):
        load(path)


@pytest.mark.parametrize("name", ["feature", "classes", "header"])
def test_pickled_column_is_never_unpickled(path, members, name, tmp_path):
    class Trap:
        def __reduce__(self):
            return open, (str(tmp_path / "sprung"), "w")

    array = np.array([Trap(), Trap()], object)
    if name == "header":
        zip_up(path, {**members, "header.npy": npy(array, allow_pickle=True)})
    else:
        zip_up(path, forge_column(members, name, array, allow_pickle=True))
    with pytest.raises(ModelFileError, match=f"'{name}.npy': expected numbers or strings"):
        load(path)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("feature", [0, 1, 4], r"feature: expected values in \[0, 4\)"),
        ("feature", [0, -1, 2], "feature"),
        ("feature", [0, 1], "threshold"),
        ("next", [[1, 2], [0, -1], [-1, -1]], "next: expected a later node"),
        ("next", [[1, 2], [3, -1], [-1, -1]], "next: expected a later node"),
        ("next", [[1, -1], [-1, -1], [-1, -1]], "next: no exit leads to node 2"),
        ("vote", [[0, 0], [0, np.nan], [0, 0]], "vote: expected finite"),
        ("classes", [1, 0], "classes: expected two sorted"),
        ("classes", [0, 1, 2], "classes: expected shape"),
        ("certificate", [1, 1, 1], "certificate: expected shape"),
        ("cost", [0, 1, 2, -1], "cost: expected finite"),
    ],
)
def test_model_that_fails_validation(path, members, name, array, message):
    array = np.asarray(array, dtype=np.load(io.BytesIO(members[f"{name}.npy"])).dtype)
    zip_up(path, forge_column(members, name, array))
    with pytest.raises(ModelFileError, match=rf"not a valid model: .*{message}"):
        load(path)


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([], "numbers of nodes that end with 3"),
        ([1, 2], "numbers of nodes that end with 3"),
        ([0, 3], "numbers of nodes"),
        ([1, 4], "end with 3"),
        ([2, 1, 3], "increasing"),
        ([1, 3, 3], "increasing"),
        ([[1, 3]], "numbers of nodes"),
    ],
)
def test_stages_that_fail_validation(path, members, stages, message):
    zip_up(path, forge_column(members, "stages", np.array(stages, dtype=np.int32)))
    with pytest.raises(ModelFileError, match=rf"not a valid model: record\.stages: .*{message}"):
        load(path)
    zip_up(path, forge_column(members, "stages", np.array([2, 3], dtype=np.int32)))
    assert load(path).record.stages.tolist() == [2, 3]


def test_member_that_claims_another_size_is_refused(path, members):
    for shape in (b"(9,)", b"(2,)"):
        content = members["feature.npy"].replace(b"(3,)", shape)
        entry = {
            **header_of(members)["columns"]["feature"],
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        columns = {**header_of(members)["columns"], "feature": entry}
        zip_up(path, forge({**members, "feature.npy": content}, columns=columns))
        with pytest.raises(ModelFileError, match=r"'feature\.npy': shape .* needs"):
            load(path)


def test_compressed_member_is_refused(path, members):
    zip_up(path, {**members, "bomb.npy": npy(np.zeros(10**6))}, zipfile.ZIP_DEFLATED)
    with pytest.raises(ModelFileError, match="expected an uncompressed member"):
        load(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_member_that_occurs_twice_is_refused(path, members):
    zip_up(path, members)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("feature.npy", members["feature.npy"])
    with pytest.raises(ModelFileError, match=r"'feature\.npy' occurs twice"):
        load(path)


def test_failing_disk_is_not_called_a_damaged_file(path, members, monkeypatch):
    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(zipfile.ZipFile, "read", fail)
    with pytest.raises(OSError, match="Input/output error") as caught:
        load(path)
    assert not isinstance(caught.value, ModelFileError)
