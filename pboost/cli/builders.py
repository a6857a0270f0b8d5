"""The builders of the command line, with the options that were given."""

from __future__ import annotations

import inspect
import math
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pboost as pb
from pboost.cli.options import DECLARED, KINDS, MODELS, SEEDS, declared
from pboost.models.base import Model

#: Sizes of models: builders call back so often.
SIZES = ("rounds", "nodes", "shape", "members", "steps")
#: That of a matryoshka, and the depth of the trees of SAMME: those without error would end it.
SHAPE, SAMME_DEPTH = (8, 8), 3


class Builder(NamedTuple):
    """A function of X and y with its settings, how often it calls back and for what."""

    fit: Callable[..., Model]
    n_steps: int | None
    unit: str


def builder(options: Namespace) -> Builder:
    """Return the builder with the settings given."""
    given, fit = vars(options), MODELS[options.model]
    settings = _settings("model", options.model, options)
    for option in DECLARED["model", options.model].values():
        if option.is_needed and option.default is not None:
            settings.setdefault(option.parameter, option.default)
    for of in ("weak", "observation"):
        if of in given or (of == "weak" and "weak" in DECLARED["model", options.model]):
            kind = given.get(of, "stump")
            settings[of] = KINDS[of][kind](**_settings(of, kind, options))
    fit, settings = _adjusted(fit, settings, given)
    sizes = inspect.signature(fit).parameters
    size, n_steps = "", None
    if "callback" in sizes and "one_vs_rest" not in given:
        values = {name: settings.get(name, sizes[name].default) for name in sizes if name in SIZES}
        size = next((name for name, value in values.items() if value is not None), "")
        n_steps = math.prod(values[size]) if size == "shape" else values.get(size)
    fit = partial(fit, **settings)
    if "one_vs_rest" in given:
        fit = partial(pb.fit_one_vs_rest, fit)
    return Builder(fit, n_steps, "members" if size == "members" else "nodes")


def _settings(of: str, kind: str, options: Namespace) -> dict[str, Any]:
    """Return what is given of the arguments of a kind of model, weak learner or observation."""
    given = vars(options)
    found = {o.parameter: given[n] for n, o in DECLARED[of, kind].items() if n in given}
    if "of" in found:
        found["of"] = pb.observation.flip(found["of"])
    own = inspect.signature(KINDS[of][kind]).parameters
    return found | {name: options.seed for name in SEEDS if name in own}


def _adjusted(
    fit: Callable[..., Any], settings: dict[str, Any], given: dict[str, Any]
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return builder and settings, where options are no parameters or depend on others."""
    is_pruned, is_published, is_split = (
        settings.pop(name, False) for name in ("pruned", "published", "one_vs_rest")
    )
    model = given["model"]
    if is_pruned:
        return pb.fit_pruned_cart, settings
    if is_published:
        settings = pb.sbpmt_published() | settings
    if model == "matryoshka" and settings.get("growth") != "greedy":
        settings.setdefault("shape", SHAPE)
    if model == "stagewise":
        is_regression = settings.get("task") == "regression"
        settings.setdefault("loss", "squared" if is_regression else "logistic")
        if is_split:
            settings["task"] = "classification"
    if model == "samme":
        own: dict[str, Any] = {n: settings.pop(n) for n in declared(fit) if n in settings}
        base: dict[str, Any] = {"max_depth": SAMME_DEPTH, "rng": given["seed"]} | settings
        return fit, {"base": partial(pb.fit_cart, **base), **own}
    return fit, settings
