"""SBPMT of rows in partitions: the bytes of one table in the order of the partitions."""

import numpy as np
import pytest
from partitioned import PARTS, contents

import pboost as pb
from pboost.probit import shards

RNG = np.random.default_rng(4)
N = 300
X = RNG.normal(size=(N, 4))
X[RNG.random(X.shape) < 0.05] = np.nan
TWO = np.where(np.nan_to_num(X[:, 0] + X[:, 1]) > RNG.normal(size=N), "yes", "no")
THREE = np.where(np.nan_to_num(X[:, 2]) > 0.6, 7, (TWO == "yes").astype(int))
WEIGHT = np.where(RNG.random(N) < 0.1, 0.0, RNG.random(N))
CASES = {
    "two": (X, TWO, None, {}),
    "weights, by class": (X, TWO, WEIGHT, {"stratify": True, "vote": "majority"}),
    "three": (X.astype(np.float32), THREE, None, {"rounds": 2}),
    "one tree": (X, THREE, WEIGHT, {"one_vs_all": "leaf", "bag": 150}),
    "no bag": (X, TWO, None, {"bag": None, "safeguard": True, "tol": None, "steps": 5}),
}


def parts_of(values, y, weight, n_parts):
    at = np.sort(np.random.default_rng(n_parts).integers(0, N + 1, n_parts - 1))
    columns = pb.shards.bin_columns(np.split(values, at), values=True)
    weights = None if weight is None else np.split(weight, at)
    return columns, np.split(y, at), weights


@pytest.mark.parametrize("case", CASES)
def test_partitions_give_the_bytes_of_one_table(case, tmp_path):
    values, y, weight, options = CASES[case]
    options = {"members": 3, "rng": 5, **options}
    whole = pb.fit_sbpmt(values, y, sample_weight=weight, **options)
    for n_parts in PARTS:
        columns, labels, weights = parts_of(values, y, weight, n_parts)
        model = pb.shards.fit_sbpmt(columns, labels, sample_weight=weights, **options)
        assert contents(model, tmp_path) == contents(whole, tmp_path), n_parts


def test_categories(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"word": RNG.choice(["a", "b", "c"], N), "x": X[:, 1], "z": X[:, 0]})
    whole = pb.fit_sbpmt(frame, TWO, members=2, rng=0)
    columns = pb.shards.bin_columns([frame[:30], frame[30:]], values=True)
    model = pb.shards.fit_sbpmt(columns, [TWO[:30], TWO[30:]], members=2, rng=0)
    assert contents(model, tmp_path) == contents(whole, tmp_path)


def test_callbacks_stop_as_with_one_table(tmp_path):
    told = {"one": [], "parts": [], "processes": []}

    def calls(name):
        return lambda step, record: told[name].append((step, record.oob_error)) or step == 2

    columns, labels, _ = parts_of(X, TWO, None, 3)
    options = {"members": 5, "rng": 1}
    whole = pb.fit_sbpmt(X, TWO, callback=calls("one"), **options)
    models = [
        pb.shards.fit_sbpmt(columns, labels, callback=calls("parts"), **options),
        pb.shards.fit_sbpmt(columns, labels, callback=calls("processes"), n_processes=2, **options),
    ]
    assert told["one"] == told["parts"] == told["processes"]
    assert len(whole) == 2
    for model in models:
        assert contents(model, tmp_path) == contents(whole, tmp_path)


@pytest.mark.parametrize("n_processes", [2, 5])
def test_processes(n_processes, tmp_path):
    columns, labels, weights = parts_of(X, TWO, WEIGHT, 2)
    whole = pb.fit_sbpmt(X, TWO, sample_weight=WEIGHT, members=3, rng=5)
    model = pb.shards.fit_sbpmt(
        columns, labels, sample_weight=weights, members=3, rng=5, n_processes=n_processes
    )
    assert contents(model, tmp_path) == contents(whole, tmp_path)


def test_a_process_that_is_killed_grows_its_member_again(tmp_path, monkeypatch):
    engines, ask = [], shards.Processes.ask

    def killing(engine, what, *given):
        if what == "grown" and given == (1,):
            engines.append(engine)
            engine._workers[0]._process.kill()
        return ask(engine, what, *given)

    monkeypatch.setattr(shards.Processes, "ask", killing)
    columns, labels, _ = parts_of(X, TWO, None, 2)
    model = pb.shards.fit_sbpmt(columns, labels, members=4, rng=5, n_processes=2)
    assert contents(model, tmp_path) == contents(pb.fit_sbpmt(X, TWO, members=4, rng=5), tmp_path)
    assert engines


def test_what_is_refused():
    columns, labels, _ = parts_of(X, TWO, None, 2)
    plain = pb.shards.bin_columns([X[:100], X[100:]])
    with pytest.raises(ValueError, match="which hold none, in partition 0; pass values=True"):
        pb.shards.fit_sbpmt(plain, [TWO[:100], TWO[100:]])
    with pytest.raises(NotImplementedError, match="n_threads: processes have one thread each"):
        pb.shards.fit_sbpmt(columns, labels, n_processes=2, n_threads=2)
    with pytest.raises(ValueError, match="n_processes"):
        pb.shards.fit_sbpmt(columns, labels, n_processes=0)
    with pytest.raises(ValueError, match="members"):
        pb.shards.fit_sbpmt(columns, labels, members=0)
    with pytest.raises(TypeError, match="expected labels of one kind in all partitions"):
        pb.shards.fit_sbpmt(columns, [labels[0], np.zeros(len(labels[1]))])
    other = pb.shards.bin_columns([X[:100], X[100:] + 1], values=True)
    with pytest.raises(ValueError, match="expected the same bins in all partitions"):
        pb.shards.fit_sbpmt([columns[0], other[1]], [labels[0], TWO[100:]])
