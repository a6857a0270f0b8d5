"""Model files: what is saved is loaded, and nothing else is."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pboost import io as model_io
from pboost.errors import ModelFileError
from pboost.graph import COLUMNS, DecisionGraph, TrainingRecord
from pboost.io import load, save

POSIX = pytest.mark.skipif(os.name != "posix", reason="POSIX signals, links and permissions")


def tree(labels=(0, 1), *, n_nodes=3, **changes):
    """A small graph: node 0 leads to 1 and 2, and every further node is an only child."""
    rng = np.random.default_rng(n_nodes)
    follow = np.full((n_nodes, 2), -1)
    if n_nodes >= 2:
        follow[0, 0] = 1
    if n_nodes >= 3:
        follow[0, 1] = 2
        follow[2:-1, 1] = np.arange(3, n_nodes)
    fields = {
        "feature": rng.integers(0, 4, n_nodes),
        "threshold": rng.normal(size=n_nodes),
        "next": follow,
        "vote": rng.normal(size=(n_nodes, 2)),
        "labels": np.asarray(labels),
        "n_features": 4,
        "feature_names": ("a", "b", "größe", "d \ud800 \x00"),
        "bias": 0.0,
        "settings": {"builder": "fit_boosted_tree", "nodes": n_nodes, "max_depth": None,
                     "weak": {"criterion": "gini", "min_weight": 0.1}},
        "record": TrainingRecord(
            np.linspace(1, 0.1, n_nodes + 1), np.linspace(0, 2, n_nodes + 1), "3 nodes were grown"
        ),
    }
    return DecisionGraph(**{**fields, **changes})


def assert_same(a, b):
    for name in (*COLUMNS, "labels"):
        x, y = getattr(a, name), getattr(b, name)
        assert x.dtype == y.dtype, name
        assert x.shape == y.shape, name
        assert x.tobytes() == y.tobytes(), name
        assert not y.flags.writeable
    for name in ("certificate", "cost"):
        np.testing.assert_array_equal(getattr(a.record, name), getattr(b.record, name))
    for name in ("n_features", "feature_names", "bias", "settings"):
        assert getattr(a, name) == getattr(b, name), name
    assert a.record.stop_reason == b.record.stop_reason


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def zip_up(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def npy(array, **options):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), **options)
    return buffer.getvalue()


def header_of(members):
    return json.loads(np.load(io.BytesIO(members["header.npy"])).tobytes())


def forge(members, *, sealed=True, **fields):
    """Members with other header fields; `sealed` with a digest that fits them."""
    header = {**header_of(members), **fields}
    header = {key: value for key, value in header.items() if value is not None}
    if sealed:
        header["digest"] = model_io._digest(header)
    return {**members, "header.npy": npy(np.frombuffer(json.dumps(header).encode(), np.uint8))}


def forge_column(members, name, array, **options):
    """Members with another column, its digests made to fit."""
    content = npy(array, **options)
    entry = {
        "dtype": np.asarray(array).dtype.str,
        "shape": list(np.shape(array)),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    columns = {**header_of(members)["columns"], name: entry}
    return forge({**members, f"{name}.npy": content}, columns=columns)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


@pytest.fixture
def members(path):
    save(tree(), path)
    return members_of(path)


# Round trip


@pytest.mark.parametrize(
    "labels",
    [
        (0, 1),
        (-1, 1),
        np.array([3, 250], np.uint8),
        np.array([-(2**63), 2**63 - 1]),
        np.array([0, 2**64 - 1], np.uint64),
        (0.1, 0.2),
        (-np.inf, np.inf),
        np.array([0.1, 0.2], np.float32),
        np.array([-1, 1], ">i4"),
        (False, True),
        ("healthy", "sick"),
        ("", "größer als Ø 🌲"),
    ],
    ids=str,
)
def test_round_trip_keeps_every_bit(path, labels):
    model = tree(labels)
    save(model, path)
    loaded = load(path)
    native = model.labels.dtype.newbyteorder("=")
    assert_same(dataclasses.replace(model, labels=model.labels.astype(native)), loaded)


@pytest.mark.parametrize("n_nodes", [0, 1, 2, 1000])
def test_round_trip_of_all_sizes(path, n_nodes):
    model = tree(n_nodes=n_nodes, bias=-0.1 if n_nodes == 0 else 0.0, feature_names=None)
    save(model, path)
    assert_same(model, load(path))


@pytest.mark.parametrize("value", [-0.0, 5e-324, 0.1, np.nextafter(1, 2), 1.79e308])
def test_round_trip_of_extreme_numbers(path, value):
    model = tree(threshold=[value, -value, 0.0], bias=value)
    save(model, path)
    loaded = load(path)
    assert_same(model, loaded)
    assert np.signbit(loaded.bias) == np.signbit(value)


def test_same_model_gives_the_same_bytes(tmp_path):
    model = tree(("no", "yes"))
    settings = dict(reversed(model.settings.items()))
    save(model, tmp_path / "a")
    save(dataclasses.replace(model, settings=settings), tmp_path / "b")
    save(load(tmp_path / "a"), tmp_path / "c")
    a, b, c = (tmp_path.joinpath(name).read_bytes() for name in "abc")
    assert a == b == c


def test_other_model_gives_other_bytes(tmp_path):
    save(tree(), tmp_path / "a")
    save(tree(bias=5e-324), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() != (tmp_path / "b").read_bytes()


def test_numpy_reads_the_columns_without_pickle(path):
    model = tree(("no", "yes"))
    save(model, path)
    with np.load(path, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["threshold"], model.threshold)
        np.testing.assert_array_equal(file["labels"], ["no", "yes"])
        assert json.loads(file["header"].tobytes())["format"] == "pboost-model"


def test_numpy_scalars_and_tuples_in_settings(path):
    settings = {"rounds": np.int64(3), "rate": np.float32(0.5), "shape": (2, 2), "on": np.True_}
    save(tree(settings=settings), path)
    assert load(path).settings == {"rounds": 3, "rate": 0.5, "shape": [2, 2], "on": True}


@pytest.mark.parametrize("value", [object(), np.nan, np.inf, {1: 2}, 1j, np.arange(3), b"x"])
def test_settings_that_cannot_be_stored_are_named(path, value):
    with pytest.raises(TypeError, match=r"settings\['weak'\]\[0\]"):
        save(tree(settings={"weak": [value]}), path)
    assert not os.listdir(path.parent)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([b"a", b"b"]),
        np.array([0, 1], "m8[s]"),
        np.array([0, 1], np.longdouble),
        np.array(["2020-01-01", "2021-01-01"], "M8[D]"),
    ],
    ids=str,
)
def test_labels_that_cannot_be_stored(path, labels):
    if labels.dtype == np.float64:
        pytest.skip("long double is float64 here")
    with pytest.raises(TypeError, match=r"model\.labels: .* got dtype"):
        save(tree(labels), path)
    assert not os.listdir(path.parent)


def test_save_refuses_what_is_not_a_model(path):
    with pytest.raises(TypeError, match=r"model: expected a model .* got 'model'"):
        save("model", path)


# Paths


@pytest.mark.parametrize("name", ["model", "model.npz", "model.bin", ".hidden", "größe 1"])
@pytest.mark.parametrize("kind", [str, Path])
def test_path_is_used_as_it_stands(tmp_path, name, kind):
    save(tree(), kind(tmp_path / name))
    assert os.listdir(tmp_path) == [name]
    assert_same(tree(), load(kind(tmp_path / name)))


def test_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(tree(), "model")
    assert_same(tree(), load("model"))


@pytest.mark.parametrize("action", [load, lambda path: save(tree(), path)], ids=["load", "save"])
def test_operating_system_errors_pass_through(tmp_path, action):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        action(tmp_path / "nowhere" / "model.npz")
    with pytest.raises(IsADirectoryError):
        action(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        action(tmp_path / "file" / "model.npz")
    with pytest.raises(TypeError):
        action(3.5)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("name", ["missing/", ""])
def test_save_refuses_names_that_open_refuses(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((IsADirectoryError, FileNotFoundError)):
        save(tree(), name)
    assert not os.listdir(tmp_path)


@POSIX
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000])
def test_new_file_has_the_permissions_of_open(tmp_path, umask):
    old = os.umask(umask)
    try:
        save(tree(), tmp_path / "model")
        with open(tmp_path / "other", "wb"):
            pass
    finally:
        os.umask(old)
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "other").stat().st_mode


@POSIX
def test_existing_file_keeps_its_permissions(path):
    path.touch()
    path.chmod(0o640)
    save(tree(), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert_same(tree(), load(path))


@POSIX
def test_write_protected_file_is_not_replaced(path, monkeypatch):
    path.write_bytes(b"old")
    path.chmod(0o444)
    # The superuser may write to it all the same.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match=r"model\.npz"):
        save(tree(), path)
    assert path.read_bytes() == b"old"


@POSIX
def test_symbolic_link_is_followed(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "store" / "model")
    save(tree(), tmp_path / "link")
    save(tree(n_nodes=5), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert os.listdir(tmp_path / "store") == ["model"]
    assert_same(tree(n_nodes=5), load(tmp_path / "store" / "model"))


@POSIX
def test_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    save(tree(), pipe)
    reader.join(20)
    save(tree(), tmp_path / "file")
    assert found == [(tmp_path / "file").read_bytes()]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


# Damaged and foreign files


def test_truncated_at_every_length(path):
    save(tree(), path)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match=r"model\.npz: "):
            load(path)


def test_no_flipped_byte_changes_the_model(path):
    model = tree(("no", "yes"))
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
    with pytest.raises(ModelFileError, match="not a model of this package"):
        load(path)
    np.savez(path, header=np.frombuffer(b'{"format": "other"}', np.uint8))
    with pytest.raises(ModelFileError, match="not a model of this package"):
        load(path)


def test_repacked_members_still_load(path, members):
    zip_up(path, dict(reversed(members.items())))
    assert_same(tree(), load(path))


@pytest.mark.parametrize("name", [*COLUMNS, "labels", "certificate", "cost"])
def test_changed_column_is_noticed(path, members, name):
    content = members[f"{name}.npy"]
    zip_up(path, {**members, f"{name}.npy": content[:-1] + bytes([content[-1] ^ 1])})
    with pytest.raises(ModelFileError, match=f"column '{name}' was changed"):
        load(path)


@pytest.mark.parametrize("name", [*COLUMNS, "labels", "certificate", "cost"])
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
        ("version", [1, 7]),
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
        ("kind", "forest"),
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


def test_other_major_version_names_the_writer(path, members):
    zip_up(path, forge(members, version=[2, 3], pboost="7.1.0", sealed=False))
    with pytest.raises(ModelFileError, match=r"version 2\.3, written by pboost 7\.1\.0.* 1\.x"):
        load(path)


def test_columns_of_a_newer_minor_version(path, members):
    content = npy(np.arange(3))
    columns = header_of(members)["columns"]
    entry = {"dtype": "<i8", "shape": [3], "sha256": "?", "optional": True}
    more = {**members, "extra.npy": content}

    zip_up(path, forge(more, version=[1, 1], columns={**columns, "extra": entry}))
    assert_same(tree(), load(path))

    for version, change in [([1, 1], {"optional": False}), ([1, 0], {})]:
        unknown = {**columns, "extra": {**entry, **change}}
        zip_up(path, forge(more, version=version, columns=unknown))
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
        ("labels", np.array([b"a", b"b"])),
        ("labels", np.array([0, 1], "c16")),
        ("cost", np.zeros(4, [("x", "f8")])),
    ],
)
def test_column_of_an_unexpected_dtype_is_named(path, members, name, array):
    zip_up(path, forge_column(members, name, array))
    with pytest.raises(ModelFileError, match=f"column '{name}': unexpected dtype"):
        load(path)


@pytest.mark.parametrize("name", ["feature", "labels", "header"])
def test_pickled_column_is_never_unpickled(path, members, name, tmp_path):
    class Trap:
        def __reduce__(self):
            return open, (str(tmp_path / "sprung"), "w")

    array = np.array([Trap(), Trap()], object)
    if name == "header":
        zip_up(path, {**members, "header.npy": npy(array, allow_pickle=True)})
    else:
        zip_up(path, forge_column(members, name, array, allow_pickle=True))
    with pytest.raises(ModelFileError, match=f"'{name}.npy': expected plain values"):
        load(path)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("feature", [0, 1, 4], r"feature: expected values in \[0, 4\)"),
        ("feature", [0, -1, 2], "feature"),
        ("feature", [0, 1], "threshold"),
        ("next", [[1, 2], [0, -1], [-1, -1]], "next: every exit"),
        ("next", [[1, 2], [3, -1], [-1, -1]], "next: every exit"),
        ("next", [[1, -1], [-1, -1], [-1, -1]], "next: no exit leads to node 2"),
        ("vote", [[0, 0], [0, np.nan], [0, 0]], "vote: expected finite"),
        ("labels", [1, 0], "labels: expected two sorted"),
        ("labels", [0, 1, 2], "labels: expected shape"),
        ("certificate", [1, 1, 1], "certificate: expected shape"),
        ("cost", [0, 1, 2, -1], "cost: expected finite"),
    ],
)
def test_model_that_fails_validation(path, members, name, array, message):
    array = np.asarray(array, dtype=np.load(io.BytesIO(members[f"{name}.npy"])).dtype)
    zip_up(path, forge_column(members, name, array))
    with pytest.raises(ModelFileError, match=rf"not a valid model: .*{message}"):
        load(path)


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
    with pytest.raises(ModelFileError, match="expected to be uncompressed"):
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


# Interrupted and failed writing


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("exists", [True, False])
def test_failed_save_leaves_the_old_file(path, monkeypatch, function, error, exists):
    if exists:
        save(tree(), path)

    def fail(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail)
        with pytest.raises(type(error)) as caught:
            save(tree(n_nodes=7), path)
    if isinstance(error, OSError):
        assert caught.value.filename == str(path)
    assert os.listdir(path.parent) == ["model.npz"] * exists
    if exists:
        assert_same(tree(), load(path))


@POSIX
def test_full_disk_leaves_the_old_file(path):
    """A real write error: the process may write no more than 700 bytes to a file."""
    save(tree(), path)
    run_child(path, "resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))", expect=1)
    assert os.listdir(path.parent) == ["model.npz"]
    assert_same(tree(), load(path))


def test_directory_that_cannot_be_flushed(path, monkeypatch):
    fsync, calls = os.fsync, []

    def fail_for_the_directory(handle):
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(5, "Input/output error")
        fsync(handle)

    save(tree(), path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_for_the_directory)
        if os.name == "nt":
            save(tree(n_nodes=7), path)
        else:
            with pytest.raises(OSError, match="Input/output error"):
                save(tree(n_nodes=7), path)
    assert os.listdir(path.parent) == ["model.npz"]
    assert_same(tree(n_nodes=7), load(path))


CHILD = """
import os, resource, signal, sys
sys.path.insert(0, {tests!r})
from pboost.io import load, save
import dataclasses
model = load({path!r})
model = dataclasses.replace(model, bias=0.25)
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
{how}
save(model, {path!r})
"""


def run_child(path, how, *, expect):
    code = CHILD.format(tests=str(Path(__file__).parent), path=str(path), how=how)
    # From another directory, but with this process's idea of where the package is.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.returncode == expect, done.stderr
    return done


@POSIX
@pytest.mark.parametrize(
    ("how", "death"),
    [
        # The signal of the file size limit kills in the middle of a write.
        (
            "signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))\n"
            "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
            -signal.SIGXFSZ if os.name == "posix" else 0,
        ),
        ("os.fsync = die", -9),
        ("os.replace = die", -9),
    ],
    ids=["write", "fsync", "replace"],
)
def test_killed_while_writing(path, how, death):
    save(tree(), path)
    run_child(path, how, expect=death)
    assert_same(tree(), load(path))
    left = sorted(set(os.listdir(path.parent)) - {"model.npz"})
    assert len(left) == 1
    assert left[0].startswith(".pboost-")
    assert left[0].endswith(".tmp")
    if death != -9:
        with pytest.raises(ModelFileError):
            load(path.parent / left[0])
    # What was left behind neither stops the next one nor is picked up by it.
    save(tree(n_nodes=7), path)
    assert_same(tree(n_nodes=7), load(path))
    assert sorted(path.parent.glob("*.npz")) == [path]


@POSIX
def test_killed_after_renaming(path):
    save(tree(), path)
    run_child(
        path,
        "rename = os.replace\nos.replace = lambda a, b: (rename(a, b), die())",
        expect=-9,
    )
    assert os.listdir(path.parent) == ["model.npz"]
    assert_same(tree(bias=0.25), load(path))


@POSIX
def test_readers_see_one_model_or_the_other(path):
    models = {n: tree(n_nodes=n) for n in (2, 40)}
    save(models[2], path)
    stop, failures, seen = threading.Event(), [], set()

    def read():
        while not stop.is_set():
            try:
                loaded = load(path)
                assert_same(models[loaded.n_nodes], loaded)
                seen.add(loaded.n_nodes)
            except (OSError, ValueError, AssertionError) as error:
                failures.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for i in range(150):
        save(models[(2, 40)[i % 2]], path)
    stop.set()
    for reader in readers:
        reader.join(20)
    assert not failures
    assert seen == {2, 40}
