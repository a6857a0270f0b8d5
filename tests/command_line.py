"""What the tests of the command line share."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

SEARCH_PATH = os.pathsep.join(path for path in sys.path if path)


def start(*arguments, code=None, encoding="utf-8", **options):
    """A process of its own: `python -m pboost`, or `code` in its place."""
    how = ["-m", "pboost"] if code is None else ["-c", code]
    return subprocess.Popen(
        [sys.executable, "-W", "error", *how, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": SEARCH_PATH, "PYTHONIOENCODING": encoding},
        encoding=encoding,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def run(*arguments, code=None, **options):
    process = start(*arguments, code=code, **options)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def frame(n=60, seed=0):
    import pandas

    rng = np.random.default_rng(seed)
    sick = rng.random(n) < 0.4
    return pandas.DataFrame(
        {
            "age": rng.integers(20, 90, n) + 10 * sick,
            "größe": rng.normal(size=n) + sick,
            "ward": rng.random(n) < 0.5,
            "state": np.where(sick, "sick", "healthy"),
            "copies": rng.integers(1, 4, n),
        }
    )


def assert_one_line(err, *parts):
    assert err.count("\n") == 1, err
    assert err.endswith("\n")
    assert err.startswith("pboost"), err
    assert "Traceback" not in err
    for part in parts:
        assert part in err
