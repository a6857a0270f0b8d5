"""Measure what README.md states, and fail where a figure of it is no longer true.

    python docs/dev/readme_figures.py            what takes seconds
    python docs/dev/readme_figures.py --all      all: times, speeds, and the picture, for two hours

A figure is found by the words around it, so that one which nobody measures is a failure, too.
Errors agree to the digit or, where another library is measured, to half a point; speeds within a
factor of 1.6, times of three. The picture's need the folder of data sets that PBOOST_DATA names.
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
from typing import Any

import numpy as np

import pboost as pb

ROOT = Path(__file__).resolve().parents[2]
TABLE, PICTURE = ROOT / "docs/benchmarks/accuracy_table.rst", ROOT / "docs/_static/accuracy.svg"
#: A block of code: its language, and what is in it.
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
FRESH = shutil.ignore_patterns(".git", "*.so", "build", "*.egg-info", "__pycache__", ".venv")


@dataclass(frozen=True)
class Claim:
    """Figures of the text.

    Attributes
    ----------
    words : str
        A regular expression, whose groups are the figures.
    measure : callable
        Returns as many numbers; raises ImportError where another library is missing.
    within : callable
        Says of a number stated and one measured whether they agree.
    slow : bool
        Whether it takes longer than seconds, or measures time.
    """

    words: str
    measure: Callable[[], list[float]]
    within: Callable[[float, float], bool]
    slow: bool = False


def rounded(digits: int) -> Callable[[float, float], bool]:
    """Return whether a number is the one measured, as rounded to so many digits."""
    return lambda stated, measured: abs(stated - measured) <= 0.5001 * 10.0**-digits


def apart(points: float) -> Callable[[float, float], bool]:
    """Return whether two numbers are at most so far apart."""
    return lambda stated, measured: abs(stated - measured) <= points


def factor(most: float) -> Callable[[float, float], bool]:
    """Return whether two numbers differ by at most a factor."""
    return lambda stated, measured: stated / most <= measured <= stated * most


# What is measured


def ringnorm() -> tuple[Any, ...]:
    """Return the rows of the ten lines, for training and for testing."""
    X, y = pb.datasets.ringnorm(5000, rng=0)
    return X[:1000], y[:1000], X[1000:], y[1000:]


def least_error() -> list[float]:
    """Return the error in % of the rule that knows the probabilities."""
    X, y = pb.datasets.ringnorm(400_000, rng=0)
    return [100 * float(np.mean((pb.datasets.ringnorm_probability(X) > 0.5) != (y > 0)))]


def error_of(estimator: Any) -> float:
    """Return the error in % of an estimator on the rows of the ten lines."""
    X, y, X_test, y_test = ringnorm()
    return 100 * float(np.mean(estimator.fit(X, y > 0).predict(X_test) != (y_test > 0)))


def boosters() -> list[float]:
    """Return the errors of other boosting libraries."""
    import lightgbm
    import xgboost

    return [
        error_of(xgboost.XGBClassifier(n_jobs=1)),
        error_of(lightgbm.LGBMClassifier(n_jobs=1, verbosity=-1)),
    ]


def forest() -> list[float]:
    """Return the error of a forest of scikit-learn."""
    from sklearn.ensemble import RandomForestClassifier

    return [error_of(RandomForestClassifier(random_state=0))]


def breast_cancer() -> list[float]:
    """Return the numbers of rows and columns of the demo's data."""
    from sklearn.datasets import load_breast_cancer

    return list(map(float, load_breast_cancer().data.shape))


