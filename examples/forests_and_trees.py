"""Random forests and boosted trees, compared with a published table on the same data.

The source is T. Qin and W.-M. Huang, "On subbagging boosted probit model trees", Table 2, columns
RandomForest and AdaBoost.M1. Run as ``python forests_and_trees.py --data folder``, or set the
environment variable PBOOST_DATA to the folder. It contains files ``name.csv.gz``, whose first line
has the column names. The last column is ``target``, ``__cat`` in a name marks a categorical
feature, and an empty field is a missing value. Data sets without a file are listed. Uses 10-fold
cross-validation. Prints reStructuredText tables; ``--rst file`` also writes them to a file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from oblique_trees import table
from published_table import QUICK_SETS, DataSet, Outcome, data_sets, folds_of, printed, verdict
from table_command import arguments, each_timed, publish

import pboost as pb

FOLDS, QUICK_FOLDS = 10, 3
MEMBERS, QUICK_MEMBERS = 100, 10
SEED = 0
#: Limits of the boosted trees, which are the defaults of R's rpart.
BOOSTED_TREE = {"max_depth": 30, "min_samples_split": 20, "min_samples_leaf": 7}
FOREST, BOOSTED, PRUNED = "forest", "boosted trees", "pruned tree"
#: The column of Table 2 to compare with each learner.
RIVALS = {FOREST: "RandomForest", BOOSTED: "AdaBoost.M1(100)"}
#: Outcomes by learner.
Outcomes = dict[str, Outcome]


def learners(members: int, categories: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    """Return the learners, by their names in the tables."""
    common = {"categorical_features": list(categories) or None, "n_threads": 1}
    tree = partial(pb.fit_cart, **common, **BOOSTED_TREE)
    return {
        FOREST: partial(pb.fit_random_forest, n_estimators=members, rng=SEED, **common),
        BOOSTED: partial(pb.fit_samme, base_learner=tree, n_estimators=members),
        PRUNED: partial(pb.fit_pruned_cart, rng=SEED, **common),
    }


def outcomes_on(data: DataSet, quick: bool) -> Outcomes:
    """Return the outcomes of all learners on a data set, with the same folds."""
    folds = folds_of(data, QUICK_FOLDS if quick else FOLDS)
    result = {}
    for name, fit in learners(QUICK_MEMBERS if quick else MEMBERS, data.categories).items():
        run = pb.cross_validate(fit, data.X, data.y, cv=folds, rng=SEED)
        accuracy = 100 * (1 - run.error)
        result[name] = Outcome(
            float(accuracy.mean()),
            float(accuracy.std(ddof=1)),
            folds,
            float(np.median(run.fit_seconds)),
        )
    return result


def comparison(found: list[DataSet], results: list[Outcomes], learner: str) -> str:
    """Return the table of our accuracies and the published ones, and the number that agree."""
    rows = [["data set", "rows", "folds", "ours", "paper", "difference", "within 2 s.e."]]
    verdicts = []
    for data, of in zip(found, results, strict=True):
        ours, theirs = of[learner], printed(data.name, RIVALS[learner])
        verdicts.append(verdict(ours, theirs))
        cells = [f"{item.mean:.2f} ± {item.deviation:.2f}" for item in (ours, theirs)]
        cells += [f"{ours.mean - theirs.mean:+.2f}", verdicts[-1]]
        rows.append([data.name, str(len(data.y)), str(ours.folds), *cells])
    n, near = len(verdicts), len(verdicts) - verdicts.count("no")
    count = (
        f"On {near} of {n} sets ({100 * near / n:.0f} %), the accuracy is within two standard "
        f"errors of the paper's {RIVALS[learner]} or better. It is better by more than two "
        f"standard errors on {verdicts.count('better')} of these sets.\n"
    )
    title = f"Accuracy in %: {learner}, and {RIVALS[learner]} of the paper"
    return f"{table(title, rows)}\n{count}"


def learners_table(found: list[DataSet], results: list[Outcomes]) -> str:
    """Return the table of accuracies and times of all learners."""
    rows = [["data set", *results[0]]]
    for data, of in zip(found, results, strict=True):
        cells = [f"{item.mean:.2f} ({1000 * item.seconds:.0f})" for item in of.values()]
        rows.append([data.name, *cells])
    means = [np.mean([of[name].mean for of in results]) for name in results[0]]
    rows.append(["mean", *(f"{mean:.2f}" for mean in means)])
    return table("Accuracy in % (ms per fit), one thread", rows)


def tables(found: list[DataSet], left_out: dict[str, str], results: list[Outcomes]) -> str:
    """Return all tables."""
    parts = [comparison(found, results, learner) for learner in RIVALS]
    parts.append(learners_table(found, results))
    if left_out:
        stop_reasons = ", ".join(f"{name} ({why})" for name, why in left_out.items())
        parts.append(f"These data sets are left out: {stop_reasons}.\n")
    return "\n".join(parts)


def main(argv: list[str] | None = None) -> None:
    """Cross-validate, print the tables and optionally write them."""
    quick = f"the first {QUICK_SETS} sets, {QUICK_FOLDS} folds, {QUICK_MEMBERS} trees"
    parser, options, folder = arguments(__doc__, quick, argv)
    result, left_out = data_sets(folder, options.quick)
    if not result:
        parser.error(f"no data: {folder} has no file of a data set of Table 2")
    results = each_timed(result, lambda data: outcomes_on(data, options.quick))
    text = tables(result, left_out, results)
    publish(text, options.rst)


if __name__ == "__main__":
    main()
