"""Models made smaller."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pboost.models.graph import OUT
from pboost.models.new_rows import as_graph
from pboost.models.tree_sum import StagewiseModel
from pboost.values import IntArray, check_integer


def prefix(model: Any, n_nodes: int) -> Any:
    """Return the model with its first nodes only; of a stagewise model its first trees.

    Parameters
    ----------
    model : DecisionGraph or StagewiseModel
        A fitted model.
    n_nodes : int
        Number of nodes to keep, 1 to ``model.n_nodes``. Exits that led to others lead out. Of a
        stagewise model the number of trees, 1 to ``len(model)``.

    Returns
    -------
    DecisionGraph or StagewiseModel
        The model as it was when so many nodes had been opened. Its record is that of these nodes,
        and ``record.stop_reason`` says that it was cut.

    Raises
    ------
    ValueError, TypeError
        If `n_nodes` is not as described, or is none of the stages of a model collected by sign
        (``record.stages``): between them votes were replaced when a tree was finished.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> model = pb.fit_adaboost(X, [0, 1, 1, 0, 1, 0, 0, 1], rounds=20)
    >>> pb.prefix(model, 5).n_nodes
    5
    """
    if isinstance(model, StagewiseModel):
        n = check_integer("n_nodes", n_nodes, least=1, most=len(model))
        return model if n == len(model) else model.prefix(n)
    model = as_graph(model, "prefix")
    n = check_integer("n_nodes", n_nodes, least=min(1, model.n_nodes), most=model.n_nodes)
    if n == model.n_nodes:
        return model
    stages = model.record.stages
    if stages is not None:
        if n not in stages:
            raise ValueError(
                f"n_nodes: expected one of the stages of the model, {_listed(stages)}, got {n}: "
                "between them votes were replaced"
            )
        stages = stages[stages <= n]
    feature, inputs = model.feature[:n], model.inputs
    if inputs is not None:
        kept, position = np.unique(feature, return_inverse=True)
        feature = position.astype(np.int32)
        inputs = inputs.select(kept)
    return replace(
        model,
        feature=feature,
        threshold=model.threshold[:n],
        next=np.where(model.next[:n] < n, model.next[:n], OUT),
        vote=model.vote[:n],
        answer=None if model.answer is None else model.answer[:n],
        inputs=inputs,
        record=replace(
            model.record,
            certificate=model.record.certificate[: n + 1],
            cost=model.record.cost[: n + 1],
            stages=stages,
            stop_reason=f"cut to the first {n} of {model.n_nodes} nodes",
        ),
    )


def _listed(stages: IntArray) -> str:
    """Return the first few numbers, and the last."""
    shown = [str(stage) for stage in stages.tolist()]
    return ", ".join(shown if len(shown) < 6 else [*shown[:4], "…", shown[-1]])
