"""Slips of users: what is wrong is named, and no error of the inside comes out.

Each option of each public builder is given what it is not: messages used to come from NumPy, from
inside (`'NoneType' object is not callable`, "truth value of an array"), or named a function that
is not public. Now they are a TypeError or ValueError that begins with the name of the argument.
"""

from __future__ import annotations

import inspect
import os
import re
from functools import partial

import numpy as np
import pytest

import pboost as pb
from pboost.threads import available_threads

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)

#: What each builder needs, and what makes it quick.
BUILDERS = {
    "fit_adaboost": {"n_estimators": 2},
    "fit_real_adaboost": {"n_estimators": 2},
    "fit_boosted_tree": {"max_nodes": 2},
    "fit_matryoshka": {"shape": (2, 2)},
    "fit_oblique_tree": {"n_stumps": 2},
    "fit_topdown_tree": {"max_nodes": 2},
    "fit_cart": {},
    "fit_random_forest": {"n_estimators": 2},
    "fit_pruned_cart": {"cv": 2},
    "fit_bagging": {"fit": pb.fit_cart, "n_estimators": 2},
    "fit_one_vs_rest": {"fit": pb.fit_cart},
    "fit_samme": {"base_learner": pb.fit_cart, "n_estimators": 2},
    "fit_gradient_boosting": {"loss": "log_loss", "n_estimators": 2, "validation": 0.3},
    "fit_probitboost": {"max_iter": 2},
    "fit_probit_tree": {"max_iter": 2, "max_depth": 1},
    "fit_sbpmt": {"n_estimators": 2, "n_boosting_rounds": 1, "max_iter": 2, "max_depth": 1},
    "cross_validate": {"fit": pb.fit_cart, "cv": 2},
}
REFUSED = (TypeError, ValueError, NotImplementedError)
#: Values that an option or other takes: a few are right in some place.
SLIPS = {
    "None": None,
    "text": "3",
    "fraction": 2.5,
    "nan": np.nan,
    "inf": np.inf,
    "negative": -1,
    "large": 10**30,
    "huge": 10**400,
    "flag": True,
    "list": [1, 2],
    "tuple": (1, 2, 3, 4),
    "array": np.array([1, 2]),
    "matrix": np.ones((300, 300)),
    "ragged": [[1], [1, 2]],
    "dict": {},
    "object": object(),
    "bytes": b"x",
    "complex": 1j,
    "class": dict,
    "function": len,
}
#: What options take besides: numbers that have no other bound, columns by their positions.
ALSO_RIGHT = {
    "max_delta_step": ("inf", "fraction", "large"),
    "tol": ("fraction", "large"),
    "complexity": ("fraction", "large"),
    "categorical_smoothing": ("fraction", "large"),
    "l2_regularization": ("fraction", "large"),
    "leaf_shrinkage": ("fraction", "large"),
    "random_strength": ("fraction", "large"),
    "categorical_features": ("list", "array"),
    "feature_costs": ("dict",),
}
#: What `fit_gradient_boosting` takes besides.
OF_STAGEWISE = {
    "min_child_weight": ("fraction", "large"),
    "min_split_gain": ("fraction", "large"),
    "monotonic_cst": ("dict",),
    "interaction_cst": ("ragged", "dict"),
}
#: The only `tol` that cannot be None.
TOL = ("fit_gradient_boosting", "tol")
NONE_IS_RIGHT = ("max_samples", "subsample", "max_features", "max_depth", "max_delta_step", "tol")


def test_every_builder_is_here():
    public = {name for name in pb.__all__ if name.startswith("fit_")}
    public -= {"fit_within_budget"}  # whose slips tests/budget/test_within.py makes
    assert public | {"cross_validate"} == set(BUILDERS)


def call(builder, **given):
    own = {"X": X, "y": Y, **BUILDERS[builder]}
    if "greater_is_better" in given:  # is about functions
        own["metric"] = lambda y, prediction, sample_weight: 0.0
    return getattr(pb, builder)(**(own | given))


def refusal(builder, **given):
    """Return the message with which a call is refused; None where it is not."""
    try:
        call(builder, **given)
    except REFUSED as error:
        return str(error)
    return None


def is_right(builder, option, slip):
    """Whether an option takes that value."""
    default = inspect.signature(getattr(pb, builder)).parameters[option].default
    if slip in ("None", "flag") and default is {"None": None, "flag": default}[slip]:
        return slip == "None" or isinstance(default, bool)
    return (
        slip in ALSO_RIGHT.get(option, ())
        or (builder == "fit_gradient_boosting" and slip in OF_STAGEWISE.get(option, ()))
        or (option == "rng" and slip in ("None", "large", "huge"))
        or (option in NONE_IS_RIGHT and slip == "None" and (builder, option) != TOL)
        or (option == "max_nodes" and builder != "fit_matryoshka" and slip == "None")
        or (option == "shape" and slip in ("list", "array", "tuple", "None"))
        or (option == "n_threads" and slip == "negative")  # -1: all
        or (option == "callback" and slip in ("class", "function"))
    )


