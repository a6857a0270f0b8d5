"""Numerical bounds on the training error and the test error of boosted models and votes.

Bounds with the parameter `rho` assume that every weak classifier multiplies the certificate of its
node by at most rho; a weak classifier with edge epsilon has rho = sqrt(1 - 4 epsilon^2). Arguments
are numbers or arrays. Arrays are broadcast. For numbers, the result is a float.

Sources: [M] is "A theory of probabilistic boosting, decision trees and matryoshki" (E. Grossmann,
arXiv:cs/0607110). [L] are the lecture notes cited in the documentation. [S] is R. E. Schapire, Y.
Freund, P. Bartlett and W. S. Lee, "Boosting the margin", Annals of Statistics 26 (1998). [QH] is T.
Qin and W.-M. Huang, "On subbagging boosted probit model trees". [Ma] is A. Maurer, "Exponential
finite sample bounds for incomplete U-statistics" (2022), whose inequality is used in [QH]. [SF] is
R. E. Schapire and Y. Freund, "Boosting: foundations and algorithms" (2012). The documentation lists
errata of these sources and the differences from [QH].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pboost.bounds import _tree as _tree_bound
from pboost.bounds._binomial import (
    as_failing,
    binomial_p_value,
    clopper_pearson_lower,
    clopper_pearson_upper,
    fixed_sequence,
    hoeffding_bentkus_p_value,
    kl_inverse,
    pac_bayes_bound,
)
from pboost.bounds._numbers import align, as_integers, as_numbers, plain
from pboost.values import FloatArray, check_integer, check_number, shown

__all__ = [
    "adaboost_bound",
    "best_nesting",
    "binomial_p_value",
    "boosted_pmt_bound",
    "chain_bound",
    "clopper_pearson_lower",
    "clopper_pearson_upper",
    "crowd_bound",
    "crowd_error",
    "edge_to_rho",
    "fixed_sequence",
    "hoeffding_bentkus_p_value",
    "kl_inverse",
    "margin_generalization_bound",
    "matryoshka2_bound",
    "members_needed",
    "nested_bound",
    "pac_bayes_bound",
    "rate_matryoshka",
    "rate_simple",
    "sign_collapse_bound",
    "subagging_bound",
    "training_error_bound",
    "tree_bound",
    "tree_bound_asymptotic",
]

_LN_2 = math.log(2)


def adaboost_bound(T: ArrayLike, rho: ArrayLike) -> float | FloatArray:
    """Return the bound rho**T for a chain of T weak classifiers ([M], equation 3).

    Parameters
    ----------
    T : array_like of float
        Number of weak classifiers, >= 0.
    rho : array_like of float
        Factor of each weak classifier, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        The bound on the training error.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.adaboost_bound(3, 0.5)
    0.125
    """
    T, rho, _ = _arguments(T, rho)
    return plain(rho**T)


def tree_bound(T: ArrayLike, rho: ArrayLike) -> float | FloatArray:
    """Return the bound F(T, rho) for a boosted tree of T nodes that splits its largest exit.

    Parameters
    ----------
    T : array_like of float
        Number of nodes, >= 0; need not be an integer.
    rho : array_like of float
        Factor of each weak classifier, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        Gamma(T + rho) / (Gamma(T + 1) Gamma(rho)) = 1 / (T B(T, rho)). For integer T it is the
        product of (t + rho) / (t + 1) over t < T ([M], equation 9, corrected). The relative error
        is below 1e-13 for T up to 1e12.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.tree_bound([0, 1, 2], 0.5).tolist()  # the last is 0.5 * 1.5 / 2
    [1.0, 0.5, 0.375]
    """
    return plain(_tree_bound.tree(*_arguments(T, rho))[0])


def tree_bound_asymptotic(T: ArrayLike, rho: ArrayLike) -> float | FloatArray:
    """Return the asymptote T**(rho - 1) / Gamma(rho) of F(T, rho) ([M], equation 9).

    Parameters
    ----------
    T : array_like of float
        Number of nodes, > 0.
    rho : array_like of float
        Factor of each weak classifier, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        The asymptote. Its relative difference from `tree_bound` is about rho (1 - rho) / (2 T).

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> import pboost as pb
    >>> ratio = pb.bounds.tree_bound_asymptotic(1e4, 0.5) / pb.bounds.tree_bound(1e4, 0.5)
    >>> round(ratio, 7)  # 1 + 0.5 * 0.5 / 2e4
    1.0000125
    """
    T, rho, rest = _arguments(T, rho, positive=True)
    from scipy.special import rgamma  # imported late, see _tree_bound.terms_at_2

    return plain(T**-rest * rgamma(rho))


def nested_bound(sizes: Sequence[ArrayLike], rho: ArrayLike) -> float | FloatArray:
    """Return the bound F(T_L, F(T_(L-1), ... F(T_1, rho))) for trees nested in trees.

    The bound holds for matryoshki with ``collect="additive"`` if every sub-tree is complete.

    Parameters
    ----------
    sizes : sequence of array_like of float
        T_1 to T_L, innermost first, each >= 1. For an empty sequence the bound is `rho`.
    rho : array_like of float
        Factor of each weak classifier, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        The bound ([M], equations 10 and 11, and the equation before them).

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.nested_bound((2, 2), 0.5)  # 0.375 * 1.375 / 2
    0.2578125
    >>> bound = pb.bounds.nested_bound((16, 16), 0.5)
    >>> print(f"{bound:.4f} nested, {pb.bounds.tree_bound(256, 0.5):.4f} in one tree")
    0.0137 nested, 0.0352 in one tree
    """
    bound = as_numbers("rho", rho, 0.0, 1.0)
    rest = 1 - bound
    if not isinstance(sizes, list | tuple) and not getattr(sizes, "ndim", 0):
        raise TypeError(f"sizes: expected a sequence such as (4, 4), got {shown(sizes)}")
    for level, size in enumerate(sizes):
        T = as_numbers(f"sizes[{level}]", size, 1.0)
        bound, rest = _tree_bound.tree(*align(f"sizes[{level}], rho", T, bound, rest))
    return plain(bound)


def matryoshka2_bound(T: ArrayLike, rho: ArrayLike) -> float | FloatArray:
    """Return the bound M_2(T, rho) for nested trees of two nodes each.

    Parameters
    ----------
    T : array_like of float
        Number of weak classifiers, a power of 2.
    rho : array_like of float
        Factor of each weak classifier, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        F(2, F(2, ... rho)) with log2(T) levels, where F(2, rho) = rho (1 + rho) / 2 ([M], section
        5.3).

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.matryoshka2_bound([1, 2, 4], 0.5).tolist()
    [0.5, 0.375, 0.2578125]
    """
    T, bound, rest = _arguments(T, rho)
    fraction, exponent = np.frexp(T)
    if (wrong := T[(fraction != 0.5) | (T < 1)]).size:
        raise ValueError(f"T: expected powers of 2 that are at least 1, got {wrong[0]}")
    return plain(_tree_bound.doubled(exponent - 1, bound, rest))


def sign_collapse_bound(F: ArrayLike) -> float | FloatArray:
    """Return the factor of a sub-tree with certificate F that is replaced by the sign of its votes.

    The sign of the votes is a weak classifier with a weighted error of at most F / 2, if the votes
    are not smoothed or shrunk. The factor of this classifier may exceed F, so `nested_bound` does
    not hold for such sub-trees.

    Parameters
    ----------
    F : array_like of float
        Certificate of the sub-tree relative to its root, or an upper bound on it, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        sqrt(F (2 - F)).

    Raises
    ------
    ValueError
        If a number is outside [0, 1].

    Examples
    --------
    >>> import pboost as pb
    >>> inner = pb.bounds.tree_bound(16, 0.5)
    >>> round(pb.bounds.tree_bound(16, pb.bounds.sign_collapse_bound(inner)), 4)
    0.1468
    """
    F = as_numbers("F", F, 0.0, 1.0)
    return plain(np.sqrt(F * (2 - F)))


def chain_bound(T1: ArrayLike, TL: ArrayLike, rho: ArrayLike) -> float | FloatArray:
    """Return the bound F(T1, rho)**TL for AdaBoost with TL trees as base learners.

    Parameters
    ----------
    T1 : array_like of float
        Number of nodes of each tree, >= 0.
    TL : array_like of float
        Number of trees, >= 0.
    rho : array_like of float
        Factor of each weak classifier, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        The bound on the training error.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.chain_bound(2, 3, 0.5)  # 0.375**3
    0.052734375
    """
    T, rho, rest = _arguments(T1, rho, names=("T1", "rho"))
    chain = as_numbers("TL", TL, 0.0)
    chain, bound, rest = align("TL, T1, rho", chain, *_tree_bound.tree(T, rho, rest))
    # For a bound near 1, a power would magnify the rounding error.
    near_1 = np.exp(chain * np.log1p(-np.minimum(rest, 0.5)))
    return plain(np.where(bound < 0.5, bound**chain, near_1))


def rate_simple(T: ArrayLike, rho: ArrayLike) -> float | FloatArray:
    """Return the derivative of F(T, rho) with respect to T, the number of nodes.

    Parameters
    ----------
    T : array_like of float
        Number of nodes, > 0.
    rho : array_like of float
        Factor of each weak classifier, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        F(T, rho) (psi(T + rho) - psi(T + 1)) <= 0 ([M], after equation 13). For measured
        certificates C, use C(T) - C(T - 1) instead.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.rate_simple(16, 0.5), 6)
    -0.004305
    """
    T, rho, rest = _arguments(T, rho, positive=True)
    return plain(_tree_bound.tree(T, rho, rest)[0] * _tree_bound.digamma_difference(T, rho, rest))


def rate_matryoshka(T: ArrayLike, C: ArrayLike) -> float | FloatArray:
    """Return the decrease of the bound per weak classifier if a sub-tree is copied to every node.

    Parameters
    ----------
    T : array_like of float
        Number of weak classifiers in the sub-tree, > 0.
    C : array_like of float
        Certificate of the sub-tree relative to its root, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        C / T (gamma + psi(1 + C) - 1) <= 0, the derivative of F(t / T, C) in t at t = T ([M],
        equations 13 and 14). It is accurate to a few rounding errors, also near C = 0 and C = 1.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.rate_matryoshka(16, pb.bounds.tree_bound(16, 0.5)), 6)
    -0.006916
    """
    T, C, rest = _arguments(T, C, positive=True, names=("T", "C"))
    return plain(C / T * _tree_bound.digamma_at_2(rest))


def best_nesting(T: int, rho: float) -> tuple[int, ...]:
    """Return the sizes with the smallest `nested_bound` for at most T weak classifiers.

    The product of the sizes can be smaller than T. For example, for T = 11 the sizes (2, 5) usually
    have a lower bound than (11,). The search is exact. The search time grows as T**(3/4) and is
    about one second for T = 1e6.

    Parameters
    ----------
    T : int
        Maximum number of weak classifiers, from 1 to 2**31 - 1.
    rho : float
        Factor of each weak classifier, in [0, 1].

    Returns
    -------
    tuple of int
        T_1 to T_L, innermost first. If bounds are equal, the outermost tree is as large as
        possible.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.best_nesting(1000, 31 / 32)
    (2, 2, 2, 2, 2, 2, 3, 5)
    """
    budget = check_integer("T", T, min_value=1)
    return _tree_bound.best_sizes(budget, check_number("rho", rho, min_value=0.0, max_value=1.0))


def _arguments(
    T: ArrayLike, rho: ArrayLike, *, names: tuple[str, str] = ("T", "rho"), positive: bool = False
) -> list[FloatArray]:
    """Check T and rho. Return T, rho and 1 - rho, broadcast to a common shape."""
    sizes = as_numbers(names[0], T, 0.0, positive=positive)
    factors = as_numbers(names[1], rho, 0.0, 1.0)
    return align(", ".join(names), sizes, factors, 1 - factors)


def edge_to_rho(edge: ArrayLike) -> float | FloatArray:
    """Return the factor rho of the certificate for a weak classifier with this edge.

    Parameters
    ----------
    edge : array_like of float
        Advantage epsilon over random guessing, in [0, 1/2]: the weighted error is at most
        1/2 - epsilon.

    Returns
    -------
    float or ndarray of float64
        sqrt(1 - 4 epsilon^2) ([M], equation 3).

    Raises
    ------
    ValueError
        If an edge is outside [0, 1/2].

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.edge_to_rho([0.0, 0.3, 0.5]).tolist()
    [1.0, 0.8, 0.0]
    """
    epsilon = as_numbers("edge", edge, 0.0, 0.5)
    return plain(np.sqrt((1 - 2 * epsilon) * (1 + 2 * epsilon)))


def training_error_bound(
    gammas: ArrayLike, *, simple: bool = False, step: float = 1.0
) -> float | FloatArray:
    """Return a bound on the training error of AdaBoost, given the edges of its weak classifiers.

    Parameters
    ----------
    gammas : array_like of float, shape (..., T)
        Edge of each weak classifier: 1/2 minus its weighted error, in [-1/2, 1/2].
    simple : bool
        Whether to return the simpler, larger bound exp(-2 step (2 - step) sum(gammas^2)).
    step : float
        Factor of the log odds in the weight update, in [0, 2]: the weights of misclassified rows
        are multiplied by ((1 - e) / e)**step. AdaBoost has step 1; SBPMT as published, and
        `fit_sbpmt` by default, have step 1/2. For `fit_adaboost` with symmetric votes, it is the
        learning rate.

    Returns
    -------
    float or ndarray of float64, shape (...)
        The product, along the last axis, of (1 - e)**(1 - step/2) e**(step/2)
        + e**(1 - step/2) (1 - e)**(step/2), where e = 1/2 - gamma. For ``step=1`` each factor is
        2 sqrt(e (1 - e)) = sqrt(1 - 4 gamma^2) ([L], analysis of the training error); for
        ``step=2`` it is 1. The bound does not hold for smoothed votes.

    Raises
    ------
    TypeError
        If `step` is not a number.
    ValueError
        If an edge is outside [-1/2, 1/2], `gammas` is a single number, or `step` is outside [0, 2].

    Notes
    -----
    [QH] applies the bound for ``step=1`` to its algorithm 3, which uses half of AdaBoost's step.
    The documentation contains a proof for any step, and a counterexample.

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.training_error_bound([0.2, 0.29, 0.36]), 4)
    0.5181
    >>> round(pb.bounds.training_error_bound([0.2, 0.29, 0.36], simple=True), 4)
    0.6021
    >>> round(pb.bounds.training_error_bound([0.2, 0.29, 0.36], step=0.5), 4)
    0.6177
    """
    edges = as_numbers("gammas", gammas, -0.5, 0.5)
    power = check_number("step", step, min_value=0.0, max_value=2.0) / 2
    if not edges.ndim:
        raise ValueError(f"gammas: expected one edge per weak classifier, got the number {edges}")
    if simple:
        return plain(np.exp(-8 * power * (1 - power) * (edges**2).sum(axis=-1)))
    wrong, right = 1 - 2 * edges, 1 + 2 * edges
    factors = (right ** (1 - power) * wrong**power + wrong ** (1 - power) * right**power) / 2
    return plain(factors.prod(axis=-1))


def crowd_error(T: ArrayLike, gamma: ArrayLike) -> float | FloatArray:
    """Return the probability that the majority of 2 T + 1 independent voters is wrong.

    Parameters
    ----------
    T : array_like of int
        Half the number of voters, rounded down, >= 0.
    gamma : array_like of float
        Each voter is right with probability 1/2 + gamma; gamma is in [-1/2, 1/2].

    Returns
    -------
    float or ndarray of float64
        The binomial probability that at most T of 2 T + 1 voters are right ([L], wisdom of the
        crowd).

    Raises
    ------
    ValueError
        If a number is out of range, or T is not an integer.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> pb.bounds.crowd_error([0, 1], 0.25).tolist()  # 0.25, and 0.25**3 + 3 * 0.75 * 0.25**2
    [0.25, 0.15625]
    """
    T, gamma = _crowd(T, gamma)
    from scipy.special import betainc  # imported late, see _tree_bound.terms_at_2

    return plain(betainc(T + 1, T + 1, 0.5 - gamma))


def crowd_bound(T: ArrayLike, gamma: ArrayLike) -> float | FloatArray:
    """Return Chernoff's upper bound on `crowd_error`.

    Parameters
    ----------
    T : array_like of int
        Half the number of voters, rounded down, >= 0.
    gamma : array_like of float
        Each voter is right with probability 1/2 + gamma; gamma is in [0, 1/2].

    Returns
    -------
    float or ndarray of float64
        exp(-(mu - T)^2 / (2 mu)), where mu = (2 T + 1) (1/2 + gamma) is the expected number of
        right voters ([L], wisdom of the crowd). It is at most exp(-4 gamma^2 T / 5).

    Raises
    ------
    ValueError
        If a number is out of range, or T is not an integer.

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.crowd_bound(50, 0.1), 3), round(pb.bounds.crowd_error(50, 0.1), 3)
    (0.396, 0.021)
    """
    T, gamma = _crowd(T, gamma, min_gamma=0.0)
    right = (2 * T + 1) * (0.5 + gamma)
    return plain(np.exp(-((right - T) ** 2) / (2 * right)))


def margin_generalization_bound(
    margin_error: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    *,
    size: ArrayLike | None = None,
    vc: ArrayLike | None = None,
    confidence_level: ArrayLike = 0.99,
) -> float | FloatArray:
    """Return a bound on the test error of a vote, given its margins on the training rows.

    The margin of a row is y times the sum of the votes, divided by the sum of their absolute
    values.

    Parameters
    ----------
    margin_error : array_like of float
        Share of the training rows with a margin of at most `theta`.
    m : array_like of float
        Number of independent training rows, >= 1.
    theta : array_like of float
        Threshold on the margin, in (0, 1].
    size : array_like of float, optional
        Number of weak classifiers in the hypothesis class, >= 1, if it is finite.
    vc : array_like of float, optional
        VC dimension of the hypothesis class, >= 1. For decision stumps on d features it is at most
        2 (log2(d) + 1) ([L]). Exactly one of `size` and `vc` is required.
    confidence_level : array_like of float
        Probability with which the bound holds, in (0, 1).

    Returns
    -------
    float or ndarray of float64
        A bound of at most 1. For every N = 1, 2, …, margin_error + 2 exp(-N theta^2 / 8) + e(N) is
        a bound; the smallest over a grid of N is returned. With
        L = ln(N (N + 1)^2 / (1 - confidence_level)), e = sqrt((L + N ln(size)) / (2 m)) or, by the
        theorem of Vapnik and Chervonenkis, e = sqrt(32 (L + ln 8 + N vc ln(e m / vc)) / m).

    Raises
    ------
    TypeError
        If not exactly one of `size` and `vc` is passed.
    ValueError
        If a number is out of range.

    Notes
    -----
    With probability `confidence_level` the bound holds for all votes and all `theta` at once ([S],
    theorems 1 and 2, with the constants of their proofs). The bound is of order sqrt(vc / m) /
    theta, up to logarithmic factors. With `vc`, the bound is below 1 only if m is in the millions.

    Examples
    --------
    >>> import pboost as pb
    >>> bound = pb.bounds.margin_generalization_bound(0.02, 1e6, 0.3, size=4000)
    >>> round(bound, 3)
    0.072
    """
    if (size is None) == (vc is None):
        raise TypeError(
            "size, vc: expected exactly one of them, got " + ("none" if vc is None else "both")
        )
    share = as_numbers("margin_error", margin_error, 0.0, 1.0)
    rows = as_numbers("m", m, 1.0)
    margin = as_numbers("theta", theta, 0.0, 1.0, positive=True)
    failing = as_failing(confidence_level)
    name, value = ("vc", vc) if size is None else ("size", size)
    rich = as_numbers(name, value, 1.0)
    names = f"margin_error, m, theta, confidence_level, {name}"
    share, rows, margin, failing, rich = align(names, share, rows, margin, failing, rich)
    # A larger N cannot improve the bound, because the second term is already below 1e-9.
    last = np.maximum(8 / margin**2 * np.log(2e9), 2.0)
    best = np.full(share.shape, np.inf)
    for step in np.linspace(0.0, 1.0, 500):
        N = np.floor(last**step)
        union = np.log(N) + 2 * np.log1p(N) - np.log(failing)
        if size is not None:
            spread = (union + N * np.log(rich)) / (2 * rows)
        else:
            # With fewer rows than the VC dimension there is no bound.
            growth = np.where(rows > rich, rich * (1 + np.log(rows / rich)), np.inf)
            spread = 32 * (union + np.log(8) + N * growth) / rows
        best = np.minimum(best, 2 * np.exp(-N * margin**2 / 8) + np.sqrt(spread))
    return plain(np.minimum(share + best, 1.0))


def _crowd(T: ArrayLike, gamma: ArrayLike, min_gamma: float = -0.5) -> list[FloatArray]:
    """Check the numbers of voters and the edges. Return them in a common shape."""
    return align("T, gamma", as_integers("T", T, 0.0), as_numbers("gamma", gamma, min_gamma, 0.5))


def members_needed(n: ArrayLike) -> float | FloatArray:
    """Return ln(n)**2. `subagging_bound` requires a larger number of base learners.

    Parameters
    ----------
    n : array_like of float
        Number of training rows, >= 1.

    Returns
    -------
    float or ndarray of float64
        ln(n)**2 ([QH], theorem 3).

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.members_needed(20_000), 2)
    98.08
    """
    return plain(np.log(as_numbers("n", n, 1.0)) ** 2)


def subagging_bound(
    p: ArrayLike,
    n_estimators: ArrayLike,
    m: ArrayLike,
    n: ArrayLike,
    *,
    variance: ArrayLike | None = None,
    beta: ArrayLike | None = None,
    gamma: ArrayLike | None = None,
    confidence_level: ArrayLike = 0.99,
) -> float | FloatArray:
    """Return a bound on the probability that a subagged majority vote is wrong at a given row.

    The n training rows are drawn independently. Each base learner is trained on m of them, drawn
    without replacement, by an algorithm that does not depend on the order of the rows. K is 1 if
    the base learner is wrong at the given row, and -1 if it is right.

    Parameters
    ----------
    p : array_like of float
        Probability that a base learner is wrong at the row, in [0, 1/2].
    n_estimators : array_like of int
        Number M of base learners, more than `members_needed` of n.
    m, n : array_like of int
        Numbers of rows of each subsample and of the training set, 1 <= m <= n.
    variance : array_like of float, optional
        Variance of the conditional expectation of K given one of the m rows. By default the largest
        possible variance, 4 p (1 - p) / m.
    beta : array_like of float, optional
        Expectation of D**2. D is the change of K when one row is replaced by a new row, minus the
        change of K in the same case after another row was replaced. By default the largest possible
        value, 16 p (1 - p), or 0 if m is 1.
    gamma : array_like of float, optional
        Maximum of the expectation of D**2, given the m rows and the new value of the first one. By
        default 16, its largest possible value, or 0 if m is 1.
    confidence_level : array_like of float
        Probability, over the draws of the subsamples, with which the bound holds, in (0, 1).

    Returns
    -------
    float or ndarray of float64
        ``exp(-t**2 / (2 A variance + B beta / 2 + (sqrt(B gamma) + 4 C / 3) t))`` ([Ma]), where
        t = 1 - 2 p, or 1 - 2 p + 1/M if M is odd, L = ln(3 / (1 - confidence_level)), and

        * sqrt(A) = m / sqrt(n) + (1 + 4 sqrt(L)) sqrt(m / M),
        * sqrt(B) = m**2 / n + (1 + 4 sqrt(L)) m / sqrt(M),
        * C = m / n + (sqrt(2 m) + 3) L / sqrt(M).

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    This is a corrected version of [QH], theorem 3. In the published version, B and C have wrong
    exponents, and `p` is the error over new rows, for which the bound does not hold. The error over
    new rows is at most the mean of the bound over these rows, if the bound is set to 1 for rows
    with p > 1/2. The bound decreases with `n_estimators`, but not to 0. It is useful only if m**2
    is small compared to n, or if `beta` and `gamma` are small. A tied vote counts as wrong.

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.subagging_bound(0.2, 1e6, 10, 1e6), 4)
    0.3038
    >>> pb.bounds.subagging_bound([0.2, 0.4], 1e6, 100, 1e6, beta=0, gamma=0).round(4).tolist()
    [0.0104, 0.2262]
    """
    p = as_numbers("p", p, 0.0, 0.5)
    counts = ("n_estimators", n_estimators), ("m", m), ("n", n)
    M, m, n = (as_integers(name, value, 1.0) for name, value in counts)
    failing = as_failing(confidence_level)
    p, M, m, n, failing = align("p, n_estimators, m, n, confidence_level", p, M, m, n, failing)
    if (m > n).any():
        raise ValueError(f"m: expected at most n, got {m[m > n].flat[0]:.0f}")
    if (np.log(n) ** 2 >= M).any():
        few = np.flatnonzero((np.log(n) ** 2 >= M).ravel())[0]
        needed = np.log(n).ravel()[few] ** 2
        raise ValueError(f"n_estimators: expected more than {needed:.6g}, got {M.ravel()[few]:.0f}")
    spread = p * (1 - p)
    pairs = (m > 1).astype(np.float64)
    variance = 4 * spread / m if variance is None else as_numbers("variance", variance, 0.0, 1.0)
    beta = 16 * spread * pairs if beta is None else as_numbers("beta", beta, 0.0, 16.0)
    gamma = 16 * pairs if gamma is None else as_numbers("gamma", gamma, 0.0, 16.0)
    L = np.log(3 / failing)
    root_a = m / np.sqrt(n) + (1 + 4 * np.sqrt(L)) * np.sqrt(m / M)
    root_b = m**2 / n + (1 + 4 * np.sqrt(L)) * m / np.sqrt(M)
    C = m / n + (np.sqrt(2 * m) + 3) * L / np.sqrt(M)
    t = 1 - 2 * p + (M % 2) / M
    below = 2 * root_a**2 * variance + root_b**2 * beta / 2
    below = below + (root_b * np.sqrt(gamma) + 4 * C / 3) * t
    # If t and the variances are 0, the bound is 1.
    quotient = np.divide(t**2, below, out=np.zeros_like(below), where=below > 0)
    return plain(np.exp(-quotient))


def boosted_pmt_bound(
    risks: ArrayLike,
    n: ArrayLike,
    vc: ArrayLike,
    *,
    confidence_level: ArrayLike = 0.99,
    step: float = 1.0,
) -> float | FloatArray:
    """Return a bound on the test error of AdaBoost of probit model trees.

    Parameters
    ----------
    risks : array_like of float, shape (..., T)
        Weighted probit risk of each tree on the training rows, in [0, ln(2)/2]: the mean of
        -ln Phi(y f), weighted by the row weights of its round, which sum to 1.
    n : array_like of int
        Number of independent training rows, at least T and `vc`.
    vc : array_like of int
        VC dimension of the trees, or an upper bound on it, >= 1.
    confidence_level : array_like of float
        Probability with which the bound holds, in (0, 1).
    step : float
        Factor of the log odds in the weight update, in [0, 2]; see `training_error_bound`. Pass the
        `learning_rate` of `fit_sbpmt`, which is 1/2 by default.

    Returns
    -------
    float or ndarray of float64, shape (...)
        A bound of at most 1: the simple `training_error_bound` of the edges 1/2 - risk / ln 2, plus
        sqrt(32 (T (ln(e n / T) + vc ln(e n / vc)) + ln(8 / (1 - confidence_level))) / n).

    Raises
    ------
    TypeError
        If `step` is not a number.
    ValueError
        If a number is out of range, or `risks` is a single number.

    Notes
    -----
    This is [QH], theorem 6, with two changes: the second term is taken from [SF], theorem 4.6,
    where T multiplies `vc`, and the first term depends on the step. The published first term is for
    ``step=1``, which is not valid for the weight update of [QH]. The second term is below 1 only
    if n is very large.

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.boosted_pmt_bound([0.05, 0.1, 0.1], 1e7, 20), 4)
    0.4717
    >>> round(pb.bounds.boosted_pmt_bound([0.05, 0.1, 0.1], 1e7, 20, step=0.5), 4)
    0.5736
    """
    risks = as_numbers("risks", risks, 0.0, _LN_2 / 2)
    if not risks.ndim or not risks.shape[-1]:
        raise ValueError(f"risks: expected one risk per tree, got shape {risks.shape}")
    T = risks.shape[-1]
    rows, dimension = as_integers("n", n, 1.0), as_integers("vc", vc, 1.0)
    failing = as_failing(confidence_level)
    trained = np.asarray(training_error_bound(0.5 - risks / _LN_2, simple=True, step=step))
    trained, rows, dimension, failing = align(
        "risks, n, vc, confidence_level", trained, rows, dimension, failing
    )
    few = rows < np.maximum(dimension, T)
    if few.any():
        raise ValueError(
            f"n: expected at least the number of trees and vc, got {rows[few].flat[0]:.0f}"
        )
    growth = T * (1 + np.log(rows / T) + dimension * (1 + np.log(rows / dimension)))
    spread = np.sqrt(32 * (growth + np.log(8 / failing)) / rows)
    return plain(np.minimum(trained + spread, 1.0))
