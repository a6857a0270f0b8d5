"""Graphs whose rows go both ways where their value is missing."""

import numpy as np
import pandas as pd
import pytest

import pboost as pb

FLIP, SOFT = pb.observation.flip(0.1), pb.observation.adatree2()
FITS = {
    "adaboost": lambda X, y, **o: pb.fit_adaboost(X, y, rounds=7, **o),
    "symmetric": lambda X, y, **o: pb.fit_adaboost(X, y, rounds=7, votes="symmetric", **o),
    "flipped": lambda X, y, **o: pb.fit_adaboost(X, y, rounds=8, observation=FLIP, **o),
    "real": lambda X, y, **o: pb.fit_adaboost_real(X, y, rounds=8, **o),
    "tree": lambda X, y, **o: pb.fit_boosted_tree(X, y, nodes=9, **o),
    "look-ahead": lambda X, y, **o: pb.fit_boosted_tree(X, y, nodes=9, growth="look-ahead", **o),
    "soft": lambda X, y, **o: pb.fit_boosted_tree(X, y, nodes=9, observation=SOFT, **o),
    "matryoshka": lambda X, y, **o: pb.fit_matryoshka(X, y, shape=(3, 3), **o),
    "by sign": lambda X, y, **o: pb.fit_matryoshka(X, y, shape=(3, 3), collect="sign", **o),
    "soft matryoshka": lambda X, y, **o: pb.fit_matryoshka(
        X, y, shape=(3, 3), observation=FLIP, **o
    ),
    "greedy": lambda X, y, **o: pb.fit_matryoshka(X, y, growth="greedy", nodes=9, **o),
}
CERTAIN = [name for name in FITS if "soft" not in name and name != "flipped"]
builders = pytest.mark.parametrize("fit", list(FITS.values()), ids=list(FITS))
of_certain = pytest.mark.parametrize("fit", [FITS[name] for name in CERTAIN], ids=CERTAIN)


def both(**options):
    return pb.weak.stump(missing="both", **options)


def rows_with_holes(seed, n=80):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 4)), 1) + 0.0
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n) > 0, "b", "a")
    X[:, :3][rng.random((n, 3)) < 0.25] = np.nan
    X[(y == "b") & (rng.random(n) < 0.2), 2] = np.nan
    weight = [None, rng.integers(1, 4, n).astype(float), rng.exponential(size=n)][seed % 3]
    return X, y, weight


def with_words(seed):
    """Return a frame in which words are missing, too."""
    X, y, weight = rows_with_holes(seed)
    rng = np.random.default_rng([seed, 1])
    frame = pd.DataFrame(X, columns=list("abcd"))
    colour = np.where(rng.random(len(y)) < 0.6, np.where(y == "a", "red", "blue"), "green")
    frame["colour"] = np.where(rng.random(len(y)) < 0.2, None, colour)
    return frame, y, weight


def walks(model, X):
    """Yield the decision value and probability of every way of a row: (row, value, probability)."""
    for row, x in enumerate(X):
        ways = [(0, 1.0, model.bias)]
        while ways:
            node, p, score = ways.pop()
            if node < 0:
                yield row, score, p
                continue
            value = x[model.feature[node]]
            q = model.missing[node] if np.isnan(value) else float(value > model.threshold[node])
            for exit_, part in ((0, 1 - q), (1, q)):
                if part:
                    vote = model.vote[node, exit_]
                    ways.append((int(model.next[node, exit_]), p * part, score + vote))


@of_certain
@pytest.mark.parametrize("search", ["exact", "binned"])
@pytest.mark.parametrize("seed", range(3))
def test_certificate_and_expectation_are_those_of_all_ways(fit, search, seed):
    X, y, weight = rows_with_holes(seed)
    X, y, weight = X[:60], y[:60], None if weight is None else weight[:60]
    model = fit(X, y, sample_weight=weight, weak=both(search=search))
    assert not np.isin(model.missing, (0, 1)).all()
    n, share = len(y), np.ones(len(y)) if weight is None else weight
    sign = np.where(y == "b", 1, -1)
    expected, loss, total = np.zeros(n), np.zeros(n), np.zeros(n)
    for row, score, p in walks(model, X):
        expected[row] += p * score
        loss[row] += p * np.exp(-sign[row] * score)
        total[row] += p
    assert np.allclose(total, 1, atol=1e-12)
    assert np.allclose(pb.decision_function(model, X, route="expected"), expected, atol=1e-12)
    stored = model.record.certificate[-1]
    assert stored == pytest.approx(np.average(loss, weights=share), rel=1e-9)
    # The randomised classifier errs no more often than that.
    wrong = np.zeros(n)
    for row, score, p in walks(model, X):
        wrong[row] += p * ((score > 0) != (sign[row] > 0))
    assert np.average(wrong, weights=share) <= stored + 1e-12


