"""The commands on the user's own files: fit, evaluate, predict, show."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pboost as pb
from pboost.cli.builders import builder
from pboost.cli.errors import CommandError, require, told_warnings
from pboost.cli.options import SEVERAL_CLASSES, check_model_options
from pboost.cli.progress import progress
from pboost.cli.table import (
    check_output,
    pick_columns,
    read_table,
    split_table,
    write_table,
    write_text,
)
from pboost.data.targets import is_continuous
from pboost.models.base import Model, TwoClassModel
from pboost.values import FloatArray


def run_fit(options: Namespace) -> None:
    """``pboost fit``: train on a whole file, save, and say what came out."""
    check_model_options(options)
    check_output(options.output, options.train)
    X, y, weight = _training(options)
    fit, n_steps, unit = builder(options)
    with progress(n_steps or 1, unit) as callback:
        given = {} if n_steps is None else {"callback": callback}
        model = fit(X, y, sample_weight=weight, **given)
    pb.save(model, options.output)
    write_text(f"{options.output}: {_outcome(model)}\n")


def run_evaluate(options: Namespace) -> None:
    """``pboost evaluate``: cross-validate."""
    check_model_options(options)
    X, y, weight = _training(options)
    fit = builder(options).fit
    with told_warnings(), progress(options.folds, "folds") as callback:
        result = pb.cross_validate(
            fit,
            X,
            y,
            task=_task(options),
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
    model = pb.load(options.model)
    X = pick_columns(read_table(options.data), model.feature_names)
    write_table(pandas.DataFrame(_predictions(model, X)), options.output)


def run_show(options: Namespace) -> None:
    """``pboost show``: the model as text, or its slopes."""
    if options.coefficients:
        write_text(f"{pb.coefficients(pb.load(options.model))}\n")
        return
    write_text(pb.describe(pb.load(options.model)).rstrip("\n") + "\n")


def _training(options: Namespace) -> tuple[Any, NDArray[Any], FloatArray | None]:
    """Features, labels or numbers, and weights; CommandError where the model takes fewer labels."""
    is_regression = _task(options) == "regression"
    table = read_table(options.train, None if is_regression else options.target)
    X, y, weight = split_table(table, options.target, options.weight, is_regression=is_regression)
    if is_regression:
        return X, y, weight
    values = np.unique(y)
    if is_continuous(values):
        raise CommandError(
            f"column {options.target!r} holds {len(values)} different numbers that are not all "
            "whole: a regression is --task regression, with --model cart, forest and stagewise"
        )
    takes_any = options.model in SEVERAL_CLASSES or "one_vs_rest" in options
    if len(values) > 2 and not takes_any:
        raise CommandError(
            f"column {options.target!r} holds {len(values)} values and --model {options.model} "
            "takes two: for more there are --one-vs-rest (fit_one_vs_rest), --model samme "
            "(fit_samme), --model sbpmt, --model forest and --model cart"
        )
    return X, y, weight


def _task(options: Namespace) -> str:
    """What the target is; as in `fit_stagewise`, the loss can say it."""
    squared = getattr(options, "loss", "") == "squared" and "one_vs_rest" not in options
    by_loss = "regression" if squared else "classification"
    task: str = getattr(options, "task", by_loss)
    return task


def _outcome(model: Model) -> str:
    """What came out of a fit, in a line."""
    if not isinstance(model, TwoClassModel):
        error = getattr(getattr(model, "oob", None), "error", np.nan)
        tested = f"; out-of-bag error {error:.4g}" if np.isfinite(error) else ""
        return pb.describe(model).splitlines()[0] + tested
    return (
        f"{model.n_nodes} nodes, certificate {model.record.certificate[-1]:.4g}"
        f"{f' ({model.certificate_note})' if model.certificate_note else ''}; "
        f"{model.record.stop_reason}"
    )


def _predictions(model: Model, X: Any) -> dict[str, NDArray[Any]]:
    """The columns of predictions."""
    if model.labels is None:
        return {"value": pb.predict(model, X)}
    labels = {"label": pb.predict(model, X)}
    try:
        share = pb.predict_proba(model, X)
    except NotImplementedError:  # the loss tells none
        return {**labels, "decision value": pb.decision_function(model, X)}
    if len(model.labels) == 2:
        return {**labels, "probability": share[:, 1]}
    names = [f"probability {label}" for label in model.labels.tolist()]
    return {**labels, **dict(zip(names, share.T, strict=True))}
