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
        "chain": lambda: pb.fit_adaboost(X, words, rounds=6),
        "one node": lambda: tree(X, y, nodes=1),
        "no node": lambda: tree(np.zeros((4, 2)), [0, 1, 1, 1], nodes=3),
        "tree of stumps": lambda: tree(X, y, nodes=9),
        "validated": lambda: tree(X, y, nodes=9, validation=0.3, rng=0),
        "adatree2": lambda: tree(X, y, nodes=5, observation=seen.adatree2()),
        "flip": lambda: pb.fit_adaboost(X, words, rounds=4, observation=seen.flip(0.1)),
        "gaussian": lambda: tree(X, y, nodes=4, observation=seen.gaussian([0.1, 0.2, 0.3])),
        "cells": lambda: tree(X, y, nodes=4, observation=seen.gaussian(np.full(X.shape, 0.1))),
        "sampled": lambda: tree(X, y, nodes=3, observation=seen.sampled(3), rng=0),
        "grid": lambda: tree(X[:, :2], y, nodes=4, weak=weak.affine(directions=6)),
        "directions": lambda: tree(X, y, nodes=4, weak=weak.affine(directions=6)),
        "linear nodes": lambda: tree(X, y, nodes=3, weak=weak.linear()),
        "separators": lambda: pb.fit_oblique_tree(X, words, separators=3, stumps=4),
        "greedy": lambda: pb.fit_matryoshka(X, y, growth="greedy", nodes=6),
        "by sign": lambda: pb.fit_matryoshka(X, y, shape=(2, 2), collect="sign"),
    }


def others() -> dict[str, Callable[[], Any]]:
    """Return what makes models that evaluate themselves."""
    X, score = problem()
    y, three = score > 0, np.digitize(score, [-0.5, 0.5])
    words = np.array(["no", "yes"])[y.astype(int)]
    boosted = {"members": 2, "rounds": 2, "steps": 4, "min_leaf": 4, "max_depth": 2, "rng": 0}
    return {
        "linear": lambda: pb.fit_adaboost_real(X, y, rounds=4, weak=pb.weak.feature()),
        "real": lambda: pb.fit_adaboost_real(X, words, rounds=4),
        "cart": lambda: pb.fit_cart(X, three, max_depth=3),
        "cart of numbers": lambda: pb.fit_cart(X, score, task="regression", max_depth=3),
        "one leaf": lambda: pb.fit_cart(np.zeros((4, 1)), ["a", "b", "b", "c"]),
        "pruned": lambda: pb.fit_pruned_cart(X, words, folds=3, rng=0),
        "forest": lambda: pb.fit_forest(X, three, members=3, max_depth=3, rng=0),
        "forest of numbers": lambda: pb.fit_forest(
            X, score, task="regression", members=3, max_depth=3, rng=0
        ),
        "stagewise": lambda: pb.fit_stagewise(X, words, loss="logistic", steps=4),
        "hinge": lambda: pb.fit_stagewise(X, words, loss="hinge", steps=3, max_depth=1),
        "stagewise, validated": lambda: pb.fit_stagewise(
            X, score, loss="squared", steps=4, validation=0.3, rng=0
        ),
        "probit": lambda: pb.fit_probitboost(X, words, steps=5),
        "probit tree": lambda: pb.fit_probit_tree(X, y, min_leaf=8, steps=5),
        "probit tree of three": lambda: pb.fit_probit_tree(X, three, min_leaf=8, steps=4),
        "sbpmt": lambda: pb.fit_sbpmt(X, words, **boosted),
        "sbpmt of three": lambda: pb.fit_sbpmt(X, three, vote="average", **boosted),
        "sbpmt, a tree each": lambda: pb.fit_sbpmt(X, three, one_vs_all="tree", **boosted),
    }


def composites() -> dict[str, Callable[[], Any]]:
    """Return what makes models made of models, and models of named columns."""
    X, score = problem()
    y, three = score > 0, np.digitize(score, [-0.5, 0.5])
    words = np.array(["no", "yes"])[y.astype(int)]
    tree, ovr = pb.fit_boosted_tree, pb.fit_one_vs_rest
    few = partial(pb.fit_cart, max_depth=2)
    return {
        "one vs rest": lambda: ovr(tree, X, three, nodes=3),
        "one vs rest, probit": lambda: ovr(pb.fit_probit_tree, X, three, min_leaf=9, steps=3),
        "one vs rest, stagewise": lambda: ovr(pb.fit_stagewise, X, three, loss="probit", steps=2),
        "samme": lambda: pb.fit_samme(X, three, base=few, rounds=3),
        "samme of composites": lambda: pb.fit_samme(
            X, three, base=partial(ovr, tree, nodes=2), rounds=2
        ),
        "bagging": lambda: pb.fit_bagging(tree, X, words, members=2, nodes=3, rng=0),
        "bagging of numbers": lambda: pb.fit_bagging(
            pb.fit_cart, X, score, task="regression", members=2, max_depth=2, rng=0
        ),
        "bagging of composites": lambda: pb.fit_bagging(
            partial(ovr, tree), X, three, members=2, nodes=2, rng=0
        ),
        "named columns": lambda: with_names(tree(X, words, nodes=4)),
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
