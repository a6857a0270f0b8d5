"""Defaults of all fit functions: the candidates, and a comparison with other libraries.

Run as ``python defaults.py --data folder``, or set the environment variable PBOOST_DATA to the
folder, with files as described in the module ``published_table``. Each data set has at most 2,000
rows, drawn once, and its categories are one-hot encoded. The same five folds are used to compare
candidates for the defaults of each fit function, and to compare ``fit_x(X, y)`` with the defaults
of scikit-learn and lightgbm. The defaults were chosen on some of the data sets; the others were
kept apart. Prints reStructuredText tables; ``--rst file`` also writes them to a file. With
``--results file`` outcomes are stored and reused by the next run.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oblique_trees import read, table
from table_command import Results, arguments, publish, stored, write

import pboost as pb

FOLDS, QUICK_FOLDS = 5, 2
MOST_ROWS, QUICK_ROWS = 2000, 200
SEED = 0
#: Probabilities are clipped at this value in the log loss.
LEAST = 1e-6
#: Options of probit trees from the text of the paper, and the options of the published code that
#: apply to single trees.
PAPER = {
    "min_samples_split": 2,
    "min_samples_leaf": 20,
    "complexity": 0.0,
    "tol": None,
    "safeguard": True,
}
PUBLISHED_TREE = ("min_samples_split", "min_samples_leaf", "complexity", "tol", "safeguard")
#: Files by kind of target: data sets used to choose the defaults, and data sets kept apart. For
#: regression, a file and its target column.
TWO, MANY, NUMBERS = "two classes", "more classes", "regression"
SETS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    TWO: (
        (
            "bupa",
            "ionosphere",
            "breast_cancer_wdbc",
            "pima",
            "raisin",
            "biodegradation",
            "banknote",
            "tic_tac_toe",
            "xd6_noise10",
            "spambase",
            "magic04",
            "electricity",
        ),
        ("breast_cancer", "diabetes_early", "led_even_17", "higgs_sample", "adult_census", "skin"),
    ),
    MANY: (
        ("glass", "balance_scale", "obesity", "waveform_noise", "satimage"),
        ("iris", "pendigits", "nursery"),
    ),
    NUMBERS: (
        ("electricity/nswprice", "obesity/Weight", "pima/BMI", "magic04/fWidth", "friedman"),
        ("bupa/gammagt", "banknote/entropy", "adult_census/age"),
    ),
}

#: Names of data sets in table headers.
SHORT = {
    "breast_cancer_wdbc": "wdbc",
    "biodegradation": "biodeg",
    "tic_tac_toe": "tic-tac",
    "xd6_noise10": "xd6",
    "electricity": "electr",
    "breast_cancer": "breast",
    "diabetes_early": "diabetes",
    "led_even_17": "led",
    "higgs_sample": "higgs",
    "adult_census": "adult",
    "balance_scale": "balance",
    "waveform_noise": "waveform",
    "electricity/nswprice": "price",
    "obesity/Weight": "Weight",
    "pima/BMI": "BMI",
    "magic04/fWidth": "fWidth",
    "bupa/gammagt": "gammagt",
    "banknote/entropy": "entropy",
    "adult_census/age": "age",
}
#: The candidates that were chosen as defaults.
CHOSEN = {
    "fit_adaboost: learning_rate 1.0, rounds 200",
    "fit_real_adaboost: learning_rate 1.0, rounds 400",
    "fit_boosted_tree: smoothing 0.0001, nodes 31",
    "fit_topdown_tree: smoothing 0.0001, nodes 31",
    "fit_oblique_tree: max_depth 4, stumps 50",
    "fit_matryoshka: shape (8, 8)",
    "fit_matryoshka, greedy: nodes 128",
    'fit_matryoshka, join="all": learning_rate 0.3, shape (8, 30)',
    "fit_probitboost: steps 100",
    "fit_samme: max_depth 3, learning_rate 1.0, rounds 200",
    "fit_probit_tree: the paper's",
    "fit_sbpmt: the published code's, one_vs_all tree",
    "fit_gradient_boosting: max_depth 3, learning_rate 0.1, steps 100",
}


@dataclass(frozen=True)
class DataSet:
    """A data set, with the fold in which each row is tested."""

    name: str
    kind: str
    is_apart: bool
    X: NDArray[np.float64]
    y: NDArray[Any]
    fold: NDArray[np.intp]


#: Predictions of a learner by name of the size: probabilities, or numbers.
Said = Iterator[tuple[str, NDArray[np.float64]]]
Learner = Callable[[NDArray[np.float64], NDArray[Any], NDArray[np.float64]], Said]
# Results are means over the folds of the error in %, the log loss and the fit time in ms, by data
# set and learner.


# Data


def data_sets(folder: Path, quick: bool) -> list[DataSet]:
    """Return the data sets whose files exist."""
    result = []
    for kind, groups in SETS.items():
        for is_apart, names in enumerate(groups):
            for name in names[: 1 if quick else None]:
                data = _friedman() if name == "friedman" else _of_file(folder, name)
                if data is not None:
                    result.append(_dealt(name, kind, bool(is_apart), *data, quick))
    return result


def _friedman() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Friedman's first problem."""
    rng = np.random.default_rng(SEED)
    X = rng.uniform(size=(1000, 10))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, y + 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=1000)


