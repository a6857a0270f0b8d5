"""Pictures of regions, of steps, of pruning tables, and of sets of levels."""

import io
import sys
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from inspected import SCORE, TWO, WORDS, X, made

import pboost as pb

rc_context = pytest.importorskip("matplotlib").rc_context
RNG = np.random.default_rng(8)
COLOURS = RNG.choice(["red", "green", "blue", "grey"], 300)
FRAME = pd.DataFrame({"size": RNG.normal(size=300), "colour": COLOURS, "age": RNG.normal(size=300)})
FRAME.loc[::9, "age"] = np.nan
IS_WARM = np.isin(COLOURS, ["red", "grey"]) ^ (FRAME["size"].to_numpy() > 1)
SMALL = {"resolution": 8}
#: A model of each class.
REGIONS = [
    "soft tree",
    "affine",
    "columns",
    "cart, three",
    "forest, numbers",
    "stagewise",
    "probit",
    "probit tree",
    "sbpmt, three",
    "rest",
    "samme",
    "bagging",
]


def mesh(ax):
    """Return the numbers of a picture's cells."""
    actual = next(c for c in ax.collections if c.get_gid() in ("regions", "sets"))
    return np.asarray(actual.get_array())


# Regions


@pytest.mark.parametrize("kind", REGIONS)
def test_regions_of_every_model(kind):
    model = made(kind)
    shown = mesh(pb.plot.regions(model, X, features=(4, 0), **SMALL))
    assert shown.shape == (8, 8)
    held = np.quantile(X, 0.5, axis=0, method="lower")
    for i, j in [(0, 0), (0, 7), (7, 0), (3, 5)]:
        row = held.copy()
        for column, k in ((4, j), (0, i)):
            low, high = X[:, column].min(), X[:, column].max()
            at = np.linspace(low - 0.05 * (high - low), high + 0.05 * (high - low), 8)
            row[column] = at[k]
        predicted = pb.predict(model, row[None])[0]
        expected = predicted if model.classes is None else model.classes.tolist().index(predicted)
        assert shown[i, j] == expected


def test_rows_and_names_are_drawn():
    ax = pb.plot.regions(made("cart, three"), X, WORDS, **SMALL)
    rows = {c.get_gid(): c.get_offsets() for c in ax.collections if c.get_gid() != "regions"}
    for k, word in enumerate(("ash", "elm", "oak")):
        np.testing.assert_allclose(rows[f"rows-{k}"], X[word == WORDS][:, :2])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ash", "elm", "oak"]
    ax = pb.plot.regions(made("cart, numbers"), X, SCORE, **SMALL)
    regions, points = ax.collections
    assert regions.get_clim() == points.get_clim()
    np.testing.assert_array_equal(points.get_array(), SCORE)
    assert len(ax.figure.axes) == 2  # with the scale


def test_categories_along_an_axis_and_held():
    model = pb.fit_boosted_tree(FRAME, IS_WARM, max_nodes=4)
    ax = pb.plot.regions(model, FRAME, IS_WARM, features=("size", "colour"), **SMALL)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["blue", "green", "grey", "red"]
    assert mesh(ax).shape == (4, 8)
    median = np.nanquantile(FRAME["age"], 0.5, method="lower")
    rows = pd.DataFrame(
        {
            "size": [FRAME["size"].min()] * 4,
            "age": [median] * 4,
            "colour": ["blue", "green", "grey", "red"],
        }
    )
    low, high = FRAME["size"].min(), FRAME["size"].max()
    rows["size"] = low - 0.05 * (high - low)
    np.testing.assert_array_equal(mesh(ax)[:, 0], pb.predict(model, rows))
    # The most frequent level is where the others are drawn.
    ax = pb.plot.regions(model, FRAME, features=("size", "age"), **SMALL)
    often = FRAME["colour"].mode()[0]
    i = ["blue", "green", "grey", "red"].index(often)
    assert mesh(ax)[3, 0] == pb.predict(model, rows.iloc[[i]])[0]
    first = FRAME.assign(size=1.0)
    assert mesh(pb.plot.regions(model, first, features=("size", "age"), **SMALL)).shape == (8, 8)
    ordered = FRAME.assign(grade=pd.Categorical(COLOURS, ["red", "grey", "blue", "green"], True))
    model = pb.fit_cart(ordered, IS_WARM, max_depth=3)
    ax = pb.plot.regions(model, ordered, features=("grade", "size"), **SMALL)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["red", "grey", "blue", "green"]


