"""Names of options: those of peers and of earlier versions are answered; the tables are true."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import pickle
import re
import timeit
import traceback
from functools import partial, wraps
from pathlib import Path

import numpy as np
import pytest

import pboost as pb
from pboost.cli.options import MODELS, SEVERAL_CLASSES
from pboost.values import options
from pboost.values import parameter_aliases as peers

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
TWO = THREE > 0

BUILDERS = {name: getattr(pb, name) for name in pb.__all__ if name.startswith("fit_")}
ALL = {
    **BUILDERS,
    "continue_fit": pb.continue_fit,
    "cross_validate": pb.cross_validate,
    **{f"weak.{name}": make for name, make in pb.weak.KINDS.items()},
    **{f"observation.{name}": make for name, make in pb.observation.KINDS.items()},
}
#: What the builders that are given others are given, and their data.
FIRST = {
    "fit_bagging": (pb.fit_cart, X, TWO),
    "fit_one_vs_rest": (pb.fit_adaboost, X, TWO),
    "continue_fit": (pb.fit_adaboost(X, TWO, n_estimators=1), X, TWO),
    "cross_validate": (pb.fit_cart, X, TWO),
}


def told(call, *arguments, **given):
    """Return the message of the TypeError that a call raises."""
    with pytest.raises(TypeError) as caught:
        call(*arguments, **given)
    return str(caught.value)


def answer(builder, **given):
    """Return the message for an option that a builder, or what it calls, does not have."""
    if "." in builder:
        return told(ALL[builder], **given)
    return told(ALL[builder], *FIRST.get(builder, (X, TWO)), **given)


def here(name, note=""):
    return f"use `{name}`" + f", {note}" * bool(note)


# Names of peers

ROWS = "a fraction or a number of rows"
ANSWERS = {
    "fit_adaboost": {
        "max_iter": here("n_estimators"),
        "num_boost_round": here("n_estimators"),
        "random_state": here("rng"),
        "seed": here("rng"),
        "n_jobs": here("n_threads"),
        "eta": here("learning_rate"),
        "early_stopping_rounds": here("n_iter_no_change", "requires `validation`"),
        "eval_set": here("validation", "a pair (X, y) or a fraction of the rows"),
        "validation_fraction": here("validation", "a pair (X, y) or a fraction of the rows"),
        "class_weight": here("sample_weight", "one weight per row"),
        "verbose": here("progress", "shows a progress bar"),
        "estimator": here("weak_learner", "one of pb.weak, such as from_estimator"),
        "min_samples_leaf": (
            "use `min_samples_leaf` of `weak_learner`, as in "
            "weak_learner=pb.weak.stump(min_samples_leaf=...)"
        ),
        "max_bin": (
            "use `max_bins` of `weak_learner`, as in weak_learner=pb.weak.stump(max_bins=...)"
        ),
        "criterion": (
            "use `criterion` of `weak_learner`, as in weak_learner=pb.weak.stump(criterion=...)"
        ),
        "warm_start": "use pb.continue_fit(model, X, y)",
        "base_score": "fit_adaboost has no such option; only gradient boosting has it, as `init`",
        "iterations": here("n_estimators"),
        "num_iterations": here("n_estimators"),
        "min_samples_split": "fit_adaboost has no such option; it has ",
    },
    "fit_boosted_tree": {
        "num_leaves": here("max_nodes", "one less than the number of leaves"),
        "max_leaf_nodes": here("max_nodes", "one less than the number of leaves"),
        "nthread": here("n_threads"),
        "max_dept": "fit_boosted_tree has no such option; did you mean max_depth?",
    },
    "fit_cart": {
        "min_data_in_leaf": here("min_samples_leaf", "a number of rows"),
        "min_child_samples": here("min_samples_leaf", "a number of rows"),
        "min_child_weight": here("min_samples_leaf", "a number of rows"),
        "num_leaves": here("max_leaf_nodes"),
        "ccp_alpha": (
            "use pb.prune(tree, ccp_alpha), or pb.fit_pruned_cart(X, y) to choose ccp_alpha"
        ),
        "grow_policy": here("growth"),
        "tree_method": here("search"),
    },
    "fit_pruned_cart": {
        "n_splits": here("cv"),
        "min_data_in_leaf": here("min_samples_leaf", "a number of rows"),
        "depth": here("max_depth"),
        "depht": "fit_pruned_cart has no such option; it",
    },
    "fit_topdown_tree": {
        "min_weight_fraction_leaf": here("min_weight_fraction", "a fraction of the node's weight"),
        "min_child_weight": here("min_weight_fraction", "a fraction of the node's weight"),
        "criterion": here("impurity"),
    },
    "fit_random_forest": {
        "num_trees": here("n_estimators"),
        "bagging_fraction": here("max_samples", ROWS),
        "colsample_bynode": here("max_features", "sampled for each split"),
        "max_bin": here("max_bins"),
        "subsample": here("max_samples", ROWS),
        "num_threads": here("n_threads"),
        "oob_score": "use the attribute model.oob.error of an ensemble with subsampling",
    },
    "fit_gradient_boosting": {
        "max_iter": here("n_estimators"),
        "objective": here("loss"),
        "max_samples": here("subsample", ROWS),
        "base_score": here("init", '"constant" or "zero"'),
        "iterations": here("n_estimators"),
        "num_trees": here("n_estimators"),
        "l2_leaf_reg": here("l2_regularization"),
        "rsm": here("max_features", "sampled for each split"),
        "border_count": here("max_bins"),
        "od_wait": here("n_iter_no_change", "requires `validation`"),
        "thread_count": here("n_threads"),
        "depth": here("max_depth"),
        "cat_features": here(
            "categorical_features", "in addition to the text columns of a data frame"
        ),
        "random_seed": here("rng"),
        "loss_function": here("loss"),
        "nan_mode": here("missing"),
        "auto_class_weights": here("sample_weight", "one weight per row"),
        "group": "ranking is not implemented",
        "quantile_alpha": "use loss=pb.losses.Quantile(0.9)",
        "alpha": "use loss=pb.losses.Quantile(0.9) for a quantile",
        "eval_metric": here("metric"),
        "class_weight": here("sample_weight", "one weight per row, such as"),
        "qid": "ranking is not implemented",
    },
    "fit_sbpmt": {"num_trees": here("n_estimators"), "eta": here("learning_rate")},
    "fit_probitboost": {"n_estimators": here("max_iter")},
    "fit_samme": {
        "estimator": here("base_learner", "a fit function"),
        "iterations": here("n_estimators"),
    },
    "fit_oblique_tree": {"max_leaf_nodes": here("max_nodes", "one less than the number of leaves")},
    "weak.affine": {
        "random_state": here("seed"),
        "min_data_in_leaf": here("min_samples_leaf", "a number of rows"),
    },
    "continue_fit": {"iterations": here("n_estimators")},
    "cross_validate": {"n_splits": here("cv"), "nfold": here("cv"), "random_state": here("rng")},
}


@pytest.mark.parametrize("builder", ANSWERS)
def test_names_of_peers(builder):
    for name, expected in ANSWERS[builder].items():
        assert answer(builder, **{name: 1}).startswith(f"{name}: {expected}")


def test_options_that_are_passed_on():
    """They may be meant for either function."""
    both = "iterations: use `n_estimators`"
    assert told(pb.fit_bagging, pb.fit_adaboost, X, TWO, iterations=3) == both
    assert told(pb.fit_bagging, partial(pb.fit_adaboost, iterations=3), X, TWO) == both
    assert told(pb.fit_bagging, pb.fit_cart, X, TWO, iterations=3).endswith("use `n_estimators`")
    assert told(pb.fit_bagging, pb.fit_random_forest, X, TWO, n_jobs=3).endswith("use `n_threads`")
    many = partial(pb.fit_one_vs_rest, pb.fit_adaboost)
    for call in (partial(many, X, THREE), partial(pb.fit_bagging, many, X, THREE, n_estimators=1)):
        assert told(call, iterations=3) == "iterations: use `n_estimators`"
    assert (
        told(pb.fit_bagging, X, TWO, estimator=pb.fit_cart)
        == "estimator: use `fit`, a fit function"
    )
    assert told(
        pb.fit_samme, X, THREE, base_learner=partial(pb.fit_cart, depth=2), n_estimators=2
    ) == ("depth: use `max_depth`")
    taken = told(pb.fit_bagging, partial(pb.fit_cart, n_estimators=3), X, TWO)
    assert taken.startswith("n_estimators: fit_cart, called by fit_bagging, has no such op")
    typo = "max_dept: fit_cart, called by fit_bagging, has no such option; did you mean"
    assert told(pb.fit_bagging, pb.fit_cart, X, TWO, max_dept=3).startswith(typo)


def test_options_for_the_builder_that_is_passed():
    said = told(pb.cross_validate, pb.fit_adaboost, X, TWO, n_estimators=20)
    assert said == (
        "n_estimators: expected an option of cross_validate, got an option of fit_adaboost; pass "
        "functools.partial(fit_adaboost, "
        "n_estimators=20)"
    )


def test_builders_come_first():
    for call in (pb.fit_bagging, pb.fit_one_vs_rest, pb.cross_validate):
        said = "fit: expected a fit function such as fit_cart as the first argument"
        assert told(call, X, TWO).startswith(said)
    assert told(pb.fit_bagging, pb.fit_cart).startswith("X: fit_bagging requires this argument: ")


# Functions stay what they are


@pytest.mark.parametrize("name", ALL)
def test_functions_stay_what_they_are(name):
    call = ALL[name]
    assert inspect.isfunction(call)
    assert pickle.loads(pickle.dumps(call)) is call
    assert copy.deepcopy(call) is call
    assert f"def {call.__name__}(" in inspect.getsource(call)
    parameters = inspect.signature(call).parameters
    assert parameters.keys() == call.__annotations__.keys() - {"return"}
    assert {*options.option_names(call)} == {*parameters} - {"options"}
    assert call.__doc__.strip()


def test_missing_arguments_and_options_without_a_name():
    assert told(pb.fit_cart).startswith("X: fit_cart requires this argument: array_like of shape")
    assert told(pb.fit_cart, X).startswith(
        "y: expected class labels, or class probabilities as y_proba"
    )
    missing = told(pb.fit_pruned_cart, X=X)
    assert missing.startswith("y: expected class labels, or class probabilities as y_proba")
    assert "takes 1 positional argument" in told(pb.observation.flip, 0.1, 2)
    expected = "fit_cart: expected only X, y without a name, got 3 arguments; pass options by name"
    assert told(pb.fit_cart, X, TWO, 3).startswith(expected)


def test_options_that_only_gradient_boosting_has():
    functions = [call for call in ALL.values() if call is not pb.fit_gradient_boosting]
    others = parameters(*functions)
    assert parameters(pb.fit_gradient_boosting) - others == peers.OF_GRADIENT_BOOSTING


def test_an_unknown_option_is_the_only_error():
    """No other is said to have come first."""
    with pytest.raises(TypeError) as caught:
        pb.fit_cart(X, TWO, n_jobs=2)
    assert caught.value.__context__ is None
    assert len(traceback.extract_tb(caught.value.__traceback__)) <= 4


def test_errors_of_functions_within_are_theirs():
    def callback(step, record):
        return record.no_such(n_estimators=3)

    with pytest.raises(AttributeError, match="no_such"):
        pb.fit_adaboost(X, TWO, n_estimators=2, callback=callback)

    def fit(X, y, sample_weight=None):
        return pb.fit_cart(X, y, n_jobs=2)

    with pytest.raises(TypeError, match="n_jobs: use `n_threads`") as caught:
        pb.fit_bagging(fit, X, TWO, n_estimators=1)
    assert "raised while fitting base learner 0" in caught.value.__notes__[0]


def test_wrappers_of_users_take_what_they_like():
    @wraps(pb.fit_cart)
    def fit(*arguments, **given):
        return pb.fit_cart(*arguments, max_depth=given.pop("levels"), **given)

    bagging = pb.fit_bagging(fit, X, TWO, n_estimators=2, levels=1, rng=0)
    assert {tree.depth for tree in bagging.models} == {1}


def test_what_it_costs():
    """Less than a microsecond where nothing is wrong; far more is left to a busy machine."""

    def plain(X, y, *, a=1, b=2, c=3, d=4):
        return X

    call = options.builder(plain)
    arguments = {"a": 1, "b": 2, "c": 3, "d": 4}
    each = [
        min(timeit.repeat(lambda f=f: f(0, 1, **arguments), number=2000, repeat=9)) / 2000
        for f in (plain, call)
    ]
    assert each[1] - each[0] < 5e-6


# More than two labels

OF_TWO = {
    "fit_real_adaboost": {"n_estimators": 2},
    "fit_matryoshka": {"shape": (2, 2)},
    "fit_oblique_tree": {"n_stumps": 2},
    "fit_probitboost": {"max_iter": 2},
}
OF_ANY = {
    "fit_adaboost": {"n_estimators": 2},
    "fit_boosted_tree": {"max_nodes": 2},
    "fit_cart": {},
    "fit_random_forest": {"n_estimators": 2},
    "fit_probit_tree": {"max_iter": 2},
    "fit_pruned_cart": {"cv": 2},
    "fit_samme": {"base_learner": pb.fit_cart, "n_estimators": 2},
    "fit_sbpmt": {"n_estimators": 2, "n_boosting_rounds": 1, "max_iter": 2},
    "fit_gradient_boosting": {"task": "classification", "n_estimators": 2},
    "fit_topdown_tree": {"max_nodes": 2},
    "fit_within_budget": {"mean_comparisons": 2},
}


def test_every_builder_takes_two_labels_or_more():
    assert OF_TWO.keys() | OF_ANY.keys() | FIRST.keys() >= BUILDERS.keys()
    several = {MODELS[name].__name__ for name in SEVERAL_CLASSES}
    assert several == OF_ANY.keys() & {fit.__name__ for fit in MODELS.values()}


def test_builders_of_more_classes_are_listed():
    page = ROOT / "docs" / "how_to" / "many_classes.rst"
    if not page.exists():
        pytest.skip("no docs/ beside tests/")
    text = page.read_text("utf-8")
    row = re.search(r"^multiclass as it is .*?(?=^one model)", text, re.M | re.S)[0]
    by_option = {"fit_matryoshka", "fit_bagging", "fit_one_vs_rest"}
    assert set(re.findall(r"~pboost\.(\w+)", row)) - by_option == OF_ANY.keys() - by_option


@pytest.mark.parametrize("name", OF_TWO)
def test_what_is_said_of_three_labels_can_be_pasted(name):
    fit = partial(BUILDERS[name], **OF_TWO[name])
    said = r"^y: expected two classes( with .*)?, got 3: pb\."
    with pytest.raises(ValueError, match=said) as caught:
        fit(X, THREE)
    said = str(caught.value).split(": ", 2)[2]
    line = said.partition(" fits one model")[0]
    assert line == f"pb.fit_one_vs_rest(pb.{name}, X, y)"
    # Options beyond the defaults are the user's.
    more = "".join(f", {option}={value!r}" for option, value in OF_TWO[name].items())
    model = eval(line[:-1] + more + ")", {"pb": pb, "X": X, "y": THREE})
    assert model.classes.tolist() == [0, 1, 2]


def test_many_numbers_may_be_a_regression():
    many = np.arange(60)
    hint = r'per class; for regression, use a fit function with task="regression"$'
    for y in (many, many.astype(float)):
        with pytest.raises(ValueError, match=hint):
            pb.fit_real_adaboost(X, y)
    with pytest.raises(ValueError, match=r"per class$"):
        pb.fit_real_adaboost(X, many.astype(str))


@pytest.mark.parametrize("name", OF_ANY)
def test_several_labels_as_they_are(name):
    assert BUILDERS[name](X, THREE, **OF_ANY[name]).classes.tolist() == [0, 1, 2]


def test_builders_of_builders_do_not_name_themselves():
    adaboost = partial(pb.fit_real_adaboost, n_estimators=2)
    for call in (
        partial(pb.fit_bagging, adaboost, X, THREE, n_estimators=1),
        partial(pb.fit_samme, X, THREE, base_learner=adaboost, n_estimators=1),
        partial(pb.cross_validate, adaboost, X, THREE, cv=2),
    ):
        with pytest.raises(ValueError, match=r"pb\.fit_one_vs_rest\(pb\.fit_real_adaboost, X"):
            call()


# Tables


def script():
    spec = importlib.util.spec_from_file_location("options", ROOT / "docs" / "dev" / "options.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_option_is_in_the_table():
    data = {"X", "y", "options"}
    actual = {name for call in ALL.values() for name in inspect.signature(call).parameters} - data
    assert actual == peers.PEERS.keys()
    stump = inspect.signature(pb.weak.stump).parameters.keys()
    assert set(peers.OF_STUMPS) == stump


def test_the_page_is_true():
    if not (ROOT / "docs" / "dev").is_dir():
        pytest.skip("no docs/ beside tests/")
    made = script()
    for path, text in made.tables().items():
        assert path.read_text(encoding="utf-8") == text, "python docs/dev/options.py"
    assert {**made.BUILDERS, **made.CHOICES}.values() == ALL.values() or (
        set(made.BUILDERS.values()) | set(made.CHOICES.values()) == set(ALL.values())
    )


def parameters(*functions):
    return {name for function in functions for name in inspect.signature(function).parameters}


def test_names_of_sklearn_are_those():
    ensemble = pytest.importorskip("sklearn.ensemble")
    from sklearn import model_selection, tree

    kinds = [
        getattr(ensemble, name)
        for name in ensemble.__all__
        if name.endswith(("Classifier", "Regressor"))
    ]
    kinds += [tree.DecisionTreeClassifier, tree.DecisionTreeRegressor]
    known = parameters(*kinds, *(kind.fit for kind in kinds))
    known |= parameters(model_selection.cross_validate, model_selection.KFold)
    of_old = {"base_estimator"}
    assert names(0) - known <= of_old


def test_names_of_lightgbm_are_those():
    lightgbm = pytest.importorskip("lightgbm")
    aliases = lightgbm.basic._ConfigAliases._get_all_param_aliases()
    known = {*aliases, *(name for several in aliases.values() for name in several)}
    kind = lightgbm.LGBMClassifier
    known |= parameters(lightgbm.train, lightgbm.cv, lightgbm.Dataset, kind, kind.fit)
    assert names(1) <= known


def test_names_of_catboost_are_those():
    catboost = pytest.importorskip("catboost")
    actual = {name for row in peers.PEERS.values() for name in row.catboost.split(", ")} - {""}
    assert actual <= parameters(catboost.CatBoostClassifier.__init__)


def test_names_of_xgboost_are_those():
    xgboost = pytest.importorskip("xgboost")
    kind = xgboost.XGBModel
    known = parameters(xgboost.train, xgboost.cv, xgboost.DMatrix, kind, kind.fit)
    of_params = {"eta"}
    assert names(2) - known <= of_params


def names(library):
    """Return all names of a library in the table."""
    actual = {name for row in peers.PEERS.values() for name in row[library].split(", ")}
    return actual - {""}
