"""Categories of tables in partitions and batches: levels, bins and codes of one table."""

import numpy as np
import pytest
from partitioned import bin_parts, fit_parted

import pboost as pb
from pboost.data.columns import sampled_bin_edges as sampled_edges
from pboost.data.read import batches as reading
from pboost.distributed import partition_tasks as tasks
from pboost.distributed import partitions

pd = pytest.importorskip("pandas")
FIELDS = ("n_bins", "lower", "upper", "special")


def frame(n=900):
    rng = np.random.default_rng(3)
    names = np.array([f"l{k:04}" for k in range(400)] + ["ä" * 9], dtype=object)
    many = names[np.where(np.arange(n) < 401, np.arange(n), rng.integers(0, 300, n))]
    few = np.where(
        rng.random(n) < 0.1,
        None,
        np.array(["b", "a", "longer"], object)[
            np.where(np.arange(n) < n // 2, 0, rng.integers(0, 3, n))
        ],
    )
    return pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "many": many,
            "few": few,
            "kind": pd.Categorical(
                rng.choice(["u", "v", "w"], n), categories=["w", "v", "u", "none"]
            ),
            "size": pd.Categorical(rng.choice(["s", "m", "l"], n), ["s", "m", "l"], ordered=True),
            "code": pd.Categorical(rng.choice([3.0, 1.5, 20.0], n)),
            "is": pd.Categorical(rng.random(n) < 0.5),
            "never": pd.Categorical([None] * n, categories=["a"]),
        }
    )


def dealt(n, n_parts):
    rng = np.random.default_rng(n_parts)
    at = np.sort(rng.integers(0, n + 1, n_parts - 1)) // 2 * 2
    order = np.arange(n) if n_parts < 4 else rng.permutation(n)
    return np.split(order, at)


def assert_rows_of(parts, whole, rows):
    for part, r in zip(parts, rows, strict=True):
        assert part.table == whole.table
        assert part.names == whole.names
        np.testing.assert_array_equal(part.codes, whole.codes[:, r])
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name), name)


@pytest.mark.parametrize("edges", ["sample of many", "sample", "exact"])
@pytest.mark.parametrize("is_weighed", [False, True], ids=["plain", "weights"])
def test_levels_are_those_of_one_table(edges, is_weighed, monkeypatch):
    if edges == "sample of many":
        for module in (sampled_edges, tasks, partitions):
            monkeypatch.setattr(module, "SAMPLE_ROWS", 100)
    X, edges = frame(), edges.split()[0]
    w = np.random.default_rng(0).integers(0, 3, len(X)) / 2 if is_weighed else None
    full_columns = pb.data.bin_columns(X, bin_edges=edges, sample_weight=w)
    assert full_columns.table.n_levels.tolist() == [0, 255, 3, 3, 0, 3, 2, 0]
    for n_parts in (1, 2, 5):
        rows = dealt(len(X), n_parts)
        parts = bin_parts(
            [X.iloc[r] for r in rows],
            bin_edges=edges,
            sample_weight=None if w is None else [w[r] for r in rows],
        )
        assert_rows_of(parts, full_columns, rows)


def test_a_fit_on_them_is_that_on_one_table():
    X = frame()
    y = (np.arange(len(X)) * 7 % 10 < 3) | (X["few"] == "a").to_numpy()
    rows = dealt(len(X), 3)
    parts = bin_parts([X.iloc[r] for r in rows], bin_edges="exact")
    model = fit_parted("fit_adaboost", parts, [y[r] for r in rows], n_estimators=10)
    full_model = pb.fit_adaboost(pb.data.bin_columns(X, bin_edges="exact"), y, n_estimators=10)
    for name in ("feature", "threshold", "vote", "missing"):
        assert getattr(model, name).tobytes() == getattr(full_model, name).tobytes()
    np.testing.assert_array_equal(pb.predict(model, X), pb.predict(full_model, X))


def test_parts_in_which_text_is_missing_or_single():
    full = pd.DataFrame({"a": [None, None, "x", "y", "x", "y", "x", "x"]}, dtype=object)
    parts = [full[:0], full[:2], full[2:4], full[4:]]  # in the third each value stands once
    rows = [np.arange(0), np.arange(2), np.arange(2, 4), np.arange(4, 8)]
    assert_rows_of(bin_parts(parts), pb.data.bin_columns(full), rows)


def single(n):
    return pd.DataFrame({"a": [f"r{k}" for k in range(n)]}, dtype=object)


