"""What users may write stays what it is: a name or a parameter changes only on purpose."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pboost as pb

spec = importlib.util.spec_from_file_location(
    "public_names", Path(__file__).with_name("public_names.py")
)
names = importlib.util.module_from_spec(spec)
spec.loader.exec_module(names)


def test_names_and_signatures_are_those_on_record():
    """To change them on purpose: `python tests/api/public_names.py --write`, and the changelog."""
    actual, recorded = names.public_names(), json.loads(names.RECORD.read_text())
    assert sorted(actual) == sorted(recorded)
    assert {n: _call(v) for n, v in actual.items() if _call(v) != _call(recorded[n])} == {}
    assert len(actual) > 100


def _call(described):
    """Return what is recorded of a name but for the attributes of its objects."""
    return described.get("call") if isinstance(described, dict) else described


def test_attributes_are_still_there():
    """New ones may be added; those on record stay, and are called as they were."""
    recorded = {n: v for n, v in json.loads(names.RECORD.read_text()).items() if "attributes" in v}
    actual = names.public_names()
    lost = {
        f"{name}.{attribute}": call
        for name, value in recorded.items()
        for attribute, call in value["attributes"].items()
        if actual[name]["attributes"].get(attribute) != call
    }
    assert lost == {}
    assert len(recorded) > 30


def test_names_of_the_root_load_on_first_use():
    """Every public name can be listed, read and imported; modules are loaded when they are read."""
    code = """
import sys, pboost as pb
assert "numpy" not in sys.modules
assert set(pb.__all__) <= set(dir(pb))
assert pb.models.graph.DecisionGraph is pb.DecisionGraph
assert pb.generic.__name__ == "pboost.growth.generic_greedy"
try:
    pb.fit_adabost
except AttributeError as error:
    print(error)
from pboost import *
print(all(getattr(pb, name) is globals()[name] for name in pb.__all__))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "module 'pboost' has no attribute 'fit_adabost'\nTrue\n"


def test_type_checkers_see_the_names_that_load_on_first_use():
    tree = ast.parse(Path(pb.__file__).read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        (part.name, node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for part in node.names
    }
    homes = {(name, f"pboost.{home}") for name, home in pb._HOMES.items()}
    modules = {("generic_greedy", "pboost.growth")}
    assert seen == homes | modules | {(name, "pboost") for name in pb._MODULES}