def python() -> list[float]:
    """Return the least version of Python, as 3.11."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [float(project["requires-python"].removeprefix(">="))]


def stumps() -> list[float]:
    """Return the seconds of 100 rounds at (100,000, 20), and how many times as long others take."""
    import lightgbm
    import xgboost

    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 20)).astype(np.float32)
    y = np.sin(X).sum(axis=1) + rng.logistic(size=len(X)) > 0
    first = {"objective": "binary", "num_leaves": 2, "num_threads": 1, "verbosity": -1}
    other = {"objective": "binary:logistic", "max_depth": 1, "nthread": 1, "tree_method": "hist"}
    fits: list[Callable[[], Any]] = [
        lambda: pb.fit_adaboost(X, y, n_estimators=100, n_threads=1),
        lambda: lightgbm.train(first, lightgbm.Dataset(X, y), 100),
        lambda: xgboost.train(other, xgboost.DMatrix(X, y), 100),
    ]
    seconds = []
    for _ in range(5):  # in turns, so that all see the same machine
        for fit in fits:
            start = time.process_time()
            fit()
            seconds.append(time.process_time() - start)
    ours, *others = np.median(np.reshape(seconds, (-1, len(fits))), axis=0).tolist()
    return [ours, min(others) / ours]


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
    """Return how long a command of README takes in a copy that was never built."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "pboost"
        shutil.copytree(ROOT, copy, ignore=FRESH)
        start = time.perf_counter()
        clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        subprocess.run(["bash", "-c", command], cwd=copy, check=True, env=clean)
        return time.perf_counter() - start


def example(name: str) -> ModuleType:
    """Return a script of the examples."""
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


def tabulated(*cells: tuple[str, int]) -> list[float]:
    """Return errors in % of the picture's table, by model and place of the budget."""
    means = example("accuracy_picture").means(TABLE.read_text("utf-8"))
    return [means[name][place][1] for name, place in cells]


@functools.cache
def measured_errors() -> dict[str, list[float]]:
    """Return the errors in % of all models of the picture by budget, measured anew."""
    compare = example("accuracy_per_comparison")
    drawn = example("accuracy_picture").DRAWN
    models = {name: of for name, of in compare.models(compare.MOST_NODES).items() if name in drawn}
    if missing := set(drawn) - set(models):
        raise ImportError(f"what is needed to measure {', '.join(sorted(missing))} is missing")
    sets = compare.data_sets(Path(os.environ["PBOOST_DATA"]), quick=False)
    results = compare.each_timed(sets, lambda data: compare.compare(data, models))
    return {
        name: [100 * float(np.mean([of[name][b, :, 0] for of in results])) for b in range(4)]
        for name in models
    }


def measured(*cells: tuple[str, int]) -> list[float]:
    """Return the same as `tabulated`, measured anew."""
    if "PBOOST_DATA" not in os.environ:
        raise ImportError("PBOOST_DATA names no folder of data sets")
    errors = measured_errors()
    return [errors[name][place] for name, place in cells]


#: What the text says of the picture: model and place of the budget in 10, 20, 50, 100.
CELLS = (
    ("soft tree", 0),
    ("xgboost, depth 3", 0),
    ("matryoshka 16,16,…", 1),
    ("xgboost, depth 3", 1),
    ("the same, rate 0.3", 3),
    ("xgboost, depth 3", 3),
)
OF_PICTURE = (
    r"Within 10 comparisons .*? on ([\d.]+) % .*? xgboost .*? ([\d.]+) %; "
    r"within 20 .*? on ([\d.]+) %, xgboost on ([\d.]+) %; "
    r"within 100 .*? on ([\d.]+) %, xgboost on ([\d.]+) %"
)
FIRST, SECOND = "python3 -m venv .venv && ", "bash .ci/test"

CLAIMS = [
    Claim(OF_PICTURE, lambda: tabulated(*CELLS), rounded(1)),
    Claim(OF_PICTURE, lambda: measured(*CELLS), apart(0.3), slow=True),
    Claim(r"No rule is wrong on less than ([\d.]+) %", least_error, rounded(1)),
    Claim(r"xgboost is wrong on ([\d.]+) %, lightgbm on ([\d.]+) %", boosters, apart(0.5)),
    Claim(r"a forest of scikit-learn on ([\d.]+) %", forest, apart(0.5)),
    Claim(r"\((\d+) rows, (\d+) columns\)", breast_cancer, rounded(0)),
    Claim(r"Python ([\d.]+) or newer", python, apart(0)),
    Claim(
        r"100 rounds of AdaBoost on 100,000 rows of 20 columns take ([\d.]+) s",
        lambda: stumps()[:1],
        factor(3),
        slow=True,
    ),
    Claim(r"xgboost take (\d+) times as long", lambda: stumps()[1:], factor(1.6), slow=True),
    Claim(r"100 trees of depth 6 takes ([\d.]+) s", trees, factor(3), slow=True),
    Claim(
        r"runs the demo \(about (\d+) minutes",
        lambda: [seconds_of(command(FIRST)) / 60],
        factor(3),
        slow=True,
    ),
    Claim(
        r"fresh environment.*?about (\d+) minutes",
        lambda: [seconds_of(command(SECOND)) / 60],
        factor(3),
        slow=True,
    ),
]


