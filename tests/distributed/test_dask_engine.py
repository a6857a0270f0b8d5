"""Partitions in Dask actors: a lost worker changes no bit of a model, and every wait ends."""

import pickle
import re
import shutil
import subprocess
import threading
import time
from contextlib import closing, contextmanager
from functools import partial

import numpy as np
import pytest
from partitioned import contents, fit_dask

import pboost as pb
import pboost.dask
from pboost.distributed import dask_engine
from pboost.distributed.dask_engine import DaskEngine, Shards
from pboost.distributed.graph_partitions import Shard

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

pytestmark = [  # from distributed itself
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
    ),
]
RNG = np.random.default_rng(2)
N = 240
X = RNG.normal(size=(N, 4))
Y = (X[:, 0] > RNG.normal(size=N)).astype(int)
OPTIONS = {"n_estimators": 6, "observation": pb.observation.adatree2()}


def started(n_workers, **options):
    options = {"threads_per_worker": 1, "processes": False, "dashboard_address": ":0"} | options
    return distributed.LocalCluster(n_workers=n_workers, **options)


@pytest.fixture(scope="module")
def cluster():
    with started(3) as actual:
        yield actual


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as actual:
        yield actual


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    model = pb.fit_adaboost(pb.data.bin_columns(X), Y, **OPTIONS)
    return contents(model, tmp_path_factory.mktemp("whole"))


def collections(chunks=80):
    return [da.from_array(a, chunks=(chunks, 4)[: a.ndim]) for a in (X, Y)]


def fitted(chunks=80, **options):
    return fit_dask("fit_adaboost", *collections(chunks), **OPTIONS | options)


@pytest.fixture
def engines(monkeypatch):
    """Return the list to which each engine of a fit is added."""
    actual, made = [], DaskEngine.__init__

    def noted(engine, *given):
        made(engine, *given)
        actual.append(engine)

    monkeypatch.setattr(DaskEngine, "__init__", noted)
    monkeypatch.setattr(dask_engine, "NOTICING", 0.05)
    return actual


def actors(engine):
    return list(dict.fromkeys(engine._actors.values()))


def n_actors(client):
    return sum(client.run(lambda dask_worker: len(dask_worker.state.actors)).values())


def lose(engine, n=1):
    """Have Dask forget the first actors of an engine."""
    before, lost = n_actors(engine._client), actors(engine)[:n]
    for actor in lost:
        actor.future.cancel()
    wait_until(lambda: n_actors(engine._client) == before - len(lost))


def wait_until(condition, limit=10.0):
    until = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


class Rows:
    """A shard whose answers tell its number, and what it has been asked."""

    merge = staticmethod(sum)

    def __init__(self, number, workers):
        self.number, self.workers, self.asked = number, workers, []

    def masses(self, cuts):
        return self.number + 10 * len(cuts)

    def begin(self, *arguments):
        self.asked.append(arguments)

    def history(self):
        return self.number, self.asked

    def fail(self, numbers, error):
        if self.number in numbers:
            raise error
        return self.number


def raises(error):
    raise error


def answered(shards, what):
    return pickle.loads(shards.answer(pickle.dumps([(what, ())])))


class ColumnsOf:
    """Stands for columns of so many cells."""

    def __init__(self, cells):
        self.codes = np.broadcast_to(np.uint8(0), cells)


class CountedRows(Rows):
    def __init__(self, columns, number, workers):
        super().__init__(number, workers)


@contextmanager
def asking(client, n=4, kind=CountedRows):
    """Return an engine of n shards, made of partitions 1, 3, 5, ..."""
    options = {
        2 * k + 1: client.submit(lambda k: (ColumnsOf(10), 2 * k + 1), k, pure=False)
        for k in range(n)
    }
    with closing(DaskEngine(client, options, kind)) as engine:
        yield engine


# What an engine does


def test_answers_are_in_the_order_of_partitions_and_merged_by_worker(client):
    with asking(client, 7) as engine:
        engine.ask("begin", 0)
        assert [number for number, _ in engine.ask("history")] == [1, 3, 5, 7, 9, 11, 13]
        for cuts in ([], ["a"], ["a", "b"], ["a", "b"]):
            actual = engine.masses(cuts)
            assert len(actual) == len(actors(engine)) <= 3
            assert sum(actual) == 49 + 70 * len(cuts)
        assert n_actors(client) == len(actual)
        assert sorted(k for actor in actors(engine) for k in actor.numbers) == [*engine._given]
    wait_until(lambda: n_actors(client) == 0)


