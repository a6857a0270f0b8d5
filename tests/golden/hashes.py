"""Hashes of the arrays of the models of many small fits: no model changes by accident.

``python tests/golden/hashes.py`` compares with the lists beside this file and says what differs;
``--write`` writes them anew. ``--against COMMIT`` builds the working tree and a commit and compares
the two on the spot: on any machine, and of all fits.

There are two lists, each with a fingerprint; where it differs, the list says nothing. Fits of
``portable.json`` depend on integers, on IEEE arithmetic and on the elementary functions of the C
library. Those of ``same_machine.json`` depend on BLAS or on NumPy's vectorised functions, too,
whose last bits differ from processor to processor.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PORTABLE, SAME_MACHINE = HERE / "portable.json", HERE / "same_machine.json"
THREADS = (1, 2, 4)
#: Numbers of a model that stand in the header of its file.
IN_HEADER = ("bias", "intercept", "oob_error", "chosen")


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


def digest(model: Any) -> str:
    """Return a hash of the arrays of a model: those of its file, or what it answers."""
    import pboost as pb

    found = hashlib.sha256()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.npz")
        try:
            pb.save(model, path)
        except TypeError:  # it holds functions
            _add_answers(found, model)
        else:
            _add_file(found, path.read_bytes())
    return found.hexdigest()[:24]


def _add_file(found: Any, content: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        arrays = {name: np.load(io.BytesIO(archive.read(name))) for name in archive.namelist()}
    header = json.loads(arrays.pop("header.npy").tobytes())
    # Files of members hold headers, with options and a version.
    start, models = arrays.pop("model_start.npy", [0]), arrays.pop("models.npy", None)
    for first, last in pairwise(start):
        _add_file(found, models[first:last].tobytes())
    for name, array in sorted(arrays.items()):
        _add_array(found, name, array)
    for name in IN_HEADER:
        if name in header:
            found.update(f"{name} {header[name]!r}".encode())


def _add_answers(found: Any, model: Any) -> None:
    import fits

    import pboost as pb

    for name in ("vote", "next", "answer"):
        if getattr(model, name, None) is not None:
            _add_array(found, name, getattr(model, name))
    _add_array(found, "certificate", model.record.certificate)
    _add_array(found, "score", pb.decision_function(model, fits.X))


def _add_array(found: Any, name: str, array: np.ndarray) -> None:
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    found.update(f"{name} {little.dtype.str} {little.shape}".encode() + little.tobytes())


def hashes() -> Iterator[tuple[str, str]]:
    """Yield the name and the hash of each fit; they do not depend on the number of threads."""
    import fits

    with many_threads():
        for name, fit in fits.all_fits().items():
            by_threads = {n: digest(fit.model(n)) for n in THREADS}
            if len(set(by_threads.values())) > 1:
                raise AssertionError(f"{name}: the model depends on the threads: {by_threads}")
            yield name, by_threads[1]


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
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def differences(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    """Return a line for each fit that differs, is new or is gone."""
    lines = [f"changed: {name}" for name in expected if found.get(name, "") != expected[name]]
    return lines + [f"new: {name}" for name in found if name not in expected]


def expected_here() -> dict[str, str]:
    """Return what the lists say that holds on this machine."""
    portable, machine = stored(PORTABLE), stored(SAME_MACHINE)
    found: dict[str, str] = {}
    if portable["fingerprint"] == platform_print():
        found |= portable["fits"]
    if machine["fingerprint"] == fingerprint():
        found |= machine["fits"]
    return found


def _compare() -> list[str]:
    expected = expected_here()
    elsewhere = (stored(PORTABLE)["fits"] | stored(SAME_MACHINE)["fits"]).keys() - expected.keys()
    if elsewhere:
        print(f"not compared, made on another machine: {len(elsewhere)} fits")
    found = {name: value for name, value in hashes() if name not in elsewhere}
    return differences(found, expected)


def _write() -> None:
    """Write the lists; a fit is portable if it has the same hash as on other processors."""
    found = dict(hashes())
    others = [_elsewhere(changes) for changes in OTHER_PROCESSORS]
    varied = {n for n, h in found.items() if any(other[n] != h for other in others)}
    machine = {n: h for n, h in found.items() if n in varied or is_vectorised(n)}
    portable = {n: h for n, h in found.items() if n not in machine}
    _put(PORTABLE, {"fingerprint": platform_print(), "fits": portable})
    _put(SAME_MACHINE, {"fingerprint": fingerprint(), "fits": machine})
    print(f"{len(portable)} portable fits, {len(machine)} of this machine")


def is_vectorised(name: str) -> bool:
    """Return whether a fit uses BLAS or vectorised functions, even if its bits happen to agree."""
    builder, _, rest = name.partition(": ")
    soft = ("flip", "half", "uniform", "adatree2", "gaussian", "sampled", "oracles", "linear")
    return builder in VECTORISED or (
        builder == "boosted_tree" and any(word in rest for word in (*soft, "separators"))
    )


#: Builders of which every fit is of one machine.
VECTORISED = (
    "matryoshka",
    "oblique_tree",
    "adaboost_real",
    "stagewise",
    "probitboost",
    "probit_tree",
    "sbpmt",
)
#: Environments in which NumPy and its BLAS take other paths, as on other processors.
OTHER_PROCESSORS: tuple[dict[str, str], ...] = (
    {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "{simd}"},
    {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": ""},
    {"OPENBLAS_CORETYPE": "SkylakeX", "NPY_DISABLE_CPU_FEATURES": ""},
)


def _elsewhere(changes: dict[str, str]) -> dict[str, str]:
    """Return the hashes under another environment."""
    simd = " ".join(fingerprint()["simd"])
    environment = {**os.environ, **{k: v.format(simd=simd) for k, v in changes.items()}}
    return _hashes_of(ROOT, environment, HERE / "hashes.py")


def _hashes_of(tree: Path, environment: dict[str, str], script: Path) -> dict[str, str]:
    """Return the hashes of the package in a tree, by a script, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "hashes.json")
        run = {"env": {**environment, "PYTHONPATH": str(tree)}, "cwd": folder, "check": True}
        subprocess.run([sys.executable, script, "--json", out], **run)
        found: dict[str, str] = json.loads(out.read_text())
        return found


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
        old = before / "tests/golden/hashes.py"
        script = old if old.exists() else HERE / "hashes.py"
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
    choice.add_argument("--json", type=Path, metavar="FILE", help="write all hashes to a file")
    options = parser.parse_args()
    if options.write:
        _write()
        return 0
    if options.json:
        _put(options.json, dict(hashes()))
        return 0
    lines = _against(options.against) if options.against else _compare()
    print("\n".join(lines) or "all hashes agree")
    return bool(lines)


if __name__ == "__main__":
    raise SystemExit(main())
