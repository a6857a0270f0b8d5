"""A pytest plugin: fail if a case of the quick tier takes more than a second of processor time.

Such a case is to be marked ``full``, or ``quick`` where the quick tier is to have it all the same.
What several cases share counts for the first of them.
"""

import contextlib
import importlib
import os

import pytest

MOST = 1.0
#: What is slow to import must not count for the first case that does.
PACKAGES = ("distributed", "matplotlib.pyplot", "pandas", "polars", "pyarrow", "scipy.stats")
PACKAGES += ("sklearn.utils.estimator_checks", "pboost.cli.commands", "pboost.sklearn")
slow = {}


def pytest_sessionstart():
    """Import what is slow to."""
    for name in PACKAGES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Record the CPU time of a slow case, child processes included."""
    before = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        taken = sum(os.times()[:4]) - before
        if taken > MOST and not any(item.get_closest_marker(name) for name in ("full", "quick")):
            slow[item.nodeid] = taken


def pytest_sessionfinish(session, exitstatus):
    """Turn a success into a failure if a case is slow; one of several processes hands it on."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["slow_cases"] = slow
    elif exitstatus == 0 and slow:
        session.exitstatus = 1


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Add the slow cases that a finished worker process has recorded."""
    slow.update(getattr(node, "workeroutput", {}).get("slow_cases", {}))


def pytest_terminal_summary(terminalreporter):
    """Say which cases are to be marked."""
    if slow:
        terminalreporter.section(f"more than {MOST:g} s, neither `full` nor `quick`")
    for name, taken in sorted(slow.items(), key=lambda pair: -pair[1]):
        terminalreporter.line(f"{taken:.1f} s  {name}")
