"""Graphs fitted to tables with holes and categories: what the functions of a model say of them."""

import numpy as np
import pandas as pd
import pytest

import pboost as pb

RNG = np.random.default_rng(5)
N = 300
LEVELS = np.array(["blue", "green", "pink", "red"])
TABLE = pd.DataFrame(
    {"age": RNG.normal(size=N), "colour": RNG.choice(LEVELS, N), "size": RNG.normal(size=N)}
)
RATED = TABLE.colour.isin(["red", "blue"]) + 0.8 * TABLE.age + 0.3 * RNG.normal(size=N)
Y = np.where(RATED > 0.5, "yes", "no")
TABLE.loc[RNG.random(N) < 0.2, "age"] = np.nan
TABLE.loc[RNG.random(N) < 0.2, "colour"] = None
WEIGHT = RNG.exponential(size=N)
FLIP = pb.observation.flip(0.1)
FITS = {
    "chain": lambda X, y, **o: pb.fit_adaboost(X, y, n_estimators=15, **o),
    "soft chain": lambda X, y, **o: pb.fit_adaboost(X, y, n_estimators=8, observation=FLIP, **o),
    "tree": lambda X, y, **o: pb.fit_boosted_tree(X, y, max_nodes=12, **o),
    "soft tree": lambda X, y, **o: pb.fit_boosted_tree(X, y, max_nodes=8, observation=FLIP, **o),
    "matryoshka": lambda X, y, **o: pb.fit_matryoshka(X, y, shape=(3, 3), **o),
    "greedy": lambda X, y, **o: pb.fit_matryoshka(X, y, growth="greedy", max_nodes=9, **o),
}
builders = pytest.mark.parametrize("fit", list(FITS.values()), ids=list(FITS))


@builders
def test_certificates_are_found_again(fit):
    model = fit(TABLE, Y, sample_weight=WEIGHT)
    assert (model.feature >= 3).any()
    bound = pb.certificate(model, TABLE, Y, sample_weight=WEIGHT)
    assert bound == pytest.approx(model.record.certificate[-1], rel=1e-9)
    if model.is_exact:
        wrong = np.average(pb.predict(model, TABLE) != Y, weights=WEIGHT)
        assert wrong <= model.record.certificate[-1] + 1e-12


@builders
def test_files(fit, tmp_path):
    model = fit(TABLE, Y)
    pb.save(model, tmp_path / "model.npz")
    loaded = pb.load(tmp_path / "model.npz")
    score = pb.decision_function(model, TABLE)
    assert pb.decision_function(loaded, TABLE).tobytes() == score.tobytes()
    assert pb.describe(loaded) == pb.describe(model)
    mixed = TABLE[["size", "colour", "age"]].astype({"colour": "category"})
    assert pb.decision_function(loaded, mixed).tobytes() == score.tobytes()
    assert [pb.decision_function(model, TABLE[i : i + 1])[0] for i in range(9)] == score[
        :9
    ].tolist()