@pytest.mark.parametrize(
    ("parts", "error", "match"),
    [
        ([single(6), single(9)[6:]], ValueError, "got text with a unique value in 9 of 9"),
        (
            [{"a": ["x", "x"]}, {"a": [1.0, 2.0]}],
            TypeError,
            "got text in partition 0 and numbers without categories in partition 1",
        ),
        (
            [{"a": [None, None]}, {"a": pd.Categorical([1, 2])}, {"a": ["x", "x"]}],
            TypeError,
            "got numbers in partition 1 and text in partition 2",
        ),
        (
            [
                {"a": pd.Categorical(["x", "y"], ["y", "x"], ordered=True)},
                {"a": pd.Categorical(["x", "y"], ["x", "y"], ordered=True)},
            ],
            TypeError,
            "got different orders in partition 0 and partition 1",
        ),
        (
            [{"a": pd.Categorical(["x", "y"], ["y", "x"], ordered=True)}, {"a": ["x", "x"]}],
            TypeError,
            "got different orders in .* and partition 1",
        ),
        (
            [{"a": ["x", 1]}, {"a": ["x", "x"]}],
            TypeError,
            "partition 0: X: column 'a': expected text",
        ),
    ],
    ids=["identifiers", "numbers", "kinds", "order", "no order", "mixed"],
)
def test_what_is_refused(parts, error, match):
    frames = [pd.DataFrame(part) if isinstance(part, dict) else part for part in parts]
    with pytest.raises(error, match=match):
        bin_parts(frames)


# Batches


@pytest.mark.parametrize("edges", ["sample of many", "sample", "exact"])
@pytest.mark.parametrize("is_weighed", [False, True], ids=["plain", "weights"])
def test_levels_of_batches_are_those_in_memory(edges, is_weighed, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "JOINED", 2)
    if edges == "sample of many":
        monkeypatch.setattr(sampled_edges, "SAMPLE_ROWS", 100)
    X, edges = frame(), edges.split()[0]
    y = (np.arange(len(X)) * 7 % 10 < 3) | (X["few"] == "a").to_numpy()
    w = np.random.default_rng(0).integers(0, 3, len(X)) / 2
    given = X.assign(label=y, mass=w)
    batches = [given[:5], given[:0], given.iloc[5:300, ::-1], given[300:302], given[302:]]
    weight = "mass" if is_weighed else None
    if is_weighed:
        X, y, w = X[w > 0], y[w > 0], w[w > 0]
    else:
        batches = [part.drop(columns="mass") for part in batches]
    full_columns = pb.data.bin_columns(X, bin_edges=edges, sample_weight=w if is_weighed else None)
    made = pb.data.bin_files(
        batches, tmp_path / "columns", target="label", weight=weight, bin_edges=edges
    )
    order = np.argsort(y, kind="stable")
    assert_rows_of([made.columns], full_columns, [order])
    ours = pb.fit_cart(made.columns, made.y, sample_weight=made.weight)
    theirs = pb.fit_cart(full_columns, y, sample_weight=w if is_weighed else None)
    np.testing.assert_array_equal(pb.predict(ours, X), pb.predict(theirs, X))
    assert pb.describe(ours) == pb.describe(theirs)


def test_levels_of_rows_without_weight_are_none(tmp_path):
    X = pd.DataFrame({"a": ["x", "y", "z", "x", "y", "y"], "y": [0, 1, 0, 1, 0, 1]})
    X["w"] = [1, 1, 0, 1, 1, 2]
    columns = pb.data.bin_files([X[:2], X[2:]], tmp_path, target="y", weight="w").columns
    assert columns.table.level_names(0) == ("x", "y")


def test_text_that_comes_late(tmp_path):
    X = pd.DataFrame({"a": [None, None, "x", "y", "x", "y", "x", "x"]}, dtype=object)
    y = np.arange(8) % 2
    batches = [(X[:2], y[:2]), (X[2:4], y[2:4]), (X[4:], y[4:])]
    columns = pb.data.bin_files(batches, tmp_path)
    order = np.argsort(y, kind="stable")
    assert_rows_of([columns.columns], pb.data.bin_columns(X), [order])


@pytest.mark.parametrize(
    ("frames", "error", "match"),
    [
        ([single(6), single(9)[6:]], ValueError, "got text with a unique value in 9 of 9"),
        (
            [{"a": ["x", "x"]}, {"a": [1.0, 2.0]}],
            TypeError,
            "text in batch 0 and numbers .* batch 1",
        ),
        (
            [{"a": ["x", "x"]}, {"b": ["x", "x"]}],
            ValueError,
            "batch 1: .*missing: a; unknown: b",
        ),
        ([{"a": ["x", "x"]}, [[1.0], [2.0]]], ValueError, "batch 1: X: expected column names"),
    ],
    ids=["identifiers", "numbers", "names", "no names"],
)
def test_batches_that_are_refused(frames, error, match, tmp_path):
    batches = []
    for given in frames:
        X = pd.DataFrame(given) if isinstance(given, dict) else given
        batches.append((X, np.arange(len(X)) % 2))
    with pytest.raises(error, match=match):
        pb.data.bin_files(batches, tmp_path)
    assert not list(tmp_path.iterdir())


def test_levels_that_change(tmp_path):
    calls = []

    def read():
        calls.append(1)
        level = "x" if len(calls) < 4 else "z"  # 1: are there weights; 2: numbers; 3: levels
        yield pd.DataFrame({"a": ["x", "y", level, level, "y"]}), np.array([0, 1, 0, 1, 1])

    with pytest.raises(ValueError, match="expected the same rows in each pass"):
        pb.data.bin_files(read, tmp_path)
    assert len(calls) == 4
