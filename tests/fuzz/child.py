"""A process that runs cases one after another, and says which it is at."""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

#: What the parent reads: place of the case at hand (-1: none yet), and number of cases done.
STATE = struct.Struct("<qq")
#: Bytes that a child may ask for, where no sanitizer needs all addresses.
MOST_MEMORY = 4 << 30


@dataclass(frozen=True)
class Task:
    """Cases `start`, `start` + `step`, … below `stop`, or until a time of the clock.

    With a list of `seeds` these are places in the list.
    """

    kind: str
    start: int
    stop: int
    step: int = 1
    until: float = 0.0
    fault: str = ""
    seeds: tuple[int, ...] = ()

    def seed_at(self, place: int) -> int:
        return self.seeds[place] if self.seeds else place

    def to_json(self) -> str:
        return json.dumps(self.__dict__)


def limit_memory() -> None:
    if "LD_PRELOAD" in os.environ or any("SAN_OPTIONS" in name for name in os.environ):
        return
    try:
        import resource
    except ImportError:  # not on every platform
        return
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def say(**said: Any) -> None:
    print(json.dumps(said), flush=True)


def main(task: Task, state_file: str) -> int:
    """Run the cases; findings and, at the end, counts are written to the standard output."""
    faulthandler.enable()
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, all_threads=True)
    limit_memory()
    warnings.simplefilter("error")
    from fuzz import cases, corpus, faults, functions

    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="pboost-fuzz-", dir=memory_folder()) as folder:
        functions.FOLDER = folder
        with open(state_file, "r+b") as file, mmap.mmap(file.fileno(), STATE.size) as state:
            if task.kind == "files":
                corpus.corpus(folder)
            fault = faults.FAULTS[task.fault] if task.fault else None
            if fault:
                fault.apply()
            for done, place in enumerate(range(task.start, task.stop, task.step)):
                if task.until and time.time() > task.until:
                    break
                state[:] = STATE.pack(place, done)
                seed = task.seed_at(place)
                finding = cases.run_case(task.kind, seed, counts)
                if finding is None:
                    continue
                if fault:
                    fault.undo()
                    is_real = cases.run_case(task.kind, seed, Counter()) is None
                    fault.apply()
                    if not is_real:
                        continue
                say(seed=seed, where=finding.where, what=finding.what)
                if fault:
                    break
    say(done=dict(counts))
    return 0


def memory_folder() -> str | None:
    """Return a folder in memory, where there is one: nothing has to outlive the process."""
    return "/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else None


if __name__ == "__main__":
    sys.exit(main(Task(**json.loads(sys.argv[1])), sys.argv[2]))
