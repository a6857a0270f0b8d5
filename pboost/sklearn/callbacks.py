"""Support for the callbacks of scikit-learn >= 1.9.

A fit is a task and each stage of the fit is a subtask, which the callback of the fit function
reports. Callbacks that request a fitted estimator are called after the fit, because the model of an
earlier stage is derived from the final model.
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
        """Empty replacement for older versions of scikit-learn."""

    def with_callbacks(method: object) -> Any:
        """Return the method unchanged."""
        return method


__all__ = ["CallbackSupportMixin", "run_with_callbacks", "with_callbacks"]

#: Options that limit the number of stages, and the name of a stage for each option.
STAGES = {
    "n_estimators": "step",
    "max_nodes": "node",
    "max_iter": "step",
}


def run_with_callbacks(
    estimator: Any, build: Callable[..., Any], X: object, y: object, options: dict[str, Any]
) -> Any:
    """Fit a model by `build`, call the callbacks of the estimator and return the model.

    `build` is called as ``build(X, y, options, callback)``; `callback` can be None.
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
    """Report one stage of a fit. Return True to stop the fit."""
    task = fit.subcontext(task_name=name).call_on_fit_task_begin(**data)
    return bool(task.call_on_fit_task_end(**data, **more))


def _wants_models(callback: Any) -> bool:
    """Return whether a callback requests fitted estimators."""
    return "fitted_estimator" in inspect.signature(callback.on_fit_task_end).parameters


def _parts(model: object) -> Iterator[Any]:
    """Yield the model after each stage. Models without stages yield nothing."""
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
