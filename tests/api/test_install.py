"""How the package is installed: what a clone does that was not compiled, extras, and hints."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pboost

PACKAGE = Path(pboost.__file__).parent
PROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture(scope="module")
def project():
    if not PROJECT.exists():
        pytest.skip("no pyproject.toml beside tests/")
    return tomllib.loads(PROJECT.read_text("utf-8"))


@pytest.mark.parametrize("module", ["pboost", "pboost.models.graph", "pboost._core.votes"])
def test_source_that_is_not_compiled_says_what_to_do(tmp_path, module):
    unbuilt = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "pboost", ignore=unbuilt)
    run = [sys.executable, "-c", f"import {module}"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: this is pboost's source, not compiled: pip install -e . in {tmp_path}, "
        "or start Python in another directory"
    )


def test_an_editable_install_is_a_path(project):
    # A finder is asked after the folders of sys.path, and a clone's own folder may be in one.
    assert project["tool"]["distutils"]["editable_wheel"] == {"mode": "compat"}


def test_extras_are_made_of_extras(project):
    extras = project["project"]["optional-dependencies"]
    named = {name: [r for r in given if r.startswith("pboost[")] for name, given in extras.items()}
    parts = {name: set(re.findall(r"\w+", " ".join(given))) for name, given in named.items()}
    assert set().union(*parts.values()) - {"pboost"} <= set(extras)
    assert parts["docs"] >= {"cli", "frames", "plot", "sklearn"}  # what autodoc imports


def test_hints_name_extras_in_quotes_that_every_shell_knows(project):
    hints = [
        hint
        for path in PACKAGE.rglob("*.py")
        for hint in re.findall(r"pip install ([^-].{,24})", path.read_text("utf-8"))
    ]
    names = [re.match(r'"pboost\[(\w+|\{extra\})\]"', hint) for hint in hints]
    assert len(hints) > 5
    assert all(names), hints
    extras = {name[1] for name in names} - {"{extra}"}
    assert extras <= set(project["project"]["optional-dependencies"])
