"""Bounds on the errors of AdaBoost, boosted trees, matryoshki and votes, as functions of numbers.

Those of a factor rho assume that every weak classifier reduces the certificate at its node at least
by that, as one of edge epsilon does with rho = sqrt(1 - 4 epsilon^2). Arguments are arrays, which
are broadcast, or numbers, for which the result is a float. [M] is "A theory of probabilistic
boosting, decision trees and matryoshki" (E. Grossmann, arXiv:cs/0607110); the documentation has its
errata.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pboost.bounds import _tree as _tree_bound
from pboost.bounds._numbers import align, as_numbers, plain
from pboost.bounds.subagging import boosted_pmt_bound, members_needed, subagging_bound
from pboost.bounds.voting import (
    crowd_bound,
    crowd_error,
    edge_to_rho,
    margin_generalization_bound,
    training_error_bound,
)
from pboost.values import FloatArray, check_integer, check_number, shown

__all__ = [
    "adaboost_bound",
    "best_nesting",
    "boosted_pmt_bound",
    "chain_bound",
    "crowd_bound",
    "crowd_error",
    "edge_to_rho",
    "margin_generalization_bound",
    "matryoshka2_bound",
    "members_needed",
    "nested_bound",
    "rate_matryoshka",
    "rate_simple",
    "sign_collapse_bound",
    "subagging_bound",
    "training_error_bound",
    "tree_bound",
    "tree_bound_asymptotic",
]


def adaboost_bound(T: ArrayLike, rho: ArrayLike) -> float | FloatArray:
    """Return the bound rho**T of a chain of T weak classifiers, [M], equation 3.

    Parameters
    ----------
    T : array_like of float
        Number of weak classifiers, >= 0.
    rho : array_like of float
        Factor of each, in [0, 1].

    Returns
    -------
    float or ndarray of float64

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.adaboost_bound(3, 0.5)
    0.125
    """
    T, rho, _ = _arguments(T, rho)
    return plain(rho**T)


def tree_bound(T: ArrayLike, rho: ArrayLike) -> float | FloatArray:
    """Return the bound F(T, rho) of a boosted tree of T nodes that splits its largest exit.

    Parameters
    ----------
    T : array_like of float
        Number of nodes, >= 0; need not be an integer.
    rho : array_like of float
        Factor of each weak classifier, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        Gamma(T + rho) / (Gamma(T + 1) Gamma(rho)) = 1 / (T B(T, rho)), for integers the product of
        (t + rho) / (t + 1) over t < T: [M], equation 9, corrected. The relative error is below
        1e-13 for T up to 1e12.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.tree_bound([0, 1, 2], 0.5).tolist()  # 0.5 * 1.5 / 2 is the last
    [1.0, 0.5, 0.375]
    """
    return plain(_tree_bound.tree(*_arguments(T, rho))[0])


def tree_bound_asymptotic(T: ArrayLike, rho: ArrayLike) -> float | FloatArray:
    """Return what F(T, rho) tends to for large T: T**(rho - 1) / Gamma(rho), [M], equation 9.

    Parameters
    ----------
    T : array_like of float
        Number of nodes, > 0.
    rho : array_like of float
        Factor of each weak classifier, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        The relative difference from `tree_bound` is about rho (1 - rho) / (2 T).

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> import pboost as pb
    >>> ratio = pb.bounds.tree_bound_asymptotic(1e4, 0.5) / pb.bounds.tree_bound(1e4, 0.5)
    >>> round(ratio, 7)  # 1 + 0.5 * 0.5 / 2e4
    1.0000125
    """
    T, rho, rest = _arguments(T, rho, positive=True)
    from scipy.special import rgamma  # not at import: see _tree_bound.terms_at_2

    return plain(T**-rest * rgamma(rho))


def nested_bound(sizes: Sequence[ArrayLike], rho: ArrayLike) -> float | FloatArray:
    """Return the bound F(T_L, F(T_(L-1), ... F(T_1, rho))) of trees nested in trees.

    It holds for matryoshki that collect additively, if each sub-tree gets all its nodes.

    Parameters
    ----------
    sizes : sequence of array_like of float
        T_1 to T_L, innermost first, each >= 1. With none the bound is `rho`.
    rho : array_like of float
        Factor of each weak classifier, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        [M], equations 10 and 11 and the one before it.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.nested_bound((2, 2), 0.5)  # 0.375 * 1.375 / 2
    0.2578125
    >>> bool(pb.bounds.nested_bound((16, 16), 0.5) < pb.bounds.tree_bound(256, 0.5))
    True
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
    """Return the bound M_2(T, rho) of trees of two trees of two ... of two weak classifiers.

    Parameters
    ----------
    T : array_like of float
        Number of weak classifiers, a power of 2.
    rho : array_like of float
        Factor of each weak classifier, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        F(2, F(2, ... rho)) with log2(T) levels and F(2, rho) = rho (1 + rho) / 2: [M], section 5.3.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.matryoshka2_bound([1, 2, 4], 0.5).tolist()
    [0.5, 0.375, 0.2578125]
    """
    T, bound, rest = _arguments(T, rho)
    fraction, exponent = np.frexp(T)
    if (wrong := T[(fraction != 0.5) | (T < 1)]).size:
        raise ValueError(f"T: expected powers of 2, at least 1, got {wrong[0]}")
    return plain(_tree_bound.doubled(exponent - 1, bound, rest))


