"""Fits on Dask collections: the bytes of the fit on one table, whatever is lost meanwhile."""

import re
import textwrap
from contextlib import nullcontext
from functools import partial
from itertools import takewhile
from pathlib import Path

import numpy as np
import pytest
from partitioned import contents, fit_dask

import pboost as pb
import pboost.dask
from pboost.data.columns import sampled_bin_edges as sampled_edges
from pboost.distributed import partition_tasks as tasks
from pboost.distributed import partitions
from pboost.distributed.dask_engine import dask_module

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
OPTIONS = {"n_estimators": 6, "observation": pb.observation.adatree2()}


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
    with started(3) as actual:
        yield actual


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as actual:
        yield actual


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    model = pb.fit_adaboost(pb.data.bin_columns(X), Y, sample_weight=WEIGHT, **OPTIONS)
    return contents(model, tmp_path_factory.mktemp("whole"))


def collections(chunks):
    return [da.from_array(a, chunks=(chunks, 4)[: a.ndim]) for a in (X, Y, WEIGHT)]


def fitted(chunks=80, **options):
    columns, labels, weight = collections(chunks)
    return fit_dask("fit_adaboost", columns, labels, sample_weight=weight, **OPTIONS | options)


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
    model = fit_dask("fit_adaboost", frame, labels, **OPTIONS)
    local = pb.fit_adaboost(
        pb.data.bin_columns(pd.DataFrame(X, columns=names)), np.where(Y, "yes", "no"), **OPTIONS
    )
    assert contents(model, tmp_path) == contents(local, tmp_path)
    predicted = pb.dask.predict(model, frame)
    here = predicted.compute()
    assert here.dtype == predicted.dtype
    np.testing.assert_array_equal(here.to_numpy(), pb.predict(local, X))
    columns, labels, weight = collections(80)
    columns, labels, weight = (a[da.ones(N, chunks=80) > 0] for a in (columns, labels, weight))
    assert np.isnan(columns.shape[0])
    model = fit_dask("fit_adaboost", columns, labels, sample_weight=weight, **OPTIONS)
    assert contents(model, tmp_path) == whole


def test_edges_from_a_part_of_the_rows(client, tmp_path, monkeypatch):
    for module in (partitions, tasks, sampled_edges):
        monkeypatch.setattr(module, "SAMPLE_ROWS", 60)
    for max_bins in (5, 256):
        bins = pb.data.bin_columns(X, max_bins=max_bins)
        local = pb.fit_adaboost(bins, Y, **OPTIONS)
        columns, labels, _ = collections(70)
        model = fit_dask("fit_adaboost", columns, labels, max_bins=max_bins, **OPTIONS)
        assert contents(model, tmp_path) == contents(local, tmp_path)


def test_rows_that_are_held_out(client, tmp_path):
    held = X[:70] + 0.1, Y[70:140]
    columns, labels, weight = collections(80)
    for builder, size in (
        ("fit_adaboost", {"n_estimators": 6}),
        ("fit_boosted_tree", {"max_nodes": 3}),
        ("fit_gradient_boosting", {"n_estimators": 3, "max_depth": 2}),
    ):
        options = {"validation": held, "n_iter_no_change": 2, "sample_weight": WEIGHT, **size}
        local = getattr(pb, builder)(pb.data.bin_columns(X), Y, **options)
        fit = partial(fit_dask, builder)
        model = fit(columns, labels, **options | {"sample_weight": weight})
        assert contents(model, tmp_path) == contents(local, tmp_path)
        share = {"validation": 0.2, "rng": 0, **size}
        full = getattr(pb, builder)(pb.data.bin_columns(X, keep_values=True), Y, **share)
        model = fit(columns, labels, keep_values=True, **share)
        assert contents(model, tmp_path) == contents(full, tmp_path)
        with pytest.raises(ValueError, match="n_iter_no_change: expected None without validation"):
            fit(columns, labels, n_iter_no_change=2)


