"""Partitions on the workers of a Dask cluster, which are asked over connections of their own.

Dask has the partitions, and runs a task for each that answers for its rows until it is told to
end. Where a worker is lost Dask runs the task again elsewhere; it connects, and takes all cuts.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import secrets
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

from pboost.data.engines import RELEASE
from pboost.growth.channel import MessageError, pack, records_of, unpack
from pboost.growth.shard_processes import answered
from pboost.threads import Workers

#: Seconds for which an answer is waited for, also while Dask runs a task again.
PATIENCE = 600.0
#: How often it is looked whether the cluster has workers, in seconds.
LOOKING = 5.0
#: Seconds for which a connection, and what is said first, are waited for; and for the end.
CONNECTING, ENDING = 30.0, 1.0
#: How often Dask runs a task again whose connection has broken.
RETRIES = 3


def dask_module(name: str) -> Any:
    """Return a module of Dask, ImportError with the extra's name if there is none."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError('pboost.dask needs Dask: pip install "pboost[dask]"') from None


def gathered(client: Any, futures: Sequence[Any]) -> list[Any]:
    """Return the results of tasks, RuntimeError where no worker is there to make them."""
    return list(client.sync(_gathered, client, futures))


async def _gathered(client: Any, futures: Sequence[Any]) -> Any:
    found = asyncio.ensure_future(client.gather(futures, asynchronous=True))
    clock, left = asyncio.get_running_loop().time, 0.0
    try:
        while not (await asyncio.wait([found], timeout=min(LOOKING, PATIENCE)))[0]:
            if await _n_workers(client) != 0:
                left = 0.0
            elif not left:
                left = clock()
            elif clock() - left > PATIENCE:
                raise RuntimeError(
                    f"the cluster of Dask has had no worker for {PATIENCE:g} seconds, while "
                    "partitions are read"
                )
        return found.result()
    finally:
        found.cancel()


async def _n_workers(client: Any) -> int | None:
    """Return the number of workers, None where the scheduler does not say."""
    try:
        async with asyncio.timeout(ENDING):
            return len(await client.scheduler.ncores())
    except (OSError, TimeoutError):
        return None


class Place(NamedTuple):
    """What a task is told: whom to connect to, and for which partition it answers."""

    address: str
    key: bytes
    number: int
    kind: type[Any]
    version: str = RELEASE


class _Line:
    """The connection to what answers for a partition, of which there may be none."""

    def __init__(self, number: int) -> None:
        self.number, self.is_new = number, True
        self.comm: Any = None
        self.n_sent = 0  # cuts
        self.has_come = asyncio.Event()

    def set(self, comm: Any) -> None:
        """Take a new connection in place of the one before."""
        if self.comm is not None:
            self.comm.abort()
        self.comm, self.is_new, self.n_sent = comm, True, 0
        self.has_come.set()

    def drop(self, comm: Any) -> None:
        """Close a connection that has broken."""
        comm.abort()
        if self.comm is comm:
            self.comm = None


