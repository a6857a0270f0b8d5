"""What a report of a defect begins with, and kernels that serve every version of CPython."""

from __future__ import annotations

import importlib.machinery
import re
import sysconfig
import tomllib
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import pboost as pb
from pboost import _version


def test_versions_are_those_installed(capsys, monkeypatch):
    monkeypatch.setattr(_version, "PACKAGES", ("numpy", "no-such-package"))
    assert pb.show_versions() is None
    text = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    assert text["pboost"] == pb.__version__ == metadata.version("pboosting")
    assert text["numpy"] == np.__version__
    assert text["no-such-package"] == "not installed"


def test_the_version_is_stated_alike():
    root = Path(__file__).parents[2]
    for name, pattern in (
        ("CITATION.cff", r"^version: (.*)$"),
        ("recipe/recipe.yaml", r"^  version: (\d.*)$"),
    ):
        path = root / name
        if not path.exists():
            pytest.skip(f"no {name} beside tests/")
        assert re.search(pattern, path.read_text(), re.M)[1] == pb.__version__


def test_the_oldest_versions_are_the_floors():
    root = Path(__file__).parents[2]
    if not (root / "pyproject.toml").exists():
        pytest.skip("no pyproject.toml beside tests/")
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    pins = (root / "tests" / "oldest.txt").read_text("utf-8")
    oldest = dict(re.findall(r"^([\w-]+)==(.*)$", pins, re.M))
    tested = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    floors = dict(re.match(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", of).groups() for of in tested)
    assert set(floors) == set(oldest)
    for name, floor in floors.items():
        assert f"{oldest[name]}.".startswith(f"{floor}."), name
    every = [of for extra in project["optional-dependencies"].values() for of in extra]
    for of in every:
        actual = re.match(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", of)
        if actual and actual[1] in floors:
            assert actual[2] == floors[actual[1]], of


def test_kernels_are_of_the_limited_api():
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("free-threaded interpreters have no limited API")
    folder = Path(pb.__file__).parent / "_core"
    kernels = [
        path
        for path in folder.iterdir()
        if path.name.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))
    ]
    assert len(kernels) > 10
    tagged = [path.name for path in kernels if sysconfig.get_config_var("SOABI") in path.name]
    assert tagged == []
