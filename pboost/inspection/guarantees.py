"""What is certain on new rows, from rows that a model has not seen: errors, thresholds, sets."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.bounds import clopper_pearson_lower, clopper_pearson_upper, pac_bayes_bound
from pboost.bounds._binomial import as_failing, hypergeometric_tail, most_errors
from pboost.data.read.check_xy import class_codes
from pboost.data.row_digest import Digest, DigestOverlap, hashes, seen_among
from pboost.models.base import Model, TwoClassModel, check_model, prediction_cost
from pboost.models.early_exit_model import EarlyExitModel
from pboost.models.evaluate.new_rows import count_rows, match_columns, reads_columns, table_for
from pboost.values import (
    Array,
    FloatArray,
    Seed,
    TableLike,
    as_generator,
    check_choice,
    check_flag,
    check_number,
    freeze,
    shown,
)

#: Rows were seen if so large a share of them is, more than is natural, and if chance finds as many
#: with this probability at most.
LEAST_SHARE, MOST_CHANCE = 0.1, 1e-4


class Calibration(NamedTuple):
    """Rows that a model of labels was not fitted to, and the numbers of their labels."""

    X: TableLike
    code: NDArray[np.intp]
    #: How many rows each label of the model has.
    counts: NDArray[np.intp]
    #: Hashes of the rows, None where the model reads no columns.
    hashed: Digest | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.code)


def calibration_rows(
    model: Model, X_cal: TableLike, y_cal: ArrayLike, what: str, done: str = "bounded"
) -> Calibration:
    """Return calibration rows, checked; `what` is of rows of a label, and by others not `done`."""
    check_model(model)
    classes = model.classes
    if classes is None:
        raise NotImplementedError(
            "model: expected a classifier, whose errors can be counted, got a regression"
        )
    X_cal = table_for(model, X_cal)
    n = count_rows(model, X_cal)
    if not n:
        raise ValueError(f"X_cal: expected calibration rows, got none: nothing can be {done}")
    try:
        code = class_codes(classes, y_cal, n)
    except ValueError as error:
        raise ValueError(
            str(error).replace("y:", "y_cal:", 1).replace("of X,", "of X_cal,")
        ) from None
    counts = np.bincount(code, minlength=len(classes))
    if np.count_nonzero(counts) == 1:
        only = shown(classes[code[0]].item())
        raise ValueError(
            f"y_cal: expected rows of two labels or more, got {only} only: {what} of rows of other "
            f"labels cannot be {done}"
        )
    return Calibration(X_cal, code, counts, hashes_of_unseen(model, X_cal, stacklevel=4))


def hashes_of_unseen(model: Model, X_cal: TableLike, stacklevel: int = 3) -> Digest | None:
    """Return the hashes of calibration rows; warn if the model has seen them.

    None where the model reads no columns. Of tables with few different rows many are found by
    nature, see `DigestOverlap`; only more than these are told.
    """
    if not reads_columns(model):
        return None
    hashed = hashes(match_columns(model, X_cal).values)
    for known in model.digests():
        seen = seen_among(known, hashed)
        if is_seen(seen):
            n = len(hashed)
            about = "" if seen.compared == n else "about "
            warnings.warn(
                f"X_cal: {about}{round(n * seen.n_found / seen.compared)} of {n} calibration rows "
                f"equal rows that the model was fitted to or set by, where {seen.natural:.0%} "
                "would be natural: what is found on them does not hold for new rows; pass rows "
                "that the model has not seen",
                UserWarning,
                stacklevel=stacklevel,
            )
            break
    return hashed


def is_seen(seen: DigestOverlap) -> bool:
    """Return whether more rows are found in a digest than new rows would be."""
    if not seen.n_found:
        return False
    share = seen.n_found / seen.compared
    if share - seen.natural < LEAST_SHARE * (1 - seen.natural):
        return False
    chance = hypergeometric_tail(seen.n_found, seen.compared, seen.repeated, seen.rows)
    return chance <= MOST_CHANCE


# Bounds on the error


@dataclass(frozen=True, slots=True, eq=False)
class ErrorBound:
    """What `error_bound` found; ``print`` shows it.

    Attributes
    ----------
    n_rows, errors : int
        Number of calibration rows, and of those that were misclassified.
    confidence_level : float
        Each bound by itself holds with at least this probability.
    upper, lower : float
        The error on new rows is at most `upper`; it is at least `lower`.
    class_error, class_upper : ndarray of float64, shape (J,)
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
    classes : ndarray, shape (J,)
        The labels of the model.
    out_of_bag : float
        The error out of the bags, an estimate; NaN where the model has none.
    """

    n_rows: int
    errors: int
    confidence_level: float
    upper: float
    lower: float
    class_error: FloatArray
    class_upper: FloatArray
    pac_bayes: float
    certificate: float
    certificate_note: str
    cost: float
    whole_cost: float
    classes: Array
    out_of_bag: float

    @property
    def error(self) -> float:
        """Share of the calibration rows that were misclassified."""
        return self.errors / self.n_rows

    def describe(self) -> str:
        """Return the certificate, the error bound and the cost as readable text."""
        sure = f"with {100 * self.confidence_level:.4g} %"
        lines = ["training:"]
        if math.isnan(self.certificate):
            lines.append("  certificate   none: this kind of model carries no bound")
        else:
            note = f"; it {self.certificate_note}" if self.certificate_note else ""
            lines.append(f"  certificate   training error <= {self.certificate:.4g}{note}")
        lines += [
            f"new rows, from {self.n_rows} that were not trained on:",
            f"  error         {self.error:.2%} measured, <= {self.upper:.2%} {sure} "
            f"(>= {self.lower:.2%} {sure})",
        ]
        for label, error, upper in zip(
            self.classes.tolist(), self.class_error, self.class_upper, strict=True
        ):
            measured = "no rows, so that nothing is bounded"
            if not math.isnan(error):
                measured = f"{error:.2%} measured, <= {upper:.2%} {sure}"
            lines.append(f"    of {label!r}: {measured}")
        lines.append(f"  PAC-Bayes     <= {self.pac_bayes:.2%}, of the same rows; never the less")
        if not math.isnan(self.out_of_bag):
            lines.append(
                f"  out of bag    {self.out_of_bag:.2%}, an estimate: its rows were trained on"
            )
        lines.append("cost:")
        full_cost = (
            f", {self.whole_cost:.4g} of the whole model" if self.cost < self.whole_cost else ""
        )
        lines.append(f"  comparisons   {self.cost:.4g} per row{full_cost}")
        return "\n".join(lines)

    __str__ = describe


def error_bound(
    model: Model, X_cal: TableLike, y_cal: ArrayLike, *, confidence_level: float = 0.95
) -> ErrorBound:
    """Bound the error of a classifier on new rows, from rows that it was not fitted to.

    Parameters
    ----------
    model : DecisionGraph, RandomForest, EarlyExitModel or another classifier
        A fitted model.
    X_cal : array_like of shape (n, d), or data frame
        Rows drawn as new ones will be, independently, and used for nothing before: neither to fit,
        nor to choose options, to stop growth or to set exits.
    y_cal : array_like of shape (n,)
        Their labels.
    confidence_level : float
        Probability with which a bound holds, over the draw of these rows; in (0, 1).

    Returns
    -------
    ErrorBound
        ``upper`` is the bound of Clopper and Pearson, exact for every n.

    Raises
    ------
    ValueError
        If there are no rows, or all have one label; if a label is unknown to the model, or
        confidence_level outside (0, 1).
    NotImplementedError
        Of a regression.

    Warns
    -----
    UserWarning
        If many of the rows equal rows that the model has seen, by its digest ``model.seen``.

    See Also
    --------
    risk_threshold : the threshold that keeps errors of one kind below a limit.
    prediction_sets : sets of labels that have the true one with a given probability.

    Notes
    -----
    The bounds on the labels and that on the whole hold each by itself. For J labels at once give
    ``1 - (1 - confidence_level) / J``.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=2000) > 0
    >>> model = pb.fit_adaboost(X[:1000], y[:1000], n_estimators=20)
    >>> found = pb.error_bound(model, X[1000:], y[1000:])
    >>> round(found.error, 3), round(found.upper, 3)
    (0.138, 0.157)
    """
    level = check_number(
        "confidence_level", confidence_level, min_value=0, max_value=1, open_min=True, open_max=True
    )
    rows = calibration_rows(model, X_cal, y_cal, "the error")
    classes = np.asarray(model.classes)
    is_wrong = model.predict(rows.X) != classes[rows.code]
    n, errors = rows.n_rows, int(np.count_nonzero(is_wrong))
    wrong = np.bincount(rows.code, weights=is_wrong, minlength=len(classes))
    counts = np.maximum(rows.counts, 1)
    has_rows = rows.counts > 0
    upper = np.asarray(clopper_pearson_upper(wrong, counts, confidence_level=level))
    inner = model.model if isinstance(model, EarlyExitModel) else model
    cost = float(np.mean(prediction_cost(model, rows.X)))
    full_cost = cost if inner is model else float(np.mean(prediction_cost(inner, rows.X)))
    certificate, note = math.nan, ""
    if isinstance(inner, TwoClassModel):
        certificate, note = float(inner.record.certificate[-1]), inner.certificate_note
    out_of_bag = getattr(inner, "oob", None)
    return ErrorBound(
        n,
        errors,
        level,
        float(clopper_pearson_upper(errors, n, confidence_level=level)),
        float(clopper_pearson_lower(errors, n, confidence_level=level)),
        freeze(np.where(has_rows, wrong / counts, np.nan)),
        freeze(np.where(has_rows, upper, 1.0)),
        float(pac_bayes_bound(errors / n, n, confidence_level=level)),
        certificate,
        note,
        cost,
        full_cost,
        classes,
        math.nan if out_of_bag is None else out_of_bag.error,
    )


# Thresholds that control a risk

#: The kinds of errors, and the label of the rows on which they are made.
Risk: TypeAlias = Literal["false_negatives", "false_positives"]
RISKS: dict[str, int] = dict(zip(get_args(Risk), (1, 0), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class RiskThreshold:
    """What `risk_threshold` found; ``print`` shows it.

    Attributes
    ----------
    threshold : float
        What to pass to ``predict(model, X, threshold=)``.
    risk : {"false_negatives", "false_positives"}
        What is bounded.
    max_risk, confidence_level : float
        On new rows the share of these errors among the rows of their label is at most `max_risk`
        with probability `confidence_level` or more.
    n_rows, errors : int
        Number of calibration rows of that label, and of errors of this kind among them.
    upper : float
        The bound of Clopper and Pearson for so many errors; at most `max_risk`.
    other_rows, other_errors : int
        The same of the other label: what the threshold costs, an estimate.
    classes : ndarray, shape (2,)
        The labels of the model; the second is positive.
    """

    threshold: float
    risk: Risk
    max_risk: float
    confidence_level: float
    n_rows: int
    errors: int
    upper: float
    other_rows: int
    other_errors: int
    classes: Array

    def describe(self) -> str:
        """Return the threshold, what it guarantees and what it costs as readable text."""
        class_index = RISKS[self.risk]
        (other,) = set(RISKS) - {self.risk}
        label, second = self.classes[class_index].item(), self.classes[1].item()
        share = self.other_errors / self.other_rows
        return (
            f"threshold {self.threshold:.6g}: {second!r} where its probability is larger\n"
            f"  {self.risk}: {self.errors} of {self.n_rows} rows of {label!r}; on new rows <= "
            f"{self.max_risk:.2%} with {100 * self.confidence_level:.4g} %\n"
            f"  {other}: {self.other_errors} of {self.other_rows} rows of "
            f"{self.classes[1 - class_index].item()!r}, {share:.2%}, an estimate"
        )

    __str__ = describe


def risk_threshold(
    model: Model,
    X_cal: TableLike,
    y_cal: ArrayLike,
    *,
    risk: Risk = "false_negatives",
    max_risk: float,
    confidence_level: float = 0.95,
) -> RiskThreshold:
    """Find the threshold that keeps false negatives, or positives, below a limit on new rows.

    Learn then test: thresholds are tested one after the other, from that at which no row can be an
    error of this kind on, up to the first at which the binomial test does not reject that the
    rate is above the limit. The last one before it errs least on the rows of the other label.

    Parameters
    ----------
    model : DecisionGraph, RandomForest or another classifier of two labels with probabilities
        A fitted model.
    X_cal, y_cal : array_like
        Rows that were used for nothing before, and their labels, see `error_bound`.
    risk : {"false_negatives", "false_positives"}
        "false_negatives": the share of the rows of the second label that is given the first; "false
        positives": the share of those of the first that is given the second.
    max_risk : float
        What the risk may be at most, in (0, 1).
    confidence_level : float
        Probability with which it is at most that, over the draw of the calibration rows; in (0, 1).

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
    >>> model = pb.fit_adaboost(X[:1000], y[:1000], n_estimators=20)
    >>> found = pb.risk_threshold(model, X[1000:2000], y[1000:2000], max_risk=0.02)
    >>> said = pb.predict(model, X[2000:], threshold=found.threshold)
    >>> bool(np.mean(~said[y[2000:]]) <= 0.02)
    True
    """
    class_index = RISKS[check_choice("risk", risk, tuple(RISKS))]
    risk_bound = check_number(
        "max_risk", max_risk, min_value=0, max_value=1, open_min=True, open_max=True
    )
    level = check_number(
        "confidence_level", confidence_level, min_value=0, max_value=1, open_min=True, open_max=True
    )
    rows = calibration_rows(model, X_cal, y_cal, risk)
    classes = np.asarray(model.classes)
    if len(classes) != 2:
        raise ValueError(
            f"model: expected one of two labels, got {len(classes)}: a threshold is that of the "
            "probability of the second; sets of labels, see prediction_sets, are for any number"
        )
    probability = model.predict_proba(rows.X)[:, 1]
    mine, others = probability[rows.code == class_index], probability[rows.code != class_index]
    failing = float(as_failing(level))
    allowed = most_errors(len(mine), risk_bound, failing)
    if allowed < 0:
        min_rows = math.ceil(math.log(failing) / math.log1p(-risk_bound))
        raise ValueError(
            f"X_cal: expected at least {min_rows} rows of label {shown(classes[class_index].item())} to prove "
            f"{risk} <= {risk_bound:g} with probability {level:g}, got {len(mine)}"
        )
    if class_index:
        # The first row that is one too many is not below the threshold: its probability is larger.
        threshold = float(np.nextafter(np.sort(mine)[allowed], -1.0))
    else:
        threshold = float(np.sort(mine)[len(mine) - 1 - allowed])
    if not threshold >= 0:
        raise ValueError(
            f"model: gives the probability 0 to {np.count_nonzero(mine == 0)} of {len(mine)} rows "
            f"of label {shown(classes[1].item())}, of which no threshold makes others"
        )
    errors = int(np.count_nonzero((mine > threshold) != bool(class_index)))
    return RiskThreshold(
        threshold,
        risk,
        risk_bound,
        level,
        len(mine),
        errors,
        float(clopper_pearson_upper(errors, len(mine), confidence_level=level)),
        len(others),
        int(np.count_nonzero((others > threshold) == bool(class_index))),
        classes,
    )


# Conformal prediction sets

Ties: TypeAlias = Literal["conservative", "random"]
TIES: tuple[Ties, ...] = get_args(Ties)


@dataclass(frozen=True, slots=True, eq=False)
class PredictionSets:
    """Predicts sets of labels, made by `prediction_sets`; ``print`` shows what was calibrated.

    Attributes
    ----------
    model : Model
        The model whose probabilities it reads.
    alpha : float
        The true label of a new row is in its set with probability at least 1 - alpha.
    ties : {"conservative", "random"}
        How equal probabilities are taken.
    per_class : bool
        Whether that holds within each class.
    scores : tuple of ndarray of float64
        Probabilities of the true labels of the calibration rows, sorted; by class, if it is by
        class, else all as the only one.
    classes : ndarray, shape (J,)
        The labels of the model.
    """

    model: Model
    alpha: float
    ties: Ties
    per_class: bool
    scores: tuple[FloatArray, ...]
    classes: Array

    def contains(self, X: TableLike, *, rng: Seed = None) -> NDArray[np.bool_]:
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
            Columns in the order of `classes`. Sets can be empty: then no label is likely enough.
        """
        probability = self.model.predict_proba(X)
        generator = as_generator(rng)
        is_in_set = np.empty(probability.shape, dtype=bool)
        for k, column in enumerate(probability.T):
            score = self.scores[k if self.per_class else 0]
            # Of calibration rows, those that fit their labels worse; and as badly.
            worse = np.searchsorted(score, column, side="left")
            equal = np.searchsorted(score, column, side="right") - worse
            if self.ties == "random":
                equal = generator.integers(0, equal + 1)
            is_in_set[:, k] = worse + equal + 1 > self.alpha * (len(score) + 1)
        return is_in_set

    def predict(self, X: TableLike, *, rng: Seed = None) -> list[tuple[object, ...]]:
        """Return the set of each row, as a tuple of labels.

        Parameters
        ----------
        X, rng
            See `contains`.

        Returns
        -------
        list of tuple
        """
        return [tuple(self.classes[row].tolist()) for row in self.contains(X, rng=rng)]

    def describe(self) -> str:
        """Return what was calibrated on how many rows as readable text."""
        n = sum(map(len, self.scores))
        where = "of each class" if self.per_class else "on average over all rows"
        lines = [
            f"sets of {len(self.classes)} labels from {n} rows: the true one is in the set with "
            f"probability >= {1 - self.alpha:g} {where}, ties {self.ties}"
        ]
        if self.per_class:
            min_rows = 1 / self.alpha - 1
            for label, score in zip(self.classes.tolist(), self.scores, strict=True):
                few = (
                    f", fewer than {min_rows:.4g}: always in the set" if self._is_few(score) else ""
                )
                lines.append(f"  {label!r}: {len(score)} rows{few}")
        elif self._is_few(self.scores[0]):
            lines.append(f"  fewer than {1 / self.alpha - 1:.4g} rows: every set has all labels")
        return "\n".join(lines)

    __str__ = describe

    def _is_few(self, score: FloatArray) -> bool:
        """Return whether there are too few rows to leave a label out."""
        return bool(self.alpha * (len(score) + 1) < 1)


