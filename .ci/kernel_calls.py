"""A pytest plugin: fail unless every function of every kernel has been called by the tests.

Where tests are chosen by ``-k``, it only says what has not been called.
"""

import functools
import importlib
import pkgutil
import sys

import pytest

import pboost
from pboost import _core

calls = {}


def counted(name, function):
    """Return a function that does the same and is counted."""

    @functools.wraps(function)
    def call(*args, **options):
        calls[name] += 1
        return function(*args, **options)

    return call


def pytest_configure():
    """Put counted functions wherever modules of the package have those of kernels."""
    replaced = {}
    for found in pkgutil.iter_modules(_core.__path__, "pboost._core."):
        module = importlib.import_module(found.name)
        for name, function in vars(module).items():
            if type(function).__name__ == "cython_function_or_method" and name[0] != "_":
                full = f"{found.name.rpartition('.')[2]}.{name}"
                calls[full] = 0
                replaced[id(function)] = counted(full, function)
    for module in [m for n, m in sys.modules.items() if n.split(".")[0] == pboost.__name__]:
        for name, value in list(vars(module).items()):
            if id(value) in replaced:
                setattr(module, name, replaced[id(value)])


def pytest_sessionfinish(session, exitstatus):
    """Turn a success into a failure if a kernel's function was not called.

    One of several processes only says what it has called: what is missing may be another's.
    """
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["kernel_calls"] = dict(calls)
    elif exitstatus == 0 and not session.config.option.keyword and not all(calls.values()):
        session.exitstatus = 1


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Add what a process has called that has come to its end."""
    for name, number in getattr(node, "workeroutput", {}).get("kernel_calls", {}).items():
        calls[name] += number


def pytest_terminal_summary(terminalreporter):
    """Say what was not called."""
    terminalreporter.section("kernels")
    idle = [name for name, n in calls.items() if not n]
    terminalreporter.line(f"{len(calls) - len(idle)} of {len(calls)} functions called")
    for name in idle:
        terminalreporter.line(f"not called: {name}")
