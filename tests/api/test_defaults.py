"""The defaults are what they were: a change is on purpose, and in the list of defaults."""

from __future__ import annotations

import importlib.util
import inspect
import json
from pathlib import Path

import pytest

import pboost as pb

spec = importlib.util.spec_from_file_location("defaults", Path(__file__).with_name("defaults.py"))
defaults = importlib.util.module_from_spec(spec)
spec.loader.exec_module(defaults)

RECORDED = json.loads(defaults.RECORD.read_text())


@pytest.fixture(scope="module")
def found():
    return defaults.defaults()


def test_they_are_those_on_record(found):
    """To change them on purpose: `python tests/api/defaults.py --write`, and the changelog."""
    settings = found["settings"]
    assert settings.keys() == RECORDED["settings"].keys()
    assert {n: v for n, v in settings.items() if v != RECORDED["settings"][n]} == {}


def test_so_are_their_models(found):
    if found["fingerprint"] != RECORDED["fingerprint"]:
        pytest.skip(f"made where the last bits differ: {RECORDED['fingerprint']}")
    changed = {n for n, digest in found["models"].items() if digest != RECORDED["models"][n]}
    assert changed == set()


def test_every_option_of_every_builder_has_a_default():
    assert len(defaults.BUILDERS) >= 16
    for name in defaults.BUILDERS:
        parameters = inspect.signature(getattr(pb, name)).parameters.values()
        options = [p for p in parameters if p.kind == p.KEYWORD_ONLY]
        assert [p.name for p in options if p.default is p.empty] == [], name
    fitted = {call.partition("(")[0] for call in RECORDED["models"]}
    assert fitted == set(defaults.BUILDERS)
