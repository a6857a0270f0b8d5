"""Children that run cases, watched: crashes, hangs and lack of memory are noted."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.child import STATE, Task

#: Seconds after which a case hangs, and bytes beyond which it takes too much.
HANG, MOST_RESIDENT = 20.0, 3 << 30
#: Seconds in which a child has to come to its first case, on a busy machine, too.
START = 60.0
POLL = 0.1
SEEDS = Path(__file__).with_name("seeds.txt")
KNOWN = Path(__file__).with_name("known.txt")


@dataclass(frozen=True)
class Found:
    """A finding: the case, where it was seen and what it is."""

    case: str
    where: str
    what: str

    @property
    def signature(self) -> str:
        """What findings of one cause have in common."""
        text = f"{self.where}: {self.what}"
        text = re.sub(r" \[[^\[]*\]$", "", text)
        return re.sub(r"\d[\d.e+-]*", "#", text)[:160]


@dataclass
class Result:
    """What was run and found."""

    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    found: list[Found] = field(default_factory=list)


class Child:
    """One child process and what is known of it."""

    def __init__(self, task: Task, folder: str, number: int) -> None:
        self.task = task
        self.state = Path(folder) / f"state-{number}"
        self.state.write_bytes(STATE.pack(-1, 0))
        self.errors = Path(folder) / f"errors-{number}"
        self.lines: list[dict[str, Any]] = []
        self.n_taken, self.is_done = 0, False
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    str(Path(__file__).with_name("__main__.py")),
                    "--child",
                    task.to_json(),
                    str(self.state),
                ],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(),
            )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.at, self.since = (-1, -1), time.monotonic()

    def read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                with contextlib.suppress(ValueError):
                    self.lines.append(json.loads(line))

    def place(self) -> tuple[int, int]:
        """Return the place of the case at hand and the number of cases before it."""
        place, done = STATE.unpack(self.state.read_bytes()[: STATE.size])
        return place, done

    def resident(self) -> int:
        """Return the bytes of memory that the child has, 0 where that is not known."""
        try:
            pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    def trouble(self, hang: float) -> str:
        """Return why the child has to be ended, empty if it has not."""
        now, at = time.monotonic(), self.place()
        if at != self.at:
            self.at, self.since = at, now
        if now - self.since > (hang if at[0] >= 0 else max(hang, START)):
            return f"hangs: more than {hang:g} s"
        if self.resident() > MOST_RESIDENT:
            return f"takes more than {MOST_RESIDENT >> 20} MB of memory"
        return ""

    def end(self) -> None:
        """End the process; where it is goes to its standard error."""
        if hasattr(signal, "SIGUSR1"):
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGUSR1)
            time.sleep(0.5)
        self.process.kill()
        self.process.wait()

    def last_words(self) -> str:
        text = self.errors.read_text(errors="replace").strip()
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        telling = [line for line in lines if re.search(r"ERROR|rror:|#\d|File|atal", line)]
        return " | ".join((telling or lines)[:12])[:900]


def environment() -> dict[str, str]:
    actual = dict(os.environ)
    actual.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Undefined behaviour ends the child, so that the case is known.
    actual.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
    return actual


def run(
    task: Task, *, jobs: int = 1, hang: float = HANG, tell: Callable[[Found], None] | None = None
) -> Result:
    """Run the cases of a task in `jobs` processes at a time."""
    result = Result()
    with tempfile.TemporaryDirectory(prefix="pboost-fuzz-") as folder:
        numbers = iter(range(10**9))
        shares = [
            replace(task, start=task.start + k * task.step, step=task.step * jobs)
            for k in range(jobs)
        ]
        running = [Child(share, folder, next(numbers)) for share in shares]
        try:
            while running:
                time.sleep(POLL)
                running = [
                    child
                    for old in running
                    for child in watched(old, hang, result, tell, folder, numbers)
                ]
        finally:
            for child in running:
                child.process.kill()
                child.process.wait()
                child.reader.join(10)
    return result


def watched(
    child: Child,
    hang: float,
    result: Result,
    tell: Callable[[Found], None] | None,
    folder: str,
    numbers: Iterator[int],
) -> list[Child]:
    """Return the child, or the one that goes on after it, or none."""
    trouble = ""
    if child.process.poll() is None:
        trouble = child.trouble(hang)
        if not trouble:
            take_in(child, result, tell)
            return [child]
        child.end()
    child.reader.join(10)
    take_in(child, result, tell)
    place, done = child.place()
    result.cases += done + (place >= 0)
    if child.is_done and not trouble:
        return []
    code = child.process.returncode
    trouble = trouble or f"crash, exit code {code}"
    case = f"{child.task.kind}:{child.task.seed_at(place) if place >= 0 else 'none'}"
    note(result, tell, Found(case, trouble, child.last_words()))
    if place < 0 or child.task.fault:
        return []
    rest = replace(child.task, start=place + child.task.step)
    return [Child(rest, folder, next(numbers))]


def take_in(child: Child, result: Result, tell: Callable[[Found], None] | None) -> None:
    """Take note of what a child has said since the last time."""
    while len(child.lines) > child.n_taken:
        line = child.lines[child.n_taken]
        child.n_taken += 1
        if "seed" in line:
            case = f"{child.task.kind}:{line['seed']}"
            note(result, tell, Found(case, line["where"], line["what"]))
        child.is_done |= "done" in line
        result.counts.update(line.get("done", {}))


def note(result: Result, tell: Callable[[Found], None] | None, found: Found) -> None:
    if any(re.search(pattern, found.signature) for pattern in lines_of(KNOWN)):
        result.counts["known findings"] += 1
        return
    result.found.append(found)
    if tell is not None:
        tell(found)


def kept(kind: str) -> Task:
    """Return the cases that once found something."""
    pairs = (line.split("#")[0].strip().split(":") for line in lines_of(SEEDS))
    seeds = tuple(int(seed) for name, seed in pairs if name == kind)
    return Task(kind, 0, len(seeds), seeds=seeds)


@cache
def lines_of(path: Path) -> list[str]:
    """Return the lines of a list, comments left out."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]
