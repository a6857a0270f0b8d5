"""Fits on Dask collections: the bytes of the fit on one table, whatever is lost meanwhile."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from contextlib import nullcontext, suppress
from itertools import takewhile
from pathlib import Path
from traceback import walk_stack

import numpy as np
import pytest
from partitioned import bin_parts, contents
from pboost.weak.shards import Shard

import pboost as pb
import pboost.dask
from pboost.data import part_bins, part_tasks, sampled_bins
from pboost.growth import answer_tree, channel, dask_places
from pboost.growth.dask_places import DaskPlaces, dask_module

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

pytestmark = [  # of distributed's own
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
    ),
]
RNG = np.random.default_rng(2)
N = 240
X = RNG.normal(size=(N, 4))
X[RNG.random(X.shape) < 0.1] = np.nan
Y = (np.nan_to_num(X[:, 0]) > RNG.normal(size=N)).astype(int)
WEIGHT = RNG.random(N) * (RNG.random(N) > 0.1)
OPTIONS = {"rounds": 6, "observation": pb.observation.adatree2()}


def started(n_workers, **options):
    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=False,
        dashboard_address=":0",
        **options,
    )


@pytest.fixture(scope="module")
def cluster():
    with started(3) as found:
        yield found


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as found:
        yield found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    model = pb.fit_adaboost(pb.bin_columns(X), Y, sample_weight=WEIGHT, **OPTIONS)
    return contents(model, tmp_path_factory.mktemp("whole"))


def collections(chunks):
    return [da.from_array(a, chunks=(chunks, 4)[: a.ndim]) for a in (X, Y, WEIGHT)]


def fitted(chunks=80, **options):
    columns, labels, weight = collections(chunks)
    return pb.dask.fit_adaboost(columns, labels, sample_weight=weight, **OPTIONS | options)


@pytest.mark.parametrize("chunks", [(240,), (100, 0, 140), (48,) * 5, (1,) * 16 + (224,)], ids=len)
def test_partitions_give_the_bytes_of_one_table(client, whole, chunks, tmp_path):
    assert contents(fitted(chunks), tmp_path) == whole


@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_workers_give_the_bytes_of_one_table(n_workers, whole, tmp_path):
    with started(n_workers) as cluster, distributed.Client(cluster):
        assert contents(fitted(), tmp_path) == whole


def test_frames_and_unknown_lengths(client, whole, tmp_path):
    names = list("abcd")
    frame = dd.from_pandas(pd.DataFrame(X, columns=names), npartitions=3)
    labels = dd.from_pandas(pd.Series(np.where(Y, "yes", "no")), npartitions=3)
    model = pb.dask.fit_adaboost(frame, labels, **OPTIONS)
    local = pb.fit_adaboost(
        pb.bin_columns(pd.DataFrame(X, columns=names)), np.where(Y, "yes", "no"), **OPTIONS
    )
    assert contents(model, tmp_path) == contents(local, tmp_path)
    predicted = pb.dask.predict(model, frame)
    here = predicted.compute()
    assert here.dtype == predicted.dtype
    np.testing.assert_array_equal(here.to_numpy(), pb.predict(local, X))
    columns, labels, weight = collections(80)
    columns, labels, weight = (a[da.ones(N, chunks=80) > 0] for a in (columns, labels, weight))
    assert np.isnan(columns.shape[0])
    model = pb.dask.fit_adaboost(columns, labels, sample_weight=weight, **OPTIONS)
    assert contents(model, tmp_path) == whole


def test_edges_from_a_part_of_the_rows(client, tmp_path, monkeypatch):
    for module in (part_bins, part_tasks, sampled_bins):
        if hasattr(module, "SAMPLE_ROWS"):
            monkeypatch.setattr(module, "SAMPLE_ROWS", 60)
    monkeypatch.setattr("pboost.growth.dask_tables.SAMPLE_ROWS", 60)
    for max_bins in (5, 256):
        bins = bin_parts([X], max_bins=max_bins)[0]
        local = pb.fit_adaboost(bins, Y, **OPTIONS)
        columns, labels, _ = collections(70)
        model = pb.dask.fit_adaboost(columns, labels, max_bins=max_bins, **OPTIONS)
        assert contents(model, tmp_path) == contents(local, tmp_path)


def test_rows_that_are_held_out(client, tmp_path):
    held = X[:70] + 0.1, Y[70:140]
    columns, labels, weight = collections(80)
    for builder, size in (
        ("fit_adaboost", {"rounds": 6}),
        ("fit_boosted_tree", {"nodes": 3}),
        ("fit_stagewise", {"steps": 3, "max_depth": 2}),
    ):
        options = {"validation": held, "patience": 2, "sample_weight": WEIGHT, **size}
        local = getattr(pb, builder)(pb.bin_columns(X), Y, **options)
        fit = getattr(pb.dask, builder)
        model = fit(columns, labels, **options | {"sample_weight": weight})
        assert contents(model, tmp_path) == contents(local, tmp_path)
        with pytest.raises(NotImplementedError, match=r"Dask no share is held out; .* got 0\.2"):
            fit(columns, labels, validation=0.2)
        with pytest.raises(TypeError, match=r"validation: expected rows that are here, got a col"):
            fit(columns, labels, validation=(columns, labels))
        with pytest.raises(ValueError, match="patience: expected None without validation"):
            fit(columns, labels, patience=2)


def test_a_grid_as_the_page_has_it(client, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "user" / "scale_out.rst"
    if not page.exists():
        pytest.skip("no docs/ beside tests/")
    blocks = page.read_text("utf-8").split(".. code-block:: python\n")
    (block,) = (one for one in blocks if "client.map(" in one)
    lines = takewhile(lambda line: not line or line.startswith(" "), block.splitlines())
    code = textwrap.dedent("\n".join(lines))
    monkeypatch.setattr(distributed, "Client", lambda: nullcontext(client))
    found = {"__name__": "__main__"}
    exec(compile(code, str(page), "exec"), found)
    assert len(found["found"]) == 4
    for value, seen in zip(found["grid"], found["found"], strict=True):
        here = found["tested"](value, (found["X"], found["y"]))
        np.testing.assert_array_equal(seen.error, here.error)
    assert found["best"] in found["grid"]


def test_predictions_are_lazy(client):
    model = pb.fit_adaboost(X, Y, rounds=3)
    columns = da.from_array(X, chunks=((100, 0, 140), (3, 1)))
    found = pb.dask.predict(model, columns)
    assert found.shape == (N,)
    assert found.dtype == model.labels.dtype
    np.testing.assert_array_equal(found.compute(), pb.predict(model, X))
    frame = dd.from_pandas(pd.DataFrame(X, index=np.arange(N) + 7), npartitions=2)
    numbers = pb.fit_stagewise(X, np.nan_to_num(X[:, 1]), loss="squared", steps=3)
    series = pb.dask.predict(numbers, frame[frame[1] > 1.0])
    assert series.compute().index.min() >= 7
    assert series.dtype == float


def seen(monkeypatch):
    """Return the list to which engines are added that are going to be entered."""
    engines, enter = [], DaskPlaces.__enter__
    monkeypatch.setattr(DaskPlaces, "__enter__", lambda e: engines.append(enter(e)) or engines[-1])
    return engines


def test_a_broken_connection_costs_time_and_nothing_else(client, whole, tmp_path, monkeypatch):
    engines = seen(monkeypatch)

    def cut(step, record):
        if step in (1, 4, 5):
            for line in engines[0].lines[: step - 2]:
                line.connection.close()

    assert contents(fitted(callback=cut), tmp_path) == whole


@pytest.mark.parametrize("what", ["extent", "begin", "masses"])
def test_connections_may_break_in_every_phase(client, whole, what, tmp_path, monkeypatch):
    hear, broken = DaskPlaces._hear, []

    def breaks(engine, line, asked, until):
        if asked == what and len(broken) < 2:
            broken.append(asked)
            line.connection.close()
        return hear(engine, line, asked, until)

    monkeypatch.setattr(DaskPlaces, "_hear", breaks)
    assert contents(fitted(), tmp_path) == whole
    assert broken == [what] * 2


@pytest.fixture
def summed(monkeypatch):
    """Have answers added up in a tree of fan-in 2; return how many answers reach the fit."""
    monkeypatch.setattr(answer_tree, "MOST_DIRECT", 1)
    monkeypatch.setattr(answer_tree, "FAN_IN", 2)
    masses, seen = DaskPlaces.masses, []

    def counted(engine, told):
        found = masses(engine, told)
        seen.append(len(found))
        return found

    monkeypatch.setattr(DaskPlaces, "masses", counted)
    return seen


@pytest.mark.parametrize("n", [4, 5, 7, 13, 40, 101, 111, 1000])
@pytest.mark.parametrize("fan_in", [2, 3, 10])
def test_each_answer_of_a_tree_counts_once(n, fan_in, monkeypatch):
    monkeypatch.setattr(answer_tree, "MOST_DIRECT", 3)
    monkeypatch.setattr(answer_tree, "FAN_IN", fan_in)
    tree = answer_tree.AnswerTree(n, n)
    assert not answer_tree.AnswerTree(n, 3).levels
    heads = [k for k in range(n) if tree.parent[k] is None]
    under = [tree.under(k) for k in heads]
    assert len(heads) <= fan_in
    assert max(map(len, tree.children)) <= fan_in
    assert sum(map(len, under)) == n
    assert set().union(*under) == set(range(n))
    listed = [k for level in tree.levels for k in level]
    assert sorted(listed) == [k for k in range(n) if tree.children[k]]
    for k in listed:
        assert tree.parent[k] is None or listed.index(k) < listed.index(tree.parent[k])


def test_answers_are_added_up_by_places(client, whole, tmp_path, summed, monkeypatch):
    assert contents(fitted((20,) * 12), tmp_path) == whole
    assert set(summed) == {2}
    cart = pb.fit_cart(pb.bin_columns(X), Y, max_depth=2)
    stagewise = pb.fit_stagewise(pb.bin_columns(X), Y, steps=1, max_depth=2)
    columns, labels, _ = collections(60)
    model = pb.dask.fit_cart(columns, labels, max_depth=2)
    assert contents(model, tmp_path) == contents(cart, tmp_path)
    model = pb.dask.fit_stagewise(columns, labels, steps=1, max_depth=2)
    assert contents(model, tmp_path) == contents(stagewise, tmp_path)
    assert set(summed) == {2}


@pytest.mark.parametrize("what", ["lines", "lost", "inbox"])
def test_sums_that_are_lost_are_asked_for_once_more(
    client, whole, what, tmp_path, summed, monkeypatch
):
    engines, rng, send = seen(monkeypatch), np.random.default_rng(0), answer_tree.Adder._send
    broken = []

    def fails(adder, *told):
        if rng.random() < 0.2:
            broken.append(told)
            if what == "inbox":
                adder.close()
                return send(adder, *told)
            return what == "lost"
        return send(adder, *told)

    def cut(step, record):
        lines = [line for line in engines[0].lines if line is not None]
        for k in rng.choice(len(lines), 3) if what == "lines" else ():
            broken.append(k)
            lines[k].connection.close()

    if what != "lines":
        monkeypatch.setattr(answer_tree.Adder, "_send", fails)
        monkeypatch.setattr(answer_tree, "ARRIVING", 0.05)
    assert contents(fitted((30,) * 8, callback=cut), tmp_path) == whole
    assert len(broken) > 2
    assert max(summed) > 2


def test_a_killed_worker_of_many_places(whole, tmp_path, summed):
    """Workers are processes, of which one is killed."""

    def kill(step, record):
        if step == 3:
            os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)

    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        assert contents(fitted((40,) * 6, callback=kill), tmp_path) == whole
    assert 2 in summed


def test_a_worker_may_leave(whole, tmp_path):
    with started(2) as cluster, distributed.Client(cluster) as client:

        def leave(step, record):
            if step == 3:
                cluster.sync(cluster.workers[0].close, nanny=False)

        assert contents(fitted(callback=leave), tmp_path) == whole
        assert len(client.scheduler_info()["workers"]) == 1


def serving():
    """Return how many threads answer for partitions."""
    frames = sys._current_frames().values()
    return sum(
        any(f.f_code is dask_places.serve.__code__ for f, _ in walk_stack(top)) for top in frames
    )


def test_an_interrupted_fit_leaves_no_task():
    begun, seen = [], []

    def interrupt(step, record):
        seen.append(serving() - before)
        begun.append(time.monotonic())
        raise KeyboardInterrupt

    with started(2) as cluster, distributed.Client(cluster):
        before = serving()  # those of other tests may still end
        with pytest.raises(KeyboardInterrupt):
            fitted(callback=interrupt)
        while serving() > before:
            assert time.monotonic() - begun[0] < 2
            time.sleep(0.01)
    assert seen[0] > 0


def test_strangers_are_not_listened_to(client, tmp_path, whole, monkeypatch):
    draw, met, engines = np.random.default_rng(1), [], seen(monkeypatch)

    def meet(step, record):
        for message in (b"", bytes(9), b"\xff" * 8, *map(draw.bytes, (8, 100, 5000))):
            address = engines[0].listener.address
            # It may be closed before all is said.
            with suppress(OSError), socket.create_connection(address, timeout=5) as stranger:
                stranger.sendall(message)
                stranger.shutdown(socket.SHUT_WR)
                met.append(stranger.recv(1))

    assert contents(fitted(callback=meet), tmp_path) == whole
    assert set(met) == {b""}
    with pytest.raises(RuntimeError, match="the fit has ended"):  # or it would wait for ever
        engines[0]._welcome(None, channel.pack((0, None), engines[0]._key))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no certificate can be made")
def test_a_cluster_that_uses_tls(tmp_path, whole, monkeypatch, summed):
    engines = seen(monkeypatch)
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

    said = []

    def knock(step, record):
        """Connect without TLS, of which the other side says something, or closes."""
        with socket.create_connection(engines[0].listener.address) as stranger:
            stranger.sendall(channel.pack((0, None), engines[0]._key))
            with suppress(ConnectionResetError):
                said.append(len(stranger.recv(100)) < 20)  # an alert

    with (
        started(2, protocol="tls", security=security) as cluster,
        distributed.Client(cluster, security=security),
    ):
        assert contents(fitted(callback=knock), tmp_path) == whole
    assert all(said)
    assert set(summed) == {2}


def test_no_wait_is_without_an_end(client, monkeypatch):
    monkeypatch.setattr(dask_places, "PATIENCE", 0.2)
    monkeypatch.setattr(Shard, "extent", lambda shard: time.sleep(0.5))
    with pytest.raises(
        RuntimeError, match=r"partition 0 has not answered 'extent' within 0\.2 sec"
    ):
        fitted()


def test_a_cluster_without_workers(whole, tmp_path, monkeypatch):
    """Workers that the cluster has given up do not come back, unless it is told to start some."""
    engines, n_new = seen(monkeypatch), 0
    with started(1) as cluster, distributed.Client(cluster) as client:

        def leave(step, record):
            if step == 3:
                cluster.scale(0)
                while client.nthreads():
                    time.sleep(0.01)
                for line in engines[-1].lines:
                    line.connection.close()
                cluster.scale(n_new)

        with monkeypatch.context() as patch:
            patch.setattr(dask_places, "PATIENCE", 0.3)
            with pytest.raises(RuntimeError, match=r"'masses' within 0\.3 .*; the cluster"):
                fitted(callback=leave)
            with pytest.raises(RuntimeError, match=r"has had no worker for 0\.3 seconds, wh"):
                fitted()
        cluster.scale(1)
        n_new = 2
        assert contents(fitted(callback=leave), tmp_path) == whole


def test_errors_of_workers_are_raised_here(client, monkeypatch):
    monkeypatch.setattr(Shard, "extent", lambda shard: 1 / 0)
    with pytest.raises(RuntimeError, match="could not answer 'extent': ZeroDivisionError"):
        fitted()


def test_another_release_is_refused_before_work_begins(client, monkeypatch):
    monkeypatch.setattr("pboost.growth.dask_tables.RELEASE", "0.1")
    with pytest.raises(RuntimeError, match=r"one release of pboost, but 0\.1 asks a worker that"):
        fitted()


def changed(what):
    columns, labels, weight = collections(80)
    fewer = da.from_array(Y, chunks=120)
    return {
        "rows": ((X, labels), {}, TypeError, "X: expected a Dask array or frame, got ndarray"),
        "labels here": ((columns, Y), {}, TypeError, "y: expected a Dask array or frame"),
        "vector": ((labels, labels), {}, ValueError, "X: expected 2 dimensions, got 1"),
        "matrix": ((columns, columns), {}, ValueError, "y: expected 1 dimension, got 2"),
        "partitions": ((columns, fewer), {}, ValueError, "y: expected 3 partitions, as in X, got"),
        "lengths": (
            (columns, da.from_array(Y, chunks=((80, 79, 81),))),
            {},
            ValueError,
            ": y: expected 80 labels, one per row of X, got",
        ),
        "weights": (
            (columns, labels),
            {"sample_weight": weight - 1},
            ValueError,
            "sample_weight: expected finite numbers >= 0",
        ),
        "no weight": (
            (columns, labels),
            {"sample_weight": weight * 0},
            ValueError,
            "all are zero",
        ),
        "one class": ((columns, labels * 0), {}, ValueError, "expected two label values"),
        "NaN": ((columns, labels + np.nan), {}, ValueError, ": y: missing label in row 0"),
        "infinity": ((columns + np.inf, labels), {}, ValueError, ": X: "),
        "no rows": ((columns[:0], labels[:0]), {}, ValueError, "got no rows"),
        "weak": ((columns, labels), {"weak": pb.weak.affine()}, NotImplementedError, "weak.stump"),
        "bins": ((columns, labels), {"max_bins": 1}, ValueError, "max_bins"),
        "unknown": ((columns, labels), {"n_estimators": 5}, TypeError, "rounds"),
    }[what]


@pytest.mark.parametrize(
    "what",
    [
        "rows",
        "labels here",
        "vector",
        "matrix",
        "partitions",
        "lengths",
        "weights",
        "no weight",
        "one class",
        "NaN",
        "infinity",
        "no rows",
        "weak",
        "bins",
        "unknown",
    ],
)
def test_what_is_refused(what, client):
    arguments, options, kind, said = changed(what)
    with pytest.raises(kind, match=re.escape(said)):
        pb.dask.fit_adaboost(*arguments, **options)


def test_other_columns_in_a_partition_are_refused(client):
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=2)
    other = frame.map_partitions(
        lambda part: part.rename(columns={"a": "z"}) if part.index[0] else part,
        meta=frame._meta,
        enforce_metadata=False,
    )
    labels = dd.from_pandas(pd.Series(Y), npartitions=2)
    with pytest.raises(ValueError, match="partition 1 names its columns otherwise"):
        pb.dask.fit_adaboost(other, labels)
    words = frame.map_partitions(
        lambda part: part.assign(a=np.resize(["x", "y"], len(part))) if part.index[0] else part,
        meta=frame._meta,
        enforce_metadata=False,
    )
    with pytest.raises(TypeError, match="holds numbers without levels in partition 0, text in"):
        pb.dask.fit_adaboost(words, labels)


def test_without_a_client(client, monkeypatch):
    client.close()
    with pytest.raises((ValueError, RuntimeError), match="expected a client of Dask"):
        fitted()


def test_a_client_that_is_closed_ends_the_fit(cluster):
    client = distributed.Client(cluster)
    with pytest.raises(RuntimeError, match="the client of Dask is closed while 'masses' is asked"):
        fitted(callback=lambda step, record: client.close())


def test_without_dask(monkeypatch):
    with pytest.raises(ImportError, match=re.escape('pip install "pboosting[dask]"')):
        dask_module("distributed.no_such_module")
