"""The defaults are what they were: a change is on purpose, and in the list of defaults."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("defaults", Path(__file__).with_name("defaults.py"))
defaults = importlib.util.module_from_spec(spec)
spec.loader.exec_module(defaults)

RECORDED = json.loads(defaults.RECORD.read_text())


@pytest.fixture(scope="module")
def found():
    return defaults.defaults()


@pytest.mark.full_for("options")
@pytest.mark.parametrize("part", ["options", "settings"])
def test_they_are_those_on_record(found, part):
    """To change them on purpose: `python tests/api/defaults.py --write`, and the changelog."""
    assert found[part].keys() == RECORDED[part].keys()
    changed = {n: v for n, v in found[part].items() if v != RECORDED[part][n]}
    assert changed == {}


def test_so_are_their_models(found):
    if found["fingerprint"] != RECORDED["fingerprint"]:
        pytest.skip(f"made where the last bits differ: {RECORDED['fingerprint']}")
    changed = {n for n, digest in found["models"].items() if digest != RECORDED["models"][n]}
    assert changed == set()


def test_every_option_of_every_builder_has_a_default():
    assert len(defaults.BUILDERS) >= 16
    for name, options in RECORDED["options"].items():
        assert [option for option, default in options.items() if not default] == [], name
    fitted = {call.partition("(")[0] for call in RECORDED["models"]}
    assert fitted == set(defaults.BUILDERS)
