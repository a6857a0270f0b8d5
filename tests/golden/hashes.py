"""Hashes of the models of many small fits: no model changes by accident.

``python tests/golden/hashes.py`` compares with the lists beside this file and says what differs;
``--write`` writes them anew. ``--all-here FILE`` writes the hashes of all fits on this machine: two
trees whose files are equal train the same models. ``--against COMMIT`` does so for the working tree
and a commit, each built on the spot.

There are two lists, each with a fingerprint; where it differs, the list says nothing. Fits of
``portable.json`` depend on integers, on IEEE arithmetic and on the elementary functions of the C
library. Those of ``same_machine.json`` depend on BLAS or on NumPy's vectorised functions, too,
whose last bits differ from processor to processor.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
#: Ends the names of hashes without probabilities and other numbers that NumPy rounds.
REDUCED = " (reduced)"
PORTABLE, SAME_MACHINE = HERE / "portable.json", HERE / "same_machine.json"


@contextmanager
def many_threads() -> Iterator[None]:
    """Make the smallest work worth a thread, of which the machine seems to have eight."""
    from pboost import threads

    kept = threads.MIN_CELLS, threads.available_threads
    threads.MIN_CELLS, threads.available_threads = 1, lambda: 8
    try:
        yield
    finally:
        threads.MIN_CELLS, threads.available_threads = kept


def every_fit() -> dict[str, Any]:
    """Return all fits by name."""
    import derived_fits
    import fits
    import partition_fits
    import table_fits

    parts = [
        fits.all_fits(),
        table_fits.more_fits(),
        derived_fits.derived_fits(),
        partition_fits.partition_fits(),
    ]
    actual = {_listed(name): fit for part in parts for name, fit in part.items()}
    assert len(actual) == sum(map(len, parts)), "two fits have the same name"
    return actual


#: Words in names of fits that were others when these were listed.
LISTED = {
    "kearns_mansour": "kearns-mansour",
    "largest_bound": "largest-bound",
    "largest_error": "largest-error",
    "look_ahead": "look-ahead",
    "breadth_first": "breadth-first",
    "depth_first": "depth-first",
    "best_first": "best-first",
    "cost_efficient": "per-comparison",
    "log_odds": "log-odds",
    "first_increase": "first-increase",
    "squared_error": "squared",
    "absolute_error": "absolute",
    "log_loss": "logistic",
    "independent": "free",
}


def _listed(name: str) -> str:
    """Return a name of a fit as the lists have it."""
    for word, listed in LISTED.items():
        name = name.replace(word, listed)
    return name


def hashes(names: Container[str] | None = None, quick: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the name and the hash of each fit, or of these only.

    A second hash, by the name and REDUCED, leaves out probabilities and the like, which NumPy
    rounds. They depend neither on the number of threads nor on how rows are divided into
    partitions; `quick` does not try these.
    """
    with many_threads():
        for name, fit in every_fit().items():
            called = name, name + REDUCED
            asked = [n for n in called if names is None or n in names]
            if not asked:
                continue
            ways = list(fit.models().items())[: 1 if quick else None]
            actual = {way: _digests(make, fit.tables) for way, make in ways}
            if len(set(actual.values())) > 1:
                raise AssertionError(f"{name}: the model depends on how it is fitted: {actual}")
            by_name = dict(zip(called, actual[ways[0][0]], strict=True))
            yield from ((n, by_name[n]) for n in asked)


def _digests(make: Callable[[], Any], tables: Sequence[Any]) -> tuple[str, str]:
    """Return the digests of what a fit returns, or what it raises."""
    from digests import digests

    try:
        return digests(make(), tables)
    except Exception as error:
        return (f"raises {type(error).__name__}: {error}",) * 2


def platform_print() -> dict[str, str]:
    """Return what the last bits of the C library's functions depend on."""
    return {
        "system": sys.platform,
        "machine": platform.machine(),
        "library": platform.libc_ver()[0],
    }