def test_an_actor_is_made_on_the_worker_that_has_its_partitions(client):
    places = sorted(client.scheduler_info(n_workers=-1)["workers"])
    options = {
        k: client.submit(lambda k: (ColumnsOf(10), k), k, workers=[places[k % 2]], pure=False)
        for k in range(6)
    }
    with closing(DaskEngine(client, options, CountedRows)) as engine:
        engine.ask("history")
        assert {tuple(actor.numbers): actor.address for actor in actors(engine)} == {
            (0, 2, 4): places[0],
            (1, 3, 5): places[1],
        }


@pytest.fixture
def sent(monkeypatch):
    """Return the list of the questions that are sent."""
    actual, answer = [], Shards.answer

    def noted(shards, questions):
        actual.append(pickle.loads(questions))
        return answer(shards, questions)

    monkeypatch.setattr(Shards, "answer", noted)
    return actual


def test_only_new_cuts_are_sent_and_all_to_a_new_actor(client, engines, sent):
    with asking(client, 1) as engine:
        engine.ask("begin", 5)
        cuts = ["a"]
        engine.masses(cuts)
        cuts.append("b")
        engine.masses(cuts)
        assert sent == [
            [("begin", (5,))],
            [("masses", (0, ["a"]))],
            [("masses", (1, ["b"]))],
        ]
        lose(engine)
        del sent[:]
        cuts.append("c")  # nobody has been asked for it
        assert engine.ask("history") == [(1, [(5,)])]
        assert sent[-1] == [("begin", (5,)), ("masses", (0, ["a", "b"])), ("history", ())]
        lose(engine)
        assert engine.masses(cuts) == [31]
        assert sent[-1] == [("begin", (5,)), ("masses", (0, ["a", "b", "c"]))]
        lose(engine)
        engine.ask("begin", 6)
        assert sent[-1] == [("begin", (6,))]
        assert engine.masses(["z"]) == [11]


def test_shards_take_the_threads_of_their_worker_if_they_are_large():
    cells = dask_engine.MIN_CELLS
    for n_threads, sizes, want in ((4, [10, 10], 1), (4, [cells, cells], 2), (2, [9 * cells], 2)):
        given = [(ColumnsOf(size), k) for k, size in enumerate(sizes)]
        shards = Shards(pb.__version__, CountedRows, n_threads, [*range(len(sizes))], given)
        assert answered(shards, "history")[0] == "found"
        assert {shard.workers.n_threads for shard in shards._shards} == {want}


def test_clients_that_do_not_reach_workers_go_through_the_scheduler(cluster, whole, tmp_path):
    with distributed.Client(cluster, direct_to_workers=False) as client:
        rpc, client.rpc = client.rpc, None
        try:
            with asking(client) as engine:
                assert engine.ask("fail", [], None) == [1, 3, 5, 7]
        finally:
            client.rpc = rpc


# What shards raise


class OddError(Exception):
    """Its pickle cannot be read."""

    def __init__(self, one, two):
        super().__init__(one)


def test_errors_of_shards_name_the_partition(client):
    with asking(client) as engine:
        with pytest.raises(
            RuntimeError, match=r"partition 3: 'fail' failed on .*: KeyError: 7"
        ) as e:
            engine.ask("fail", [3, 5, 7], KeyError(7))
        assert isinstance(e.value.__cause__, KeyError)
        assert engine.ask("fail", [], None) == [1, 3, 5, 7]
        with pytest.raises(RuntimeError, match=r"partition 1: 'nothing' failed .*: AttributeErr"):
            engine.ask("nothing")


def test_errors_that_cannot_be_pickled_come_as_text():
    class LocalError(Exception):
        pass

    for error in (LocalError("why"), OddError("why", 2)):
        shards = Shards(pb.__version__, CountedRows, 1, [4], [(ColumnsOf(1), 4)])
        shards._load()
        shards._shards[0].history = partial(raises, error)
        assert answered(shards, "history") == ("error", (4, f"{type(error).__name__}: why", None))
        shards._shards[0].history = lambda: lambda: 1
        kind, actual = answered(shards, "history")
        assert (kind, actual[0]) == ("error", 4)
        assert "pickle" in actual[1]
    assert dask_engine._unpickled(b"none") is None


