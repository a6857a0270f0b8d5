"""The commands on the user's own files: fit, evaluate, predict, show."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any

from pboost import observation
from pboost.adaboost import fit_adaboost
from pboost.adaboost_real import fit_adaboost_real
from pboost.boosted_tree import fit_boosted_tree
from pboost.checks import as_labels
from pboost.cli.errors import require
from pboost.cli.parser import (
    DEFAULT_SIZE,
    OBSERVATION_OPTIONS,
    OWN_OPTIONS,
    WEAK_OPTIONS,
    check_model_options,
)
from pboost.cli.progress import progress
from pboost.cli.table import (
    check_output,
    pick_columns,
    read_table,
    split_table,
    write_table,
    write_text,
)
from pboost.evaluate import predict, predict_proba
from pboost.explanation import describe
from pboost.io import load, save
from pboost.matryoshka import fit_matryoshka
from pboost.predictor import TwoClassModel
from pboost.topdown import fit_topdown_tree
from pboost.validation import cross_validate
from pboost.weak import affine, feature, linear, separator, stump
from pboost.weak_learners import Weak

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


def run_fit(options: Namespace) -> None:
    """``pboost fit``: train on a whole file, save, and say what came out."""
    check_model_options(options)
    check_output(options.output, options.train)
    X, y, weight = split_table(read_table(options.train), options.target, options.weight)
    fit, n_nodes = _builder(options)
    with progress(n_nodes, "nodes") as callback:
        model = fit(X, y, sample_weight=weight, callback=callback)
    save(model, options.output)
    write_text(
        f"{options.output}: {model.n_nodes} nodes, certificate "
        f"{model.record.certificate[-1]:.4g}"
        f"{f' ({model.certificate_note})' if model.certificate_note else ''}; "
        f"{model.record.stop_reason}\n"
    )


def run_evaluate(options: Namespace) -> None:
    """``pboost evaluate``: cross-validate."""
    check_model_options(options)
    X, y, weight = split_table(read_table(options.train), options.target, options.weight)
    as_labels(y, len(y))  # these builders take two classes
    fit, _ = _builder(options)
    with progress(options.folds, "folds") as callback:
        result = cross_validate(
            fit,
            X,
            y,
            folds=options.folds,
            rng=options.seed,
            sample_weight=weight,
            callback=callback,
        )
    write_text(f"{result.summary()}\n")


def run_predict(options: Namespace) -> None:
    """``pboost predict``: label and probability of each row, or a number."""
    if options.output is not None:
        check_output(options.output, options.model, options.data)
    pandas = require("pandas", "cli")
    model = load(options.model)
    X = pick_columns(read_table(options.data), model.feature_names)
    if model.labels is None:
        columns = {"value": predict(model, X)}
    elif len(model.labels) == 2:
        columns = {"label": predict(model, X), "probability": predict_proba(model, X)[:, 1]}
    else:
        names = [f"probability {label}" for label in model.labels.tolist()]
        shares = zip(names, predict_proba(model, X).T, strict=True)
        columns = {"label": predict(model, X), **dict(shares)}
    write_table(pandas.DataFrame(columns), options.output)


def run_show(options: Namespace) -> None:
    """``pboost show``: the model as text."""
    write_text(describe(load(options.model)).rstrip("\n") + "\n")


def _builder(options: Namespace) -> tuple[Callable[..., TwoClassModel], int]:
    """The builder with the settings given on the command line, and the number of nodes."""
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
