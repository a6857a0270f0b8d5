"""Documentation: its examples run, and every public name says what there is to know of it."""

from __future__ import annotations

import dataclasses
import doctest
import functools
import importlib
import importlib.machinery
import inspect
import itertools
import pkgutil
import re
from pathlib import Path

import pytest

import pboost
import pboost.dask

DOCS = Path(__file__).parents[2] / "docs"
#: Folders of docs that Sphinx makes.
MADE = {"generated", "_build", "gallery"}
COMPILED = tuple(importlib.machinery.EXTENSION_SUFFIXES)
#: Public names that are not at the top level.
SUBMODULE_NAMES = ["weak.stump", "weak.Stump", "weak.affine", "weak.Affine"]
SUBMODULE_NAMES += ["weak.oracle", "weak.Oracle", "weak.from_estimator", "weak.FromEstimator"]
SUBMODULE_NAMES += ["weak.separator", "weak.Separator", "weak.linear", "weak.Linear"]
SUBMODULE_NAMES += ["growth.step.StepRecord", "datasets.nine_circles"]
SUBMODULE_NAMES += ["growth.step.CartStep"]
OBSERVATIONS = ["exact", "flip", "half", "uniform", "adatree2", "gaussian", "sampled"]
OBSERVATIONS += ["Exact", "Flip", "Half", "Uniform", "AdaTree2", "Gaussian", "Sampled"]
SUBMODULE_NAMES += [f"observation.{name}" for name in OBSERVATIONS]
SUBMODULE_NAMES += [f"weak.{name}" for name in ("feature", "hypothesis", "Feature", "Hypothesis")]
SUBMODULE_NAMES += [f"generic.{name}" for name in pboost.generic.__all__]
SUBMODULE_NAMES += [f"shards.{name}" for name in pboost.shards.__all__]
SUBMODULE_NAMES += ["dask", *(f"dask.{name}" for name in pboost.dask.__all__)]
SUBMODULE_NAMES += [f"losses.{name}" for name in pboost.losses.__all__]
SUBMODULE_NAMES += [f"bounds.{name}" for name in pboost.bounds.__all__]
try:
    import pboost.sklearn

    SUBMODULE_NAMES += ["sklearn", *(f"sklearn.{name}" for name in pboost.sklearn.__all__)]
except ImportError:  # there is no scikit-learn
    pass
PROBLEMS = [f"datasets.{name}" for name in pboost.datasets.__all__ if name.islower()]
SUBMODULE_NAMES += [name for name in PROBLEMS if name not in SUBMODULE_NAMES]


def module_names():
    """Return the modules of the package, without the one that Cython adds."""
    names = [info.name for info in pkgutil.walk_packages(pboost.__path__, "pboost.")]
    return [name for name in names if not name.endswith("._cyutility")]


def imported(name):
    """Return a module; those of the estimators need scikit-learn."""
    if name.startswith("pboost.sklearn"):
        pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
    return importlib.import_module(name)


def pages():
    return sorted(p for p in DOCS.rglob("*.rst") if not MADE & set(p.relative_to(DOCS).parts))


def public_objects():
    names = [name for name in pboost.__all__ if name != "__version__"] + SUBMODULE_NAMES
    found = [(name, functools.reduce(getattr, name.split("."), pboost)) for name in names]
    return [pytest.param(f, id=name) for name, f in found if not inspect.ismodule(f)]


def public_functions():
    return [p for p in public_objects() if inspect.isfunction(p.values[0])]


def public_classes():
    return [p for p in public_objects() if inspect.isclass(p.values[0])]


def sections(found):
    """Return the text of each numpydoc section of an object, by its title."""
    text = inspect.getdoc(found) or ""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    return {"Summary": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def described(section):
    """Return the names that a section of parameters or attributes describes."""
    lines = re.findall(r"^\*{0,2}(\w+(?:, \w+)*) :", section, flags=re.MULTILINE)
    lines += re.findall(r"^\*\*(\w+)$", section, flags=re.MULTILINE)
    return {name for line in lines for name in line.split(", ")}


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


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.relative_to(DOCS).as_posix())
def test_examples_of_page(page):
    for package, module in (("pandas", "pandas"), ("sklearn", "sklearn.base")):
        if re.search(rf"(import|from) {package}", page.read_text(encoding="utf-8")):
            pytest.importorskip(module)
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.failed == 0