def test_errors_while_shards_are_made_name_the_partition(client):
    class Broken(CountedRows):
        def __init__(self, columns, number, workers):
            raise MemoryError(number)

    with (
        asking(client, kind=Broken) as engine,
        pytest.raises(RuntimeError, match=r"partition 1: 'history' failed .* MemoryError: 1"),
    ):
        engine.ask("history")


def test_another_release_on_a_worker_is_refused(client, monkeypatch):
    with asking(client) as engine:
        monkeypatch.setattr(dask_engine, "RELEASE", "0.1")
        monkeypatch.setattr(dask_engine, "check_version", lambda version: 1 / 0)
        with pytest.raises(RuntimeError, match=r"partition 1: 'history' failed .* ZeroDivisionE"):
            engine.ask("history")
    monkeypatch.undo()
    with pytest.raises(
        RuntimeError, match=rf"got 0\.1 on the client and {pb.__version__} on a worker"
    ):
        dask_engine.check_version("0.1")


def failing(number):
    if number == 2:
        raise OSError("no such file")
    return Y[80 * number : 80 * number + 80]


def test_a_partition_whose_task_raises_is_named(client):
    parts = [
        da.from_delayed(dask.delayed(failing)(k), shape=(80,), dtype=Y.dtype) for k in range(3)
    ]
    with pytest.raises(
        RuntimeError, match="partition 2: the task failed with OSError: no such"
    ) as e:
        fit_dask("fit_adaboost", collections()[0], da.concatenate(parts))
    assert isinstance(e.value.__cause__, OSError)


# What is lost


def test_lost_actors_cost_time_and_nothing_else(client, whole, tmp_path, engines):
    def cut(step, record):
        if step in (1, 4, 5):
            lose(engines[0], step - 2)

    assert contents(fitted(callback=cut), tmp_path) == whole


@pytest.mark.parametrize("what", ["extent", "begin", "masses"])
@pytest.mark.parametrize("is_answered", [False, True])
def test_actors_may_be_lost_in_every_phase(
    client, whole, what, is_answered, tmp_path, monkeypatch, engines
):
    call, broken = DaskEngine._call, []

    async def breaks(engine, actor, asked, arguments):
        actual = await call(engine, actor, asked, arguments) if is_answered else None
        if asked == what and len(broken) < 2:
            broken.append(asked)
            raise OSError("the connection is lost")
        return actual or await call(engine, actor, asked, arguments)

    monkeypatch.setattr(DaskEngine, "_call", breaks)
    assert contents(fitted(), tmp_path) == whole
    assert broken == [what] * 2


def test_the_third_loss_in_a_row_ends_the_fit(client, engines, monkeypatch):
    call, lost = DaskEngine._call, []

    async def breaks(engine, actor, asked, arguments):
        if 3 in actor.numbers and asked == "history" and (len(lost) < 2 or lost[-1] == "all"):
            lost.append("all" if lost[-1:] == ["all"] else "some")
            raise OSError("the worker is gone")
        return await call(engine, actor, asked, arguments)

    monkeypatch.setattr(DaskEngine, "_call", breaks)
    with asking(client) as engine:
        assert len(engine.ask("history")) == 4  # two losses
        lost.append("all")
        with pytest.raises(
            RuntimeError,
            match=r"partition \d: its worker was lost 3 times .* 'history'; .* gone\. If .* small",
        ) as e:
            engine.ask("history")
        assert isinstance(e.value.__cause__, OSError)
    assert lost.count("some") == 2
    assert lost.count("all") == 4
    wait_until(lambda: n_actors(client) == 0)


def test_a_worker_may_leave(whole, tmp_path):
    with started(2) as cluster, distributed.Client(cluster) as client:

        def leave(step, record):
            if step == 3:
                cluster.sync(cluster.workers[0].close, nanny=False)

        assert contents(fitted(callback=leave), tmp_path) == whole
        assert len(client.scheduler_info()["workers"]) == 1


def test_workers_may_be_retired_or_scaled_down(whole, tmp_path, engines):
    """Dask retires no worker that holds actors, but closes it when the cluster gets smaller."""
    with started(3) as cluster, distributed.Client(cluster) as client:

        def fewer(step, record):
            if step == 2:
                assert client.retire_workers([actor.address for actor in actors(engines[0])]) == {}
            if step == 3:
                cluster.scale(1)
                wait_until(lambda: len(client.nthreads()) == 1)

        assert contents(fitted(60, callback=fewer), tmp_path) == whole
        wait_until(lambda: n_actors(client) == 0)
        assert len(client.nthreads()) == 1


