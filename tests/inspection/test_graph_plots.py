"""Pictures of graphs and trees: places without crossings, shares of rows, and what an SVG holds."""

import io
import sys
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from inspected import COLLECTED, GRAPHS, SCORE, TWO, WORDS, X, made

import pboost as pb
from pboost.inspection.graph_drawing import crossings_of, depths_of, lay_out
from pboost.models.graph_arrays import OUT

rc_context = pytest.importorskip("matplotlib").rc_context
ALL_GRAPHS = {**GRAPHS, **COLLECTED}
SVG = "{http://www.w3.org/2000/svg}"


def ids(ax):
    """Return the ids in the SVG of a picture, by the word that they begin with."""
    file = io.BytesIO()
    with rc_context({"svg.fonttype": "none"}):  # texts as texts
        ax.figure.savefig(file, format="svg")
    actual = {}
    for element in ElementTree.fromstring(file.getvalue()).iter(f"{SVG}g"):
        name = element.get("id", "")
        actual.setdefault(name.split("-")[0], []).append(element)
    return actual


def said(ax, start):
    """Return the texts whose ids begin so, by their ids."""
    return {
        text.get_gid(): text.get_text()
        for text in ax.texts
        if (text.get_gid() or "").startswith(start)
    }


# Places


def random_graph(n, rng):
    """Return exits of a graph whose nodes are all reached."""
    next_ = np.full((n, 2), OUT, np.int32)
    for node in range(1, n):  # an exit of an earlier node that leads nowhere yet leads here
        free = np.argwhere(next_[:node] == OUT)
        next_[tuple(free[rng.integers(len(free))])] = node
    for node, exit_ in np.argwhere(next_ == OUT):
        if node + 1 < n and rng.random() < 0.4:
            next_[node, exit_] = rng.integers(node + 1, n)
    return next_


@pytest.mark.parametrize("n", [1, 2, 30, 200])
def test_things_stand_apart_and_edges_lead_down(n):
    rng = np.random.default_rng(n)
    next_ = random_graph(n, rng)
    width, out_width = rng.uniform(1, 9, n), rng.uniform(1, 4, (n, 2))
    actual = lay_out(next_, width, out_width, 1.0)
    assert len(actual.way) == 2 * n
    widths = np.append(width, [out_width[key] for key in actual.out])
    for layer in range(actual.layer.max() + 1):
        positions = np.flatnonzero(actual.layer == layer)
        positions = positions[np.argsort(actual.x[positions])]
        gap = np.diff(actual.x[positions]) - (widths[positions[:-1]] + widths[positions[1:]]) / 2
        assert (gap > -1e-9).all()
    assert (actual.x - widths / 2 > -1e-9).all()
    assert (actual.x + widths / 2 < actual.width + 1e-9).all()
    for (node, exit_), way in actual.way.items():
        to = next_[node, exit_]
        end = actual.out[node, exit_] if to == OUT else to
        assert way[0] == (actual.x[node], actual.layer[node])
        assert way[-1] == (actual.x[end], actual.layer[end])
        assert [layer for _, layer in way] == list(range(way[0][1], way[-1][1] + 1))


def test_trees_have_no_crossings_and_parents_stand_over_their_children():
    next_ = np.array([[1, 2], [3, 4], [5, 6], *[[OUT, OUT]] * 4])
    actual = lay_out(next_, np.ones(7), np.ones((7, 2)), 1.0)
    assert (actual.crossings, actual.width) == (0, 8.0)
    np.testing.assert_allclose(actual.x[:3], [4, 2, 6], atol=0.02)
    assert depths_of(next_) == [0, 1, 1, 2, 2, 2, 2]


def test_sweeps_undo_crossings():
    # Both exits of the root lead to nodes whose second exits swap sides.
    next_ = np.array(
        [
            [1, 2],
            [OUT, 3],
            [4, OUT],
            [OUT, OUT],
            [OUT, OUT],
        ]
    )
    assert lay_out(next_, np.ones(5), np.ones((5, 2)), 1.0).crossings == 0
    # K(2, 2): one crossing is the least there is.
    next_ = np.array([[1, 2], [4, 3], [3, 4], [OUT, OUT], [OUT, OUT]])
    assert lay_out(next_, np.ones(5), np.ones((5, 2)), 1.0).crossings == 1


def test_crossings_are_counted():
    rng = np.random.default_rng(0)
    rows = [list(range(6)), list(range(6, 14))]
    down = [sorted(rng.choice(np.arange(6, 14), 3, replace=False).tolist()) for _ in range(6)]
    edges = [(a, b) for a in rows[0] for b in down[a]]
    expected = sum(a < c and b > d for a, b in edges for c, d in edges)
    assert crossings_of(rows, down + [[]] * 8) == expected > 5


