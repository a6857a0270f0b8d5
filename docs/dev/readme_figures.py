"""Measure the figures of README.md, and fail if a figure is no longer true.

    python docs/dev/readme_figures.py            the example and figures from tables, in seconds
    python docs/dev/readme_figures.py --all      times and speeds, too, about 20 minutes

A figure is found by the words around it, so a figure that nothing measures is a failure, too.
Figures of tables agree to the digit that README prints, measured times within a factor of 3.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

import pboost as pb

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "docs/benchmarks"
#: A code block. The groups are its language and its content.
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
FRESH = shutil.ignore_patterns(".git", "*.so", "build", "*.egg-info", "__pycache__", ".venv")


@dataclass(frozen=True)
class Claim:
    """A passage of the README whose figures can be measured.

    Attributes
    ----------
    words : str
        A regular expression that matches the passage. Its groups are the figures.
    measure : callable
        Function that returns one number per figure. It raises ImportError if another library is
        missing.
    within : callable
        Function that returns True if a stated and a measured number agree.
    slow : bool
        True if the measurement takes more than a few seconds or measures time.
    """

    words: str
    measure: Callable[[], list[float]]
    within: Callable[[float, float], bool]
    slow: bool = False


def rounded(digits: int) -> Callable[[float, float], bool]:
    """Return a function that tests if a figure is the measured number rounded to `digits`."""
    return lambda stated, measured: abs(stated - measured) <= 0.5001 * 10.0**-digits


def apart(points: float) -> Callable[[float, float], bool]:
    """Return a function that tests if two numbers differ by at most `points`."""
    return lambda stated, measured: abs(stated - measured) <= points


def factor(most: float) -> Callable[[float, float], bool]:
    """Return a function that tests if two numbers differ by at most the factor `most`."""
    return lambda stated, measured: stated / most <= measured <= stated * most


# Measurements


def python() -> list[float]:
    """Return the minimum version of Python, such as 3.11."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [float(project["requires-python"].removeprefix(">="))]


def trees() -> list[float]:
    """Return the seconds of 100 boosted trees of depth 6 at (100,000, 20)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 20)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] + rng.normal(size=len(X)) > 0
    seconds = []
    for _ in range(5):
        start = time.process_time()
        pb.fit_gradient_boosting(X, y, max_depth=6, n_threads=1)
        seconds.append(time.process_time() - start)
    return [float(np.median(seconds))]


def seconds_of(command: str) -> float:
    """Return the time that a command in the README takes in a fresh copy."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "pboost"
        shutil.copytree(ROOT, copy, ignore=FRESH)
        start = time.perf_counter()
        clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        subprocess.run(["bash", "-c", command], cwd=copy, check=True, env=clean)
        return time.perf_counter() - start


def example(name: str) -> ModuleType:
    """Import a script from the examples."""
    folder = ROOT / "examples"
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def table(name: str, row: str) -> list[float]:
    """Search a page of `docs/benchmarks` and return the matched groups as numbers."""
    match = re.search(row, (BENCHMARKS / f"{name}.rst").read_text("utf-8"), flags=re.DOTALL)
    if match is None:
        raise ValueError(f"{name}.rst: no text like {row}")
    return [float(group) for group in match.groups()]


def training_times() -> list[float]:
    """Return pboost's seconds, and the smallest and the largest ratio of other libraries."""
    text = (BENCHMARKS / "boosted_table.rst").read_text("utf-8")
    text = text.partition("two classes")[2].partition("csv-table")[0]
    rows = re.findall(r'"100,000", "6", "([^"]+)", "([\d.]+)", "([\d.]+)"', text)
    seconds = [float(time) for library, time, _ in rows if library == "pboost"]
    ratios = [float(ratio) for library, _, ratio in rows if not library.startswith("pboost")]
    return [*seconds, min(ratios), max(ratios)]


def latency() -> list[float]:
    """Return the microseconds in which 100 stumps score one row."""
    X, y = pb.datasets.ringnorm(10_000, rng=0)
    X = X.astype(np.float32)
    model = pb.fit_adaboost(X, y, n_estimators=100)
    seconds = []
    for _ in range(2000):
        start = time.perf_counter()
        pb.decision_function(model, X[:1])
        seconds.append(time.perf_counter() - start)
    return [1e6 * float(np.median(seconds))]


def budgets() -> list[float]:
    """Return a budget, the number of data sets, and the mean errors of pboost and XGBoost."""
    sets, budget, ours, theirs = table(
        "budgets_table",
        r"means of (\d+) sets of two classes.*?=\n +(\d+) .*?"
        r"\n   pboost +([\d.]+).*?xgboost +([\d.]+)",
    )
    return [budget, sets, ours, theirs]


def workers() -> list[float]:
    """Return numbers of partitions and XGBoost's largest difference, if pboost's is 0."""
    parts = table("dask_rounds_table", r"partitions: (\d+) beside (\d+)")
    text = (BENCHMARKS / "dask_rounds_table.rst").read_text("utf-8")
    rows = re.findall(r'"(\w+), [^"]+", "[\d.]+", "([\d.]+)"', text)
    ours, largest = (
        max(float(x) for of, x in rows if of == name) for name in ("pboost", "xgboost")
    )
    return [] if ours else [*parts, largest]


def fresh_data() -> list[float]:
    """Return the sets on which CatBoost's loss is lower, the number of sets, and the depth."""
    depth, lower, sets = table(
        "gradient_boosting",
        r"13 binary data sets, depth (6)\n.*?catboost +-[\d.]+ ± [\d.]+ +-[\d.]+ +(\d+) of (\d+)",
    )
    return [lower, sets, depth]


