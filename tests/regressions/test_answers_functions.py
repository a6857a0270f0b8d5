"""Functions of a model, and members of ensembles, where the question was refused or misunderstood.

Infinity stood in messages as if it were allowed, and is now; linear models have coefficients;
functions of graphs say what to call for models of other kinds; forests can be cut; a model says
which builder made it.
"""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

import pboost as pb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] + 0.5 * RNG.normal(size=120) > 0
ZONE = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])
STUMPS = partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=3)

LINEAR = partial(pb.fit_real_adaboost, n_estimators=6, weak_learner=pb.weak.feature())
#: Models that are no graphs, and what is called instead of `truncate` and `reach`, if anything.
KINDS = {
    "linear": (lambda: LINEAR(X, Y), "staged_decision_function", "decision_function"),
    "tree": (lambda: pb.fit_cart(X, Y, max_depth=2), "prune", "apply"),
    "stagewise": (
        lambda: pb.fit_gradient_boosting(X, Y, loss="log_loss", n_estimators=3),
        None,
        "apply",
    ),
    "probit": (
        lambda: pb.fit_probitboost(X, Y, max_iter=5),
        "staged_decision_function",
        "coefficie",
    ),
    "probit tree": (lambda: pb.fit_probit_tree(X, Y, max_depth=1, max_iter=5), "depth", "apply"),
    "forest": (lambda: pb.fit_random_forest(X, Y, n_estimators=3, rng=0), r"model\[:k\]", "apply"),
    "sbpmt": (
        lambda: pb.fit_sbpmt(X, Y, n_estimators=3, n_boosting_rounds=2, max_iter=5, rng=0),
        r"model\[:k\]",
        r"model\[",
    ),
    "rest": (lambda: STUMPS(X, ZONE), r"model\.models", r"model\.models"),
    "samme": (
        lambda: pb.fit_samme(X, ZONE, base_learner=STUMPS, n_estimators=2),
        r"model\.models",
        r"model\.mo",
    ),
    "bagging": (
        lambda: pb.fit_bagging(pb.fit_cart, X, Y, n_estimators=3, rng=0),
        r"model\.models",
        r"model\.m",
    ),
}


# Infinity


def test_at_an_infinite_price_the_root_is_left(tmp_path):
    tree = pb.fit_cart(X, Y)
    assert tree.n_leaves > 3
    root = pb.prune(tree, np.inf)
    assert root.n_nodes == 1
    np.testing.assert_array_equal(root.value, tree.value[:1])
    # The record has the price from which on that is so, as files hold finite numbers.
    assert root.settings["pruned_at"] == pytest.approx(
        pb.models.cost_complexity_pruning_path(tree).ccp_alpha[-1]
    )
    assert pb.prune(tree, root.settings["pruned_at"]).n_nodes == 1
    pb.save(root, tmp_path / "root.npz")
    assert pb.load(tmp_path / "root.npz").settings["pruned_at"] == root.settings["pruned_at"]
    assert pb.prune(root, np.float64("inf")).n_nodes == 1
    for wrong in (np.nan, -np.inf, -1.0):
        with pytest.raises(ValueError, match=r"^ccp_alpha: expected a number in \[0.0, inf\), got"):
            pb.prune(tree, wrong)


def test_steps_without_a_bound(tmp_path):
    fits = [
        pb.fit_gradient_boosting(X, Y, loss="exponential", n_estimators=5, max_delta_step=limit)
        for limit in (np.inf, np.float32("inf"), None)
    ]
    for model in fits:
        np.testing.assert_array_equal(model.trees.value, fits[0].trees.value)
        assert model.settings["max_delta_step"] is None
    pb.save(fits[0], tmp_path / "sum.npz")
    for wrong in (np.nan, -np.inf, 0.0):
        with pytest.raises(
            ValueError, match=r"^max_delta_step: expected a number in \(0.0, inf\), got"
        ):
            pb.fit_gradient_boosting(X, Y, loss="exponential", max_delta_step=wrong)


@pytest.mark.parametrize("ask", [pb.weak.linear, pb.weak.hypothesis])
def test_no_message_offers_what_is_refused(ask):
    name = {pb.weak.linear: "dense_gain", pb.weak.hypothesis: "max_abs"}[ask]
    given = (lambda *a: None,) if ask is pb.weak.hypothesis else ()
    with pytest.raises(ValueError, match=rf"^{name}: expected a number in .*, inf\), got inf"):
        ask(*given, **{name: np.inf})


