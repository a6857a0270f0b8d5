"""Problems of zeros and ones with noise, and the probabilities of their classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.datasets._domains import Labels, as_bits, as_rows, signs
from pboost.values import FloatArray, Seed, as_generator, check_flag, check_integer, check_number

__all__ = ["led", "led_probability", "xd6", "xd6_probability"]

#: Segments of the digits 0 to 9: top, upper left, upper right, middle, lower left, lower right,
#: bottom.
_SEGMENTS = np.array(
    [
        [1, 1, 1, 0, 1, 1, 1],
        [0, 0, 1, 0, 0, 1, 0],
        [1, 0, 1, 1, 1, 0, 1],
        [1, 0, 1, 1, 0, 1, 1],
        [0, 1, 1, 1, 0, 1, 0],
        [1, 1, 0, 1, 0, 1, 1],
        [1, 1, 0, 1, 1, 1, 1],
        [1, 0, 1, 0, 0, 1, 0],
        [1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 0, 1, 1],
    ],
    dtype=bool,
)


def led(
    n: int, rng: Seed = None, *, even: bool = True, irrelevant: int = 0, noise: float = 0.1
) -> tuple[FloatArray, Labels]:
    """Draw digits as a display of seven segments shows them, some segments inverted.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence or numpy.random.Generator
        Source of randomness.
    even : bool
        Whether the class is the parity of the digit (the domain LEDeven), not the digit.
    irrelevant : int
        Number of fair random bits that follow the segments; the sources have 0 or 17.
    noise : float
        Probability from 0 to 1/2 with which each segment is inverted.

    Returns
    -------
    X : ndarray of float64, shape (n, 7 + irrelevant)
        Zeros and ones. The segments are top, upper left, upper right, middle, lower left, lower
        right, bottom.
    y : ndarray of int64, shape (n,)
        +1 for an even digit, -1 for an odd one; the digit itself if not `even`.

    Raises
    ------
    ValueError
        If a number is out of its range.

    See Also
    --------
    led_probability : The probabilities of the classes, given the segments.

    Notes
    -----
    Section 2.6.1 of L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, *Classification and
    regression trees* (1984). The digits are equally likely. At noise 0.1 the Bayes error is 26.0 %
    for the digit and 11.0 % for its parity.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.led(400, rng=0, irrelevant=17)
    >>> X.shape, sorted(set(y.tolist()))
    ((400, 24), [-1, 1])
    """
    n = check_integer("n", n, least=1)
    irrelevant = check_integer("irrelevant", irrelevant, least=0)
    noise = check_number("noise", noise, least=0, most=0.5)
    generator = as_generator(rng)
    digit = generator.integers(10, size=n)
    segments = _SEGMENTS[digit] ^ (generator.random((n, 7)) < noise)
    distractors = generator.integers(2, size=(n, irrelevant))
    X = np.concatenate([segments, distractors], axis=1).astype(np.float64)
    return X, signs(digit % 2 == 0) if check_flag("even", even) else digit


def led_probability(X: ArrayLike, *, even: bool = True, noise: float = 0.1) -> FloatArray:
    """Return the probabilities of the classes of `led`, given the segments.

    Parameters
    ----------
    X : array_like of shape (n, 7) or more columns
        Zeros and ones; columns after the seventh say nothing.
    even : bool
        Whether the class is the parity of the digit.
    noise : float
        Probability from 0 to 1/2 with which each segment is inverted.

    Returns
    -------
    ndarray of float64, shape (n,) or (n, 10)
        Probability of class +1; of each digit if not `even`.

    Raises
    ------
    ValueError
        If `X` holds anything else, or, with noise 0, a row that is no digit.

    Examples
    --------
    >>> import pboost as pb
    >>> eight = [[1, 1, 1, 1, 1, 1, 1]]
    >>> pb.datasets.led_probability(eight).round(3).tolist()
    [0.901]
    >>> pb.datasets.led_probability(eight, even=False).argmax(axis=1).tolist()
    [8]
    """
    rows = as_rows(X, 7, more=True)
    noise = check_number("noise", noise, least=0, most=0.5)
    inverted = (as_bits(rows[:, :7])[:, None] ^ _SEGMENTS).sum(axis=2)
    likelihood = noise**inverted * (1 - noise) ** (7 - inverted)
    total = likelihood.sum(axis=1, keepdims=True)
    if not total.all():
        row = int(np.argmin(total))
        raise ValueError(f"X: expected digits, as the noise is 0, got another word in row {row}")
    probability = likelihood / total
    return probability[:, ::2].sum(axis=1) if even else probability


def xd6(n: int, rng: Seed = None, *, noise: float = 0.0) -> tuple[FloatArray, Labels]:
    """Draw the XD6 problem: three conjunctions of three bits, and one irrelevant bit.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence or numpy.random.Generator
        Source of randomness.
    noise : float
        Probability from 0 to 1/2 with which a label is wrong.

    Returns
    -------
    X : ndarray of float64, shape (n, 10)
        Fair random bits x0, ..., x9, as zeros and ones.
    y : ndarray of int64, shape (n,)
        +1 where x0 x1 x2 or x3 x4 x5 or x6 x7 x8 are all ones, otherwise -1, but for the noise.

    Raises
    ------
    ValueError
        If a number is out of its range.

    See Also
    --------
    xd6_probability : The probability of class +1.

    Notes
    -----
    W. Buntine and T. Niblett, "A further comparison of splitting rules for decision-tree
    induction", Machine Learning 8 (1992). Without noise a share of 1 - (7/8)^3 = 33 % of the rows
    is of class +1. With one seed the levels of noise share their bits, and the wrong labels of a
    level are among those of the next.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.xd6(1000, rng=0, noise=0.1)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 10), [-1, 1])
    """
    n = check_integer("n", n, least=1)
    noise = check_number("noise", noise, least=0, most=0.5)
    generator = as_generator(rng)
    bits = generator.integers(2, size=(n, 10)).astype(bool)
    wrong = generator.random(n) < noise
    return bits.astype(np.float64), signs(_xd6_rule(bits) ^ wrong)


def xd6_probability(X: ArrayLike, *, noise: float = 0.0) -> FloatArray:
    """Return the probability of class +1 of `xd6`, given the bits.

    Parameters
    ----------
    X : array_like of shape (n, 10)
        Zeros and ones.
    noise : float
        Probability from 0 to 1/2 with which a label is wrong.

    Returns
    -------
    ndarray of float64, shape (n,)
        ``1 - noise`` where the rule holds, `noise` elsewhere.

    Raises
    ------
    ValueError
        If `X` holds anything else.

    Examples
    --------
    >>> import pboost as pb
    >>> rows = [[1, 1, 1, 0, 0, 0, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0, 0, 0, 0, 1]]
    >>> pb.datasets.xd6_probability(rows, noise=0.2).tolist()
    [0.8, 0.2]
    """
    rows = as_rows(X, 10)
    noise = check_number("noise", noise, least=0, most=0.5)
    return np.where(_xd6_rule(as_bits(rows)), 1 - noise, noise)


def _xd6_rule(bits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for each row whether one of the three conjunctions holds."""
    terms = np.logical_and.reduceat(bits[:, :9], [0, 3, 6], axis=1)
    return np.logical_or.reduce(terms, axis=1)
