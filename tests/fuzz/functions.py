"""Every function of a model: it works or refuses, and what it returns agrees with the rest."""

from __future__ import annotations

import contextlib
import io
import itertools
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pboost as pb
from fuzz.draw import Generator
from fuzz.report import Finding, judge
from pboost import threads
from pboost.__main__ import main

#: Stages that are looked at, and rows that are asked alone.
MOST_STAGES, ALONE = 6, 2
#: Largest difference of probabilities' sums from 1.
SUM = 1e-9


@contextlib.contextmanager
def threads_forced(n: int) -> Iterator[None]:
    """Make the smallest work worth threads, of which the machine seems to have `n`."""
    before = threads.MIN_CELLS, threads.available_threads
    threads.MIN_CELLS, threads.available_threads = 1, lambda: n
    try:
        yield
    finally:
        threads.MIN_CELLS, threads.available_threads = before


def stages(values: Iterator[np.ndarray]) -> list[np.ndarray]:
    return list(itertools.islice(values, MOST_STAGES))


def show(model: Any) -> str:
    """Return what ``python -m pboost show`` prints."""
    with scratch(model) as path, contextlib.redirect_stdout(io.StringIO()) as out:
        code = main(["show", path])
    if code not in (None, 0):
        raise Finding("show", f"ended with {code}")
    return out.getvalue()


#: Where files are written; a child process has its own.
FOLDER = "."


@contextlib.contextmanager
def scratch(model: Any) -> Iterator[str]:
    path = f"{FOLDER}/shown.npz"
    pb.save(model, path)
    yield path


def continued(model: Any, X: Any, y: Any, rng: Generator) -> Any:
    sizes = {
        pb.models.RandomForest: "n_estimators",
        pb.models.GradientBoostingModel: "n_estimators",
    }
    graphs = "n_estimators" if rng.random() < 0.5 else "max_nodes"
    more = {sizes.get(type(model), graphs): 2}
    return pb.continue_fit(model, X, y, **more)


def one_row(X: np.ndarray) -> np.ndarray:
    return X[0] if len(X) else X


