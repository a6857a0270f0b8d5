"""How many threads to use, and the one way to use them.

Kernels release the GIL and take a range of features or rows; ranges run on a thread pool that
lives as long as one call, so that nothing has to survive a fork. Results never depend on the
number of threads: masses are summed exactly, everything else is written to disjoint places.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from pboost.checks import check_integer

T = TypeVar("T")

#: Cells (rows times features) below which a second thread costs more than it gains.
MIN_CELLS = 200_000
#: Variables by which users, schedulers and joblib's worker processes limit threads.
ENVIRONMENT = ("PBOOST_NUM_THREADS", "OMP_NUM_THREADS")
#: A whole number, of which only the first counts where OpenMP's list gives one for each level.
WHOLE = re.compile(r"\s*\+?([0-9]{1,18})\s*(?:,.*)?$")


def available_threads() -> int:
    """Return the number of threads this process may use.

    The smallest of the processor affinity, the container's quota and the limits in
    ``PBOOST_NUM_THREADS`` and ``OMP_NUM_THREADS``. A variable that is no whole number from 1 on
    limits nothing.

    Returns
    -------
    int
        At least 1.
    """
    try:
        limit = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        limit = os.cpu_count() or 1
    quota = _container_quota()
    if quota is not None:
        limit = min(limit, quota)
    for name in ENVIRONMENT:
        found = WHOLE.match(os.environ.get(name, ""))
        if found and int(found[1]) > 0:
            limit = min(limit, int(found[1]))
    return max(1, limit)


def _container_quota() -> int | None:
    """Return the processors granted by the control group, rounded up; None without a quota."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else max(1, math.ceil(int(quota) / int(period)))


def is_worth_threads(cells: int) -> bool:
    """Return whether work on `cells` cells may gain from a second thread."""
    return cells >= 2 * MIN_CELLS


def resolve_threads(n_threads: int | None, cells: int) -> int:
    """Return the number of threads for work on `cells` cells.

    Parameters
    ----------
    n_threads : int or None
        The caller's wish; None leaves the choice to this function, which then uses one thread
        inside a worker thread or a worker process, where somebody else already runs in parallel.
    cells : int
        Rows times features of the work at hand.

    Returns
    -------
    int
        At least 1, at most what the process may use.
    """
    if n_threads is None:
        in_worker = (
            threading.current_thread() is not threading.main_thread()
            or multiprocessing.parent_process() is not None
        )
        wish = 1 if in_worker else available_threads()
    else:
        wish = min(check_integer("n_threads", n_threads, least=1), available_threads())
    return max(1, min(wish, cells // MIN_CELLS))


class Workers:
    """Run a function on consecutive ranges, on one or several threads.

    Parameters
    ----------
    n_threads : int
        Number of threads; the calling thread is one of them.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads - 1) if n_threads > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def run(self, work: Callable[[int, int], T], n: int, multiple: int = 1) -> list[T]:
        """Call ``work(start, stop)`` on ranges that cover ``0..n``, one per thread.

        Range borders are multiples of `multiple`. Returns the results in the order of the ranges.
        """
        if self._pool is None or n <= multiple:
            return [work(0, n)]
        step = -(-n // (self.n_threads * multiple)) * multiple
        borders = [*range(0, n, step), n]
        others = [self._pool.submit(work, a, b) for a, b in pairwise(borders[1:])]
        first = work(borders[0], borders[1])
        return [first, *(future.result() for future in others)]

    def run_each(self, work: Callable[[int, int], T], n: int) -> list[T]:
        """Call ``work(i, i + 1)`` for each i below n, each by the first thread that is free."""
        if self._pool is None or n <= 1:
            return [work(i, i + 1) for i in range(n)]
        waiting = deque(range(n))
        found: list[Any] = [None] * n

        def go_on() -> None:
            try:
                while True:
                    try:
                        i = waiting.popleft()
                    except IndexError:
                        return
                    found[i] = work(i, i + 1)
            except BaseException:
                waiting.clear()  # the others end, too
                raise

        others = [self._pool.submit(go_on) for _ in range(min(self.n_threads, n) - 1)]
        go_on()
        for future in others:
            future.result()
        return found
