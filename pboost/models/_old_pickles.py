"""Pickles of version 0.1.0 name modules that are no more: who loads one is told what to do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

#: Modules of 0.1.0 whose objects could be pickled.
_GONE = {
    *("additive", "bagging", "bags", "cart_pruning", "columns", "committee", "encoding"),
    *("ensemble", "explanation", "forest_model", "graph", "inputs", "interpretation"),
    *("observation_models", "oracles", "probit_model", "probit_tree_model", "projections"),
    *("sbpmt_model", "separators", "stagewise_model", "tree", "validation", "weak_learners"),
    *("weak_oblique", "weak_real"),
}


class OldPickles:
    """Asked last for a module that is imported: refuses those of 0.1.0 in words."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        """Raise ModuleNotFoundError where `name` was a module of version 0.1.0."""
        package, _, module = name.rpartition(".")
        if package == "pboost" and module in _GONE:
            raise ModuleNotFoundError(
                f"{name} was a module of pboost 0.1.0: its pickles cannot be loaded by this "
                "version. Load the model with 0.1.0, write it to a file with pb.save, and read "
                "that with pb.load",
                name=name,
            )


def refuse_old_pickles() -> None:
    """Let imports of modules of version 0.1.0 fail with a sentence."""
    if OldPickles not in sys.meta_path:
        sys.meta_path.append(OldPickles)
