"""Observation models: how sure the answer of a weak classifier is.

What a builder takes as ``observation=``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from numpy.typing import ArrayLike

from pboost.data.arguments import as_sigma
from pboost.observation.models import (
    ESTIMATORS,
    MOST_DRAWS,
    STOPS,
    AdaTree2,
    Exact,
    Flip,
    Gaussian,
    Half,
    Observation,
    Sampled,
    TableObservation,
    Uniform,
)
from pboost.values import check_choice, check_integer, check_number, freeze, shown, uncalled

__all__ = [
    "AdaTree2",
    "Exact",
    "Flip",
    "Gaussian",
    "Half",
    "Observation",
    "Sampled",
    "TableObservation",
    "Uniform",
    "adatree2",
    "exact",
    "flip",
    "gaussian",
    "half",
    "sampled",
    "uniform",
]


def exact() -> Exact:
    """Answers without error: every row takes the exit on whose side it lies.

    Returns
    -------
    Exact
        To be passed as ``observation=`` to a builder.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.exact()
    Exact()
    """
    return Exact()


def flip(rate: float) -> Flip:
    """Answers that are wrong with a known probability: a noisy oracle.

    Parameters
    ----------
    rate : float
        Probability in [0, 0.5) that a row takes the exit of the other side, independently at
        every node.

    Returns
    -------
    Flip
        To be passed as ``observation=`` to a builder.

    Raises
    ------
    ValueError
        If the rate is not in [0, 0.5).

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.flip(0.1)
    Flip(rate=0.1)
    """
    return Flip(check_number("rate", rate, least=0.0, most=0.5, open_most=True))


def half() -> Half:
    """Answers that do not depend on the weak classifier; nothing is learnt from them.

    The masses at either exit are the same, and so are the votes: after the first node, which
    learns how frequent the classes are, no node changes anything. Kept to show just that.

    Returns
    -------
    Half
        To be passed as ``observation=`` to a builder.

    References
    ----------
    .. [1] E. Grossmann, "AdaTree 2: boosting to build decision trees, or improving AdaTree with
       soft splitting rules", 2004, section 4.1.1, where it is taken for AdaBoost.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.half()
    Half()
    """
    return Half()


def uniform() -> Uniform:
    """All rows of a class take an exit with the same probability: their share on that side.

    The certificate of such a model falls towards 0 while the training error of its hard
    evaluation need not fall at all: it certifies the observation, not the hard route.

    Returns
    -------
    Uniform
        To be passed as ``observation=`` to a builder.

    References
    ----------
    .. [1] E. Grossmann, "AdaTree 2", 2004, equation 5 and section 4.1.3.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.uniform()
    Uniform()
    """
    return Uniform()


def adatree2() -> AdaTree2:
    """AdaTree 2: a row takes its side's exit with probability ``(1 + sqrt(V)) / 2``.

    V is the share of the row's class, by reach mass, that lies on its side of the threshold. So
    every node is trained on all rows, those on the other side with less weight. At prediction
    rows take the exit on whose side they lie.

    Returns
    -------
    AdaTree2
        To be passed as ``observation=`` to a builder.

    Notes
    -----
    AdaTree 1 is ``exact()``; AdaTree 2 as published is ``adatree2()`` with
    ``growth="largest-error"``.

    References
    ----------
    .. [1] E. Grossmann, "AdaTree 2", 2004, equation 6.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.adatree2()
    AdaTree2()
    """
    return AdaTree2()


def gaussian(sigma: float | ArrayLike) -> Gaussian:
    """Features measured with error bars: a row takes exit 1 with probability Φ((x - θ)/σ).

    x is the row's value, θ the threshold and Φ the normal distribution function. Stumps are
    searched for the least expected criterion, so that a threshold in a gap wider than the error is
    preferred to one among values that the measurement cannot tell apart.

    Parameters
    ----------
    sigma : float, or array_like of shape (d,) or (n, d)
        Standard deviation of the measurement error, positive: of all columns, of each column, or
        of each cell of the training X.

    Returns
    -------
    Gaussian
        To be passed as ``observation=`` to a builder.

    Raises
    ------
    ValueError, TypeError
        If `sigma` is not positive finite numbers. Builders raise ValueError where its shape does
        not fit X, where X is BinnedColumns, which hold no values, or the search is exact.

    Notes
    -----
    The answers of successive nodes to a row are drawn independently, as if the feature were
    measured anew for each, although it is measured once. Beyond 8.3 standard deviations an answer
    is certain.

    Candidate thresholds are the edges of the bins of ``weak.max_bins``, and rows stand at the
    middle of their bin while the threshold is searched. Where each cell has its own standard
    deviation, the search puts those of a column into at most two levels. ``weak.min_weight`` is
    judged by expected weights, ``weak.min_count`` by rows. Votes and weights are made with the
    true values and standard deviations.

    References
    ----------
    .. [1] I. Reis, D. Baron and S. Shahaf, "Probabilistic random forest: a machine learning
       algorithm for noisy data sets", Astron. J. 157 (2019), whose trees split noisy features so.

    Examples
    --------
    >>> import pboost as pb
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> noise = pb.observation.gaussian(1)
    >>> model = pb.fit_boosted_tree(X, [0, 0, 1, 1], nodes=1, observation=noise)
    >>> pb.decision_function(model, [[1.5], [9.0]], route="expected").round(2).tolist()
    [0.0, 0.73]
    """
    values = as_sigma(sigma)
    return Gaussian(freeze(values) if values.ndim else float(values))


def sampled(
    stop: str | int = "first-increase",
    estimator: str = "map",
    *,
    max_draws: int | None = None,
    clock: Callable[[], float] | None = None,
    of: Observation | None = None,
) -> Sampled:
    """Probabilities that are not known but estimated, by asking a weak classifier again and again.

    Parameters
    ----------
    stop : {"first-increase", "stopwatch"} or int
        How often each weak classifier is asked about all rows. A number: that often.
        "first-increase": until the estimate of Z, the factor by which it lowers the certificate,
        rises for the first time. "stopwatch" (`fit_adaboost` only): until training and asking
        the next one lowers the estimated certificate faster, per second, than asking once more.
    estimator : {"map", "ml"}
        Of R answers k of which took exit 1: "map" estimates ``(1 + k) / (R + 2)``, "ml" ``k / R``.
    max_draws : int, optional
        Greatest number of invocations under a stopping rule, 1 to 65535; 1000 if not given.
    clock : callable, optional
        For "stopwatch": returns the time in seconds; ``time.perf_counter`` if not given. With a
        real clock the same seed need not give the same model.
    of : Observation, optional
        Where the answers really come from; `exact` if not given. `pboost.weak.oracle` and
        `pboost.weak.from_estimator` have answers of their own.

    Returns
    -------
    Sampled
        To be passed as ``observation=`` to a builder. The certificate of the model is then an
        estimate and no bound.

    Raises
    ------
    ValueError, TypeError
        If an option is out of range, or belongs to another stopping rule.

    Notes
    -----
    Certain answers never make the estimate of Z rise, so that only `max_draws` ends their sampling.
    "stopwatch" reads the clock three times per comparison: before it asks once more, after that,
    and after it has trained the next weak classifier and asked it once. The rates are those of
    the source, Z of the next to the power of 1/seconds and the ratio of the two estimates to the
    power of 1/seconds; no time at all makes a decrease infinitely fast, and of equal rates the
    next classifier wins. What lost is thrown away. The last round is compared with one more.

    References
    ----------
    .. [1] E. Grossmann, "A theory of probabilistic boosting, decision trees and matryoshki",
       arXiv:cs/0607110, sections 2 and 3.2.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.sampled(20, of=pb.observation.flip(0.1)).settings()["of"]
    {'kind': 'flip', 'rate': 0.1}
    """
    if isinstance(stop, str):
        check_choice("stop", stop, STOPS)
        most = check_integer(
            "max_draws", 1000 if max_draws is None else max_draws, least=1, most=MOST_DRAWS
        )
    else:
        most = stop = check_integer("stop", stop, least=1, most=MOST_DRAWS)
        if max_draws is not None:
            raise ValueError("max_draws: expected a stopping rule as stop, got a number of draws")
    check_choice("estimator", estimator, ESTIMATORS)
    if clock is not None and stop != "stopwatch":
        raise ValueError(f'clock: expected stop="stopwatch", got stop={stop!r}')
    if clock is not None and not callable(clock):
        raise TypeError(f"clock: expected a function that returns seconds, got {clock!r}")
    of = exact() if of is None else of
    if not isinstance(of, TableObservation | Gaussian):
        raise TypeError(
            f"of: expected an observation model of known probabilities, got {shown(of)}"
            + uncalled(of)
        )
    return Sampled(stop, estimator, most, clock or time.perf_counter, of)
