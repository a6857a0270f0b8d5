"""The published table that two of the examples compare with, its data sets, and comparisons.

The source is T. Qin and W.-M. Huang, "On subbagging boosted probit model trees", Table 2. The data
are in a folder of files ``name.csv.gz``: a line of column names, the last of which is ``target``;
``__cat`` in a name marks a categorical column, and an empty field is a missing value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oblique_trees import native

#: The folds of the source.
PRINTED_FOLDS = 10
QUICK_SETS = 3
METHODS = (
    "SBPMT",
    "RandomForest",
    "GradientBoost(100)",
    "AdaBoost.M1(100)",
    "XGBoost(10)",
    "XGBoost(100)",
)
#: Table 2: by data set, the file, and for each of the methods the mean and the standard deviation
#: over the folds of the accuracy in %.
TABLE_2: dict[str, tuple[Any, ...]] = {
    "Iris": (
        "iris",
        (96.00, 5.62),
        (94.67, 5.26),
        (94.67, 6.13),
        (94.00, 7.34),
        (95.33, 5.49),
        (95.33, 5.49),
    ),
    "Glass": (
        "glass",
        (75.67, 8.97),
        (77.09, 9.57),
        (75.27, 9.55),
        (73.26, 9.60),
        (75.62, 8.78),
        (77.53, 9.35),
    ),
    "Ionosphere": (
        "ionosphere",
        (92.87, 2.75),
        (93.68, 3.84),
        (92.00, 3.77),
        (93.68, 3.39),
        (92.86, 2.79),
        (92.85, 2.10),
    ),
    "Diabetes": (
        "diabetes_early",
        (95.96, 1.42),
        (97.69, 1.52),
        (91.35, 3.04),
        (97.50, 2.04),
        (95.38, 2.26),
        (95.38, 2.26),
    ),
    "Breast-Cancer": (
        "breast_cancer_wdbc",
        (97.03, 2.45),
        (96.34, 4.27),
        (95.82, 4.62),
        (96.16, 3.62),
        (93.89, 5.72),
        (95.64, 4.96),
    ),
    "Balance-scale": (
        "balance_scale",
        (95.19, 2.62),
        (83.53, 4.08),
        (90.88, 1.52),
        (85.46, 3.86),
        (86.56, 2.73),
        (87.84, 3.22),
    ),
    "Pima-indians": (
        "pima",
        (77.73, 6.24),
        (76.57, 6.12),
        (75.78, 5.30),
        (73.31, 6.03),
        (75.26, 7.07),
        (75.65, 6.76),
    ),
    "Raisin": (
        "raisin",
        (86.44, 3.70),
        (86.44, 4.02),
        (86.56, 3.65),
        (86.89, 4.68),
        (84.67, 6.01),
        (84.33, 4.04),
    ),
    "Tic-tac-toe": (
        "tic_tac_toe",
        (97.91, 1.56),
        (99.16, 1.08),
        (74.23, 3.76),
        (99.58, 0.73),
        (98.22, 1.72),
        (98.33, 1.50),
    ),
    "Biodegradation": (
        "biodegradation",
        (87.59, 1.92),
        (87.20, 2.47),
        (84.16, 3.73),
        (86.54, 1.64),
        (86.16, 2.67),
        (86.63, 1.84),
    ),
    "BHP": (
        "bhp",
        (100.00, 0.00),
        (100.00, 0.00),
        (86.90, 3.79),
        (100.00, 0.00),
        (98.97, 1.36),
        (100.00, 0.00),
    ),
    "Banknote": (
        "banknote",
        (99.78, 0.35),
        (99.34, 0.94),
        (96.72, 2.02),
        (99.64, 0.52),
        (98.61, 1.44),
        (98.69, 1.32),
    ),
    "Obesity": (
        "obesity",
        (97.39, 1.10),
        (95.03, 1.12),
        (82.19, 2.18),
        (97.44, 1.03),
        (95.08, 1.45),
        (97.49, 0.92),
    ),
    "Waveform+noise": (
        "waveform_noise",
        (86.16, 1.39),
        (85.36, 2.08),
        (84.78, 1.93),
        (84.56, 2.02),
        (84.26, 1.74),
        (85.38, 1.93),
    ),
    "Pendigits": (
        "pendigits",
        (99.38, 0.24),
        (99.21, 0.25),
        (90.63, 1.17),
        (98.57, 0.25),
        (98.20, 0.49),
        (99.18, 0.33),
    ),
    "Letter": (
        "letter",
        (95.50, 0.31),
        (96.85, 0.24),
        (73.17, 0.64),
        (96.12, 0.36),
        (90.14, 0.90),
        (96.60, 0.27),
    ),
}


@dataclass(frozen=True)
class DataSet:
    """A set of Table 2 whose data are there.

    Attributes
    ----------
    name : str
        As in Table 2.
    X : ndarray, shape (n, d)
        Columns of categories are replaced by one column of zeros and ones per value, but not where
        values are missing: there they hold numbers of levels, and NaN.
    y : ndarray of str, shape (n,)
        Labels.
    categories : tuple of int
        Columns of numbers of levels.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[Any]
    categories: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """Cross-validation of one learner on one set.

    Attributes
    ----------
    mean, deviation : float
        Mean and standard deviation over the folds of the accuracy in %.
    folds : int
        Their number.
    seconds : float
        Median time of a fit.
    """

    mean: float
    deviation: float
    folds: int
    seconds: float = math.nan


def data_sets(folder: Path, quick: bool) -> tuple[list[DataSet], dict[str, str]]:
    """Return the sets whose data are there, and why others are left out."""
    result, left_out = [], {}
    for name, (file, *_) in TABLE_2.items():
        path = folder / f"{file}.csv.gz"
        if path.exists():
            X, target, categories = native(path)
            result.append(DataSet(name, X, target, categories))
        else:
            left_out[name] = "no data"
    return (result[:QUICK_SETS] if quick else result), left_out


def printed(name: str, method: str) -> Outcome:
    """Return what Table 2 says of a method."""
    return Outcome(*TABLE_2[name][1 + METHODS.index(method)], PRINTED_FOLDS)


def verdict(ours: Outcome, theirs: Outcome) -> str:
    """Return how our accuracy compares with a printed one."""
    more = round(ours.mean - theirs.mean, 9)
    variance = ours.deviation**2 / ours.folds + theirs.deviation**2 / theirs.folds
    if abs(more) > 2 * math.sqrt(variance):
        return "better" if more > 0 else "no"
    return "yes"


def folds_of(data: DataSet, folds: int) -> int:
    """Return the number of folds, at most as many as the rarest class has rows."""
    return min(folds, int(np.unique(data.y, return_counts=True)[1].min()))