FIRST, SECOND = "python3 -m venv .venv && ", "bash .ci/test"

CLAIMS = [
    Claim(r"Python ([\d.]+) or newer", python, apart(0)),
    Claim(
        r"100 trees of depth 6 on 100,000 rows and 20 features takes ([\d.]+) s with one thread\. "
        r"LightGBM, XGBoost, scikit-learn and CatBoost take ([\d.]+) to ([\d.]+) times",
        training_times,
        rounded(1),
    ),
    Claim(r"100 trees of depth 6 on .*? takes ([\d.]+) s", trees, factor(3), slow=True),
    Claim(
        r"100 stumps takes ([\d.]+) µs\. LightGBM takes ([\d.]+) µs and XGBoost ([\d.]+) µs",
        lambda: table(
            "performance_table",
            r'one call.*?"pboost", "([\d.]+)".*?"lightgbm", "([\d.]+)".*?"xgboost", "([\d.]+)"',
        ),
        apart(0),
    ),
    Claim(r"100 stumps takes ([\d.]+) µs", latency, factor(3), slow=True),
    Claim(
        r"On (\d+) data sets, the error of a random forest is ([\d.]+) ± ([\d.]+) percentage",
        lambda: table(
            "real_tables_table",
            r"all \((\d+) sets\).*?\n   forest(?: +[+-][\d.]+ ± [\d.]+){3} +-([\d.]+) ± ([\d.]+)",
        ),
        apart(0),
    ),
    Claim(
        r"With (\d+) comparisons per row, the mean error on (\d+) binary data sets is ([\d.]+) %; "
        r"XGBoost has ([\d.]+) %",
        budgets,
        apart(0),
    ),
    Claim(
        r"from (\d+) and from (\d+) partitions are identical; .*? up to ([\d.]+)",
        workers,
        apart(0),
    ),
    Claim(
        r"On (\d+) of (\d+) data sets that were not used .*? lower log loss at depth (\d+) than",
        fresh_data,
        apart(0),
    ),
    Claim(
        r"runs the demo\. It takes about (\d+) minutes",
        lambda: [seconds_of(command(FIRST)) / 60],
        factor(3),
        slow=True,
    ),
    Claim(
        r"new environment \(about (\d+) minutes on two cores",
        lambda: [seconds_of(command(SECOND)) / 60],
        factor(3),
        slow=True,
    ),
]


# Text of the README


def readme() -> str:
    """Return the text of README.md."""
    return (ROOT / "README.md").read_text("utf-8")


def command(start: str) -> str:
    """Return the command in the README that begins with `start`."""
    lines = [line.removeprefix("$ ") for _, block in BLOCK.findall(readme()) for line in [block]]
    return next(line.strip() for line in lines if line.startswith(start))


def prose() -> str:
    """Return the text of the README without code blocks, as one line."""
    return re.sub(r"\s+", " ", BLOCK.sub("", readme()))


def unmeasured() -> list[str]:
    """Return the figures in the README that no claim measures."""
    text = re.sub(r"\]\([^)]*\)|<[^>]*>|`[^`]*`|BSD-3", "", prose())
    for claim in CLAIMS:
        text = re.sub(claim.words, "", text)
    return re.findall(r"\S*\d\S*", text)


def check(claim: Claim) -> list[str]:
    """Return one line for each figure of a claim that differs from its measurement."""
    result = re.search(claim.words, prose())
    if result is None:
        return [f"README has no words like: {claim.words}"]
    return [
        f"{result[0]!r}: states {stated}, measured {number:.4g}"
        for stated, number in zip(result.groups(), claim.measure(), strict=True)
        if not claim.within(float(stated), number)
    ]


def check_lines() -> list[str]:
    """Run the Python example and return its output if it differs from the README."""
    blocks = BLOCK.findall(readme())
    place = next(k for k, (language, _) in enumerate(blocks) if language == "python")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(blocks[place][1], {})
    stated = blocks[place + 1][1]
    return [] if printed.getvalue() == stated else [f"printed {printed.getvalue()!r}"]


def findings(slow: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each check and its error messages."""
    yield "figures without a measurement", unmeasured()
    yield "pictures of tables", check_pictures()
    yield "the lines of Python", check_lines()
    checks = [
        (claim.words, functools.partial(check, claim)) for claim in CLAIMS if slow or not claim.slow
    ]
    for name, run in checks:
        try:
            yield name, run()
        except ImportError as error:
            yield f"{name}: not measured: {error}", []


def check_pictures() -> list[str]:
    """Return the commands that redraw pictures which differ from their tables."""
    again = []
    for name in ("accuracy", "boosted"):
        table, drawn = BENCHMARKS / f"{name}_table.rst", ROOT / f"docs/_static/{name}.svg"
        if example(f"{name}_picture").picture(table.read_text("utf-8")) != drawn.read_text("utf-8"):
            again.append(f"python examples/{name}_picture.py {table} {drawn}")
    return again


def main(argv: list[str] | None = None) -> int:
    """Run all checks, print the errors, and return 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="times and speeds, too")
    wrong = 0
    for name, lines in findings(parser.parse_args(argv).all):
        print(f"{'WRONG' if lines else 'ok   '} {name}", flush=True)
        for line in lines:
            print(f"      {line}")
        wrong += len(lines)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
