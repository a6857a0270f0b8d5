"""Interleaved benchmarks of pboost and its peers.

    python -m asv_bench.peers --quick
    python -m asv_bench.peers --rst docs/benchmarks/performance_table.rst

Run it from the root of a checkout with a built pboost. scikit-learn, xgboost, lightgbm and ydf are
used if installed. Each measurement runs in a separate process; repetitions alternate between the
libraries (A B C, A B C, …), and the medians are printed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from asv_bench.peers.jobs import JOBS, Case, Size, cases
from asv_bench.peers.report import TABLES, Results, Table, notes
from asv_bench.peers.worker import RESULT

ROOT = Path(__file__).resolve().parents[2]
LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
PACKAGES = ("numpy", "scikit-learn", "xgboost", "xgboost-cpu", "lightgbm", "ydf")
#: The line of the tables file where `performance.rst` starts the inclusion.
START = ".. tables start here"


def measure(case: Case, quick: bool, limit: float) -> dict[str, Any]:
    """Measure one case in a separate process."""
    environment = dict(os.environ, **dict.fromkeys(LIMITS, str(case.threads)))
    environment.pop("PBOOST_NUM_THREADS", None)
    if case.threads > 1:
        # Spinning threads would slow down other processes on a busy machine.
        environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    task = json.dumps({**asdict(case), "quick": quick})
    command = [sys.executable, "-m", "asv_bench.peers.worker", task]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return {"skipped": f"took over {limit:g} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith(RESULT)]
    if done.returncode or not lines:
        text = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return {"skipped": f"failed: {text[-1]}"}
    result: dict[str, Any] = json.loads(lines[-1].removeprefix(RESULT))
    return result


def measure_all(groups: list[list[Case]], reps: int, quick: bool, limit: float) -> Results:
    """Measure every case `reps` times, interleaving the cases of a group; return medians."""
    outcome: dict[Case, list[dict[str, Any]]] = {case: [] for group in groups for case in group}
    for group in groups:
        for rep in range(reps):
            for case in group:
                if any("skipped" in result for result in outcome[case]):
                    continue
                print(f"{rep + 1}/{reps} {case}", file=sys.stderr)
                outcome[case].append(measure(case, quick, limit))
    return {case: _median(results) for case, results in outcome.items()}


def _median(results: list[dict[str, Any]]) -> dict[str, Any]:
    if "skipped" in results[-1]:
        return results[-1]
    first = results[0]
    return {
        key: None if value is None else statistics.median(result[key] for result in results)
        for key, value in first.items()
    }


def machine(loads: list[str]) -> str:
    """Return a sentence about the machine, the versions and the load."""
    versions = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    busy = f" The load average before and after was {' and '.join(loads)}." if loads else ""
    cpu = f"The processor is {_processor()} ({os.cpu_count()} cores)."
    return f"{cpu} The versions are {', '.join(versions)}.{busy}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _load() -> list[str]:
    try:
        return [f"{os.getloadavg()[0]:.1f}"]
    except (AttributeError, OSError):
        return []


def as_rst(tables: list[Table], remarks: list[str]) -> str:
    """Return the file that `performance.rst` includes."""
    head = [":orphan:", "", START, ""]
    body = [part for table in tables for part in (table.rst(), "")]
    return "\n".join([*head, *body, *(part for line in remarks for part in (line, ""))])


def as_markdown(tables: list[Table], remarks: list[str]) -> str:
    """Return the tables and remarks as Markdown."""
    return "\n\n".join([*(table.markdown() for table in tables), *remarks]) + "\n"


def _jobs(text: str) -> list[str]:
    jobs = text.split(",")
    unknown = [job for job in jobs if job not in JOBS]
    if unknown:
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(JOBS)}, got {unknown[0]}")
    return jobs


def _sizes(text: str) -> list[Size]:
    try:
        pairs = [part.split("x") for part in text.split(",")]
        sizes = [(int(float(n)), int(float(d))) for n, d in pairs]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected sizes as 1e5x20,1e6x20, got {text}") from None
    if min(min(size) for size in sizes) < 1:
        raise argparse.ArgumentTypeError(f"expected positive sizes, got {text}")
    return sizes


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a positive integer, got {text}")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    result = argparse.ArgumentParser(
        "python -m asv_bench.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = result.add_argument
    add("--jobs", type=_jobs, default=list(JOBS), help=f"some of {','.join(JOBS)}; default: all")
    add("--sizes", type=_sizes, help="rows x features of the fits, as 1e4x20,1e5x20")
    add("--reps", type=_positive, help="repetitions; default 3, quick 1")
    add("--limit", type=float, default=300.0, help="seconds for one measurement; default 300")
    add("--quick", action="store_true", help="small sizes, few rounds: to see that it works")
    add("--markdown", type=Path, metavar="FILE", help="write the tables as Markdown too")
    add("--rst", type=Path, metavar="FILE", help="write the tables as reStructuredText too")
    return result


def main(arguments: list[str] | None = None) -> int:
    """Measure and print the tables; return 1 if a measurement of pboost failed."""
    options = parser().parse_args(arguments)
    reps = options.reps or (1 if options.quick else 3)
    loads = _load()
    groups = cases(options.jobs, options.sizes, options.quick)
    results = measure_all(groups, reps, options.quick, options.limit)
    loads += _load()
    tables = [TABLES[job](results) for job in options.jobs]
    skipped = notes(results)
    remarks = [
        "Times are CPU times with one thread, unless the column title says otherwise. All figures "
        f"are medians of {reps} run{'s' if reps > 1 else ''}. {machine(loads)}",
        *([f"These measurements are left out: {'; '.join(skipped)}."] if skipped else []),
    ]
    print("\n\n".join([*(table.text() for table in tables), *remarks]))
    if options.markdown:
        options.markdown.write_text(as_markdown(tables, remarks), encoding="utf-8")
    if options.rst:
        options.rst.write_text(as_rst(tables, remarks), encoding="utf-8")
    failed = [c for c, of in results.items() if c.library.startswith("pboost") and "skipped" in of]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
