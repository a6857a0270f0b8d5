"""Trees of Dask collections: the bytes of the tree of one table, whatever is lost meanwhile."""

import re
from functools import partial

import numpy as np
import pytest
from partitioned import bin_parts, contents, fit_dask

import pboost as pb
import pboost.dask
from pboost.data.columns import sampled_bin_edges as sampled_edges
from pboost.distributed import partition_tasks as tasks
from pboost.distributed import partitions
from pboost.distributed.dask_engine import DaskEngine

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
#: Weights so different that those of nodes are made anew.
WEIGHT = 10.0 ** -RNG.integers(0, 14, N) * (RNG.random(N) > 0.1)
TWO = (np.nan_to_num(X[:, 0]) > RNG.normal(size=N)).astype(int)
#: The builder, y, and options.
FITS = {
    "boosted": ("fit_boosted_tree", TWO, {"max_nodes": 12, "growth": "look_ahead"}),
    "soft": ("fit_boosted_tree", TWO, {"max_nodes": 9, "observation": pb.observation.adatree2()}),
    "nested": ("fit_matryoshka", TWO, {"shape": (3, 3), "join": "all"}),
    "by sign": ("fit_matryoshka", TWO, {"shape": (3, 3), "collect": "sign"}),
    "greedy": (
        "fit_matryoshka",
        TWO,
        {"growth": "greedy", "max_nodes": 8, "observation": pb.observation.flip(0.1)},
    ),
    "sum": (
        "fit_gradient_boosting",
        TWO,
        {"n_estimators": 8, "loss": "log_loss", "growth": "independent"},
    ),
    "sum of numbers": (
        "fit_gradient_boosting",
        TWO + np.nan_to_num(X[:, 2]) * 3,
        {
            "n_estimators": 6,
            "loss": "squared_error",
            "max_features_per_tree": 2,
            "rng": 0,
        },
    ),
    "forest": ("fit_random_forest", TWO, {"n_estimators": 6, "rng": 0, "max_depth": 4}),
    "two labels": ("fit_cart", TWO == 1, {"max_leaf_nodes": 9, "feature_costs": {0: 2.0, 1: 1.0}}),
    "three labels": (
        "fit_cart",
        np.where(X[:, 1] > 0.5, "x", np.where(TWO, "yes", "no")),
        {"max_depth": 4, "criterion": "entropy", "max_features": 2, "rng": 3},
    ),
    "three labels, uncertain": (
        "fit_boosted_tree",
        TWO + (np.nan_to_num(X[:, 2]) > 0),
        {"max_nodes": 6, "observation": pb.observation.adatree2()},
    ),
    "numbers": (
        "fit_cart",
        (TWO + RNG.normal(size=N)) * 1e3,
        {"task": "regression", "min_samples_leaf": 12, "max_depth": 4},
    ),
    "sum of classes, rows held out": (
        "fit_gradient_boosting",
        TWO + (np.nan_to_num(X[:, 2]) > 0),
        {"n_estimators": 3, "validation": 0.3, "rng": 0},
    ),
}


@pytest.fixture(scope="module")
def client():
    options = {"processes": False, "dashboard_address": ":0", "threads_per_worker": 1}
    with (
        distributed.LocalCluster(n_workers=2, **options) as cluster,
        distributed.Client(cluster) as actual,
    ):
        yield actual


def seen(monkeypatch):
    """Return the list to which engines are added."""
    engines, made = [], DaskEngine.__init__

    def noted(engine, *given):
        made(engine, *given)
        engines.append(engine)

    monkeypatch.setattr(DaskEngine, "__init__", noted)
    monkeypatch.setattr("pboost.distributed.dask_engine.NOTICING", 0.05)
    return engines


def lose(engine, n):
    """Have Dask forget the first actors of an engine."""
    for actor in list(dict.fromkeys(engine._actors.values()))[:n]:
        actor.future.cancel()


def arrays(*given, chunks):
    return [da.from_array(a, chunks=(chunks, 4)[: a.ndim]) for a in given]


def whole(name, columns, tmp_path, weight=WEIGHT):
    builder, y, options = FITS[name]
    return contents(getattr(pb, builder)(columns, y, sample_weight=weight, **options), tmp_path)


@pytest.mark.full_for(
    "boosted", "soft", "nested", "by sign", "greedy", "gaussian *", "sum*", "forest", "two *"
)
@pytest.mark.parametrize("name", FITS)
def test_partitions_give_the_bytes_of_one_table(client, name, tmp_path):
    builder, y, options = FITS[name]
    want = whole(name, pb.data.bin_columns(X, keep_values=True), tmp_path)
    for chunks in ((240,), (100, 0, 13, 127)):
        columns, labels, weight = arrays(X, y, WEIGHT, chunks=chunks)
        model = fit_dask(builder, columns, labels, sample_weight=weight, **options)
        assert contents(model, tmp_path) == want
    predicted = pb.dask.predict(model, columns)
    np.testing.assert_array_equal(predicted.compute(), pb.predict(model, X))
    assert predicted.dtype == predicted.compute().dtype


