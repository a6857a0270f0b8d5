"""Tiers of tests, fixtures of those of the command line, and Ctrl-C as the tests need it.

What is marked ``full`` is left out of the quick tier, ``pytest -m "not full"``: what says so, cases
whose ids look like one of ``full_for("an id", "*-with stars")``, and of the cases that differ in a
parameter named ``seed`` all but a quarter. Which one is kept depends on the sources of the package,
so that it is another one after each change.
"""

from __future__ import annotations

import fnmatch
import hashlib
import signal
from pathlib import Path

import pytest
from command_line import frame

import pboost
from pboost.__main__ import main

TURNS = 4

# In the background a shell without job control has Ctrl-C ignored, here and in all that is started.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def turn_of_the_sources():
    """Return a number that depends on all files of the package."""
    folder = Path(__file__).parents[1] / "pboost"
    if not folder.exists():
        folder = Path(pboost.__file__).parent
    actual = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".pyx", ".pxd", ".h"):
            actual.update(path.read_bytes())
    return actual.digest()[0] % TURNS


def pytest_addoption(parser):
    says = "which quarter of the seeds the quick tier has, in place of one by the sources"
    parser.addoption("--turn", type=int, choices=range(TURNS), help=says)


def pytest_configure(config):
    if config.option.turn is None:  # pytest-xdist passes it to its workers
        config.option.turn = turn_of_the_sources()


@pytest.hookimpl(tryfirst=True)  # before -m is looked at
def pytest_collection_modifyitems(config, items):
    seeds = {}
    for item in items:
        for marker in item.iter_markers("full_for"):
            if any(fnmatch.fnmatchcase(item.callspec.id, words) for words in marker.args):
                item.add_marker("full")
        if hasattr(item, "callspec") and "seed" in item.callspec.params:
            of_test = seeds.setdefault(item.nodeid.partition("[")[0], {})
            of_test.setdefault(item.callspec.params["seed"], []).append(item)
    for of_test in seeds.values():
        turns = min(TURNS, len(of_test))
        for number, cases in enumerate(of_test.values()):
            if number % turns != config.option.turn % turns:
                for item in cases:
                    item.add_marker("full")


def pytest_terminal_summary(terminalreporter, config):
    if "not full" in config.option.markexpr:
        terminalreporter.line(f"a quarter of the seeds: --turn {config.option.turn}")


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
    assert (
        pboost_main("fit", csv_file, "--target", "state", "--n-estimators", 5, "-o", path)[0] == 0
    )
    return path
