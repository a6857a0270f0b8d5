"""Error bounds, thresholds and prediction sets that hold on new rows."""

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
from pboost.data.row_fingerprint import Digest, DigestOverlap, hashes, seen_among
from pboost.models.base import Model, TwoClassModel, check_model, prediction_cost
from pboost.models.early_exit_model import EarlyExitModel
from pboost.models.evaluate.match_input import count_rows, match_columns, reads_columns, table_for
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

#: Limits for the warning about calibration rows that equal training rows. They apply to the excess
#: over the expected share and to the probability of this excess by chance.
LEAST_SHARE, MOST_CHANCE = 0.1, 1e-4


class Calibration(NamedTuple):
    """Calibration rows of a classifier and their class codes."""

    X: TableLike
    code: NDArray[np.intp]
    #: Number of rows of each class of the model.
    counts: NDArray[np.intp]
    #: Hashes of the rows, None if the model uses functions of a row.
    hashed: Digest | None

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return len(self.code)


def calibration_rows(
    model: Model, X_cal: TableLike, y_cal: ArrayLike, what: str, done: str = "bounded"
) -> Calibration:
    """Check and return calibration rows. The texts `what` and `done` appear in error messages."""
    check_model(model)
    classes = model.classes
    if classes is None:
        raise NotImplementedError("model: expected a classifier, got a regression model")
    X_cal = table_for(model, X_cal)
    n = count_rows(model, X_cal)
    if not n:
        raise ValueError("X_cal: expected calibration rows, got none")
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
            f"y_cal: expected rows of two classes or more, got only class {only}: {what} for rows "
            f"of other classes cannot be {done}"
        )
    return Calibration(X_cal, code, counts, hashes_of_unseen(model, X_cal, stacklevel=4))


def hashes_of_unseen(model: Model, X_cal: TableLike, stacklevel: int = 3) -> Digest | None:
    """Return the hashes of calibration rows. Warn if many rows were used in training.

    Return None if the model uses functions of a row. If there are few distinct rows, some
    calibration rows equal training rows by chance (see `DigestOverlap`). The warning is issued only
    if there are more than expected.
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
                f"equal rows that the model was fitted to or calibrated on; "
                f"{seen.natural:.0%} are expected by chance; results from these rows do not hold "
                "for new rows; pass rows that were not used before",
                UserWarning,
                stacklevel=stacklevel,
            )
            break
    return hashed


def is_seen(seen: DigestOverlap) -> bool:
    """Return whether a digest contains more of these rows than is expected for new rows."""
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
    """Bounds on the error of a classifier, returned by `error_bound`. ``print`` shows them.

    Attributes
    ----------
    n_rows, errors : int
        Number of calibration rows, and of misclassified calibration rows.
    confidence_level : float
        Probability with which each single bound holds.
    upper, lower : float
        Upper and lower bound on the error on new rows.
    class_error, class_upper : ndarray of float64, shape (J,)
        Misclassified share of the calibration rows of each class, and the upper bound; NaN and 1
        for classes without rows.
    pac_bayes : float
        The bound of `pboost.bounds.pac_bayes_bound` on the same errors, for comparison.
    certificate : float
        The model's certificate, an upper bound on the training error; NaN if it has none.
    certificate_note : str
        Explanation of the certificate. It is empty if observations are exact.
    cost : float
        Mean number of comparisons per calibration row, with early exits if the model has them.
    whole_cost : float
        Mean number of comparisons per calibration row, without early exits.
    classes : ndarray, shape (J,)
        The classes of the model.
    out_of_bag : float
        The out-of-bag error, which is an estimate. NaN if the model has none.
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
        """Return the misclassified share of the calibration rows."""
        return self.errors / self.n_rows

    def describe(self) -> str:
        """Return the certificate, the error bound and the cost as text."""
        sure = f"with {100 * self.confidence_level:.4g} % confidence"
        lines = ["training:"]
        if math.isnan(self.certificate):
            lines.append("  certificate   not available for this kind of model")
        else:
            note = f"; it {self.certificate_note}" if self.certificate_note else ""
            lines.append(f"  certificate   training error <= {self.certificate:.4g}{note}")
        lines += [
            f"new rows, estimated from {self.n_rows} calibration rows:",
            f"  error         {self.error:.2%} measured, <= {self.upper:.2%} {sure} "
            f"(>= {self.lower:.2%} {sure})",
        ]
        for label, error, upper in zip(
            self.classes.tolist(), self.class_error, self.class_upper, strict=True
        ):
            measured = "no bound, because there are no rows"
            if not math.isnan(error):
                measured = f"{error:.2%} measured, <= {upper:.2%} {sure}"
            lines.append(f"    of {label!r}: {measured}")
        lines.append(f"  PAC-Bayes     <= {self.pac_bayes:.2%} on the same rows, for comparison")
        if not math.isnan(self.out_of_bag):
            lines.append(f"  out of bag    {self.out_of_bag:.2%}, an estimate from training rows")
        lines.append("cost:")
        full_cost = (
            f", {self.whole_cost:.4g} without early exits" if self.cost < self.whole_cost else ""
        )
        lines.append(f"  comparisons   {self.cost:.4g} per row{full_cost}")
        return "\n".join(lines)

    __str__ = describe


