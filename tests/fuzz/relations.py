"""What must stay the same when the same problem is put in another way."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

import pboost as pb
from fuzz import functions
from fuzz.builders import Fit
from fuzz.draw import Generator, Problem, layout
from fuzz.functions import answers, attempt, threads_forced
from fuzz.report import Finding

#: The answers of two models to the same question; None where it cannot be put.
Pair = tuple[dict[str, Any], dict[str, Any]] | None
Relation = Callable[[Generator, Fit, Problem, Any, np.ndarray], Pair]
#: Columns are scaled by these powers of two, weights by those.
POWERS, WEIGHT_POWERS = 40, 900
#: Numbers of this size are not scaled.
LEAST, MOST = 1e-250, 1e250


def outcome(model: Any, X: Any) -> dict[str, Any]:
    """Return what a model says of rows, what it costs, and its certificate as it grew."""
    actual = answers(model, X)
    cost = attempt("prediction_cost", lambda: pb.prediction_cost(model, X))
    if cost is not None:
        actual["cost"] = cost
    record = getattr(model, "record", None)
    if record is not None:
        actual["certificate"] = record.certificate
    return actual


def both(model: Any, X: np.ndarray, other: Any, Z: Any) -> Pair:
    return outcome(model, X), outcome(other, Z)


# The same fit


def same_fit(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    return both(model, rows, fit(p.X, p.y, p.weight), rows)


def other_threads(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    with threads_forced(int(rng.choice([2, 4, 8]))):
        return both(model, rows, fit(p.X, p.y, p.weight), rows)


def other_layout(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    name, X = layout(rng, p.X)
    kept = X.copy() if isinstance(X, np.ndarray) else list(X)
    pair = both(model, rows, fit(X, p.y, p.weight), rows)
    if not np.array_equal(X, kept, equal_nan=True):
        raise Finding("layout", f"X ({name}) was changed")
    return pair


def other_labels(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    """Call the classes something else, in the same order."""
    if not p.n_classes:
        return None
    values, codes = np.unique(p.y, return_inverse=True)
    names = np.array(["k", "m", "q", "r"])[: len(values)]
    first, other = both(model, rows, fit(p.X, names[codes], p.weight), rows)
    first["predict"] = np.searchsorted(values, first["predict"])
    other["predict"] = np.searchsorted(names, other["predict"])
    return first, other


def sorted_columns(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    try:
        X = pb.data.sort_columns(p.X)
        actual = fit(X, p.y, p.weight)
    except TypeError:
        return None
    return both(model, rows, actual, rows)


# Storing


def loaded(model: Any) -> Any:
    """Return a model as it comes back from a file, and see that this gives the same file again."""
    path = f"{functions.FOLDER}/stored.npz"
    try:
        pb.save(model, path)
    except TypeError as error:
        if "functions" in str(error) or "cannot be stored" in str(error):
            return None
        raise
    with open(path, "rb") as file:
        before = file.read()
    loaded = pb.load(path)
    pb.save(loaded, path)
    with open(path, "rb") as file:
        if file.read() != before:
            raise Finding("file", "a loaded model gives another file")
    return loaded


def stored(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    actual = loaded(model)
    return None if actual is None else both(model, rows, actual, rows)


def pickled(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    try:
        text = pickle.dumps(model)
    except (AttributeError, pickle.PicklingError):  # functions within functions
        return None
    return both(model, rows, pickle.loads(text), rows)


# Certificates and growth


def certified(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    """Compute the certificate of the training rows anew."""
    if getattr(model, "record", None) is None or "validation" in fit.options:
        return None
    told = {}
    observation = fit.options.get("observation")
    if getattr(observation, "kind", "") == "gaussian":
        told["sigma"] = observation.sigma
    actual = attempt(
        "certificate", lambda: pb.certificate(model, p.X, p.y, sample_weight=p.weight, **told)
    )
    if actual is None:
        return None
    return {"certificate": np.array(pb.certificate(model))}, {"certificate": np.array(actual)}


def grown_on(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    """Fit a part, and let it grow on."""
    sizes = {
        "fit_adaboost": "n_estimators",
        "fit_boosted_tree": "max_nodes",
        "fit_random_forest": "n_estimators",
        "fit_gradient_boosting": "n_estimators",
    }
    name = sizes.get(fit.build.__name__, "")
    full = fit.options.get(name) or 0
    stops = ("validation", "target_certificate")
    if full < 2 or any(option in fit.options for option in stops):
        return None
    if fit.options.get("votes") == "symmetric":
        return None
    part = int(rng.integers(1, full))
    of_graphs = ("weak_learner", "observation")
    more = {name: full - part, **{o: fit.options[o] for o in of_graphs if o in fit.options}}
    start = fit(p.X, p.y, p.weight, **{name: part})
    if (len(start) if hasattr(start, "oob") else start.n_nodes) < part:  # it could not grow
        return None
    actual = attempt(
        "continue_fit",
        lambda: pb.continue_fit(start, p.X, p.y, sample_weight=p.weight, **more),
    )
    return None if actual is None else both(model, rows, actual, rows)


# Weights


def copied(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    """Give whole weights, and as many copies of the rows."""
    counted = (
        "min_samples_leaf",
        "min_samples_split",
        "validation",
        "subsample",
        "max_samples",
        "cv",
    )
    learner = fit.options.get("weak_learner")
    if any(name in fit.options for name in counted) or getattr(learner, "min_samples_leaf", 1) > 1:
        return None
    if least_share(fit):
        return None
    if np.ndim(getattr(fit.options.get("observation"), "sigma", 0.0)) == 2:
        return None
    k = rng.integers(0, 4, len(p.X))
    if len(np.unique(p.y[k > 0])) < len(np.unique(p.y)):
        return None
    first_model = fit(p.X, p.y, k.astype(float))
    return both(first_model, rows, fit(np.repeat(p.X, k, axis=0), np.repeat(p.y, k)), rows)


def weighed(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    """Multiply the weights by a power of two."""
    if "tol" in fit.options:  # a deviance in units of the weights
        return None
    weight = rng.integers(1, 5, len(p.X)).astype(float)
    if len(np.unique(p.y)) < 2:
        return None
    power = int(rng.integers(-WEIGHT_POWERS, WEIGHT_POWERS))
    first, other = (fit(p.X, p.y, np.ldexp(weight, k)) for k in (0, power))
    return both(first, rows, other, rows)


def without(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    """Leave out the rows of weight 0."""
    if p.weight is None or (p.weight > 0).all() or drawn_by_row(fit):
        return None
    if np.ndim(getattr(fit.options.get("observation"), "sigma", 0.0)) == 2:
        return None
    kept = p.weight > 0
    return both(model, rows, fit(p.X[kept], p.y[kept], p.weight[kept]), rows)


def least_share(fit: Fit) -> float:
    """Return the least share of a side: one can have just that, but for rounding."""
    learner = fit.options.get("weak_learner")
    return float(
        fit.options.get("min_weight_fraction", getattr(learner, "min_weight_fraction", 0.0))
    )


def drawn_by_row(fit: Fit) -> bool:
    drawn = ("validation", "subsample", "max_samples", "cv", "n_estimators")
    return any(name in fit.options for name in drawn)


# Columns


def scaled(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    """Multiply each column by a power of two of its own."""
    return by_powers(fit, p, model, rows, rng.integers(-POWERS, POWERS, p.X.shape[1]))


def in_units(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    """Multiply all columns by the same power of two."""
    return by_powers(fit, p, model, rows, np.full(p.X.shape[1], rng.integers(-POWERS, POWERS)))


def by_powers(fit: Fit, p: Problem, model: Any, rows: np.ndarray, powers: np.ndarray) -> Pair:
    size = np.abs(np.vstack([p.X, rows]))
    if not ((size == 0) | ((size > LEAST) & (size < MOST))).all():
        return None
    if "functions" in fit.row or "oracles" in fit.row:
        return None
    options = fit.options
    if "gaussian" in fit.row:
        sigma = np.asarray(options["observation"].sigma)
        options = {**options, "observation": pb.observation.gaussian(np.ldexp(sigma, powers))}
    other = Fit(fit.row, fit.build, options, fit.first)
    actual = other(np.ldexp(p.X, powers), p.y, p.weight)
    return both(model, rows, actual, np.ldexp(rows, powers))


def with_constants(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    """Put constant columns between the others."""
    if sigma_by_column(fit):
        return None
    d = p.X.shape[1]
    places = np.sort(rng.integers(0, d + 1, int(rng.integers(1, 3))))
    value = float(rng.choice([0.0, -1.5]))
    X, Z = (np.insert(A, places, value, axis=1) for A in (p.X, rows))
    return both(model, rows, fit(X, p.y, p.weight), Z)


def sigma_by_column(fit: Fit) -> bool:
    return bool(np.ndim(getattr(fit.options.get("observation"), "sigma", 0.0)))


def permuted(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    """Put the columns in another order, with weights that have no ties; ask training rows."""
    learner = fit.options.get("weak_learner")
    criteria = [fit.options.get(name) for name in ("criterion", "impurity")]
    if sigma_by_column(fit) or drawn_by_row(fit):
        return None
    if "error" in (*criteria, getattr(learner, "criterion", "")):
        return None
    order = rng.permutation(p.X.shape[1])
    weight = rng.uniform(1, 2, len(p.X))
    first, other = fit(p.X, p.y, weight), fit(p.X[:, order], p.y, weight)
    return both(first, p.X, other, p.X[:, order])


def shuffled(rng: Generator, fit: Fit, p: Problem, model: Any, rows: np.ndarray) -> Pair:
    """Put the rows in another order, on which some sums of weights depend."""
    if least_share(fit) and ("matryoshka" in fit.row or "gaussian" in fit.row):
        return None
    if np.ndim(getattr(fit.options.get("observation"), "sigma", 0.0)) == 2 or drawn_by_row(fit):
        return None
    order = rng.permutation(len(p.X))
    weight = None if p.weight is None else p.weight[order]
    return both(model, rows, fit(p.X[order], p.y[order], weight), rows)


RELATIONS: dict[str, Relation] = {
    "again": same_fit,
    "threads": other_threads,
    "layout": other_layout,
    "labels": other_labels,
    "sorted": sorted_columns,
    "file": stored,
    "pickle": pickled,
    "certificate": certified,
    "continued": grown_on,
    "copies": copied,
    "weights": weighed,
    "absent": without,
    "rows": shuffled,
    "permuted": permuted,
    "constants": with_constants,
    "scaled": scaled,
    "units": in_units,
}
