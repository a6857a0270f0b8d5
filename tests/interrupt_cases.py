"""What `interrupt` interrupts: fits, sorting and predictions that take long; see there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np

import pboost as pb


def data(n: int, d: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] * X[:, 1] + rng.standard_normal(n) > 0, 1, -1)


def fit(builder: str, n: int, d: int, columns: Callable[[Any], Any] | None = None, **options: Any):
    """A fit, and one to a few rows whose model must not change."""

    def make():
        X, y = data(n, d)
        few, rows = data(500, d)
        begin = getattr(pb, builder)
        if columns is not None:
            X, few = columns(X), columns(few)
        small = {**options, **{k: min(options[k], 3) for k in SIZES if k in options}}
        return lambda: begin(X, y, **options), lambda: bits(begin(few, rows, **small))

    return make


def answer(model: Callable[[], Any], n: int, d: int, question: Callable[[Any, Any, Any], Any]):
    """A question to a model about many rows, and about a few."""

    def make():
        X, y = data(n, d)
        asked = model()
        return lambda: question(asked, X, y), lambda: bits(question(asked, X[:300], y[:300]))

    return make


def call(function: Callable[..., Any], n: int, d: int, **options: Any):
    def make():
        X, few = data(n, d)[0], data(300, d)[0]
        return lambda: function(X, **options), lambda: bits(function(few, **options))

    return make


#: Options that say how long a fit takes.
SIZES = ("n_estimators", "max_nodes", "max_iter")


def bits(found: Any) -> bytes:
    """The bits of all arrays in an array, a model or columns."""
    if isinstance(found, np.ndarray):
        return found.tobytes()
    if isinstance(found, float):
        return np.float64(found).tobytes()
    if isinstance(found, tuple | list):
        return b"".join(map(bits, found))
    fields = getattr(found, "__dataclass_fields__", {})
    return b"".join(bits(getattr(found, name)) for name in fields if not name.startswith("memo"))


@cache
def forest() -> Any:
    X, y = data(20_000, 20)
    return pb.fit_random_forest(X, y, n_estimators=300, rng=0)


@cache
def small_forest() -> Any:
    X, y = data(5_000, 10)
    return pb.fit_random_forest(X, y, n_estimators=300, rng=0)


@cache
def shallow_forest() -> Any:
    X, y = data(20_000, 20)
    return pb.fit_random_forest(X, y, n_estimators=1000, max_depth=6, rng=0)


@cache
def chain() -> Any:
    X, y = data(5_000, 20)
    return pb.fit_adaboost(X, y, n_estimators=5000, smoothing=1e-3)


@cache
def tree() -> Any:
    X, y = data(100_000, 20)
    return pb.fit_boosted_tree(X, y, max_nodes=20_000)


@cache
def flip() -> Any:
    X, y = data(5_000, 20)
    return pb.fit_boosted_tree(X, y, max_nodes=200, observation=pb.observation.flip(0.1))


@cache
def noisy() -> Any:
    X, y = data(5_000, 20)
    return pb.fit_adaboost(X, y, n_estimators=300, observation=pb.observation.gaussian(0.1))


@cache
def affine() -> Any:
    X, y = data(5_000, 20)
    return pb.fit_adaboost(X, y, n_estimators=1000, weak_learner=pb.weak.affine(n_directions=500))


@cache
def separated() -> Any:
    X, y = data(5_000, 20)
    return pb.fit_boosted_tree(X, y, max_nodes=15, weak_learner=pb.weak.separator(n_stumps=20))


@cache
def sbpmt() -> Any:
    X, y = data(5_000, 20)
    return pb.fit_sbpmt(X, y, n_estimators=30, n_boosting_rounds=5, rng=0)


@cache
def stagewise() -> Any:
    X, y = data(20_000, 20)
    return pb.fit_gradient_boosting(X, y, loss="log_loss", n_estimators=500, max_depth=6)


@cache
def bagging() -> Any:
    X, y = data(20_000, 20)
    return pb.fit_bagging(pb.fit_boosted_tree, X, y, n_estimators=50, max_nodes=100, rng=0)


AFFINE = pb.weak.affine(n_directions=35)
MANY = 10**6
CASES: dict[str, Callable[[], tuple[Callable[[], Any], Callable[[], bytes]]]] = {
    "adaboost affine 2e6x10": fit(
        "fit_adaboost", 2_000_000, 10, n_estimators=MANY, weak_learner=AFFINE
    ),
    "adaboost 1e6x50": fit("fit_adaboost", 1_000_000, 50, n_estimators=MANY),
    "adaboost 2e5x200": fit("fit_adaboost", 200_000, 200, n_estimators=MANY),
    "adaboost 2e5x200 exact": fit(
        "fit_adaboost", 200_000, 200, n_estimators=MANY, weak_learner=pb.weak.stump(search="exact")
    ),
    "adaboost sorted 1e6x30": fit(
        "fit_adaboost", 1_000_000, 30, columns=pb.data.sort_columns, n_estimators=MANY
    ),
    "adaboost binned 2e6x30": fit(
        "fit_adaboost", 2_000_000, 30, columns=pb.data.bin_columns, n_estimators=MANY
    ),
    "adaboost gaussian 3e5x50": fit(
        "fit_adaboost", 300_000, 50, n_estimators=MANY, observation=pb.observation.gaussian(0.1)
    ),
    "adaboost sampled 1e6x10": fit(
        "fit_adaboost",
        1_000_000,
        10,
        n_estimators=MANY,
        rng=0,
        observation=pb.observation.sampled(1000),
    ),
    "adaboost linear 3e5x30": fit(
        "fit_adaboost", 300_000, 30, n_estimators=MANY, weak_learner=pb.weak.linear()
    ),
    "adaboost separator 5e5x30": fit(
        "fit_adaboost", 500_000, 30, n_estimators=MANY, weak_learner=pb.weak.separator(n_stumps=50)
    ),
    "adaboost_real 1e6x30": fit("fit_real_adaboost", 1_000_000, 30, n_estimators=MANY),
    "tree exact 5e5x50": fit(
        "fit_boosted_tree", 500_000, 50, max_nodes=MANY, weak_learner=pb.weak.stump(search="exact")
    ),
    "tree binned 2e6x30": fit(
        "fit_boosted_tree",
        2_000_000,
        30,
        max_nodes=MANY,
        weak_learner=pb.weak.stump(search="binned"),
    ),
    "tree look-ahead 5e5x50": fit(
        "fit_boosted_tree",
        500_000,
        50,
        max_nodes=MANY,
        growth="look_ahead",
        columns=pb.data.bin_columns,
    ),
    "tree one thread 5e5x50": fit("fit_boosted_tree", 500_000, 50, max_nodes=MANY, n_threads=1),
    "soft tree 1e6x30": fit(
        "fit_boosted_tree", 1_000_000, 30, max_nodes=1000, observation=pb.observation.flip(0.1)
    ),
    "matryoshka 1e6x30": fit(
        "fit_matryoshka", 1_000_000, 30, shape=(30, 30), observation=pb.observation.flip(0.1)
    ),
    "topdown 3e5x30": fit(
        "fit_topdown_tree", 300_000, 30, max_nodes=1000, impurity=lambda q: 2 * np.sqrt(q * (1 - q))
    ),
    "cart 1e6x50": fit("fit_cart", 1_000_000, 50),
    "cart binned 2e6x30": fit("fit_cart", 2_000_000, 30, search="binned"),
    "pruned cart 2e5x30": fit("fit_pruned_cart", 200_000, 30, rng=0),
    "forest 2e5x30": fit("fit_random_forest", 200_000, 30, n_estimators=MANY, rng=0, n_threads=2),
    "forest binned 1e6x30": fit(
        "fit_random_forest", 1_000_000, 30, n_estimators=MANY, rng=0, n_threads=2, search="binned"
    ),
    "bagging 2e5x30": lambda: _bagged(),
    "stagewise 5e5x30": fit(
        "fit_gradient_boosting", 500_000, 30, loss="log_loss", n_estimators=MANY
    ),
    "stagewise threads 1e6x20": fit(
        "fit_gradient_boosting",
        1_000_000,
        20,
        loss="log_loss",
        max_depth=6,
        n_estimators=MANY,
        n_threads=2,
    ),
    "sbpmt 1e5x30": fit("fit_sbpmt", 100_000, 30, n_estimators=MANY, n_boosting_rounds=5, rng=0),
    "probit tree 5e5x30": fit("fit_probit_tree", 500_000, 30, max_iter=200, max_depth=3),
    "probitboost 1e6x50": fit("fit_probitboost", 1_000_000, 50, max_iter=MANY),
    "cross_validate 5e5x30": lambda: _validated(),
    "sort_columns 1e6x100": call(pb.data.sort_columns, 1_000_000, 100),
    "bin_columns 1e6x100": call(pb.data.bin_columns, 1_000_000, 100),
    "predict_proba forest 2e5": answer(forest, 200_000, 20, lambda m, X, y: pb.predict_proba(m, X)),
    "predict_proba shallow 1e6": answer(
        shallow_forest, 1_000_000, 20, lambda m, X, y: pb.predict_proba(m, X)
    ),
    "prediction_cost forest 2e5": answer(
        forest, 200_000, 20, lambda m, X, y: pb.prediction_cost(m, X)
    ),
    "apply forest 2e5": answer(forest, 200_000, 20, lambda m, X, y: pb.inspection.apply(m, X)),
    "decision chain 1e6": answer(chain, 1_000_000, 20, lambda m, X, y: pb.decision_function(m, X)),
    "decision tree 2e6": answer(tree, 2_000_000, 20, lambda m, X, y: pb.decision_function(m, X)),
    "decision affine 5e5": answer(affine, 500_000, 20, lambda m, X, y: pb.decision_function(m, X)),
    "decision separators 5e5": answer(
        separated, 500_000, 20, lambda m, X, y: pb.decision_function(m, X)
    ),
    "prediction_cost chain 1e6": answer(
        chain, 1_000_000, 20, lambda m, X, y: pb.prediction_cost(m, X)
    ),
    "columns read chain 1e6": answer(
        chain, 1_000_000, 20, lambda m, X, y: pb.prediction_cost(m, X, unit="features")
    ),
    "certificate flip 2e5": answer(flip, 200_000, 20, lambda m, X, y: pb.certificate(m, X, y)),
    "certificate chain 1e6": answer(chain, 1_000_000, 20, lambda m, X, y: pb.certificate(m, X, y)),
    "expected noisy 2e5": answer(
        noisy, 200_000, 20, lambda m, X, y: pb.decision_function(m, X, route="expected")
    ),
    "reach noisy 2e5": answer(noisy, 200_000, 20, lambda m, X, y: pb.inspection.reach(m, X)),
    "sample flip 1e5": answer(
        flip,
        100_000,
        20,
        lambda m, X, y: pb.decision_function(m, X, route="sample", rng=0, draws=1000),
    ),
    "sample of one row": answer(
        flip,
        1,
        20,
        lambda m, X, y: pb.decision_function(m, X, route="sample", rng=0, draws=10_000_000),
    ),
    "sbpmt predictions 3e5": answer(sbpmt, 300_000, 20, lambda m, X, y: pb.predict_proba(m, X)),
    "stagewise predictions 1e6": answer(
        stagewise, 1_000_000, 20, lambda m, X, y: pb.predict_proba(m, X)
    ),
    "bagging predictions 1e6": answer(bagging, 1_000_000, 20, lambda m, X, y: pb.predict(m, X)),
    "permutation_importance": answer(
        forest,
        50_000,
        20,
        lambda m, X, y: pb.inspection.permutation_importance(m, X, y, rng=0, n_repeats=1),
    ),
    "margins chain 1e6": answer(
        chain, 1_000_000, 20, lambda m, X, y: pb.inspection.margins(m, X, y)
    ),
    "staged chain 1e6": answer(
        chain,
        1_000_000,
        20,
        lambda m, X, y: [s[:1] for s in islice(pb.staged_decision_function(m, X), 99)],
    ),
}


#: Shorter ones that the tests run, each of which takes seconds if it cannot be interrupted.
SHORT = {
    "short affine": fit(
        "fit_adaboost",
        300_000,
        10,
        n_estimators=MANY,
        weak_learner=pb.weak.affine(n_directions=400),
        n_threads=2,
    ),
    "short stagewise": fit(
        "fit_gradient_boosting",
        200_000,
        20,
        loss="log_loss",
        max_depth=6,
        n_estimators=MANY,
        n_threads=2,
    ),
    "short sort": call(pb.data.sort_columns, 300_000, 150),
    "short forest": answer(small_forest, 1_000_000, 10, lambda m, X, y: pb.predict_proba(m, X)),
    "short certificate": answer(flip, 300_000, 20, lambda m, X, y: pb.certificate(m, X, y)),
    "short walks": answer(
        flip,
        50_000,
        20,
        lambda m, X, y: pb.decision_function(m, X, route="sample", rng=0, draws=1000),
    ),
}


def _bagged():
    X, y = data(200_000, 30)
    few, rows = data(500, 30)

    def fit_members(X, y, members):
        return pb.fit_bagging(
            partial(pb.fit_adaboost, n_estimators=1000),
            X,
            y,
            n_estimators=members,
            rng=0,
            n_threads=2,
        )

    return lambda: fit_members(X, y, MANY), lambda: bits(fit_members(few, rows, 3).oob)


def _validated():
    X, y = data(500_000, 30)
    few, rows = data(500, 30)

    def validate(X, y):
        return pb.cross_validate(
            lambda X, y: pb.fit_adaboost(X, y, n_estimators=99), X, y, rng=0
        ).error

    return lambda: validate(X, y), lambda: bits(validate(few, rows))