def test_refusals_of_regions(monkeypatch):
    model = made("cart")
    for features, message in [
        ((0,), "expected two features, got 1"),
        ((0, 0), "distinct columns"),
        ((0, 5), "features: expected"),
        (("a", 1), "expected column names"),
    ]:
        with pytest.raises(ValueError, match=message):
            pb.plot.regions(model, X, features=features)
    with pytest.raises(TypeError, match="features: expected a sequence"):
        pb.plot.regions(model, X, features=1)
    with pytest.raises(ValueError, match="resolution: expected"):
        pb.plot.regions(model, X, resolution=1)
    with pytest.raises(ValueError, match="X: "):
        pb.plot.regions(model, X[:0])
    with pytest.raises(ValueError, match="y: "):
        pb.plot.regions(model, X, TWO[:-1])
    holes = X.copy()
    holes[:, 1] = np.nan
    with pytest.raises(ValueError, match=r"a finite value of x\[1\]"):
        pb.plot.regions(model, holes)
    with pytest.raises(ValueError, match="finite range"):
        pb.plot.regions(model, np.vstack([X[0] * 0 + 1.7e308, X[0] * 0 - 1.7e308]))
    train = pb.weak.oracle(lambda X, y, weight, rng: lambda rows, rng: np.sign(rows[:, 0] + 1e-9))
    oracle = pb.fit_adaboost(X, TWO, n_estimators=1, weak_learner=train)
    with pytest.raises(TypeError, match="uses features"):
        pb.plot.regions(oracle, X)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pboosting\[plot\]"):
        pb.plot.regions(model, X, **SMALL)


# Steps


def lines(ax):
    """Return the lines of a picture by their names."""
    return {line.get_label(): line.get_xydata() for line in ax.lines}


def test_steps_of_graphs():
    model = made("tree")
    actual = lines(pb.plot.training_curve(model, X, TWO))
    np.testing.assert_array_equal(actual["certificate"][:, 1], model.record.certificate)
    errors = [np.mean(label != TWO) for label in pb.staged_predict(model, X)]
    np.testing.assert_allclose(actual["error"], np.column_stack([[1, 2, 3, 4], errors]))
    assert list(lines(pb.plot.training_curve(model))) == ["certificate"]
    weight = np.arange(160.0)
    actual = lines(pb.plot.training_curve(model, X, TWO, sample_weight=weight))["error"]
    wrong = next(pb.staged_predict(model, X)) != TWO
    assert actual[0, 1] == pytest.approx(weight[wrong].sum() / weight.sum())
    collected = made("by sign")
    at = lines(pb.plot.training_curve(collected, X, TWO))["error"][:, 0]
    assert at.tolist() == collected.record.stages.tolist()
    stopped = pb.fit_adaboost(X, TWO, n_estimators=8, validation=0.3, rng=0)
    actual = lines(pb.plot.training_curve(stopped))["validation error"]
    np.testing.assert_array_equal(actual[:, 1], stopped.record.validation)


def test_steps_of_sums():
    model = made("stagewise, numbers")
    actual = lines(pb.plot.training_curve(model, X, SCORE))
    np.testing.assert_array_equal(actual["training loss"][:, 1], model.training_loss)
    assert actual["mean squared error"][-1, 1] == pytest.approx(
        np.mean((pb.predict(model, X) - SCORE) ** 2)
    )
    assert len(lines(pb.plot.training_curve(made("columns"), X, TWO))) == 2


def test_refusals_of_steps():
    model = made("tree")
    for arguments in ((X,), (None, TWO)):
        with pytest.raises(ValueError, match="X, y: expected both"):
            pb.plot.training_curve(model, *arguments)
    with pytest.raises(ValueError, match="sample_weight: expected None"):
        pb.plot.training_curve(model, sample_weight=np.ones(160))
    with pytest.raises(ValueError, match="sample_weight: expected at least one"):
        pb.plot.training_curve(model, X, TWO, sample_weight=np.zeros(160))
    with pytest.raises(ValueError, match="X: "):
        pb.plot.training_curve(model, X[:0], TWO[:0])
    for kind in ("cart", "forest", "probit tree", "bagging"):
        with pytest.raises(TypeError, match="with a training record"):
            pb.plot.training_curve(made(kind))


# Pruning


