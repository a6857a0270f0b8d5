"""Thresholds of probabilities that keep the errors of one kind below a limit on new rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.bounds import clopper_pearson_upper
from pboost.bounds._binomial import most_errors
from pboost.inspection.calibration import calibration_rows
from pboost.models.base import Model
from pboost.values import check_choice, check_number, shown

#: The kinds of errors, and the label of the rows on which they are made.
RISKS = {"false negatives": 1, "false positives": 0}


@dataclass(frozen=True, slots=True, eq=False)
class RiskThreshold:
    """What `risk_threshold` found; ``print`` shows it.

    Attributes
    ----------
    threshold : float
        What to pass to ``predict(model, X, threshold=)``.
    risk : {"false negatives", "false positives"}
        What is bounded.
    limit, delta : float
        On new rows the share of these errors among the rows of their label is above `limit` with
        probability at most `delta`.
    rows, errors : int
        Number of calibration rows of that label, and of errors of this kind among them.
    upper : float
        The bound of Clopper and Pearson for so many errors; at most `limit`.
    other_rows, other_errors : int
        The same of the other label: what the threshold costs, an estimate.
    labels : ndarray, shape (2,)
        The labels of the model; the second is positive.
    """

    threshold: float
    risk: str
    limit: float
    delta: float
    rows: int
    errors: int
    upper: float
    other_rows: int
    other_errors: int
    labels: NDArray[Any]

    def __str__(self) -> str:
        return self.describe()

    def describe(self) -> str:
        """Return the threshold, what it guarantees and what it costs as readable text."""
        own = RISKS[self.risk]
        (other,) = set(RISKS) - {self.risk}
        label, second = self.labels[own].item(), self.labels[1].item()
        share = self.other_errors / self.other_rows
        return (
            f"threshold {self.threshold:.6g}: {second!r} where its probability is larger\n"
            f"  {self.risk}: {self.errors} of {self.rows} rows of {label!r}; on new rows <= "
            f"{self.limit:.2%} with {100 * (1 - self.delta):.4g} %\n"
            f"  {other}: {self.other_errors} of {self.other_rows} rows of "
            f"{self.labels[1 - own].item()!r}, {share:.2%}, an estimate"
        )


def risk_threshold(
    model: Model,
    X_cal: Any,
    y_cal: ArrayLike,
    *,
    risk: str = "false negatives",
    limit: float,
    delta: float = 0.05,
) -> RiskThreshold:
    """Find the threshold that keeps false negatives, or positives, below a limit on new rows.

    Learn then test: thresholds are tested one after the other, from that at which no row can be an
    error of this kind on, up to the first at which the binomial test does not reject that the
    rate is above the limit. The last one before it errs least on the rows of the other label.

    Parameters
    ----------
    model : DecisionGraph, Forest or another classifier of two labels with probabilities
        A fitted model.
    X_cal, y_cal : array_like
        Rows that were used for nothing before, and their labels, see `guarantee`.
    risk : {"false negatives", "false positives"}
        "false negatives": the share of the rows of the second label that is given the first; "false
        positives": the share of those of the first that is given the second.
    limit : float
        What the risk may be at most, in (0, 1).
    delta : float
        Probability with which it may be more, over the draw of the calibration rows; in (0, 1).

    Returns
    -------
    RiskThreshold

    Raises
    ------
    ValueError
        If the model is not of two labels, the rows are not as described, or too few to prove the
        limit.

    Warns
    -----
    UserWarning
        If many of the rows equal rows that the model has seen, by its digest ``model.seen``.

    Notes
    -----
    The order does not depend on the rows, as it must not: the risk never falls along it. So all
    numbers between two probabilities need no test of their own, and the sequence ends at the
    probability of the calibration row that is one error too many.

    References
    ----------
    .. [1] A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan and L. Lei, "Learn then test:
       calibrating predictive algorithms to achieve risk control", arXiv:2110.01052 (2021).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 3))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=3000) > 0
    >>> model = pb.fit_adaboost(X[:1000], y[:1000], rounds=20)
    >>> found = pb.risk_threshold(model, X[1000:2000], y[1000:2000], limit=0.02)
    >>> said = pb.predict(model, X[2000:], threshold=found.threshold)
    >>> bool(np.mean(~said[y[2000:]]) <= 0.02)
    True
    """
    own = RISKS[check_choice("risk", risk, tuple(RISKS))]
    most = check_number("limit", limit, least=0, most=1, open_least=True, open_most=True)
    failing = check_number("delta", delta, least=0, most=1, open_least=True, open_most=True)
    rows = calibration_rows(model, X_cal, y_cal, risk)
    labels = np.asarray(model.labels)
    if len(labels) != 2:
        raise ValueError(
            f"model: expected one of two labels, got {len(labels)}: a threshold is that of the "
            "probability of the second; sets of labels, see label_sets, are for any number"
        )
    probability = model.predict_proba(rows.X)[:, 1]
    mine, others = probability[rows.code == own], probability[rows.code != own]
    allowed = most_errors(len(mine), most, failing)
    if allowed < 0:
        least = math.ceil(math.log(failing) / math.log1p(-most))
        raise ValueError(
            f"X_cal: expected at least {least} rows of label {shown(labels[own].item())} to prove "
            f"{risk} <= {most:g} with probability {1 - failing:g}, got {len(mine)}"
        )
    if own:
        # The first row that is one too many is not below the threshold: its probability is larger.
        threshold = float(np.nextafter(np.sort(mine)[allowed], -1.0))
    else:
        threshold = float(np.sort(mine)[len(mine) - 1 - allowed])
    if not threshold >= 0:
        raise ValueError(
            f"model: gives the probability 0 to {np.count_nonzero(mine == 0)} of {len(mine)} rows "
            f"of label {shown(labels[1].item())}, of which no threshold makes others"
        )
    errors = int(np.count_nonzero((mine > threshold) != bool(own)))
    return RiskThreshold(
        threshold,
        risk,
        most,
        failing,
        len(mine),
        errors,
        float(clopper_pearson_upper(errors, len(mine), delta=failing)),
        len(others),
        int(np.count_nonzero((others > threshold) == bool(own))),
        labels,
    )
