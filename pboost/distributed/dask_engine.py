"""Partitions on the workers of a Dask cluster, held by one Dask actor per worker.

The client communicates with each actor over its own Dask connection, which stays open during the
fit, because a method call of a Dask actor takes twice as long. If an actor is lost with its worker,
it is created again on another worker and receives the log of commands.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import pickle
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from pboost.data.row_source import RELEASE
from pboost.threads import MIN_CELLS, Workers
from pboost.values import install_hint

T = TypeVar("T")

#: Timeout in seconds for a reply of an actor, for a new actor, and for a cluster without workers.
PATIENCE = 600.0
#: Seconds between two checks that the workers, the actors and the client are alive.
LOOKING = 0.5
#: Seconds to wait for the scheduler to notice the loss of a worker.
NOTICING = 5.0
#: If a reply took less than this many seconds, the worker computes the next one in its event loop,
#: because a separate thread costs 0.4 ms.
BRIEF = 0.02
#: Name of the handler `converse` in the workers.
CONVERSE = "pboost-answers"
#: The fit fails if a partition is lost this many times in a row without a reply.
MOST_LOSSES = 3


def dask_module(name: str) -> Any:
    """Import a module of Dask, or raise an ImportError that contains the name of the extra."""
    try:
        return importlib.import_module(name)
    except ImportError:
        hint = install_hint("dask", '"dask[array,dataframe]" distributed')
        raise ImportError(f"pboost.dask: Dask is not installed; {hint}") from None


def check_version(version: str) -> None:
    """Raise a RuntimeError if this worker and the client have different versions of pboost."""
    if version != RELEASE:
        raise RuntimeError(
            f"expected the same version of pboost on all workers, got {version} on the client and "
            f"{RELEASE} on a worker; install the same version everywhere"
        )


def gathered(client: Any, futures: Mapping[Any, Any]) -> list[Any]:
    """Return the results of tasks, or raise the error of the first task that failed.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    futures : mapping to distributed.Future
        The tasks. A key is the number of a partition or a text that describes the task.

    Raises
    ------
    TypeError, ValueError
        Error of the first task that failed, if its message contains the number of the partition.
    RuntimeError
        If a task failed with another error or was cancelled, if the client is closed, or if the
        cluster has no workers.
    """

    async def gather() -> Any:
        await _finished(futures)
        return await client.gather([*futures.values()], asynchronous=True)

    return list(_run(client, _with_workers(client, gather()), "partitions are read"))


def _run(client: Any, work: Coroutine[Any, Any, T], doing: str) -> T:
    """Run a coroutine in the event loop of the client and return its result."""
    if client.status != "running":
        work.close()
        raise _not_running(client, doing)
    task = asyncio.run_coroutine_threadsafe(work, client.loop.asyncio_loop)
    try:
        while True:
            try:
                return task.result(LOOKING)
            except Exception:
                if client.status != "running":
                    raise _not_running(client, doing) from None
                if task.done():
                    raise
    finally:
        task.cancel()


def _not_running(client: Any, doing: str) -> RuntimeError:
    return RuntimeError(
        f"the Dask client is {client.status} while {doing}; keep it open during a fit"
    )


async def _with_workers(client: Any, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine. Raise a RuntimeError if the cluster has no workers."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait([task], timeout=min(LOOKING, PATIENCE)))[0]:
            await _workers(client)
        return task.result()
    finally:
        task.cancel()


async def _workers(client: Any) -> dict[str, int]:
    """Wait for a worker, and return the number of threads of each worker by address."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not (threads := await client.scheduler.ncores()):
                await asyncio.sleep(min(LOOKING, PATIENCE))
    except TimeoutError:
        raise RuntimeError(
            f"the Dask cluster has had no workers for {PATIENCE:g} seconds; start workers, for "
            "example with cluster.scale(2), and fit again"
        ) from None
    return dict(threads)


async def _finished(futures: Mapping[Any, Any]) -> None:
    """Wait for tasks and raise the first error, see `gathered`."""
    for key, future in futures.items():
        error = await future.exception()
        name = f"partition {key}" if isinstance(key, int) else key
        if error is not None:
            if isinstance(error, TypeError | ValueError) and name in str(error):
                raise error
            raise RuntimeError(
                f"{name}: the task failed with {type(error).__name__}: {error}"
            ) from error
        if future.status == "cancelled":
            raise RuntimeError(f"{name}: the task was cancelled; fit again")