@builders
@pytest.mark.parametrize("seed", range(3))
def test_certificates_are_computed_anew(fit, seed):
    for X, y, weight in (rows_with_holes(seed), with_words(seed)):
        model = fit(X, y, sample_weight=weight, weak=both())
        found = pb.certificate(model, X, y, sample_weight=weight)
        assert found == pytest.approx(model.record.certificate[-1], rel=1e-9)
        assert not model.is_exact
        steps = list(pb.staged_decision_function(model, X))
        assert np.array_equal(steps[-1], pb.decision_function(model, X))


@of_certain
def test_shares_are_of_reach(fit):
    """q is the part above the cut of the reach of rows that have a value there."""
    X, y, weight = rows_with_holes(2)
    model = fit(X, y, sample_weight=weight, weak=both())
    arrives = pb.reach(model, X) * weight[:, None]
    for node in range(model.n_nodes):
        x = X[:, model.feature[node]]
        if not np.isnan(x).any():
            continue
        above, known = x > model.threshold[node], ~np.isnan(x)
        q = arrives[above & known, node].sum() / arrives[known, node].sum()
        assert model.missing[node] == pytest.approx(q, rel=1e-9)


@builders
def test_hard_routes_take_the_heavier_exit(fit):
    X, y, weight = rows_with_holes(4)
    model = fit(X, y, sample_weight=weight, weak=both())
    hard = pb.decision_function(model, X)
    sharp = pb.decision_function(
        type(model)(
            **{
                name: getattr(model, name)
                for name in model.__dataclass_fields__
                if model.__dataclass_fields__[name].init and name != "missing"
            },
            missing=(model.missing > 0.5).astype(float),
        ),
        X,
    )
    assert np.array_equal(hard, sharp)
    assert (pb.evaluation_cost(model, X) >= 1).all()
    half = np.isnan(X).any(axis=1)
    if not (model.record.stages is not None or model.answer is not None):
        soft = pb.decision_function(model, X, route="expected")
        assert np.allclose(hard[~half], soft[~half])


