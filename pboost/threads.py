"""Choose the number of threads, and run functions on several threads.

Kernels release the GIL and process a range of features or rows. Ranges run on a thread pool that
exists during one call, so a fork is safe. Results are independent of the number of threads and of
the ranges, because sums of weights are exact and each range writes to separate memory.

Ranges are short, because Python handles Ctrl-C between ranges. It raises KeyboardInterrupt in the
main thread; the other threads of the call then stop at their next `check_stop`.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pboost._core.team import Team
from pboost.values import INT32_MAX, check_integer, shown

if TYPE_CHECKING:  # importing it is slow
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
Flag = NDArray[np.int32]

#: Number of cells (rows times features) below which a second thread does not save time.
MIN_CELLS = 200_000
#: Number of cells processed between checks for signals. This takes some hundredths of a second.
CELLS_PER_CALL = 4_000_000
#: Environment variables that users, schedulers and joblib set to limit the number of threads.
ENVIRONMENT = ("PBOOST_NUM_THREADS", "OMP_NUM_THREADS")
#: Pattern of an integer. OpenMP also allows a list, but only its first number is used.
WHOLE = re.compile(r"\s*\+?([0-9]{1,18})\s*(?:,.*)?$")


def available_threads() -> int:
    """Return the number of threads that this process may use.

    The result is the minimum of the available processors, the CPU quota of the container, and the
    limits in the environment variables ``PBOOST_NUM_THREADS`` and ``OMP_NUM_THREADS``. Variables
    that are not positive integers are ignored. In a browser, which cannot start threads, the
    result is 1.

    Returns
    -------
    int
        At least 1.
    """
    if sys.platform == "emscripten":
        return 1
    try:
        limit = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        limit = os.cpu_count() or 1
    quota = _container_quota()
    if quota is not None:
        limit = min(limit, quota)
    for name in ENVIRONMENT:
        match = WHOLE.match(os.environ.get(name, ""))
        if match and int(match[1]) > 0:
            limit = min(limit, int(match[1]))
    return max(1, limit)


def _container_quota() -> int | None:
    """Return the CPU quota of the control group, rounded up, or None without a quota."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else max(1, math.ceil(int(quota) / int(period)))