def prediction_sets(
    model: Model,
    X_cal: TableLike,
    y_cal: ArrayLike,
    *,
    alpha: float = 0.1,
    per_class: bool = False,
    ties: Ties = "conservative",
) -> PredictionSets:
    """Calibrate sets of labels that have the true one with probability 1 - alpha on new rows.

    Split conformal prediction: a label is in the set of a row unless, of the calibration rows and
    this one, a share of at most alpha has a probability of the true label so low.

    Parameters
    ----------
    model : DecisionGraph, RandomForest or another classifier with probabilities
        A fitted model.
    X_cal, y_cal : array_like
        Rows that were used for nothing before, and their labels, see `error_bound`.
    alpha : float
        Probability with which the true label may be missing, over the draw of the calibration rows
        and of the new one; in (0, 1).
    per_class : bool
        Whether this holds within the rows of each label (Mondrian) and not only on average. A class
        of fewer than 1 / alpha - 1 calibration rows is then in every set.
    ties : {"conservative", "random"}
        Of equal probabilities: "conservative" counts the calibration rows as no better, so that
        the true label is in the set more often than need be; "random" orders them at random, so
        that it is there with a probability between 1 - alpha and 1 - alpha + 1 / (n + 1).

    Returns
    -------
    PredictionSets
        Its ``predict(X)`` gives the sets of new rows, ``contains(X)`` the same as a matrix.

    Raises
    ------
    ValueError
        If the rows are not as in `error_bound`, or alpha outside (0, 1).

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
    >>> model = pb.fit_adaboost(X[:1000], y[:1000], n_estimators=20)
    >>> sets = pb.prediction_sets(model, X[1000:2000], y[1000:2000])
    >>> sets.predict([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    [('yes',), ('no', 'yes')]
    >>> found = sets.predict(X[2000:])
    >>> bool(np.mean([label in one for label, one in zip(y[2000:], found)]) > 0.88)
    True
    """
    failing = check_number("alpha", alpha, min_value=0, max_value=1, open_min=True, open_max=True)
    check_choice("ties", ties, TIES)
    check_flag("per_class", per_class)
    rows = calibration_rows(model, X_cal, y_cal, "how often the set has the label")
    score = model.predict_proba(rows.X)[np.arange(rows.n_rows), rows.code]
    classes = np.asarray(model.classes)
    parts = [score[rows.code == k] for k in range(len(classes))] if per_class else [score]
    return PredictionSets(
        model, failing, ties, per_class, tuple(freeze(np.sort(part)) for part in parts), classes
    )
