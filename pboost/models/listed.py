"""The names of models that users can rely on."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

#: Besides fields, of the kinds that have them; a class adds its own in `_public`.
PUBLIC = (
    "predict",
    "predict_proba",
    "decision_function",
    "staged_decision_function",
    "evaluation_cost",
    "prefix",
    "describe",
    "labels",
    "n_features",
    "feature_names",
    "table",
    "n_nodes",
    "mean_cost",
    "n_joints",
    "n_leaves",
    "leaf",
    "depth",
    "column",
)


def public_names(cls: type[Any]) -> list[str]:
    """Return the names of a kind of model that users can rely on, which `dir` lists.

    Other names are for functions of the package.
    """
    listed = {name for base in cls.__mro__ for name in vars(base).get("_public", ())}
    listed |= {*PUBLIC, *(field.name for field in fields(cls) if field.init)}
    return sorted(name for name in listed if hasattr(cls, name))
