"""Bounds of votes: of weak classifiers of given edges, of independent voters, by margins.

[L] are the lecture notes cited in the documentation, [S] is R. E. Schapire, Y. Freund, P. Bartlett
and W. S. Lee, "Boosting the margin", Annals of Statistics 26 (1998).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pboost.bounds._numbers import align, as_numbers, plain
from pboost.values import FloatArray


def edge_to_rho(edge: ArrayLike) -> float | FloatArray:
    """Return the factor rho by which a weak classifier with this edge reduces the certificate.

    Parameters
    ----------
    edge : array_like of float
        Advantage epsilon over guessing: the weighted error is at most 1/2 - epsilon; in [0, 1/2].

    Returns
    -------
    float or ndarray of float64
        sqrt(1 - 4 epsilon^2), [M], equation 3.

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


def training_error_bound(gammas: ArrayLike, *, simple: bool = False) -> float | FloatArray:
    """Return the bound on AdaBoost's training error, of weak classifiers of these edges.

    Parameters
    ----------
    gammas : array_like of float, shape (..., T)
        Edge of each weak classifier: 1/2 minus its weighted error, in [-1/2, 1/2].
    simple : bool
        Whether to return the simpler and larger exp(-2 times the sum of the squares).

    Returns
    -------
    float or ndarray of float64, shape (...)
        The product of sqrt(1 - 4 gamma^2) along the last axis; [L], analysis of the training error.
        That of discrete AdaBoost, unless its votes are smoothed or shrunk.

    Raises
    ------
    ValueError
        If an edge is outside [-1/2, 1/2], or `gammas` is a single number.

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.training_error_bound([0.2, 0.29, 0.36]), 4)
    0.5181
    >>> round(pb.bounds.training_error_bound([0.2, 0.29, 0.36], simple=True), 4)
    0.6021
    """
    edges = as_numbers("gammas", gammas, -0.5, 0.5)
    if not edges.ndim:
        raise ValueError(f"gammas: expected one edge per weak classifier, got the number {edges}")
    if simple:
        return plain(np.exp(-2 * (edges**2).sum(axis=-1)))
    return plain(np.sqrt((1 - 2 * edges) * (1 + 2 * edges)).prod(axis=-1))


def crowd_error(T: ArrayLike, gamma: ArrayLike) -> float | FloatArray:
    """Return how likely the majority of 2 T + 1 independent voters is wrong.

    Parameters
    ----------
    T : array_like of int
        Half the number of voters, rounded down, >= 0.
    gamma : array_like of float
        Each is right with probability 1/2 + gamma; in [-1/2, 1/2].

    Returns
    -------
    float or ndarray of float64
        The sum of the binomial probabilities of at most T right ones among 2 T + 1; [L], wisdom of
        the crowd.

    Raises
    ------
    ValueError
        If a number is out of its range, or T is not an integer.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> pb.bounds.crowd_error([0, 1], 0.25).tolist()  # 0.25, and 0.25**3 + 3 * 0.75 * 0.25**2
    [0.25, 0.15625]
    """
    T, gamma = _crowd(T, gamma)
    from scipy.special import betainc  # not at import: see _tree_bound.terms_at_2

    return plain(betainc(T + 1, T + 1, 0.5 - gamma))


def crowd_bound(T: ArrayLike, gamma: ArrayLike) -> float | FloatArray:
    """Return Chernoff's bound on `crowd_error`.

    Parameters
    ----------
    T : array_like of int
        Half the number of voters, rounded down, >= 0.
    gamma : array_like of float
        Each is right with probability 1/2 + gamma; in [0, 1/2].

    Returns
    -------
    float or ndarray of float64
        exp(-(mu - T)^2 / (2 mu)) with mu = (2 T + 1) (1/2 + gamma), the expected number of right
        voters; [L], wisdom of the crowd. It is at most exp(-4 gamma^2 T / 5).

    Raises
    ------
    ValueError
        If a number is out of its range, or T is not an integer.

    Examples
    --------
    >>> import pboost as pb
    >>> round(pb.bounds.crowd_bound(50, 0.1), 3), round(pb.bounds.crowd_error(50, 0.1), 3)
    (0.396, 0.021)
    """
    T, gamma = _crowd(T, gamma, least=0.0)
    right = (2 * T + 1) * (0.5 + gamma)
    return plain(np.exp(-((right - T) ** 2) / (2 * right)))


