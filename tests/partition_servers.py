"""What processes of partitions run in tests, and threads that stand for processes.

What processes run stands in a module that a new process can import, whatever its working directory.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from typing import Any

from pboost.growth import shard_processes


def ended(connection: Connection, version: str) -> None:
    """End without an answer."""
    connection.close()


def begins_to_answer(connection: Connection, version: str) -> None:
    """Say that an answer has a thousand bytes, and send three of them."""
    shard_processes.read(connection)
    os.write(connection.fileno(), (1000).to_bytes(4, "big") + b"abc")
    while connection.recv_bytes():
        pass


class Rows:
    """Rows of which nothing is asked."""

    def __init__(self, rows: Any, workers: Any) -> None:
        if rows is None:
            raise TypeError("no rows")


class ThreadProcess:
    """A thread that is used as a process: `kill` breaks its pipe, whatever it does."""

    def __init__(
        self, context: ThreadContext, target: Callable[..., None], args: Any, daemon: bool
    ) -> None:
        connection, *others = args
        self._connection = Connection(os.dup(connection.fileno()))
        self.sentinel, self._ended = Pipe(duplex=False)
        self.exitcode: int | None = None
        self._thread = threading.Thread(target=self._run, args=[target, others], daemon=True)
        context.processes.append(self)

    def _run(self, target: Callable[..., None], others: Any) -> None:
        with contextlib.suppress(EOFError, OSError):
            target(self._connection, *others)
        self.exitcode = self.exitcode or 0
        self._connection.close()
        self._ended.close()

    def start(self) -> None:
        self._thread.start()

    def kill(self) -> None:
        if self.exitcode is None:
            self.exitcode = -9
            try:
                with socket.socket(fileno=os.dup(self._connection.fileno())) as pipe:
                    pipe.shutdown(socket.SHUT_RDWR)
            except OSError:  # it has ended in between
                pass

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)


class ThreadContext:
    """What `multiprocessing.get_context` returns, with threads for processes."""

    def __init__(self) -> None:
        self.processes: list[ThreadProcess] = []

    def Process(self, target: Callable[..., None], args: Any, daemon: bool) -> ThreadProcess:
        return ThreadProcess(self, shard_processes.serve, args, daemon)

    def Pipe(self) -> Any:
        return multiprocessing.Pipe()

    def running(self) -> list[ThreadProcess]:
        """Return what has not ended, in the order in which it was started."""
        return [process for process in self.processes if process._thread.is_alive()]
