"""One mutated file: it is refused, or it is a model that works."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import pboost as pb
from fuzz import functions
from fuzz.corpus import Parts, corpus
from fuzz.draw import Generator
from fuzz.functions import answers, call_some, check_alone, check_answers, check_same, check_threads
from fuzz.mutations import damaged, hostile, mutated
from fuzz.relations import loaded, outcome
from fuzz.report import Finding, place
from pboost.models import ModelFileError

#: One file of so many is made to take memory.
EVERY, HOSTILE = 64, 9
#: What a file that is refused may take: so many times its size, and these bytes.
MULTIPLE, FREE = 10, 16_000_000
#: Functions of a model that are called of each.
FUNCTIONS_TRIED = 4
#: Models of more columns are asked about rows that do not fit.
MOST_COLUMNS = 200
#: Of products of matrices a row alone may differ by rounding.
MATRICES = 1e-9
EXTREMES = (0.0, -0.0, 1e300, -1e300, 5e-324, -1e-300, 1.7e308, 1.0, -3.5)


def case(seed: int, counts: Counter[str]) -> None:
    """Mutate a file, load it, and look at the model from all sides."""
    rng = np.random.default_rng([seed, 2])
    files = corpus(functions.FOLDER)
    parts = files[seed % len(files)]
    counts[parts.kind] += 1
    how, log = rng.random(), ["nothing"]
    content = parts.content
    is_hostile = seed % EVERY == HOSTILE
    if is_hostile:
        parts = files[int(rng.integers(len(files)))]
        content, log = hostile(rng, parts)
    elif how < 0.04:
        content, log = damaged(rng, content), ["bytes"]
    elif how < 0.97:
        content, log = mutated(rng, parts)
    path = Path(functions.FOLDER) / "mutated.npz"
    path.write_bytes(content)
    try:
        try:
            model = load_within(path) if is_hostile else pb.load(path)
        except ModelFileError:
            counts["refused"] += 1
            if content == parts.content:
                raise Finding("load", "refuses the file of a model") from None
            return
        except Exception as error:
            what = f"{type(error).__name__}: {str(error)[:200]} (from {place(error)})"
            raise Finding("load", what) from error
        counts["loaded"] += 1
        look_at(rng, model, parts, content)
    except Finding as finding:
        text = f"{finding.what} [{parts.kind}: {'; '.join(log)}]"
        raise Finding(finding.where, text) from finding


def load_within(path: Path) -> Any:
    """Return the model of a file; a refused one must not have taken much memory."""
    maximum = MULTIPLE * path.stat().st_size + FREE
    tracemalloc.start()
    try:
        return pb.load(path)
    except ModelFileError as error:
        if tracemalloc.get_traced_memory()[1] > maximum:
            size, taken = path.stat().st_size, tracemalloc.get_traced_memory()[1]
            raise Finding("load", f"a refused file of {size} bytes took {taken}: {error}") from None
        raise
    finally:
        tracemalloc.stop()


def look_at(rng: Generator, model: Any, parts: Parts, content: bytes) -> None:
    """Call the functions of a loaded model; what it says must be in order."""
    X, y = rows_for(rng, model)
    if content == parts.content:
        check_untouched(model, X, content)
    actual = answers(model, X)
    check_answers(model, X, actual)
    tolerance = MATRICES if "probit" in parts.kind or "sbpmt" in parts.kind else 0.0
    check_alone(model, X, actual, rng, tolerance)
    check_threads(model, X, actual, rng)
    call_some(model, X, y, rng, FUNCTIONS_TRIED)
    check_same("asked again", actual, answers(model, X))
    if rng.random() < 0.3:
        again = loaded(model)
        check_same("saved and loaded", outcome(model, X), outcome(again, X))


def check_untouched(model: Any, X: np.ndarray, content: bytes) -> None:
    """Saving what was loaded gives the bytes that were loaded."""
    path = Path(functions.FOLDER) / "again.npz"
    pb.save(model, path)
    if path.read_bytes() != content:
        raise Finding("save", "a loaded model gives another file")


def rows_for(rng: Generator, model: Any) -> tuple[np.ndarray, Any]:
    """Return rows near the thresholds of a model, and labels of its own."""
    d = getattr(model, "n_features", None)
    if not isinstance(d, int):
        d = next((m.n_features for m in flat(model) if hasattr(m, "n_features")), 3)
    n = int(rng.choice([1, 3, 9, 17]))
    X = rng.normal(size=(n, d if 0 < d <= MOST_COLUMNS else 3)).round(1)
    cuts = np.concatenate(
        [np.ravel(m.threshold) for m in flat(model) if hasattr(m, "threshold")] or [np.zeros(1)]
    )
    cuts = cuts[np.isfinite(cuts)]
    known = rng.random(X.shape)
    if len(cuts):
        X = np.where(known < 0.4, rng.choice(cuts, X.shape), X)
    if rng.random() < 0.3:
        X = np.where(known > 0.9, rng.choice(EXTREMES, X.shape), X)
    labels = getattr(model, "classes", None)
    return X, rng.normal(size=n) if labels is None else labels[rng.integers(0, len(labels), n)]


def flat(model: Any) -> list[Any]:
    """Return a model with its members and their trees."""
    actual = [model]
    for name in ("trees", "partition"):
        if hasattr(model, name):
            actual.append(getattr(model, name))
    for member in getattr(model, "models", ()):
        actual += flat(member)
    return actual