# Graphs


@pytest.mark.parametrize("kind", ALL_GRAPHS)
def test_what_is_said_of_every_graph(kind):
    model = made(kind)
    ax = pb.plot.graph(model, X, TWO if model.needs_class else None)
    n, is_out = model.n_nodes, model.next == OUT
    edges = {(i, k) for i in range(n) for k in (0, 1)}
    assert {line.get_gid() for line in ax.patches} == {f"edge-{i}-{k}" for i, k in edges}
    outs, votes = said(ax, "out"), said(ax, "vote")
    assert outs.keys() == {f"out-{i}-{k}" for i, k in edges if is_out[i, k]}
    assert votes.keys() == {f"vote-{i}-{k}" for i, k in edges if not is_out[i, k]}
    for i, k in edges:
        text = (outs if is_out[i, k] else votes)[f"{'out' if is_out[i, k] else 'vote'}-{i}-{k}"]
        assert text.startswith("no" if k else "yes")
        assert f"{model.vote[i, k]:+.4f}" in text
    lines = pb.describe(model).splitlines()[-n:]
    for node, line in enumerate(lines):
        test = line.partition(": ")[2].partition(": vote")[0]
        assert said(ax, f"node-{node}")[f"node-{node}"].replace("\n", " ").startswith(test)


@pytest.mark.parametrize("kind", ["chain", "matryoshka"])
def test_structure_of_the_svg(kind):
    model = made(kind)
    ax = pb.plot.graph(model)
    actual = ids(ax)
    n, n_out = model.n_nodes, int((model.next == OUT).sum())
    assert {name: len(actual.get(name, [])) for name in ("node", "edge", "out", "vote")} == {
        "node": n,
        "edge": 2 * n,
        "out": n_out,
        "vote": 2 * n - n_out,
    }
    # Each edge is one path, each node has a frame and a text for each line.
    assert all(len(list(edge.iter(f"{SVG}path"))) == 1 for edge in actual["edge"])
    texts = [len(list(node.iter(f"{SVG}text"))) for node in actual["node"]]
    lines = [text.count("\n") + 1 for text in said(ax, "node").values()]
    assert texts == lines


@pytest.mark.parametrize("kind", ["tree", "matryoshka", "soft tree", "soft matryoshka", "by sign"])
def test_edges_are_as_wide_as_many_rows_take_them(kind):
    model = made(kind)
    y = TWO if model.needs_class else None
    ax = pb.plot.graph(model, X, y)
    width = {line.get_gid(): line.get_linewidth() for line in ax.patches}
    share = pb.inspection.reach(model, X, y).mean(axis=0)
    for node in range(model.n_nodes):
        both = [(width[f"edge-{node}-{k}"] - 0.3) / 5.7 for k in (0, 1)]
        assert sum(both) == pytest.approx(share[node])
        text = said(ax, f"node-{node}")[f"node-{node}"]
        percent = float(text.rpartition("\n")[2].removesuffix(" %"))
        assert percent == pytest.approx(100 * share[node], rel=6e-3)
    # The record of the training has the same, where it follows from the nodes.
    trained = {line.get_gid(): line.get_linewidth() for line in pb.plot.graph(model).patches}
    known = [key for key in width if trained[key] != 1.0]
    assert len(known) >= len(width) // 2
    np.testing.assert_allclose([trained[k] for k in known], [width[k] for k in known])


