"""Waves and a divided cube: draws, and the probabilities of their classes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pboost.datasets._domains import Labels, as_rows, signs
from pboost.values import FloatArray, Seed, as_generator, check_integer, check_number

__all__ = ["mease_wyner", "mease_wyner_probability", "waveform", "waveform_probability"]

#: The three base waves (3, 21): triangles of height 6 about the attributes 11, 15 and 7.
_WAVES = np.maximum(6.0 - np.abs(np.arange(1, 22) - np.array([[11], [15], [7]])), 0)
#: The two waves that each class mixes; the first of them gets the random share.
_MIXED = np.array([[0, 1], [0, 2], [1, 2]])


def waveform(n: int, rng: Seed = None, *, noise_features: int = 0) -> tuple[FloatArray, Labels]:
    """Draw waves: each class is a random mixture of two of three triangles, with noise.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence or numpy.random.Generator
        Source of randomness.
    noise_features : int
        Number of standard normal attributes that follow the 21 of the wave; the sources have 0 or
        19.

    Returns
    -------
    X : ndarray of float64, shape (n, 21 + noise_features)
        The waves. The noise is standard normal, as in the source.
    y : ndarray of int64, shape (n,)
        Classes 0, 1, 2, equally likely.

    Raises
    ------
    ValueError
        If a number is out of its range.

    See Also
    --------
    waveform_probability : The probabilities of the classes.

    Notes
    -----
    Section 2.6.2 of L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, *Classification and
    regression trees* (1984). The class 0 mixes the triangles about the attributes 11 and 15,
    class 1 those about 11 and 7, class 2 those about 15 and 7; the share of the first is uniform in
    [0, 1]. The Bayes error is 13.2 %, which the book estimates as 14 %. Some copies of the data
    number the classes in another order.

    There are three classes. For a builder of two-class models set one against the others, as in
    the example, or keep the rows of two classes.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = pb.datasets.waveform(300, rng=0, noise_features=19)
    >>> X.shape, sorted(set(y.tolist()))
    ((300, 40), [0, 1, 2])
    >>> one_against_others = pb.fit_adaboost(X, np.where(y == 0, 1, -1), rounds=20)
    >>> pair = pb.fit_adaboost(X[y < 2], y[y < 2], rounds=20)
    >>> one_against_others.labels.tolist(), pair.labels.tolist()
    ([-1, 1], [0, 1])
    """
    n = check_integer("n", n, least=1)
    noise_features = check_integer("noise_features", noise_features, least=0)
    generator = as_generator(rng)
    y = generator.integers(3, size=n)
    share = generator.random((n, 1))
    first, second = _WAVES[_MIXED[y]].transpose(1, 0, 2)
    X = generator.standard_normal((n, 21 + noise_features))
    X[:, :21] += share * first + (1 - share) * second
    return X, y


def waveform_probability(X: ArrayLike) -> FloatArray:
    """Return the probabilities of the classes of `waveform`.

    Parameters
    ----------
    X : array_like of shape (n, 21) or more columns
        Finite numbers; columns after the 21st say nothing.

    Returns
    -------
    ndarray of float64, shape (n, 3)
        Probability of each class. One class set against the others has the probability in its
        column; of a pair, each has its column divided by the sum of the two.

    Raises
    ------
    ValueError
        If `X` has fewer columns or holds a number that is not finite.

    Notes
    -----
    The density of a class is the integral over the share u of the first triangle. With g and h the
    triangles and r = x - h, the exponent ``-|r - u (g - h)|^2 / 2`` is that of a normal density
    in u, so that the integral is a difference of normal distribution functions.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.waveform(1000, rng=0)
    >>> probability = pb.datasets.waveform_probability(X)
    >>> bool(abs((probability.argmax(axis=1) != y).mean() - 0.14) < 0.03)
    True
    """
    from scipy.special import softmax

    waves = as_rows(X, 21, more=True)[:, :21]
    logs = [_log_mixture(waves, _WAVES[i], _WAVES[j]) for i, j in _MIXED]
    return softmax(np.stack(logs, axis=1), axis=1)


def _log_mixture(X: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the log density of rows of a class that mixes two waves, up to a common constant."""
    from scipy.special import log_ndtr

    direction, rest = first - second, X - second
    length = math.sqrt(direction @ direction)
    along = rest @ direction / length
    # The mass that the normal density about `along` has in [0, length], in the tail where it is
    # small, so that the difference does not cancel.
    flip = along < length / 2
    near = np.where(flip, along - length, -along)
    far = np.where(flip, along, length - along)
    upper, lower = log_ndtr(far), log_ndtr(near)
    mass = upper + np.log(-np.expm1(lower - upper))
    return mass - ((rest**2).sum(axis=1) - along**2) / 2 - math.log(length)


def mease_wyner(
    n: int, rng: Seed = None, *, q: float = 0.1, E: int = 5, d: int = 10
) -> tuple[FloatArray, Labels]:
    """Draw points of a cube that a plane through its centre divides, with noise of a known rate.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence or numpy.random.Generator
        Source of randomness.
    q : float
        Bayes error, from 0 to 1/2: the probability with which a label is wrong.
    E : int
        Effective dimension, from 1 to d: number of attributes, the first ones, that count.
    d : int
        Number of attributes.

    Returns
    -------
    X : ndarray of float64, shape (n, d)
        Points, uniform in the unit cube.
    y : ndarray of int64, shape (n,)
        +1 where the first E attributes add up to more than E/2, otherwise -1, but for the noise.

    Raises
    ------
    ValueError
        If a number is out of its range.

    See Also
    --------
    mease_wyner_probability : The probability of class +1.

    Notes
    -----
    D. Mease and A. Wyner, "Evidence contrary to the statistical view of boosting", J. Mach. Learn.
    Res. 9 (2008), section 3, where E is called J. The defaults of E and d are those of
    T. Qin and W.-M. Huang, "On subbagging boosted probit model trees", section 6.1.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.mease_wyner(2000, rng=0, q=0.2)
    >>> X.shape, sorted(set(y.tolist()))
    ((2000, 10), [-1, 1])
    """
    n = check_integer("n", n, least=1)
    q = check_number("q", q, least=0, most=0.5)
    d = check_integer("d", d, least=1)
    effective = check_integer("E", E, least=1, most=d)
    generator = as_generator(rng)
    X = generator.random((n, d))
    wrong = generator.random(n) < q
    return X, signs((X[:, :effective].sum(axis=1) > effective / 2) ^ wrong)


def mease_wyner_probability(X: ArrayLike, *, q: float = 0.1, E: int = 5) -> FloatArray:
    """Return the probability of class +1 of `mease_wyner`.

    Parameters
    ----------
    X : array_like of shape (n, E) or more columns
        Finite numbers; columns after the first E say nothing.
    q : float
        Bayes error, from 0 to 1/2.
    E : int
        Effective dimension.

    Returns
    -------
    ndarray of float64, shape (n,)
        ``1 - q`` where the first E attributes add up to more than E/2, `q` elsewhere.

    Raises
    ------
    ValueError
        If a number is out of its range, or `X` has fewer columns.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.datasets.mease_wyner_probability([[0.9, 0.3], [0.1, 0.8]], q=0.2, E=2).tolist()
    [0.8, 0.2]
    """
    q = check_number("q", q, least=0, most=0.5)
    effective = check_integer("E", E, least=1)
    rows = as_rows(X, effective, more=True)
    return np.where(rows[:, :effective].sum(axis=1) > effective / 2, 1 - q, q)
