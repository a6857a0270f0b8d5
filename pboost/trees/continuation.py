"""Fitting goes on: more trees for a forest or a sum of trees.

What the fit drew is drawn once more, from the state of the generator that the settings keep, and
the trees that are there take their places in one longer fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pboost.data.row_source import IN_ONE_PLACE, RowSource
from pboost.growth.fit_state import check_state, fingerprints, keep, take
from pboost.growth.step import STOPPED
from pboost.growth.validation import GIVEN
from pboost.models.base import Model
from pboost.models.evaluate.new_rows import columns_to_fit
from pboost.models.forest import Forest
from pboost.models.tree_sum import CUT, StagewiseModel
from pboost.trees.cart import FitData
from pboost.trees.forest import FOREST_OPTIONS, grow_forest
from pboost.trees.stagewise import SUM_OPTIONS, begin_sum, draws, grow_sum
from pboost.values import Bar, as_generator, check_integer, generator_in_state


def continue_forest(
    model: Forest,
    X: Any,
    y: Any,
    members: Any,
    sample_weight: Any,
    rng: Any,
    n_threads: int | None,
    bar: Bar,
) -> Forest:
    """Return the forest with more trees."""
    members = check_integer("members", members, least=1)
    options = _stored_options(model, "fit_forest", FOREST_OPTIONS)
    if model.oob is None:
        raise ValueError(
            "model: expected a whole forest, got trees of one, as forest[:k] has; it is not known "
            "which they are"
        )
    generator = _generator(model, rng, is_needed=True)
    if isinstance(X, RowSource):
        raise NotImplementedError(IN_ONE_PLACE.format("continue_fit of a forest"))
    data = FitData(columns_to_fit(model, X), y, sample_weight, n_threads, generator)
    return grow_forest(data, len(model) + members, options, bar, tuple(model))


def continue_sum(
    model: StagewiseModel,
    X: Any,
    y: Any,
    *,
    steps: Any,
    sample_weight: Any,
    validation: Any,
    state: Any,
    rng: Any,
    n_threads: int | None,
    bar: Bar,
) -> StagewiseModel:
    """Return the sum with more trees."""
    options, held_out, generator, tried = sum_goes_on(model, steps, validation, rng)
    data = FitData(columns_to_fit(model, X), y, sample_weight, n_threads, generator)
    if state is None:
        return grow_sum(data, model.loss, options, held_out, bar, model, tried)
    if isinstance(X, RowSource):
        raise NotImplementedError(
            "state: expected None of rows in partitions; a kept state needs all rows in one place: "
            "pass rows.gather()"
        )
    state = check_state(state, rng)
    rows = fingerprints(model, data.X, y, sample_weight, validation)
    fit = take(state, model, rows)
    if fit is not None and fit.workers.is_for(n_threads):
        longer = fit.go_on(options["steps"], bar)
    else:
        fit = begin_sum(data, model.loss, options, held_out, model)
        longer = fit.grow(bar, tried)
    keep(state, longer, rows, fit)
    return longer


def sum_goes_on(
    model: StagewiseModel, steps: Any, validation: Any, rng: Any
) -> tuple[dict[str, Any], tuple[Any, Any], np.random.Generator, int]:
    """Return the options of the longer fit, its validation rows, and how many trees were tried."""
    steps, settings = check_integer("steps", steps, least=1), model.settings
    options = _stored_options(model, "fit_stagewise", (*SUM_OPTIONS, "steps"))
    held_out = _held_out(settings, validation)
    generator = _generator(model, rng, is_needed=draws({**settings, **options}))
    tried = len(model if model.validation_loss is None else model.validation_loss[1:])
    # A fit that ended by itself would have ended there with more steps, too.
    was_cut = model.stop_reason == STOPPED or model.stop_reason.startswith(CUT)
    meant = check_integer("model.settings['steps']", options["steps"], least=1)
    options["steps"] = steps + (tried if was_cut else meant)
    return options, held_out, generator, tried


def _stored_options(model: Model, builder: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the options of the fit of a model."""
    settings = model.settings
    if settings.get("builder") != builder or not settings.keys() >= set(names):
        raise ValueError(
            f"model: expected settings of {builder}, by which further trees are fitted, got those "
            f"of {settings.get('builder')}: {sorted(settings)}"
        )
    return {name: settings[name] for name in names}


def _held_out(settings: Any, validation: Any) -> tuple[Any, Any]:
    """Return the options `validation` and `patience` of the fit that goes on."""
    known = settings.get("validation")
    if (known == GIVEN) != (validation is not None):
        raise ValueError(
            "validation: expected the rows that were given to the fit, which a model does not keep"
            if known == GIVEN
            else "validation: expected None for a model whose fit was given no such rows"
        )
    return (validation if known == GIVEN else known), settings.get("patience")


def _generator(model: Model, rng: Any, is_needed: bool) -> np.random.Generator:
    """Return a generator in the state in which the fit began to draw."""
    state = model.settings.get("rng")
    if state is None:
        if rng is None and is_needed:
            raise ValueError(
                "rng: expected that of the fit, which drew rows or columns; the model only keeps "
                "generators that are PCG64"
            )
        return as_generator(rng)
    if rng is not None:
        raise ValueError("rng: expected None, since the model keeps that of its fit")
    try:
        return generator_in_state(state)
    except ValueError as error:
        raise ValueError(f"model.settings['rng']: {error}") from None
