"""Error at equal feature costs: gradient boosting with costs, in pboost and in lightgbm.

Run as ``python prices.py --data folder``, or set the environment variable PBOOST_DATA to the
folder, with files as described in the module ``published_table``. pima and bupa have the test costs
published by P. D. Turney (Journal of Artificial Intelligence Research 2, 1995, appendix A), where
all blood tests share the cost of the blood sample. The features of the other data sets have random
costs from 1 to 100, uniform on a log scale. In each of ``--draws`` divisions, 70 % of the rows (at
most 1,500) are training rows, and at most 3,000 others are test rows.

Budgets are 25, 50 and 75 percent of the mean cost of a test row in a model without feature costs.
Each library has 240 candidates: two depths and ten tradeoffs between loss and cost, with 12 models
each. For lightgbm, these are truncated to 1 ... 100 trees; for pboost, there are 8 truncated models
and 4 models with early exits. Three-fold validation on the training rows chooses the candidate with
the smallest log loss within the budget. It is fitted on all training rows, on which it must stay
within the budget too. Requires lightgbm. Prints reStructuredText tables; ``--rst file`` also writes
them to a file. With ``--results file`` outcomes are stored after each draw and reused by the next
run.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from oblique_trees import as_it_is, table
from table_command import Results, arguments, publish, stored, write

import pboost as pb
from pboost.models.early_exit_model import Trajectory, trajectory

SETS = ("pima", "bupa", "adult_census", "magic04", "spambase", "breast_cancer_wdbc")
SHARES = (25, 50, 75)  # percent of the cost of a model without feature costs
DRAWS, MOST_TRAIN, MOST_TEST, FOLDS = 10, 1500, 3000, 3
SIZES, RATE, DEPTHS = (1, 2, 3, 5, 8, 12, 18, 25, 35, 50, 70, 100), 0.1, (2, 4)
#: Sizes of truncated pboost models, and mean costs of early-exit models as fractions of full cost.
OUR_SIZES, EXITS = (1, 3, 8, 18, 25, 35, 70, 100), (0.45, 0.6, 0.75, 0.9)
#: Costs of a comparison, relative to the mean feature cost, for splits that maximize the ratio of
#: gain and cost; None ignores costs.
COMPARISONS = (0.003, 0.01, 0.03, 0.1, 0.5, None)
#: Tradeoffs between gain and cost, for a mean cost of 1, as in lightgbm.
TRADEOFFS = (0.0, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.3)
#: Minimum rows per leaf, the default of lightgbm.
LEAST_ROWS = 20
#: Trees, and draws, of the table of comparison costs.
SHOWN, FEW = (12, 100), 4
QUICK_TRAIN, LEAST = 300, 1e-9
#: Models of the table of trees and forests.
KINDS: dict[str, Callable[..., Any]] = {
    "tree": partial(pb.fit_cart, min_samples_leaf=LEAST_ROWS),
    "forest": partial(pb.fit_random_forest, n_estimators=50, min_samples_leaf=5),
}

Numbers = NDArray[np.float64]
#: Probabilities and costs of rows after the numbers of trees in `SIZES`, and with early exits.
Stages = list[tuple[Numbers, Numbers]]


class Problem(NamedTuple):
    """Rows, classes 0 and 1, categorical columns, and feature costs."""

    X: Numbers
    y: NDArray[np.int64]
    categories: tuple[int, ...]
    feature_costs: dict[Any, float]
    cost_groups: dict[str, list[int]]

    def only(self, rows: NDArray[Any]) -> Problem:
        """Return the problem with only some rows."""
        return self._replace(X=self.X[rows], y=self.y[rows])

    @property
    def alone(self) -> Numbers:
        """The cost of each feature for a row without any acquired feature."""
        first = np.eye(self.X.shape[1], dtype=bool)
        return price_of(first, self)


def price_of(read: NDArray[np.bool_], problem: Problem) -> Numbers:
    """Return the cost of acquiring some features (n, d) for each row."""
    total = np.zeros(len(read))
    for name, price in problem.feature_costs.items():
        columns = problem.cost_groups.get(name, [name])
        total += price * read[:, columns].any(axis=1)
    return total


# Data


def with_published_prices(name: str, X: Numbers, y: NDArray[Any]) -> Problem:
    """Return pima or bupa, with test costs and the shared cost of a blood sample."""
    if name == "pima":
        feature_costs: dict[Any, float] = dict.fromkeys(range(8), 1.0)
        feature_costs |= {1: 17.61 - 2.10, 4: 22.78 - 2.10, "blood": 2.10}
        return Problem(X, y, (), feature_costs, {"blood": [1, 4]})
    feature_costs = dict.fromkeys(range(4), 7.27 - 2.10) | {4: 9.86 - 2.10, "blood": 2.10}
    return Problem(
        X[:, :5], (X[:, 5] >= 3).astype(int), (), feature_costs, {"blood": [0, 1, 2, 3, 4]}
    )


def drawn(name: str, path: Path, draw: int, most: int) -> tuple[Problem, Problem]:
    """Return training and test rows of a draw."""
    X, categories, target = as_it_is(path)
    y = np.unique(target, return_inverse=True)[1].astype(np.int64)
    rng = np.random.default_rng([draw, SETS.index(name)])
    if name in ("pima", "bupa"):
        problem = with_published_prices(name, X, y)
    else:
        feature_costs = np.exp(rng.uniform(0, np.log(100), X.shape[1])).round(2)
        problem = Problem(X, y, categories, dict(enumerate(feature_costs.tolist())), {})
    order = rng.permutation(len(problem.y))
    n = min(most, 7 * len(order) // 10)
    return problem.only(order[:n]), problem.only(order[n : n + MOST_TEST])


# Models: each fit returns a function from rows to stages.


def sum_of_trees(
    problem: Problem, depth: int, comparison: float | None = None, tradeoff: float | None = None
) -> pb.models.GradientBoostingModel:
    """Fit gradient boosting; comparison cost and tradeoff are relative to the mean cost."""
    options: dict[str, Any] = {}
    if comparison is not None or tradeoff:
        options = {"feature_costs": problem.feature_costs, "cost_groups": problem.cost_groups}
        mean = problem.alone.mean()
        if comparison is not None:
            options |= {"comparison_cost": comparison * mean}
        if tradeoff:  # gains in lightgbm are twice the decrease of the loss
            options |= {"cost_tradeoff": tradeoff / (2 * mean)}
    return pb.fit_gradient_boosting(
        problem.X,
        problem.y,
        loss="log_loss",
        n_estimators=SIZES[-1],
        learning_rate=RATE,
        max_depth=depth,
        growth="independent",
        categorical_features=list(problem.categories),
        n_threads=1,
        min_samples_leaf=LEAST_ROWS,
        **options,
    )


def stages_of(model: Any, problem: Problem, X: Numbers, sizes: Sequence[int] = SIZES) -> Stages:
    """Return probabilities and costs after the given numbers of trees."""
    result: Stages = []
    shares = pb.staged_predict_proba(model, X)
    for t, (share, read) in enumerate(zip(shares, model.reads(X), strict=True), start=1):
        if t in sizes:
            result.append((share[:, 1], price_of(read, problem)))
    return result + [result[-1]] * (len(sizes) - len(result))  # training stopped early


def leaving(model: Any, problem: Problem) -> list[Any]:
    """Return models with early exits whose costs are fractions of the full cost."""
    paid = [np.zeros(len(problem.y))]
    paid += [price_of(read, problem) for read in model.reads(problem.X)]
    states = Trajectory(trajectory(model, problem.X).score, np.array(paid))
    result = []
    for part in EXITS:
        try:
            early = pb.early_exit(
                model,
                states,
                mean_feature_cost=part * states.cost[-1].mean(),
                feature_costs=problem.feature_costs,
                cost_groups=problem.cost_groups,
                length=None,
            )
            result.append(early)
        except ValueError:  # the first tree exceeds the budget, or is the whole model
            result.append(model)
    return result


def ours(problem: Problem, setting: tuple[int, float]) -> Callable[[Numbers], Stages]:
    """Fit pboost; the candidate is a depth and a tradeoff."""
    depth, tradeoff = setting
    model = sum_of_trees(problem, depth, tradeoff=tradeoff)
    early = leaving(model, problem)

    def stages(X: Numbers) -> Stages:
        result = stages_of(model, problem, X, OUR_SIZES)
        for left in early:
            *_, read = left.reads(X)
            result.append((pb.predict_proba(left, X)[:, 1], price_of(read, problem)))
        return result

    return stages


def leaf_columns(node: dict[str, Any], used: tuple[int, ...] = ()) -> Iterator[tuple[int, Any]]:
    """Yield the leaves of a tree of lightgbm, with the columns on the path to each leaf."""
    if "split_feature" not in node:
        yield node.get("leaf_index", 0), list(used)
        return
    for side in ("left_child", "right_child"):
        yield from leaf_columns(node[side], (*used, node["split_feature"]))


def peer(problem: Problem, setting: tuple[int, float]) -> Callable[[Numbers], Stages]:
    """Fit lightgbm; the candidate is a depth and a tradeoff."""
    import lightgbm

    depth, tradeoff = setting
    alone = problem.alone
    options: dict[str, Any] = {
        "objective": "binary",
        "learning_rate": RATE,
        "max_depth": depth,
        "verbosity": -1,
        "num_leaves": 2**depth,
        "min_data_in_leaf": LEAST_ROWS,
        "num_threads": 1,
        "deterministic": True,
        "seed": 0,
    }
    if tradeoff:
        options |= {
            "cegb_tradeoff": tradeoff,
            "cegb_penalty_feature_lazy": (alone / alone.mean()).tolist(),
        }
    data = lightgbm.Dataset(
        problem.X, problem.y, categorical_feature=list(problem.categories), free_raw_data=False
    )
    model = lightgbm.train(options, data, SIZES[-1])
    trees = [dict(leaf_columns(tree["tree_structure"])) for tree in model.dump_model()["tree_info"]]

    def stages(X: Numbers) -> Stages:
        leaf = np.asarray(model.predict(X, pred_leaf=True)).reshape(len(X), -1).astype(int)
        read, result = np.zeros(X.shape, dtype=bool), []
        for t, of_leaf in enumerate(trees, start=1):
            mask = np.zeros((max(of_leaf) + 1, X.shape[1]), dtype=bool)
            for place, columns in of_leaf.items():
                mask[place, columns] = True
            read |= mask[leaf[:, t - 1]]
            if t in SIZES:
                share = np.asarray(model.predict(X, num_iteration=t))
                result.append((share, price_of(read, problem)))
        return result + [result[-1]] * (len(SIZES) - len(result))

    return stages


FITS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "pboost": (ours, [(depth, t) for depth in DEPTHS for t in TRADEOFFS]),
    "lightgbm": (peer, [(depth, t) for depth in DEPTHS for t in TRADEOFFS]),
}


# Selection


def log_loss(share: Numbers, y: NDArray[Any]) -> float:
    """Return the mean log loss."""
    of_label = np.where(y == 1, share, 1 - share).clip(LEAST, 1)
    return float(-np.log(of_label).mean())


def validated(
    fit: Callable[..., Any], settings: Sequence[Any], train: Problem
) -> tuple[Numbers, Numbers]:
    """Return cross-validated log loss and cost (candidates, sizes)."""
    loss, price = np.zeros((2, len(settings), len(SIZES)))
    fold = np.arange(len(train.y)) % FOLDS
    for k in range(FOLDS):
        inner, outer = train.only(fold != k), train.only(fold == k)
        for s, setting in enumerate(settings):
            for t, (share, cost) in enumerate(fit(inner, setting)(outer.X)):
                loss[s, t] += log_loss(share, outer.y) / FOLDS
                price[s, t] += cost.mean() / FOLDS
    return loss, price


def chosen(
    fit: Callable[[int], Stages], loss: Numbers, price: Numbers, budget: float
) -> tuple[int, int] | None:
    """Return candidate and size with the smallest validation loss within a budget, or None.

    `fit` returns the stages of the training rows for a candidate fitted on all of them, whose cost
    must also be within the budget.
    """
    able = np.where(price <= budget, loss, np.inf)
    for s in np.argsort(able.min(axis=1)).tolist():
        if able[s].min() == np.inf:
            return None
        paid = np.array([cost.mean() for _, cost in fit(s)])
        of_size = np.where(paid <= budget, able[s], np.inf)
        if of_size.min() < np.inf:
            return s, int(of_size.argmin())
    return None


def outcome(of: str, train: Problem, test: Problem, budgets: Numbers) -> list[float]:
    """Return error, log loss and cost on test rows, for each budget."""
    fit, settings = FITS[of]
    loss, price = validated(fit, settings, train)
    fitted: dict[int, Callable[[Numbers], Stages]] = {}

    def stages(s: int, X: Numbers = train.X) -> Stages:
        if s not in fitted:
            fitted[s] = fit(train, settings[s])
        return fitted[s](X)

    result: list[float] = []
    constant = np.full(len(test.y), train.y.mean()), np.zeros(len(test.y))
    minimum = log_loss(np.full(len(train.y), train.y.mean()), train.y)
    for budget in budgets:
        share, cost = constant
        best = chosen(stages, np.where(loss < minimum, loss, np.inf), price, float(budget))
        if best is not None:
            share, cost = stages(best[0], test.X)[best[1]]
        wrong = float(((share > 0.5) != test.y).mean())
        result += [wrong, log_loss(share, test.y), float(cost.mean())]
    return result


def run(name: str, path: Path, draw: int, most: int, of: dict[str, list[float]]) -> bool:
    """Compute the missing results of a draw; return whether there were any."""
    if all(f"{draw}: {who}" in of for who in FITS):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of other libraries
        train, test = drawn(name, path, draw, most)
        (_, price) = stages_of(sum_of_trees(train, 3), train, test.X)[-1]
        budgets = price.mean() * np.array(SHARES) / 100
        of[f"{draw}: budgets"] = budgets.tolist()
        for method in FITS:
            if f"{draw}: {method}" not in of:
                of[f"{draw}: {method}"] = outcome(method, train, test, budgets)
    return True


# Tables


def summary(results: Results) -> str:
    """Return the table of errors at each budget, and of paired differences."""
    head = [
        "set, draws",
        *(f"{who}, {share} %" for share in SHARES for who in ("ours", "lightgbm")),
    ]
    rows, said = [head], []
    costs: dict[str, list[float]] = {who: [] for who in FITS}
    better = np.zeros(len(SHARES), dtype=int)
    overall = 0
    for name, of in results.items():
        draws = sorted(int(key.split(":")[0]) for key in of if key.endswith("budgets"))
        result = {who: np.array([of[f"{d}: {who}"] for d in draws]) for who in FITS}
        budgets = np.array([of[f"{d}: budgets"] for d in draws])
        cells, gaps = [f"{name}, {len(draws)}"], []
        for k in range(len(SHARES)):
            error = {who: 100 * result[who][:, 3 * k] for who in FITS}
            gap = error["pboost"] - error["lightgbm"]
            gaps.append(gap)
            spread = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
            cells += [
                f"{error['pboost'].mean():.2f} ({gap.mean():+.2f} ± {spread:.2f})",
                f"{error['lightgbm'].mean():.2f}",
            ]
            better[k] += gap.mean() < 0
            for who in FITS:
                costs[who] += (result[who][:, 3 * k + 2] / budgets[:, k]).tolist()
        overall += np.mean(gaps) < 0
        rows.append(cells)
    said.append(
        "pboost has a lower error on "
        + ", ".join(
            f"{n} of {len(results)} sets at {s} %" for n, s in zip(better, SHARES, strict=True)
        )
        + f". On average over the budgets, it has a lower error on {overall} of {len(results)} "
        "sets. The mean feature cost divided by the budget is "
        + " and ".join(f"{np.mean(cost):.3f} for {who}" for who, cost in costs.items())
        + ".\n"
    )
    title = "Error in % at equal feature cost (in brackets: pboost minus lightgbm, paired)"
    return "\n".join([table(title, rows), *said])


def by_comparison(sets: Sequence[str], folder: Path, draws: int, most: int) -> str:
    """Return the table of feature costs and errors by comparison cost."""
    text = ["costs do not matter" if c is None else f"{100 * c:g} %" for c in COMPARISONS]
    rows = [["set, trees", *text]]
    for name in sets:
        result = np.zeros((len(COMPARISONS), 2, 2))
        for draw in range(draws):
            train, test = drawn(name, folder / f"{name}.csv.gz", draw, most)
            for c, comparison in enumerate(COMPARISONS):
                stages = stages_of(sum_of_trees(train, 2, comparison), train, test.X)
                for k, size in enumerate(SHOWN):
                    share, cost = stages[SIZES.index(size)]
                    wrong = 100 * ((share > 0.5) != test.y).mean()
                    result[c, k] += np.array([cost.mean(), wrong]) / draws
        for k, size in enumerate(SHOWN):
            rows.append([f"{name}, {size}", *(f"{p:.1f}, {e:.1f} %" for p, e in result[:, k])])
    return table("Feature cost of a test row and error, by comparison_cost", rows)


def by_kind(sets: Sequence[str], folder: Path, draws: int, most: int) -> str:
    """Return the table of feature costs and errors of a tree and a forest, by comparison cost."""
    text = ["costs do not matter" if c is None else f"{100 * c:g} %" for c in COMPARISONS]
    rows = [["set, model", *text]]
    for name in sets:
        result = np.zeros((len(COMPARISONS), len(KINDS), 2))
        for draw in range(draws):
            train, test = drawn(name, folder / f"{name}.csv.gz", draw, most)
            for c, comparison in enumerate(COMPARISONS):
                options: dict[str, Any] = {
                    "categorical_features": list(train.categories),
                    "rng": draw,
                }
                if comparison is not None:
                    options |= {
                        "feature_costs": train.feature_costs,
                        "cost_groups": train.cost_groups,
                        "comparison_cost": comparison * train.alone.mean(),
                    }
                for k, fit in enumerate(KINDS.values()):
                    model = fit(train.X, train.y, n_threads=1, **options)
                    cost = price_of(list(model.reads(test.X))[-1], train).mean()
                    wrong = 100 * (pb.predict(model, test.X) != test.y).mean()
                    result[c, k] += np.array([cost, wrong]) / draws
        for k, kind in enumerate(KINDS):
            rows.append([f"{name}, {kind}", *(f"{p:.1f}, {e:.1f} %" for p, e in result[:, k])])
    return table("Feature cost of a test row and error, trees and forests", rows)


def main(argv: list[str] | None = None) -> None:
    """Fit the models, print the tables and optionally write them."""
    parser, options, folder = arguments(
        __doc__,
        f"the first two sets, one draw, {QUICK_TRAIN} training rows",
        argv,
        results="file of outcomes",
        draws=(DRAWS, "draws of rows and prices"),
    )
    sets = [name for name in SETS if (folder / f"{name}.csv.gz").exists()]
    if not sets:
        parser.error(f"no data: none of {', '.join(SETS)} in {folder}")
    results = stored(options.results)
    draws, maximum = (1, QUICK_TRAIN) if options.quick else (options.draws, MOST_TRAIN)
    for draw in range(draws):
        for name in sets[:2] if options.quick else sets:
            start = time.perf_counter()
            path = folder / f"{name}.csv.gz"
            if run(name, path, draw, maximum, results.setdefault(name, {})):
                write(options.results, results)
                print(f"{name}, {draw}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    what = sets[:2] if options.quick else sets, folder, min(draws, FEW), maximum
    parts = summary(results), by_comparison(*what), by_kind(*what)
    text = "{}\n.. comparison prices start here\n\n{}\n.. trees and forests start here\n\n{}"
    publish(text.format(*parts), options.rst)


if __name__ == "__main__":
    main()
