"""Trees with sides of missing values and sets of levels, made by hand, and a slow walk of them."""

import numpy as np

from pboost.models.random_forest import RandomForest, join_trees
from pboost.models.single_tree import Tree

LEAF = -1


def random_tree(rng, d, categories=(), depth=4, n_classes=2, clean=False, levels=70):
    """Return a tree on d columns of which `categories` are tested by sets of levels.

    Thresholds are 0, 1 and 2, so that values meet them, and the greatest number.
    """
    nodes, sets = [], []

    def grow(level):
        here = len(nodes)
        nodes.append([LEAF, 0.0, (LEAF, LEAF), 0])
        if level == depth or (level and rng.random() < 0.2):
            return here
        column = int(rng.integers(d))
        side = int(rng.integers(2))
        if column in categories:
            members = rng.random(levels) < 0.5
            words = [
                sum(1 << (b % 64) for b in np.flatnonzero(members).tolist() if b // 64 == w)
                for w in range(4)
            ]
            sets.append((column, words))
            test = d + len(sets) - 1, 0.5
        else:
            test = column, float(rng.choice([0.0, 1.0, 2.0, np.finfo(np.float64).max]))
        below = grow(level + 1)
        nodes[here] = [*test, (below, grow(level + 1)), side]
        return here

    grow(0)
    feature, threshold, children, missing = zip(*nodes, strict=True)
    n = len(nodes)
    share = rng.dirichlet(np.ones(n_classes), n) if n_classes else rng.normal(size=n)
    weight = rng.integers(1, 9, n).astype(np.float64)
    tree = Tree(
        feature,
        threshold,
        np.array(children),
        share,
        np.ones(n),
        weight,
        np.ones(n),
        np.arange(n_classes) if n_classes else None,
        d,
        None,
        {"criterion": "gini"},
        "made by hand",
        None,
        missing,
        [column for column, _ in sets] if sets else None,
        np.array([words for _, words in sets], dtype=np.uint64) if sets else None,
    )
    if not clean:
        return tree
    return Tree(*[*tree.__reduce__()[1][:13], tree.heavier_child(), *tree.__reduce__()[1][14:]])


def random_forest(rng, n_trees, d, **options):
    """Return a forest of such trees, of depths from 1 on."""
    options.setdefault("depth", 5)
    maximum = options.pop("depth")
    trees = [random_tree(rng, d, depth=1 + i % maximum, **options) for i in range(n_trees)]
    return join_trees(trees, {"builder": "fit_random_forest"}, None)


def random_rows(rng, n, d, categories=(), holes=0.2, dtype=np.float64, order="C"):
    """Return rows of small whole numbers and level numbers, some unseen, some missing."""
    X = rng.integers(-1, 4, (n, d)).astype(np.float64)
    for j in categories:
        X[:, j] = rng.integers(0, 72, n)
    X[rng.random((n, d)) < holes] = np.nan
    if n:
        X[rng.random(n) < 0.5] = np.nan_to_num(X[0])  # rows without missing values
    return np.asarray(X, dtype=dtype, order=order)


def goes_to_second(tree, node, row):
    """Return whether a row goes to the second child of a node, from the definition."""
    number, d = int(tree.feature[node]), tree.n_features
    if number < d:
        value = float(row[number])
        return bool(tree.missing[node]) if np.isnan(value) else value > tree.threshold[node]
    value = float(row[tree.subset_column[number - d]])
    if value not in range(256):
        return bool(tree.missing[node])
    words = tree.subset[number - d].tolist()
    return bool(words[int(value) // 64] >> (int(value) % 64) & 1)


def leaf_of(tree, row):
    """Return the node at which a row ends."""
    node = 0
    while tree.feature[node] != LEAF:
        node = int(tree.children[node, int(goes_to_second(tree, node, row))])
    return node


def leaves_of(forest, X):
    """Return the nodes (n, n_trees) at which rows end."""
    trees = list(forest) if isinstance(forest, RandomForest) else [forest]
    actual = [[leaf_of(tree, row) for tree in trees] for row in X]
    return np.array(actual, dtype=np.int32).reshape(len(X), len(trees))
