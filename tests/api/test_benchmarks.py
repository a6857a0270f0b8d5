"""The benchmarks run, and call the function that they are named after."""

from __future__ import annotations

import importlib.util
import inspect
import math
import sys
from pathlib import Path

import pytest

import pboost as pb

FOLDER = Path(__file__).resolve().parents[2] / "asv_bench" / "benchmarks"
MODULES = sorted(
    path.stem for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "common")
)
KINDS = ("time_", "peakmem_", "track_")

pytestmark = pytest.mark.skipif(not MODULES, reason="the benchmarks are part of the checkout only")


@pytest.fixture(scope="module")
def suite():
    """Import the folder as the package `benchmarks`, as airspeed velocity does."""
    spec = importlib.util.spec_from_file_location("benchmarks", FOLDER / "__init__.py")
    sys.modules["benchmarks"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["benchmarks"])
    yield {name: importlib.import_module(f"benchmarks.{name}") for name in MODULES}
    for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
        del sys.modules[name]


def classes(module):
    actual = [c for _, c in inspect.getmembers(module, inspect.isclass)]
    return [c for c in actual if c.__module__ == module.__name__ and hasattr(c, "params")]


def methods(benchmark):
    return [name for name in dir(benchmark) if name.startswith(KINDS)]


class Calls:
    """Counts the calls of every public function of the package."""

    def __init__(self, monkeypatch):
        self.names = []
        for space in (pb, pb.data, pb.export, pb.inspection, pb.models):
            for name in space.__all__:
                function = getattr(space, name)
                if inspect.isfunction(function):
                    monkeypatch.setattr(space, name, self._counting(name, function))

    def _counting(self, name, function):
        def count(*arguments, **options):
            self.names.append(name)
            return function(*arguments, **options)

        return count


@pytest.mark.full_for(
    "carts", "columns", "fits", "many_labels", "memory", "soft", "split_search", "sums"
)
@pytest.mark.parametrize("module", MODULES)
def test_each_benchmark_runs_and_calls_the_function_it_is_named_after(module, suite, monkeypatch):
    calls = Calls(monkeypatch)
    for benchmark in classes(suite[module]):
        data = benchmark().setup_cache()
        smallest = [choices[0] for choices in benchmark.params]
        for method in methods(benchmark):
            instance = benchmark()
            instance.setup(data, *smallest)
            calls.names.clear()
            value = getattr(instance, method)(data, *smallest)
            if hasattr(instance, "teardown"):
                instance.teardown(data, *smallest)
            expected = method.split("_", 1)[1]
            assert expected in calls.names, f"{benchmark.__name__}.{method}"
            if method.startswith("track_"):
                assert math.isfinite(value)
                assert value > 0
                assert getattr(benchmark, method).unit


@pytest.mark.parametrize("module", MODULES)
def test_each_benchmark_takes_its_parameters(module, suite):
    for benchmark in classes(suite[module]):
        assert len(benchmark.params) == len(benchmark.param_names)
        arguments = len(benchmark.params) + 2
        for method in ["setup", *methods(benchmark)]:
            assert len(inspect.signature(getattr(benchmark, method)).parameters) == arguments
        assert all(benchmark.params)


def test_the_suite_covers_the_main_functions(suite):
    named = {
        method.split("_", 1)[1]
        for module in suite.values()
        for benchmark in classes(module)
        for method in methods(benchmark)
    }
    assert named >= {
        "sort_columns",
        "bin_columns",
        "fit_adaboost",
        "fit_boosted_tree",
        "decision_function",
        "save",
        "load",
    }
