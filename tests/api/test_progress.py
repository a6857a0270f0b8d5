"""`progress`: a bar beside the callback, of every builder that calls one back."""

from __future__ import annotations

import inspect
import sys
from functools import partial

import numpy as np
import pytest

import pboost as pb

X = np.random.default_rng(0).normal(size=(120, 3))
Y = X[:, 0] * X[:, 1] > 0
CHAIN, FOREST = (
    pb.fit_adaboost(X, Y, n_estimators=4),
    pb.fit_random_forest(X, Y, n_estimators=4, rng=0),
)
SUM = pb.fit_gradient_boosting(X, X[:, 0], loss="squared_error", n_estimators=4)
STUMP = partial(pb.fit_cart, max_depth=1)

#: Calls, the number of the last step if it is known, what is counted, and what was there before.
CALLS = {
    "adaboost": (partial(pb.fit_adaboost, X, Y, n_estimators=7), 7, "rounds", 0),
    "tree": (partial(pb.fit_boosted_tree, X, Y, max_nodes=7), 7, "nodes", 0),
    "tree without bound": (partial(pb.fit_boosted_tree, X, Y, max_nodes=None), None, "nodes", 0),
    "soft tree": (
        partial(pb.fit_boosted_tree, X, Y, max_nodes=7, observation=pb.observation.adatree2()),
        7,
        "nodes",
        0,
    ),
    "matryoshka": (partial(pb.fit_matryoshka, X, Y, shape=(3, 2)), 6, "nodes", 0),
    "greedy": (partial(pb.fit_matryoshka, X, Y, growth="greedy", max_nodes=7), 7, "nodes", 0),
    "real": (partial(pb.fit_real_adaboost, X, Y, n_estimators=7), 7, "rounds", 0),
    "linear": (
        partial(pb.fit_real_adaboost, X, Y, n_estimators=7, weak_learner=pb.weak.feature()),
        7,
        "rounds",
        0,
    ),
    "oblique": (partial(pb.fit_oblique_tree, X, Y, max_nodes=4), 4, "nodes", 0),
    "topdown": (partial(pb.fit_topdown_tree, X, Y, max_nodes=7), 7, "nodes", 0),
    "cart": (partial(pb.fit_cart, X, Y), None, "splits", 0),
    "cart of leaves": (partial(pb.fit_cart, X, Y, max_leaf_nodes=8), 7, "splits", 0),
    "forest": (partial(pb.fit_random_forest, X, Y, n_estimators=7, rng=0), 7, "members", 0),
    "threads": (
        partial(pb.fit_random_forest, X, Y, n_estimators=7, rng=0, n_threads=2),
        7,
        "members",
        0,
    ),
    "stagewise": (
        partial(pb.fit_gradient_boosting, X, Y, loss="log_loss", n_estimators=7),
        7,
        "steps",
        0,
    ),
    "bagging": (partial(pb.fit_bagging, STUMP, X, Y, n_estimators=7, rng=0), 7, "members", 0),
    "samme": (partial(pb.fit_samme, X, Y, base_learner=STUMP, n_estimators=7), 7, "rounds", 0),
    "sbpmt": (
        partial(pb.fit_sbpmt, X, Y, n_estimators=3, n_boosting_rounds=2, rng=0),
        3,
        "members",
        0,
    ),
    "longer chain": (partial(pb.continue_fit, CHAIN, X, Y, n_estimators=3), 7, "nodes", 4),
    "longer forest": (partial(pb.continue_fit, FOREST, X, Y, n_estimators=3), 7, "members", 4),
    "longer sum": (partial(pb.continue_fit, SUM, X, X[:, 0], n_estimators=3), 7, "steps", 4),
    "folds": (
        partial(pb.cross_validate, partial(pb.fit_cart, max_depth=2), X, Y, cv=5, rng=0),
        5,
        "folds",
        0,
    ),
}


class Bar:
    """What `tqdm.tqdm` makes, as far as it is used."""

    made: list[Bar] = []  # noqa: RUF012

    def __init__(self, *, total, initial, unit):
        self.total, self.n, self.unit, self.steps, self.is_open = total, initial, unit, 0, False
        Bar.made.append(self)

    def __enter__(self):
        self.is_open = True
        return self

    def __exit__(self, *error):
        self.is_open = False

    def update(self, n):
        assert self.is_open
        assert n == 1
        self.n, self.steps = self.n + n, self.steps + 1


