"""Sets of labels that have the true one with a given probability: conformal prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.inspection.calibration import calibration_rows
from pboost.models.base import Model
from pboost.values import (
    FloatArray,
    Seed,
    as_generator,
    check_choice,
    check_flag,
    check_number,
    freeze,
)

TIES = ("conservative", "random")


@dataclass(frozen=True, slots=True, eq=False)
class LabelSets:
    """Predicts sets of labels, made by `label_sets`; ``print`` shows what was calibrated.

    Attributes
    ----------
    model : Model
        The model whose probabilities it reads.
    alpha : float
        The true label of a new row is in its set with probability at least 1 - alpha.
    ties : {"conservative", "random"}
        How equal probabilities are taken.
    by_class : bool
        Whether that holds within each class.
    scores : tuple of ndarray of float64
        Probabilities of the true labels of the calibration rows, sorted; by class, if it is by
        class, else all as the only one.
    labels : ndarray, shape (J,)
        The labels of the model.
    """

    model: Model
    alpha: float
    ties: str
    by_class: bool
    scores: tuple[FloatArray, ...]
    labels: NDArray[Any]

    def contains(self, X: Any, *, rng: Seed = None) -> NDArray[np.bool_]:
        """Return whether each label is in the set of each row.

        Parameters
        ----------
        X : array_like of shape (n, d), or data frame
            See `decision_function`.
        rng : None, int, numpy.random.Generator or numpy.random.RandomState
            Orders equal probabilities, with ``ties="random"``.

        Returns
        -------
        ndarray of bool, shape (n, J)
            Columns in the order of `labels`. Sets can be empty: then no label is likely enough.
        """
        probability = self.model.predict_proba(X)
        generator = as_generator(rng)
        found = np.empty(probability.shape, dtype=bool)
        for k, column in enumerate(probability.T):
            score = self.scores[k if self.by_class else 0]
            # Of calibration rows, those that fit their labels worse; and as badly.
            worse = np.searchsorted(score, column, side="left")
            equal = np.searchsorted(score, column, side="right") - worse
            if self.ties == "random":
                equal = generator.integers(0, equal + 1)
            found[:, k] = worse + equal + 1 > self.alpha * (len(score) + 1)
        return found

    def predict(self, X: Any, *, rng: Seed = None) -> list[tuple[Any, ...]]:
        """Return the set of each row, as a tuple of labels.

        Parameters
        ----------
        X, rng
            See `contains`.

        Returns
        -------
        list of tuple
        """
        return [tuple(self.labels[row].tolist()) for row in self.contains(X, rng=rng)]

    def __str__(self) -> str:
        return self.describe()

    def describe(self) -> str:
        """Return what was calibrated on how many rows as readable text."""
        n = sum(map(len, self.scores))
        where = "of each class" if self.by_class else "on average over all rows"
        lines = [
            f"sets of {len(self.labels)} labels from {n} rows: the true one is in the set with "
            f"probability >= {1 - self.alpha:g} {where}, ties {self.ties}"
        ]
        if self.by_class:
            least = 1 / self.alpha - 1
            for label, score in zip(self.labels.tolist(), self.scores, strict=True):
                few = f", fewer than {least:.4g}: always in the set" if self._is_few(score) else ""
                lines.append(f"  {label!r}: {len(score)} rows{few}")
        elif self._is_few(self.scores[0]):
            lines.append(f"  fewer than {1 / self.alpha - 1:.4g} rows: every set has all labels")
        return "\n".join(lines)

    def _is_few(self, score: FloatArray) -> bool:
        """Return whether there are too few rows to leave a label out."""
        return bool(self.alpha * (len(score) + 1) < 1)


def label_sets(
    model: Model,
    X_cal: Any,
    y_cal: ArrayLike,
    *,
    alpha: float = 0.1,
    by_class: bool = False,
    ties: str = "conservative",
) -> LabelSets:
    """Calibrate sets of labels that have the true one with probability 1 - alpha on new rows.

    Split conformal prediction: a label is in the set of a row unless, of the calibration rows and
    this one, a share of at most alpha has a probability of the true label so low.

    Parameters
    ----------
    model : DecisionGraph, Forest or another classifier with probabilities
        A fitted model.
    X_cal, y_cal : array_like
        Rows that were used for nothing before, and their labels, see `guarantee`.
    alpha : float
        Probability with which the true label may be missing, over the draw of the calibration rows
        and of the new one; in (0, 1).
    by_class : bool
        Whether this holds within the rows of each label (Mondrian) and not only on average. A class
        of fewer than 1 / alpha - 1 calibration rows is then in every set.
    ties : {"conservative", "random"}
        Of equal probabilities: "conservative" counts the calibration rows as no better, so that
        the true label is in the set more often than need be; "random" orders them at random, so
        that it is there with a probability between 1 - alpha and 1 - alpha + 1 / (n + 1).

    Returns
    -------
    LabelSets
        Its ``predict(X)`` gives the sets of new rows, ``contains(X)`` the same as a matrix.

    Raises
    ------
    ValueError
        If the rows are not as in `guarantee`, or alpha outside (0, 1).

    Warns
    -----
    UserWarning
        If many of the rows equal rows that the model has seen, by its digest ``model.seen``.

    References
    ----------
    .. [1] V. Vovk, A. Gammerman and G. Shafer, *Algorithmic learning in a random world*, Springer
       (2005).
    .. [2] M. Sadinle, J. Lei and L. Wasserman, "Least ambiguous set-valued classifiers with bounded
       error levels", J. Amer. Statist. Assoc. 114 (2019).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 3))
    >>> y = np.where(X[:, 0] + 0.5 * rng.normal(size=3000) > 0, "yes", "no")
    >>> model = pb.fit_adaboost(X[:1000], y[:1000], rounds=20)
    >>> sets = pb.label_sets(model, X[1000:2000], y[1000:2000])
    >>> sets.predict([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    [('yes',), ('no', 'yes')]
    >>> found = sets.predict(X[2000:])
    >>> bool(np.mean([label in one for label, one in zip(y[2000:], found)]) > 0.88)
    True
    """
    failing = check_number("alpha", alpha, least=0, most=1, open_least=True, open_most=True)
    check_choice("ties", ties, TIES)
    check_flag("by_class", by_class)
    rows = calibration_rows(model, X_cal, y_cal, "how often the set has the label")
    score = model.predict_proba(rows.X)[np.arange(rows.n_rows), rows.code]
    labels = np.asarray(model.labels)
    parts = [score[rows.code == k] for k in range(len(labels))] if by_class else [score]
    return LabelSets(
        model, failing, ties, by_class, tuple(freeze(np.sort(part)) for part in parts), labels
    )
