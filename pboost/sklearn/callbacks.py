"""Callbacks of scikit-learn 1.9 and later; older versions do without.

A fit is a task, and each stage of growth a task within it. Stages are told of while the model
grows, by the callback of the builder. A callback that wants estimators fitted so far, to score
them, is told of the stages when the model is whole: only then there are models of its first stages.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pboost as pb

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing, where scikit-learn has no callbacks."""

    def with_callbacks(method: object) -> Any:
        """Return the method, where scikit-learn has no callbacks."""
        return method


__all__ = ["CallbackSupportMixin", "run_with_callbacks", "with_callbacks"]

#: Options that say how many stages there are at most, and what one is called.
STAGES = {
    "n_estimators": "step",
    "max_nodes": "node",
    "max_iter": "step",
}


def run_with_callbacks(
    estimator: Any, build: Callable[..., Any], X: object, y: object, options: dict[str, Any]
) -> Any:
    """Return the model that `build` makes, of which the callbacks of an estimator are told.

    ``build(X, y, options, callback)``, `callback` as of builders, or None.
    """
    callbacks = getattr(estimator, "_skl_callbacks", None)
    if not callbacks:
        return build(X, y, options, None)
    weight = options.get("sample_weight")
    data = {
        "estimator": estimator,
        "X": X,
        "y": y,
        "metadata": None if weight is None else {"sample_weight": weight},
    }
    name = next((name for name in STAGES if type(options.get(name)) is int), None)
    fit = estimator._init_callback_context(max_subtasks=options[name] if name else None)
    fit.call_on_fit_task_begin(**data)
    stage = partial(_stage, fit, STAGES.get(name or "", "step"), data)
    if any(map(_wants_models, callbacks)):
        model = build(X, y, options, None)
        for part in _parts(model):
            if stage({"reconstruction_attributes": {"model_": part}}):
                model = part
                break
    else:
        model = build(X, y, options, lambda step, record: stage({}))
    fit.call_on_fit_task_end(**data, reconstruction_attributes={"model_": model})
    return model


def _stage(fit: Any, name: str, data: dict[str, Any], more: dict[str, Any]) -> bool:
    """Tell of one stage of a fit; returns whether to stop."""
    task = fit.subcontext(task_name=name).call_on_fit_task_begin(**data)
    return bool(task.call_on_fit_task_end(**data, **more))


def _wants_models(callback: Any) -> bool:
    """Return whether a callback asks for estimators that are fitted so far."""
    return "fitted_estimator" in inspect.signature(callback.on_fit_task_end).parameters


def _parts(model: object) -> Iterator[Any]:
    """Yield the models of the first stages, at last the whole one; none where there are none."""
    if isinstance(model, pb.models.DecisionGraph):
        stages = model.record.stages
        for n in range(1, model.n_nodes + 1) if stages is None else stages.tolist():
            yield pb.models.truncate(model, n)
    elif isinstance(model, pb.models.GradientBoostingModel):
        for n in range(1, len(model) + 1):
            yield pb.models.truncate(model, n)
    elif isinstance(model, pb.models.RandomForest):
        for n in range(1, len(model) + 1):
            yield model[:n]
