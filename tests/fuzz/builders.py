"""Every builder with every kind of weak learner and observation, and random options for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import pboost as pb
from fuzz.draw import Generator, Problem
from fuzz.learners import (
    CRITERIA,
    LEARNERS,
    Options,
    affine,
    pick,
    some,
    stopping,
    stump,
    table,
    train_real,
    voting,
)

GROWTHS = ("largest_bound", "largest_error", "look_ahead", "breadth_first")


@dataclass
class Fit:
    """A builder, its options, and by which row of the table of invariants it is judged."""

    row: str
    build: Callable[..., Any]
    options: Options = field(default_factory=dict)
    first: tuple[Any, ...] = ()

    def __call__(self, X: Any, y: Any, weight: Any = None, **more: Any) -> Any:
        options = {**self.options, **more}
        if weight is not None:
            options["sample_weight"] = weight
        return self.build(*self.first, X, y, **options)

    def __str__(self) -> str:
        name = getattr(self.build, "__name__", "fit")
        inner = "".join(f"{getattr(f, 'func', f).__name__}, " for f in self.first)
        return f"{name}({inner}X, y, {', '.join(f'{k}={v!r}' for k, v in self.options.items())})"


# Builders of decision graphs


def adaboost(rng: Generator, problem: Problem, learner: str) -> Fit:
    answers = LEARNERS[learner](rng, problem)
    options = {"n_estimators": int(rng.integers(1, 12)), **answers, **voting(rng)}
    if answers["observation"].is_exact:
        options |= some(rng, {"votes": pick(rng, "domain", "symmetric")})
    return graph_fit("adaboost", pb.fit_adaboost, options, rng, learner)


def boosted_tree(rng: Generator, problem: Problem, learner: str) -> Fit:
    chosen = {
        "growth": pick(rng, *GROWTHS),
        "max_depth": int(rng.integers(1, 6)),
        "target_certificate": float(rng.choice([0.01, 0.5])),
    }
    options = {"max_nodes": int(rng.integers(1, 12)), **LEARNERS[learner](rng, problem)}
    options |= {**voting(rng), **some(rng, chosen)}
    return graph_fit("boosted_tree", pb.fit_boosted_tree, options, rng, learner)


def matryoshka(rng: Generator, problem: Problem, learner: str) -> Fit:
    options = {**LEARNERS[learner](rng, problem), **voting(rng)}
    if rng.random() < 0.5:
        options |= {"growth": "greedy", "max_nodes": int(rng.integers(1, 10))}
    else:
        options["shape"] = tuple(rng.integers(1, 4, int(rng.integers(1, 4))).tolist())
        options |= some(rng, {"join": "all"})
    options |= some(rng, {"collect": "sign"})
    return graph_fit("matryoshka", pb.fit_matryoshka, options, rng, learner)


def graph_fit(name: str, build: Any, options: Options, rng: Generator, learner: str) -> Fit:
    if "oracles" not in learner:
        options |= stopping(rng)
    if "validation" in options:
        options["rng"] = 1
    if options.get("collect") == "sign":
        name += " by sign"
    return Fit(f"{name}, {learner}", build, options)


def oblique(rng: Generator, problem: Problem) -> Fit:
    chosen = {"max_nodes": int(rng.integers(1, 6)), "growth": pick(rng, *GROWTHS)}
    options = {"n_stumps": int(rng.integers(1, 6)), **some(rng, chosen, 0.5)}
    options |= some(rng, {"max_depth": int(rng.integers(1, 4)), "observation": table(rng)})
    return Fit("oblique_tree", pb.fit_oblique_tree, options)


def topdown(rng: Generator, problem: Problem) -> Fit:
    def own(z: np.ndarray) -> np.ndarray:
        return (4 * z * (1 - z)) ** 0.75

    chosen = {
        "growth": pick(rng, *GROWTHS),
        "max_depth": int(rng.integers(1, 5)),
        "min_samples_leaf": int(rng.integers(1, 4)),
        "min_weight_fraction": float(rng.choice([0.0, 0.1])),
    }
    impurity = pick(rng, own, *CRITERIA)
    options = {"max_nodes": pick(rng, None, 3, 9), "impurity": impurity, **some(rng, chosen)}
    row = "topdown_tree, own impurity" if impurity is own else "topdown_tree"
    return Fit(row, pb.fit_topdown_tree, {**options, **voting(rng)})


def real(rng: Generator, problem: Problem) -> Fit:
    learner = pick(rng, "stumps", "stumps", "columns", "affine", "functions")
    options: Options = {"n_estimators": int(rng.integers(1, 10)), **voting(rng)}
    if learner == "columns":
        center = pick(rng, "mean", "midrange", "zero")
        options["weak_learner"] = pb.weak.feature(center, include_constant=bool(rng.integers(2)))
    elif learner == "functions":
        options["weak_learner"] = pb.weak.hypothesis(train_real)
    else:
        options["weak_learner"] = affine(rng) if learner == "affine" else stump(rng)
        options |= some(rng, {"answer_scale": pick(rng, "share", "log_odds", "sign")}, 0.6)
    return Fit(f"adaboost_real, {learner}", pb.fit_real_adaboost, options)


# Trees, forests and sums of trees


def tree_options(rng: Generator, problem: Problem) -> Options:
    kinds = ("gini", "entropy", "error", "kearns_mansour") if problem.n_classes == 2 else CRITERIA
    kinds = tuple(k for k in kinds if problem.n_classes == 2 or k != "kearns_mansour")
    chosen = {
        "criterion": pick(rng, *kinds) if problem.n_classes else "squared_error",
        "max_depth": int(rng.integers(1, 6)),
        "min_samples_leaf": int(rng.integers(1, 4)),
        "min_samples_split": int(rng.integers(2, 6)),
        "search": pick(rng, "exact", "binned"),
        "max_bins": int(rng.integers(2, 257)),
    }
    return {**task(problem), **some(rng, chosen)}


def task(problem: Problem) -> Options:
    return {} if problem.n_classes else {"task": "regression"}


def some_columns(rng: Generator) -> Options:
    return {"max_features": pick(rng, "sqrt", "log2", 1, 0.5), "rng": int(rng.integers(9))}


def cart(rng: Generator, problem: Problem) -> Fit:
    options, row = tree_options(rng, problem), f"cart, {kind_of(problem)}"
    options |= some(rng, {"growth": "best_first"})
    if options.get("growth") or rng.random() < 0.2:
        options |= some(rng, {"max_leaf_nodes": int(rng.integers(2, 9))})
    if rng.random() < 0.2:
        options |= some_columns(rng)
        row = "cart, drawn columns"
    return Fit(row, pb.fit_cart, options)


def kind_of(problem: Problem) -> str:
    return "classes" if problem.n_classes else "numbers"


def pruned_cart(rng: Generator, problem: Problem) -> Fit:
    options = {"cv": int(rng.integers(2, 5)), "rng": int(rng.integers(9))}
    options |= {**tree_options(rng, problem), **some(rng, {"rule": "1se"})}
    return Fit("pruned_cart", pb.fit_pruned_cart, options)


def forest(rng: Generator, problem: Problem) -> Fit:
    options = {"n_estimators": int(rng.integers(1, 6)), "rng": int(rng.integers(9))}
    options |= {**tree_options(rng, problem), **some(rng, {"bootstrap": False, "max_samples": 2})}
    options |= some(rng, {"max_features": pick(rng, None, 1, "log2")})
    return Fit("forest", pb.fit_random_forest, options)


def bagging(rng: Generator, problem: Problem) -> Fit:
    options = {"n_estimators": int(rng.integers(1, 5)), "rng": int(rng.integers(9))}
    if problem.n_classes == 2 and rng.random() < 0.6:
        inner = pick(rng, boosted_tree, adaboost)(rng, problem, "stumps")
        row = "bagging of graphs"
    else:
        inner, row = Fit("", pb.fit_cart, tree_options(rng, problem)), "bagging of trees"
    drop = ("rng", "task", "validation", "n_iter_no_change")
    held = {k: v for k, v in inner.options.items() if k == "n_estimators"}
    build = partial(inner.build, **held) if held else inner.build
    if problem.n_classes:
        options |= some(rng, {"voting": "hard"})
    options = {k: v for k, v in inner.options.items() if k not in drop} | options
    return Fit(row, pb.fit_bagging, {**options, **task(problem)}, (build,))


def stagewise(rng: Generator, problem: Problem) -> Fit:
    classes = ("exponential", "log_loss", "hinge", "probit", "squared_error")
    loss = pick(rng, *classes) if problem.n_classes else "squared_error"
    options: Options = {"loss": loss, "n_estimators": int(rng.integers(1, 8))}
    if problem.n_classes and loss == "squared_error":
        options["task"] = "classification"
    chosen = {
        "learning_rate": float(rng.choice([0.1, 1.0])),
        "max_depth": int(rng.integers(1, 4)),
        "min_samples_leaf": int(rng.integers(1, 4)),
        "init": "zero",
        "max_delta_step": pick(rng, None, 0.5, 4.0),
        "search": pick(rng, "exact", "binned"),
        "max_bins": int(rng.integers(2, 257)),
    }
    options |= some(rng, chosen)
    row = f"stagewise, {kind_of(problem)}"
    if rng.random() < 0.2:
        options |= {"rng": 0, **pick(rng, {"subsample": 0.5}, {"validation": 0.3})}
    return Fit(row, pb.fit_gradient_boosting, options)


# Several classes, and the probit family


def inner_fit(rng: Generator, problem: Problem) -> Fit:
    """A builder of two-class models for the rest and each class."""
    which = int(rng.integers(4))
    if which == 0:
        return adaboost(rng, problem, "stumps")
    if which == 1:
        return boosted_tree(rng, problem, "stumps")
    if which == 2:
        return Fit("", pb.fit_gradient_boosting, {"loss": "log_loss", "n_estimators": 3})
    return Fit("", pb.fit_probit_tree, {"min_samples_leaf": 3, "max_iter": 5})


def one_vs_rest(rng: Generator, problem: Problem) -> Fit:
    inner = inner_fit(rng, problem)
    probit = inner.build is pb.fit_probit_tree
    row = "one_vs_rest of probit trees" if probit else "one_vs_rest"
    return Fit(row, pb.fit_one_vs_rest, inner.options, (inner.build,))


def samme(rng: Generator, problem: Problem) -> Fit:
    if rng.random() < 0.5:
        base = partial(pb.fit_cart, max_depth=int(rng.integers(1, 3)))
    else:
        base = partial(pb.fit_one_vs_rest, pb.fit_boosted_tree, max_nodes=2)
    options = {"base_learner": base, "n_estimators": int(rng.integers(1, 5))}
    return Fit("samme", pb.fit_samme, {**options, **some(rng, {"learning_rate": 0.5})})


def probitboost(rng: Generator, problem: Problem) -> Fit:
    chosen = {"tol": 1e-3, "safeguard": False}
    options = {"n_estimators": int(rng.integers(1, 12)), **some(rng, chosen)}
    return Fit("probitboost", pb.fit_probitboost, options)


def probit_tree(rng: Generator, problem: Problem) -> Fit:
    chosen = {
        "max_depth": int(rng.integers(0, 4)),
        "min_samples_split": int(rng.integers(2, 5)),
        "tol": 1e-3,
        "safeguard": False,
        "complexity": 0.01,
        "criterion": pick(rng, "gini", "entropy"),
        "search": pick(rng, "exact", "binned"),
    }
    options = {"n_estimators": int(rng.integers(1, 9)), "min_samples_leaf": int(rng.integers(1, 9))}
    return Fit("probit_tree", pb.fit_probit_tree, {**options, **some(rng, chosen)})


def sbpmt(rng: Generator, problem: Problem) -> Fit:
    options = {
        "n_estimators": int(rng.integers(1, 4)),
        "n_boosting_rounds": int(rng.integers(1, 4)),
        "max_iter": int(rng.integers(1, 6)),
        "min_samples_leaf": int(rng.integers(1, 6)),
        "rng": int(rng.integers(9)),
    }
    chosen = {
        "voting": "hard",
        "one_vs_rest": "leaf",
        "stratify": True,
        "learning_rate": 1.0,
        "max_samples": float(rng.choice([0.5, 1.0])),
        "max_depth": int(rng.integers(0, 3)),
    }
    return Fit("sbpmt", pb.fit_sbpmt, {**options, **some(rng, chosen)})


#: What draws a fit, the kinds of problems it takes (0: numbers), and whether they must be tame.
TWO, CLASSES, ANY = (2,), (2, 2, 3, 4), (0, 2, 2, 3)
BUILDERS: dict[str, tuple[Callable[[Generator, Problem], Fit], tuple[int, ...]]] = {
    **{
        f"{name}, {learner}": (partial(build, learner=learner), TWO)
        for name, build in (
            ("adaboost", adaboost),
            ("boosted_tree", boosted_tree),
            ("matryoshka", matryoshka),
        )
        for learner in LEARNERS
    },
    "oblique_tree": (oblique, TWO),
    "topdown_tree": (topdown, TWO),
    "adaboost_real": (real, TWO),
    "cart": (cart, ANY),
    "pruned_cart": (pruned_cart, ANY),
    "forest": (forest, ANY),
    "bagging": (bagging, ANY),
    "stagewise": (stagewise, (0, 2, 2)),
    "one_vs_rest": (one_vs_rest, CLASSES),
    "samme": (samme, CLASSES),
    "probitboost": (probitboost, TWO),
    "probit_tree": (probit_tree, CLASSES),
    "sbpmt": (sbpmt, CLASSES),
}