def _of_file(folder: Path, name: str) -> tuple[NDArray[np.float64], NDArray[Any]] | None:
    """Return the complete rows of a file as features and target."""
    file, _, target = name.partition("/")
    path = folder / f"{file}.csv.gz"
    if not target:
        data = read(path, drop=True)
        return None if isinstance(data, str) else data
    if not path.exists():
        return None
    with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
        names, *lines = csv.reader(text)
    kept = [j for j, item in enumerate(names) if "__cat" not in item and item != "target"]
    X = np.array([[line[j] for j in kept] for line in lines if "" not in line], dtype=np.float64)
    j = [names[j] for j in kept].index(target)
    return np.delete(X, j, axis=1), X[:, j]


def _dealt(
    name: str, kind: str, is_apart: bool, X: NDArray[np.float64], y: NDArray[Any], quick: bool
) -> DataSet:
    """Return a data set of limited size with stratified folds."""
    rng = np.random.default_rng(SEED)
    maximum, folds = (QUICK_ROWS, QUICK_FOLDS) if quick else (MOST_ROWS, FOLDS)
    if len(y) > maximum:
        rows = np.sort(rng.choice(len(y), maximum, replace=False))
        X, y = X[rows], y[rows]
    if kind != NUMBERS:
        labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        kept = counts[codes] >= folds  # every class is in every fold
        X, y = X[kept], y[kept]
        if kind == TWO:
            y = y == labels[1]
    order = rng.permutation(len(y))
    if kind != NUMBERS:
        order = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(len(y), dtype=np.intp)
    fold[order] = np.arange(len(y)) % folds
    return DataSet(name, kind, is_apart, X, y, fold)


# Learners


def own(fit: Callable[..., Any], X: Any, y: Any, new: Any) -> Said:
    """Predict with a model of pboost."""
    model = fit(X, y)
    yield "", pb.predict(model, new) if model.classes is None else pb.predict_proba(model, new)


def staged(fit: Callable[..., Any], sizes: tuple[int, ...], X: Any, y: Any, new: Any) -> Said:
    """Predict with the first stages of the largest model, at each size."""
    model = fit(X, y)
    is_number = model.classes is None
    stages = (pb.staged_predict if is_number else pb.staged_predict_proba)(model, new)
    said, done = next(own(lambda *_: model, X, y, new))[1], 0
    for size in sizes:
        for stage in islice(stages, size - done):
            said = stage
        done = size
        yield f" {size}", np.array(said)


def peer(make: Callable[[], Any], X: Any, y: Any, new: Any) -> Said:
    """Predict with an estimator of another library."""
    estimator = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of other libraries
        estimator.fit(X, y)
        yield "", (getattr(estimator, "predict_proba", None) or estimator.predict)(new)


def peers(kind: str) -> dict[str, Learner]:
    """Return the learners of the other libraries that are installed, with default options."""
    of = "Regressor" if kind == NUMBERS else "Classifier"
    makers = {
        f"scikit-learn {name}": (f"sklearn.{module}", f"{name}{of}", options)
        for module, name, options in (
            ("tree", "DecisionTree", {}),
            ("ensemble", "RandomForest", {"n_jobs": 1}),
            ("ensemble", "AdaBoost", {}),
            ("ensemble", "HistGradientBoosting", {}),
        )
    }
    makers["lightgbm"] = ("lightgbm", f"LGBM{of}", {"n_jobs": 1, "verbose": -1})
    result: dict[str, Learner] = {}
    for name, (module, maker, options) in makers.items():
        try:
            make = getattr(importlib.import_module(module), maker)
        except ImportError:
            continue
        result[name] = partial(peer, partial(make, random_state=SEED, **options))
    return result


