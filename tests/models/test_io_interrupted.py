"""Model files whose writing fails or is killed, and reading while writing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from model_files import (
    POSIX,
    assert_same,
    tree,
)

from pboost.models import ModelFileError
from pboost.models.files import load, save


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


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


@pytest.mark.full
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
from pboost.models.files import load, save
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


@pytest.mark.full
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


@pytest.mark.full
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


@pytest.mark.full
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
