"""Small models of all kinds, as the files that are mutated."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import pboost as pb


@dataclass(frozen=True)
class Parts:
    """A model file taken apart: its header, and its arrays by name."""

    kind: str
    header: dict[str, Any]
    arrays: dict[str, np.ndarray]
    content: bytes


def take_apart(kind: str, content: bytes) -> Parts:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        arrays = {
            name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name)))
            for name in archive.namelist()
        }
    header = json.loads(arrays.pop("header").tobytes())
    return Parts(kind, header, arrays, content)


def problem(n: int = 40, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, d)).round(2)
    return X, X[:, 0] * X[:, 1] + X[:, 2] / 2 + rng.normal(size=n) / 2


def graphs() -> dict[str, Callable[[], Any]]:
    """Return what makes decision graphs of all sorts, by name."""
    X, score = problem()
    y = score > 0
    words = np.array(["no", "yes"])[y.astype(int)]
    weak, seen = pb.weak, pb.observation
    tree = pb.fit_boosted_tree
    return {
        "chain": lambda: pb.fit_adaboost(X, words, n_estimators=6),
        "one node": lambda: tree(X, y, max_nodes=1),
        "no node": lambda: tree(np.zeros((4, 2)), [0, 1, 1, 1], max_nodes=3),
        "tree of stumps": lambda: tree(X, y, max_nodes=9),
        "validated": lambda: tree(X, y, max_nodes=9, validation=0.3, rng=0),
        "adatree2": lambda: tree(X, y, max_nodes=5, observation=seen.adatree2()),
        "flip": lambda: pb.fit_adaboost(X, words, n_estimators=4, observation=seen.flip(0.1)),
        "gaussian": lambda: tree(X, y, max_nodes=4, observation=seen.gaussian([0.1, 0.2, 0.3])),
        "cells": lambda: tree(X, y, max_nodes=4, observation=seen.gaussian(np.full(X.shape, 0.1))),
        "sampled": lambda: tree(X, y, max_nodes=3, observation=seen.sampled(3), rng=0),
        "grid": lambda: tree(X[:, :2], y, max_nodes=4, weak_learner=weak.affine(n_directions=6)),
        "directions": lambda: tree(X, y, max_nodes=4, weak_learner=weak.affine(n_directions=6)),
        "linear nodes": lambda: tree(X, y, max_nodes=3, weak_learner=weak.linear()),
        "separators": lambda: pb.fit_oblique_tree(X, words, max_nodes=3, n_stumps=4),
        "greedy": lambda: pb.fit_matryoshka(X, y, growth="greedy", max_nodes=6),
        "by sign": lambda: pb.fit_matryoshka(X, y, shape=(2, 2), collect="sign"),
    }


def others() -> dict[str, Callable[[], Any]]:
    """Return what makes models that evaluate themselves."""
    X, score = problem()
    y, three = score > 0, np.digitize(score, [-0.5, 0.5])
    words = np.array(["no", "yes"])[y.astype(int)]
    boosted = {
        "n_estimators": 2,
        "n_boosting_rounds": 2,
        "max_iter": 4,
        "min_samples_leaf": 4,
        "max_depth": 2,
        "rng": 0,
    }
    return {
        "linear": lambda: pb.fit_real_adaboost(
            X, y, n_estimators=4, weak_learner=pb.weak.feature()
        ),
        "real": lambda: pb.fit_real_adaboost(X, words, n_estimators=4),
        "cart": lambda: pb.fit_cart(X, three, max_depth=3),
        "cart of numbers": lambda: pb.fit_cart(X, score, task="regression", max_depth=3),
        "one leaf": lambda: pb.fit_cart(np.zeros((4, 1)), ["a", "b", "b", "c"]),
        "pruned": lambda: pb.fit_pruned_cart(X, words, cv=3, rng=0),
        "forest": lambda: pb.fit_random_forest(X, three, n_estimators=3, max_depth=3, rng=0),
        "forest of numbers": lambda: pb.fit_random_forest(
            X, score, task="regression", n_estimators=3, max_depth=3, rng=0
        ),
        "stagewise": lambda: pb.fit_gradient_boosting(X, words, loss="log_loss", n_estimators=4),
        "hinge": lambda: pb.fit_gradient_boosting(
            X, words, loss="hinge", n_estimators=3, max_depth=1
        ),
        "stagewise, validated": lambda: pb.fit_gradient_boosting(
            X, score, loss="squared_error", n_estimators=4, validation=0.3, rng=0
        ),
        "probit": lambda: pb.fit_probitboost(X, words, max_iter=5),
        "probit tree": lambda: pb.fit_probit_tree(X, y, min_samples_leaf=8, max_iter=5),
        "probit tree of three": lambda: pb.fit_probit_tree(
            X, three, min_samples_leaf=8, max_iter=4
        ),
        "sbpmt": lambda: pb.fit_sbpmt(X, words, **boosted),
        "sbpmt of three": lambda: pb.fit_sbpmt(X, three, voting="soft", **boosted),
        "sbpmt, a tree each": lambda: pb.fit_sbpmt(X, three, one_vs_rest="tree", **boosted),
    }


def composites() -> dict[str, Callable[[], Any]]:
    """Return what makes models made of models, and models of named columns."""
    X, score = problem()
    y, three = score > 0, np.digitize(score, [-0.5, 0.5])
    words = np.array(["no", "yes"])[y.astype(int)]
    tree, ovr = pb.fit_boosted_tree, pb.fit_one_vs_rest
    few = partial(pb.fit_cart, max_depth=2)
    return {
        "one vs rest": lambda: ovr(tree, X, three, max_nodes=3),
        "one vs rest, probit": lambda: ovr(
            pb.fit_probit_tree, X, three, min_samples_leaf=9, max_iter=3
        ),
        "one vs rest, stagewise": lambda: ovr(
            pb.fit_gradient_boosting, X, three, loss="probit", n_estimators=2
        ),
        "samme": lambda: pb.fit_samme(X, three, base_learner=few, n_estimators=3),
        "samme of composites": lambda: pb.fit_samme(
            X, three, base_learner=partial(ovr, tree, max_nodes=2), n_estimators=2
        ),
        "bagging": lambda: pb.fit_bagging(tree, X, words, n_estimators=2, max_nodes=3, rng=0),
        "bagging of numbers": lambda: pb.fit_bagging(
            pb.fit_cart, X, score, task="regression", n_estimators=2, max_depth=2, rng=0
        ),
        "bagging of composites": lambda: pb.fit_bagging(
            partial(ovr, tree), X, three, n_estimators=2, max_nodes=2, rng=0
        ),
        "named columns": lambda: with_names(tree(X, words, max_nodes=4)),
        "named leaves": lambda: with_names(pb.fit_cart(X, three, max_depth=2)),
    }


def with_names(model: Any) -> Any:
    from dataclasses import replace

    return replace(model, feature_names=("a", "größe", "c d"))


@lru_cache(maxsize=1)
def corpus(folder: str) -> tuple[Parts, ...]:
    """Return the files; `folder` is where they are written for a moment."""
    actual = []
    path = Path(folder) / "made.npz"
    for kind, build in {**graphs(), **others(), **composites()}.items():
        pb.save(build(), path)
        actual.append(take_apart(kind, path.read_bytes()))
    path.unlink()
    return tuple(actual)