Call = Callable[[Any, np.ndarray, Any, Generator], Any]
#: All functions of a model: given a model, rows, labels of these and a source of randomness.
FUNCTIONS: dict[str, Call] = {
    "expected": lambda m, X, y, rng: pb.decision_function(m, X, "expected"),
    "sample": lambda m, X, y, rng: pb.decision_function(m, X, "sample", rng=1, draws=2),
    "expected, sigma": lambda m, X, y, rng: pb.decision_function(m, X, "expected", sigma=0.5),
    "staged_decision_function": lambda m, X, y, rng: stages(pb.staged_decision_function(m, X)),
    "staged_predict": lambda m, X, y, rng: stages(pb.staged_predict(m, X)),
    "staged_predict_proba": lambda m, X, y, rng: stages(pb.staged_predict_proba(m, X)),
    "prediction_cost": lambda m, X, y, rng: pb.prediction_cost(m, X),
    "cost in features": lambda m, X, y, rng: pb.prediction_cost(m, X, "features"),
    "cost in stumps": lambda m, X, y, rng: pb.prediction_cost(m, X, "stumps"),
    "certificate": lambda m, X, y, rng: pb.certificate(m),
    "certificate of data": lambda m, X, y, rng: pb.certificate(m, X, y),
    "describe": lambda m, X, y, rng: pb.describe(m),
    "show": lambda m, X, y, rng: show(m),
    "explain": lambda m, X, y, rng: str(pb.explain(m, one_row(X))),
    "shap_values": lambda m, X, y, rng: pb.shap_values(m, X),
    "shap_values of rows": lambda m, X, y, rng: pb.shap_values(m, X, background=X),
    "interactions": lambda m, X, y, rng: pb.shap_values(
        m, X, background=X, method="path_dependent", interactions=True
    ),
    "reach": lambda m, X, y, rng: pb.inspection.reach(m, X),
    "reach by class": lambda m, X, y, rng: pb.inspection.reach(m, X, y),
    "apply": lambda m, X, y, rng: pb.inspection.apply(m, X),
    "decision_path": lambda m, X, y, rng: pb.inspection.decision_path(m, X),
    "importances": lambda m, X, y, rng: pb.feature_importances(m),
    "importances by count": lambda m, X, y, rng: pb.feature_importances(m, "count"),
    "permutation": lambda m, X, y, rng: pb.inspection.permutation_importance(
        m, X, y, n_repeats=1, rng=0
    ),
    "margins": lambda m, X, y, rng: pb.inspection.margins(m, X, y),
    "normalized_margins": lambda m, X, y, rng: pb.inspection.normalized_margins(m, X, y),
    "margin_error": lambda m, X, y, rng: pb.inspection.margin_error(m, X, y, [-0.5, 0.3]),
    "margin_bound": lambda m, X, y, rng: pb.inspection.margin_bound(m, X, y, 0.5),
    "margin_curve": lambda m, X, y, rng: pb.inspection.margin_curve(m, X, y, [0.0, 0.5]),
    "coefficients": lambda m, X, y, rng: str(pb.inspection.coefficients(m)),
    "coefficients of rows": lambda m, X, y, rng: str(pb.inspection.coefficients(m, X)),
    "truncate": lambda m, X, y, rng: pb.models.truncate(m, int(rng.integers(1, 4))),
    "prune": lambda m, X, y, rng: pb.prune(m, float(rng.choice([0.0, 0.1, 1e9]))),
    "cost_complexity_pruning_path": lambda m, X, y, rng: pb.models.cost_complexity_pruning_path(m),
    "cost_complexity_pruning_path of data": lambda m, X, y, rng: (
        pb.models.cost_complexity_pruning_path(m, X, y)
    ),
    "continue_fit": continued,
    "repr": lambda m, X, y, rng: repr(m),
    "pickle": lambda m, X, y, rng: pickle.loads(pickle.dumps(m)),
    "validate": lambda m, X, y, rng: m.validate() if hasattr(m, "validate") else None,
    "n_nodes": lambda m, X, y, rng: m.n_nodes,
}


def attempt(name: str, call: Callable[[], Any]) -> Any:
    """Return what a function returns, None where it refuses in order."""
    try:
        return call()
    except Exception as error:
        judge(error, name)
        return None


def call_some(model: Any, X: np.ndarray, y: Any, rng: Generator, max_calls: int) -> None:
    """Call some functions of a model, drawn at random."""
    names = list(FUNCTIONS)
    for k in rng.permutation(len(names))[:max_calls].tolist():
        name = names[k]
        actual = attempt(name, lambda name=name: FUNCTIONS[name](model, X, y, rng))
        check_returned(name, actual, model, X)


#: The largest answers of functions whose names begin so; none is negative.
FINITE = np.finfo(float).max
RANGES = {
    "cost": FINITE,
    "prediction_cost": FINITE,
    "certificate": np.inf,
    "reach": 1 + SUM,
    "margin_error": 1 + SUM,
    "margin_curve": 1 + SUM,
}


def check_returned(name: str, answer: Any, model: Any, X: np.ndarray) -> None:
    """Check what must hold of single answers."""
    if answer is None:
        return
    if name == "staged_predict_proba":
        for share in answer:
            check_shares(name, share)
    elif name == "truncate" and hasattr(model, "record") and answer.n_nodes > model.n_nodes:
        raise Finding(name, "longer than the model")
    limit = next((maximum for start, maximum in RANGES.items() if name.startswith(start)), None)
    if limit is None:
        return
    if not np.all((answer >= 0) & (answer <= limit)):
        raise Finding(name, f"beyond [0, {limit}]: {answer}")
    if limit == FINITE and answer.shape != (len(X),):
        raise Finding(name, f"costs {answer}")


def check_shares(name: str, share: np.ndarray) -> None:
    """Check that rows are probabilities that add up to 1."""
    if not np.isfinite(share).all():
        raise Finding(name, "probabilities that are not finite")
    if not ((share >= 0) & (share <= 1)).all():
        raise Finding(name, f"probabilities beyond [0, 1]: {share.min()!r}, {share.max()!r}")
    if len(share) and not np.abs(share.sum(axis=1) - 1).max() <= SUM:
        raise Finding(name, f"probabilities that add up to {share.sum(axis=1).tolist()}")


