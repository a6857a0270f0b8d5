"""What users may write stays what it is: a name or a parameter changes only on purpose."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

spec = importlib.util.spec_from_file_location(
    "public_names", Path(__file__).with_name("public_names.py")
)
names = importlib.util.module_from_spec(spec)
spec.loader.exec_module(names)


def test_names_and_signatures_are_those_on_record():
    """To change them on purpose: `python tests/api/public_names.py --write`, and the changelog."""
    found, recorded = names.public_names(), json.loads(names.RECORD.read_text())
    assert sorted(found) == sorted(recorded)
    assert {n: _call(v) for n, v in found.items() if _call(v) != _call(recorded[n])} == {}
    assert len(found) > 100


def _call(described):
    """Return what is recorded of a name but for the attributes of its objects."""
    return described.get("call") if isinstance(described, dict) else described


def test_attributes_are_still_there():
    """New ones may be added; those on record stay, and are called as they were."""
    recorded = {n: v for n, v in json.loads(names.RECORD.read_text()).items() if "attributes" in v}
    found = names.public_names()
    lost = {
        f"{name}.{attribute}": call
        for name, value in recorded.items()
        for attribute, call in value["attributes"].items()
        if found[name]["attributes"].get(attribute) != call
    }
    assert lost == {}
    assert len(recorded) > 30
