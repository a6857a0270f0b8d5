"""The record of the trees that a model is the sum of says all that its values need."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import exported
import inspected
import numpy as np
import pytest
from exported import EVERY, WITH_HOLES, decoded, made, rows_for
from oracle_learners import train_stump
from reference import tree_sum as twin
from sided_trees import random_forest, random_rows

import pboost as pb
from pboost.models.as_trees import count_unrolled


def values_of(model, X):
    """Return decision values; of trees of several labels the shares."""
    has_shares = (
        isinstance(model, pb.models.Tree | pb.models.RandomForest | pb.models.Bagging)
        and model.classes is not None
    )
    many = has_shares and len(model.classes) > 2
    return pb.predict_proba(model, X) if many else pb.decision_function(model, X)


def assert_rebuilt(model, X, rows):
    trees = pb.models.as_tree_ensemble(model)
    values = twin.values(trees, rows)
    expected = values_of(model, X)
    many = trees.link == "shares" and len(trees.classes) > 2
    actual = values if many else twin.decision_values(trees, rows)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-15 * (1 + twin.size(trees).max()))
    lead = np.abs(values if values.shape[1] == 1 else np.diff(np.sort(values))[:, -1:])[:, 0]
    clear = lead > 1e-12
    if trees.classes is None:
        np.testing.assert_allclose(twin.predictions(trees, rows), pb.predict(model, X), rtol=1e-14)
    else:
        assert np.array_equal(twin.predictions(trees, rows)[clear], pb.predict(model, X)[clear])
    if trees.classes is not None and trees.link != "none":
        share = pb.predict_proba(model, X)
        np.testing.assert_allclose(twin.probabilities(trees, rows), share, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kind", EVERY)
def test_values_labels_and_probabilities_are_rebuilt(kind):
    model = made(kind)
    rows = rows_for(model)
    X = decoded(model, rows)
    trees = pb.models.as_tree_ensemble(model)
    assert np.array_equal(trees.rows(X), rows, equal_nan=True)
    if kind in WITH_HOLES:
        assert trees.n_sets
        assert np.isnan(rows).any()
    assert_rebuilt(model, X, rows)


@pytest.mark.parametrize("seed", range(6))
def test_trees_made_by_hand(seed):
    rng = np.random.default_rng(seed)
    n_classes = [2, 3, 0][seed % 3]
    forest = random_forest(rng, 5, 6, categories=(1, 4), n_classes=n_classes)
    rows = random_rows(rng, 120, 6, (1, 4))
    assert_rebuilt(forest, rows, rows)
    assert_rebuilt(forest[3], rows, rows)


def test_what_the_record_says():
    trees = pb.models.as_tree_ensemble(made("votes"), exported.X[:50])
    assert trees.builder == "fit_boosted_tree"
    assert (trees.n_trees, trees.n_values, trees.aggregation, trees.comparison) == (
        1,
        3,
        "sum",
        "<=",
    )
    assert trees.n_nodes == 2 * made("votes").n_nodes + 1
    assert trees.classes.tolist() == ["ash", "elm", "oak"]
    assert repr(trees) == "<trees of fit_boosted_tree: 1 tree, 19 nodes>"
    assert pb.models.as_tree_ensemble(made("forest")).aggregation == "mean"
    assert pb.models.as_tree_ensemble(made("softmax")).target.tolist() == [0, 1, 2] * 3
    assert pb.models.as_tree_ensemble(made("chain")).n_trees == made("chain").n_nodes
    assert pb.models.as_tree_ensemble(made("chain")).depths.tolist() == [1] * made("chain").n_nodes
    assert (
        pb.models.as_tree_ensemble(
            pb.fit_adaboost(exported.PLAIN, exported.TWO, n_estimators=2)
        ).missing
        is not None
    )
    with pytest.raises(ValueError, match="read-only"):
        trees.value[0] = 1
    again = pickle.loads(pickle.dumps(trees))
    assert again.value.tobytes() == trees.value.tobytes()
    assert again.table == trees.table


def test_sets_are_those_of_levels():
    trees = pb.models.as_tree_ensemble(made("cart"))
    number = int(trees.category_set[trees.category_set >= 0][0])
    assert [int(trees.sets[number, b // 64]) >> (b % 64) & 1 for b in range(256)] == [
        int(b in trees.categories(number)) for b in range(256)
    ]


# Graphs whose exits join


def shaped(nodes):
    """Return a ladder: both exits of every node lead to the next, but for one that skips it."""
    model = pb.fit_adaboost(exported.PLAIN, exported.TWO, n_estimators=nodes)
    n = model.n_nodes
    next_ = np.array([[i + 1, min(i + 2, n)] for i in range(n)])
    return replace(model, next=np.where(next_ >= n, -1, next_))


def test_paths_are_counted_before_they_are_made():
    ladder = shaped(300)
    fibonacci = [1, 1]
    while len(fibonacci) < ladder.n_nodes + 2:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    paths = fibonacci[ladder.n_nodes]
    assert count_unrolled(ladder) > 10**50
    with pytest.raises(
        ValueError, match=f"max_nodes: expected at least {count_unrolled(ladder)}, "
    ):
        pb.models.as_tree_ensemble(ladder)
    assert abs(count_unrolled(ladder) / paths) < 10


@pytest.mark.parametrize("nodes", [1, 2, 3, 9])
def test_the_count_is_right(nodes):
    ladder = shaped(nodes)
    count = count_unrolled(ladder)
    assert pb.models.as_tree_ensemble(ladder, max_nodes=count).n_nodes == count
    with pytest.raises(ValueError, match=f"got {count - 1}; increase max_nodes"):
        pb.models.as_tree_ensemble(ladder, max_nodes=count - 1)
    assert_rebuilt(ladder, exported.PLAIN, exported.PLAIN)


def test_joints_cut_paths():
    """A sum of matryoshki that all paths meet between is a sum of their trees."""
    outer = made("matryoshka")
    trees = pb.models.as_tree_ensemble(outer)
    assert trees.n_trees == outer.n_stages > 1


# Models of models


def test_what_members_add():
    trees = pb.models.as_tree_ensemble(made("rest of chains"))
    chains = made("rest of chains").models
    assert trees.target.tolist() == np.repeat([0, 1, 2], [c.n_nodes for c in chains]).tolist()
    assert trees.bias.tolist() == [chain.bias for chain in chains]
    assert (trees.aggregation, trees.link, trees.n_added) == ("sum", "half log odds", 1)
    assert pb.models.as_tree_ensemble(made("rest of forests")).link == "lead"
    assert pb.models.as_tree_ensemble(made("rest of sums")).link == "log odds"
    assert trees.n_sets == sum(pb.models.as_tree_ensemble(chain).n_sets for chain in chains)

    samme = made("samme")
    votes = pb.models.as_tree_ensemble(samme)
    assert (votes.link, votes.n_trees) == ("softmax", len(samme.models))
    for k, alpha in enumerate(samme.alpha):
        own = votes.value[votes.root[k] : votes.root[k + 1]]
        is_leaf = votes.feature[votes.root[k] : votes.root[k + 1]] < 0
        assert sorted(set(own[is_leaf].ravel().tolist())) == [0.0, alpha]
        assert not own[~is_leaf].any()
    assert np.array_equal(votes.weight[votes.root[:-1]], [m.weight[0] for m in samme.models])

    bags = pb.models.as_tree_ensemble(made("bags of answers"))
    assert bags.aggregation == "mean"
    assert set(np.unique(bags.value)) == {0.0, 1.0}
    assert pb.models.as_tree_ensemble(made("bags of forests")).aggregation == "mean"
    sums = pb.models.as_tree_ensemble(made("bags of sums"))
    assert (sums.aggregation, sums.link, sums.n_trees) == ("sum", "identity", 9)


def uneven(vote, fits, y=exported.TWO):
    """Return a bagging whose members were fitted by several functions, in turn."""
    turns = iter(fits)

    def fit(X, y, **options):
        return next(turns)(X, y, **options)

    X = exported.PLAIN
    task = {"task": "regression"} if vote is None else {"voting": vote}
    return pb.fit_bagging(fit, X, y, n_estimators=len(fits), rng=0, n_threads=1, **task)


def forest_of(members):
    return partial(pb.fit_random_forest, n_estimators=members, rng=0, max_depth=3)


def stagewise(loss, steps, **options):
    return partial(pb.fit_gradient_boosting, loss=loss, n_estimators=steps, max_depth=2, **options)


@pytest.mark.parametrize(
    ("vote", "fits"),
    [
        ("soft", [forest_of(1), forest_of(3), forest_of(2)]),  # which weigh the same
        ("soft", [stagewise("log_loss", 1), partial(pb.fit_boosted_tree, max_nodes=4)]),
        ("soft", [stagewise("probit", 1), stagewise("hinge", 1)]),  # one has no probabilities
        (
            "hard",
            [stagewise("log_loss", 1), forest_of(1), partial(pb.fit_adaboost, n_estimators=1)],
        ),
    ],
    ids=["forests", "probabilities", "no probabilities", "answers"],
)
def test_members_of_several_kinds(vote, fits):
    assert_rebuilt(uneven(vote, fits), exported.PLAIN, exported.PLAIN)


def test_regressions_of_several_kinds():
    fits = [stagewise("squared_error", 3), stagewise("poisson", 1), pb.fit_cart]
    fits[2] = partial(pb.fit_cart, max_depth=2)
    model = uneven(None, fits, exported.COUNT)
    assert_rebuilt(model, exported.PLAIN, exported.PLAIN)
    text = "models\\[1\\] has 2 trees, and their sum is not the prediction"
    with pytest.raises(TypeError, match=text):
        pb.models.as_tree_ensemble(uneven(None, [fits[0], stagewise("poisson", 2)], exported.COUNT))


def test_one_versus_the_rest_of_two():
    """Members that vote have two values each, of which the lead counts."""
    fit = partial(pb.fit_samme, base_learner=partial(pb.fit_cart, max_depth=2), n_estimators=3)
    model = pb.fit_one_vs_rest(fit, exported.PLAIN, exported.TWO)
    assert pb.models.as_tree_ensemble(model).link == "log odds"
    assert_rebuilt(model, exported.PLAIN, exported.PLAIN)
    mixed = replace(model, models=(model.models[0], made_rest(exported.TWO)))
    assert pb.models.as_tree_ensemble(mixed).link == "none"
    lead = pb.decision_function(mixed, exported.PLAIN)
    actual = twin.values(pb.models.as_tree_ensemble(mixed), exported.PLAIN)
    np.testing.assert_allclose(actual, lead, rtol=0, atol=1e-13)


def made_rest(y):
    return pb.fit_adaboost(exported.PLAIN, np.asarray(y), n_estimators=3)


def test_shares_of_which_none_is_above_zero_are_equal():
    X, y = exported.PLAIN[:9], np.arange(9) % 3
    model = pb.fit_one_vs_rest(partial(pb.fit_cart, min_samples_leaf=1), X, y)
    rows = np.random.default_rng(0).normal(size=(300, 2)) * [1, 1e3]
    trees = pb.models.as_tree_ensemble(model)
    assert (twin.values(trees, rows) == -1).all(axis=1).any()
    assert_rebuilt(model, rows, rows)


class Foreign:
    def predict(self, X):
        return np.zeros(len(X), dtype=bool)


@pytest.mark.parametrize(
    ("fit", "said"),
    [
        (
            lambda X, y: pb.fit_bagging(
                partial(pb.fit_adaboost, n_estimators=5), X, y, n_estimators=2, rng=0
            ),
            r"models\[0\] has 5 trees, and their sum is not a probability.* "
            r"to_c",
        ),
        (
            lambda X, y: pb.fit_bagging(forest_of(2), X, y, n_estimators=2, rng=0, voting="hard"),
            r"models\[0\] has 2 trees, and their sum is not a vote",
        ),
        (
            lambda X, y: pb.fit_samme(
                X, y, base_learner=partial(pb.fit_adaboost, n_estimators=2), n_estimators=2
            ),
            r"models\[0\] has 2 trees, and their sum is not a vote",
        ),
        (
            lambda X, y: pb.fit_bagging(
                lambda X, y, sample_weight: Foreign(), X, y, n_estimators=1, rng=0
            ),
            r"whose models\[0\] is a Foreign of another package",
        ),
        (
            lambda X, y: pb.fit_one_vs_rest(pb.fit_probitboost, X, y, max_iter=2),
            r"OneVsRest, whose models\[0\] is not a sum of trees: a ProbitModel, which is a "
            r"linear function",
        ),
        (
            lambda X, y: replace(
                pb.fit_samme(X, y, base_learner=pb.fit_cart, n_estimators=1), models=(), alpha=[]
            ),
            "which has no base learners",
        ),
    ],
    ids=["probabilities", "answers", "samme", "foreign", "probit", "none"],
)
def test_models_of_models_that_are_no_sums_are_refused(fit, said):
    with pytest.raises(TypeError, match=f"model: expected a sum of trees, got .*{said}"):
        pb.models.as_tree_ensemble(fit(exported.PLAIN, exported.TWO))


def test_nodes_of_all_members_are_counted():
    model = made("rest of chains")
    count = 3 * sum(chain.n_nodes for chain in model.models)
    assert pb.models.as_tree_ensemble(model, max_nodes=count).n_nodes == count
    with pytest.raises(ValueError, match=f"max_nodes: expected at least {count}, .* 3 graphs"):
        pb.models.as_tree_ensemble(model, max_nodes=count - 1)


def test_members_of_other_levels_are_refused():
    first, other = (
        pb.fit_cart(exported.X[:n], exported.TWO[:n], max_depth=2, **exported.LEVELS)
        for n in (20, 150)
    )
    model = made("bags of trees")
    with pytest.raises(TypeError, match="whose base learners have different category codes"):
        pb.models.as_tree_ensemble(replace(model, models=(first, other)))


# Weights


WEIGHTED = [
    "chain",
    "tree",
    "matryoshka, soft",
    "votes",
    "gaussian",
    "forest",
    "softmax",
    "nothing to learn",
    "rest of chains",
    "samme",
    "bags of trees",
]


@pytest.mark.parametrize("kind", WEIGHTED)
def test_weights_add_up(kind):
    model = made(kind)
    X = exported.X if kind in WITH_HOLES else exported.PLAIN
    trees = pb.models.as_tree_ensemble(model, X)
    inner = np.flatnonzero(trees.feature >= 0)
    below = trees.weight[trees.children[inner] + trees.start[inner, None]].sum(axis=1)
    np.testing.assert_allclose(below, trees.weight[inner], rtol=1e-12)
    np.testing.assert_allclose(trees.weight[trees.root[:-1]], len(X), rtol=1e-12)


@pytest.mark.parametrize("kind", ["chain", "matryoshka", "cart, three", "log_loss"])
def test_weights_of_exact_models_count_rows(kind):
    model, X = made(kind), exported.X
    trees = pb.models.as_tree_ensemble(model, X)
    rows, expected = trees.rows(X), np.zeros(trees.n_nodes)
    for row in rows:
        for tree in range(trees.n_trees):
            expected[twin.leaf_of(trees, tree, row)] += 1
    is_leaf = trees.feature < 0
    assert np.array_equal(trees.weight[is_leaf], expected[is_leaf])


def test_weights_of_soft_models_are_masses(monkeypatch):
    model = made("soft tree")
    trees = pb.models.as_tree_ensemble(model, exported.PLAIN)
    assert (trees.weight > 0).all()
    # A tree without joins has one path to each of its nodes.
    mass = pb.inspection.reach(model, exported.PLAIN, pb.predict(model, exported.PLAIN)).sum(axis=0)
    inner = trees.weight[trees.feature >= 0]
    np.testing.assert_allclose(np.sort(inner), np.sort(mass), rtol=1e-12)
    monkeypatch.setattr("pboost.models.as_trees.CELLS", 40)  # two rows at a time
    again = pb.models.as_tree_ensemble(model, exported.PLAIN)
    np.testing.assert_allclose(again.weight, trees.weight, rtol=1e-12)


def test_weights_of_training():
    forest = made("forest")
    assert np.array_equal(pb.models.as_tree_ensemble(forest).weight, forest.weight)
    assert pb.models.as_tree_ensemble(made("chain")).weight is None


# What is refused


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("affine", "got a DecisionGraph, whose nodes compare sums of features.*weak_learner=stump"),
        ("separators", "whose nodes compare sums"),
        ("linear", "whose nodes compare sums"),
        ("columns", "got a LinearModel, which is a linear function; use coefficients"),
        ("probit", "got a ProbitModel, .*coefficients"),
        ("probit tree", "leaves are linear functions"),
        ("sbpmt", "got a SubaggedProbitTrees, whose leaves"),
        ("bagging of chains", r"model\[i\]"),
    ],
)
def test_other_models_are_refused(kind, said):
    with pytest.raises(TypeError, match=f"model: expected a sum of trees.*{said}"):
        pb.models.as_tree_ensemble(inspected.made(kind))


@pytest.mark.filterwarnings("ignore:X_cal. .* rows equal rows:UserWarning")
def test_models_that_hold_functions_are_refused():
    stop = pb.early_exit(made("forest"), exported.X, mean_comparisons=9)
    with pytest.raises(TypeError, match=r"pass the full model, model\.model"):
        pb.models.as_tree_ensemble(stop)
    calibrated = pb.calibrate(made("forest"), exported.X, exported.TWO)
    with pytest.raises(TypeError, match=r"CalibratedModel, .*model\.model"):
        pb.models.as_tree_ensemble(calibrated)
    with pytest.raises(TypeError, match="model: expected a model, such as"):
        pb.models.as_tree_ensemble("model")


def test_oracles_are_refused():
    weak = pb.weak.oracle(train_stump)
    model = pb.fit_adaboost(exported.PLAIN, exported.TWO, n_estimators=2, weak_learner=weak, rng=0)
    with pytest.raises(TypeError, match="functions that no file format can store"):
        pb.models.as_tree_ensemble(model)


def test_options_are_checked():
    with pytest.raises(ValueError, match="max_nodes: expected an integer"):
        pb.models.as_tree_ensemble(made("chain"), max_nodes=0)
    with pytest.raises(ValueError, match="X: expected at least one row"):
        pb.models.as_tree_ensemble(made("chain"), exported.X[:0])
    with pytest.raises(ValueError, match="columns"):
        pb.models.as_tree_ensemble(made("chain"), exported.X[:, :2])


@pytest.mark.parametrize(
    ("field", "change", "said"),
    [
        ("children", lambda a: a[::-1], "children"),
        ("children", lambda a: np.where(a == a.max(), a.max() - 1, a), "each node except the root"),
        ("missing", lambda a: a + 1, "missing: expected 0 or 1"),
        ("threshold", lambda a: a + 1, "threshold: expected 0"),
        ("threshold", lambda a: a * np.nan, "threshold: expected finite"),
        ("feature", lambda a: a + 9, "feature"),
        ("value", lambda a: a[:, :0], "value: expected shape"),
        ("bias", lambda a: a[:0], "shape .*, 0"),
        ("bias", lambda a: a + np.inf, "bias"),
        ("link", str.upper, "link: expected one of"),
        ("aggregation", str.upper, "aggregation: expected one of"),
        ("comparison", lambda a: "<", "comparison: expected one of"),
        ("root", lambda a: a[:-1], "root"),
        ("sets", lambda a: a | np.uint64(1 << 63), "category codes below 255"),
        ("target", lambda a: [0], "target: expected None"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_damaged_records_are_refused(field, change, said):
    trees = pb.models.as_tree_ensemble(made("cart, numbers"))
    with pytest.raises(ValueError, match=said):
        replace(trees, **{field: change(getattr(trees, field))})
