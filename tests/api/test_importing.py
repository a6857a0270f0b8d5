"""What importing the package does, and what it leaves alone."""

from __future__ import annotations

import os
import pkgutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import pboost

#: Those that modules import at once: scikit-learn's estimators and its data.
WITH_SKLEARN = ("pboost.sklearn", "pboost.datasets")
OPTIONAL = (
    "pandas",
    "matplotlib",
    "tqdm",
    "narwhals",
    "sklearn",
    "polars",
    "joblib",
    "onnx",
    "onnxruntime",
    "shap",
    "shapiq",
    "treelite",
    "dask",
    "distributed",
)


def run(code):
    """Run code in a fresh interpreter that finds the package where this one does."""
    folder = str(Path(pboost.__file__).parents[1])
    path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def test_import_leaves_optional_packages_alone():
    code = "import sys, pboost; print([m for m in {} if m in sys.modules])"
    assert run(code.format(OPTIONAL)).stdout.strip() == "[]"


@pytest.mark.full
def test_no_module_imports_optional_packages():
    actual = (info.name for info in pkgutil.walk_packages(pboost.__path__, "pboost."))
    others = [name for name in actual if not name.startswith(WITH_SKLEARN)]
    code = f"""
import importlib, sys
for name in {others}:
    importlib.import_module(name)
print([m for m in {OPTIONAL} if m in sys.modules])
"""
    assert len(others) > 80
    assert run(code).stdout.strip() == "[]"


@pytest.mark.full
def test_import_leaves_scipy_alone():
    code = "import sys, pboost; print([m for m in sys.modules if m.split('.')[0] == 'scipy'])"
    assert run(code).stdout.strip() == "[]"


def cpu_seconds(code):
    """Return the processor time of a fresh interpreter that runs code."""
    before = os.times()
    run(code)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


@pytest.mark.full
@pytest.mark.clock
def test_import_takes_little_more_than_numpy(monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    run("import numpy, pboost")  # compiles to bytecode, as an installation does
    pairs = [(cpu_seconds("import pboost"), cpu_seconds("import numpy")) for _ in range(11)]
    ours, numpys = (statistics.median(times) for times in zip(*pairs, strict=True))
    assert ours <= 2.5 * numpys


@pytest.mark.full
def test_import_is_silent():
    done = run("import pboost")
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.full
def test_import_starts_no_thread():
    # The linear algebra of NumPy and SciPy starts threads of its own.
    code = """
import os, threading, numpy, scipy.special
tasks = "/proc/self/task"
count = lambda: len(os.listdir(tasks)) if os.path.isdir(tasks) else threading.active_count()
before = count(), threading.active_count()
import pboost
print(before == (count(), threading.active_count()))
"""
    assert run(code).stdout.strip() == "True"


@pytest.mark.full
def test_import_does_not_load_test_packages():
    code = "import sys, pboost; print([m for m in ('pytest', 'hypothesis') if m in sys.modules])"
    assert run(code).stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "fit"),
    [
        ("fit_random_forest", "fit_random_forest"),
        ("GradientBoostingClassifier", "fit_gradient_boosting"),
    ],
)
def test_names_that_dask_lacks(name, fit):
    """Nobody finds the fit functions among the names of pboost.dask; the error names them."""
    with pytest.raises(AttributeError, match=rf"attribute '{name}'; .* pb\.{fit}\(pboost\.dask\."):
        getattr(pboost.dask, name)
    assert not hasattr(pboost.dask, "__path__")
