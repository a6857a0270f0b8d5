"""Damage folders of columns at random: each is refused with a sentence, or gives a model.

    python tests/damaged_folders.py --count 100000 --jobs 2

Files are cut, lengthened, exchanged, removed and changed in some bytes; or arrays and the header
are changed and digested anew, as an attacker would do. A folder whose digests are as
they were must be refused or hold what it held. Cases run in processes of their own, so that a crash
or a hang is reported with its number; ``--case N`` runs one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import pboost as pb
from pboost.data.columns.columns import BinnedValues
from pboost.data.on_disk.column_folder import HEADER, _digest

#: Cases of a process, and the seconds that it has for each: of a processor, which a busy machine
#: may have little of, and in all.
BLOCK, PATIENCE, WAITING = 500, 20, 600
NUMBERS = (0, 1, -1, 2, 255, 256, 2**15, 2**31 - 1, -(2**31), 2**31, 2**62, -(2**63), 2**63 - 1)
REALS = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324)
VALUES = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    10**30,
    1.5,
    "",
    "x",
    "\x00",
    [],
    {},
    [1, 2],
    ["a", "a"],
    [[]],
)
#: What the head of an array, or all of the header, may be that asks for more than there is.
HEADS = (
    b"(10000000000000,)",
    b"(3, 10000000000000)",
    b"(-1,)",
    b"[" * 5000,
    b"(" * 5000 + b"1,)",
    b"(9223372036854775807,)",
    b"(" + b"1, " * 70 + b")",
    b"(True, )",
    b"(2**62,)",
)
TEXTS = (
    b"[" * 100_000,
    b'{"":' * 50_000,
    b"[0]",
    b"[" + b"{}," * 100_000 + b"0]",
    b"\xff",
    b'"',
)
#: Bytes of address space of a process; a folder has some kilobytes.
MEMORY = 4 << 30
DTYPES = ("<f8", "<f4", "<i4", "<i8", "|i1", "|u1", "|b1", ">f8", "<U3", "|S2", "<c16", "<u8")


def make(where: Path) -> list[Path]:
    """Write folders of several kinds; returns them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.where(np.nan_to_num(X[:, 0]) > rng.normal(size=60), "yes", "no")
    weight = rng.integers(0, 3, 60)
    import pandas as pd

    words = pd.DataFrame({"word": rng.choice(["a", "b", "c"], 60), "number": X[:, 1]})
    arguments = {
        "holes": ([(X[:30], y[:30]), (X[30:], y[30:])], {}),
        "weights": (
            [(X[:9], y[:9], weight[:9]), (X[9:], y[9:], weight[9:])],
            {"bin_edges": "exact"},
        ),
        "numbers": ([(np.nan_to_num(X), rng.integers(0, 3, 60))], {"max_bins": 5}),
        "words": ([(words, y)], {}),
        "values": ([(X[:30], y[:30]), (X[30:], y[30:])], {"keep_values": True}),
        "values of words": ([(words, y, weight)], {"keep_values": True}),
    }
    for name, (batches, options) in arguments.items():
        pb.data.bin_files(batches, where / name, **options)
    return [where / name for name in arguments]


def signed(folder: Path, header: dict, changed: set[str]) -> None:
    """Have the header speak of the files as they are."""
    for name in changed & set(header["arrays"]):
        path, text = folder / f"{name}.npy", header["arrays"][name]
        content = path.read_bytes()
        if isinstance(text, dict):
            text["bytes"], text["sha256"] = len(content), hashlib.sha256(content).hexdigest()
    header["digest"] = _digest(header)
    (folder / HEADER).write_text(json.dumps(header))


def change_bytes(folder: Path, rng: np.random.Generator) -> None:
    """Do to a file what a disk, or a careless hand, may do."""
    files = sorted(folder.iterdir())
    path = files[rng.integers(len(files))]
    content, what = bytearray(path.read_bytes()), rng.integers(6)
    at = int(rng.integers(len(content) + 1))
    if what == 0:
        for _ in range(rng.integers(1, 9)):
            content[rng.integers(len(content))] = rng.integers(256)
    elif what == 1:
        del content[at:]
    elif what == 2:
        content[at:at] = rng.bytes(rng.integers(1, 99))
    elif what == 3:
        content = bytearray(files[rng.integers(len(files))].read_bytes())
    elif what == 4:
        content = bytearray(rng.bytes(len(content)))
    else:
        path.unlink()
        return
    path.write_bytes(content)


