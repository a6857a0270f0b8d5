"""How many threads to use, and the one way to use them.

Kernels release the GIL and take a range of features or rows; ranges run on a thread pool that
lives as long as one call, so that nothing has to survive a fork. Results never depend on the
number of threads, nor on how the ranges are cut: masses are summed exactly, everything else is
written to disjoint places.

Ranges are short, for Ctrl-C to be noticed between them. Python raises it in the main thread only;
the other threads of a call then end at their next `check_stop`.
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

if TYPE_CHECKING:  # not at import: it is slow
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
Flag = NDArray[np.int32]

#: Cells (rows times features) below which a second thread costs more than it gains.
MIN_CELLS = 200_000
#: Cells that compiled code works on between looks at signals: a few hundredths of a second.
CELLS_PER_CALL = 4_000_000
#: Variables by which users, schedulers and joblib's worker processes limit threads.
ENVIRONMENT = ("PBOOST_NUM_THREADS", "OMP_NUM_THREADS")
#: A whole number, of which only the first counts where OpenMP's list gives one for each level.
WHOLE = re.compile(r"\s*\+?([0-9]{1,18})\s*(?:,.*)?$")


def available_threads() -> int:
    """Return the number of threads this process may use.

    The smallest of the processor affinity, the container's quota and the limits in
    ``PBOOST_NUM_THREADS`` and ``OMP_NUM_THREADS``. A variable that is no whole number from 1 on
    limits nothing. In a browser, where no thread can be started, 1.

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
    """Return the processors granted by the control group, rounded up; None without a quota."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else max(1, math.ceil(int(quota) / int(period)))


def resolve_threads(n_threads: int | None, cells: int) -> int:
    """Return the number of threads for work on `cells` cells.

    Parameters
    ----------
    n_threads : int or None
        The caller's wish, -1 for all; None leaves the choice to this function, which then uses one
        thread inside a worker thread or a worker process, where somebody else already runs in
        parallel.
    cells : int
        Rows times features of the work at hand.

    Returns
    -------
    int
        At least 1, at most what the process may use.
    """
    worth = max(1, cells // MIN_CELLS)
    if n_threads is not None:
        worth = min(_asked(n_threads), worth)
    elif worth > 1 and (
        threading.current_thread() is not threading.main_thread()
        or multiprocessing.parent_process() is not None
    ):
        worth = 1
    # Asking the system takes as long as a round of boosting on a few thousand rows.
    return worth if worth == 1 else min(worth, available_threads())


def _asked(n_threads: object) -> int:
    """Return the number of threads that a caller wishes, where -1 is any."""
    try:
        return check_integer("n_threads", n_threads, min_value=1)
    except ValueError:
        if n_threads == -1:
            return INT32_MAX
        raise ValueError(
            "n_threads: expected an integer of 1 or more, -1 for all available threads, or None, "
            f"got {shown(n_threads)}"
        ) from None


class _CallState(threading.local):
    """What a thread knows of the call that it works for."""

    stop: Flag | None = None


_here = _CallState()


def check_stop() -> None:
    """Raise InterruptedError in a thread of a call that is to end; loops that last look here."""
    stop = _here.stop
    if stop is not None and stop[0]:
        raise InterruptedError("the call that this thread works for has ended")


class Workers:
    """Run a function on consecutive ranges, on one or several threads.

    Where the body of ``with`` is left by an exception, as Ctrl-C is in the main thread, the other
    threads end at their next `check_stop`, in whatever they are doing, and are waited for, but not
    where Ctrl-C comes while one is being started or waited for. The body can be entered again;
    threads are started when there is work for them.

    Parameters
    ----------
    n_threads : int or None
        Number of threads; the calling thread is one of them.
    cells : int, optional
        Rows times features of the work at hand: `n_threads` is then the caller's wish, of which
        `resolve_threads` makes a number.
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
        # Alone in a thread of another call, it ends with that.
        return _here.stop if self.n_threads == 1 else None

    @property
    def stop(self) -> Flag:
        """Not 0 once the threads are to end, (1,): for compiled code that looks by itself."""
        if self._stop is None:  # few ask
            self._stop = np.zeros(1, dtype=np.int32)
        return self._stop

    @property
    def team(self) -> int:
        """The address of a `Team` whose helpers wait for compiled work; 0 for one thread.

        They are made when they are first asked for, and are gone with the ``with``. A process that
        has been forked has none.
        """
        if self.n_threads == 1 or os.getpid() != self._process:
            return 0
        if self._team is None:
            team = Team(self.n_threads)
            self._team = team  # from here on they are told to leave, however far this comes
            for who in range(1, self.n_threads):
                helper = threading.Thread(target=team.serve, args=(who,), daemon=True)
                self._helpers.append(helper)
                helper.start()
        return self._team.address

    @property
    def helped(self) -> int:
        """How often helpers have found compiled work."""
        return 0 if self._team is None else sum(self._team.joined)

    def is_for(self, n_threads: int | None) -> bool:
        """Return whether a caller's wish gives as many threads for the same work."""
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
            except BaseException:  # Ctrl-C while they are waited for
                self.stop[0] = True
                raise

    def run(
        self, work: Callable[[int, int], T], n: int, multiple: int = 1, cells: int = 1
    ) -> list[T]:
        """Call ``work(start, stop)`` on ranges that cover ``0..n``; returns the results in order.

        Range borders are multiples of `multiple`. `cells` is what one of the n costs, in units of
        some nanoseconds: a range has `CELLS_PER_CALL` of them at most, if it can be cut at all.
        What is small is one range per thread.
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
        """Call ``work(start, stop, team)``, a kernel that the team shares, as `run` does.

        A range is for all threads, one after another: each has `multiple` of it at least.
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
        """Call ``work(i, i + 1)`` for each i below n, each by the first thread that is free."""
        return self._each(work, range(n + 1))

    def _each(self, work: Callable[[int, int], T], borders: Sequence[int]) -> list[T]:
        """Call `work` for each range between borders, each by the first thread that is free."""
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
                waiting.clear()  # the others end, too
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
    """Call ``work(start, stop)`` on ranges that cover ``0..n``, see `Workers.run`.

    On as many threads as work on `total` cells is worth, by default those of the n.
    """
    total = n * cells if total is None else total
    if total < 2 * MIN_CELLS and (n + multiple) * cells <= CELLS_PER_CALL:  # at once
        check_stop()
        return [work(0, n)]
    with Workers(None, total) as workers:
        return workers.run(work, n, multiple, cells)