def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
    """Return the predictions, probabilities and decision values, as far as there are any."""
    actual = {
        "predict": attempt("predict", lambda: pb.predict(model, X)),
        "predict_proba": attempt("predict_proba", lambda: pb.predict_proba(model, X)),
        "decision_function": attempt("decision_function", lambda: pb.decision_function(model, X)),
    }
    return {name: value for name, value in actual.items() if value is not None}


def check_answers(model: Any, X: np.ndarray, returned: dict[str, np.ndarray]) -> None:
    """Check that these are what they are called, and agree with one another."""
    n, label, share = len(X), returned.get("predict"), returned.get("predict_proba")
    for name, value in returned.items():
        if len(value) != n:
            raise Finding(name, f"{len(value)} answers for {n} rows")
        if value.dtype.kind == "f" and name != "predict" and not np.isfinite(value).all():
            raise Finding(name, "answers that are not finite")
    if share is not None:
        check_shares("predict_proba", share)
        if label is None:
            raise Finding("predict", "refused where predict_proba is not")
        best = np.asarray(model.classes)[np.argmax(share, axis=1)]
        if not (best == label).all():
            row = int(np.flatnonzero(best != label)[0])
            raise Finding("predict", f"{label[row]!r} with probabilities {share[row].tolist()}")
    elif label is not None and label.dtype.kind == "f" and not np.isfinite(label).all():
        raise Finding("predict", "numbers that are not finite")


def check_same(
    where: str, first: dict[str, np.ndarray], second: dict[str, np.ndarray], tolerance: float = 0.0
) -> None:
    """Check that two sets of answers are the same: bits, or to a relative tolerance."""
    if first.keys() != second.keys():
        raise Finding(where, f"answers {sorted(first)} and {sorted(second)}")
    for name in first:
        value, other_value = np.asarray(first[name]), np.asarray(second[name])
        if tolerance and name == "certificate":
            # Nodes of next to no effect can be more or fewer.
            value, other_value = np.ravel(value)[-1:], np.ravel(other_value)[-1:]
        if value.shape != other_value.shape:
            raise Finding(where, f"{name}: shapes {value.shape} and {other_value.shape}")
        if value.tobytes() == other_value.tobytes():
            continue
        if tolerance and (name == "cost" or (name == "predict" and value.dtype.kind != "f")):
            continue
        if not (tolerance and value.dtype.kind == "f" and close(value, other_value, tolerance)):
            place = np.argwhere(value != other_value)[:1].tolist()
            raise Finding(where, f"{name} differs at {place}: {worst(value, other_value)}")


def close(first: np.ndarray, second: np.ndarray, tolerance: float) -> bool:
    with np.errstate(all="ignore"):
        return bool(
            np.allclose(first, second, rtol=tolerance, atol=tolerance * 1e-2, equal_nan=True)
        )


def worst(first: np.ndarray, second: np.ndarray) -> str:
    differs = np.flatnonzero((first != second).ravel())
    if not len(differs):
        return "signs of zeros"
    place = int(differs[0])
    return f"{first.ravel()[place]!r} and {second.ravel()[place]!r}"


def check_alone(model: Any, X: np.ndarray, returned: Any, rng: Generator, tolerance: float) -> None:
    """Check that a row is told the same alone as among others."""
    for row in rng.permutation(len(X))[:ALONE].tolist():
        among = {name: value[row : row + 1] for name, value in returned.items()}
        alone = answers(model, X[row : row + 1])
        # What is refused of many rows need not be of each.
        alone = {name: value for name, value in alone.items() if name in among}
        check_same("one row alone", among, alone, tolerance)


def check_threads(model: Any, X: np.ndarray, returned: Any, rng: Generator) -> None:
    """Check that the number of threads changes no answer."""
    with threads_forced(int(rng.choice([2, 4, 8]))):
        check_same("threads", returned, answers(model, X))
