"""How the package is installed: what a clone does that was not compiled, extras, and hints."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
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


@pytest.mark.parametrize(
    "code",
    [
        "from pboost import fit_cart",
        "import pboost; pboost.fit_cart",
        "import pboost.models.graph",
        "import pboost._core.voting",
    ],
)
def test_source_that_is_not_compiled_says_what_to_do(tmp_path, code):
    unbuilt = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "pboost", ignore=unbuilt)
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: pboost: expected a compiled package, got the source code; "
        f"run pip install -e . in {tmp_path}, "
        "or start Python in another directory"
    )


def test_an_editable_install_is_a_path(project):
    # A finder is asked after the folders of sys.path, and a clone's own folder may be in one.
    assert project["tool"]["distutils"]["editable_wheel"] == {"mode": "compat"}


def test_extras_are_made_of_extras(project):
    name = project["project"]["name"]
    extras = project["project"]["optional-dependencies"]
    nested = {
        extra: re.findall(rf"{name}\[([\w,]+)\]", " ".join(of)) for extra, of in extras.items()
    }
    parts = {extra: set(",".join(of).split(",")) - {""} for extra, of in nested.items()}
    assert set().union(*parts.values()) <= set(extras)
    assert parts["docs"] >= {"cli", "frames", "plot", "sklearn"}  # what autodoc imports
    assert not re.search(r"\bpboost\[", str(extras))  # another project's name on the index


def test_install_hints_name_the_distribution_and_its_extras(project):
    files = [*PACKAGE.rglob("*.py"), *(PROJECT.parent / "docs").rglob("*.rst")]
    files += [PROJECT.parent / "README.md", PROJECT.parent / "docs" / "lite.py"]
    hints = [
        hint
        for path in files
        if path.exists()
        for hint in re.findall(r"pip install (\S+)", path.read_text("utf-8"))
        if hint.startswith(("pboost", '"pboost'))
    ]
    names = [re.match(r'"pboosting\[(\w+|\{extra\})\]"', hint) for hint in hints]
    assert len(hints) > 5
    assert all(names), hints
    extras = {name[1] for name in names} - {"{extra}"}
    assert extras <= set(project["project"]["optional-dependencies"])


def test_no_command_installs_the_other_pboost(project):
    """On the package index `pboost` is another project: only asv may remove that name."""
    root = PROJECT.parent
    folders = (".ci", ".github", "asv_bench", "docs", "examples", "pboost", "recipe", "tests")
    paths = [*root.iterdir(), *(path for name in folders for path in (root / name).rglob("*"))]
    kinds = (".json", ".md", ".py", ".rst", ".toml", ".yaml", ".yml", "")
    actual = {
        path.relative_to(root).as_posix()
        for path in paths
        if path.is_file()
        and path.suffix in kinds
        and re.search(r"pip (un)?install.*\bpboost\b(?!ing)", path.read_text("utf-8", "replace"))
    }
    assert actual <= {"asv_bench/asv.conf.json"}


@pytest.mark.full
def test_the_distribution_is_installed_under_its_name(project):
    assert project["project"]["name"] == "pboosting"
    assert set(metadata.packages_distributions()["pboost"]) == {"pboosting"}
