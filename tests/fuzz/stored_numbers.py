"""Every number that a model stores, computed anew from the model and its training rows.

``python tests/fuzz/stored_numbers.py --count 20000`` fits that many small random problems, each
with the builder that its number chooses, and compares. Weights go over sixty decades.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_ndtr

if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != here]
    sys.path.insert(0, str(here.parent))

import pboost as pb
from fuzz import builders
from fuzz.builders import GROWTHS, Fit
from fuzz.draw import Generator, Problem
from fuzz.learners import pick, some, table
from fuzz.report import is_own
from pboost.data.targets import IMPURITIES

#: Relative difference up to which two numbers are the same.
CLOSE = 1e-9
#: Certificates below this are not compared: kernels keep weights from becoming subnormal.
LEAST = 1e-200
#: Errors on validation rows are sums of weights in fixed point, of 60 bits.
LEAST_ERROR = 1e-17
#: Decades over which weights go.
DECADES = 60
#: What decision graphs of two classes are grown of, where answers can be computed anew.
CERTAIN = ("stumps", "stumps", "stumps", "affine", "linear", "separators", "gaussian")


def problem(rng: Generator, n_classes: int, *, holes: bool) -> Problem:
    """Draw a few rows, many of them equal, of so many classes (0: a regression)."""
    n = max(int(rng.integers(3, 13 if rng.random() < 0.8 else 40)), n_classes)
    X = rng.integers(0, int(rng.integers(2, 9)), (n, int(rng.integers(1, 3)))).astype(float)
    if n_classes:
        y = rng.integers(0, n_classes, n)
        y[rng.permutation(n)[:n_classes]] = np.arange(n_classes)
    else:
        y = rng.normal(size=n).round(2) * 10.0 ** rng.choice([0, 0, 9, -9])
    if holes and rng.random() < 0.3:
        X[rng.random(X.shape) < 0.2] = np.nan
    frame = as_categories(rng, X) if holes and rng.random() < 0.4 else X
    return Problem(frame, y, weights(rng, n), n_classes)


def as_categories(rng: Generator, X: np.ndarray) -> pd.DataFrame:
    """Return the rows with a first column of categories."""
    first = pd.Categorical(np.where(np.isnan(X[:, 0]), None, X[:, 0].astype("U")))
    return pd.DataFrame({"a": first, **{str(j): X[:, j] for j in range(1, X.shape[1])}})


def weights(rng: Generator, n: int) -> np.ndarray | None:
    """Draw weights over sixty decades, or of a few sizes; or None."""
    kind = rng.random()
    if kind < 0.2:
        return None
    if kind < 0.3:
        return rng.integers(1, 5, n).astype(float)
    if kind < 0.6:
        return 10.0 ** rng.uniform(-DECADES, 0, n)
    sizes = 10.0 ** rng.uniform(-DECADES if kind < 0.8 else -20, 0, int(rng.integers(2, 4)))
    return sizes[rng.integers(0, len(sizes), n)] * rng.uniform(1, 2, n)


# Fits of decision graphs


def voting(rng: Generator) -> dict[str, Any]:
    chosen = {"smoothing": pick(rng, 0.0, 0.0, 0.0, 1e-300, 1e-12, 0.01, 1.0)}
    return some(rng, {**chosen, "learning_rate": pick(rng, 1.0, 1.0, 1.0, 0.5, 0.1)}, 0.8)


def graph(rng: Generator, p: Problem, draw: Callable[..., Fit]) -> Fit:
    """Draw a graph of two classes."""
    special = not isinstance(p.X, np.ndarray) or np.isnan(p.X).any()
    kinds = ("stumps", "stumps", "gaussian") if special else CERTAIN
    fit = draw(rng, p, pick(rng, *kinds))
    fit.options = {
        k: v for k, v in fit.options.items() if k not in ("validation", "n_iter_no_change")
    }
    return Fit(fit.row, fit.build, {**fit.options, **voting(rng)})


def many(rng: Generator, p: Problem) -> Fit:
    """Draw a graph of more classes than two."""
    weak = pb.weak.stump(
        search=pick(rng, "exact", "binned"), min_samples_leaf=pick(rng, 1, 1, 1, 2)
    )
    if isinstance(p.X, np.ndarray) and rng.random() < 0.2:
        weak = pb.weak.affine(n_directions=int(rng.integers(1, 9)), seed=int(rng.integers(9)))
    options = {**voting(rng), "weak_learner": weak}
    if rng.random() < 0.5:
        options["observation"] = table(rng)
    kind = int(rng.integers(3))
    if kind == 0:
        options["n_estimators"] = int(rng.integers(1, 9))
        return Fit("adaboost, many", pb.fit_adaboost, options)
    if kind == 1:
        chosen = {"growth": pick(rng, *GROWTHS), "max_depth": int(rng.integers(1, 6))}
        options |= {"max_nodes": int(rng.integers(1, 12)), **some(rng, chosen)}
        return Fit("boosted_tree, many", pb.fit_boosted_tree, options)
    shape = tuple(rng.integers(1, 6, int(rng.integers(1, 3))).tolist())
    return Fit("matryoshka, many", pb.fit_matryoshka, {"shape": shape, "join": "all", **options})


def real(rng: Generator, p: Problem) -> Fit:
    fit = builders.real(rng, p)
    return Fit(fit.row, fit.build, {**fit.options, **voting(rng)})


def topdown(rng: Generator, p: Problem) -> Fit:
    fit = builders.topdown(rng, p)
    return Fit(fit.row, fit.build, {**fit.options, **voting(rng)})


def stagewise(rng: Generator, p: Problem) -> Fit:
    fit = builders.stagewise(rng, p)
    return Fit(fit.row, fit.build, {k: v for k, v in fit.options.items() if k != "validation"})


def watched(rng: Generator, p: Problem, draw: Callable[[Generator, Problem], Fit]) -> Fit:
    """Draw a fit whose size is chosen by rows that are given: the same with other weights."""
    fit = draw(rng, p)
    options = {**fit.options, "n_iter_no_change": int(rng.integers(1, 9))}
    options["validation"] = p.X, p.y, weight_of(p)[::-1]
    return Fit(f"{fit.row}, validation", fit.build, options)


TWO, MANY, ANY = (2,), (3, 4, 5), (0, 0, 2, 3)
BUILDERS: dict[str, tuple[Callable[[Generator, Problem], Fit], tuple[int, ...]]] = {
    "adaboost": (partial(graph, draw=builders.adaboost), TWO),
    "boosted_tree": (partial(graph, draw=builders.boosted_tree), TWO),
    "matryoshka": (partial(graph, draw=builders.matryoshka), TWO),
    "matryoshka 2": (partial(graph, draw=builders.matryoshka), TWO),
    "oblique_tree": (builders.oblique, TWO),
    "topdown_tree": (topdown, TWO),
    "adaboost_real": (real, TWO),
    "many": (many, MANY),
    "many 2": (many, MANY),
    "many 3": (many, MANY),
    "cart": (builders.cart, ANY),
    "forest": (builders.forest, ANY),
    "bagging": (builders.bagging, ANY),
    "stagewise": (stagewise, (0, 2)),
    "samme": (builders.samme, (*TWO, *MANY)),
    "probitboost": (builders.probitboost, TWO),
    "probit_tree": (builders.probit_tree, TWO),
    "watched adaboost": (partial(watched, draw=partial(graph, draw=builders.adaboost)), TWO),
    "watched boosted_tree": (
        partial(watched, draw=partial(graph, draw=builders.boosted_tree)),
        TWO,
    ),
    "watched many": (partial(watched, draw=many), MANY),
    "watched stagewise": (partial(watched, draw=stagewise), (0, 2)),
}


#: Builders that take neither missing values nor categories.
TAME = ("oblique_tree", "bagging")

# What is compared


def differs(stored: float, found: float) -> bool:
    if max(abs(stored), abs(found)) < LEAST:
        return False
    return not abs(stored - found) <= CLOSE * max(abs(stored), abs(found))


def told(fit: Fit) -> dict[str, Any]:
    """Return what is to be said of the rows beside their weights."""
    observation = fit.options.get("observation")
    return {"sigma": observation.sigma} if getattr(observation, "kind", "") == "gaussian" else {}


def weight_of(p: Problem) -> np.ndarray:
    return np.ones(len(p.y)) if p.weight is None else p.weight


def costs(p: Problem, model: Any, more: dict[str, Any]) -> list[str]:
    """Compare the mean number of nodes evaluated, where all answers are exact."""
    if not (model.is_exact and hasattr(model, "next") and len(model.next)):
        return []
    stored = float(model.record.cost[-1])
    cost = pb.prediction_cost(model, p.X)
    anew = float(np.average(cost, weights=p.weight))
    return [f"cost: stored {stored!r}, recomputed {anew!r}"] if differs(stored, anew) else []


def nodes(fit: Fit, p: Problem, tree: Any) -> list[str]:
    """Compare weights, numbers of rows, values and impurities of the nodes of a tree."""
    actual, weight = [], weight_of(p)
    at = np.zeros((tree.n_nodes, len(p.y)), dtype=bool)
    for row, path in enumerate(pb.inspection.decision_path(tree, p.X)):
        at[path, row] = weight[row] > 0
    for node, here in enumerate(at):
        w, y = weight[here], p.y[here]
        share = w / w.max() / math.fsum(w / w.max())
        if p.n_classes:
            value = np.array([math.fsum(share[y == k]) for k in range(p.n_classes)])
            impurity, size = IMPURITIES[tree.settings["criterion"]](value[None])[0], 1.0
        else:
            value = math.fsum(share * y)
            impurity, size = math.fsum(share * (y - value) ** 2), float(np.abs(p.y).max())
        where = f"node {node}"
        if tree.n_rows[node] != here.sum():
            actual.append(f"{where}: {tree.n_rows[node]} rows stored, {here.sum()} found")
        if differs(float(tree.weight[node]), math.fsum(w)):
            actual.append(f"{where}: weight {tree.weight[node]!r}, found {math.fsum(w)!r}")
        if np.abs(tree.value[node] - value).max() > CLOSE * size:
            actual.append(f"{where}: value {tree.value[node]!r}, found {value!r}")
        if abs(tree.impurity[node] - impurity) > CLOSE * size**2:
            actual.append(f"{where}: impurity {tree.impurity[node]!r}, found {impurity!r}")
    return actual


def out_of_bag(fit: Fit, p: Problem, model: Any) -> list[str]:
    """Compare the error of what members say of rows out of their bags."""
    weight, seen = weight_of(p), model.oob.n_estimators > 0
    if not weight[seen].any():
        return [] if np.isnan(model.oob.error) else [f"error {model.oob.error!r} of no rows"]
    said = model.oob.prediction[seen]
    if p.n_classes:
        loss = model.classes[said.argmax(axis=1)] != p.y[seen]
    else:
        loss = (said - p.y[seen]) ** 2
    anew = float(np.average(loss, weights=weight[seen]))
    stored = float(model.oob.error)
    return [f"error {stored!r}, found {anew!r}"] if differs(stored, anew) else []


def loss_unit(p: Problem, value: np.ndarray, weight: np.ndarray | None) -> float:
    """Return to what mean losses are rounded, so that they do not depend on the order of rows.

    A row may have the largest weight and the largest loss: a sum of so many has 51 bits. Decision
    values of a regression have 52 bits of the largest target.
    """
    share = 1.0 / len(value) if weight is None else float(weight.max() / weight.sum())
    size = 0.0 if p.n_classes else 2.0**-48 * float(np.abs(p.y).max())
    return 2.0**-49 * len(value) * float(value.max()) * share + size**2


def losses(fit: Fit, p: Problem, model: Any) -> list[str]:
    """Compare the losses after each tree, in training and on rows given for validation."""
    target = np.where(p.y == model.classes[1], 1.0, -1.0) if p.n_classes else p.y
    loss, actual = pb.losses.check_loss(fit.options["loss"]), []
    kept = {"training": (model.training_loss, p.weight)}
    if model.validation_loss is not None:
        kept["validation"] = model.validation_loss, fit.options["validation"][2]
    for k, score in enumerate(pb.staged_decision_function(model, p.X), 1):
        value = loss.reported * loss.value(target, score)
        for name, (values, weight) in kept.items():
            anew, stored = float(np.average(value, weights=weight)), float(values[k])
            if abs(stored - anew) > max(loss_unit(p, value, weight), CLOSE * anew):
                actual.append(f"{name} loss {k}: stored {stored!r}, recomputed {anew!r}")
    return actual


def member_errors(p: Problem, model: Any) -> list[str]:
    """Compare the weighted error of each member of SAMME, for the weights of its round."""
    actual, weight = [], weight_of(p).copy()
    for k, (member, alpha) in enumerate(zip(model.models, model.alpha, strict=True)):
        wrong = pb.predict(member, p.X) != p.y
        anew = float(np.average(wrong, weights=weight))
        if differs(float(model.error[k]), anew):
            actual.append(f"error {k}: stored {model.error[k]!r}, recomputed {anew!r}")
        weight = weight / weight.max() * np.exp(alpha * wrong)
    return actual


def risks(p: Problem, model: Any) -> list[str]:
    """Compare the probit risk of a model, or of each leaf of a tree of two classes."""
    if len(model.classes) < 2:
        return []
    sign = np.where(p.y == model.classes[1], 1.0, -1.0)
    value, weight = -log_ndtr(sign * pb.decision_function(model, p.X)), weight_of(p)
    if isinstance(model, pb.models.ProbitTree):
        leaf = pb.inspection.apply(model.partition, p.X)
        stored, parts = model.risk[:, 0], [leaf == node for node in np.unique(leaf)]
    else:
        stored, parts = model.risk[-1:], [np.ones(len(p.y), dtype=bool)]
    actual = []
    for risk, rows in zip(stored.tolist(), parts, strict=True):
        anew = float(np.average(value[rows], weights=weight[rows]))
        if abs(risk - anew) > max(loss_unit(p, value[rows], weight[rows]), CLOSE * anew):
            actual.append(f"risk: stored {risk!r}, recomputed {anew!r}")
    return actual


def compared(fit: Fit, p: Problem, model: Any) -> list[str]:
    """Return what is wrong with the numbers of a model."""
    if isinstance(model, pb.models.Tree):
        return nodes(fit, p, model)
    if isinstance(model, pb.models.GradientBoostingModel):
        return losses(fit, p, model)
    if isinstance(model, pb.models.WeightedVote):
        return member_errors(p, model)
    if isinstance(model, pb.models.ProbitModel | pb.models.ProbitTree):
        return risks(p, model)
    if hasattr(model, "oob"):
        return out_of_bag(fit, p, model)
    return certificates(fit, p, model) + costs(p, model, told(fit))


def certificates(fit: Fit, p: Problem, model: Any) -> list[str]:
    """Compare the certificate of each stage, and the training error with the last."""
    actual, more = [], told(fit)
    record = model.record
    stages = range(1, model.n_nodes + 1) if hasattr(model, "next") else [len(model.mu)]
    if getattr(record, "stages", None) is not None:
        stages = record.stages.tolist()
    last = len(record.certificate) - 1
    for k in [0] if not last else stages:
        part = model if k == last else pb.models.truncate(model, k)
        anew = pb.certificate(part, p.X, p.y, sample_weight=p.weight, **more)
        stored = float(record.certificate[k])
        if differs(stored, anew):
            actual.append(f"certificate {k} of {last}: stored {stored!r}, recomputed {anew!r}")
    if record.validation is not None:
        wrong = pb.predict(model, p.X) != p.y
        anew = float(np.average(wrong, weights=fit.options["validation"][2]))
        stored = float(record.validation[model.n_nodes])
        if abs(stored - anew) > max(LEAST_ERROR, CLOSE * anew):
            actual.append(f"validation error: stored {stored!r}, recomputed {anew!r}")
    if getattr(model, "is_exact", True):
        wrong = pb.predict(model, p.X) != p.y
        error = float(np.average(wrong, weights=p.weight))
        bound = float(record.certificate[-1]) * max(p.n_classes, 2) / 2
        if error > bound * (1 + CLOSE) and error > LEAST:
            actual.append(f"training error {error!r} above the bound {bound!r}")
    return actual


def check(seed: int, only: str = "", name: str = "") -> tuple[str, list[str]]:
    """Return the row of a case, and what is wrong. Without a name, the seed chooses the builder."""
    rng = np.random.default_rng([seed, 2])
    name = name or list(BUILDERS)[seed % len(BUILDERS)]
    if only and not name.startswith(only):
        return "", []
    draw, kinds = BUILDERS[name]
    p = problem(rng, int(rng.choice(kinds)), holes=name not in TAME)
    fit = draw(rng, p)
    try:
        model = fit(p.X, p.y, p.weight)
    except (ValueError, NotImplementedError, TypeError) as error:
        if not is_own(error):
            raise
        return "refused", []
    return fit.row, compared(fit, p, model)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="how many cases")
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    parser.add_argument("--only", default="", help="builders whose name begins so")
    parser.add_argument("--show", type=int, default=2, help="findings shown of each kind")
    options = parser.parse_args()
    warnings.simplefilter("error")
    counts: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    began = time.process_time()
    for seed in range(options.seed, options.seed + options.count):
        try:
            row, actual = check(seed, options.only)
        except Exception as error:
            row = f"{type(error).__name__}"
            actual = [traceback.format_exc(limit=-3)]
        counts[row] += 1
        if actual:
            bad[row] += 1
            if bad[row] <= options.show:
                print(f"{seed} {row}:", *actual[:3], sep="\n    ", flush=True)
        if not row:
            del counts[row]
    took = time.process_time() - began
    print(f"{counts.total()} cases in {took:.0f} s of processor time, {bad.total()} wrong")
    for row, n in sorted(counts.items()):
        print(f"{n:8d} {bad[row]:8d} {row}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