class Shards:
    """The partitions of one worker, managed by a Dask actor of this class.

    Parameters
    ----------
    version : str
        Version of pboost on the client.
    kind : class
        Class of the objects that represent partitions.
    n_threads : int
        Number of threads of the worker.
    numbers : list of int
        Numbers of the partitions.
    inputs : list of tuple
        Arguments of the class for each partition, except the last argument, a `Workers`.
    """

    def __init__(
        self,
        version: str,
        kind: type[Any],
        n_threads: int,
        numbers: Sequence[int],
        inputs: Sequence[tuple[Any, ...]],
    ) -> None:
        self._version, self._kind, self._n_threads = version, kind, n_threads
        self._numbers, self._given, self._number = numbers, list(inputs), numbers[0]
        self._shards, self._cuts = list[Any](), list[Any]()
        self._workers = Workers(1)

    def answer(self, pickled: bytes) -> bytes:
        """Execute requests in order and return the result of the last one.

        Requests and replies are bytes, which Dask sends without its own serialization.

        Parameters
        ----------
        pickled : bytes
            Pickled sequence of pairs of a method and its arguments. The arguments of `masses` are
            the number of commands that the actor already has, and the new commands.

        Returns
        -------
        bytes
            Pickle of "found" and the results for all partitions, or of "error", the partition, the
            message and the pickled exception. The results of `masses` are merged into one.
        """
        try:
            if self._given:
                self._load()
            results: list[Any] = []
            with self._workers:  # the threads end after the requests
                for what, arguments in pickle.loads(pickled):
                    results = self._answer(what, arguments)
            return pickle.dumps(("found", results), protocol=5)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            return pickle.dumps(("error", (self._number, text, _pickled(error))))

    def _load(self) -> None:
        check_version(self._version)
        cells = sum(inputs[0].codes.size for inputs in self._given)
        n_threads = max(1, min(self._n_threads, cells // MIN_CELLS))
        self._workers, self._shards = Workers(n_threads), []
        for number, inputs in zip(self._numbers, self._given, strict=True):
            self._number = number
            self._shards.append(self._kind(*inputs, self._workers))
        self._given = []

    def _answer(self, what: str, arguments: tuple[Any, ...]) -> list[Any]:
        is_merged = what == "masses"
        if is_merged:
            first, new = arguments
            self._cuts[first:] = new
            arguments = (self._cuts,)
        answers = []
        for number, shard in zip(self._numbers, self._shards, strict=True):
            self._number = number
            answers.append(getattr(shard, what)(*arguments))
        return [self._shards[0].merge(answers)] if is_merged else answers


async def converse(comm: Any, worker: Any, key: str) -> None:
    """Handle the requests to an actor until the connection is closed.

    Parameters
    ----------
    comm : distributed.comm.Comm
        The connection. A message has the argument of `Shards.answer` and a flag, True to run it in
        the event loop.
    worker : distributed.Worker
        This worker.
    key : str
        Key of the actor.
    """
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        while True:
            pickled, is_brief = await comm.read()
            actor = worker.state.actors.get(key)
            if actor is None:  # the actor was released
                break
            if is_brief:
                reply = actor.answer(pickled)
            else:
                reply = await loop.run_in_executor(worker.executors["actor"], actor.answer, pickled)
            del actor
            await comm.write(reply)
    comm.abort()


def answering(*arguments: Any) -> Shards:
    """Return a `Shards` object, and register the handler of the worker."""
    worker = dask_module("distributed").get_worker()

    async def answers(comm: Any, key: str) -> None:
        await converse(comm, worker, key)

    worker.handlers.setdefault(CONVERSE, answers)
    return Shards(*arguments)


def _pickled(error: Exception) -> bytes | None:
    """Return the pickle of an exception, or None if it cannot be pickled and unpickled."""
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:
        return None
    return pickled


def _unpickled(pickled: bytes | None) -> BaseException | None:
    try:
        error = None if pickled is None else pickle.loads(pickled)
    except Exception:  # the class may not exist in this process
        return None
    return error if isinstance(error, BaseException) else None


class _Actor:
    """The state of an actor on the client."""

    def __init__(self, future: Any, address: str, numbers: Sequence[int]) -> None:
        self.future, self.address, self.numbers = future, address, numbers
        self.n_cuts, self.is_new = 0, True
        self.comm: Any = None
        self.is_brief = False


class DaskEngine:
    """An engine for partitions on Dask workers. Each worker has one actor.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster. If `direct_to_workers` is False, calls use the scheduler.
    futures : mapping of int to distributed.Future
        Arguments of `kind` for each partition, except the last argument, a `Workers`.
    kind : class
        Class of the objects that represent partitions. Its `masses` takes the whole log of
        commands, and its `merge` adds results.
    """

    def __init__(self, client: Any, futures: Mapping[int, Any], kind: type[Any]) -> None:
        self._client, self._given, self._kind = client, dict(futures), kind
        self.workers = Workers(1)
        self._actors: dict[int, _Actor] = {}
        self._begun: tuple[Any, ...] | None = None
        #: The log passed to the last `masses`, a list that may grow, and its length at that time.
        self._log: tuple[Sequence[Any], int] = ([], 0)
        self._losses = dict.fromkeys(futures, 0)
        #: Addresses of workers that exceeded the timeout.
        self._late: set[str] = set()

    def close(self) -> None:
        """Release the actors and the partitions."""
        actors = [*self._actors.values()]
        comms = [actor.comm for actor in actors if actor.comm is not None]
        if comms and self._client.status == "running":
            self._client.loop.add_callback(lambda: [comm.abort() for comm in comms])
        # Dask frees actors and partitions when their futures are released.
        for future in [actor.future for actor in actors] + [*self._given.values()]:
            future.release()
        self._actors, self._given = {}, {}

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Call the method `what` on every partition. Return the results in partition order.

        Raises
        ------
        RuntimeError
            If the method fails, with its error as the cause; if the client is not running, a task
            was cancelled or failed, the cluster has no workers, or workers are lost repeatedly.
        """
        answers = _run(self._client, self._ask(what, arguments), f"{what!r} is computed")
        if what == "begin":
            self._begun, self._log = arguments, ([], 0)
        by_partition = {
            k: answer for numbers, of in answers for k, answer in zip(numbers, of, strict=True)
        }
        return [by_partition[k] for k in self._given]

    def masses(self, cuts: Sequence[Any]) -> list[Any]:
        """Call the method `masses`, and return one merged result per worker."""
        answers = _run(self._client, self._ask("masses", (cuts,)), "'masses' is computed")
        self._log = cuts, len(cuts)
        return [answer for _, of in answers for answer in of]

    async def _ask(
        self, what: str, arguments: tuple[Any, ...]
    ) -> list[tuple[Sequence[int], list[Any]]]:
        """Return the partitions and results of each actor. Create lost actors again."""
        answered: dict[_Actor, list[Any]] = {}
        while True:
            await self._make_missing(what)
            waiting = {
                asyncio.ensure_future(self._call(actor, what, arguments)): actor
                for actor in dict.fromkeys(self._actors.values())
                if actor not in answered
            }
            if not waiting:
                return [(actor.numbers, reply) for actor, reply in answered.items()]
            try:
                answered |= await self._heard(waiting, what)
            finally:
                for call in waiting:
                    call.cancel()

    async def _heard(
        self, waiting: dict[asyncio.Task[Any], _Actor], what: str
    ) -> dict[_Actor, list[Any]]:
        """Return the replies of actors. Drop actors that are lost or exceed the timeout."""
        replies, failed = dict[_Actor, list[Any]](), list[tuple[Any, ...]]()
        async for call, error in self._ended(waiting):
            actor = waiting[call]
            if error is not None:
                await self._drop(actor, what, error)
                continue
            kind, answer = call.result()
            if kind == "error":
                failed.append((answer, actor.address))
            else:
                replies[actor] = answer
                self._losses |= dict.fromkeys(actor.numbers, 0)
        if failed:
            (number, text, pickled), address = min(failed, key=lambda failure: failure[0][0])
            raise RuntimeError(
                f"partition {number}: {what!r} failed on worker {address}: {text}"
            ) from _unpickled(pickled)
        return replies

    async def _ended(
        self, waiting: dict[asyncio.Task[Any], _Actor]
    ) -> AsyncIterator[tuple[asyncio.Task[Any], BaseException | None]]:
        """Yield each task when it ends or its actor is lost, with the error or None."""
        now = asyncio.get_running_loop().time
        until, pending = now() + PATIENCE, set(waiting)
        while pending:
            done, pending = await asyncio.wait(pending, timeout=min(LOOKING, PATIENCE))
            for task in done:
                yield task, task.exception()
            workers = await _workers(self._client) if pending else {}
            for task in list(pending):
                actor, error = waiting[task], None
                if actor.future.status not in ("pending", "finished"):
                    error = await actor.future.exception() or OSError("its worker was lost")
                elif actor.address not in workers:
                    error = OSError("its worker left the cluster")
                elif now() > until:
                    error = TimeoutError(f"no reply within {PATIENCE:g} seconds")
                if error is not None:
                    pending.discard(task)
                    task.cancel()
                    yield task, error

    async def _call(self, actor: _Actor, what: str, arguments: tuple[Any, ...]) -> Any:
        """Send a request to an actor. A new actor first receives `begin` and the log."""
        questions: list[tuple[str, tuple[Any, ...]]] = []
        n_cuts = actor.n_cuts
        if what != "begin" and actor.is_new and self._begun is not None:
            questions.append(("begin", self._begun))
            cuts, n = self._log
            if n and what != "masses":
                questions.append(("masses", (0, list(cuts[:n]))))
                n_cuts = n
        if what == "begin":
            n_cuts = 0
        elif what == "masses":
            (cuts,) = arguments
            arguments, n_cuts = (n_cuts, list(cuts[n_cuts:])), len(cuts)
        answer = await self._tell(actor, pickle.dumps([*questions, (what, arguments)], protocol=5))
        actor.n_cuts, actor.is_new = n_cuts, False
        return pickle.loads(answer)

    async def _tell(self, actor: _Actor, pickled: bytes) -> bytes:
        """Send bytes to `Shards.answer` of an actor and return the reply."""
        if self._client.direct_to_workers is False:
            return await self._tell_by_scheduler(actor, pickled)
        begun = time.perf_counter()
        try:
            if actor.comm is None:
                connect = dask_module("distributed.comm").connect
                actor.comm = await connect(actor.address, **self._client.connection_args)
                await actor.comm.write({"op": CONVERSE, "key": actor.future.key, "reply": False})
            await actor.comm.write((pickled, actor.is_brief))
            reply: bytes = await actor.comm.read()
        except BaseException:
            if actor.comm is not None:  # ignore the result of a computation that still runs
                actor.comm.abort()
            actor.comm, actor.is_brief = None, False
            raise
        actor.is_brief = time.perf_counter() - begun < BRIEF
        return reply

    async def _tell_by_scheduler(self, actor: _Actor, pickled: bytes) -> bytes:
        """Send bytes to an actor through the scheduler and return the reply."""
        call = {"op": "actor_execute", "actor": actor.future.key, "function": "answer"}
        call |= {"args": [pickled], "kwargs": {}}
        answer = await self._client.scheduler.proxy(worker=actor.address, msg=call)
        if answer["status"] != "OK":
            raise answer["exception"]
        reply: bytes = answer["result"]
        return reply

    async def _remove_if_stopped(self, address: str) -> None:
        """Remove a worker from the scheduler if its process does not respond.

        Otherwise, other workers would wait for the partitions on the stopped worker.
        """
        try:
            async with asyncio.timeout(NOTICING):
                if self._client.direct_to_workers is False:
                    await self._client.scheduler.proxy(worker=address, msg={"op": "identity"})
                else:
                    await self._client.rpc(address).identity()
        except (TimeoutError, OSError):
            reason = f"pboost-no-answer-within-{PATIENCE:g}s"
            await self._client.scheduler.unregister(address=address, stimulus_id=reason)

    async def _drop(self, actor: _Actor, what: str, error: BaseException) -> None:
        """Drop an actor. Raise a RuntimeError if one of its partitions was lost too often."""
        if self._client.status != "running":
            raise _not_running(self._client, f"{what!r} is computed")
        if isinstance(error, TimeoutError):
            self._late.add(actor.address)
            await self._remove_if_stopped(actor.address)
        else:
            # Until the scheduler notices the loss, it lists the lost worker as a holder of data.
            now = asyncio.get_running_loop().time
            until = now() + NOTICING
            while actor.future.status == "finished" and now() < until:
                await asyncio.sleep(LOOKING / 50)
        actor.future.release()
        for number in actor.numbers:
            del self._actors[number]
            self._losses[number] += 1
            if self._losses[number] >= MOST_LOSSES:
                raise RuntimeError(
                    f"partition {number}: its worker was lost {MOST_LOSSES} times in a row during "
                    f"{what!r}; the last worker was {actor.address}: {error}. If workers run out "
                    "of memory, use smaller partitions or larger workers; if the client cannot "
                    "connect to workers, use Client(direct_to_workers=False)"
                ) from error

    async def _make_missing(self, what: str) -> None:
        """Create actors for partitions that have none, on the workers that hold the partitions."""
        while futures := {k: future for k, future in self._given.items() if k not in self._actors}:
            await _with_workers(self._client, _finished(futures))
            threads = await _workers(self._client)
            running = {*await self._client.scheduler.ncores_running()} & {*threads}
            holders = await self._client.scheduler.who_has(keys=[f.key for f in futures.values()])
            usable = sorted(running - self._late) or sorted(running or threads)
            groups: dict[str, list[int]] = {}
            for k in futures:
                having = sorted({*holders.get(futures[k].key, ())} & {*usable})
                groups.setdefault(having[0] if having else usable[k % len(usable)], []).append(k)
            waiting = {}
            for address, numbers in groups.items():
                future = self._client.submit(
                    answering,
                    RELEASE,
                    self._kind,
                    threads[address],
                    numbers,
                    [futures[k] for k in numbers],
                    actor=True,
                    workers=[address],
                    allow_other_workers=False,
                )
                actor = _Actor(future, address, numbers)
                self._actors |= dict.fromkeys(numbers, actor)
                waiting[asyncio.ensure_future(future.exception())] = actor
            async for task, error in self._ended(waiting):
                error = task.result() if error is None else error
                if error is not None:
                    await self._drop(waiting[task], what, error)
