"""Model files: what is saved is loaded, and where it is saved."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import threading
from pathlib import Path

import numpy as np
import pytest
from model_files import (
    POSIX,
    assert_same,
    tree,
)

from pboost.models.files import load, save


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


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
    native = model.classes.dtype.newbyteorder("=")
    assert_same(dataclasses.replace(model, classes=model.classes.astype(native)), loaded)


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
        np.testing.assert_array_equal(file["classes"], ["no", "yes"])
        assert json.loads(file["header"].tobytes())["format"] == "pboost-model"


def test_numpy_scalars_and_tuples_in_settings(path):
    settings = {"rounds": np.int64(3), "rate": np.float32(0.5), "shape": (2, 2), "on": np.True_}
    save(tree(settings=settings), path)
    assert load(path).settings == {"rounds": 3, "rate": 0.5, "shape": [2, 2], "on": True}


@pytest.mark.parametrize("value", [object(), np.nan, np.inf, {1: 2}, 1j, np.arange(3), b"x"])
def test_settings_that_cannot_be_stored_are_named(path, value):
    with pytest.raises(TypeError, match=r"settings\['shape'\]\[0\]"):
        save(tree(settings={"shape": [value]}), path)
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
    with pytest.raises(TypeError, match=r"model\.classes: .* got dtype"):
        save(tree(labels), path)
    assert not os.listdir(path.parent)


def test_save_refuses_what_is_not_a_model(path):
    with pytest.raises(TypeError, match=r"model: expected a model, .* got 'model'"):
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
    actual = []
    reader = threading.Thread(target=lambda: actual.append(pipe.read_bytes()), daemon=True)
    reader.start()
    save(tree(), pipe)
    reader.join(20)
    save(tree(), tmp_path / "file")
    assert actual == [(tmp_path / "file").read_bytes()]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
