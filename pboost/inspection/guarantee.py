"""What is certain of the error of a model on new rows, from rows that it has not seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.bounds import clopper_pearson_lower, clopper_pearson_upper, pac_bayes_bound
from pboost.inspection.calibration import calibration_rows
from pboost.models.base import Model, TwoClassModel, evaluation_cost
from pboost.models.early_exit import EarlyExitModel
from pboost.values import FloatArray, check_number, freeze


@dataclass(frozen=True, slots=True, eq=False)
class Guarantee:
    """What `guarantee` found; ``print`` shows it.

    Attributes
    ----------
    rows, errors : int
        Number of calibration rows, and of those that were misclassified.
    delta : float
        Each bound by itself fails with at most this probability.
    upper, lower : float
        The error on new rows is at most `upper`; it is at least `lower`.
    label_error, label_upper : ndarray of float64, shape (J,)
        Share of the calibration rows of each label that were misclassified, and the bound on it;
        NaN and 1 of labels without rows.
    pac_bayes : float
        The bound of `pboost.bounds.pac_bayes_bound` on the same errors, to compare.
    certificate : float
        The bound on the training error that the model carries; NaN where it has none.
    certificate_note : str
        What to know of the certificate; empty where answers are exact.
    cost : float
        Mean number of comparisons per calibration row, up to where rows leave if they leave early.
    whole_cost : float
        The same of the whole model.
    labels : ndarray, shape (J,)
        The labels of the model.
    out_of_bag : float
        The error out of the bags, an estimate; NaN where the model has none.
    """

    rows: int
    errors: int
    delta: float
    upper: float
    lower: float
    label_error: FloatArray
    label_upper: FloatArray
    pac_bayes: float
    certificate: float
    certificate_note: str
    cost: float
    whole_cost: float
    labels: NDArray[Any]
    out_of_bag: float

    @property
    def error(self) -> float:
        """Share of the calibration rows that were misclassified."""
        return self.errors / self.rows

    def __str__(self) -> str:
        return self.describe()

    def describe(self) -> str:
        """Return the certificate, the guarantee and the cost as readable text."""
        sure = f"with {100 * (1 - self.delta):.4g} %"
        lines = ["training:"]
        if math.isnan(self.certificate):
            lines.append("  certificate   none: this kind of model carries no bound")
        else:
            note = f"; it {self.certificate_note}" if self.certificate_note else ""
            lines.append(f"  certificate   training error <= {self.certificate:.4g}{note}")
        lines += [
            f"new rows, from {self.rows} that were not trained on:",
            f"  error         {self.error:.2%} measured, <= {self.upper:.2%} {sure} "
            f"(>= {self.lower:.2%} {sure})",
        ]
        for label, error, upper in zip(
            self.labels.tolist(), self.label_error, self.label_upper, strict=True
        ):
            said = "no rows, so that nothing is bounded"
            if not math.isnan(error):
                said = f"{error:.2%} measured, <= {upper:.2%} {sure}"
            lines.append(f"    of {label!r}: {said}")
        lines.append(f"  PAC-Bayes     <= {self.pac_bayes:.2%}, of the same rows; never the less")
        if not math.isnan(self.out_of_bag):
            lines.append(
                f"  out of bag    {self.out_of_bag:.2%}, an estimate: its rows were trained on"
            )
        lines.append("cost:")
        whole = f", {self.whole_cost:.4g} of the whole model" if self.cost < self.whole_cost else ""
        lines.append(f"  comparisons   {self.cost:.4g} per row{whole}")
        return "\n".join(lines)


def guarantee(model: Model, X_cal: Any, y_cal: ArrayLike, *, delta: float = 0.05) -> Guarantee:
    """Bound the error of a classifier on new rows, from rows that it was not fitted to.

    Parameters
    ----------
    model : DecisionGraph, Forest, EarlyExitModel or another classifier
        A fitted model.
    X_cal : array_like of shape (n, d), or data frame
        Rows drawn as new ones will be, independently, and used for nothing before: neither to fit,
        nor to choose options, to stop growth or to set exits.
    y_cal : array_like of shape (n,)
        Their labels.
    delta : float
        Probability with which a bound may fail, over the draw of these rows; in (0, 1).

    Returns
    -------
    Guarantee
        ``upper`` is the bound of Clopper and Pearson, exact for every n.

    Raises
    ------
    ValueError
        If there are no rows, or all have one label; if a label is unknown to the model, or delta
        outside (0, 1).
    NotImplementedError
        Of a regression.

    Warns
    -----
    UserWarning
        If many of the rows equal rows that the model has seen, by its digest ``model.seen``.

    See Also
    --------
    risk_threshold : the threshold that keeps errors of one kind below a limit.
    label_sets : sets of labels that have the true one with a given probability.

    Notes
    -----
    The bounds on the labels and that on the whole hold each by itself. For J labels at once give
    ``delta / J``.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=2000) > 0
    >>> model = pb.fit_adaboost(X[:1000], y[:1000], rounds=20)
    >>> found = pb.guarantee(model, X[1000:], y[1000:])
    >>> round(found.error, 3), round(found.upper, 3)
    (0.138, 0.157)
    """
    failing = check_number("delta", delta, least=0, most=1, open_least=True, open_most=True)
    rows = calibration_rows(model, X_cal, y_cal, "the error")
    labels = np.asarray(model.labels)
    is_wrong = model.predict(rows.X) != labels[rows.code]
    n, errors = rows.n_rows, int(np.count_nonzero(is_wrong))
    wrong = np.bincount(rows.code, weights=is_wrong, minlength=len(labels))
    counts = np.maximum(rows.counts, 1)
    has_rows = rows.counts > 0
    upper = np.asarray(clopper_pearson_upper(wrong, counts, delta=failing))
    inner = model.model if isinstance(model, EarlyExitModel) else model
    cost = float(np.mean(evaluation_cost(model, rows.X)))
    whole = cost if inner is model else float(np.mean(evaluation_cost(inner, rows.X)))
    certificate, note = math.nan, ""
    if isinstance(inner, TwoClassModel):
        certificate, note = float(inner.record.certificate[-1]), inner.certificate_note
    out_of_bag = getattr(inner, "oob", None)
    return Guarantee(
        n,
        errors,
        failing,
        float(clopper_pearson_upper(errors, n, delta=failing)),
        float(clopper_pearson_lower(errors, n, delta=failing)),
        freeze(np.where(has_rows, wrong / counts, np.nan)),
        freeze(np.where(has_rows, upper, 1.0)),
        float(pac_bayes_bound(errors / n, n, delta=failing)),
        certificate,
        note,
        cost,
        whole,
        labels,
        math.nan if out_of_bag is None else out_of_bag.error,
    )
