"""An interpretable probit model tree of the Pima data: its splits, equations and coefficients.

Run as ``python probit_tree_pima.py --data folder --out folder``. Prints the tree, its mean
coefficients and cross-validated errors, and writes a PNG; requires pandas and matplotlib. The first
folder contains ``pima.csv.gz``, whose first line has the column names, ending in ``target``. Zeros
in place of missing measurements are not replaced.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import pboost as pb

FILE = "probit_tree_pima.png"
OPTIONS = {"max_depth": 2, "min_samples_leaf": 100, "max_iter": 5}
SEED = 0
#: Models to compare with the tree.
RIVALS = {
    "probit tree": partial(pb.fit_probit_tree, **OPTIONS),
    "one equation": partial(pb.fit_probitboost, max_iter=OPTIONS["max_iter"]),
    "pruned CART": partial(pb.fit_pruned_cart, rng=SEED),
}


def report(model: pb.models.ProbitTree, X: Any, y: Any) -> str:
    """Return the tree, its coefficients per standard deviation, and cross-validated errors."""
    lines = [pb.describe(model), "", str(pb.inspection.coefficients(model, X)), ""]
    for name, fit in RIVALS.items():
        error = pb.cross_validate(fit, X, y, cv=10, rng=SEED).error
        lines.append(f"{name:<12}  error {100 * error.mean():.1f} %")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> None:
    """Print the report and write the figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with pima.csv.gz")
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the figure")
    options = parser.parse_args(argv)
    path = options.data / "pima.csv.gz"
    if not path.exists():
        parser.error(f"--data: no file {path}")
    X = pd.read_csv(path, dtype={"target": str})
    y = X.pop("target").to_numpy()
    model = RIVALS["probit tree"](X, y)
    print(report(model, X, y), end="")
    options.out.mkdir(parents=True, exist_ok=True)
    axes = pb.plot.coefficients(model, X)
    axes.figure.savefig(options.out / FILE, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