def sign_collapse_bound(F: ArrayLike) -> float | FloatArray:
    """Return the factor of a sub-tree of certificate F that is collapsed to the sign of its votes.

    As a weak classifier it has weighted error at most F / 2 (if its votes were neither smoothed nor
    shrunk). Its factor may exceed F: `nested_bound` does not hold for such sub-trees.

    Parameters
    ----------
    F : array_like of float
        Certificate of the sub-tree relative to its root, or a bound on it, in [0, 1].

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
    """Return the bound F(T1, rho)**TL of TL trees in a chain: AdaBoost of trees as one graph.

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

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.chain_bound(2, 3, 0.5)  # 0.375**3
    0.052734375
    """
    T, rho, rest = _arguments(T1, rho, names=("T1", "rho"))
    chain = as_numbers("TL", TL, 0.0)
    chain, bound, rest = align("TL, T1, rho", chain, *_tree_bound.tree(T, rho, rest))
    # A power would magnify the rounding of a bound near 1.
    near_1 = np.exp(chain * np.log1p(-np.minimum(rest, 0.5)))
    return plain(np.where(bound < 0.5, bound**chain, near_1))


def rate_simple(T: ArrayLike, rho: ArrayLike) -> float | FloatArray:
    """Return how fast the bound of a tree falls per node: the derivative of F(T, rho) in T.

    Parameters
    ----------
    T : array_like of float
        Number of nodes, > 0.
    rho : array_like of float
        Factor of each weak classifier, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        F(T, rho) (psi(T + rho) - psi(T + 1)) <= 0: [M], after equation 13. For measured
        certificates C, the rate of a tree is C(T) - C(T - 1) instead.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.rate_simple(16, 0.5), 6)
    -0.004305
    """
    T, rho, rest = _arguments(T, rho, positive=True)
    return plain(_tree_bound.tree(T, rho, rest)[0] * _tree_bound.digamma_difference(T, rho, rest))


def rate_matryoshka(T: ArrayLike, C: ArrayLike) -> float | FloatArray:
    """Return how fast the bound falls per weak classifier with copies of a sub-tree at every node.

    Parameters
    ----------
    T : array_like of float
        Number of weak classifiers in the sub-tree, > 0.
    C : array_like of float
        Certificate of the sub-tree relative to its root, in [0, 1].

    Returns
    -------
    float or ndarray of float64
        C / T (gamma + psi(1 + C) - 1) <= 0, the derivative of F(t / T, C) in t at t = T: [M],
        equations 13 and 14. Near C = 0 and C = 1, too, the relative error is a few roundings.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.rate_matryoshka(16, pb.bounds.tree_bound(16, 0.5)), 6)
    -0.006916
    """
    T, C, rest = _arguments(T, C, positive=True, names=("T", "C"))
    return plain(C / T * _tree_bound.digamma_at_2(rest))


def best_nesting(T: int, rho: float) -> tuple[int, ...]:
    """Return the sizes of least `nested_bound` that take at most T weak classifiers.

    At most, as T may be a prime: (2, 5) mostly has a lower bound than (11,). The search is exact;
    its time grows like T**(3/4), to about a second for T = 1e6.

    Parameters
    ----------
    T : int
        Number of weak classifiers at hand, from 1 to 2**31 - 1.
    rho : float
        Factor of each weak classifier, in [0, 1].

    Returns
    -------
    tuple of int
        T_1 to T_L, innermost first; of equal bounds that of the larger outermost tree.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.bounds.best_nesting(1000, 31 / 32)
    (2, 2, 2, 2, 2, 2, 3, 5)
    """
    budget = check_integer("T", T, least=1)
    return _tree_bound.best_sizes(budget, check_number("rho", rho, least=0.0, most=1.0))


def _arguments(
    T: ArrayLike, rho: ArrayLike, *, names: tuple[str, str] = ("T", "rho"), positive: bool = False
) -> list[FloatArray]:
    """Return T, rho and 1 - rho, checked and of one shape."""
    sizes = as_numbers(names[0], T, 0.0, positive=positive)
    factors = as_numbers(names[1], rho, 0.0, 1.0)
    return align(", ".join(names), sizes, factors, 1 - factors)
