"""Pickles that version 0.1.0 made are refused with a sentence that says what to do instead."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from pathlib import Path

import pytest

import pboost as pb
from pboost.models import _old_pickles

PICKLES = sorted(Path(__file__).with_name("pickles").glob("*.pickle"))


@pytest.mark.parametrize("path", PICKLES, ids=lambda path: path.stem)
def test_are_refused(path):
    with pytest.raises(ModuleNotFoundError, match=r"pboost 0\.1\.0.*pb\.save.*pb\.load"):
        pickle.loads(path.read_bytes())


def test_there_are_some():
    assert {path.stem for path in PICKLES} == {"columns", "graph", "one_vs_rest", "tree"}


def test_other_names_are_as_unknown_as_ever():
    assert importlib.util.find_spec("pboost.no_such_module") is None
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'pboost\.no_such_module'"):
        importlib.import_module("pboost.no_such_module")


def test_is_asked_once_and_last():
    _old_pickles.refuse_old_pickles()
    assert sys.meta_path.count(_old_pickles.OldPickles) == 1
    assert not any(hasattr(pb, name) for name in _old_pickles._GONE)
