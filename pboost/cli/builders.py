"""The builders of the command line, with the options that were given."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any

from pboost import observation
from pboost.boosting.adaboost import fit_adaboost
from pboost.boosting.adaboost_real import fit_adaboost_real
from pboost.boosting.boosted_tree import fit_boosted_tree
from pboost.boosting.matryoshka import fit_matryoshka
from pboost.cli.parser import (
    DEFAULT_SIZE,
    OBSERVATION_OPTIONS,
    OWN_OPTIONS,
    PROBIT_MODELS,
    SAMME_DEPTH,
    TREE_MODELS,
    WEAK_OPTIONS,
)
from pboost.ensembles.multiclass import fit_one_vs_rest, fit_samme
from pboost.ensembles.presets import fit_pruned_cart, fit_topdown_tree
from pboost.models.base import Model, TwoClassModel
from pboost.probit.probitboost import fit_probitboost
from pboost.probit.sbpmt import fit_sbpmt, sbpmt_published
from pboost.probit.tree import fit_probit_tree
from pboost.trees.cart import fit_cart
from pboost.trees.forest import fit_forest
from pboost.trees.stagewise import fit_stagewise
from pboost.weak import affine, feature, linear, separator, stump
from pboost.weak.base import Weak

#: What makes the weak learner of ``--weak``.
WEAK: dict[str, Callable[..., Weak]] = {
    "stump": stump, "affine": affine, "feature": feature, "separator": separator, "linear": linear,
}  # fmt: skip
BUILDERS: dict[str, Callable[..., TwoClassModel]] = {
    "adaboost": fit_adaboost,
    "tree": fit_boosted_tree,
    "matryoshka": fit_matryoshka,
    "adaboost-real": fit_adaboost_real,
    "topdown": fit_topdown_tree,
}


def builder(options: Namespace) -> tuple[Callable[..., Model], int | None]:
    """Return the builder with the settings given, and how often it calls back, if it does."""
    if options.model in TREE_MODELS:
        fit, n_steps = _tree_builder(options)
    elif options.model in PROBIT_MODELS:
        fit, n_steps = _probit_builder(options)
    else:
        fit, n_steps = _boosting_builder(options)
    if "one_vs_rest" in options:
        return partial(fit_one_vs_rest, fit), None
    return fit, n_steps


def _tree_builder(options: Namespace) -> tuple[Callable[..., Model], int | None]:
    """The builder of a tree or of models made of trees."""
    given, model = vars(options), options.model
    names = (*OWN_OPTIONS[model], "criterion", "search")
    settings = {name: given[name] for name in names if name in given and name != "pruned"}
    if "threads" in given:
        settings["n_threads"] = options.threads
    if model == "cart":
        if "pruned" in given:
            return partial(fit_pruned_cart, rng=options.seed, **settings), None
        return partial(fit_cart, **settings), None
    size = OWN_OPTIONS[model][0]
    count = settings.setdefault(size, DEFAULT_SIZE[model])
    if model == "forest":
        return partial(fit_forest, rng=options.seed, **settings), count
    for name in ("learning_rate", "validation", "patience"):
        if name in given:
            settings[name] = given[name]
    if model == "stagewise":
        if "loss" not in settings:
            settings["loss"] = "squared" if settings.get("task") == "regression" else "logistic"
        if "one_vs_rest" in options:
            settings["task"] = "classification"
        return partial(fit_stagewise, rng=options.seed, **settings), count
    of_votes = {
        name: settings.pop(name) for name in ("rounds", "learning_rate") if name in settings
    }
    settings.setdefault("max_depth", SAMME_DEPTH)
    return partial(fit_samme, base=partial(fit_cart, **settings), **of_votes), count


def _probit_builder(options: Namespace) -> tuple[Callable[..., Model], int | None]:
    """The builder of a model of ProbitBoost."""
    given, model = vars(options), options.model
    names = (*OWN_OPTIONS[model], "criterion", "search")
    settings = {name: given[name] for name in names if name in given and name != "published"}
    if "threads" in given:
        settings["n_threads"] = options.threads
    if model == "probit":
        return partial(fit_probitboost, **settings), None
    if model == "probit-tree":
        return partial(fit_probit_tree, **settings), None
    if "published" in given:
        settings = sbpmt_published() | settings
    count = settings.setdefault("members", DEFAULT_SIZE[model])
    return partial(fit_sbpmt, rng=options.seed, **settings), count


def _boosting_builder(options: Namespace) -> tuple[Callable[..., Model], int]:
    """The builder of a boosted graph or sum, and its number of nodes."""
    given = vars(options)
    settings: dict[str, Any] = {}
    if options.model != "topdown":
        settings = {"weak": _weak(options), "rng": options.seed}
    if "observation" in given:
        settings["observation"] = _observation(options)
    every = ("smoothing", "learning_rate", "validation", "patience")
    for name in (*every, *OWN_OPTIONS[options.model]):
        if name in given:
            settings[name] = given[name]
    if "threads" in given:
        settings["n_threads"] = options.threads
    size = "nodes" if given.get("growth") == "greedy" else OWN_OPTIONS[options.model][0]
    settings.setdefault(size, DEFAULT_SIZE[options.model])
    n_nodes = settings[size] if size != "shape" else math.prod(settings[size])
    return partial(BUILDERS[options.model], **settings), n_nodes


def _weak(options: Namespace) -> Weak:
    """The weak learner given on the command line."""
    given = vars(options)
    kind = given.get("weak", "stump")
    every = () if kind == "feature" else ("criterion", "search")
    choices: dict[str, Any] = {n: given[n] for n in (*every, *WEAK_OPTIONS[kind]) if n in given}
    if kind in ("affine", "linear"):
        choices["seed"] = options.seed
    return WEAK[kind](**choices)


def _observation(options: Namespace) -> observation.Observation:
    """The observation model given on the command line."""
    if options.observation == "sampled":
        rate = getattr(options, "flip_rate", None)
        of = observation.exact() if rate is None else observation.flip(rate)
        return observation.sampled(getattr(options, "draws", "first-increase"), of=of)
    name = OBSERVATION_OPTIONS.get(options.observation)
    arguments = () if name is None else (getattr(options, name),)
    make: Callable[..., observation.Observation] = getattr(observation, options.observation)
    return make(*arguments)
