"""Digests of models: of what they hold and answer, not of how files or attributes are called.

Two models have the same digest if their arrays, their training records and their answers to the
same rows are equal bit for bit. Settings, names of options and texts do not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import pboost as pb

#: Attributes that are not called as in FIELDS any more: {name in digests: name in the package}.
RENAMED: dict[str, str] = {
    "comparisons": "budget",
    "labels": "classes",
    "lam": "ccp_alpha",
    "levels": "categories",
}
#: Classes that are not called as in FIELDS any more: {name in the package: name in digests}.
RENAMED_KINDS: dict[str, str] = {"OutOfBagThere": "OutOfBag"}
#: The same of one kind only: {(kind, name in digests): name in the package}.
RENAMED_IN: dict[tuple[str, str], str] = {
    ("Bagging", "vote"): "voting",
    ("OutOfBag", "members"): "n_estimators",
    ("SubaggedProbitTrees", "vote"): "voting",
}
#: Values of `voting` by the names that digests know.
VOTES = {"hard": "majority", "soft": "average"}
_MODEL = "labels n_features feature_names table seen"
_TREES = f"{_MODEL} root feature threshold children value impurity weight n_rows missing"
_LEAVES = "coefficient taken risk spread leaf_mean mean"
#: What a digest holds of each kind of object, by the names that digests know.
FIELDS: dict[str, str] = {
    "Bagging": f"{_MODEL} models vote oob",
    "BinnedColumns": "codes n_bins lower upper names special table",
    "CalibratedModel": f"{_MODEL} models slope intercept knot share start",
    "CrossValidation": "error cost certificate n_nodes test_fold auc log_loss brier mae r2"
    " proven_cost whole_cost",
    "DecisionGraph": f"{_MODEL} feature threshold next vote bias record answer inputs sigma"
    " missing",
    "EarlyExitModel": f"{_MODEL} models threshold slope comparisons cost curve leaving item",
    "RandomForest": f"{_TREES} subset_column subset oob",
    "FunctionEnsemble": f"{_MODEL} alpha mu bias record",
    "LinearModel": f"{_MODEL} feature step mu center scale bias record",
    "OneVsRest": f"{_MODEL} models",
    "Oracles": "is_random row_shape",
    "OutOfBag": "members prediction error",
    "ProbitModel": f"{_MODEL} intercept slopes feature step length risk mean",
    "ProbitTree": f"{_MODEL} partition {_LEAVES}",
    "Projections": "start index coefficient fill",
    "PruningPath": "lam n_leaves risk",
    "PruningTable": "lam n_leaves error standard_error chosen",
    "Separators": "start feature threshold vote missing",
    "GradientBoostingModel": f"{_MODEL} trees bias training_loss validation_loss",
    "SubaggedProbitTrees": f"{_MODEL} trees {_LEAVES} alpha start error class_rows vote oob",
    "Subsets": "n_columns column member",
    "Table": "levels has_missing other order",
    "TrainingRecord": "certificate cost stages validation",
    "Tree": f"{_TREES} subset_column subset pruning",
    "WeightedVote": f"{_MODEL} models alpha bias error",
}
FIELDS["BinnedValues"] = FIELDS["BinnedColumns"]


#: Numbers for which NumPy's vectorised functions are used, in models that depend on no others.
ROUNDED = "certificate impurity training_loss validation_loss log_loss brier predict_proba"


def digest(model: Any, tables: Sequence[Any] = ()) -> str:
    """Return a digest of a model, or of what else FIELDS lists, and of its answers to tables."""
    return digests(model, tables)[0]


def digests(model: Any, tables: Sequence[Any] = ()) -> tuple[str, str]:
    """Return the digest, and that without numbers which NumPy's functions have rounded."""
    full, reduced, rounded = hashlib.sha256(), hashlib.sha256(), ROUNDED.split()
    for name, value in [*parts("", model), *answers(model, tables)]:
        content = f"{name}\n".encode() + _content(value)
        full.update(content)
        if name.split(".")[-1].split(" ")[0] not in rounded:
            reduced.update(content)
    return full.hexdigest()[:24], reduced.hexdigest()[:24]


def parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield each array, number and text of a model under the path by which digests know it."""
    if value is None:
        return
    if isinstance(value, list | tuple):
        for k, item in enumerate(value):
            yield from parts(f"{name}[{k}]", item)
    elif isinstance(value, np.ndarray | np.generic | bool | int | float | str):
        yield name, value
    else:
        kind = RENAMED_KINDS.get(type(value).__name__, type(value).__name__)
        for field in sorted(FIELDS[kind].split()):
            known = RENAMED_IN.get((kind, field), RENAMED.get(field, field))
            part = getattr(value, known)
            yield from parts(f"{name}.{field}", VOTES[part] if known == "voting" else part)


def answers(model: Any, tables: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield what functions of a model return of each table; a refusal is an answer, too."""
    questions = {
        "decision_function": pb.decision_function,
        "predict": pb.predict,
        "predict_proba": pb.predict_proba,
    }
    if any(name in (".answer", ".sigma") for name, _ in parts("", model)):
        questions["expected"] = partial(pb.decision_function, route="expected")
    for k, X in enumerate(tables):
        for name, ask in questions.items():
            try:
                answer = ask(model, X)
            except (NotImplementedError, TypeError, ValueError):
                answer = "refused"
            yield f"{name} {k}", answer


def _content(value: Any) -> bytes:
    """Return shape and values: numbers as eight bytes each, whatever their size is in memory."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        return json.dumps(array.tolist()).encode()
    dtype = "<f8" if array.dtype.kind == "f" else "<i8"
    return f"{dtype} {array.shape}".encode() + np.ascontiguousarray(array, dtype).tobytes()