def with_defaults(kind: str) -> dict[str, Learner]:
    """Return ``fit_x(X, y)`` of all fit functions for this kind of target, with seeds.

    They use one thread for comparable times, and set `task` if it is required.
    """
    task = {"task": "regression"} if kind == NUMBERS else {}
    fits: dict[str, Callable[..., Any]] = {
        "fit_cart": partial(pb.fit_cart, **task),
        "fit_pruned_cart": partial(pb.fit_pruned_cart, rng=SEED, **task),
        "fit_random_forest": partial(pb.fit_random_forest, rng=SEED, **task),
        "fit_bagging of fit_cart": partial(pb.fit_bagging, pb.fit_cart, rng=SEED, **task),
    }
    if kind != NUMBERS:
        fits["fit_samme"] = pb.fit_samme
        fits["fit_probit_tree"] = pb.fit_probit_tree
        fits["fit_sbpmt"] = partial(pb.fit_sbpmt, rng=SEED)
    if kind != MANY:
        fits["fit_gradient_boosting"] = pb.fit_gradient_boosting
    two = (
        "adaboost",
        "real_adaboost",
        "boosted_tree",
        "topdown_tree",
        "oblique_tree",
        "matryoshka",
        "probitboost",
    )
    if kind == TWO:
        fits |= {f"fit_{name}": getattr(pb, f"fit_{name}") for name in two}
        fits['fit_matryoshka, join="all"'] = partial(pb.fit_matryoshka, join="all")
        fits["fit_bagging of fit_boosted_tree"] = partial(
            pb.fit_bagging, pb.fit_boosted_tree, rng=SEED
        )
    if kind == MANY:
        for name in ("adaboost", "boosted_tree", "matryoshka", "gradient_boosting"):
            fit = getattr(pb, f"fit_{name}")
            fits[f"fit_one_vs_rest of fit_{name}"] = partial(pb.fit_one_vs_rest, fit)
    return {name: partial(own, fit) for name, fit in fits.items()}


Candidates = dict[str, dict[str, Learner]]
RATES, ROUNDS = (1.0, 0.3, 0.1), (50, 100, 200, 400)


def candidates(kind: str) -> Candidates:
    """Return the candidates for the defaults of the fit functions."""
    result: Candidates = {}
    if kind == TWO:
        graphs(result)
        matryoshki(result)
        steps(result)
    if kind != NUMBERS:
        of_classes(kind, result)
    if kind != MANY:
        sums(kind, result)
    return result


def graphs(found: Candidates) -> None:
    """Add the candidates of binary chains and trees."""
    adatree2 = pb.observation.adatree2()
    for builder in (pb.fit_adaboost, pb.fit_real_adaboost):
        found[builder.__name__] = {
            f"learning_rate {rate}, rounds": partial(
                staged, partial(builder, n_estimators=ROUNDS[-1], learning_rate=rate), ROUNDS
            )
            for rate in RATES
        }
    nodes = (7, 15, 31, 63, 127)
    for builder in (pb.fit_boosted_tree, pb.fit_topdown_tree):
        found[builder.__name__] = {
            f"smoothing {smoothing}, nodes": partial(
                staged, partial(builder, max_nodes=nodes[-1], smoothing=smoothing), nodes
            )
            for smoothing in (1e-4, 1e-2)
        }
    found["fit_boosted_tree"]["adatree2(), nodes"] = partial(
        staged, partial(pb.fit_boosted_tree, max_nodes=nodes[-1], observation=adatree2), nodes
    )
    found["fit_oblique_tree"] = {
        f"max_depth {depth}, stumps {stumps}": partial(
            own, partial(pb.fit_oblique_tree, max_depth=depth, n_stumps=stumps)
        )
        for depth, stumps in ((4, 50), (4, 20), (3, 50), (2, 50), (2, 100))
    }


def matryoshki(found: Candidates) -> None:
    """Add the candidates of matryoshki."""
    adatree2 = pb.observation.adatree2()
    found["fit_matryoshka"] = {
        f"shape {shape}{', adatree2()' if soft else ''}": partial(
            own, partial(pb.fit_matryoshka, shape=shape, **soft)
        )
        for shape in ((8, 8), (4, 8), (16, 8), (8, 16), (4, 4, 4))
        for soft in ({}, {"observation": adatree2})
    }
    found["fit_matryoshka, greedy"] = {
        f"nodes {nodes}": partial(own, partial(pb.fit_matryoshka, growth="greedy", max_nodes=nodes))
        for nodes in (16, 32, 64, 128)
    }
    found['fit_matryoshka, join="all"'] = {
        f"learning_rate {rate}, shape (8, {trees})": partial(
            own, partial(pb.fit_matryoshka, shape=(8, trees), join="all", learning_rate=rate)
        )
        for rate in RATES
        for trees in (8, 30, 100, 200)
    } | {
        "learning_rate 0.3, shape (8, 30), adatree2()": partial(
            own,
            partial(
                pb.fit_matryoshka,
                shape=(8, 30),
                join="all",
                learning_rate=0.3,
                observation=adatree2,
            ),
        )
    }