class DaskPlaces:
    """An engine whose shards are on workers of Dask.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    given : sequence of distributed.Future
        Arguments of each shard, but for its threads, which are the last.
    kind : class
        What answers for rows; as in `pboost.growth.shard_processes.Processes`.
    """

    def __init__(self, client: Any, given: Sequence[Any], kind: type[Any]) -> None:
        self._client, self._given, self._kind = client, given, kind
        self._key, self._records = secrets.token_bytes(32), records_of(kind)
        self._begun: tuple[Any, ...] | None = None
        self._tasks: list[Any] = []

    def __enter__(self) -> DaskPlaces:
        address = self._client.sync(self._open)
        for k, given in enumerate(self._given):
            place = Place(address, self._key, k, self._kind)
            self._tasks.append(
                self._client.submit(serve, given, place, pure=False, retries=RETRIES)
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(Exception):  # the client may have been closed
            self._client.sync(self._close, callback_timeout=2 * ENDING)
            self._client.cancel(self._tasks)
        self._given, self._tasks = [], []  # workers keep what futures are held of

    async def _open(self) -> str:
        comms, comm = dask_module("distributed.comm"), self._client.scheduler_comm.comm
        scheme = comms.parse_address(comm.peer_address)[0]
        # The interface over which the cluster is reached, and its protocol.
        here = "" if scheme == "inproc" else f"{comms.get_address_host(comm.local_address)}:0"
        self._lines = [_Line(k) for k in range(len(self._given))]
        arguments = self._client.security.get_listen_args("client")
        self._listener = await comms.listen(
            f"{scheme}://{here}", self._welcome, deserialize=False, **arguments
        )
        return str(self._listener.contact_address)

    async def _welcome(self, comm: Any) -> None:
        """Take a connection of who has the key; close any other."""
        try:
            async with asyncio.timeout(CONNECTING):
                number = unpack(await comm.read(), self._key, {})
            self._lines[number].set(comm)
        except Exception:  # whatever a stranger sends
            comm.abort()

    async def _close(self) -> None:
        self._listener.stop()
        await asyncio.gather(*(self._end(line) for line in self._lines))

    async def _end(self, line: _Line) -> None:
        if (comm := line.comm) is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(ENDING):
                    await comm.write(pack(("end", ()), self._key))
                    await comm.close()
            comm.abort()

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Return what a method of every shard returns."""
        found = self._client.sync(self._all, what, arguments)
        if what == "begin":
            self._begun = arguments
        return list(found)

    def masses(self, cuts: Sequence[Any]) -> list[Any]:
        """Return what `masses` returns, of every shard."""
        return list(self._client.sync(self._all, "masses", (cuts,)))

    async def _all(self, what: str, arguments: tuple[Any, ...]) -> list[Any]:
        if self._client.status != "running":
            raise RuntimeError(
                f"the client of Dask is {self._client.status} while {what!r} is asked of partitions"
            )
        return await asyncio.gather(*(self._one(line, what, arguments) for line in self._lines))

    async def _one(self, line: _Line, what: str, arguments: tuple[Any, ...]) -> Any:
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    comm = await self._connected(line)
                    try:
                        return await self._exchange(line, comm, what, arguments)
                    except (OSError, MessageError):
                        line.drop(comm)
        except TimeoutError:
            n_workers = await _n_workers(self._client)
            raise RuntimeError(
                f"partition {line.number} has not answered {what!r} within {PATIENCE:g} seconds"
                + ("; the cluster of Dask has no worker" if n_workers == 0 else "")
            ) from None

    async def _connected(self, line: _Line) -> Any:
        """Return the connection, waiting for Dask to run the task where there is none."""
        while line.comm is None:
            task = self._tasks[line.number]
            if task.status not in ("pending", "finished"):
                error = await task._exception() if task.status == "error" else None
                raise RuntimeError(
                    f"partition {line.number}: its task is {task.status!r}, and no worker answers "
                    f"for it: {error}"
                ) from error
            line.has_come.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(line.has_come.wait(), 0.1)
        return line.comm

    async def _exchange(self, line: _Line, comm: Any, what: str, arguments: tuple[Any, ...]) -> Any:
        if line.is_new and self._begun is not None and what != "begin":
            await self._said(comm, "begin", self._begun)
        line.is_new = False
        if what == "masses":
            (cuts,) = arguments
            arguments, line.n_sent = (line.n_sent, list(cuts[line.n_sent :])), len(cuts)
        (found,) = await self._said(comm, what, arguments)
        return found

    async def _said(self, comm: Any, what: str, arguments: tuple[Any, ...]) -> list[Any]:
        await comm.write(pack((what, arguments), self._key))
        kind, found = unpack(await comm.read(), self._key, self._records)
        if kind == "error":
            raise RuntimeError(f"a worker could not answer {what!r}: {found}")
        return list(found)


def serve(given: tuple[Any, ...], place: Place) -> None:
    """Answer for the rows of a partition until told to end; what a task of Dask runs."""
    check_version(place.version)
    dask = dask_module("distributed")
    arguments = dask.get_worker().security.get_connection_args("worker")
    dask.secede()  # others may run on this thread's place
    with Workers(1) as workers:
        asyncio.run(_serve([place.kind(*given, workers)], place, workers, arguments))


async def _serve(
    shards: list[Any], place: Place, workers: Workers, arguments: dict[str, Any]
) -> None:
    cuts: list[Any] = []
    records = records_of(place.kind)
    comm = await dask_module("distributed.comm").connect(
        place.address, timeout=CONNECTING, deserialize=False, **arguments
    )
    try:
        await comm.write(pack(place.number, place.key))
        while True:
            what, told = unpack(await comm.read(), place.key, records)
            if what == "end":
                return
            kind, found = answered(shards, cuts, workers, what, told)
            if kind == "error":
                found = f"{type(found).__name__}: {found}"
            await comm.write(pack((kind, found), place.key))
    finally:
        comm.abort()


def check_version(version: str) -> None:
    """Raise RuntimeError where a worker has another release than the one that asks it."""
    if version != RELEASE:
        raise RuntimeError(
            f"expected one release of pboost, but {version} asks a worker that has {RELEASE}"
        )