def test_pages_are_there():
    if not DOCS.is_dir():
        pytest.skip("no docs/ beside tests/: the examples of the documentation were not run")
    names = {p.relative_to(DOCS).as_posix() for p in pages()}
    assert {"index.rst", "user/guide/first.rst", "theory/errata.rst", "api/index.rst"} <= names


def test_every_public_name_is_in_the_reference():
    reference = DOCS / "api" / "index.rst"
    if not reference.exists():
        pytest.skip("no docs/ beside tests/")
    listed = set(re.findall(r"^   ([\w.]+)$", reference.read_text("utf-8"), flags=re.MULTILINE))
    assert {*pboost.__all__, *SUBMODULE_NAMES} - listed == {"__version__"}


def test_every_builder_is_among_those_to_choose_from():
    page = DOCS / "user" / "guide" / "choosing.rst"
    if not page.exists():
        pytest.skip("no docs/ beside tests/")
    builders = {name for name in pboost.__all__ if name.startswith("fit_")} - {"fit_one_hot"}
    assert builders - set(re.findall(r"~pboost\.(\w+)", page.read_text("utf-8"))) == set()


def test_builders_of_more_classes_are_listed():
    """The page of classes and the error of the others name the same builders."""
    page = DOCS / "user" / "guide" / "classes.rst"
    if not page.exists():
        pytest.skip("no docs/ beside tests/")
    row = re.search(r"^more classes .*?(?=^numbers)", page.read_text("utf-8"), re.M | re.S)[0]
    listed = set(re.findall(r"~pboost\.(\w+)", row))
    with pytest.raises(pboost.ManyClassesError) as refused:
        pboost.fit_probitboost([[0.0], [1.0], [2.0]], ["a", "b", "c"])
    named = set(re.findall(r"fit_\w+", str(refused.value).partition("; ")[2]))
    by_option = {"fit_matryoshka", "fit_bagging", "fit_one_vs_rest"}
    assert listed - by_option == named - by_option
    assert len(named) > 9


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_lines_under_titles_are_as_long_as_they(page):
    """What is not may be the mark of a merge, in the midst of a text."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, (above, line) in enumerate(itertools.pairwise(lines), start=2):
        if re.fullmatch(r"([-=~^]){4,}", line) and above.strip():
            assert len(line) >= len(above), f"{page.name}, line {number}"


@pytest.mark.parametrize("name", ["pboost", *module_names()])
def test_module_has_docstring(name):
    assert imported(name).__doc__


@pytest.mark.parametrize("found", public_objects())
def test_summary_is_one_line(found):
    summary = sections(found)["Summary"].strip().split("\n\n")[0]
    assert summary
    assert "\n" not in summary
    assert summary.endswith(".")


@pytest.mark.parametrize("function", public_functions())
def test_function_describes_its_parameters(function):
    parameters = set(inspect.signature(function).parameters)
    assert described(sections(function).get("Parameters", "")) == parameters


@pytest.mark.parametrize("function", public_functions())
def test_function_describes_what_it_returns(function):
    returns = str(inspect.signature(function).return_annotation)
    found = {"Returns", "Yields"} & set(sections(function))
    expected = "Yields" if "Iterator" in returns else "Returns"
    assert found == (set() if returns == "None" else {expected})


@pytest.mark.parametrize("function", public_functions())
def test_function_has_example(function):
    parts = sections(function)
    # A pair of functions may share the example of one.
    assert ">>>" in parts.get("Examples", "") or "with an example" in parts.get("See Also", "")


@pytest.mark.parametrize("cls", public_classes())
def test_class_describes_its_attributes(cls):
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    choices = pboost.weak.Weak | pboost.observation.Observation | pboost.losses.Loss
    if issubclass(cls, BaseException | choices):
        pytest.skip("documented where it is raised, at the function that makes it, or at its base")
    expected = {field.name for field in fields if field.init}
    assert expected or not fields
    assert described(sections(cls).get("Attributes", ""))
    assert expected <= described(sections(cls).get("Attributes", ""))


@pytest.mark.parametrize("cls", public_classes())
def test_public_methods_have_docstrings(cls):
    own = [v for k, v in vars(cls).items() if not k.startswith("_")]
    members = [v for v in own if inspect.isfunction(v) or isinstance(v, property)]
    assert all(inspect.getdoc(member) for member in members)