def steps(found: Candidates) -> None:
    """Add the candidates of probit models."""
    found["fit_probitboost"] = {
        f"steps {steps}": partial(own, partial(pb.fit_probitboost, max_iter=steps))
        for steps in (25, 50, 100, 200, 400)
    }


def of_classes(kind: str, found: Candidates) -> None:
    """Add the candidates of fit functions for any number of classes."""
    found["fit_samme"] = {
        f"max_depth {depth}, learning_rate {rate}, rounds": partial(
            staged,
            partial(
                pb.fit_samme,
                base_learner=partial(pb.fit_cart, max_depth=depth),
                n_estimators=200,
                learning_rate=rate,
            ),
            ROUNDS[:-1],
        )
        for depth, rate in ((1, 1.0), (2, 1.0), (3, 1.0), (5, 1.0), (5, 0.3), (8, 1.0))
    }
    published = pb.models.published_sbpmt_options()
    trees = {name: published[name] for name in PUBLISHED_TREE}
    found["fit_probit_tree"] = {
        "the paper's": partial(own, partial(pb.fit_probit_tree, **PAPER)),
        "the published code's": partial(own, partial(pb.fit_probit_tree, **trees)),
    }
    found["fit_sbpmt"] = {
        f"the {of}, one_vs_all {where}": partial(
            own,
            partial(pb.fit_sbpmt, rng=SEED, **{**options, "one_vs_rest": where, "voting": "soft"}),
        )
        for of, options in (("paper's", PAPER), ("published code's", published))
        for where in ("tree", *(["leaf"] if kind == MANY else []))
    }


def sums(kind: str, found: Candidates) -> None:
    """Add the candidates of gradient boosting."""
    found["fit_gradient_boosting"] = {
        f"max_depth {depth}, learning_rate {rate}, steps": partial(
            staged,
            partial(
                pb.fit_gradient_boosting,
                loss="squared_error" if kind == NUMBERS else "log_loss",
                n_estimators=ROUNDS[-1],
                max_depth=depth,
                learning_rate=rate,
            ),
            ROUNDS,
        )
        for depth in (3, 5)
        for rate in (0.3, 0.1)
    }


# Outcomes


def outcome(learner: Learner, data: DataSet) -> dict[str, list[float]]:
    """Return the mean results of a learner over the folds, by size."""
    result: dict[str, list[list[float]]] = {}
    for k in range(data.fold.max() + 1):
        test = data.fold == k
        X, y, new, truth = data.X[~test], data.y[~test], data.X[test], data.y[test]
        labels = None if data.kind == NUMBERS else np.unique(y)
        start = time.process_time()
        for size, said in learner(X, y, new):
            milliseconds = 1000 * (time.process_time() - start)
            result.setdefault(size, []).append([*losses(said, truth, labels), milliseconds])
    return {size: np.mean(folds, axis=0).tolist() for size, folds in result.items()}


def losses(
    said: NDArray[np.float64], truth: NDArray[Any], labels: NDArray[Any] | None
) -> tuple[float, float]:
    """Return the error in % and the log loss.

    For regression the error is the mean squared error in % of the target's variance.
    """
    if labels is None:
        return 100 * float(np.mean((said - truth) ** 2) / np.var(truth)), 0.0
    code = np.searchsorted(labels, truth)
    probability = said[np.arange(len(truth)), code]
    error = 100 * float(np.mean(np.argmax(said, axis=1) != code))
    return error, -float(np.mean(np.log(np.clip(probability, LEAST, 1.0))))


