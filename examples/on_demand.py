"""Which tests does this patient need? Asking a model's questions one by one, by their prices.

The age of a patient is known, a nurse takes the blood pressure, a sample of blood gives two values
at once, a scan is dear. A forest decides about new patients, and asks for what it needs. Run as
``python on_demand.py``: prints what patients cost on average if everything is measured, if only
what the forest reads is, and if it stops as soon as the answer is settled; then what the answers
are worth within budgets, and what was asked about one patient.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pboost as pb

AGE, PRESSURE, SUGAR, IRON, SCAN = range(5)
COLUMNS = ("age", "pressure", "sugar", "iron", "scan")
GROUPS = {"blood": (SUGAR, IRON)}
PRICES: dict[str | int, float] = {AGE: 0, PRESSURE: 5, "blood": 30, SCAN: 400}
N_TRAIN, N_TEST = 1000, 200
BUDGETS = (0.0, 5.0, 35.0, 435.0)


class Within(NamedTuple):
    """What decisions within a budget are worth: means over patients."""

    cost: float
    error: float
    settled: float


def patients(n: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return measurements (n, 5) of patients, and whether they are ill."""
    X = rng.normal(size=(n, len(COLUMNS))).round(2)
    risk = X[:, AGE] + X[:, PRESSURE] + X[:, SUGAR] * X[:, IRON] + 0.8 * X[:, SCAN]
    return X, np.where(risk + 0.3 * rng.normal(size=n) > 0.5, "ill", "well")


def measurements(row: NDArray[Any]) -> dict[str | int, Any]:
    """Return what measures a patient when it is called."""
    alone = {column: partial(float, row[column]) for column in (AGE, PRESSURE, SCAN)}
    return {**alone, "blood": lambda: {column: float(row[column]) for column in GROUPS["blood"]}}


def decide(
    model: pb.models.RandomForest, X: NDArray[Any], **options: Any
) -> list[pb.acquisition.AcquisitionResult]:
    """Return the decisions about patients whose measurements are asked for."""
    options = {"feature_costs": PRICES, "cost_groups": GROUPS, **options}
    return [
        pb.acquisition.predict_with_acquisition(model, measurements(row), **options) for row in X
    ]


def compare(n_estimators: int = 15, n_test: int = N_TEST, seed: int = 0) -> dict[str, Any]:
    """Return what patients cost, how many labels differ, and what budgets are worth."""
    rng = np.random.default_rng(seed)
    X, y = patients(N_TRAIN, rng)
    X_new, y_new = patients(n_test, rng)
    model = pb.fit_random_forest(X, y, n_estimators=n_estimators, max_depth=4, rng=seed)
    on_path, early = decide(model, X_new, exit="none"), decide(model, X_new)
    budgets = {}
    for budget in BUDGETS:
        within = decide(model, X_new, budget=budget)
        budgets[budget] = Within(
            float(np.mean([item.cost for item in within])),
            float(np.mean([item.label for item in within] != y_new)),
            float(np.mean([item.is_settled for item in within])),
        )
    labels = pb.predict(model, X_new)
    return {
        "everything": sum(PRICES.values()),
        "what is read": float(np.mean([item.cost for item in on_path])),
        "until it is settled": float(np.mean([item.cost for item in early])),
        "differ": int(np.sum([item.label for item in early] != labels)),
        "budgets": budgets,
        "patient": early[0],
    }


def main(arguments: list[str] | None = None) -> None:
    """Print what patients cost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=15, help="trees of the forest")
    parser.add_argument("--patients", type=int, default=N_TEST, help="new patients")
    options = parser.parse_args(arguments)
    result = compare(options.members, options.patients)
    print("mean price of a patient")
    for name in ("everything", "what is read", "until it is settled"):
        print(f"  {name:20} {result[name]:6.1f}")
    print(f"labels that differ from those of predict: {result['differ']}")
    print("budget   paid   error   settled")
    for budget, within in result["budgets"].items():
        error, settled = f"{100 * within.error:.1f} %", f"{100 * within.settled:.0f} %"
        print(f"{budget:6.0f} {within.cost:6.1f} {error:>7} {settled:>9}")
    patient = result["patient"]
    print(f"the first patient is {patient.label}: {patient.reason}")
    for entry in patient.acquired:
        name = entry.source if isinstance(entry.source, str) else COLUMNS[entry.source]
        print(f"  {name:10} {entry.cost:6.1f}  {entry.value}")


if __name__ == "__main__":
    main()
