"""Fixtures of the tests of the command line."""

from __future__ import annotations

import pytest
from command_line import frame

from pboost.__main__ import main


@pytest.fixture
def pboost_main(capfd):
    """Run a command in this process; returns exit code, output and error output."""

    def run_here(*arguments):
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        return code, *capfd.readouterr()

    return run_here


@pytest.fixture
def csv_file(tmp_path):
    pytest.importorskip("pandas")
    path = tmp_path / "train.csv"
    frame().to_csv(path, index=False)
    return path


@pytest.fixture
def model_file(csv_file, pboost_main):
    path = csv_file.parent / "model.npz"
    assert pboost_main("fit", csv_file, "--target", "state", "--rounds", 5, "-o", path)[0] == 0
    return path