def run(
    sets: Iterable[DataSet],
    learners: Callable[[str], dict[str, Learner]],
    known: Results,
    store: Callable[[], None],
) -> None:
    """Compute the missing outcomes; `store` is called after each data set."""
    for data in sets:
        of = known.setdefault(data.name, {})
        new = {
            name: learner
            for name, learner in learners(data.kind).items()
            if not any(item == name or item.startswith(f"{name} ") for item in of)
        }
        if not new:
            continue
        start = time.perf_counter()
        for name, learner in new.items():
            of |= {f"{name}{size}": means for size, means in outcome(learner, data).items()}
        store()
        print(f"{data.name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)


def flat(kind: str) -> dict[str, Learner]:
    """Return all candidates by the names of the fit function and of the candidate."""
    every = candidates(kind).items()
    return {f"{of}: {name}": learner for of, group in every for name, learner in group.items()}


# Tables


def figures(
    results: Results, sets: list[DataSet], names: Iterable[str], what: int
) -> NDArray[np.float64]:
    """Return one of the means (names, data sets)."""
    return np.array([[results[data.name][name][what] for data in sets] for name in names])


def difference(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> str:
    """Return the mean difference over the data sets, with its standard error."""
    of = ours - theirs
    error = of.std(ddof=1) / np.sqrt(len(of)) if len(of) > 1 else 0.0
    return f"{of.mean():+.2f} ± {error:.2f}"


def choice(builder: str, kind: str, results: Results, sets: list[DataSet]) -> str:
    """Return the table of candidates for a fit function, on the data sets used for the choice."""
    names = [name for name in results[sets[0].name] if name.startswith(f"{builder}: ")]
    error, loss, milliseconds = (figures(results, sets, names, what) for what in range(3))
    chosen = next((k for k, name in enumerate(names) if name in CHOSEN), 0)
    rows = [["options", "error", "against the default", "log loss", "ms"]]
    for k, name in enumerate(names):
        title = name.partition(": ")[2]
        against = "default" if k == chosen else difference(error[k], error[chosen])
        log_loss = "" if kind == NUMBERS else f"{loss[k].mean():.3f}"
        rows.append(
            [title, f"{error[k].mean():.2f}", against, log_loss, f"{milliseconds[k].mean():.0f}"]
        )
    return table(f"{builder}, {len(sets)} sets, {kind}", rows)


def by_set(kind: str, names: list[str], results: Results, sets: list[DataSet]) -> str:
    """Return the table of errors of all learners on each data set."""
    error = figures(results, sets, names, 0)
    groups = {"mean": [True] * len(sets), "apart": [data.is_apart for data in sets]}
    means = {name: error[:, of].mean(axis=1) for name, of in groups.items() if any(of)}
    rows = [["learner", *(SHORT.get(data.name, data.name) for data in sets), *means]]
    for name, *cells in zip(names, *error.T, *means.values(), strict=True):
        rows.append([name, *(f"{cell:.1f}" for cell in cells)])
    return table(f'Error in %, {kind}; "apart" are the last {sum(groups["apart"])} sets', rows)


def summary(kind: str, names: list[str], results: Results, sets: list[DataSet]) -> str:
    """Return the table of mean errors and losses, with paired differences to other libraries."""
    error, loss, milliseconds = (figures(results, sets, names, what) for what in range(3))
    rivals = [name for name in names if name in peers(kind)]
    rows = [["learner", "error", "log loss", "ms", *(f"- {rival}" for rival in rivals)]]
    for k, name in enumerate(names):
        log_loss = "" if kind == NUMBERS else f"{loss[k].mean():.3f}"
        against = [
            "" if rival == name else difference(error[k], error[names.index(rival)])
            for rival in rivals
        ]
        numbers = [f"{error[k].mean():.2f}", log_loss, f"{milliseconds[k].mean():.0f}"]
        rows.append([name, *numbers, *against])
    return table(f"Means over {len(sets)} sets, {kind}, and differences of the errors", rows)


def tables(sets: list[DataSet], results: Results) -> str:
    """Return all tables: results of the defaults, then the candidates."""
    parts, choices = [], []
    for kind in SETS:
        of_kind = [data for data in sets if data.kind == kind]
        if not of_kind:
            continue
        names = [*with_defaults(kind), *peers(kind)]
        parts += [by_set(kind, names, results, of_kind), summary(kind, names, results, of_kind)]
        for_choice = [data for data in of_kind if not data.is_apart]
        choices += [choice(of, kind, results, for_choice) for of in candidates(kind)]
    return "\n".join([*parts, ".. choices start here\n", *choices])


def main(argv: list[str] | None = None) -> None:
    """Cross-validate, print the tables and optionally write them."""
    quick = f"the first set of each kind, {QUICK_ROWS} rows, {QUICK_FOLDS} folds"
    parser, options, folder = arguments(
        __doc__, quick, argv, results="file of the outcomes of earlier runs, and of this one"
    )
    sets = data_sets(folder, options.quick)
    if not any(data.name != "friedman" for data in sets):
        parser.error(f"no data: {folder} has no file of a data set")
    results = stored(options.results)
    store = partial(write, options.results, results)
    run([data for data in sets if not data.is_apart], flat, results, store)
    run(sets, lambda kind: {**with_defaults(kind), **peers(kind)}, results, store)
    publish(tables(sets, results), options.rst)


if __name__ == "__main__":
    main()
