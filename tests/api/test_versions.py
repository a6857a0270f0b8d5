"""What a report of a defect begins with, and kernels that serve every version of CPython."""

from __future__ import annotations

import importlib.machinery
import re
import sysconfig
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import pboost as pb
from pboost import _version


def test_versions_are_those_installed(capsys, monkeypatch):
    monkeypatch.setattr(_version, "PACKAGES", ("numpy", "no-such-package"))
    assert pb.show_versions() is None
    said = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    assert said["pboost"] == pb.__version__ == metadata.version("pboost")
    assert said["numpy"] == np.__version__
    assert said["no-such-package"] == "not installed"


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


def test_kernels_are_of_the_limited_api():
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("free-threaded interpreters have no limited API")
    folder = Path(pb.__file__).parent / "_core"
    kernels = [
        path for path in folder.iterdir()
        if path.name.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))
    ]  # fmt: skip
    assert len(kernels) > 30
    tagged = [path.name for path in kernels if sysconfig.get_config_var("SOABI") in path.name]
    assert tagged == []