def test_pruning_table():
    tree = made("pruned")
    ax = pb.plot.pruning(tree)
    table = tree.pruning
    (errors,) = ax.containers
    np.testing.assert_array_equal(
        errors.lines[0].get_xydata(), np.column_stack([table.n_leaves, table.error])
    )
    actual = lines(ax)
    best = np.argmin(table.error)
    within = actual["smallest error + standard error"][:, 1]
    assert within == pytest.approx(table.error[best] + table.standard_error[best])
    np.testing.assert_array_equal(actual["chosen"], [[tree.n_leaves, table.error[table.chosen]]])
    with pytest.raises(ValueError, match="fitted by fit_pruned_cart"):
        pb.plot.pruning(made("cart"))
    with pytest.raises(TypeError, match="a Tree fitted by fit_pruned_cart"):
        pb.plot.pruning(made("forest"))


# Sets of levels


def test_level_sets_of_graphs_and_trees():
    graph = pb.fit_boosted_tree(FRAME, IS_WARM, max_nodes=5)
    nodes = np.flatnonzero(graph.feature >= 3)
    fall = -np.diff(graph.record.certificate)[nodes]
    nodes = nodes[np.argsort(-fall, kind="stable")]
    ax = pb.plot.category_splits(graph)
    assert [t.get_text() for t in ax.get_yticklabels()] == [f"node {node}" for node in nodes]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["blue", "green", "grey", "red"]
    expected = graph.inputs.bits()[graph.feature[nodes] - 3][:, :4]
    np.testing.assert_array_equal(mesh(ax), expected)
    # A row with a level of the set takes exit 1.
    rows = pd.DataFrame({"size": 0.0, "colour": ["blue", "green", "grey", "red"], "age": 0.0})
    place = nodes.tolist().index(0)  # the root asks for a colour
    taken = [pb.explain(graph, rows.iloc[[k]]).tests[0].answer for k in range(4)]
    assert taken == expected[place].tolist()
    assert mesh(pb.plot.category_splits(graph, "colour", max_nodes=1)).shape == (1, 4)


@pytest.mark.parametrize("builder", ["cart", "forest", "stagewise", "probit", "sbpmt"])
def test_level_sets_of_trees(builder):
    model = {
        "cart": lambda: pb.fit_cart(FRAME, IS_WARM, max_depth=3),
        "forest": lambda: pb.fit_random_forest(FRAME, IS_WARM, n_estimators=3, max_depth=3, rng=0),
        "stagewise": lambda: pb.fit_gradient_boosting(
            FRAME, IS_WARM, loss="log_loss", n_estimators=3
        ),
        "probit": lambda: pb.fit_probit_tree(
            FRAME, IS_WARM, max_depth=2, max_iter=3, min_samples_leaf=20
        ),
        "sbpmt": lambda: pb.fit_sbpmt(
            FRAME, IS_WARM, n_estimators=2, n_boosting_rounds=1, max_iter=3, rng=0
        ),
    }[builder]()
    ax = pb.plot.category_splits(model, 1, max_nodes=4)
    shown = mesh(ax)
    assert 1 <= len(shown) <= 4
    assert shown.shape[1] == 4
    assert (shown.any(axis=1) & ~shown.all(axis=1)).all()
    called = [text.get_text() for text in ax.get_yticklabels()]
    assert all(("tree" in name) == (builder not in ("cart", "probit")) for name in called)


def test_refusals_of_level_sets():
    for kind in ("tree", "cart"):
        with pytest.raises(ValueError, match="splits on sets of categories"):
            pb.plot.category_splits(made(kind))
    model = pb.fit_cart(FRAME, IS_WARM, max_depth=3)
    with pytest.raises(ValueError, match="feature: expected a feature with splits"):
        pb.plot.category_splits(model, "size")
    with pytest.raises(ValueError, match="feature: expected column names"):
        pb.plot.category_splits(model, "sise")
    with pytest.raises(ValueError, match="max_nodes: expected"):
        pb.plot.category_splits(model, max_nodes=0)
    with pytest.raises(TypeError, match="sum of trees"):
        pb.plot.category_splits(made("probit"))


def test_structure_of_the_svg():
    model = made("cart")
    ax = pb.plot.regions(model, X, TWO, **SMALL)
    file = io.BytesIO()
    with rc_context({"svg.fonttype": "none"}):
        ax.figure.savefig(file, format="svg")
    root = ElementTree.fromstring(file.getvalue())
    by_id = {g.get("id"): g for g in root.iter("{http://www.w3.org/2000/svg}g")}
    points = [len(list(by_id[f"rows-{k}"].iter("{http://www.w3.org/2000/svg}use"))) for k in (0, 1)]
    assert points == [(~TWO).sum(), TWO.sum()]
    texts = {"".join(t.itertext()) for t in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"x[0]", "x[1]", "False", "True"} <= texts