@builders
@pytest.mark.parametrize("given", [True, False])
def test_validation_stops_where_the_error_is_least(fit, given):
    half, rest = TABLE[: N // 2], TABLE[N // 2 :]
    y, z = Y[: N // 2], Y[N // 2 :]
    model = fit(half, y)
    if given:
        actual = fit(half, y, validation=(rest, z), n_iter_no_change=100)
    else:
        actual = fit(TABLE, Y, validation=0.3, n_iter_no_change=100, rng=1)
        assert actual.record.validation.min() < 0.5
        return
    errors = [np.mean(stage != z) for stage in pb.staged_predict(model, rest)]
    stages = model.record.stages
    if stages is None:
        np.testing.assert_allclose(actual.record.validation[1:], errors)
        assert actual.n_nodes == 1 + int(np.argmin(errors))
    assert pb.decision_function(actual, TABLE).tobytes() == (
        pb.decision_function(pb.models.truncate(model, actual.n_nodes), TABLE).tobytes()
    )


@builders
def test_holes_that_training_has_not_seen_are_known_when_growth_has_ended(fit):
    clean, z = TABLE[["age", "size"]].fillna(0.0), Y
    holes = clean.mask(RNG.random(clean.shape) < 0.3)
    model, actual = fit(clean, z), fit(clean, z, validation=(holes, z), n_iter_no_change=4)
    if model.record.stages is not None:
        return
    errors = [np.mean(stage != z) for stage in pb.staged_predict(model, holes)]
    found_errors = actual.record.validation[1:].tolist()
    np.testing.assert_allclose(found_errors, errors[: len(found_errors)])
    assert actual.n_nodes == 1 + int(np.argmin(found_errors))
    assert len(found_errors) in (len(errors), actual.n_nodes + 4)


@pytest.mark.parametrize("kind", ["chain", "soft chain", "tree", "soft tree"])
def test_further_fitting(kind):
    fit = FITS[kind]
    model = fit(TABLE, Y, sample_weight=WEIGHT)
    part, n = pb.models.truncate(model, 4), model.n_nodes
    size = {"n_estimators": n - 4} if "chain" in kind else {"max_nodes": n - 4}
    more = pb.continue_fit(part, TABLE, Y, sample_weight=WEIGHT, **size)
    for name in ("feature", "threshold", "next", "missing"):
        assert np.array_equal(getattr(more, name), getattr(model, name)), name
    np.testing.assert_allclose(more.vote, model.vote, rtol=1e-9)
    assert np.array_equal(more.inputs.member, model.inputs.member)
    assert more.table == model.table
    bound = pb.certificate(more, TABLE, Y, sample_weight=WEIGHT)
    assert bound == pytest.approx(more.record.certificate[-1], rel=1e-9)


def test_words():
    model = pb.fit_boosted_tree(
        pd.DataFrame({"colour": list("rrggbb") * 20 + [None] * 20, "age": np.arange(140.0)}),
        np.array([1, 1, 0, 0, 1, 1] * 20 + [0] * 20),
        max_nodes=1,
        weak_learner=pb.weak.stump(categorical_smoothing=0.0),
    )
    assert "node 0: colour not in {b, r} or missing: vote -" in pb.describe(model)
    told = {}
    for colour in ("r", "g", None, "violet"):
        row = pd.DataFrame({"colour": [colour], "age": [1.0]})
        told[colour] = str(pb.explain(model, row)).split("node 0: ")[1].split(", vote")[0]
    assert told == {
        "r": "colour = r in {b, r}",
        "g": "colour = g not in {b, r}",
        None: "colour is missing, treated as other than {b, r}",
        "violet": "colour is missing, treated as other than {b, r}",
    }
    assert str(pb.explain(model, row)) == str(pb.explain(model, row))
    X = pd.DataFrame({"age": [1.0, 2.0, 3.0, np.nan] * 9, "size": np.arange(36.0)})
    queries = pb.fit_boosted_tree(X, X.age.isna(), max_nodes=1)
    assert "node 0: age is not missing: vote -" in pb.describe(queries)
    assert "age is missing, vote +" in str(pb.explain(queries, X[3:4]))
    assert "age = 2 is not missing, vote -" in str(pb.explain(queries, X[1:2]))
    cut = pb.fit_boosted_tree(X, (X.age > 2) | X.age.isna(), max_nodes=1)
    assert "node 0: age <= 2.5: vote" in pb.describe(cut)
    assert "; else or missing vote +" in pb.describe(cut)
    assert "age is missing, treated as > 2.5, vote +" in str(pb.explain(cut, X[3:4]))
    clean = pb.fit_boosted_tree(X, X["size"] > 10, max_nodes=1)
    assert "missing" not in pb.describe(clean)
    assert "size is missing, treated as > 10.5" in str(pb.explain(clean, [1.0, np.nan]))