OPTIONS = [
    (builder, option)
    for builder in BUILDERS
    for option in inspect.signature(getattr(pb, builder)).parameters
    if option not in ("X", "y", "options")
]


@pytest.mark.parametrize(("builder", "option"), OPTIONS)
def test_wrong_options(builder, option):
    for slip, value in SLIPS.items():
        if is_right(builder, option, slip):
            if option != "callback":  # its result is nobody's slip
                call(builder, **{option: value})
            continue
        said = refusal(builder, **{option: value})
        assert said is not None, slip
        assert re.match(rf"(\w+, )*{option}\b.*: ", said), (slip, said)
        assert len(said) < 500, (slip, said)
        assert "\n" not in said, (slip, said)


@pytest.mark.parametrize("builder", BUILDERS)
def test_wrong_data(builder):
    one_of = {
        "y": [
            Y[:, None],
            Y[:-1],
            None,
            "text",
            3,
            {},
            [[1], [1, 2]] * 15,
            np.zeros(30),
            object(),
            Y + 0j,
            [[0, 1]] * 30,
        ],
        "X": [
            X[:, 0],
            X[:, :, None],
            None,
            "text",
            3,
            [],
            {"a": 1},
            [[1, 2], [3]],
            X.astype(str),
            X + 0j,
            np.empty((30, 0)),
            np.full_like(X, np.inf),
            object(),
            len,
        ],
        "sample_weight": [
            np.ones(3),
            -np.ones(30),
            np.full(30, np.nan),
            np.zeros(30),
            np.ones((30, 1)),
            "a",
            ["1"] * 30,
            [[1], [1, 2]] * 15,
            {},
            {1.0},
        ],
    }
    for argument, wrong in one_of.items():
        for value in wrong:
            said = refusal(builder, **{argument: value})
            assert said is not None, (argument, value)
            assert said.startswith(f"{argument}: "), said
            assert "\n" not in said, said
    swapped = refusal(builder, X=Y, y=X)
    assert swapped.startswith(("X: expected two dimensions", "y: expected one dimension")), swapped
    call(builder, X=X.tolist(), y=Y.tolist())
    for holes in (np.full_like(X, np.nan), np.where(X > 1, np.nan, X)):
        call(builder, X=holes)


# Options that are passed on


def named(builder, **options):
    message = refusal(builder, **options)
    assert message is not None
    return message


@pytest.mark.parametrize(
    ("builder", "given", "said"),
    [
        ("fit_pruned_cart", {}, "fit_pruned_cart has no such option; did you mean max_depth"),
        ("fit_bagging", {}, "fit_cart, called by fit_bagging, has no such option; did"),
        ("fit_one_vs_rest", {}, "fit_cart, called by fit_one_vs_rest, has no such"),
        ("fit_bagging", {"fit": pb.fit_pruned_cart}, "fit_pruned_cart has no such option; did you"),
        (
            "fit_one_vs_rest",
            {"fit": partial(pb.fit_boosted_tree, max_nodes=3)},
            "fit_boosted_tree, called by fit_one_vs_rest, has no such option; did you",
        ),
    ],
)
def test_an_unknown_option(builder, given, said):
    message = named(builder, max_dept=3, **given)
    assert message.startswith(f"max_dept: {said}")
    assert message.endswith("did you mean max_depth?")


@pytest.mark.parametrize("builder", ["fit_samme", "cross_validate", "fit_bagging"])
def test_an_unknown_option_in_a_partial(builder):
    place = "base_learner" if builder == "fit_samme" else "fit"
    for fit in (
        partial(pb.fit_cart, max_dept=3),
        partial(partial(pb.fit_cart, max_dept=3), min_samples_leaf=2),
        partial(pb.fit_one_vs_rest, pb.fit_cart, max_dept=3),
    ):
        message = named(builder, **{place: fit})
        assert re.match(r"max_dept: fit_cart, called by \w+,", message)
        assert message.endswith("did you mean max_depth?")


def test_an_option_of_the_caller_or_of_nobody():
    assert named("fit_bagging", n_estimatrs=3).endswith("; did you mean n_estimators?")
    assert named("fit_pruned_cart", max_dept=3).endswith("; did you mean max_depth?")
    said = named("fit_bagging", colour="red")
    assert (
        "has no such option; it has callback, categorical_features, categorical_smoothing" in said
    )


