"""Faults that are put into the package on purpose: the fuzzer must find them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import pboost as pb
from pboost import threads, values
from pboost.data import training_data as data
from pboost.data.columns import columns
from pboost.ensembles import bagging
from pboost.models import base, graph
from pboost.models import graph_arrays as nodes
from pboost.models.single_tree import Tree

#: What is replaced, under which name, and what makes the other from it.
Patch = tuple[Any, str, Callable[[Any], Any]]


@dataclass
class Fault:
    """A fault: in which cases it shows, what is wrong, and how it is put in."""

    kind: str
    says: str
    patches: tuple[Patch, ...]
    before: list[Any] = field(default_factory=list)

    def apply(self) -> None:
        # Methods as they stand in their class; names of the root are loaded on first use.
        self.before = [vars(of).get(name) or getattr(of, name) for of, name, _ in self.patches]
        for (owner, name, change), old in zip(self.patches, self.before, strict=True):
            setattr(owner, name, change(old))

    def undo(self) -> None:
        for (owner, name, _), old in zip(self.patches, self.before, strict=True):
            setattr(owner, name, old)


def no_topology(old: Any) -> Any:
    return lambda next_, n: None


def last_row_left_out(old: Any) -> Any:
    def run(self: Any, work: Any, n: int, multiple: int = 1) -> Any:
        return old(self, work, n - 1 if self.n_threads > 1 and n > multiple else n, multiple)

    return run


def at_least(old: Any) -> Any:
    return lambda labels, score: labels[(score >= 0).astype(np.intp)]


def certificate_of_the_bias(old: Any) -> Any:
    def certificate(model: Any, X: Any = None, y: Any = None, **told: Any) -> float:
        actual = old(model, X, y, **told)
        return actual / 2 if X is not None and not model.n_nodes else actual

    return certificate


def no_tie_bits(old: Any) -> Any:
    def select_order(self: Any, rows: Any, workers: Any) -> Any:
        return old(self, rows, workers) & columns.ROW_MASK

    return select_order


def weights_up_to_one(old: Any) -> Any:
    def as_weights(weight: Any, n: int) -> Any:
        actual = old(weight, n)
        return None if actual is None else np.minimum(actual, 1.0)

    return as_weights


def classes_swapped(old: Any) -> Any:
    def from_models(cls: Any, header: Any, arrays: Any, models: Any) -> Any:
        if cls is Tree:
            arrays = {**arrays, "value": arrays["value"][..., ::-1].copy()}
        return old.__func__(cls, header, arrays, models)

    return classmethod(from_models)


def not_clipped(old: Any) -> Any:
    return lambda score: old(score) * (1 + 1e-12)


def few_rows_otherwise(old: Any) -> Any:
    def walk_rows(model: Any, X: Any, counting: bool) -> Any:
        few = isinstance(X, np.ndarray) and X.dtype == np.float64 and len(X) == 1
        return old(model, np.nextafter(X, np.inf) if few else X, counting)

    return walk_rows


def unnamed(old: Any) -> Any:
    def check_number(name: str, value: Any, **limits: Any) -> float:
        return old("value", value, **limits)

    return check_number


def users_of(name: str) -> list[Any]:
    """Return the modules of the package that have imported a function of `values`."""
    actual = getattr(values, name)
    modules = [m for key, m in sys.modules.items() if key.startswith("pboost.")]
    return [m for m in modules if getattr(m, name, None) is actual]


FAULTS: dict[str, Fault] = {
    "topology": Fault(
        "files",
        "validate() does not look where exits lead",
        ((nodes, "_check_topology", no_topology),),
    ),
    "partition": Fault(
        "arrays",
        "several threads leave out the last row",
        ((threads.Workers, "run", last_row_left_out),),
    ),
    "ties": Fault(
        "arrays",
        "the second label is predicted where the decision value is 0",
        ((base, "one_of_two", at_least),),
    ),
    "bias": Fault(
        "arrays",
        "the certificate of a model without nodes is wrong",
        ((pb, "certificate", certificate_of_the_bias),),
    ),
    "tie bits": Fault(
        "arrays",
        "columns that are selected forget which values are equal",
        ((columns.SortedColumns, "select_order", no_tie_bits),),
    ),
    "weights": Fault(
        "arrays",
        "no weight counts more than 1",
        ((data, "as_weights", weights_up_to_one), (bagging, "as_weights", weights_up_to_one)),
    ),
    "labels": Fault(
        "arrays",
        "the classes of a tree are swapped when it is loaded",
        ((base.Model, "from_models", classes_swapped),),
    ),
    "clipping": Fault(
        "arrays",
        "probabilities go a little beyond 1",
        ((base, "two_probabilities", not_clipped),),
    ),
    "one row": Fault(
        "files",
        "one row alone is compared otherwise than many",
        ((graph, "walk_rows", few_rows_otherwise),),
    ),
    "names": Fault(
        "arrays",
        "refusals of numbers do not say which option was meant",
        tuple((module, "check_number", unnamed) for module in users_of("check_number")),
    ),
}