def margin_generalization_bound(
    margin_error: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    *,
    size: ArrayLike | None = None,
    vc: ArrayLike | None = None,
    delta: ArrayLike = 0.01,
) -> float | FloatArray:
    """Return the bound on the error of a vote on new rows, from its margins on the training rows.

    The margin of a row is y times the sum of the votes, divided by the sum of their sizes.

    Parameters
    ----------
    margin_error : array_like of float
        Share of the training rows whose margin is at most `theta`.
    m : array_like of float
        Number of training rows, drawn independently, >= 1.
    theta : array_like of float
        Margin, in (0, 1].
    size : array_like of float, optional
        Number of weak classifiers to choose from, >= 1, where it is finite.
    vc : array_like of float, optional
        Their VC dimension, >= 1; that of decision stumps in d columns is at most
        2 (log2(d) + 1), [L]. Either `size` or `vc` is given.
    delta : array_like of float
        Probability with which the bound may fail, in (0, 1].

    Returns
    -------
    float or ndarray of float64
        At most 1. The bound is margin_error + 2 exp(-N theta^2 / 8) + e(N) for every N = 1, 2, …;
        the least is returned over a grid of them. With L = ln(N (N + 1)^2 / delta),
        e = sqrt((L + N ln(size)) / (2 m)), or, by Vapnik and Chervonenkis' theorem,
        e = sqrt(32 (L + ln 8 + N vc ln(e m / vc)) / m).

    Raises
    ------
    TypeError
        If not exactly one of `size` and `vc` is given.
    ValueError
        If a number is out of its range.

    Notes
    -----
    With probability 1 - delta the bound holds for all votes and all `theta` at once. [S], theorems
    1 and 2; the constants are those of their proofs. In m and `theta` it is of the order of
    sqrt(vc / m) / theta, up to logarithms. With `vc`, m must be millions for it to say anything.

    Examples
    --------
    >>> import pboost as pb
    >>> bound = pb.bounds.margin_generalization_bound(0.02, 1e6, 0.3, size=4000)
    >>> round(bound, 3)
    0.072
    """
    if (size is None) == (vc is None):
        raise TypeError(
            "size, vc: expected one of the two, got " + ("none" if vc is None else "both")
        )
    share = as_numbers("margin_error", margin_error, 0.0, 1.0)
    rows = as_numbers("m", m, 1.0)
    margin = as_numbers("theta", theta, 0.0, 1.0, positive=True)
    failing = as_numbers("delta", delta, 0.0, 1.0, positive=True)
    name, given = ("vc", vc) if size is None else ("size", size)
    rich = as_numbers(name, given, 1.0)
    names = f"margin_error, m, theta, delta, {name}"
    share, rows, margin, failing, rich = align(names, share, rows, margin, failing, rich)
    # Beyond the last N the second term is below 1e-9.
    last = np.maximum(8 / margin**2 * np.log(2e9), 2.0)
    best = np.full(share.shape, np.inf)
    for step in np.linspace(0.0, 1.0, 500):
        N = np.floor(last**step)
        union = np.log(N) + 2 * np.log1p(N) - np.log(failing)
        if size is not None:
            spread = (union + N * np.log(rich)) / (2 * rows)
        else:
            # With fewer rows than the dimension all labellings may occur, and nothing is said.
            growth = np.where(rows > rich, rich * (1 + np.log(rows / rich)), np.inf)
            spread = 32 * (union + np.log(8) + N * growth) / rows
        best = np.minimum(best, 2 * np.exp(-N * margin**2 / 8) + np.sqrt(spread))
    return plain(np.minimum(share + best, 1.0))


def _crowd(T: ArrayLike, gamma: ArrayLike, least: float = -0.5) -> list[FloatArray]:
    """Return numbers of voters and edges, checked and of one shape."""
    sizes = as_numbers("T", T, 0.0)
    if (wrong := sizes[sizes != np.floor(sizes)]).size:
        raise ValueError(f"T: expected integers, got {wrong.flat[0]}")
    return align("T, gamma", sizes, as_numbers("gamma", gamma, least, 0.5))