def change_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return an array that somebody else would have written."""
    array, what = array.copy(), rng.integers(5)
    if what == 0 and array.size and array.dtype.kind in "iuf":
        values = REALS if array.dtype.kind == "f" else NUMBERS
        with np.errstate(all="ignore"):
            for _ in range(rng.integers(1, 4)):
                first = np.array([values[rng.integers(len(values))]]).astype(array.dtype)
                array.reshape(-1)[rng.integers(array.size)] = first[0]
    elif what == 1:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = array.astype(DTYPES[rng.integers(len(DTYPES))])
    elif what == 2:
        array = array[: rng.integers(len(array) + 1)] if array.ndim else array[None]
    elif what == 3:
        array = np.concatenate([array, array]) if array.ndim else array.reshape(1, 1)
    else:
        array = array.reshape(-1) if rng.random() < 0.5 else array.reshape((*array.shape, 1))
    return array


def change_head(path: Path, rng: np.random.Generator) -> None:
    """Have an array say another shape of itself than it has."""
    content = path.read_bytes()
    end = 10 + int.from_bytes(content[8:10], "little")
    head, shape = content[10:end], content[content.index(b"(", 10) : content.index(b")", 10) + 1]
    head = head.replace(shape, HEADS[rng.integers(len(HEADS))])
    path.write_bytes(content[:8] + len(head).to_bytes(2, "little") + head + content[end:])


def lengthen(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return words, one of which is long."""
    words = array.tolist()
    if words and array.dtype.kind == "U":
        words[rng.integers(len(words))] = "z" * int(rng.choice([300, 100_000]))
    return np.array(words) if array.dtype.kind == "U" else array


def change_signed(folder: Path, rng: np.random.Generator) -> None:
    """Change arrays, or the header, and digest them anew."""
    header = json.loads((folder / HEADER).read_text())
    name = sorted(header["arrays"])[rng.integers(len(header["arrays"]))]
    said = header["arrays"][name]
    what = rng.integers(8)
    if what == 7 and rng.random() < 0.3:
        (folder / HEADER).write_bytes(TEXTS[rng.integers(len(TEXTS))])
        return
    if what >= 5:
        name = ("classes", "category_text")[rng.integers(2)] if what == 6 else name
        said = header["arrays"].get(name, {})
        if what == 6 and said:
            array = lengthen(np.load(folder / f"{name}.npy"), rng)
            np.save(folder / f"{name}.npy", array)
            said["dtype"], said["shape"] = array.dtype.str, list(array.shape)
        elif said:
            change_head(folder / f"{name}.npy", rng)
    elif what <= 2:
        path = folder / f"{name}.npy"
        try:
            array = change_array(np.load(path), rng)
        except (TypeError, ValueError):  # no such array of words
            array = np.zeros(3)
        np.save(path, array)
        if what:
            said["dtype"], said["shape"] = array.dtype.str, list(array.shape)
    elif what == 3:
        of = (header, header["arrays"], said)[rng.integers(3)]
        of[sorted(of)[rng.integers(len(of))]] = VALUES[rng.integers(len(VALUES))]
    else:
        of = (header, header["arrays"], said)[rng.integers(3)]
        del of[sorted(of)[rng.integers(len(of))]]
    if isinstance(header.get("arrays"), dict):
        signed(folder, header, {name})
    else:
        (folder / HEADER).write_text(json.dumps(header | {"digest": _digest(header)}))


