"""Problems of rounds of boosting on bins, at random, for the tests of what grows their trees."""

from dataclasses import replace

import numpy as np
from reference import rounds as twin
from special_problems import draw, problem, with_one_hot

from pboost._core import boost
from pboost.data.columns.prebuilt import LEVELS
from pboost.data.feature_costs import read_feature_costs
from pboost.growth.tree import CartLimits
from pboost.losses import LOSSES
from pboost.trees.gradients import Steps, weights_of
from pboost.trees.regularization import Restraints, _groups
from pboost.trees.tree_rounds import Rounds

NAMES = list(boost.LOSSES)
OF_NUMBERS = [name for name in NAMES if LOSSES[name].is_regression]
OF_LABELS = [name for name in NAMES if name not in OF_NUMBERS[1:]]


#: Options that hold trees back, so that each makes another model.
HELD = [
    {},
    {"min_child_weight": 5.0},
    {"min_split_gain": 3.0},
    {"max_features_per_tree": 2},
    {"max_features": 0.5},
    {"monotonic_cst": {1: 1}},
    {"max_leaf_nodes": 6},
    {"interaction_cst": [[0, 1]]},
]


def limits(
    depth, min_samples_leaf=1, smoothing=0.0, leaves=None, growth="depth_first", comparisons=()
):
    growth = growth if leaves is None else "best_first"
    return CartLimits(
        "squared_error",
        depth,
        leaves or 2**31,
        min_samples_leaf,
        2,
        1,
        "cost_efficient" if comparisons else growth,
        categorical_smoothing=smoothing,
        comparisons=comparisons,
    )


