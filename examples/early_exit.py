"""Comparisons until the class of a row is certain, and with calibrated early exits, on real data.

Run as ``python early_exit.py --data folder``, or set the environment variable PBOOST_DATA to the
folder, with files as described in the module ``published_table``. At most 4,000 rows of each data
set are drawn. 70 % of each class are training rows; half of the others calibrate early exits for
half the comparisons of the full model. The benchmark then verifies that exits at proven classes
do not change predictions, with 100,000 random rows and models of all kinds, half of which have
votes that are multiples of 0.1. Prints reStructuredText tables; ``--rst file`` also writes them to
a file.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from many_classes import divided, read
from oblique_trees import table
from table_command import arguments, each_timed, publish

import pboost as pb

SETS = (
    "pima",
    "banknote",
    "spambase",
    "breast_cancer_wdbc",
    "ionosphere",
    "magic04",
    "adult_census",
    "electricity",
    "biodegradation",
    "tic_tac_toe",
    "satimage",
    "obesity",
    "waveform_noise",
    "nursery",
    "pendigits",
)
MOST_ROWS, QUICK_SETS, QUICK_ROWS = 4000, 2, 300
DRAWN, QUICK_DRAWN = 100_000, 2000
SHARE = 0.5
MODELS = {
    "chain of trees": partial(pb.fit_matryoshka, shape=(7, 30), join="all", learning_rate=0.3),
    "stumps": partial(pb.fit_adaboost, n_estimators=100),
    "sum of trees": partial(
        pb.fit_gradient_boosting,
        n_estimators=100,
        learning_rate=0.3,
        multi_strategy="multi_output_tree",
    ),
    "forest": partial(pb.fit_random_forest, n_estimators=50, rng=0),
}


class Data:
    """The name of a data set, its file and the number of rows to read."""

    def __init__(self, name: str, path: Any, most: int) -> None:
        self.name, self.path, self.most = name, path, most


def fitted(kind: str, split: Any) -> Any:
    """Fit a model of some kind, which is suitable for the number of classes."""
    options = {"categorical_features": list(split.categories)} if split.categories else {}
    many = len(np.unique(split.y)) > 2
    if kind == "sum of trees":
        options["loss"] = "softmax" if many else "log_loss"
        if not many:
            options["multi_strategy"] = "one_output_per_tree"
    return MODELS[kind](split.X, split.y, **options)


def outcome(data: Data) -> tuple[str, dict[str, list[float]]]:
    """Return comparisons (full, proven, calibrated) and errors (full, calibrated) per model."""
    split = divided(*read(data.path, data.most), 0)
    cal, test = split.X_test[::2], split.X_test[1::2]
    truth, result = split.y_test[1::2], {}
    for kind in MODELS:
        model = fitted(kind, split)
        full_cost = pb.prediction_cost(model, test).mean()
        proven = pb.prediction_cost(model, test, exit="proven").mean()
        small = pb.early_exit(
            model, cal, mean_comparisons=SHARE * pb.prediction_cost(model, cal).mean()
        )
        errors = [100 * np.mean(pb.predict(item, test) != truth) for item in (model, small)]
        result[kind] = [full_cost, proven, pb.prediction_cost(small, test).mean(), *errors]
    return data.name, result


def tenths(model: Any, rng: np.random.Generator) -> Any:
    """Return the model with random votes that are multiples of 0.1, to provoke ties."""
    drawn = np.arange(-5, 6) / 10
    if isinstance(model, pb.models.DecisionGraph):
        return replace(model, vote=rng.choice(drawn, size=model.vote.shape))
    if isinstance(model, pb.models.RandomForest):
        share = rng.integers(0, 11, size=(len(model.feature), len(model.classes))) + 1
        return replace(model, value=share / share.sum(axis=1, keepdims=True))
    trees = model.trees
    value = rng.choice(drawn, size=trees.value.shape)
    value[trees.feature >= 0] = 0
    return replace(
        model, trees=replace(trees, value=value), bias=0.0 * np.asarray(model.bias) + 0.0
    )


def drawn_models() -> dict[str, Any]:
    """Return models of all kinds, with two and three classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5)).round(1)
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=600)
    two, three = score > 0, np.digitize(score, [-0.5, 0.5])
    soft = partial(pb.fit_gradient_boosting, loss="softmax", n_estimators=30)
    cart = partial(pb.fit_cart, max_depth=3)
    return {
        "chain of stumps": pb.fit_adaboost(X, two, n_estimators=60),
        "chain of trees": pb.fit_matryoshka(X, two, shape=(6, 15), join="all"),
        "trees joined by sign": pb.fit_matryoshka(X, two, shape=(4, 4, 4)),
        "tree": pb.fit_boosted_tree(X, two, max_nodes=40),
        "chain of trees, three votes": pb.fit_matryoshka(X, three, shape=(6, 15), join="all"),
        "sum of trees": pb.fit_gradient_boosting(X, two, loss="log_loss", n_estimators=60),
        "sums for three labels": soft(X, three),
        "sum of trees for three labels": soft(X, three, multi_strategy="multi_output_tree"),
        "forest": pb.fit_random_forest(X, two, n_estimators=30, rng=0),
        "forest, three labels": pb.fit_random_forest(X, three, n_estimators=30, rng=0),
        "votes": pb.fit_samme(X, three, base_learner=cart, n_estimators=15),
        "bags": pb.fit_bagging(cart, X, two, n_estimators=9, rng=0),
        "probit trees": pb.fit_sbpmt(
            X, two, n_estimators=4, n_boosting_rounds=2, max_iter=5, rng=0
        ),
    }