def test_two_fits_at_once(client, whole, tmp_path):
    actual = []

    def fit(k):
        with client.as_current():
            (tmp_path / str(k)).mkdir()
            actual.append(contents(fitted(chunks=60 + k), tmp_path / str(k)))

    threads = [threading.Thread(target=fit, args=[k]) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert actual == [whole] * 2


# What ends a fit


def test_an_actor_that_does_not_answer_counts_as_lost(client, monkeypatch, engines):
    monkeypatch.setattr(dask_engine, "PATIENCE", 0.2)
    slow = []

    def history(shard):
        if len(slow) < n_slow:
            slow.append(shard.number)
            time.sleep(0.5)
        return shard.number

    monkeypatch.setattr(CountedRows, "history", history)
    for n_slow in (1, 9):
        with asking(client, 1) as engine:
            if n_slow == 1:
                assert engine.ask("history") == [1]
                assert len(engine._late) == 1
                continue
            with pytest.raises(RuntimeError, match=r"lost 3 times .* no reply within 0\.2 sec"):
                engine.ask("history")


def test_a_cluster_without_workers(whole, tmp_path, monkeypatch, engines):
    """Workers that the cluster has given up do not come back unless it is told to start some."""
    n_new = 0
    with started(1) as cluster, distributed.Client(cluster) as client:

        def leave(step, record):
            if step == 3:
                cluster.scale(0)
                wait_until(lambda: not client.nthreads())
                cluster.scale(n_new)

        with monkeypatch.context() as patch:
            patch.setattr(dask_engine, "PATIENCE", 0.3)
            for _ in range(2):  # during a round, and while partitions are read
                with pytest.raises(RuntimeError, match=r"has had no workers for 0\.3 seconds; st"):
                    fitted(callback=leave)
        cluster.scale(1)
        n_new = 2
        assert contents(fitted(callback=leave), tmp_path) == whole


def test_a_client_that_is_closed_ends_the_fit(cluster, monkeypatch):
    client = distributed.Client(cluster)
    with pytest.raises(RuntimeError, match="the Dask client is closed while 'masses' is computed"):
        fitted(callback=lambda step, record: client.close())
    client = distributed.Client(cluster)
    masses = Shard.masses

    def slow(shard, cuts):
        time.sleep(0.1)
        return masses(shard, cuts)

    monkeypatch.setattr(Shard, "masses", slow)
    monkeypatch.setattr(dask_engine, "LOOKING", 0.05)
    closing = threading.Timer(1.0, client.close)
    closing.start()
    with pytest.raises(RuntimeError, match="the Dask client is clos"):
        fitted(n_estimators=1000)
    closing.join()


def test_cancelled_partitions(client, engines):
    """Dask cancels an actor with the partitions it has been made of."""

    def cancel(step, record):
        [*engines[0]._given.values()][1].cancel()

    with pytest.raises(RuntimeError, match="partition 1: the task was cancelled; fit again"):
        fitted(n_estimators=1000, callback=cancel)


@pytest.mark.parametrize("error", [KeyboardInterrupt, KeyError])
def test_actors_are_released_after_an_error(client, error):
    seen = []

    def end(step, record):
        seen.append(n_actors(client))
        raise error

    with pytest.raises(error):
        fitted(callback=end)
    assert seen[0] > 0
    wait_until(lambda: n_actors(client) == 0)
    fitted(n_estimators=1)
    wait_until(lambda: n_actors(client) == 0)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no certificate can be made")
def test_a_cluster_that_uses_tls(tmp_path, whole):
    key, certificate = (str(tmp_path / name) for name in ("key", "certificate"))
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test"]
    command += ["-days", "1", "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    security = distributed.Security(
        tls_ca_file=certificate,
        require_encryption=True,
        **{
            f"tls_{who}_{what}": path
            for who in ("client", "scheduler", "worker")
            for what, path in (("key", key), ("cert", certificate))
        },
    )
    addresses = []
    with (
        started(2, protocol="tls", security=security) as cluster,
        distributed.Client(cluster, security=security) as client,
    ):
        model = fitted(callback=lambda step, record: addresses.extend(client.nthreads()))
        assert contents(model, tmp_path) == whole
    assert all(re.match("tls://", address) for address in addresses)
