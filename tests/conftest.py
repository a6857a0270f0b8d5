"""Fixtures of the tests of the command line, and Ctrl-C as the tests need it."""

from __future__ import annotations

import signal

import pytest
from command_line import frame

from pboost.__main__ import main

# In the background a shell without job control has Ctrl-C ignored, here and in all that is started.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
