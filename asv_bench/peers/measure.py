"""Clocks and memory of one process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a call: seconds, and the peak memory above the start, in MB."""

    wall: float
    cpu: float
    peak_mb: float | None = None


def run(function: Callable[[], Any], memory: bool = False) -> tuple[Cost, Any]:
    """Call a function; return its cost and its result."""
    gc.collect()
    before = _reset_peak() if memory else None
    wall, cpu = time.perf_counter(), time.process_time()
    value = function()
    cost = (time.perf_counter() - wall, time.process_time() - cpu)
    peak = None if before is None else (_status("VmHWM") - before) / 1e6
    return Cost(*cost, peak), value


def _status(key: str) -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(key)


def _reset_peak() -> int | None:
    """Reset the recorded memory peak; return None if the system does not support it."""
    try:
        CLEAR.write_text("5")
        return _status("VmRSS")
    except (OSError, KeyError):
        return None
