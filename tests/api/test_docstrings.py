"""Documentation: its examples run. What docstrings must say is a rule of tests/lint.py."""

from __future__ import annotations

import doctest
import importlib
import importlib.machinery
import pkgutil
import re
import shutil
from pathlib import Path

import pytest

import pboost

DOCS = Path(__file__).parents[2] / "docs"
#: Folders of docs that Sphinx makes.
MADE = {"generated", "_build", "gallery"}
COMPILED = tuple(importlib.machinery.EXTENSION_SUFFIXES)


def module_names():
    """Return the modules of the package, without the one that Cython adds."""
    names = [info.name for info in pkgutil.walk_packages(pboost.__path__, "pboost.")]
    return [name for name in names if not name.endswith("._cyutility")]


def imported(name):
    """Return a module; those of the estimators need scikit-learn."""
    if name.startswith("pboost.sklearn"):
        pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
    return importlib.import_module(name)


#: Packages that examples of pages import, and the module that shows whether each is installed.
NEEDED = {
    "pandas": "pandas",
    "sklearn": "sklearn.base",
    "scipy": "scipy",
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "catboost": "catboost",
    "pyarrow": "pyarrow",
}


def pages():
    return sorted(p for p in DOCS.rglob("*.rst") if not MADE & set(p.relative_to(DOCS).parts))


@pytest.mark.full_for(
    "pboost.budget.select_model",
    "pboost.inspection.plots",
    "pboost.sklearn.costs",
)
@pytest.mark.parametrize("name", ["pboost", *module_names()])
def test_examples_of_module(name):
    module = imported(name)
    if module.__file__.endswith(COMPILED) and ">>>" not in (module.__doc__ or ""):
        pytest.skip("compiled, without examples")
    result = doctest.testmod(module)
    assert result.failed == 0


def test_examples_are_found():
    """An empty run would pass, too."""
    finder = doctest.DocTestFinder()
    examples = [
        t for t in finder.find(importlib.import_module("pboost.boosting.adaboost")) if t.examples
    ]
    assert [t.name for t in examples] == ["pboost.boosting.adaboost.fit_adaboost"]


@pytest.mark.full_for(
    "theory/errata.rst",
    "how_to/model_within_a_budget.rst",
    "how_to/exporting.rst",
    "how_to/tuning.rst",
)
@pytest.mark.parametrize("page", pages(), ids=lambda p: p.relative_to(DOCS).as_posix())
def test_examples_of_page(page):
    text = page.read_text(encoding="utf-8")
    for package, module in NEEDED.items():
        if re.search(rf"^>>> (import|from) {package}\b", text, flags=re.MULTILINE):
            pytest.importorskip(module)
    if "to_parquet" in text or "read_parquet" in text:
        pytest.importorskip("pyarrow")
    if 'subprocess.run(["cc"' in text and shutil.which("cc") is None:
        pytest.skip("no C compiler called cc")
    if ">>> ax = " in text:
        pytest.importorskip("matplotlib")
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.failed == 0


def test_the_longest_docstring_can_be_read():
    """Gradient boosting has the most options: each fact should stand in one place."""
    text = re.sub(r"(?m)^\s*(>>>|\.\.\. ).*$", "", pboost.fit_gradient_boosting.__doc__)
    assert 1000 < len(text.split()) <= 1900


def test_pages_are_there():
    if not DOCS.is_dir():
        pytest.skip("no docs/ beside tests/: the examples of the documentation were not run")
    names = {p.relative_to(DOCS).as_posix() for p in pages()}
    assert {
        "index.rst",
        "getting_started/quickstart.rst",
        "theory/errata.rst",
        "api/index.rst",
    } <= names
