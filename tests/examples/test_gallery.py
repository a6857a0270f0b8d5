"""The gallery: what can be known of its scripts without running them, as the documentation does."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from pathlib import Path

import pytest

import pboost as pb

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))
#: Packages by what is imported, where the names differ.
BRINGS = {"sklearn": "scikit-learn"}


@pytest.fixture(params=SCRIPTS, ids=[path.stem for path in SCRIPTS])
def script(request):
    text = request.param.read_text("utf-8")
    return text, ast.parse(text)


def dotted(node):
    """Return "a.b.c" of an expression of names, else ""."""
    if isinstance(node, ast.Attribute):
        first = dotted(node.value)
        return f"{first}.{node.attr}" if first else ""
    return node.id if isinstance(node, ast.Name) else ""


def found(name):
    """Return the object that a script calls pb.something."""
    value = pb
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def wrong_calls(tree):
    """Return what is no name of the package, and keywords that its functions do not have."""
    wrong = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and dotted(node).startswith("pb."):
            try:
                found(dotted(node))
            except AttributeError:
                wrong.append(dotted(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func).startswith("pb.") and not wrong:
            options = inspect.signature(found(dotted(node.func))).parameters
            if not any(option.kind is option.VAR_KEYWORD for option in options.values()):
                arguments = {keyword.arg for keyword in node.keywords} - {None}
                wrong += [f"{dotted(node.func)}({name}=)" for name in arguments - options.keys()]
    return wrong


def test_there_is_a_gallery():
    if not (ROOT / "examples").exists():
        pytest.skip("no examples/ beside tests/")
    assert len(SCRIPTS) >= 15
    listed = re.search(
        r"^GALLERY = (\[.*?\])", (ROOT / "docs/conf.py").read_text("utf-8"), re.M | re.S
    )
    assert sorted(ast.literal_eval(listed[1])) == [path.name for path in SCRIPTS]


def test_a_title_a_question_a_picture(script):
    text, tree = script
    title, line, _, question, *_ = ast.get_docstring(tree, clean=False).splitlines()
    assert line == "=" * len(title)
    assert re.fullmatch(r"\*[A-Z].*\?\*", question)
    assert text.endswith("plt.show()\n")
    assert len(text.splitlines()) < 130
    assert "rng" in text  # the same page each time
    assert re.search(r"fetch_|https?:|urlopen|n_jobs", text) is None


def test_it_calls_what_there_is(script):
    assert wrong_calls(script[1]) == []


def test_calls_of_what_there_is_not_are_found():
    call = ast.parse("pb.fit_adaboost(X, y, n_rounds=3, n_estimators=4)\npb.predict(m, **more)")
    assert wrong_calls(call) == ["pb.fit_adaboost(n_rounds=)"]
    assert wrong_calls(ast.parse("pb.observation.gauss(2)")) == ["pb.observation.gauss"]


def test_the_extra_of_the_documentation_brings_what_it_imports(script):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed, brought = ["docs"], {"pboost", *project["dependencies"]}
    for extra in needed:
        for requirement in extras[extra]:
            inner = re.match(r"pboosting\[(.*)\]", requirement)
            needed += inner[1].split(",") if inner else []
            brought.add(requirement)
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in brought}
    for node in ast.walk(script[1]):
        modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module] if isinstance(node, ast.ImportFrom) else []
        for module in {module.split(".")[0] for module in modules} - sys.stdlib_module_names:
            assert BRINGS.get(module, module) in names