# Coefficients


def test_coefficients_of_a_linear_model():
    model = LINEAR(X, Y)
    summary = pb.inspection.coefficients(model)
    assert summary.slopes.shape == (1, 1, 3)
    np.testing.assert_allclose(
        summary.intercept[0] + X @ summary.slopes[0, 0], pb.decision_function(model, X), atol=1e-12
    )
    np.testing.assert_array_equal(summary.slopes[0, 0], model.coefficient)
    np.testing.assert_array_equal(summary.mean, summary.slopes[0])
    np.testing.assert_allclose(
        pb.inspection.coefficients(model, X).mean[0], model.coefficient * X.std(axis=0), rtol=1e-12
    )
    assert summary.classes == (True,)
    assert "x[0]" in str(summary)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            pb.fit_adaboost(X, Y, n_estimators=2),
            "DecisionGraph has no linear functions.*LinearModel",
        ),
        (pb.fit_cart(X, Y), "Tree has no linear functions.*LinearModel"),
        (STUMPS(X, ZONE), r"OneVsRest has no linear function; call coefficients on a base learner"),
        (3, "expected a model, such as fit_adaboost returns, got 3"),
    ],
)
def test_models_without_coefficients_say_who_has_them(model, message):
    with pytest.raises(TypeError, match=f"^model: .*{message}"):
        pb.inspection.coefficients(model)


# Functions of graphs


@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_graphs_say_what_to_call(kind):
    make, of_prefix, of_reach = KINDS[kind]
    model, name = make(), type(make()).__name__
    for function, instead, ask in (
        ("truncate", of_prefix, lambda: pb.models.truncate(model, 1)),
        ("reach", of_reach, lambda: pb.inspection.reach(model, X)),
        ("continue_fit", "", lambda: pb.continue_fit(model, X, Y, max_nodes=1)),
    ):
        if instead is None:
            assert len(ask()) == 1
            continue
        who = rf"a DecisionGraph for {function}, got a {name}, "
        text = rf"^(max_nodes, )?model: expected {who}.*{instead}"
        with pytest.raises(TypeError, match=text):
            ask()


# Members


@pytest.fixture(scope="module")
def forest():
    return pb.fit_random_forest(X, ZONE, n_estimators=6, max_depth=4, rng=0)


@pytest.fixture(scope="module", params=["leaf", "tree"])
def probits(request):
    """Members of trees with a leaf for all classes, or of a tree for each."""
    options = {
        "n_estimators": 5,
        "n_boosting_rounds": 3,
        "max_iter": 4,
        "min_samples_leaf": 8,
        "voting": "hard",
    }
    return pb.fit_sbpmt(X, ZONE, one_vs_rest=request.param, rng=0, **options)


CUTS = [slice(2), slice(1, 5), slice(None, None, 2), slice(None, None, -1), slice(-2, None)]


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_part_of_a_forest(forest, cut, tmp_path):
    part, trees = forest[cut], list(forest)[cut]
    assert isinstance(part, pb.models.RandomForest)
    assert len(part) == len(trees)
    assert part.oob is None
    np.testing.assert_allclose(
        pb.predict_proba(part, X),
        np.mean([pb.predict_proba(tree, X) for tree in trees], axis=0),
        rtol=1e-13,
    )
    for mine, tree in zip(part, trees, strict=True):
        np.testing.assert_array_equal(mine.threshold, tree.threshold)
    pb.save(part, tmp_path / "part.npz")
    np.testing.assert_array_equal(pb.load(tmp_path / "part.npz").value, part.value)


def test_the_first_trees_are_the_smaller_forest(forest):
    smaller = pb.fit_random_forest(X, ZONE, n_estimators=4, max_depth=4, rng=0)
    np.testing.assert_array_equal(forest[:4].value, smaller.value)
    np.testing.assert_array_equal(forest[:4].root, smaller.root)


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_part_of_subagged_trees(probits, cut, tmp_path):
    part, members = probits[cut], list(probits)[cut]
    assert isinstance(part, pb.models.SubaggedProbitTrees)
    assert len(part) == len(members)
    assert part.oob is None
    votes = [np.eye(3)[pb.predict(member, X)] for member in members]
    np.testing.assert_allclose(pb.predict_proba(part, X), np.mean(votes, axis=0), rtol=1e-13)
    pb.save(part, tmp_path / "part.npz")
    np.testing.assert_array_equal(pb.load(tmp_path / "part.npz").coefficient, part.coefficient)