def special_case(seed, one_hot=False):
    """Return columns, targets, weights and options, at random."""
    rng = np.random.default_rng(seed)
    X, y, weight, levels = draw(rng, 0 if seed % 3 == 0 else 2)
    if one_hot:
        X, levels = with_one_hot(rng, X, levels)
    n = len(y)
    if weight is None or not (weight > 0).any():
        weight = np.ones(n)
    max_bins = int(rng.choice([4, 16, 255]))
    columns = (
        problem(X, y, None, levels, 2, max_bins)
        if y.dtype.kind == "i"
        else problem(X, y, None, levels, 0, max_bins)
    )
    names = OF_NUMBERS if y.dtype.kind == "f" else OF_LABELS
    loss = LOSSES[names[np.random.default_rng(seed).integers(len(names))]]
    if loss.parameters:
        parameter = float(rng.choice([0.2, 0.5, 0.9]))
        loss = type(loss)(1 + parameter if loss.name == "tweedie" else parameter)
    target = in_domain(loss, y) if y.dtype.kind == "f" else 2.0 * y - 1.0
    listed = None
    if seed % 5 == 0:
        used = np.flatnonzero(weight > 0)
        listed = [
            np.sort(rng.choice(used, max(1, len(used) // 2), replace=False)) for _ in range(3)
        ]
    options = {
        "depth": int(rng.integers(1, 7)),
        "min_samples_leaf": int(rng.choice([1, 1, 2, 5])),
        "l2": float(rng.choice([0.0, 0.0, 0.5])),
        "smoothing": float(rng.choice([0.0, 0.0, 2.0])),
        "most": float(rng.choice([0.7, 4.0, np.inf])),
        "solved": bool(rng.random() < 0.6) or not loss.has_curvature,
        "rate": float(rng.choice([0.1, 1.0])),
        "bias": float(rng.choice([0.0, 0.3])),
        "sums": str(rng.choice(["auto", "packed", "wide"])),
    }
    return columns, target, loss, weight / weight.max(), listed, options


def in_domain(loss, y):
    """Return targets that the loss takes."""
    if loss.name == "gamma":
        return np.abs(y) + 0.1
    return np.abs(np.round(y)) if loss.least == 0 else y


def weighed(weight):
    """Return weights as rounds take them; whole numbers above 1 are copies."""
    return weights_of(weight, 1.0 if weight.max() > 1 else None)


def with_rows(columns, rows):
    """Return columns of other rows."""
    bins, of_rows = columns.columns, {}
    for name in ("label", "y"):
        if np.size(getattr(columns, name)):
            of_rows[name] = getattr(columns, name)[rows]
    return replace(columns, **of_rows, columns=replace(bins, codes=bins.codes[:, rows]))


def as_copies(case, seed, most=9):
    """Return a case with whole numbers as weights, the case of the copies, and the rows of these.

    What counts rows counts copies as more.
    """
    columns, y, *others, weight, listed, options = case
    copies = np.random.default_rng(seed + 2000).integers(0, most + 1, len(y)) * (weight > 0)
    copies[np.argmax(weight)] = most
    options = {**options, "min_samples_leaf": 1, "smoothing": 0.0}
    rows = np.arange(len(y)).repeat(copies)
    if listed is not None:
        listed = [part[copies[part] > 0] for part in listed]
    of_copies = listed and [np.flatnonzero(np.isin(rows, part)) for part in listed]
    return (
        (columns, y, *others, copies.astype(float), listed, options),
        (with_rows(columns, rows), y[rows], *others, np.ones(len(rows)), of_copies, options),
        rows,
    )


def columns_of(case):
    return len(case[0].columns.codes)


def bundled_case(seed):
    """Return a case with one-hot columns and with what holds trees back."""
    *case, options = special_case(seed, one_hot=True)
    return *case, restrained(seed, case, options)


def restrained(seed, case, options):
    """Return options with one that makes trees smaller."""
    rng, weight = np.random.default_rng(seed + 1000), case[3].sum()
    kind, d = seed % 6, columns_of(case)
    if kind == 4 or seed % 3 == 0:
        options["max_leaf_nodes"] = int(rng.choice([1, 2, 5, 9, 50]))
    if kind == 0:
        options["min_child_weight"] = weight * rng.choice([0.01, 0.05, 0.2])
    if kind == 1:
        options["min_split_gain"] = weight * 10.0 ** rng.uniform(-4, -1)
    if kind == 2:
        options["per_tree"] = per_tree = int(rng.integers(1, d + 1))
        options["per_split"] = int(rng.integers(1, per_tree + 1))
        options["key"] = int(rng.integers(2**63))
    if kind == 5:
        parts = [rng.choice(d, rng.integers(1, d + 1), replace=False) for _ in range(3)]
        groups = [frozenset(part.tolist()) for part in parts]
        options["groups"] = [*groups, frozenset(range(d)).difference(*groups)]
    if kind == 3:
        options["direction"] = rng.integers(-1, 2, d).astype(np.int32)
        special = case[0].columns.special
        if special is not None:
            options["direction"][special & LEVELS > 0] = 0
    return options


def restraints_of(options, columns):
    """Return what the options of a case hold trees back with."""
    groups = options.get("groups")
    if groups is not None:
        every = columns.n_features
        together = _groups([sorted(group) for group in groups if group], columns)
        options = {**options, "together": together, "per_tree": every, "per_split": every}
    return Restraints(**{k: v for k, v in options.items() if k in Restraints.__slots__})


def restrained_case(seed):
    """Return a case with options of the trees that make them smaller."""
    *case, options = special_case(seed)
    return *case, restrained(seed, case, options)


def priced_case(seed):
    """Return a case whose columns have prices, some of them in groups."""
    *case, options = (special_case, restrained_case, bundled_case)[seed % 3](seed // 3)
    rng, d = np.random.default_rng(seed + 3000), columns_of(case)
    own = rng.choice([0.0, 0.5, 1.0, 3.0, 20.0], d)
    said = {"feature_costs": own.tolist(), "cost_groups": None, "comparison_cost": None}
    if d > 2 and seed % 2:
        said["cost_groups"] = [rng.choice(d, 2, replace=False).tolist()]
    if seed % 4 == 3:
        said = {
            **said,
            "feature_costs": [
                *([j, p] for j, p in enumerate(said["feature_costs"])),
                ["both", 2.5],
            ],
            "cost_groups": {"both": said["cost_groups"][0]}
            if said["cost_groups"]
            else {"both": [0]},
        }
    said["comparison_cost"] = [None, 0.01, 2.0][seed % 3]
    return *case, {**options, "feature_costs": read_feature_costs(said, None, d)}


def tradeoff_case(seed):
    """Return a case whose splits have to gain what they cost, times a tradeoff."""
    *case, options = priced_case(seed)
    tradeoff = (0.0, 0.002, 0.05, 0.4)[seed % 4]
    return *case, {**options, "feature_costs": replace(options["feature_costs"], tradeoff=tradeoff)}


def comparing(make):
    """Return what makes cases as another does, whose trees grow by gain per comparison."""

    def made(seed):
        *case, options = make(seed)
        bounds = ((3.0,), (2.5, 1.0), (1.0,), (4.0, 1.7, 3.2))[seed % 4]
        options = {**options, "comparisons": bounds, "depth": 9}
        return *case, {"max_leaf_nodes": 1024, **options}

    return made


#: Options that trees grown level by level do not take.
ALONE = "max_leaf_nodes", "groups", "direction"


def pooled_case(seed):
    """Return a case whose trees grow level by level."""
    *case, options = (special_case, restrained_case, bundled_case)[seed % 3](seed // 3)
    options = {name: value for name, value in options.items() if name not in ALONE}
    if "per_split" in options:
        options["per_split"] = options["per_tree"]
    return *case, {**options, "growth": ("pooled", "symmetric")[seed % 2]}


def subset_of(words):
    return frozenset(b for b in range(256) if int(words[b // 64]) >> b % 64 & 1)


def assert_equals_twin(grown, nodes, values, at, of_copies=False):
    """Compare a tree with the nodes that the twin has, perhaps of copies, and what these add."""
    assert np.array_equal(grown.nodes["feature"], [n.feature for n in nodes]), at
    assert np.array_equal(grown.mass[:, 0], [n.curvature for n in nodes]), at
    assert np.array_equal(grown.nodes["missing"], [n.missing for n in nodes]), at
    assert np.array_equal(grown.nodes["mean"], values), at
    rows = grown.nodes["stop"] - grown.nodes["start"]
    assert of_copies or np.array_equal(rows, [len(n.rows) for n in nodes]), at
    for e, node in enumerate(nodes):
        low, high = grown.nodes["low"][e], grown.nodes["high"][e]
        if node.bin is not None and high >= 0:
            assert low == node.bin, at
        if node.above:
            assert subset_of(grown.subset[e]) == node.above, at


def steps_and_limits(options):
    """Return what leaves add, and the limits of trees, as the options of a case say."""
    step = Steps(
        options["rate"], options["most"], options["solved"], options["l2"], options["sums"]
    )
    limit = limits(
        options["depth"],
        options["min_samples_leaf"],
        options["smoothing"],
        options.get("max_leaf_nodes"),
        options.get("growth", "depth_first"),
        options.get("comparisons", ()),
    )
    return step, limit


def compiled(columns, y, loss, weight, listed, options, n_estimators=3):
    """Return the rounds, and after each the tree and a copy of the decision values."""
    f = np.full(len(y), options["bias"])
    step, limit = steps_and_limits(options)
    held = restraints_of(options, columns)
    rounds = Rounds(columns, y, loss, weighed(weight), f, limit, step, held)
    actual = [(None, f.copy(), rounds.mean_loss)]
    for t in range(n_estimators):
        rows = np.flatnonzero(weight > 0) if listed is None else listed[t]
        grown = rounds.grow(rows.astype(np.int32))
        actual.append((grown, rounds.f.copy(), rounds.mean_loss))
    return actual


def assert_twin(case, at, weighted=None, rows=slice(None)):
    """Compare rounds with the twin's; `weighted` has weights in place of copies of rows."""
    columns, y, loss, weight, listed, options = case
    actual = compiled(*(case if weighted is None else weighted))
    bins = columns.columns
    special = np.zeros(len(bins.n_bins), int) if bins.special is None else bins.special
    expected = twin.fit(
        twin.Columns(bins.codes, bins.n_bins, special),
        y,
        loss,
        weight,
        n_estimators=3,
        listed=listed,
        **options,
    )
    assert [loss_ for _, _, loss_ in actual] == expected.mean_loss, at
    assert np.array_equal(actual[-1][1][rows], expected.f), at
    for (grown, _, _), nodes, values in zip(
        actual[1:], expected.trees, expected.values, strict=True
    ):
        assert_equals_twin(grown, nodes, values, at, weighted is not None)


def assert_same(one, other):
    """Compare what `compiled` returns, to the last bit."""
    for (a, f, loss), (b, g, value) in zip(one, other, strict=True):
        assert np.array_equal(f, g)
        assert loss == value
        if a is not None:
            for name in ("children", "mass", "subset"):
                assert np.array_equal(getattr(a, name), getattr(b, name)), name
            assert a.nodes.tolist() == b.nodes.tolist()


def wide_case(name="log_loss", n=20_000, d=11, seed=0, max_bins=255):
    """Return a case of several blocks of rows and two groups of columns, the second not full."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 3] = rng.integers(0, 6, n)
    X[:, 9] = np.where(rng.random(n) < 0.1, np.nan, X[:, 0])
    y = np.where(X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n) > 0, 1, 0)
    weight = rng.uniform(0.1, 1, n) * (rng.random(n) < 0.9)
    columns = problem(X, y, None, {3: 6}, 2, max_bins)
    options = {
        "depth": 6,
        "min_samples_leaf": 3,
        "l2": 0.1,
        "smoothing": 1.0,
        "most": 4.0,
        "solved": True,
        "rate": 0.3,
        "bias": 0.1,
        "sums": "auto",
    }
    target = 2.0 * y - 1
    if name in OF_NUMBERS:
        target = X[:, 0] * X[:, 1] + X[:, 2] + rng.standard_t(2, size=n)
    if LOSSES[name].least >= 0:
        target = in_domain(LOSSES[name], rng.poisson(np.exp(X[:, 2])).astype(float))
    return columns, target, LOSSES[name], weight / weight.max(), None, options
