"""Options that pboost shares with LightGBM, XGBoost and scikit-learn, compared by fits in both.

``python peer_options.py --rst peer_options_table.rst`` fits small problems, mostly with one split,
and with one option that differs from its default, in pboost and in each library that has the
option. It writes a table of the results. Requires LightGBM, XGBoost and scikit-learn.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import peer_cases as cases
import peer_trees
from peer_cases import HERE, MOST, Case, Data

import pboost as pb

#: Tolerance for equal results; xgboost uses float32.
CLOSE = {"rtol": 1e-4, "atol": 1e-6}
#: Options of all fits: one Newton step with one split, and no regularization.
BASE: dict[str, dict[str, Any]] = {
    HERE: {
        "n_estimators": 1,
        "learning_rate": 1.0,
        "max_depth": 1,
        "l2_regularization": 0.0,
        "max_delta_step": None,
        "growth": "independent",
        "categorical_smoothing": 0.0,
        "init": "zero",
    },
    "lightgbm": {
        "max_depth": 1,
        "learning_rate": 1.0,
        "min_data_in_leaf": 1,
        "min_data_in_bin": 1,
        "min_sum_hessian_in_leaf": 0.0,
        "boost_from_average": False,
        "num_threads": 1,
        "verbosity": -1,
        "cat_smooth": 0.0,
        "cat_l2": 0.0,
        "min_data_per_group": 1,
        "max_cat_to_onehot": 1,
    },
    "xgboost": {
        "max_depth": 1,
        "learning_rate": 1.0,
        "reg_lambda": 0.0,
        "min_child_weight": 0.0,
        "nthread": 1,
        "verbosity": 0,
        "max_cat_to_onehot": 1,
        "tree_method": "hist",
    },
    "HistGradientBoosting": {
        "max_iter": 1,
        "learning_rate": 1.0,
        "max_depth": 1,
        "min_samples_leaf": 1,
        "max_leaf_nodes": None,
        "early_stopping": False,
    },
    "GradientBoosting": {
        "n_estimators": 1,
        "learning_rate": 1.0,
        "max_depth": 1,
        "init": "zero",
        "random_state": 0,
    },
}


class Fitted(NamedTuple):
    """The compared results of a model: decision values of the training rows, and counts.

    `columns` is the number of used features, `root` the number of rows at the root of the first
    tree, and `rounds` the number of rounds.
    """

    values: np.ndarray
    columns: int = 0
    root: float = np.nan
    rounds: int = 0

    @property
    def leaves(self) -> int:
        """The number of distinct decision values."""
        return len(np.unique(self.values))


class Row(NamedTuple):
    """A row of the table: an option in two libraries, and the results.

    `without` is the result of pboost without the option, or None. `difference` explains why the two
    results differ, or is "".
    """

    option: str
    peer: str
    theirs: str
    compared: str
    here: Any
    there: Any
    without: Any
    difference: str

    @property
    def agrees(self) -> bool:
        """Whether the two results are equal."""
        return np.shape(self.here) == np.shape(self.there) and np.allclose(
            self.here, self.there, **CLOSE
        )


# ------------------------------------------------------------------ fits


def fit_here(data: Data, options: dict[str, Any]) -> Fitted:
    """Fit a gradient boosting model of pboost."""
    loss = cases.LOSSES[data.loss][HERE]
    is_curved = pb.losses.check_loss(loss).name in cases.CURVED
    task = "classification" if data.loss in cases.OF_CLASSES else "regression"
    options = {"leaf_update": "newton" if is_curved else "line_search", "task": task, **options}
    again = options.pop("continue_fit", 0)
    if "validation" in options:
        options["validation"] = data.held
    model = pb.fit_gradient_boosting(data.X, data.y, loss=loss, rng=0, **options)
    if again:
        model = pb.continue_fit(model, data.X, data.y, n_estimators=again)
    columns = np.count_nonzero(pb.feature_importances(model))
    root, values = float(model.trees[0].n_rows[0]), pb.decision_function(model, data.X)
    return Fitted(centred(values), columns, root, len(model))


def centred(values: np.ndarray) -> np.ndarray:
    """Return decision values; multiclass values are centered."""
    return values - values.mean() if values.ndim > 1 else values


def fit_lightgbm(data: Data, options: dict[str, Any]) -> Fitted:
    """Fit LightGBM."""
    import lightgbm

    own = {"objective": cases.LOSSES[data.loss]["lightgbm"], **options}
    weight, rounds = own.pop("weight", None), own.pop("num_boost_round", 1)
    columns, again = own.pop("categorical_feature", "auto"), own.pop("init_model", 0)
    rows = lightgbm.Dataset(data.X, data.y, weight=weight, categorical_feature=columns)
    held: Any = {}
    if "early_stopping_round" in own:
        held["valid_sets"] = [lightgbm.Dataset(*data.held, reference=rows)]
    model = lightgbm.train(own, rows, rounds, **held)
    if again:
        rows = lightgbm.Dataset(data.X, data.y)
        model = lightgbm.train(own, rows, again, init_model=model)
    root = model.dump_model()["tree_info"][0]["tree_structure"].get("internal_count", np.nan)
    used, values = (
        np.count_nonzero(model.feature_importance()),
        model.predict(data.X, raw_score=True),
    )
    kept = model.best_iteration if held else model.num_trees()
    return Fitted(centred(values), used, root, kept)


def fit_xgboost(data: Data, options: dict[str, Any]) -> Fitted:
    """Fit XGBoost."""
    import xgboost

    score = {"log_loss": 0.5, "poisson": 1.0}.get(data.loss, 0.0)
    own = {"objective": cases.LOSSES[data.loss]["xgboost"], "base_score": score, **options}
    weight, rounds = own.pop("weight", None), own.pop("num_boost_round", 1)
    patience, again = own.pop("early_stopping_rounds", None), own.pop("xgb_model", 0)
    types = ["c"] * data.X.shape[1] if own.pop("enable_categorical", False) else None
    kind = {"feature_types": types, "enable_categorical": types is not None}
    rows = xgboost.DMatrix(data.X, data.y, weight=weight, **kind)
    held: Any = {}
    if patience is not None:
        watched = [(xgboost.DMatrix(*data.held), "held")]
        held = {"early_stopping_rounds": patience, "evals": watched, "verbose_eval": False}
    if own["base_score"] is None:
        del own["base_score"]
    model = xgboost.train(own, rows, rounds, **held)
    if again:
        model = xgboost.train(own, rows, again, xgb_model=model)
    values = model.predict(rows, output_margin=True).astype(float)
    kept = model.best_iteration + 1 if held else model.num_boosted_rounds()
    root = np.nan
    if data.loss == "squared_error":  # the sum of Hessians is then the number of rows
        root = json.loads(model.get_dump(with_stats=True, dump_format="json")[0])["cover"]
    return Fitted(centred(values), len(model.get_score()), root, kept)


def fit_sklearn(kind: str, data: Data, options: dict[str, Any]) -> Fitted:
    """Fit an estimator of scikit-learn."""
    from sklearn import ensemble

    of = "Classifier" if data.loss in cases.OF_CLASSES else "Regressor"
    options = {"loss": cases.LOSSES[data.loss][kind], **options}
    weight, again = options.pop("sample_weight", None), options.pop("warm_start", 0)
    held: Any = {}
    if "X_val" in options:
        held = {"X_val": data.held[0], "y_val": data.held[1]}
        del options["X_val"]
    model = getattr(ensemble, kind + of)(**options)
    model.fit(data.X, data.y, sample_weight=weight, **held)
    if again:
        name = "max_iter" if kind.startswith("Hist") else "n_estimators"
        model.set_params(warm_start=True, **{name: options[name] + again})
        model.fit(data.X, data.y)
    if of == "Classifier":
        values = model.decision_function(data.X)
    else:
        values = model.predict(data.X)
        values = np.log(values) if data.loss == "poisson" else values
    if kind.startswith("Hist"):
        return Fitted(centred(values), rounds=model.n_iter_)
    first = model.estimators_[0, 0].tree_
    used = np.count_nonzero(model.feature_importances_)
    return Fitted(values, used, float(first.n_node_samples[0]), len(model.estimators_))


def fit(kind: str, data: Data, options: dict[str, Any]) -> Fitted:
    """Fit a library with the common options and the given options."""
    own = {**BASE[kind], **options}
    fits = {HERE: fit_here, "lightgbm": fit_lightgbm, "xgboost": fit_xgboost}
    return fits[kind](data, own) if kind in fits else fit_sklearn(kind, data, own)


# ------------------------------------------------------------------ comparisons


def most(kind: str, data: Data, options: dict[str, Any]) -> float:
    """Return the largest value of the option `MOST` that still gives a split."""
    (name,) = (name for name, value in options.items() if value is MOST)

    def is_split(number: float) -> bool:
        values = fit(kind, data, {**options, name: number}).values
        return bool((np.ptp(values, axis=0) > 1e-9).any())

    low, high = 0.0, 1.0
    while is_split(high):
        low, high = high, 2 * high
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if is_split(middle) else (low, middle)
    return high


def measured(kind: str, case: Case, options: dict[str, Any]) -> Any:
    """Return the compared result of a fit."""
    data = cases.DATA[case.data]
    if case.compared == "most":
        return most(kind, data, options)
    return getattr(fit(kind, data, options), case.compared)


def rows_of(case: Case) -> Iterator[Row]:
    """Yield the table rows of a case, one per library."""
    for kind, theirs in case.peers.items():
        # HistGradientBoosting starts at the constant with the smallest loss.
        start = {"init": "constant"} if kind.startswith("Hist") else {}
        own = {**start, **case.here}
        here, there = measured(HERE, case, own), measured(kind, case, theirs)
        usual = {name: own[name] for name in own if name in (*case.shared, *start)}
        has_without = case.compared != "most" and own != usual
        without = measured(HERE, case, usual) if has_without else None
        yield Row(
            case.title,
            kind,
            cases.named(theirs),
            cases.COMPARED[case.compared],
            here,
            there,
            without,
            case.differences.get(kind, ""),
        )


# ------------------------------------------------------------------ the table


def shown(found: Any) -> str:
    """Format distinct numbers for the table, in order."""
    numbers = np.unique(np.asarray(found, dtype=float).round(4))
    text = [f"{number:.6g}" for number in (numbers + 0.0).tolist()]
    return ", ".join(text if len(text) <= 4 else [*text[:2], "...", text[-1]])


def table(rows: Iterator[Row], heading: str) -> Iterator[str]:
    """Yield the lines of a table."""
    yield from (f".. list-table:: {heading}", "   :header-rows: 1")
    yield from ("   :widths: 20 16 22 16 14 14 22", "")
    first = ["pboost option", "library", "library option", "compared"]
    first += ["in pboost", "in the library", "difference"]
    yield from (f"   {' ' if k else '*'} - {cell}" for k, cell in enumerate(first))
    for row in rows:
        yield from cells_of(row)
    yield ""


def cells_of(row: Row) -> list[str]:
    """Return the cells of a row."""
    option, theirs = (f"``{name}``" if name else "" for name in (row.option, row.theirs))
    cells = (
        option,
        row.peer,
        theirs,
        row.compared,
        shown(row.here),
        shown(row.there),
        row.difference,
    )
    return [f"   {' ' if k else '*'} - {cell}".rstrip() for k, cell in enumerate(cells)]


def boosting_rows() -> Iterator[Row]:
    """Yield the rows for all options of gradient boosting."""
    for case in cases.CASES:
        yield from rows_of(case)


def loss_rows() -> Iterator[Row]:
    """Yield the rows for all losses, with the scale of their regularization parameters."""
    for case in cases.loss_cases():
        yield from rows_of(case)


def tree_rows() -> Iterator[Row]:
    """Yield the rows for single trees, forests, bagging and AdaBoost in scikit-learn."""
    for item in peer_trees.rows():
        yield Row(*item)


TABLES: dict[str, Callable[[], Iterator[Row]]] = {
    "Losses": loss_rows,
    "Sums of trees": boosting_rows,
    "Trees, forests and votes": tree_rows,
}


def text() -> str:
    """Return the tables, which a page of the documentation includes."""
    lines = [":orphan:", "", ".. tables start here", ""]
    for heading, rows in TABLES.items():
        lines += table(rows(), heading)
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> None:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rst", type=Path, help="file to write the tables to")
    path = parser.parse_args(argv).rst
    if path is None:
        print(text())
    else:
        path.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