@pytest.fixture(autouse=True)
def _no_bars():
    Bar.made.clear()


def test_every_builder_with_a_callback_has_a_bar():
    public = [getattr(pb, name) for name in pb.__all__]
    functions = [item for item in public if inspect.isfunction(item)]
    takers = {
        option: {f.__name__ for f in functions if option in inspect.signature(f).parameters}
        for option in ("callback", "progress")
    }
    assert takers["callback"] == takers["progress"]
    called = {call.func.__name__ for call, *_ in CALLS.values()}
    assert takers["progress"] == called


@pytest.mark.parametrize(("call", "total", "unit", "before"), CALLS.values(), ids=CALLS)
def test_bar_counts_steps(call, total, unit, before):
    told = []

    def callback(step, record):
        assert Bar.made[0].n == step
        told.append(step)

    call(progress=Bar, callback=callback)
    (bar,) = Bar.made
    assert (bar.total, bar.unit, bar.is_open) == (total, f" {unit}", False)
    assert told == list(range(before + 1, bar.n + 1))
    assert bar.steps == len(told) > 0
    assert total is None or bar.n <= total


@pytest.mark.parametrize(("call", "total", "unit", "before"), CALLS.values(), ids=CALLS)
def test_bar_closes(call, total, unit, before):
    """Where the callback stops, and where it fails."""
    call(progress=Bar, callback=lambda step, record: step == before + 2)
    assert (Bar.made[0].n, Bar.made[0].is_open) == (before + 2, False)

    def fail(step, record):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        call(progress=Bar, callback=fail)
    assert (Bar.made[1].n, Bar.made[1].is_open) == (before + 1, False)


@pytest.mark.parametrize("name", ["adaboost", "forest", "stagewise", "sbpmt", "cart", "longer sum"])
def test_bar_changes_nothing(name, tmp_path):
    call, content = CALLS[name][0], []
    for progress in (False, Bar, np.False_):
        pb.save(call(progress=progress), tmp_path / "model.npz")
        content.append((tmp_path / "model.npz").read_bytes())
    assert len(set(content)) == 1
    assert len(Bar.made) == 1


def test_bar_ends_early_with_the_fit():
    options = {
        "n_estimators": 500,
        "validation": 0.3,
        "n_iter_no_change": 3,
        "rng": 0,
        "progress": Bar,
    }
    pb.fit_adaboost(X, Y, **options)
    assert Bar.made[0].n < 500
    assert not Bar.made[0].is_open


def test_wrong_options_make_no_bar():
    for call in (
        partial(pb.fit_adaboost, X, Y, n_estimators=0),
        partial(pb.fit_random_forest, X, Y[:5], n_estimators=3),
        partial(pb.cross_validate, pb.fit_cart, X, Y, cv=1),
    ):
        with pytest.raises(ValueError, match="expected"):
            call(progress=Bar)
    assert Bar.made == []


@pytest.mark.parametrize("wrong", ["yes", 1, None, [True]])
@pytest.mark.parametrize(("call", "total", "unit", "before"), CALLS.values(), ids=CALLS)
def test_wrong_progress(call, total, unit, before, wrong):
    with pytest.raises(
        TypeError, match="progress: expected True, False or a function that creates"
    ):
        call(progress=wrong)


@pytest.mark.parametrize("wrong", [len, dict, lambda **options: None])
def test_what_makes_no_bar(wrong):
    with pytest.raises(
        TypeError, match="progress: expected True, False or a function that creates"
    ):
        pb.fit_adaboost(X, Y, n_estimators=5, progress=wrong)


def test_silent_unless_asked(capfd):
    pb.fit_adaboost(X, Y, n_estimators=5)
    assert capfd.readouterr() == ("", "")


def test_tqdm(capfd):
    tqdm = pytest.importorskip("tqdm")
    pb.fit_adaboost(X, Y, n_estimators=5, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "5/5" in err
    assert "rounds" in err
    pb.cross_validate(pb.fit_cart, X, Y, cv=3, progress=partial(tqdm.tqdm, desc="trees"))
    assert "trees: 100%" in capfd.readouterr().err
    assert not tqdm.tqdm._instances


def test_tqdm_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(
        ImportError,
        match=r'tqdm is required but not installed: pip install "pboosting\[progress\]"',
    ):
        pb.fit_adaboost("no data are read", [], n_estimators=5, progress=True)
    pb.fit_adaboost(X, Y, n_estimators=5)