def error_bound(
    model: Model, X_cal: TableLike, y_cal: ArrayLike, *, confidence_level: float = 0.95
) -> ErrorBound:
    """Bound the error of a classifier on new rows, given calibration rows.

    Parameters
    ----------
    model : DecisionGraph, RandomForest, EarlyExitModel or another classifier
        A fitted model.
    X_cal : array_like of shape (n, d), or data frame
        Calibration rows: an independent sample from the distribution of new rows, not used before
        to fit the model, select options, stop training or choose exits.
    y_cal : array_like of shape (n,)
        Classes of these rows.
    confidence_level : float
        Probability, in (0, 1), with which a bound holds over the sampling of the calibration rows.

    Returns
    -------
    ErrorBound
        ``upper`` is the Clopper-Pearson bound, which is exact for every n.

    Raises
    ------
    ValueError
        If there are no rows; if all rows belong to one class; if `y_cal` contains a class that the
        model does not have; or if `confidence_level` is outside (0, 1).
    NotImplementedError
        If the model is a regression model.

    Warns
    -----
    UserWarning
        If many of the rows are also training rows of the model, according to ``model.seen``.

    See Also
    --------
    risk_threshold : Choose a threshold that limits false negatives or false positives.
    prediction_sets : Predict sets that contain the true class with a given probability.

    Notes
    -----
    Each single bound holds with probability `confidence_level`. For bounds that hold for all J
    classes at once, pass a confidence level of ``1 - (1 - confidence_level) / J``.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=2000) > 0
    >>> model = pb.fit_adaboost(X[:1000], y[:1000], n_estimators=20)
    >>> result = pb.error_bound(model, X[1000:], y[1000:])
    >>> round(result.error, 3), round(result.upper, 3)
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

#: The kinds of errors, and the index of the class whose rows can have them.
Risk: TypeAlias = Literal["false_negatives", "false_positives"]
RISKS: dict[str, int] = dict(zip(get_args(Risk), (1, 0), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class RiskThreshold:
    """Threshold that limits a risk, returned by `risk_threshold`. ``print`` shows it.

    Attributes
    ----------
    threshold : float
        Threshold on the probability, for ``predict(model, X, threshold=...)``.
    risk : {"false_negatives", "false_positives"}
        The limited kind of error.
    max_risk, confidence_level : float
        With at least probability `confidence_level`, the rate of these errors on new rows of the
        class is at most `max_risk`.
    n_rows, errors : int
        Number of calibration rows of this class, and of errors of this kind among them.
    upper : float
        The Clopper-Pearson upper bound for this number of errors; at most `max_risk`.
    other_rows, other_errors : int
        The same numbers for the other class; they estimate the cost of the threshold.
    classes : ndarray, shape (2,)
        The classes of the model; the second is the positive class.
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
        """Return the threshold, its bound and the estimated other error as text."""
        class_index = RISKS[self.risk]
        (other,) = set(RISKS) - {self.risk}
        label, second = self.classes[class_index].item(), self.classes[1].item()
        share = self.other_errors / self.other_rows
        return (
            f"threshold {self.threshold:.6g}: rows with a larger probability are {second!r}\n"
            f"  {self.risk}: {self.errors} of {self.n_rows} rows of {label!r}; on new rows <= "
            f"{self.max_risk:.2%} with {100 * self.confidence_level:.4g} % confidence\n"
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
    """Choose a threshold that limits false negatives or false positives on new rows.

    The method is Learn then Test [1]_. Thresholds are tested in order, starting at one that makes
    no error of this kind. Tests stop at the first threshold for which a binomial test cannot show
    that the error rate is within the limit. The previous threshold makes the fewest errors on the
    other class and is returned.

    Parameters
    ----------
    model : DecisionGraph, RandomForest or another binary classifier with probabilities
        A fitted model.
    X_cal, y_cal : array_like
        Calibration rows that were not used before, and their classes; see `error_bound`.
    risk : {"false_negatives", "false_positives"}
        "false_negatives" limits the share of rows of the second class that are predicted as the
        first. "false_positives" limits the share of rows of the first class that are predicted as
        the second.
    max_risk : float
        Upper limit of this share, in (0, 1).
    confidence_level : float
        Probability, in (0, 1), with which the limit holds over the sampling of the calibration
        rows.

    Returns
    -------
    RiskThreshold
        The threshold, the limit and the errors on the calibration rows.

    Raises
    ------
    ValueError
        If the model is not binary, if the calibration rows are invalid, or if they are too few to
        prove the limit.

    Warns
    -----
    UserWarning
        If many of the rows are also training rows of the model, according to ``model.seen``.

    Notes
    -----
    The order of the tests must not depend on the rows. This holds because the risk never decreases
    along the sequence. The test has the same result for all thresholds between two calibration
    probabilities, so one of them is tested.

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
    >>> result = pb.risk_threshold(model, X[1000:2000], y[1000:2000], max_risk=0.02)
    >>> predicted = pb.predict(model, X[2000:], threshold=result.threshold)
    >>> round(float(np.mean(~predicted[y[2000:]])), 3)
    0.007
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
            f"model: expected a binary classifier, got {len(classes)} classes; for more than two "
            "classes, use prediction_sets"
        )
    probability = model.predict_proba(rows.X)[:, 1]
    mine, others = probability[rows.code == class_index], probability[rows.code != class_index]
    failing = float(as_failing(level))
    allowed = most_errors(len(mine), risk_bound, failing)
    if allowed < 0:
        min_rows = math.ceil(math.log(failing) / math.log1p(-risk_bound))
        raise ValueError(
            f"X_cal: expected at least {min_rows} rows of class "
            f"{shown(classes[class_index].item())} to prove {risk} <= {risk_bound:g} with "
            f"probability {level:g}, got {len(mine)}"
        )
    if class_index:
        # Class 1 is predicted above the threshold, so the threshold is just below this row.
        threshold = float(np.nextafter(np.sort(mine)[allowed], -1.0))
    else:
        threshold = float(np.sort(mine)[len(mine) - 1 - allowed])
    if not threshold >= 0:
        raise ValueError(
            f"model: returns probability 0 for {np.count_nonzero(mine == 0)} of {len(mine)} rows "
            f"of class {shown(classes[1].item())}, which no threshold can classify correctly"
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
    """Predictor of sets of classes, returned by `prediction_sets`. ``print`` shows a summary.

    Attributes
    ----------
    model : Model
        The classifier whose probabilities are used.
    alpha : float
        The set of a new row contains the true class with probability at least 1 - alpha.
    ties : {"conservative", "random"}
        Treatment of equal probabilities.
    per_class : bool
        Whether the probability holds within each class.
    scores : tuple of ndarray of float64
        Sorted probabilities of the true classes of the calibration rows; one array per class with
        `per_class`, else a single array.
    classes : ndarray, shape (J,)
        The classes of the model.
    """

    model: Model
    alpha: float
    ties: Ties
    per_class: bool
    scores: tuple[FloatArray, ...]
    classes: Array

    def contains(self, X: TableLike, *, rng: Seed = None) -> NDArray[np.bool_]:
        """Return whether each class is in the set of each row.

        Parameters
        ----------
        X : array_like of shape (n, d), or data frame
            Rows; see `decision_function`.
        rng : None, int, numpy.random.Generator or numpy.random.RandomState
            Breaks ties at random with ``ties="random"``.

        Returns
        -------
        ndarray of bool, shape (n, J)
            Columns are in the order of `classes`. A set is empty if no class is probable enough.
        """
        probability = self.model.predict_proba(X)
        generator = as_generator(rng)
        is_in_set = np.empty(probability.shape, dtype=bool)
        for k, column in enumerate(probability.T):
            score = self.scores[k if self.per_class else 0]
            # Count the calibration rows with a smaller score and with an equal score.
            worse = np.searchsorted(score, column, side="left")
            equal = np.searchsorted(score, column, side="right") - worse
            if self.ties == "random":
                equal = generator.integers(0, equal + 1)
            is_in_set[:, k] = worse + equal + 1 > self.alpha * (len(score) + 1)
        return is_in_set

    def predict(self, X: TableLike, *, rng: Seed = None) -> list[tuple[object, ...]]:
        """Return the prediction set of each row as a tuple of classes.

        Parameters
        ----------
        X, rng
            See `contains`.

        Returns
        -------
        list of tuple
            One tuple per row.
        """
        return [tuple(self.classes[row].tolist()) for row in self.contains(X, rng=rng)]

    def describe(self) -> str:
        """Return the coverage and the number of calibration rows as text."""
        n = sum(map(len, self.scores))
        where = "of each class" if self.per_class else "on average over all rows"
        lines = [
            f"sets of {len(self.classes)} classes from {n} rows: the true class is in the set with "
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
            lines.append(f"  fewer than {1 / self.alpha - 1:.4g} rows: every set has all classes")
        return "\n".join(lines)

    __str__ = describe

    def _is_few(self, score: FloatArray) -> bool:
        """Return whether there are too few rows to exclude a class."""
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
    """Calibrate prediction sets that contain the true class with probability 1 - alpha.

    This is split conformal prediction. A class is excluded from the set of a row if at most a share
    alpha of the calibration rows, counting this row as one of them, have an equal or lower
    probability of their true class.

    Parameters
    ----------
    model : DecisionGraph, RandomForest or another classifier with probabilities
        A fitted model.
    X_cal, y_cal : array_like
        Calibration rows that were not used before, and their classes; see `error_bound`.
    alpha : float
        Maximum probability, in (0, 1), that the set of a new row does not contain the true class.
        The probability is over the sampling of the calibration rows and the new row.
    per_class : bool
        If True, the probability holds within each class (Mondrian conformal prediction), and not
        only on average. A class with fewer than 1 / alpha - 1 calibration rows is then in every
        set.
    ties : {"conservative", "random"}
        Treatment of equal probabilities. "conservative" gives larger sets, which contain the true
        class more often than necessary. "random" breaks ties at random; the sets then contain the
        true class with a probability between 1 - alpha and 1 - alpha + 1 / (n + 1).

    Returns
    -------
    PredictionSets
        ``predict(X)`` returns the sets of new rows, ``contains(X)`` a Boolean matrix.

    Raises
    ------
    ValueError
        If the calibration rows are invalid (see `error_bound`), or `alpha` is outside (0, 1).

    Warns
    -----
    UserWarning
        If many of the rows are also training rows of the model, according to ``model.seen``.

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
    >>> contains = sets.contains(X[2000:])
    >>> print(f"coverage {contains[y[2000:, None] == sets.classes].mean():.3f}")
    coverage 0.922
    """
    failing = check_number("alpha", alpha, min_value=0, max_value=1, open_min=True, open_max=True)
    check_choice("ties", ties, TIES)
    check_flag("per_class", per_class)
    rows = calibration_rows(model, X_cal, y_cal, "the coverage")
    score = model.predict_proba(rows.X)[np.arange(rows.n_rows), rows.code]
    classes = np.asarray(model.classes)
    parts = [score[rows.code == k] for k in range(len(classes))] if per_class else [score]
    return PredictionSets(
        model, failing, ties, per_class, tuple(freeze(np.sort(part)) for part in parts), classes
    )