@pytest.fixture(scope="module")
def colours():
    """Return a table with categories and missing values, and classes that depend on both."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], 200),
            "size": X[:1, 0].repeat(200) + rng.normal(size=200),
        }
    )
    frame.loc[::7, "size"] = np.nan
    frame.loc[::9, "colour"] = None
    return frame, (frame["colour"] == "green") ^ (frame["size"] > 1)


def test_categories_and_missing_values_are_said(colours):
    frame, y = colours
    model = pb.fit_boosted_tree(frame, y, max_nodes=4)
    tree = pb.fit_cart(frame, y, max_depth=3)
    for ax in pb.plot.graph(model, frame), pb.plot.tree(tree, frame):
        texts = " ".join(said(ax, "node").values()).replace("\n", " ")
        assert "colour in {" in texts
        assert "not in" not in texts
        assert "size <=" in texts
        assert "or missing" in texts


@pytest.mark.parametrize("is_missing_in", [False, True])
@pytest.mark.parametrize("draw", [pb.plot.graph, pb.plot.tree])
def test_rows_in_the_category_set_take_the_left_branch(draw, is_missing_in):
    colour = pd.Series(["red"] * 3 + ["blue"] * 5 + [None] * 2, dtype="category").to_frame("colour")
    y = ["no"] * 3 + ["yes"] * 5 + ["yes" if is_missing_in else "no"] * 2
    fit = pb.fit_boosted_tree if draw is pb.plot.graph else pb.fit_cart
    model = fit(colour, y, **({"max_nodes": 1} if draw is pb.plot.graph else {"max_depth": 1}))
    ax = draw(model, colour)
    test = said(ax, "node")["node-0"].replace("\n", " ")
    category, _, rest = test.removeprefix("colour in {").partition("}")
    is_blue = category == "blue"
    assert rest.startswith(" or missing" if is_missing_in == is_blue else " 100 %")
    # The ids have the number of the exit: rows in the set take exit 1.
    left, right = (next(t for t in ax.texts if t.get_gid() == f"out-0-{k}") for k in (1, 0))
    assert left.get_position()[0] < right.get_position()[0]
    n_left = (5 if is_blue else 3) + 2 * (is_missing_in == is_blue)
    for text, answer, n, label in (
        (left, "yes", n_left, is_blue),
        (right, "no", 10 - n_left, not is_blue),
    ):
        lines = text.get_text().split("\n")
        assert lines[0] == answer
        assert lines[-1] == f"{10 * n} %"
        assert lines[1].startswith(
            ("no: 1", "yes: 1")[label] if draw is pb.plot.tree else "-+"[label]
        )
    width = {edge.get_gid(): edge.get_linewidth() for edge in ax.patches}
    assert (width["edge-0-1"] > width["edge-0-0"]) == (n_left > 5) or n_left == 5


def test_several_votes_and_a_bias():
    model = pb.fit_adaboost(X, WORDS, n_estimators=3)
    ax = pb.plot.graph(model)
    assert model.n_votes == 3
    assert {text.partition(" ")[2].partition(":")[0] for text in said(ax, "vote").values()} <= {
        "ash",
        "elm",
        "oak",
    }
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ash", "elm", "oak"]
    none = pb.fit_boosted_tree(np.zeros((9, 1)), [0] * 3 + [1] * 6, max_nodes=3)
    assert none.n_nodes == 0
    assert "every row gets" in said(pb.plot.graph(none), "alone")["alone"].replace("\n", " ")


@pytest.mark.full
def test_large_graphs_have_no_texts():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2000, 3))
    model = pb.fit_matryoshka(noise, rng.random(2000) > 0.5, shape=(6, 6, 6), collect="additive")
    assert model.n_nodes > 200
    ax = pb.plot.graph(model, noise)
    actual = ids(ax)
    assert len(actual["edge"]) == 2 * model.n_nodes
    assert len(list(actual["nodes"][0].iter(f"{SVG}use"))) == model.n_nodes
    assert len(list(actual["outs"][0].iter(f"{SVG}use"))) == (model.next == OUT).sum()
    assert not ax.texts
    assert max(ax.figure.get_size_inches()) <= 40
    assert not pb.plot.graph(made("tree"), max_labeled_nodes=3).texts
    assert pb.plot.graph(made("tree"), max_labeled_nodes=4).texts


@pytest.mark.full
def test_texts_shrink_on_small_axes_and_do_not_overlap():
    from matplotlib.figure import Figure

    model = pb.fit_boosted_tree(X, SCORE > 0, max_nodes=20)
    ax = Figure(figsize=(3, 3)).add_subplot()
    assert pb.plot.graph(model, ax=ax) is ax
    small = ax.texts[0].get_fontsize()
    ax = pb.plot.graph(model, X)
    assert small < ax.texts[0].get_fontsize() == 8.0
    joined = pb.fit_matryoshka(X, SCORE > 0, shape=(4, 4), collect="additive")
    for picture in ax, pb.plot.graph(joined, X):
        picture.figure.canvas.draw()
        box = [text.get_window_extent() for text in picture.texts]
        assert not any(a.overlaps(b) for i, a in enumerate(box) for b in box[:i])


def test_refusals(monkeypatch):
    tree = made("tree")
    with pytest.raises(TypeError, match=r"plot\.graph, got a Tree, .*: use plot\.tree"):
        pb.plot.graph(made("cart"))
    with pytest.raises(
        TypeError, match=r"plot\.graph, got a RandomForest, .*: plot\.tree draws one tree"
    ):
        pb.plot.graph(made("forest"))
    with pytest.raises(ValueError, match="max_labeled_nodes: expected"):
        pb.plot.graph(tree, max_labeled_nodes=-1)
    with pytest.raises(TypeError, match="ax: expected"):
        pb.plot.graph(tree, ax=3)
    with pytest.raises(ValueError, match="y: expected None without X"):
        pb.plot.graph(tree, y=TWO)
    with pytest.raises(ValueError, match="X: "):
        pb.plot.graph(tree, X[:, :2])
    with pytest.raises(ValueError, match="X: "):
        pb.plot.graph(tree, X[:0])
    with pytest.raises(ValueError, match="pass y"):
        pb.plot.graph(made("soft tree"), X)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pboosting\[plot\]"):
        pb.plot.graph(tree)


# Trees


@pytest.mark.parametrize(
    "kind",
    [
        "cart",
        "cart, three",
        "cart, numbers",
        "forest",
        "stagewise",
        "stagewise, numbers",
        "tree",
        "chain",
    ],
)
def test_picture_of_a_tree(kind):
    model = made(kind)
    trees = pb.models.as_tree_ensemble(model, X)
    last = trees.n_trees - 1
    ax = pb.plot.tree(model, X, tree=last)
    node = slice(*trees.root[last : last + 2])
    is_leaf = trees.feature[node] == -1
    assert len(said(ax, "node")) == (~is_leaf).sum()
    outs = said(ax, "out").values()
    assert len(outs) == is_leaf.sum()
    shares = sorted(float(text.split("\n")[-1].removesuffix(" %")) for text in outs)
    weight = trees.weight[node]
    np.testing.assert_allclose(shares, np.sort(100 * weight[is_leaf] / weight[0]), rtol=6e-3)
    assert ax.get_title() == ("" if last == 0 else f"tree {last} of {last + 1}")


def test_what_leaves_say():
    tree = made("cart, three")
    value = tree.value[tree.feature == -1]
    texts = said(pb.plot.tree(tree), "out").values()
    best = value.argmax(axis=1)
    assert sorted(text.split("\n")[1] for text in texts) == sorted(
        f"{tree.classes[k]}: {row[k]:.3g}" for k, row in zip(best, value, strict=True)
    )
    tree = made("cart, numbers")
    texts = said(pb.plot.tree(tree), "out").values()
    assert sorted(text.split("\n")[1] for text in texts) == sorted(
        f"{v:.5g}" for v in tree.value[tree.feature == -1]
    )
    leaf = pb.fit_cart([[0.0], [0.0], [0.0], [0.0]], ["a", "a", "b", "a"])
    assert said(pb.plot.tree(leaf), "alone") == {"alone": "a: 0.75"}
    softmax = pb.fit_gradient_boosting(X, WORDS, loss="softmax", n_estimators=2, max_depth=1)
    title = pb.plot.tree(softmax, tree=softmax.n_trees - 1).get_title()
    assert title.startswith(f"tree {softmax.n_trees - 1} of") or softmax.n_trees == 1


def test_equations_in_leaves():
    tree = made("probit tree")
    texts = [
        t.replace("\N{NO-BREAK SPACE}", " ").replace("\n", " ")
        for t in said(pb.plot.tree(tree, max_terms=5), "out").values()
    ]
    assert len(texts) == tree.n_leaves
    for coefficient in tree.coefficient[:, 0]:
        terms = [f"{abs(c):.3g}*x[{j}]" for j, c in enumerate(coefficient[1:]) if c]
        assert any(f"f = {coefficient[0]:.3g}" in t and all(w in t for w in terms) for t in texts)
    first = said(pb.plot.tree(tree, max_terms=1), "out").values()
    assert any("more" in text for text in first)
    assert all(text.count("*") <= 1 for text in first)
    many = made("sbpmt, three")
    assert all(
        all(f"{label}:" in text for label in ("ash", "elm", "oak"))
        for text in said(pb.plot.tree(many, tree=1), "out").values()
    )
    per_class = made("sbpmt, mean")
    assert pb.plot.tree(per_class, tree=4).get_title().endswith("for class 'elm'")


def test_refusals_of_trees():
    with pytest.raises(TypeError, match=r"plot\.graph draws it"):
        pb.plot.tree(made("affine"))
    with pytest.raises(TypeError, match=r"base learners model\[i\]"):
        pb.plot.tree(made("bagging of chains"))
    for kind in ("cart", "forest", "probit tree", "sbpmt"):
        with pytest.raises(ValueError, match="tree: expected a number below"):
            pb.plot.tree(made(kind), tree=99)
    with pytest.raises(ValueError, match="tree: expected"):
        pb.plot.tree(made("cart"), tree=-1)
    with pytest.raises(ValueError, match="max_terms: expected"):
        pb.plot.tree(made("probit tree"), max_terms=0)