def test_rows_that_are_held_out_stay_on_workers_that_are_lost(client, tmp_path, monkeypatch):
    engines = seen(monkeypatch)
    options = {"n_estimators": 12, "validation": 0.3, "n_iter_no_change": 2, "rng": 0}
    table = pb.data.bin_columns(X, keep_values=True)
    want = pb.fit_adaboost(table, TWO, sample_weight=WEIGHT, **options)
    columns, labels, weight = arrays(X, TWO, WEIGHT, chunks=(100, 0, 13, 127))

    def told(step, record):
        if step in (3, 5):
            lose(engines[-1], 1)  # of the rows that are held out

    model = fit_dask(
        "fit_adaboost",
        columns,
        labels,
        sample_weight=weight,
        keep_values=True,
        callback=told,
        **options,
    )
    assert len(engines) == 2
    assert contents(model, tmp_path) == contents(want, tmp_path)


@pytest.mark.full
def test_frames_and_edges_from_a_part_of_the_rows(client, tmp_path, monkeypatch):
    for module in (partitions, tasks, sampled_edges):
        monkeypatch.setattr(module, "SAMPLE_ROWS", 60)
    frame = pd.DataFrame(X, columns=list("abcd"))
    bins = bin_parts([frame], max_bins=9, keep_values=True)[0]
    for name, (builder, y, options) in FITS.items():
        lists = [dd.from_pandas(a, npartitions=3) for a in (frame, pd.Series(y))]
        model = fit_dask(builder, *lists, max_bins=9, **options)
        assert contents(model, tmp_path) == whole(name, bins, tmp_path, None)


@pytest.mark.full
@pytest.mark.parametrize("edges", ["all at once", "sample", "exact"])
def test_categories_have_the_levels_of_all_partitions(client, edges, tmp_path, monkeypatch):
    if edges == "sample":
        for module in (partitions, tasks, sampled_edges):
            monkeypatch.setattr(module, "SAMPLE_ROWS", 60)
    rng, which = np.random.default_rng(0), "exact" if edges == "exact" else "sample"
    word = np.array(["red", "green", "blue", "black"])[np.sort(rng.integers(0, 4, N))]
    frame = pd.DataFrame(
        {
            "word": word,
            "x": X[:, 1],
            "of": pd.Categorical(np.where(TWO, word, "none")),
            "n": rng.integers(0, 9, N),
            "step": pd.Categorical(rng.choice(["low", "high"], N), ["low", "high"], ordered=True),
        }
    )
    frame.loc[::7, "word"] = None
    bins = bin_parts([frame], max_bins=9, bin_edges=which)[0]
    lists = [dd.from_pandas(a, npartitions=4) for a in (frame, pd.Series(TWO))]
    for builder in ("fit_adaboost", "fit_cart", "fit_gradient_boosting", "fit_random_forest"):
        options = {"rng": 0, "n_estimators": 5} if builder == "fit_random_forest" else {}
        full = getattr(pb, builder)(bins, TWO, **options)
        model = fit_dask(builder, *lists, max_bins=9, bin_edges=which, **options)
        assert contents(model, tmp_path) == contents(full, tmp_path), builder
    predicted = pb.dask.predict(model, lists[0]).compute()
    np.testing.assert_array_equal(predicted, pb.predict(model, frame))


