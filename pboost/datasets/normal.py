"""Two normal classes in 20 dimensions: draws, and the probabilities of their classes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pboost.datasets._domains import Labels, as_rows, signs
from pboost.values import FloatArray, Seed, as_generator, check_integer

__all__ = ["ringnorm", "ringnorm_probability", "twonorm", "twonorm_probability"]

_COLUMNS = 20
#: Every coordinate of a class mean that is not 0, but for its sign.
_MEAN = 2 / math.sqrt(_COLUMNS)


def twonorm(n: int, rng: Seed = None) -> tuple[FloatArray, Labels]:
    """Draw two normal classes of unit covariance and opposite means in 20 dimensions.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    X : ndarray of float64, shape (n, 20)
        Rows of class +1 have mean (a, ..., a), those of class -1 (-a, ..., -a), with
        a = 2 / sqrt(20).
    y : ndarray of int64, shape (n,)
        Classes -1 and +1, equally likely.

    Raises
    ------
    ValueError
        If `n` is less than 1.

    See Also
    --------
    twonorm_probability : The probability of class +1.

    Notes
    -----
    L. Breiman, "Arcing classifiers", Annals of Statistics 26 (1998). The Bayes error is that of
    the plane through the origin, 2.3 %; it is oblique to all axes.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.twonorm(300, rng=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((300, 20), [-1, 1])
    """
    n = check_integer("n", n, least=1)
    generator = as_generator(rng)
    y = signs(generator.integers(2, size=n) == 1)
    return y[:, None] * _MEAN + generator.standard_normal((n, _COLUMNS)), y


def twonorm_probability(X: ArrayLike) -> FloatArray:
    """Return the probability of class +1 of `twonorm`.

    Parameters
    ----------
    X : array_like of shape (n, 20)
        Finite numbers.

    Returns
    -------
    ndarray of float64, shape (n,)
        The logistic function of 2 a times the sum of a row, with a = 2 / sqrt(20).

    Raises
    ------
    ValueError
        If `X` has another number of columns or holds a number that is not finite.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.datasets.twonorm_probability([[0.0] * 20]).tolist()
    [0.5]
    """
    from scipy.special import expit

    return expit(2 * _MEAN * as_rows(X, _COLUMNS).sum(axis=1))


def ringnorm(n: int, rng: Seed = None) -> tuple[FloatArray, Labels]:
    """Draw two normal classes in 20 dimensions, of which one lies within the other.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    X : ndarray of float64, shape (n, 20)
        Rows of class -1 have mean 0 and covariance 4 I, those of class +1 have mean (a, ..., a),
        with a = 2 / sqrt(20), and unit covariance.
    y : ndarray of int64, shape (n,)
        Classes -1 and +1, equally likely.

    Raises
    ------
    ValueError
        If `n` is less than 1.

    See Also
    --------
    ringnorm_probability : The probability of class +1.

    Notes
    -----
    L. Breiman, "Arcing classifiers", Annals of Statistics 26 (1998), as the data set of this name
    that the DELVE collection distributes (7400 rows). The Bayes error is 1.24 %, published as
    1.3 %. Some implementations have a = 1 / sqrt(20), with a Bayes error of 1.5 %.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.ringnorm(300, rng=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((300, 20), [-1, 1])
    """
    n = check_integer("n", n, least=1)
    generator = as_generator(rng)
    y = signs(generator.integers(2, size=n) == 1)
    X = generator.standard_normal((n, _COLUMNS))
    return np.where(y[:, None] == 1, X + _MEAN, 2 * X), y


def ringnorm_probability(X: ArrayLike) -> FloatArray:
    """Return the probability of class +1 of `ringnorm`.

    Parameters
    ----------
    X : array_like of shape (n, 20)
        Finite numbers.

    Returns
    -------
    ndarray of float64, shape (n,)
        The logistic function of ``20 ln 2 + |x|^2 / 8 - |x - a|^2 / 2``.

    Raises
    ------
    ValueError
        If `X` has another number of columns or holds a number that is not finite.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.datasets.ringnorm_probability([[0.0] * 20, [5.0] * 20]).round(3).tolist()
    [1.0, 0.0]
    """
    from scipy.special import expit

    rows = as_rows(X, _COLUMNS)
    inner, outer = ((rows - _MEAN) ** 2).sum(axis=1), (rows**2).sum(axis=1) / 4
    return expit(_COLUMNS * math.log(2) + (outer - inner) / 2)