def other_labels(n: int) -> list[list[str]]:
    """Return by kind the number of predictions that early exits change, and the costs."""
    rng = np.random.default_rng(1)
    rows = rng.normal(scale=1.5, size=(n, 5)).round(1)
    lines = []
    for kind, model in drawn_models().items():
        models = [model]
        if isinstance(
            model,
            pb.models.DecisionGraph | pb.models.RandomForest | pb.models.GradientBoostingModel,
        ):
            models.append(tenths(model, rng))
        for item, votes in zip(models, ("fitted", "multiples of 0.1"), strict=False):
            try:
                labels = item.labels_of(pb.decision_function(item, rows))
            except TypeError:  # a multiclass forest has only probabilities
                labels = item.classes[pb.predict_proba(item, rows).argmax(axis=1)]
            left = item.leave_proven(rows)
            differ = np.count_nonzero(item.labels_of(left.score) != labels)
            differ += np.count_nonzero(pb.predict(item, rows) != labels)
            full_cost = pb.prediction_cost(item, rows[:2000]).mean()
            cost = pb.prediction_cost(item, rows[:2000], exit="proven").mean()
            lines.append([kind, votes, f"{n}", f"{differ}", f"{full_cost:.1f}", f"{cost:.1f}"])
    return lines


def tables(results: list[tuple[str, dict[str, list[float]]]], lines: list[list[str]]) -> str:
    """Return the tables."""
    parts = []
    for kind in MODELS:
        rows = [["set", "whole", "proven", "%", "calibrated", "error %, whole", "calibrated"]]
        figures = np.array([item[kind] for _, item in results])
        names = [name for name, _ in results]
        for name, of in zip([*names, "mean"], [*figures, figures.mean(axis=0)], strict=True):
            share = np.mean(figures[:, 1] / figures[:, 0]) if name == "mean" else of[1] / of[0]
            costs = [f"{of[0]:.1f}", f"{of[1]:.1f}", f"{100 * share:.0f}", f"{of[2]:.1f}"]
            rows.append([name, *costs, f"{of[3]:.2f}", f"{of[4]:.2f}"])
        parts.append(table(f"Comparisons per test row, {kind}", rows))
    head = ["model", "votes", "rows", "other classes", "whole", "proven"]
    parts.append(table("Classes of rows that exit early, and comparisons", [head, *lines]))
    return "\n".join(parts)


def main(argv: list[str] | None = None) -> None:
    """Run the comparison."""
    quick = f"the first {QUICK_SETS} sets of {QUICK_ROWS} rows, {QUICK_DRAWN} drawn rows"
    parser, options, folder = arguments(__doc__, quick, argv)
    maximum, drawn = (QUICK_ROWS, QUICK_DRAWN) if options.quick else (MOST_ROWS, DRAWN)
    result = [
        Data(name, folder / f"{name}.csv.gz", maximum)
        for name in (SETS[:QUICK_SETS] if options.quick else SETS)
        if (folder / f"{name}.csv.gz").exists()
    ]
    if not result:
        parser.error(f"no data: {folder} has no file of a data set")
    publish(tables(each_timed(result, outcome), other_labels(drawn)), options.rst)


if __name__ == "__main__":
    main()