def test_members_by_number(forest, probits):
    bagging = pb.fit_bagging(pb.fit_cart, X, Y, n_estimators=3, rng=0)
    for model, members in (
        (forest, None),
        (probits, None),
        (bagging, bagging.models),
        (rest := STUMPS(X, ZONE), rest.models),
        (samme := pb.fit_samme(X, ZONE, base_learner=STUMPS, n_estimators=2), samme.models),
    ):
        n = len(list(model))
        for i in (0, n - 1, -1, -n, np.int8(1), np.uint64(0), np.int64(-1)):
            first = model[i]
            if members is not None:
                assert first is members[i]
            else:
                np.testing.assert_array_equal(
                    pb.predict(first, X), pb.predict(list(model)[int(i)], X)
                )
        for i in (n, -n - 1, 10**30):
            with pytest.raises(IndexError, match=rf"^(tree|member): expected a number below {n}"):
                model[i]
        for i in ("a", 1.0, None, [0]):
            with pytest.raises(TypeError, match=r"^(tree|member): expected an integer or a slice"):
                model[i]
        if members is not None:
            with pytest.raises(TypeError, match=r"^model: a \w+ cannot be sliced, .*model\.models"):
                model[:2]
        else:
            with pytest.raises(ValueError, match=rf"^(tree|member): expected at least one of {n}"):
                model[n:]


# Who made it


def test_an_oblique_tree_says_who_made_it(tmp_path):
    model = pb.fit_oblique_tree(X, Y, n_stumps=5, max_depth=2)
    same = pb.fit_boosted_tree(
        X, Y, max_nodes=None, weak_learner=pb.weak.separator(5), max_depth=2, growth="breadth_first"
    )
    assert model.settings == {**same.settings, "builder": "fit_oblique_tree"}
    assert repr(model).startswith("<fit_oblique_tree: ")
    assert pb.describe(model).startswith("fit_oblique_tree: ")
    np.testing.assert_array_equal(model.vote, same.vote)
    np.testing.assert_array_equal(model.record.certificate, same.record.certificate)
    pb.save(model, tmp_path / "oblique.npz")
    assert pb.load(tmp_path / "oblique.npz").settings["builder"] == "fit_oblique_tree"
    pb.models.truncate(model, 1)
    with pytest.raises(NotImplementedError, match=re.escape("model: ")):
        pb.continue_fit(model, X, Y, max_nodes=1)


@pytest.mark.parametrize(
    "name",
    [name for name in pb.__all__ if name.startswith("fit_")],
)
def test_every_model_says_who_made_it(name):
    own = {
        "fit_adaboost": {"n_estimators": 2},
        "fit_real_adaboost": {"n_estimators": 2},
        "fit_boosted_tree": {"max_nodes": 2},
        "fit_topdown_tree": {"max_nodes": 2},
        "fit_oblique_tree": {"n_stumps": 2},
        "fit_random_forest": {"n_estimators": 2},
        "fit_bagging": {"fit": pb.fit_cart, "n_estimators": 2},
        "fit_one_vs_rest": {"fit": pb.fit_cart},
        "fit_within_budget": {"mean_comparisons": 2},
        "fit_samme": {"base_learner": pb.fit_cart, "n_estimators": 2},
        "fit_probitboost": {"max_iter": 2},
        "fit_gradient_boosting": {"loss": "log_loss", "n_estimators": 2},
        "fit_probit_tree": {"max_depth": 1, "max_iter": 2},
        "fit_sbpmt": {"n_estimators": 2, "n_boosting_rounds": 1, "max_iter": 2, "max_depth": 1},
    }
    model = getattr(pb, name)(X=X, y=Y, **own.get(name, {}))
    assert model.settings["builder"] == name
    assert name in repr(model)
    assert name in pb.describe(model)