# The text


def readme() -> str:
    """Return the text of README.md."""
    return (ROOT / "README.md").read_text("utf-8")


def command(start: str) -> str:
    """Return the command of README that begins so."""
    lines = [line.removeprefix("$ ") for _, block in BLOCK.findall(readme()) for line in [block]]
    return next(line.strip() for line in lines if line.startswith(start))


def prose() -> str:
    """Return the text without blocks of code, on one line."""
    return re.sub(r"\s+", " ", BLOCK.sub("", readme()))


def unmeasured() -> list[str]:
    """Return the figures of the text that no claim measures."""
    text = re.sub(r"\]\([^)]*\)|<[^>]*>|`[^`]*`|BSD-3", "", prose())
    for claim in CLAIMS:
        text = re.sub(claim.words, "", text)
    return re.findall(r"\S*\d\S*", text)


def check(claim: Claim) -> list[str]:
    """Return what is not true of a claim, a line for each figure."""
    result = re.search(claim.words, prose())
    if result is None:
        return [f"README has no words like: {claim.words}"]
    return [
        f"{result[0]!r}: states {stated}, measured {number:.4g}"
        for stated, number in zip(result.groups(), claim.measure(), strict=True)
        if not claim.within(float(stated), number)
    ]


def check_lines() -> list[str]:
    """Return how the output of the lines of Python differs from the one printed below them."""
    blocks = BLOCK.findall(readme())
    place = next(k for k, (language, _) in enumerate(blocks) if language == "python")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(blocks[place][1], {})  # the lines are those of README
    stated = blocks[place + 1][1]
    return [] if printed.getvalue() == stated else [f"printed {printed.getvalue()!r}"]


def check_demo(slow: bool) -> list[str]:
    """Return the cells of the demo's table that have become others; times count if `slow`."""
    from pboost.__main__ import main

    stated = next(block for _, block in BLOCK.findall(readme()) if "fit time" in block)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main(["demo"])
    rows = [re.split(r"  +", line.strip()) for line in printed.getvalue().splitlines()]
    wrong = []
    for line in filter(None, stated.splitlines()):
        cells = re.split(r"  +", line.strip())
        row = next((row for row in rows if row[0] == cells[0]), [])
        of_time = slice(-1, None) if cells[-1].endswith(" ms") else slice(0, 0)
        times = [float(cell.removesuffix(" ms")) for cell in (*cells[of_time], *row[of_time])]
        cells[of_time] = row[of_time] = []
        if row != cells or (slow and times and not factor(10)(*times)):
            wrong.append(f"states {line!r}, printed {row} {times[1:]}")
    return wrong


def findings(slow: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield what is checked, and what is wrong with it."""
    yield "figures that nobody measures", unmeasured()
    yield "the picture is that of the table", check_picture()
    yield "the lines of Python", check_lines()
    checks: list[tuple[str, Callable[[], list[str]]]] = [
        ("the demo", functools.partial(check_demo, slow))
    ]
    checks += [
        (claim.words, functools.partial(check, claim)) for claim in CLAIMS if slow or not claim.slow
    ]
    for name, run in checks:
        try:
            yield name, run()
        except ImportError as error:
            yield f"{name}: not measured: {error}", []


def check_picture() -> list[str]:
    """Return whether the picture is another than its table gives."""
    made = example("accuracy_picture").picture(TABLE.read_text("utf-8"))
    again = f"python examples/accuracy_picture.py {TABLE} {PICTURE}"
    return [] if made == PICTURE.read_text("utf-8") else [again]


def main(argv: list[str] | None = None) -> int:
    """Check, print what is wrong, and return how much is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="times, speeds and the picture, too")
    wrong = 0
    for name, lines in findings(parser.parse_args(argv).all):
        print(f"{'WRONG' if lines else 'ok   '} {name}", flush=True)
        for line in lines:
            print(f"      {line}")
        wrong += len(lines)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