def what_it_holds(folder: Path, check: bool) -> tuple[bytes, ...]:
    """Return the content of a folder as bytes, and of models fitted to it."""
    columns, y, weight = pb.data.open_columns(folder, check=check)
    for fit in (
        lambda: pb.fit_adaboost(
            columns,
            y,
            sample_weight=weight,
            n_estimators=2,
            observation=pb.observation.gaussian(0.5),
        ),
        lambda: pb.fit_probit_tree(columns, y, sample_weight=weight, max_depth=1, max_iter=2),
        lambda: pb.fit_cart(columns, y, sample_weight=weight, max_depth=3),
        lambda: pb.fit_adaboost(columns, y, sample_weight=weight, n_estimators=3),
        lambda: pb.fit_gradient_boosting(
            columns, y, sample_weight=weight, n_estimators=2, loss="log_loss"
        ),
    ):
        try:
            fit()
        except ValueError:  # of one label, or of three; which the message says
            continue
        except TypeError as error:
            if "without values" not in str(error):
                raise
    held = [columns.codes, columns.n_bins, columns.lower, columns.upper, np.asarray(y)]
    if weight is not None:
        held.append(weight)
    if isinstance(columns, BinnedValues):
        held.append(columns.source)
    return tuple(part.tobytes() for part in held)


def run_case(folders: list[Path], held: dict[Path, tuple[bytes, ...]], case: int) -> str:
    """Run a case; returns what came of it, "refused" or "opened", or what is wrong."""
    rng = np.random.default_rng(case)
    full = folders[rng.integers(len(folders))]
    is_signed, check = rng.random() < 0.5, bool(rng.random() < 0.5)
    folder = full.parent / "case"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(full, folder)
    for _ in range(rng.integers(1, 3)):
        try:
            (change_signed if is_signed else change_bytes)(folder, rng)
        except Exception:
            break  # it is too damaged to be changed once more
    try:
        actual = what_it_holds(folder, check)
    except (pb.data.FolderError, OSError) as error:
        return "refused" if str(error) else "refused without a word"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if not is_signed and check and actual != held[full]:
        return "opened, and holds something else"
    return "opened"


def run(first: int, count: int) -> int:
    """Run cases; prints the number of each before it begins, and what is wrong."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    wrong = 0
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=shared) as where:
        folders = make(Path(where))
        held = {folder: what_it_holds(folder, True) for folder in folders}
        tally = {"refused": 0, "opened": 0}
        for case in range(first, first + count):
            if hasattr(signal, "setitimer"):  # either ends the process
                signal.setitimer(signal.ITIMER_PROF, PATIENCE)
                signal.alarm(WAITING)
            print(f"at {case}", flush=True)
            actual = run_case(folders, held, case)
            if actual in tally:
                tally[actual] += 1
            else:
                wrong += 1
                print(f"wrong: case {case}: {actual}", flush=True)
        print(f"done {tally['refused']} {tally['opened']}", flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--case", type=int)
    parser.add_argument("--block", nargs=2, type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.block:
        run(*given.block)
        return 0
    if given.case is not None:
        return run(given.case, 1)
    waiting = [
        (first, min(BLOCK, given.first + given.count - first))
        for first in range(given.first, given.first + given.count, BLOCK)
    ]
    wrong = refused = opened = 0
    while waiting:
        some, waiting = waiting[: given.jobs], waiting[given.jobs :]
        children = [
            subprocess.Popen(
                [sys.executable, __file__, "--block", *map(str, block)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for block in some
        ]
        for child, (first, count) in zip(children, some, strict=True):
            lines = child.communicate()[0].splitlines()
            for line in lines:
                if line.startswith("wrong"):
                    wrong += 1
                    print(line, flush=True)
            if child.returncode or not lines or not lines[-1].startswith("done"):
                if not any(line.startswith("at ") for line in lines):
                    raise RuntimeError("\n".join(lines[-30:]))
                at = [int(line.split()[1]) for line in lines if line.startswith("at ")]
                last = at[-1] if at else first
                wrong += 1
                print(
                    f"case {last}: the process ended with {child.returncode}",
                    *lines[-30:],
                    sep="\n",
                    flush=True,
                )
                if last + 1 < first + count:
                    waiting.insert(0, (last + 1, first + count - last - 1))
                continue
            more = lines[-1].split()
            refused, opened = refused + int(more[1]), opened + int(more[2])
    print(f"{given.count} folders: {refused} refused, {opened} opened, {wrong} findings")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