def test_functions_that_take_no_weights():
    for builder, place in (("fit_bagging", "fit"), ("fit_samme", "base_learner")):
        message = named(builder, **{place: lambda X, y: pb.fit_cart(X, y)})
        assert message.startswith(
            f"{place}: expected a function with an argument sample_weight, got the"
        )
    fit = lambda X, y: pb.fit_cart(X, y)  # noqa: E731
    pb.cross_validate(fit, X, Y, cv=2, rng=0)
    with pytest.raises(
        TypeError, match=r"^fit: expected a function with an argument sample_weight, got"
    ):
        pb.cross_validate(fit, X, Y, cv=2, rng=0, sample_weight=np.ones(30))
    with pytest.raises(TypeError, match=r"^max_dept: fit_boosted_tree, called by margin_curve"):
        pb.inspection.margin_curve(
            partial(pb.fit_boosted_tree, max_nodes=1, max_dept=1), X, Y, [0.0], cv=2
        )


def test_functions_of_any_options_answer_for_themselves():
    def fit(X, y, sample_weight, **options):
        assert options == {"max_dept": 3}
        return pb.fit_cart(X, y, sample_weight=sample_weight)

    assert len(pb.fit_bagging(fit, X, Y, n_estimators=2, rng=0, max_dept=3)) == 2


# Classes and functions in place of what they return


class Estimator:
    def fit(self, X, y, sample_weight):
        self.mean = np.average(y, weights=sample_weight)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


def test_what_was_not_called():
    pb.weak.from_estimator(Estimator())
    for ask, said in (
        (
            lambda: pb.weak.from_estimator(Estimator),
            "estimator: .* class Estimator; call it: E",
        ),
        (
            lambda: call("fit_samme", base_learner=Estimator),
            r"base_learner: .* the class Estimator; call it: E",
        ),
        (
            lambda: call("fit_adaboost", weak_learner=pb.weak.stump),
            r"weak_learner: .* function stump; call it: st",
        ),
        (
            lambda: call("fit_adaboost", weak_learner=pb.weak.Stump),
            r"weak_learner: .* the class Stump; call it: S",
        ),
        (
            lambda: call("fit_adaboost", observation=pb.observation.half),
            r"observation: .* the function half; call it: half\(",
        ),
        (
            lambda: pb.observation.sampled(base=pb.observation.half),
            r"base: .* function half; call it",
        ),
    ):
        with pytest.raises(TypeError, match=f"^{said}"):
            ask()


# The shape of a matryoshka


def test_shapes():
    for wrong in (4, 4.0, "44", {4}, np.array(4)):
        with pytest.raises(TypeError, match=r"^shape: expected a tuple .* such as \(4, 4\), got"):
            pb.fit_matryoshka(X, Y, shape=wrong)
    for levels in (0, 101, 900, 5000):
        with pytest.raises(ValueError, match=f"^shape: expected .* 1 to 100 levels, got {levels}$"):
            pb.fit_matryoshka(X, Y, shape=(1,) * levels)
    for collect in ("additive", "sign"):
        model = pb.fit_matryoshka(X, Y, shape=(1,) * 99 + (3,), collect=collect)
        assert model.n_nodes == 3


# Random numbers, threads


def test_seeds():
    for fit in (pb.fit_cart, pb.fit_random_forest):
        for seed in (-1, np.int64(-5), -(10**30)):
            with pytest.raises(ValueError, match=r"^rng: expected an integer >= 0, got -"):
                fit(X, Y, rng=seed)
    with pytest.raises(ValueError, match=r"^rng: "):
        pb.datasets.twonorm(5, rng=-1)


@pytest.mark.parametrize("name", ["PBOOST_NUM_THREADS", "OMP_NUM_THREADS"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", 1),
        (" 1", 1),
        ("1 ", 1),
        ("+1", 1),
        ("01", 1),
        ("1,8", 1),
        ("1\n", 1),
        ("3", 3),
        *[
            (value, 8)
            for value in (
                "²",
                "٣",
                "0",
                "-1",
                "abc",
                "",
                " ",
                "1.0",
                "1e0",
                "0x1",
                "+",
                "+-1",
                "1 2",
                ",1",
                "8",
                "9" * 5000,
                "9" * 18,
            )
        ],
    ],
)
def test_threads_of_the_environment(monkeypatch, name, value, expected):
    monkeypatch.delenv("PBOOST_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("pboost.threads._container_quota", lambda: None)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    assert available_threads() == 8
    monkeypatch.setenv(name, value)
    assert available_threads() == expected


def test_one_column_is_no_sequence_of_columns():
    X, y = np.zeros((4, 2)), [0.0, 1.0, 2.0, 3.0]
    for item in (np.array(1), 1, "1"):
        with pytest.raises(
            TypeError, match="categorical_features: expected a sequence of names or pos"
        ):
            pb.fit_cart(X, y, task="regression", categorical_features=item)