@builders
def test_rows_without_holes_have_the_model_of_learn(fit):
    X, y, weight = rows_with_holes(1)
    X = np.nan_to_num(X)
    one, other = (
        fit(X, y, sample_weight=weight, weak=pb.weak.stump(missing=m)) for m in ("learn", "both")
    )
    for name in ("feature", "threshold", "next", "vote", "missing"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert np.array_equal(one.record.certificate, other.record.certificate)


@builders
def test_models_are_stored(fit, tmp_path):
    X, y, weight = with_words(5)
    model = fit(X, y, sample_weight=weight, weak=both())
    pb.save(model, tmp_path / "model.npz")
    again = pb.load(tmp_path / "model.npz")
    assert np.array_equal(again.missing, model.missing)
    assert again.settings["weak"]["missing"] == "both"
    assert np.array_equal(pb.decision_function(again, X), pb.decision_function(model, X))
    assert pb.describe(again) == pb.describe(model)


@builders
def test_weight_is_copies(fit):
    X, y, _ = rows_with_holes(6)
    k = np.random.default_rng(6).integers(1, 4, len(y))
    one = fit(X, y, sample_weight=k.astype(float), weak=both())
    other = fit(np.repeat(X, k, axis=0), np.repeat(y, k), weak=both())
    assert np.array_equal(one.feature, other.feature)
    assert np.array_equal(one.threshold, other.threshold)
    assert np.allclose(one.vote, other.vote, atol=1e-10)
    assert np.allclose(one.missing, other.missing, atol=1e-10)


@pytest.mark.parametrize("name", ["adaboost", "tree", "soft"])
def test_models_go_on(name):
    X, y, weight = with_words(7)
    sizes = {"adaboost": "rounds", "tree": "nodes", "soft": "nodes"}
    builder = pb.fit_adaboost if name == "adaboost" else pb.fit_boosted_tree
    options = {"observation": SOFT} if name == "soft" else {}
    size = sizes[name]
    common = {"sample_weight": weight, "weak": both(), **options}
    whole = builder(X, y, **common, **{size: 9})
    part = builder(X, y, **common, **{size: 4})
    more = pb.continue_fit(part, X, y, sample_weight=weight, **{size: 5})
    assert np.array_equal(more.feature, whole.feature)
    assert np.allclose(more.vote, whole.vote, atol=1e-10)
    assert np.allclose(more.missing, whole.missing, atol=1e-12)
    assert more.record.certificate == pytest.approx(whole.record.certificate, rel=1e-9)
    # Nodes of one kind after those of the other.
    other = pb.continue_fit(part, X, y, sample_weight=weight, weak=pb.weak.stump(), **{size: 5})
    found = pb.certificate(other, X, y, sample_weight=weight)
    assert found == pytest.approx(other.record.certificate[-1], rel=1e-9)
    assert np.isin(other.missing[4:], (0, 1)).all()
    learned = builder(X, y, sample_weight=weight, **options, **{size: 4})
    other = pb.continue_fit(learned, X, y, sample_weight=weight, weak=both(), **{size: 5})
    found = pb.certificate(other, X, y, sample_weight=weight)
    assert found == pytest.approx(other.record.certificate[-1], rel=1e-9)


def test_threads_and_prepared_columns_change_nothing():
    X, y, _ = rows_with_holes(8, 6000)
    model = pb.fit_adaboost(X, y, rounds=6, weak=both())
    for columns in (X, pb.sort_columns(X)):
        other = pb.fit_adaboost(columns, y, rounds=6, weak=both(), n_threads=2)
        assert np.array_equal(other.vote, model.vote)
        assert np.array_equal(other.missing, model.missing)
    coarse = pb.fit_adaboost(pb.bin_columns(X), y, rounds=6, weak=both(search="binned"))
    assert not np.isin(coarse.missing, (0, 1)).all()


def test_early_stopping_and_validation():
    X, y, _ = rows_with_holes(9, 300)
    model = pb.fit_adaboost(X, y, rounds=60, weak=both(), validation=0.3, patience=10, rng=1)
    assert 0 < model.n_nodes <= 60
    tree = pb.fit_boosted_tree(X, y, nodes=60, weak=both(), validation=(X, y), patience=5)
    errors = [(s > 0) != (y == "b") for s in pb.staged_decision_function(tree, X)]
    assert np.mean(errors[-1]) == pytest.approx(tree.record.validation[tree.n_nodes])


def test_words_for_it():
    X = np.array([[1.0], [2.0], [3.0], [4.0], [np.nan], [np.nan]])
    model = pb.fit_adaboost(X, [0, 0, 0, 1, 1, 0], rounds=1, weak=both())
    assert model.missing.tolist() == [0.25]
    text = pb.describe(model)
    assert text.splitlines()[-1].endswith("out; missing goes both ways, 25 % above")
    assert "certifies exits drawn as assumed where values are missing" in text
    said = str(pb.explain(model, [[np.nan]]))
    assert "x[0] is missing, goes both ways, 25 % above, here with <= 3.5" in said


def test_several_classes():
    X, y, _ = rows_with_holes(10, 200)
    y = np.where(X[:, 3] > 0.8, "c", y)
    model = pb.fit_one_vs_rest(pb.fit_adaboost, X, y, weak=both(), rounds=10)
    assert (pb.predict(model, X) == y).mean() > 0.6


@pytest.mark.parametrize(
    "observation", [pb.observation.gaussian(0.1), pb.observation.sampled()], ids=str
)
def test_what_is_not_implemented(observation):
    X, y, _ = rows_with_holes(11)
    with pytest.raises(NotImplementedError, match='missing="both" with'):
        pb.fit_adaboost(X, y, weak=both(), observation=observation)
