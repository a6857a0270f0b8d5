"""What is asked of trees that test levels and take missing values: paths, parts, words, shares."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sided_trees import leaf_of, random_forest, random_rows, random_tree

import pboost as pb
from pboost.data.read.table import Table
from pboost.inspection.explanation import parents
from pboost.models.single_tree import Tree

D, CATEGORIES = 4, (1, 3)
LEAF = [-1, -1]


def path_of(tree, row):
    """Return the nodes through which a row goes, from the root to the leaf."""
    parent, path = parents(tree), [leaf_of(tree, row)]
    while path[-1]:
        path.append(int(parent[path[-1]]))
    return path[::-1]


def columns_of(tree):
    """Return the column that each node reads."""
    d = tree.n_features
    return [k if k < d else int(tree.subset_column[k - d]) for k in tree.feature.tolist()]


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_paths_and_parts_are_those_of_the_definition(n_classes):
    rng = np.random.default_rng([1, n_classes])
    X = random_rows(rng, 30, D, CATEGORIES)
    forest = random_forest(rng, 5, D, categories=CATEGORIES, n_classes=n_classes)
    parts = np.zeros((len(X), 1 + D, *forest.value.shape[1:]))
    for tree in forest:
        columns, actual = columns_of(tree), pb.inspection.decision_path(tree, X)
        for row, own, nodes in zip(X, parts, actual, strict=True):
            path = path_of(tree, row)
            assert nodes.tolist() == path
            own[0] += tree.value[0]
            for node, child in pairwise(path):
                own[1 + columns[node]] += tree.value[child] - tree.value[node]
        nodes = [path_of(tree, row) for row in X]
        assert pb.prediction_cost(tree, X).tolist() == [len(path) - 1 for path in nodes]
        read = [len({columns[node] for node in path[:-1]}) for path in nodes]
        assert pb.prediction_cost(tree, X, unit="features").tolist() == read
        assert pb.inspection.apply(tree, X).tolist() == [int(tree.leaf[path[-1]]) for path in nodes]
    for row, own in zip(X, parts / 5, strict=True):
        np.testing.assert_allclose(forest.mean_parts(row[None]), own, rtol=0, atol=1e-12)
        explained = pb.explain(forest, row)
        total = np.asarray(explained.contributions).sum(axis=0) + explained.bias
        np.testing.assert_allclose(total, explained.score, rtol=0, atol=1e-12)


def test_a_test_of_levels_counts_as_its_column():
    rng = np.random.default_rng(2)
    tree = random_tree(rng, D, categories=CATEGORIES, depth=5)
    gain, risk = np.zeros(D), tree.weight * tree.impurity
    for node, column in enumerate(columns_of(tree)):
        if column >= 0:
            gain[column] += max(0.0, risk[node] - risk[tree.children[node]].sum())
    assert pb.feature_importances(tree).tolist() == (gain / gain.sum()).tolist()


@pytest.fixture
def tree():
    maximum = np.finfo(np.float64).max
    levels = (np.array(["blue", "green", "red"]), None, None)
    table = Table(levels, np.array([True, True, False]))
    return Tree(
        [3, -1, 1, 2, -1, -1, 1, -1, -1],
        [0.5, 0, 40, 7, 0, 0, maximum, 0, 0],
        np.array([[1, 2], LEAF, [3, 6], [4, 5], LEAF, LEAF, [7, 8], LEAF, LEAF]),
        np.arange(9.0),
        np.ones(9),
        np.arange(9, 0, -1),
        np.arange(9, 0, -1),
        None,
        3,
        ("colour", "age", "size"),
        {},
        "made by hand",
        None,
        [1, 0, 1, 0, 0, 0, 1, 0, 0],
        [0],
        [[5, 0, 0, 0]],
        table=table,
    )


def test_words(tree):
    assert pb.describe(tree).splitlines()[2:] == [
        "0 (9)",
        "  colour not in {blue, red}: 1 (8)",
        "  colour in {blue, red} or missing: 2 (7)",
        "    age <= 40: 3 (6)",
        "      size <= 7: 4 (5)",
        "      size >  7: 5 (4)",
        "    age >  40 or missing: 6 (3)",
        "      age is not missing: 7 (2)",
        "      age is missing: 8 (1)",
    ]
    clean = replace(tree, table=None)
    assert "or missing" not in pb.describe(clean)
    assert "x[0] in {0, 2}" in pb.describe(replace(clean, feature_names=None))


def test_frames_are_matched_by_names_and_values(tree):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "size": [1.0, 9, 1, 1],
            "colour": ["green", "red", "pink", None],
            "age": [1, 2, np.nan, 99],
        }
    )
    values = np.array([[1, 1, 1], [2, 2, 9], [np.nan, np.nan, 1], [np.nan, 99, 1]])
    known = [leaf_of(tree, row) for row in values]
    assert known == [1, 5, 8, 7]
    assert tree.nodes_of(frame).tolist() == known
    assert pb.predict(tree, frame).tolist() == known
    assert [path[-1] for path in pb.inspection.decision_path(tree, frame)] == known
    explained = pb.explain(tree, frame[2:3])
    assert explained.contributions.tolist() == [2, 6, 0]
    assert str(explained).splitlines()[1:3] == [
        "age is missing, treated as > 40            +6",
        "colour is missing, treated as {blue, red}  +2",
    ]
    assert "treated as" not in str(pb.explain(tree, frame[:1]))
    rise = pb.inspection.permutation_importance(
        tree, frame, np.array(known, dtype=float), n_repeats=3, rng=0
    )
    assert rise.shape == (3, 3)
    assert (rise[0] >= 0).all()


def test_members_are_asked_with_their_own_tables(tree):
    pd = pytest.importorskip("pandas")
    other = replace(
        tree, table=Table((np.array(["green", "pink", "red"]), None, None), tree.table.has_missing)
    )
    frame = pd.DataFrame(
        {"age": [1.0] * 4, "colour": ["blue", "green", "pink", "red"], "size": 1.0}
    )
    first, two = (pb.predict(member, frame) for member in (tree, other))
    assert first.tolist() == [4, 1, 4, 4]
    assert two.tolist() == [4, 4, 1, 4]  # blue was not seen, which is as missing
    n = len(frame)
    oob = pb.models.OutOfBag(np.zeros(n), np.full(n, np.nan), np.nan)
    bagging = pb.models.Bagging(
        (tree, other),
        None,
        3,
        tree.feature_names,
        {"builder": "fit_bagging"},
        oob,
        table=tree.table,
    )
    assert bagging.takes_missing
    assert pb.predict(bagging, frame).tolist() == ((first + two) / 2).tolist()
    assert (
        pb.predict(bagging, frame[["size", "colour", "age"]]).tolist()
        == ((first + two) / 2).tolist()
    )


def most_often(forest, row, column):
    """Return the values with which a row leaves most tests of a column in which it has none."""
    counts, tests = {}, 0
    for tree in forest:
        path = path_of(tree, row)
        for node, child in pairwise(path):
            queries = tree.missing[node] and tree.threshold[node] == np.finfo(float).max
            if columns_of(tree)[node] != column or queries:
                continue
            tests, number = tests + 1, int(tree.feature[node]) - tree.n_features
            above = child == tree.children[node, 1]
            if number < 0:
                said = ["larger values" if above else "smaller values"]
            else:
                bits = [int(tree.subset[number, k // 64]) >> (k % 64) & 1 for k in range(255)]
                said = [str(k) for k in range(255) if bits[k] == above]
            for item in said:
                counts[item] = counts.get(item, 0) + 1
    if not tests:
        return None
    minimum = {"smaller values": -2, "larger values": -1}
    best = min(counts, key=lambda said: (-counts[said], minimum.get(said, 0), len(said), said))
    return f"{best} in {counts[best]} of {tests} split{'s' * (tests > 1)}"


@pytest.mark.parametrize("seed", range(20))
def test_missing_values_in_forests_go_with_those_of_most_tests(seed):
    rng = np.random.default_rng([7, seed])
    forest = random_forest(rng, 1 + seed % 7, D, categories=CATEGORIES)
    row = random_rows(rng, 1, D, CATEGORIES)[0]
    row[rng.random(D) < 0.6] = np.nan
    explanation = pb.explain(forest, row)
    expected = {j: most_often(forest, row, j) for j in range(D) if np.isnan(row[j])}
    assert explanation.goes_with == {j: said for j, said in expected.items() if said is not None}
    for j in explanation.order():
        if j in explanation.goes_with:
            assert f"x[{j}] is missing, treated as {explanation.goes_with[j]}" in str(explanation)


def test_levels_in_forests_have_their_names():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    sky = rng.choice(["clear", "rain", "snow"], 200)
    frame = pd.DataFrame({"sky": sky, "wind": rng.integers(0, 9, 200).astype(float)})
    y = (sky == "snow") | (frame["wind"] > 6)
    frame.loc[(sky == "snow") & (rng.random(200) < 0.5), "sky"] = None
    row = pd.DataFrame({"sky": ["hail"], "wind": [1.0]})
    for model in (
        pb.fit_random_forest(frame, y, n_estimators=9, max_features=2, rng=0),
        pb.fit_gradient_boosting(frame, y, loss="log_loss", n_estimators=9),
    ):
        assert "sky is missing, treated as snow in 9 of 9 splits" in str(pb.explain(model, row))
        assert not pb.explain(model, frame.iloc[:1].fillna("clear")).goes_with