@pytest.mark.full
def test_edges_of_all_rows(client, tmp_path, monkeypatch):
    for max_bins in (5, 256):
        bins = pb.data.bin_columns(X, max_bins=max_bins, bin_edges="exact")
        columns, labels, weight = arrays(X, TWO, WEIGHT, chunks=(100, 0, 13, 127))
        for builder in ("fit_adaboost", "fit_cart"):
            full = getattr(pb, builder)(bins, TWO, sample_weight=WEIGHT)
            model = fit_dask(
                builder, columns, labels, sample_weight=weight, max_bins=max_bins, bin_edges="exact"
            )
            assert contents(model, tmp_path) == contents(full, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("edges", ["all at once", "sample", "exact"])
def test_bins_of_equal_weight(client, edges, tmp_path, monkeypatch):
    if edges == "sample":
        for module in (partitions, tasks, sampled_edges):
            monkeypatch.setattr(module, "SAMPLE_ROWS", 60)
    which = "exact" if edges == "exact" else "sample"
    bins = bin_parts([X], max_bins=9, bin_edges=which, sample_weight=[WEIGHT])[0]
    plain = bin_parts([X], max_bins=9, bin_edges=which)[0]
    assert (bins.codes != plain.codes).any()
    columns, labels, weight = arrays(X, TWO, WEIGHT, chunks=(100, 0, 13, 127))
    options = {"max_bins": 9, "bin_edges": which, "weighted_bin_edges": True}
    for builder, size in (("adaboost", {"n_estimators": 4}), ("cart", {"max_depth": 2})):
        full = getattr(pb, f"fit_{builder}")(bins, TWO, sample_weight=WEIGHT, **size)
        fit = partial(fit_dask, f"fit_{builder}")
        model = fit(columns, labels, sample_weight=weight, **size, **options)
        assert contents(model, tmp_path) == contents(full, tmp_path), builder
    with pytest.raises(
        ValueError, match="weighted_bin_edges: expected False without sample_weight"
    ):
        fit_dask("fit_adaboost", columns, labels, **options)
    with pytest.raises(TypeError, match="weighted_bin_edges"):
        fit_dask("fit_adaboost", columns, labels, sample_weight=weight, weighted_bin_edges=1)


@pytest.mark.full
def test_the_lightest_levels_share_one_by_weights(client, tmp_path):
    rng = np.random.default_rng(0)
    n = 900
    frame = pd.DataFrame({"word": [f"w{k % 300}" for k in range(n)], "x": rng.normal(size=n)})
    weight = np.where(np.arange(n) % 300 < 40, 0.01, 1.0) * rng.random(n)
    y = rng.random(n) + (np.arange(n) % 300 < 100) > 1
    bins = bin_parts([frame], sample_weight=[weight])[0]
    lists = [dd.from_pandas(a, npartitions=3) for a in (frame, pd.Series(y), pd.Series(weight))]
    full_model = pb.fit_adaboost(bins, y, sample_weight=weight, n_estimators=3)
    model = fit_dask(
        "fit_adaboost",
        lists[0],
        lists[1],
        sample_weight=lists[2],
        n_estimators=3,
        weighted_bin_edges=True,
    )
    assert contents(model, tmp_path) == contents(full_model, tmp_path)
    plain = fit_dask("fit_adaboost", lists[0], lists[1], sample_weight=lists[2], n_estimators=3)
    assert contents(plain, tmp_path) != contents(full_model, tmp_path)


@pytest.mark.full_for("sum")
@pytest.mark.parametrize(
    "name", ["boosted", "soft", "nested", "greedy", "sum", "forest", "numbers"]
)
def test_lost_actors_cost_time_and_nothing_else(client, name, tmp_path, monkeypatch):
    engines, cuts = seen(monkeypatch), []

    def cut(step, record):
        if step in (2, 3, 6):
            cuts.append(step)
            lose(engines[0], len(cuts))

    builder, y, options = FITS[name]
    columns, labels, weight = arrays(X, y, WEIGHT, chunks=80)
    model = fit_dask(builder, columns, labels, sample_weight=weight, callback=cut, **options)
    assert contents(model, tmp_path) == whole(
        name, pb.data.bin_columns(X, keep_values=True), tmp_path
    )
    assert len(cuts) == 3


@pytest.mark.full
def test_models_go_on(client, tmp_path, monkeypatch):
    engines = seen(monkeypatch)

    def cut(step, record):
        if step == 5:
            lose(engines[-1], 2)

    columns, labels, weight = arrays(X, TWO, WEIGHT, chunks=80)
    bins = pb.data.bin_columns(X, keep_values=True)
    flip = pb.observation.flip(0.1)
    for builder, options, more in (
        ("fit_adaboost", {"n_estimators": 3}, {"n_estimators": 4}),
        ("fit_boosted_tree", {"max_nodes": 3, "observation": flip}, {"max_nodes": 4}),
        ("fit_gradient_boosting", {"n_estimators": 3, "max_depth": 2}, {"n_estimators": 4}),
    ):
        first = getattr(pb, builder)(bins, TWO, sample_weight=WEIGHT, **options)
        full_model = pb.continue_fit(first, bins, TWO, sample_weight=WEIGHT, **more)
        rows = pb.dask.rows(columns, labels, sample_weight=weight)
        model = pb.continue_fit(first, rows, callback=cut, **more)
        assert contents(model, tmp_path) == contents(full_model, tmp_path), builder
    held = pb.fit_gradient_boosting(bins, TWO, n_estimators=3, validation=0.3, rng=0)
    full_model = pb.continue_fit(held, bins, TWO, n_estimators=2)
    model = pb.continue_fit(held, pb.dask.rows(columns, labels), n_estimators=2)
    assert contents(model, tmp_path) == contents(full_model, tmp_path)
    forest = pb.fit_random_forest(bins, TWO, n_estimators=2, rng=0)
    full_model = pb.continue_fit(forest, bins, TWO, n_estimators=2)
    model = pb.continue_fit(forest, pb.dask.rows(columns, labels), n_estimators=2)
    assert contents(model, tmp_path) == contents(full_model, tmp_path)


REFUSED = {
    "weak": (
        "fit_boosted_tree",
        TWO,
        {"weak_learner": pb.weak.affine()},
        NotImplementedError,
        "weak.stump",
    ),
    "holes": ("fit_cart", TWO, {"missing": "error"}, ValueError, "missing"),
    "text": (
        "fit_cart",
        FITS["three labels"][1],
        {"task": "regression"},
        TypeError,
        "partition 0: y: expected numbers",
    ),
    "infinity": (
        "fit_cart",
        np.where(np.arange(N) == 130, np.inf, 1.0),
        {"task": "regression"},
        ValueError,
        "partition 1: y: expected finite numbers up to 1e+150, got inf in row 50",
    ),
    "weights": (
        "fit_cart",
        TWO,
        {"sample_weight": np.full(N, 1e308)},
        ValueError,
        "expected weights with a finite sum",
    ),
    "task": ("fit_cart", TWO, {"task": "ranking"}, ValueError, "task"),
    "criterion": (
        "fit_cart",
        FITS["three labels"][1],
        {"criterion": "kearns_mansour"},
        ValueError,
        "expected two classes",
    ),
    "processes": ("fit_cart", TWO, {"n_processes": 2}, TypeError, "n_processes"),
    "loss": ("fit_gradient_boosting", TWO, {"loss": "hinge"}, NotImplementedError, "loss"),
    "edges": ("fit_cart", TWO, {"bin_edges": "all"}, ValueError, "bin_edges"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what, client):
    builder, y, options, kind, said = REFUSED[what]
    columns, labels = arrays(X, y, chunks=80)
    if "sample_weight" in options:
        (weight,) = arrays(options["sample_weight"], chunks=80)
        options = options | {"sample_weight": weight}
    with pytest.raises(kind, match=re.escape(said)):
        fit_dask(builder, columns, labels, **options)


@pytest.mark.full
@pytest.mark.parametrize("weight", [1.0, [1, 2, 0, 3], [0.3, 0.3, 0.3, 0.77]], ids=str)
def test_sums_whose_growth_the_data_choose(client, weight, tmp_path):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(8000, 20)).round(2)
    z = rows[:, 0] * rows[:, 1] + np.sin(2 * rows[:, 2]) + rows[:, 3] + rng.normal(size=8000)
    weights = np.resize(weight, 8000).astype(float)
    options = {"n_estimators": 2, "max_depth": 6, "loss": "log_loss"}
    first_model = pb.fit_gradient_boosting(
        pb.data.bin_columns(rows), z > 0, sample_weight=weights, **options
    )
    given = [da.from_array(a, chunks=(3000, 20)[: a.ndim]) for a in (rows, z > 0, weights)]
    model = fit_dask("fit_gradient_boosting", given[0], given[1], sample_weight=given[2], **options)
    assert model.settings["growth"] == "symmetric"
    assert contents(model, tmp_path) == contents(first_model, tmp_path)


def test_no_rows_of_numbers(client):
    columns, labels = arrays(X, TWO * 1.0, chunks=80)
    with pytest.raises(ValueError, match="X: expected at least one row, all partitions are empty"):
        fit_dask("fit_cart", columns[:0], labels[:0], task="regression")


#: Options that are of a regression only.
DECIDED = {
    "fit_cart": {"criterion": "squared_error"},
    "fit_random_forest": {"criterion": "squared_error"},
    "fit_gradient_boosting": {"loss": "squared_error"},
}


@pytest.mark.full
def test_targets_say_the_task(client):
    y = np.arange(N)
    for name, options in (
        ("fit_cart", {"max_depth": 2}),
        ("fit_random_forest", {"n_estimators": 2, "max_depth": 2, "rng": 0}),
        ("fit_gradient_boosting", {"n_estimators": 2}),
    ):
        fit = partial(fit_dask, name)
        for target, task, n_classes in (
            (TWO, None, 2),
            (TWO * 1.0, None, 2),
            (np.where(TWO, "a", "b"), None, 2),
            (TWO + 0.5, None, 0),
            (y % 30 + (y == N - 1) / 2, None, 0),
            (y, "regression", 0),
            (TWO, "regression", 0),
        ):
            columns, labels, _ = arrays(X, target, WEIGHT, chunks=80)
            model = fit(columns, labels, task=task, **options)
            assert (0 if model.classes is None else len(model.classes)) == n_classes
        columns, labels, _ = arrays(X, y, WEIGHT, chunks=80)
        with pytest.raises(ValueError, match=r"y: got more than 20 .*; pass task="):
            fit(columns, labels, **options)
        assert fit(columns, labels, **options, **DECIDED[name]).classes is None