def resolve_threads(n_threads: int | None, cells: int) -> int:
    """Return the number of threads for an amount of work.

    Parameters
    ----------
    n_threads : int or None
        The requested number; -1 uses all threads. With None, the number depends on the amount of
        work. It is 1 in a worker thread or process, because the caller already runs in parallel.
    cells : int
        Rows times features to process.

    Returns
    -------
    int
        At least 1, and at most `available_threads`.
    """
    worth = max(1, cells // MIN_CELLS)
    if n_threads is not None:
        worth = min(_asked(n_threads), worth)
    elif worth > 1 and (
        threading.current_thread() is not threading.main_thread()
        or multiprocessing.parent_process() is not None
    ):
        worth = 1
    # `available_threads` takes as long as a boosting round on a few thousand rows.
    return worth if worth == 1 else min(worth, available_threads())


def _asked(n_threads: object) -> int:
    """Check the requested number of threads, and replace -1 by a large number."""
    try:
        return check_integer("n_threads", n_threads, min_value=1)
    except ValueError:
        if n_threads == -1:
            return INT32_MAX
        raise ValueError(
            "n_threads: expected an integer >= 1, -1 for all available threads, or None, "
            f"got {shown(n_threads)}"
        ) from None


class _CallState(threading.local):
    """The stop flag of the call that the current thread works for."""

    stop: Flag | None = None


_here = _CallState()


def check_stop() -> None:
    """Raise InterruptedError if the thread must stop. Long loops call this function regularly."""
    stop = _here.stop
    if stop is not None and stop[0]:
        raise InterruptedError("the call that this thread works for has ended")


class Workers:
    """Run a function on consecutive ranges, on one or several threads.

    If an exception such as KeyboardInterrupt ends the ``with`` block, the other threads stop at
    their next `check_stop` and are joined. An exception while threads are started or joined can
    leave threads running. The object can be used in several ``with`` statements.

    Parameters
    ----------
    n_threads : int or None
        Number of threads; the calling thread is one of them.
    cells : int, optional
        Rows times features to process. If given, `resolve_threads` determines the number of
        threads from it and `n_threads`.
    """

    def __init__(self, n_threads: int | None, cells: int | None = None) -> None:
        self._cells = cells or 0
        if n_threads is None or cells is not None:
            n_threads = resolve_threads(n_threads, self._cells)
        self.n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None
        self._team: Team | None = None
        self._helpers: list[threading.Thread] = []
        self._process = os.getpid()
        self._stop = self._stop_here()

    def _stop_here(self) -> Flag | None:
        # A single thread inside another call stops together with that call.
        return _here.stop if self.n_threads == 1 else None

    @property
    def stop(self) -> Flag:
        """Flag of shape (1,) that compiled code reads. It is nonzero if the threads must stop."""
        if self._stop is None:  # created on demand
            self._stop = np.zeros(1, dtype=np.int32)
        return self._stop

    @property
    def team(self) -> int:
        """The address of a `Team` of helper threads for compiled code, or 0 with one thread.

        The helpers start on first use and end with the ``with`` statement. A forked process has
        no helpers.
        """
        if self.n_threads == 1 or os.getpid() != self._process:
            return 0
        if self._team is None:
            team = Team(self.n_threads)
            self._team = team  # set first, so that __exit__ stops the helpers in any case
            for who in range(1, self.n_threads):
                helper = threading.Thread(target=team.serve, args=(who,), daemon=True)
                self._helpers.append(helper)
                helper.start()
        return self._team.address

    @property
    def helped(self) -> int:
        """Number of times that helper threads have taken part in compiled work."""
        return 0 if self._team is None else sum(self._team.joined)

    def is_for(self, n_threads: int | None) -> bool:
        """Return whether `n_threads` would result in the same number of threads."""
        return self.n_threads == resolve_threads(n_threads, self._cells)

    def __enter__(self) -> Workers:
        self._stop = self._stop_here()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._team is not None:
            self._team.stop()
            for helper in self._helpers:
                if helper.is_alive():
                    helper.join()
            self._team, self._helpers = None, []
        if self._pool is not None:
            pool, self._pool = self._pool, None
            self.stop[0] = error is not None
            try:
                pool.shutdown(wait=True, cancel_futures=True)
            except BaseException:  # for example Ctrl-C
                self.stop[0] = True
                raise

    def run(
        self, work: Callable[[int, int], T], n: int, multiple: int = 1, cells: int = 1
    ) -> list[T]:
        """Call ``work(start, stop)`` on ranges that cover ``0..n`` and return the results in order.

        Range bounds are multiples of `multiple`. `cells` is the cost of one item. If possible, a
        range costs at most `CELLS_PER_CALL`. A small amount of work is divided into one range per
        thread.
        """
        share = -(-n // (self.n_threads * multiple))
        calls = -(-share * multiple * cells // CELLS_PER_CALL)
        step = -(-share // max(calls, 1)) * multiple
        if n <= step:
            check_stop()
            return [work(0, n)]
        return self._each(work, [*range(0, n, step), n])

    def run_shared(
        self, work: Callable[[int, int, int], T], n: int, multiple: int = 1, cells: int = 1
    ) -> list[T]:
        """Call ``work(start, stop, team)``, a kernel that divides its range among the threads.

        The calls run one after another. Each thread gets at least `multiple` items.
        """
        team = self.team
        per_call = CELLS_PER_CALL * self.n_threads // (cells * multiple)
        step = max(self.n_threads, per_call) * multiple
        results = []
        for start in range(0, n, step):
            check_stop()
            results.append(work(start, min(n, start + step), team))
        return results

    def run_each(self, work: Callable[[int, int], T], n: int) -> list[T]:
        """Call ``work(i, i + 1)`` for i = 0, ..., n - 1, each on the next free thread."""
        return self._each(work, range(n + 1))

    def _each(self, work: Callable[[int, int], T], borders: Sequence[int]) -> list[T]:
        """Call `work` for each range between two borders, each on the next free thread."""
        ranges = [*pairwise(borders)]
        waiting = deque(enumerate(ranges))
        results: list[Any] = [None] * len(ranges)

        def go_on() -> None:
            try:
                while True:
                    check_stop()
                    try:
                        i, (start, stop) = waiting.popleft()
                    except IndexError:
                        return
                    results[i] = work(start, stop)
            except BaseException:
                waiting.clear()  # stops the other threads
                raise

        def in_pool() -> None:
            _here.stop = flag
            go_on()

        others = []
        if self.n_threads > 1:
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(self.n_threads - 1)
            flag = self.stop
            helpers = min(self.n_threads, len(ranges)) - 1
            others = [self._pool.submit(copy_context().run, in_pool) for _ in range(helpers)]
        go_on()
        for future in others:
            future.result()
        return results


def run_ranges(
    work: Callable[[int, int], T],
    n: int,
    multiple: int = 1,
    cells: int = 1,
    total: int | None = None,
) -> list[T]:
    """Call ``work(start, stop)`` on ranges that cover ``0..n``; see `Workers.run`.

    The number of threads depends on the number of cells `total`, by default ``n * cells``.
    """
    total = n * cells if total is None else total
    if total < 2 * MIN_CELLS and (n + multiple) * cells <= CELLS_PER_CALL:  # no threads needed
        check_stop()
        return [work(0, n)]
    with Workers(None, total) as workers:
        return workers.run(work, n, multiple, cells)
