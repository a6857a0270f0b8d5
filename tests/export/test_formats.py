"""Models in the formats of other tools, evaluated by these tools."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from dataclasses import replace

import exported
import numpy as np
import pytest
from exported import EVERY, WITH_HOLES, made, rows_for
from reference import tree_sum as twin
from reference.shapley import shapley_values
from sided_trees import random_forest, random_rows

import pboost as pb
from pboost.export.onnx_treelite import _columns as onnx_columns
from pboost.export.shap_trees import by_thresholds
from pboost.models.as_trees import trees_of_sums

TREELITE_KINDS = [
    "chain",
    "votes",
    "forest, three",
    "softmax",
    "one tree a round",
    "poisson",
    "rest of forests",
]
#: Those whose probabilities are functions of ONNX.
WITH_SHARES = {"half log odds", "log odds", "lead", "softmax", "shares"}


def rows_of(kind):
    return exported.X if kind in WITH_HOLES else exported.PLAIN


def weighted(kind):
    X = np.ones((9, 2)) if kind.startswith("nothing") else rows_of(kind)
    return pb.models.as_tree_ensemble(made(kind), X)


def assert_close(found, expected, trees, tolerance=1e-15):
    size = 1 + twin.size(trees).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * size)


# Sets as thresholds


@pytest.mark.full_for("bags of votes", "samme of trees")
@pytest.mark.parametrize("kind", WITH_HOLES)
def test_thresholds_are_what_sets_are(kind):
    trees = weighted(kind)
    plain = by_thresholds(trees, 10**6)
    assert not plain.n_sets
    assert plain.n_nodes > trees.n_nodes
    rows = rows_for(made(kind), 60)
    assert np.array_equal(twin.values(plain, rows), twin.values(trees, rows))
    start = plain.start
    for node in np.flatnonzero(plain.feature >= 0):
        below = plain.weight[plain.children[node] + start[node]].sum()
        np.testing.assert_allclose(plain.weight[node], below, rtol=1e-12)
    with pytest.raises(
        ValueError, match=f"max_nodes: expected at least {plain.n_nodes}, .*to_json"
    ):
        by_thresholds(trees, plain.n_nodes - 1)


def test_empty_and_full_sets_send_missing_values_where_they_go():
    trees = pb.models.as_tree_ensemble(
        random_forest(np.random.default_rng(1), 3, 4, categories=(1,))
    )
    every = np.array([2**64 - 1] * 3 + [2**63 - 1], np.uint64)
    rows = np.array([[0.0, 0, 0, 0], [0, 254, 0, 0], [0, np.nan, 0, 0]])
    for member in (every, every * np.uint64(0)):
        sets = replace(trees, sets=np.tile(member, (trees.n_sets, 1)))
        plain = by_thresholds(sets, 10**6)
        assert np.array_equal(twin.values(plain, rows), twin.values(sets, rows))


# SHAP


def explained(trees, rows):
    shap = pytest.importorskip("shap", reason="shap is not installed")
    actual = pb.export.to_shap(trees, max_nodes=10**6)
    explainer = shap.TreeExplainer(actual, feature_perturbation="tree_path_dependent")
    values = explainer.shap_values(rows, check_additivity=False)
    return values.reshape(*rows.shape, -1), np.atleast_1d(explainer.expected_value)


@pytest.mark.parametrize("kind", EVERY)
def test_shap_values_add_up(kind):
    trees = weighted(kind)
    rows = rows_for(made(kind), 20)
    parts, base = explained(trees, rows)
    depth = by_thresholds(trees, 10**6).depths.max()
    values = twin.values(trees, rows)
    assert_close(parts.sum(axis=1) + base, values, trees, 1e-14 if depth <= 12 else 1e-12)


@pytest.mark.parametrize("kind", ["chain", "votes", "cart", "log_loss", "matryoshka, soft"])
def test_shap_values_are_shapley_values(kind):
    """Also of sets of levels, whose runs are compared one after the other."""
    trees = weighted(kind)
    rows = rows_for(made(kind), 3, seed=1)
    parts, _ = explained(trees, rows)
    for row, item in zip(rows, parts, strict=True):
        assert_close(item, shapley_values(trees, row)[0], trees, 1e-12)


def test_shap_values_of_deep_trees_on_many_columns_add_up():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 20))
    y = (X**2).sum(axis=1) > 20
    trees = pb.models.as_tree_ensemble(
        pb.fit_random_forest(X, y, n_estimators=2, max_features=1, rng=0)
    )
    parts, base = explained(trees, X[:20])
    assert trees.depths.max() > 12
    assert_close(parts.sum(axis=1) + base, twin.values(trees, X[:20]), trees, 1e-7)


def test_shap_needs_weights():
    with pytest.raises(ValueError, match="X: expected rows that define the weights"):
        pb.export.to_shap(made("chain"))
    with pytest.raises(ValueError, match="X: expected None with a TreeEnsemble"):
        pb.export.to_shap(pb.models.as_tree_ensemble(made("chain")), exported.X)
    given = pb.export.to_shap(made("chain"), exported.X[:1])  # half of the leaves are empty
    assert min(tree["node_sample_weight"].min() for tree in given["trees"]) > 0


@pytest.mark.parametrize("kind", ["cart", "softmax"])
def test_shapiq(kind):
    shapiq = pytest.importorskip("shapiq", reason="shapiq is not installed")
    trees, rows = weighted(kind), rows_for(made(kind), 40, seed=2)
    rows = rows[~np.isnan(rows).any(axis=1)][:2]
    for value in range(trees.n_values):
        actual = pb.export.to_shapiq(trees, value=value)
        explainer = shapiq.TreeExplainer(actual, max_order=1, index="SV")
        for row in rows:
            parts = explainer.explain(row)
            expected = shapley_values(trees, row)[0][:, value]
            assert_close(parts.get_n_order_values(1), expected, trees, 1e-10)
            total = twin.values(trees, row[None])[0, value]
            assert_close(parts.baseline_value + expected.sum(), total, trees, 1e-10)


def test_shapiq_needs_comparisons():
    with pytest.raises(ValueError, match="model: expected trees with splits for shapiq"):
        pb.export.to_shapiq(made("nothing to learn"), np.ones((3, 2)))
    with pytest.raises(ValueError, match="value: expected an integer"):
        pb.export.to_shapiq(made("cart"), value=2)


# treelite


def assert_treelite(trees, rows):
    treelite = pytest.importorskip("treelite", reason="treelite is not installed")
    actual = pb.export.to_treelite(trees)
    values = treelite.gtil.predict(actual, rows, pred_margin=True).reshape(len(rows), -1)
    assert_close(values, twin.values(trees, rows), trees)
    share = treelite.gtil.predict(actual, rows).reshape(len(rows), -1)
    if trees.link in ("half log odds", "log odds") and trees.n_values == 1:
        np.testing.assert_allclose(share[:, 0], twin.probabilities(trees, rows)[:, 1], rtol=1e-13)
    elif trees.link == "softmax" and trees.temperature != 1:
        assert_close(share, twin.values(trees, rows), trees)
    elif trees.link in ("softmax", "shares"):
        np.testing.assert_allclose(share, twin.probabilities(trees, rows), atol=2e-7)
    elif trees.link == "exp":
        np.testing.assert_allclose(share[:, 0], twin.predictions(trees, rows), rtol=1e-13)
    return actual


@pytest.mark.parametrize("kind", EVERY)
def test_treelite(kind):
    assert_treelite(pb.models.as_tree_ensemble(made(kind)), rows_for(made(kind), 60))


def is_taken_for_missing(rows):
    """Return where the C of TL2cgen sees the mark of a missing value: lower bits that are all 1."""
    return (np.ascontiguousarray(rows).view(np.uint64) & 0xFFFFFFFF) == 0xFFFFFFFF


@pytest.mark.build
@pytest.mark.parametrize("kind", TREELITE_KINDS)
def test_c_of_treelite(kind, tmp_path, capfd):
    tl2cgen = pytest.importorskip("tl2cgen", reason="tl2cgen is not installed")
    trees, rows = pb.models.as_tree_ensemble(made(kind)), rows_for(made(kind), 300)
    rows[is_taken_for_missing(rows)] = 0.5
    actual = assert_treelite(trees, rows)
    library = tmp_path / "model.so"
    tl2cgen.export_lib(actual, toolchain="gcc", libpath=library, params={})
    predictor = tl2cgen.Predictor(library)
    data = tl2cgen.DMatrix(rows, dtype="float64")
    values = predictor.predict(data, pred_margin=True).reshape(len(rows), -1)
    assert_close(values, twin.values(trees, rows), trees)


# ONNX


def session(trees):
    runtime = pytest.importorskip("onnxruntime", minversion="1.23", reason="no onnxruntime 1.23")
    pytest.importorskip("onnx", reason="onnx is not installed")
    text = pb.export.to_onnx(trees).SerializeToString()
    return runtime.InferenceSession(text, providers=["CPUExecutionProvider"])


def assert_onnx(trees, rows):
    run = session(trees)
    outputs = dict(
        zip([o.name for o in run.get_outputs()], run.run(None, {"X": rows}), strict=True)
    )
    values = twin.values(trees, rows)
    assert_close(outputs["values"], values, trees)
    if trees.classes is None:
        assert set(outputs) == {"values"}
        return
    lead = np.abs(values if values.shape[1] == 1 else np.diff(np.sort(values))[:, -1:])[:, 0]
    clear = lead > 1e-12
    assert np.array_equal(outputs["label"][clear], twin.predictions(trees, rows)[clear])
    has_shares = trees.link in WITH_SHARES
    assert ("probabilities" in outputs) == has_shares
    if has_shares:
        share = twin.probabilities(trees, rows)
        np.testing.assert_allclose(outputs["probabilities"], share, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", EVERY)
def test_onnx(kind):
    assert_onnx(pb.models.as_tree_ensemble(made(kind)), rows_for(made(kind), 200))


@pytest.mark.parametrize(
    "labels",
    [[-1, 1], [0.5, 2.5], [False, True], ["no", "yes"]],
    ids=["integers", "floats", "booleans", "text"],
)
def test_labels_of_onnx(labels):
    y = np.array(labels)[exported.TWO.astype(int)]
    model = pb.fit_boosted_tree(exported.PLAIN, y, max_nodes=5)
    (actual,) = session(pb.models.as_tree_ensemble(model)).run(["label"], {"X": exported.PLAIN})
    assert actual.tolist() == pb.predict(model, exported.PLAIN).tolist()


NUMBERS = exported.X[:, :2]  # of which some are missing
AFFINE = pb.weak.affine(n_directions=6, n_terms=2, seed=1)
#: Graphs whose nodes compare sums of columns of numbers.
OF_SUMS = {
    "affine": lambda: pb.fit_adaboost(NUMBERS, exported.TWO, n_estimators=8, weak_learner=AFFINE),
    "affine tree": lambda: pb.fit_boosted_tree(
        NUMBERS, exported.TWO, max_nodes=7, weak_learner=AFFINE
    ),
    "affine joins": lambda: pb.fit_matryoshka(
        NUMBERS, exported.TWO, shape=(3, 2), join="all", weak_learner=AFFINE
    ),
    "affine votes": lambda: pb.fit_adaboost(
        NUMBERS, exported.THREE, n_estimators=5, weak_learner=AFFINE
    ),
    "affine of known": lambda: pb.fit_adaboost(
        exported.PLAIN, exported.TWO, n_estimators=5, weak_learner=AFFINE
    ),
    "linear": lambda: pb.fit_boosted_tree(
        NUMBERS, exported.TWO, max_nodes=4, weak_learner=pb.weak.linear()
    ),
}


def test_children_of_roots_have_two_numbers_in_onnx():
    """onnxruntime 1.23 takes a root for a leaf if the numbers of its children are equal."""
    trees = trees_of_sums(OF_SUMS["affine joins"](), 100)
    for copies in (1, 2, 5):
        joined = repeated(trees, copies)
        actual = onnx_columns(joined)
        root = np.array(actual["tree_roots"])
        assert len(root) == copies * trees.n_trees
        true, false, true_leaf, false_leaf = (
            np.array(actual[f"nodes_{name}"])[root]
            for name in ("truenodeids", "falsenodeids", "trueleafs", "falseleafs")
        )
        assert ((true != false) | (true_leaf == false_leaf)).all()
        assert (true_leaf != false_leaf).any()


def repeated(trees, copies):
    """Return trees, each of them several times."""
    arrays = ("feature", "threshold", "children", "category_set", "value")
    several = {name: np.concatenate([getattr(trees, name)] * copies) for name in arrays}
    root = np.append(0, np.cumsum(np.tile(np.diff(trees.root), copies))).astype(np.int32)
    missing = None if trees.missing is None else np.tile(trees.missing, copies)
    return replace(trees, root=root, missing=missing, weight=None, **several)


@pytest.mark.parametrize("kind", OF_SUMS)
def test_sums_of_columns_in_onnx(kind):
    model, rng = OF_SUMS[kind](), np.random.default_rng(1)
    rows = np.round(rng.normal(size=(5000, 2)) * [2, 2e3], 3)
    if model.takes_missing:
        rows[rng.random(rows.shape) < 0.2] = np.nan
    run = session(model)
    assert [(item.name, item.shape) for item in run.get_inputs()] == [("X", ["n", 2])]
    names = [output.name for output in run.get_outputs()]
    actual = dict(zip(names, run.run(None, {"X": rows}), strict=True))
    filled = (
        rows if model.inputs.fill is None else np.where(np.isnan(rows), model.inputs.fill, rows)
    )
    sums = model.inputs.values(np.ascontiguousarray(filled))[:, model.feature]
    far = (np.abs(sums - model.threshold) > 1e-9 * (1 + np.abs(model.threshold))).all(axis=1)
    assert far.mean() > 0.99
    expected = pb.decision_function(model, rows).reshape(len(rows), -1)
    assert np.ptp(expected) > 0
    np.testing.assert_allclose(actual["values"][far], expected[far], rtol=0, atol=1e-12)
    assert np.array_equal(actual["label"][far], pb.predict(model, rows)[far])
    share = pb.predict_proba(model, rows)[far]
    np.testing.assert_allclose(actual["probabilities"][far], share, rtol=1e-12, atol=1e-15)


def test_other_sums_are_refused():
    levels = pb.fit_adaboost(
        exported.X, exported.TWO, n_estimators=2, weak_learner=AFFINE, **exported.LEVELS
    )
    stumps = pb.fit_adaboost(
        NUMBERS, exported.TWO, n_estimators=2, weak_learner=pb.weak.separator(2)
    )
    for model in (levels, stumps):
        with pytest.raises(TypeError, match="to_onnx if all features are numeric"):
            pb.export.to_onnx(model)
    affine = OF_SUMS["affine"]()
    with pytest.raises(TypeError, match="to_onnx if all features are numeric"):
        pb.export.to_treelite(affine)
    with pytest.raises(ValueError, match="max_nodes: expected at least 24, "):
        pb.export.to_onnx(affine, max_nodes=23)


def test_members_of_sets_are_counted():
    trees = pb.models.as_tree_ensemble(made("forest"))
    members = 2 * sum(len(trees.categories(k)) for k in trees.category_set if k >= 0)
    with pytest.raises(ValueError, match=f"max_categories: expected at least {members}, "):
        pb.export.to_onnx(trees, max_categories=members - 1)


@pytest.mark.clock
def test_a_hundred_thousand_rows():
    """ONNX and treelite, with missing values, levels and values at thresholds."""
    treelite = pytest.importorskip("treelite", reason="treelite is not installed")
    for kind in ("chain", "votes", "forest, three", "log_loss", "rest of chains", "samme"):
        model, rows = made(kind), rows_for(made(kind), 100_000)
        trees = pb.models.as_tree_ensemble(model)
        X = exported.decoded(model, rows)
        has_shares = trees.link == "shares"
        expected = pb.predict_proba(model, X) if has_shares else pb.decision_function(model, X)
        expected = expected.reshape(len(rows), -1)
        values, label = session(trees).run(["values", "label"], {"X": rows})
        assert np.abs(values - expected).max() <= 1e-12
        margins = treelite.gtil.predict(pb.export.to_treelite(trees), rows, pred_margin=True)
        assert np.abs(margins.reshape(len(rows), -1) - expected).max() <= 1e-12
        lead = np.abs(expected if expected.shape[1] == 1 else np.diff(np.sort(expected))[:, -1:])
        clear = lead[:, 0] > 1e-12
        assert np.array_equal(label[clear], pb.predict(model, X)[clear])


# SQL


def by_sql(model, X, table="rows of 'me'"):
    names = [f'"{name}"' for name in model.feature_names or [f"x{j}" for j in range(X.shape[1])]]
    cells = [[None if v is None or v != v else v for v in row] for row in X.tolist()]
    marks = ", ".join("?" * X.shape[1])
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute(f'CREATE TABLE "{table}" ({", ".join(names)})')
        base.executemany(f'INSERT INTO "{table}" VALUES ({marks})', cells)
        return np.array(base.execute(pb.export.to_sql(model, table)).fetchall(), dtype=np.float64)


@pytest.mark.parametrize("kind", EVERY)
def test_sql(kind):
    model, trees = made(kind), pb.models.as_tree_ensemble(made(kind))
    rows = rows_for(model, 60)
    actual = by_sql(model, exported.decoded(model, rows))
    assert_close(actual, twin.values(trees, rows), trees)


def test_sql_of_trees_made_by_hand():
    rng = np.random.default_rng(0)
    forest, rows = random_forest(rng, 4, 5, categories=(2,)), random_rows(rng, 90, 5, (2,))
    rows[:, 2] = np.where(rows[:, 2] > 254, np.nan, rows[:, 2])
    assert_close(
        by_sql(forest, rows), pb.predict_proba(forest, rows), pb.models.as_tree_ensemble(forest)
    )


def test_sql_reads_frames_by_the_values_of_levels():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 120
    grade = pandas.Categorical(
        rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True
    )
    frame = pandas.DataFrame(
        {
            'it\'s "odd"': rng.choice(["re'd", "blue", None], n),
            "many": rng.integers(0, 400, n),
            "flag": rng.random(n) < 0.5,
            "grade": grade,
            "size": rng.normal(size=n),
        }
    )
    y = (
        2 * (frame.iloc[:, 0] == "blue")
        + (frame["grade"] == "mid")
        + frame["flag"]
        + frame["size"]
        + (frame["many"] % 2)
    )
    model = pb.fit_random_forest(
        frame,
        y.to_numpy(float),
        task="regression",
        n_estimators=3,
        rng=0,
        categorical_features=["many", "flag"],
    )
    columns = ", ".join('"' + name.replace('"', '""') + '"' for name in frame)
    plain = frame.astype(object)
    plain.loc[3, "grade"] = None
    plain.loc[4, "many"] = 10**6  # never seen
    cells = [[None if v is None or v != v else v for v in row] for row in plain.to_numpy().tolist()]
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute(f"CREATE TABLE t ({columns})")
        base.executemany(f"INSERT INTO t VALUES ({', '.join('?' * 5)})", cells)
        actual = np.array(base.execute(pb.export.to_sql(model, "t")).fetchall())[:, 0]
    frame.loc[3, "grade"] = None
    frame.loc[4, "many"] = 10**6
    np.testing.assert_allclose(actual, pb.predict(model, frame), rtol=1e-13)


@pytest.mark.parametrize("matters", ["missing", "categories"])
def test_sql_of_more_than_255_categories(matters):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 300, (900, 1)).astype(float)
    values[::9] = np.nan
    y = np.isnan(values[:, 0]) if matters == "missing" else np.nan_to_num(values[:, 0]) % 3 == 0
    model = pb.fit_cart(values, y + 0.0, task="regression", max_depth=4, categorical_features=[0])
    rows = np.array([[1000.0], [np.nan], *np.arange(300)[:, None]])
    np.testing.assert_allclose(by_sql(model, rows)[:, 0], pb.predict(model, rows), rtol=1e-13)
    text = pb.export.to_sql(model, "t")
    assert ("IS NOT NULL" if matters == "missing" else "NOT IN") in text


def test_what_sql_cannot_hold():
    tree = pb.fit_cart(exported.PLAIN, exported.TWO, max_depth=1)
    for table in ("", "a\0b", 3):
        with pytest.raises(ValueError, match="table: expected a non-empty text"):
            pb.export.to_sql(tree, table)
    with pytest.raises(ValueError, match="got 'a' twice"):
        pb.export.to_sql(replace(tree, feature_names=("a", "a")), "t")


# JSON

#: The arrays of the record.
ARRAYS = (
    "root",
    "feature",
    "threshold",
    "children",
    "missing",
    "category_set",
    "sets",
    "value",
    "bias",
    "classes",
    "weight",
    "target",
)


@pytest.mark.parametrize("kind", EVERY)
def test_json_comes_back(kind):
    trees = pb.models.as_tree_ensemble(made(kind))
    text = pb.export.to_json(trees)
    again = pb.export.from_json(text)
    for name in ARRAYS:
        first, two = getattr(trees, name), getattr(again, name)
        assert (first is None) == (two is None), name
        if first is not None:
            assert (first.dtype, first.tobytes()) == (two.dtype, two.tobytes()), name
    plain = "aggregation", "link", "temperature", "builder", "comparison", "n_features"
    for name in (*plain, "feature_names"):
        assert getattr(trees, name) == getattr(again, name)
    assert trees.table == again.table
    assert pb.export.to_json(again) == text
    assert (
        pb.export.from_json(pb.export.to_json(made(kind), indent=1).encode()).n_nodes
        == trees.n_nodes
    )


DAMAGED = {
    "no JSON": ("{", "{{", "text: expected JSON"),
    "a later version": ('"version": 1', '"version": 2', "of version 1, got version 2"),
    "another comparison": (
        '"comparison": "<="',
        '"comparison": "<"',
        "comparison: expected one of",
    ),
    "text for a number": ('"bias": [', '"bias": ["a", ', "bias: expected numbers"),
    "a field less": ('"link"', '"kind"', "expected the field 'link'"),
    "a column too many": (
        '"feature": [',
        '"feature": [7, ',
        r"feature: expected values in \[-1, 4",
    ),
    "a child too far": ('"children": [[', '"children": [[1e9, 2], [', "children: expected numbers"),
    "a hole": ('"missing": [', '"missing": [null, ', "missing: expected numbers"),
    "a level too large": (
        '"sets": [',
        '"sets": [[300], ',
        "sets: expected categories from 0 to 254",
    ),
    "a value less": ('"value": [', '"value": [3, ', "value: expected lists of numbers"),
    "objects": ('"dtype": "b1"', '"dtype": "O"', "dtype: expected a dtype of classes"),
    "no trees": ('"trees": [', '"trees": [], "x": [', "written by to_json"),
    "infinity": ('"threshold": [', '"threshold": [1e999, ', "threshold"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_json_is_refused(kind):
    there, instead, said = DAMAGED[kind]
    text = pb.export.to_json(made("tree"))
    assert there in text
    with pytest.raises(ValueError, match=f"text: .*{said}" if "text" not in said else said):
        pb.export.from_json(text.replace(there, instead, 1))


def test_json_is_text():
    with pytest.raises(TypeError, match="text: expected the result of to_json"):
        pb.export.from_json(3)
    with pytest.raises(ValueError, match="of version 1"):
        pb.export.from_json("[]")


# Packages


def test_skops_trusts_two_types():
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    model = pb.fit_adaboost(exported.PLAIN, exported.TWO, n_estimators=5)
    types = ["pboost.models.graph.DecisionGraph", "pboost.models.schema.TrainingRecord"]
    text = skops.dumps(model)
    assert skops.get_untrusted_types(data=text) == types
    again = skops.loads(text, trusted=types)
    values = pb.decision_function(model, exported.PLAIN)
    assert np.array_equal(pb.decision_function(again, exported.PLAIN), values)
    for kind in ("votes", "forest", "log_loss"):
        text = skops.dumps(made(kind))
        again = skops.loads(text, trusted=skops.get_untrusted_types(data=text))
        assert np.array_equal(pb.predict(again, exported.X), pb.predict(made(kind), exported.X))


@pytest.mark.parametrize(
    ("package", "function"), [("onnx", "to_onnx"), ("treelite", "to_treelite")]
)
def test_missing_packages_are_named(package, function, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, "treelite.model_builder", None)
    said = rf'{function} needs {package}: pip install "pboosting\[{package}\]"'
    with pytest.raises(ImportError, match=said):
        getattr(pb.export, function)(made("chain"))