def test_a_grid_as_the_page_has_it(client, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "how_to" / "dask.rst"
    if not page.exists():
        pytest.skip("no docs/ beside tests/")
    blocks = page.read_text("utf-8").split(".. code-block:: python\n")
    (block,) = (item for item in blocks if "client.map(" in item)
    lines = takewhile(lambda line: not line or line.startswith(" "), block.splitlines())
    code = textwrap.dedent("\n".join(lines))
    monkeypatch.setattr(distributed, "Client", lambda: nullcontext(client))
    actual = {"__name__": "__main__"}
    exec(compile(code, str(page), "exec"), actual)
    assert len(actual["losses"]) == 4
    for value, loss in zip(actual["grid"], actual["losses"], strict=True):
        assert loss == actual["score"](value, (actual["X"], actual["y"]))
    assert actual["best"] in actual["grid"]


def test_predictions_are_lazy(client):
    model = pb.fit_adaboost(X, Y, n_estimators=3)
    columns = da.from_array(X, chunks=((100, 0, 140), (3, 1)))
    predicted = pb.dask.predict(model, columns)
    assert predicted.shape == (N,)
    assert predicted.dtype == model.classes.dtype
    np.testing.assert_array_equal(predicted.compute(), pb.predict(model, X))
    frame = dd.from_pandas(pd.DataFrame(X, index=np.arange(N) + 7), npartitions=2)
    numbers = pb.fit_gradient_boosting(
        X, np.nan_to_num(X[:, 1]), loss="squared_error", n_estimators=3
    )
    series = pb.dask.predict(numbers, frame[frame[1] > 1.0])
    assert series.compute().index.min() >= 7
    assert series.dtype == float


def test_another_release_is_refused_before_work_begins(client, monkeypatch):
    monkeypatch.setattr("pboost.distributed.dask_rows.RELEASE", "0.1")
    with pytest.raises(RuntimeError, match=r"same version of pboost .*got 0\.1 on the client"):
        fitted()


def changed(what):
    columns, labels, weight = collections(80)
    fewer = da.from_array(Y, chunks=120)
    return {
        "rows": ((X, labels), {}, TypeError, "X: expected a Dask array or data frame, got ndarray"),
        "labels here": ((columns, Y), {}, TypeError, "y: expected a Dask array or data frame"),
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
        "one class": ((columns, labels * 0), {}, ValueError, "expected at least two classes"),
        "NaN": ((columns, labels + np.nan), {}, ValueError, ": y: missing label in row 0"),
        "infinity": ((columns + np.inf, labels), {}, ValueError, ": X: "),
        "no rows": (
            (columns[:0], labels[:0]),
            {},
            ValueError,
            "at least one row, all partitions are empty",
        ),
        "weak": (
            (columns, labels),
            {"weak_learner": pb.weak.affine()},
            NotImplementedError,
            "weak.stump",
        ),
        "bins": ((columns, labels), {"max_bins": 1}, ValueError, "max_bins"),
        "unknown": ((columns, labels), {"num_boost_round": 5}, TypeError, "n_estimators"),
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
        fit_dask("fit_adaboost", *arguments, **options)


def test_other_columns_in_a_partition_are_refused(client):
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=2)
    other = frame.map_partitions(
        lambda part: part.rename(columns={"a": "z"}) if part.index[0] else part,
        meta=frame._meta,
        enforce_metadata=False,
    )
    labels = dd.from_pandas(pd.Series(Y), npartitions=2)
    with pytest.raises(ValueError, match=r"column names of partition 0 .* in partition 1"):
        fit_dask("fit_adaboost", other, labels)
    words = frame.map_partitions(
        lambda part: part.assign(a=np.resize(["x", "y"], len(part))) if part.index[0] else part,
        meta=frame._meta,
        enforce_metadata=False,
    )
    with pytest.raises(TypeError, match="numbers without categories in partition 0 and text in"):
        fit_dask("fit_adaboost", words, labels)


def test_without_a_client(client, monkeypatch):
    client.close()
    with pytest.raises((ValueError, RuntimeError), match="expected a running Dask client"):
        fitted()


def test_without_dask(monkeypatch):
    with pytest.raises(ImportError, match=re.escape('pip install "pboosting[dask]"')):
        dask_module("distributed.no_such_module")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Dask's, of pandas
def test_frames_that_were_split_after_they_were_read(client, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=Y)
    dd.from_pandas(frame, npartitions=4).to_parquet(tmp_path / "table")
    read = dd.read_parquet(tmp_path / "table")
    rows = pb.dask.rows(read.drop(columns="y"), read["y"])
    full_model = pb.fit_adaboost(pb.data.bin_columns(frame.drop(columns="y")), Y, **OPTIONS)
    assert contents(pb.fit_adaboost(rows, **OPTIONS), tmp_path) == contents(full_model, tmp_path)


def test_lists_of_delayed_tables(client, whole, tmp_path):
    delayed = pytest.importorskip("dask").delayed
    cuts = [70, 70, 200]
    parts = [[delayed(part) for part in np.split(a, cuts)] for a in (X, Y, WEIGHT)]
    model = fit_dask("fit_adaboost", *parts[:2], sample_weight=parts[2], **OPTIONS)
    assert contents(model, tmp_path) == whole
    with pytest.raises(
        TypeError, match=r"X: expected a list of delayed values, got ndarray in partition 0"
    ):
        pb.dask.rows([X], [Y])
    with pytest.raises(ValueError, match="y: expected 4 partitions, as in X, got 3"):
        pb.dask.rows(parts[0], parts[1][1:])


def test_probabilities_and_decision_values_are_lazy(client):
    columns, _, _ = collections(100)
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    for y in (Y, np.arange(N) % 3):
        model = pb.fit_adaboost(X, y, n_estimators=3)
        for name in ("predict_proba", "decision_function"):
            lazy, here = getattr(pb.dask, name), getattr(pb, name)(model, X)
            actual = lazy(model, columns)
            assert actual.shape == here.shape
            np.testing.assert_array_equal(actual.compute(), here)
            table = lazy(model, frame).compute()
            np.testing.assert_array_equal(table.to_numpy(), here)
            assert list(table.index) == list(range(N))
    assert list(pb.dask.predict_proba(model, frame).columns) == [0, 1, 2]
    numbers = pb.fit_cart(X, Y * 1.5, task="regression", max_depth=2, missing="learn")
    with pytest.raises(TypeError, match="expected a classifier"):
        pb.dask.predict_proba(numbers, columns)
