"""FitState: a series of short calls of continue_fit, each from where the one before ended."""

from __future__ import annotations

import copy
import gc
import pickle
import statistics
import time
import weakref

import numpy as np
import pytest
from shallow import fit_shallow

import pboost as pb
from pboost.growth.graph_growth import Chain
from pboost.trees.boosting_loop import SumFit


def problem(seed=0, n=240, d=4):
    """Return rows with ties, numbers, and weights of which some are 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(1)
    return X, X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n), rng.integers(0, 4, n) / 2


def bits(model, tmp_path):
    """Return the bytes of the file of a model: settings and record among them."""
    pb.save(model, tmp_path / "bits.npz")
    return (tmp_path / "bits.npz").read_bytes()


def two(target):
    return np.where(target > 0, "yes", "no")


def three(target):
    return np.array(["a", "b", "c"])[np.digitize(target, [-0.5, 0.5])]


def frame(X):
    pd = pytest.importorskip("pandas")
    text = np.where(X[:, 0] > 0.5, "high", np.where(X[:, 0] > -0.5, "mid", "low")).astype(object)
    text[::7] = None
    holes = np.where(X[:, 1] > 1, np.nan, X[:, 1])
    return pd.DataFrame({"text": text, "number": holes, "other": X[:, 2]})


OTHER = problem(9, n=60)
SUMS = {
    "squared_error": (lambda target: target, {}),
    "log_loss": (two, {}),
    "softmax": (three, {}),
    "one tree for all labels": (three, {"multi_strategy": "multi_output_tree"}),
    "bag": (two, {"subsample": 0.5, "rng": 3}),
    "columns": (three, {"max_features_per_tree": 2, "max_features": 1, "rng": 3}),
    "hinge": (two, {"loss": "hinge"}),
    "poisson": (lambda target: np.floor(np.abs(2 * target)), {"loss": "poisson"}),
    "exact": (two, {"search": "exact"}),
    "prices": (two, {"feature_costs": [1.0, 2.0, 3.0, 0.0]}),
    "per comparison": (two, {"growth": "cost_efficient", "tree_comparisons": [3.0, 1.0, 2.0]}),
    "share held out": (two, {"validation": 0.3, "rng": 3, "n_iter_no_change": 4}),
    "rows given": (
        lambda target: target,
        {"validation": (OTHER[0], -OTHER[1]), "n_iter_no_change": 3},
    ),
    "no leaf lowers the loss": (
        lambda target: np.full(len(target), 3.0),
        {"loss": "squared_error"},
    ),
}
#: Fits that end by themselves, however many steps follow.
ENDS = "share held out", "rows given", "no leaf lowers the loss"


@pytest.mark.parametrize("case", SUMS)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_sums_are_the_same_bits(tmp_path, case, n_threads):
    targets, options = SUMS[case]
    X, target, weight = problem(1)
    weight, y = np.maximum(weight, 0.5), targets(target)
    common = {"sample_weight": weight, "n_threads": n_threads}
    validation = options.get("validation")
    more = {"validation": validation} if isinstance(validation, tuple) else {}
    kept = alone = fit_shallow(X, y, n_estimators=2, **common, **options)
    state = pb.models.FitState()
    for steps in (1, 3, 1, 5):
        alone = pb.continue_fit(alone, X, y, n_estimators=steps, **common, **more)
        kept = pb.continue_fit(kept, X, y, n_estimators=steps, state=state, **common, **more)
        assert bits(kept, tmp_path) == bits(alone, tmp_path)
    at_once = fit_shallow(X, y, n_estimators=12, **common, **options)
    assert bits(kept, tmp_path) == bits(at_once, tmp_path)
    assert (at_once.stop_reason != "all trees are there") == (case in ENDS)


CHAINS = {
    "domain": {},
    "symmetric": {"votes": "symmetric", "smoothing": 0.0},
    "table": {"observation": pb.observation.adatree2()},
    "gaussian": {"observation": pb.observation.gaussian(0.4)},
    "affine": {"weak_learner": pb.weak.affine(n_directions=6, seed=2)},
    "binned": {"weak_learner": pb.weak.stump(search="binned", max_bins=8)},
}


@pytest.mark.parametrize("case", CHAINS)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_chains_are_the_same_bits(tmp_path, case, n_threads):
    X, target, weight = problem(2)
    common = {"sample_weight": weight, "n_threads": n_threads}
    kept = alone = pb.fit_adaboost(X, two(target), n_estimators=2, **common, **CHAINS[case])
    state = pb.models.FitState()
    for rounds in (1, 3, 1, 4):
        alone = pb.continue_fit(alone, X, two(target), n_estimators=rounds, **common)
        kept = pb.continue_fit(kept, X, two(target), n_estimators=rounds, state=state, **common)
        assert bits(kept, tmp_path) == bits(alone, tmp_path)
    # With other options for the new nodes growth begins anew.
    for options in ({"learning_rate": 0.5}, {}, {"smoothing": 0.1}):
        alone = pb.continue_fit(alone, X, two(target), n_estimators=2, **options, **common)
        kept = pb.continue_fit(
            kept, X, two(target), n_estimators=2, state=state, **options, **common
        )
        assert bits(kept, tmp_path) == bits(alone, tmp_path)
    assert kept.n_nodes == 17


def test_tables_and_probabilities(tmp_path):
    X, target, _ = problem(3)
    table, share = frame(X), 1 / (1 + np.exp(-target))
    kept = alone = pb.fit_gradient_boosting(table, y_proba=share, loss="log_loss", n_estimators=1)
    state = pb.models.FitState()
    for _ in range(4):
        alone = pb.continue_fit(alone, table, y_proba=share, n_estimators=2)
        kept = pb.continue_fit(kept, table.copy(), y_proba=share, n_estimators=2, state=state)
    assert bits(kept, tmp_path) == bits(alone, tmp_path)


@pytest.mark.parametrize("columns", [pb.data.sort_columns, pb.data.bin_columns])
def test_prepared_columns_are_told_by_identity(columns):
    X, target, _ = problem(4)
    prepared, state = columns(X), pb.models.FitState()
    model = pb.fit_gradient_boosting(prepared, target, n_estimators=1)
    model = pb.continue_fit(model, prepared, target, n_estimators=1, state=state)
    with pytest.raises(ValueError, match=r"X: expected the same values as in the previous call"):
        pb.continue_fit(model, columns(X), target, n_estimators=1, state=state)
    assert len(pb.continue_fit(model, prepared, target, n_estimators=1, state=state)) == 3


def test_a_call_adds_trees_and_nothing_else(monkeypatch):
    X, target, _ = problem(5)
    grown, cuts = [], []
    next_tree, ask = SumFit._next_tree, Chain.ask
    monkeypatch.setattr(
        SumFit, "_next_tree", lambda f, step: grown.append(step) or next_tree(f, step)
    )
    monkeypatch.setattr(Chain, "ask", lambda f, *cut: cuts.append(cut) or ask(f, *cut))
    model, state = pb.fit_gradient_boosting(X, target, n_estimators=1), pb.models.FitState()
    for _ in range(20):
        model = pb.continue_fit(model, X, target, n_estimators=1, state=state)
    assert grown == [1, *range(1, 22)]  # the first call takes in the tree that is there
    model, state = pb.fit_adaboost(X, two(target), n_estimators=1), pb.models.FitState()
    for _ in range(20):
        model = pb.continue_fit(model, X, two(target), n_estimators=1, state=state)
    assert model.n_nodes == 21
    assert len(cuts) == 22


def builders():
    X, target, _ = problem(6, n=4000, d=12)
    sums = {
        name: (pb.fit_gradient_boosting, "n_estimators", SUMS[name][0](target))
        for name in ("squared_error", "log_loss", "softmax")
    }
    return X, {**sums, "adaboost": (pb.fit_adaboost, "n_estimators", two(target))}


@pytest.mark.full_for("squared_error")
@pytest.mark.clock
@pytest.mark.parametrize("case", ["squared_error", "log_loss", "softmax", "adaboost"])
def test_a_hundred_calls_take_at_most_ten_fits(case):
    X, cases = builders()
    fit, size, y = cases[case]
    once, calls = [], []
    for _ in range(3):
        start = time.process_time()
        fit(X, y, n_threads=1, **{size: 100})
        once.append(time.process_time() - start)
        start = time.process_time()
        model, state = fit(X, y, n_threads=1, **{size: 1}), pb.models.FitState()
        for _ in range(99):
            model = pb.continue_fit(model, X, y, n_threads=1, state=state, **{size: 1})
        calls.append(time.process_time() - start)
    assert statistics.median(calls) <= 10 * statistics.median(once)


def begun():
    """Return data, a model that has gone on with a state, and the state."""
    X, target, weight = problem(7)
    y, valid = two(target), (OTHER[0].copy(), two(OTHER[1]))
    data = {"X": X, "y": y, "sample_weight": np.maximum(weight, 0.5), "validation": valid}
    model, state = (
        pb.fit_gradient_boosting(**data, n_estimators=1, n_iter_no_change=50),
        pb.models.FitState(),
    )
    return data, pb.continue_fit(model, **data, n_estimators=1, state=state), state


CHANGES = {
    "X": lambda data: {
        "X": np.where(np.arange(data["X"].size).reshape(data["X"].shape) == 77, 9.0, data["X"])
    },
    "y": lambda data: {"y": data["y"][::-1]},
    "sample_weight": lambda data: {"sample_weight": None},
    "validation X": lambda data: {"validation": (data["validation"][0] + 1, data["validation"][1])},
    "validation y": lambda data: {
        "validation": (data["validation"][0], data["validation"][1][::-1])
    },
    "validation sample_weight": lambda data: {"validation": (*data["validation"], np.ones(60))},
}


@pytest.mark.parametrize("name", CHANGES)
def test_other_data_are_refused(name):
    data, model, state = begun()
    with pytest.raises(
        ValueError, match=f"^{name}: expected the same values as in the previous call"
    ):
        pb.continue_fit(model, **{**data, **CHANGES[name](data)}, n_estimators=1, state=state)
    assert len(pb.continue_fit(model, **data, n_estimators=1, state=state)) == 3  # it is as it was


def test_a_value_changed_in_place_is_refused():
    data, model, state = begun()
    data["X"][100, 2] += 1e-9
    with pytest.raises(ValueError, match=r"^X: expected the same values as in the previous call"):
        pb.continue_fit(model, **data, n_estimators=1, state=state)


def test_other_models_are_refused(tmp_path):
    data, model, state = begun()
    for refused in (pb.fit_gradient_boosting(**data, n_estimators=2), model.truncate(1)):
        with pytest.raises(ValueError, match=r"^model: expected the model that continue_fit ret"):
            pb.continue_fit(refused, **data, n_estimators=1, state=state)
    assert state.model is model
    assert "2 trees" in repr(state)


def test_what_takes_no_state():
    X, target, _ = problem(8)
    state = pb.models.FitState()
    sum_, tree = (
        pb.fit_gradient_boosting(X, target, n_estimators=1),
        pb.fit_boosted_tree(X, two(target), max_nodes=2),
    )
    with pytest.raises(TypeError, match=r"^state: expected a FitState or None, got 'mine'"):
        pb.continue_fit(sum_, X, target, n_estimators=1, state="mine")
    with pytest.raises(ValueError, match=r"^rng: expected None"):
        pb.continue_fit(sum_, X, target, n_estimators=1, state=state, rng=0)
    with pytest.raises(TypeError, match=r"^state, model: expected a DecisionGraph"):
        pb.continue_fit(
            pb.fit_random_forest(X, two(target), n_estimators=2),
            X,
            two(target),
            n_estimators=1,
            state=state,
        )
    for model, options in (
        (tree, {"max_nodes": 1}),
        (tree, {"n_estimators": 1}),
        (pb.fit_adaboost(X, three(target), n_estimators=2), {"n_estimators": 1}),
    ):
        y = two(target) if model is tree else three(target)
        with pytest.raises(NotImplementedError, match=r"^state: expected a binary chain"):
            pb.continue_fit(model, X, y, state=state, **options)
    assert repr(state) == "<FitState: empty>"


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_states_are_not_copied(how):
    *_, state = begun()
    with pytest.raises(TypeError, match="a FitState cannot be copied or pickled"):
        how(state)


def test_a_callback_may_stop_or_fail(tmp_path):
    X, target, _ = problem(10)
    state, model = pb.models.FitState(), pb.fit_gradient_boosting(X, target, n_estimators=2)
    steps = []
    model = pb.continue_fit(
        model,
        X,
        target,
        n_estimators=9,
        state=state,
        callback=lambda step, _: steps.append(step) or step == 5,
    )
    assert steps == [3, 4, 5]
    alone = pb.continue_fit(model, X, target, n_estimators=2)
    with pytest.raises(ZeroDivisionError):
        pb.continue_fit(
            model, X, target, n_estimators=2, state=state, callback=lambda step, _: 1 / 0
        )
    assert repr(state) == "<FitState: empty>"
    assert bits(pb.continue_fit(model, X, target, n_estimators=2, state=state), tmp_path) == bits(
        alone, tmp_path
    )


def test_models_hold_nothing_of_the_state():
    data, model, state = begun()
    longer = pb.continue_fit(model, **data, n_estimators=1, state=state)
    alone = pb.continue_fit(model, **data, n_estimators=1)
    assert len(pickle.dumps(longer)) == len(pickle.dumps(alone))
    kept = weakref.ref(state._fit)
    del state
    gc.collect()
    assert kept() is None
    assert len(longer) == 3


def test_text_labels_of_a_folder(tmp_path):
    """They are codes, and are compared as such."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    columns, y, _ = pb.data.bin_files(
        [(X, np.where(X[:, 0] > 0, "yes", "no"))], tmp_path / "columns"
    )
    state = pb.models.FitState()
    kept = plain = pb.fit_gradient_boosting(columns, y, n_estimators=1)
    for _ in range(3):
        kept = pb.continue_fit(kept, columns, y, n_estimators=1, state=state)
        plain = pb.continue_fit(plain, columns, y, n_estimators=1)
    assert kept.training_loss.tolist() == plain.training_loss.tolist()
    with pytest.raises(ValueError, match="y: expected the same values as in the previous call"):
        pb.continue_fit(kept, columns, y[::-1], n_estimators=1, state=state)