def fingerprint() -> dict[str, Any]:
    """Return what the last bits of BLAS and of NumPy's functions depend on."""
    import scipy
    import scipy.linalg  # loads its BLAS
    from threadpoolctl import threadpool_info

    blas = {
        f"{info['internal_api']} {info.get('version')} {info.get('architecture')}"
        for info in threadpool_info()
        if info["user_api"] == "blas"
    }
    simd = np.show_config(mode="dicts").get("SIMD Extensions", {})
    return {
        "blas": sorted(blas),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "simd": sorted(simd.get("found", [])),
        **platform_print(),
    }


def stored(path: Path) -> dict[str, Any]:
    """Return one of the two lists."""
    parsed: dict[str, Any] = json.loads(path.read_text())
    return parsed


def differences(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    """Return a line for each hash that differs, is new or is gone."""
    lines = [f"changed: {name}" for name in expected if found.get(name, "") != expected[name]]
    return lines + [f"new: {name}" for name in found if name not in expected]


def expected_here() -> dict[str, str]:
    """Return what the lists say that holds on this machine."""
    portable, machine = stored(PORTABLE), stored(SAME_MACHINE)
    actual: dict[str, str] = {}
    if portable["fingerprint"] == platform_print():
        actual |= portable["fits"]
    if machine["fingerprint"] == fingerprint():
        actual |= machine["fits"]
    return actual


def _compare(quick: bool) -> list[str]:
    expected, fits = expected_here(), every_fit().keys()
    listed = stored(PORTABLE)["fits"] | stored(SAME_MACHINE)["fits"]
    if elsewhere := listed.keys() - expected.keys():
        print(f"not compared, made on another machine: {len(elsewhere)} hashes")
    return differences(dict(hashes(expected.keys() | fits - listed.keys(), quick)), expected)


def _write() -> None:
    """Write the lists; a hash is portable if it is the same on other processors.

    That of a fit which is not may be so if it is reduced.
    """
    actual = dict(hashes())
    if wrong := {name: h for name, h in actual.items() if h.startswith("raises")}:
        raise AssertionError(f"no hashes: {wrong}")
    simd = " ".join(fingerprint()["simd"])
    others = [_elsewhere(changes) for changes, needed in OTHER_PROCESSORS if needed in simd]
    others.append(_elsewhere({}, "--rounded"))
    varied = {n for n, h in actual.items() if any(other[n] != h for other in others)}
    varied |= {n for n in actual if is_vectorised(n)}
    fits = [name for name in actual if not name.endswith(REDUCED)]
    machine = {n: actual[n] for n in fits if n in varied}
    portable = {n: actual[n] for n in fits if n not in varied}
    portable |= {n + REDUCED: actual[n + REDUCED] for n in machine if n + REDUCED not in varied}
    _put(PORTABLE, {"fingerprint": platform_print(), "fits": portable})
    _put(SAME_MACHINE, {"fingerprint": fingerprint(), "fits": machine})
    print(f"{len(portable)} portable hashes, {len(machine)} of this machine")


def is_vectorised(name: str) -> bool:
    """Return whether a fit uses BLAS, even if its bits happen to agree."""
    builder, _, rest = name.removeprefix("partitions, ").partition(": ")
    soft = ("flip", "half", "uniform", "adatree2", "gaussian", "sampled", "oracles", "linear")
    return builder in VECTORISED or (
        builder == "boosted_tree" and any(word in rest for word in (*soft, "separators"))
    )


#: Builders of which every fit is of one machine.
VECTORISED = (
    "matryoshka",
    "oblique_tree",
    "adaboost_real",
    "probitboost",
    "probit_tree",
    "sbpmt",
    "calibrate",
    "early_exit",
    "distill",
    "within",
)
#: Environments in which NumPy and its BLAS take other paths, as on other processors; and what a
#: processor must have for them.
OTHER_PROCESSORS: tuple[tuple[dict[str, str], str], ...] = (
    ({"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "{simd}"}, ""),
    ({"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": ""}, ""),
    ({"OPENBLAS_CORETYPE": "SkylakeX", "NPY_DISABLE_CPU_FEATURES": ""}, "AVX512"),
)
#: Functions of NumPy whose last bits differ from processor to processor.
ROUNDED = "exp exp2 expm1 log log2 log10 log1p logaddexp power sin cos tan tanh arctan"


def _elsewhere(changes: dict[str, str], *options: str) -> dict[str, str]:
    """Return the hashes under another environment, made quickly."""
    import pboost as pb

    tree, simd = Path(pb.__file__).resolve().parents[1], " ".join(fingerprint()["simd"])
    environment = {**os.environ, **{k: v.format(simd=simd) for k, v in changes.items()}}
    return _hashes_of(tree, environment, HERE / "hashes.py", "--quick", *options)


class _Rounded:
    """A function of NumPy that rounds another way: what is neither 0 nor 1 is one bit smaller."""

    def __init__(self, function: np.ufunc) -> None:
        self._function = function

    def __call__(self, *args: Any, **options: Any) -> Any:
        actual = self._function(*args, **options)
        smaller = np.nextafter(actual, 0.0)
        changed = np.where((actual == 1) | ~np.isfinite(actual), actual, smaller)
        if options.get("out") is None:
            return changed if np.ndim(actual) else changed[()]
        np.copyto(actual, changed, where=options.get("where", True))
        return actual

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def round_otherwise() -> None:
    """Let NumPy's vectorised functions round another way, before the package is imported."""
    assert "pboost" not in sys.modules
    for name in ROUNDED.split():
        setattr(np, name, _Rounded(getattr(np, name)))


def _hashes_of(
    tree: Path, environment: dict[str, str], script: Path, *options: str
) -> dict[str, str]:
    """Return the hashes of the package in a tree, by a script, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "hashes.json")
        run = {"env": {**environment, "PYTHONPATH": str(tree)}, "cwd": folder, "check": True}
        subprocess.run([sys.executable, script, "--all-here", out, *options], **run)
        parsed: dict[str, str] = json.loads(out.read_text())
        return parsed


def _put(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


def _against(commit: str) -> list[str]:
    """Build the working tree and a commit, each in its own folder, and compare their hashes."""
    with tempfile.TemporaryDirectory() as folder:
        before, now = Path(folder, "before"), Path(folder, "now")
        for tree, listed in ((before, commit), (now, _working_tree())):
            tree.mkdir()
            archive = subprocess.run(
                ["git", "archive", listed], cwd=ROOT, check=True, capture_output=True
            )
            subprocess.run(["tar", "-x"], cwd=tree, input=archive.stdout, check=True)
            build = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", "-j", "4"]
            subprocess.run(build, cwd=tree, check=True, capture_output=True)
        # The fits of a commit are called as it calls them, if its digests are those of today.
        old = before / "tests/golden/hashes.py"
        script = old if old.with_name("digests.py").exists() else HERE / "hashes.py"
        expected = _hashes_of(before, dict(os.environ), script)
        return differences(
            _hashes_of(now, dict(os.environ), now / "tests/golden/hashes.py"), expected
        )


def _working_tree() -> str:
    """Return a commit of the files as they are, which no branch has; HEAD if none was changed."""
    made = subprocess.run(
        ["git", "stash", "create"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return made.stdout.strip() or "HEAD"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--write", action="store_true", help="write the lists anew")
    choice.add_argument("--against", metavar="COMMIT", help="compare with a commit, built here")
    choice.add_argument("--all-here", type=Path, metavar="FILE", help="write all hashes to a file")
    parser.add_argument(
        "--quick", action="store_true", help="on one thread, and on one number of partitions"
    )
    parser.add_argument(
        "--rounded", action="store_true", help="round NumPy's functions as no processor does"
    )
    options = parser.parse_args()
    if options.rounded:
        round_otherwise()
    if options.write:
        _write()
        return 0
    if options.all_here:
        _put(options.all_here, dict(hashes(quick=options.quick)))
        return 0
    lines = _against(options.against) if options.against else _compare(options.quick)
    print("\n".join(lines) or "all hashes agree")
    return bool(lines)


if __name__ == "__main__":
    raise SystemExit(main())
