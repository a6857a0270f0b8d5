"""Folders of columns that have been damaged are refused, or give a model: a part of a long run."""

import time

import pytest
from damaged_folders import make, run_case, what_it_holds

import pboost as pb

pytest.importorskip("pandas")


@pytest.mark.full
def test_damaged_folders_are_refused_or_opened(tmp_path):
    folders = make(tmp_path)
    held = {folder: what_it_holds(folder, True) for folder in folders}
    actual = [run_case(folders, held, case) for case in range(250)]
    assert set(actual) == {"refused", "opened"}
    assert actual.count("refused") > 150


def test_numbers_of_levels_that_are_absurd_are_refused_at_once(tmp_path):
    folders, start = make(tmp_path), time.process_time()
    assert run_case(folders, {}, 10959) == "refused"  # 2**31 - 1 levels
    assert time.process_time() - start < 1


def test_labels_of_bytes_are_refused(tmp_path):
    folders = make(tmp_path)
    for case in (1088, 5816, 12728):
        assert run_case(folders, {}, case) == "refused"
    assert len(pb.data.open_columns(folders[0]).y) == 60
