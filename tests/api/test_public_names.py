"""What users may write stays what it is: a name or a parameter changes only on purpose."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pboost as pb

spec = importlib.util.spec_from_file_location(
    "public_names", Path(__file__).with_name("public_names.py")
)
names = importlib.util.module_from_spec(spec)
spec.loader.exec_module(names)


CHANGE = (
    "the public interface changed: if this is on purpose, run `python tests/api/public_names.py "
    "--write` and add a line to CHANGELOG.md"
)


def recorded():
    """Return the interface on record; without estimators where scikit-learn is not installed."""
    spaces = tuple(f"{space}." for space in names.SPACES)
    found = json.loads(names.RECORD.read_text())
    return {name: value for name, value in found.items() if name.rpartition(".")[0] + "." in spaces}


def test_names_and_signatures_are_those_on_record():
    actual, record = names.public_names(), recorded()
    assert sorted(actual) == sorted(record), CHANGE
    assert {n: _call(v) for n, v in actual.items() if _call(v) != _call(record[n])} == {}, CHANGE
    assert len(actual) > 100


def _call(described):
    """Return what is recorded of a name but for the attributes of its objects."""
    if isinstance(described, dict):
        return {key: value for key, value in described.items() if key != "attributes"}
    return described


def test_values_of_strings_are_on_record():
    """A value is a name that users write, too."""
    record = recorded()
    assert record["pb.fit_cart"]["values"]["search"] == ["auto", "binned", "exact"]
    assert sum(bool(v.get("values")) for v in record.values() if isinstance(v, dict)) > 40


def test_names_that_changed_since_the_release_are_in_the_changelog():
    """Each must occur in the section Unreleased of CHANGELOG.md."""
    changelog = Path(__file__).parents[2] / "CHANGELOG.md"
    if not changelog.exists():
        pytest.skip("no CHANGELOG.md beside tests/")
    text = changelog.read_text("utf-8").partition("## Unreleased")[2].partition("\n## ")[0]
    released = json.loads(names.RELEASED.read_text())
    now = names.words(json.loads(names.RECORD.read_text()))
    missing = names.changed(released, now) - {*re.findall(r"\w+", text)}
    assert sorted(missing) == [], "add a line to CHANGELOG.md"


def test_attributes_are_still_there():
    """New ones may be added; those on record stay, and are called as they were."""
    record = {n: v for n, v in recorded().items() if "attributes" in v}
    actual = names.public_names()
    lost = {
        f"{name}.{attribute}": call
        for name, value in record.items()
        for attribute, call in value["attributes"].items()
        if actual[name]["attributes"].get(attribute) != call
    }
    assert lost == {}, CHANGE
    assert len(record) > 30


def test_names_of_the_root_load_on_first_use():
    """Every public name can be listed, read and imported; modules are loaded when they are read."""
    code = """
import sys, pboost as pb
assert "numpy" not in sys.modules
assert set(pb.__all__) <= set(dir(pb))
assert pb.models.graph.DecisionGraph is pb.models.DecisionGraph
assert pb.plot.tree.__module__ == "pboost.inspection.graph_plots"
try:
    pb.fit_adabost
except AttributeError as error:
    print(error)
from pboost import *
print(all(getattr(pb, name) is globals()[name] for name in pb.__all__))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "module 'pboost' has no attribute 'fit_adabost'\nTrue\n"


def test_sub_modules_have_these_names_alone():
    """What they pass on is loaded on first use, and none is hidden by a module of that name."""
    spaces = (pb.acquisition, pb.data, pb.export, pb.inspection, pb.models, pb.plot)
    for space in spaces:
        assert {name for name in dir(space) if not name.startswith("_")} == {*space.__all__}
        assert not any(inspect.ismodule(getattr(space, name)) for name in space.__all__)
    functions = {name for space in (pb, *spaces) for name in space.__all__} - {"graph"}
    for space in (pb.data, pb.export, pb.inspection, pb.models):
        modules = {path.stem for path in Path(space.__file__).parent.glob("*.py")}
        assert not modules & functions, space.__name__
    assert len(set(pb.__all__) - set(pb._MODULES)) == 44 + 1  # and the version


def test_type_checkers_see_the_names_that_load_on_first_use():
    for space in (pb, pb.data, pb.export, pb.inspection, pb.models):
        tree = ast.parse(Path(space.__file__).read_text("utf-8"))
        block = next(node for node in tree.body if isinstance(node, ast.If))
        seen = {
            (part.name, node.module)
            for node in block.body
            if isinstance(node, ast.ImportFrom)
            for part in node.names
        }
        homes = {(name, home) for home, names in space._NAMES.items() for name in names.split()}
        assert seen == homes | {(name, "pboost") for name in getattr(space, "_MODULES", ())}
