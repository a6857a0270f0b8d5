"""Problems of rounds of softmax, at random, and what grows their trees."""

from dataclasses import replace

import numpy as np
from reference import rounds
from round_cases import limits, restrained, restraints_of, weighed
from special_problems import draw, problem

from pboost.losses import LOSSES
from pboost.trees.gradients import Steps
from pboost.trees.softmax_rounds import SoftmaxRounds
from pboost.trees.tree_rounds import Rounds


def special_case(seed, n_classes=None):
    """Return columns, classes, weights and options, at random; classes can lack rows."""
    rng = np.random.default_rng(seed)
    n_classes = n_classes or (2, 3, 7, 26)[seed % 4]
    n = 30 if n_classes > 7 else None
    X, y, weight, levels = draw(rng, n_classes, n=n)
    n = len(y)
    if weight is None or not (weight > 0).any():
        weight = np.ones(n)
    columns = problem(X, y, None, levels, n_classes, int(rng.choice([4, 16, 255])))
    listed = None
    if seed % 5 == 0:
        used = np.flatnonzero(weight > 0)
        listed = [np.sort(rng.choice(used, max(1, len(used) // 2), replace=False)) for _ in "ab"]
    options = {
        "depth": int(rng.integers(1, 6 if n_classes < 7 else 3)),
        "min_samples_leaf": int(rng.choice([1, 1, 2, 5])),
        "l2": float(rng.choice([0.0, 0.0, 0.5])),
        "smoothing": float(rng.choice([0.0, 0.0, 2.0])),
        "most": float(rng.choice([0.7, 4.0, np.inf])),
        "solved": bool(rng.random() < 0.6),
        "rate": float(rng.choice([0.1, 1.0])),
        "bias": rng.normal(size=n_classes),
        "sums": str(rng.choice(["auto", "wide"])),
    }
    return columns, y.astype(int), n_classes, weight / weight.max(), listed, options


def restrained_case(seed):
    """Return a case of three classes or seven, with one option more that makes trees smaller."""
    seed += seed % 6 == 3  # no column is monotone
    *case, options = special_case(seed, (3, 7)[seed // 6 % 2])
    return *case, restrained(seed, case, options)


def compiled(
    columns,
    y,
    n_classes,
    weight,
    listed,
    options,
    n_estimators=2,
    rounds=SoftmaxRounds,
    workers=None,
):
    """Return the rounds, and after each the trees, the scores and the mean loss."""
    limit = limits(
        options["depth"],
        options["min_samples_leaf"],
        options["smoothing"],
        options.get("max_leaf_nodes"),
        comparisons=options.get("comparisons", ()),
    )
    held = restraints_of(options, columns)
    step = Steps(
        options["rate"], options["most"], options["solved"], options["l2"], options["sums"]
    )
    f = np.repeat(np.asarray(options["bias"])[:, None], len(y), axis=1)
    grown = rounds(
        y.astype(float),
        weighed(weight),
        f,
        step,
        lambda y, loss, weight, f, step: Rounds(
            columns, y, loss, weight, f, limit, step, held, workers
        ),
    )
    actual = [([], f.copy(), grown.mean_loss)]
    for t in range(n_estimators):
        rows = np.flatnonzero(weight > 0) if listed is None else listed[t]
        actual.append((grown.grow(rows.astype(np.int32)), grown.f.copy(), grown.mean_loss))
    return actual


def wide_case(n=9000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 9))
    X[:, 3] = rng.integers(0, 6, n)
    X[:, 8] = np.where(rng.random(n) < 0.1, np.nan, X[:, 0])
    y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n), [-1.5, 0, 0.4, 2])
    weight = rng.uniform(0.1, 1, n) * (rng.random(n) < 0.9)
    options = {
        "depth": 5,
        "min_samples_leaf": 3,
        "l2": 0.1,
        "smoothing": 1.0,
        "most": 4.0,
        "solved": True,
        "rate": 0.3,
        "bias": rng.normal(size=5),
        "sums": "auto",
    }
    return problem(X, y, None, {3: 6}, 5, 255), y, 5, weight / weight.max(), None, options


def assert_same(first, second):
    for (trees, f, loss), (other_trees, other_f, other_loss) in zip(first, second, strict=True):
        assert np.array_equal(f, other_f)
        assert loss == other_loss
        for tree, other_tree in zip(trees, other_trees, strict=True):
            for name in ("children", "mass", "subset"):
                assert np.array_equal(getattr(tree, name), getattr(other_tree, name)), name
            assert tree.nodes.tolist() == other_tree.nodes.tolist()


def data(n=300, seed=0, n_classes=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.4 * rng.normal(size=n)
    edges = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return X, np.array([f"class {k}" for k in range(n_classes)])[np.digitize(score, edges)]


def assert_same_model(first, second):
    for name in ("root", "feature", "threshold", "children", "value", "weight"):
        assert np.array_equal(getattr(first.trees, name), getattr(second.trees, name)), name
    assert np.array_equal(first.bias, second.bias)
    assert first.loss == second.loss
    assert first.classes.tolist() == second.classes.tolist()
    assert np.array_equal(first.training_loss, second.training_loss)


def mean_loss(model, y, score):
    return LOSSES["softmax"].value(np.searchsorted(model.classes, y), score).mean()


def against_twin(fit, compiled_rounds, case, seed, of_rows=slice(None)):
    """Return compiled trees beside the nodes and values of the twin, which has the same losses."""
    columns, y, n_classes, weight, listed, options = case
    bins = columns.columns
    special = np.zeros(len(bins.n_bins), int) if bins.special is None else bins.special
    twin = rounds.Columns(bins.codes, bins.n_bins, special)
    expected = fit(twin, y, n_classes, weight, n_estimators=2, listed=listed, **options)
    assert [loss for _, _, loss in compiled_rounds] == expected.mean_loss, seed
    assert np.array_equal(compiled_rounds[-1][1][:, of_rows], expected.f), seed
    grown = [tree for trees, _, _ in compiled_rounds for tree in trees]
    return zip(grown, expected.trees, expected.values, strict=True)


def assert_rows_have_no_order(compiled):
    """Permute rows, and leave out those of weight 0."""
    columns, y, n_classes, weight, _, options = wide_case()
    first = compiled(columns, y, n_classes, weight, None, options)
    rng, bins = np.random.default_rng(1), columns.columns
    for rows in (rng.permutation(len(y)), np.flatnonzero(weight)):
        some_columns = replace(
            columns, label=columns.label[rows], columns=replace(bins, codes=bins.codes[:, rows])
        )
        actual = compiled(some_columns, y[rows], n_classes, weight[rows], None, options)
        assert_same([(trees, f[:, rows], loss) for trees, f, loss in first], actual)
