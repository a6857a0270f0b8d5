"""Generators of the sources' synthetic problems, and what is known of their probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pboost.datasets.bits import led, led_probability, xd6, xd6_probability
from pboost.datasets.finite import balance_scale, monks, parity, tic_tac_toe
from pboost.datasets.normal import ringnorm, ringnorm_probability, twonorm, twonorm_probability
from pboost.datasets.real import (
    mease_wyner,
    mease_wyner_probability,
    waveform,
    waveform_probability,
)
from pboost.values import FloatArray, Seed, as_generator, check_integer, freeze

__all__ = [
    "NINE_CIRCLES_CENTRES",
    "NINE_CIRCLES_RADIUS",
    "balance_scale",
    "led",
    "led_probability",
    "mease_wyner",
    "mease_wyner_probability",
    "monks",
    "nine_circles",
    "parity",
    "ringnorm",
    "ringnorm_probability",
    "tic_tac_toe",
    "twonorm",
    "twonorm_probability",
    "waveform",
    "waveform_probability",
    "xd6",
    "xd6_probability",
]

#: Centres (9, 2) of the circles of `nine_circles`, and their radius.
NINE_CIRCLES_CENTRES: FloatArray = freeze(
    [(i / 6, j / 6) for i in (1, 3, 5) for j in (1, 3, 5)], np.float64
)
NINE_CIRCLES_RADIUS = 1 / 9


def nine_circles(n_per_class: int, rng: Seed = None) -> tuple[FloatArray, NDArray[np.int64]]:
    """Draw the nine-circles problem: one class in nine circles, the other in what remains.

    The circles stand in a 3 by 3 grid in the unit square. Rows of class +1 are uniform in them,
    rows of class -1 uniform in the rest of the square, so that the classes do not overlap.

    Parameters
    ----------
    n_per_class : int
        Number of rows of each class; the source has 200.
    rng : None, int, numpy.random.SeedSequence or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    X : ndarray of float64, shape (2 * n_per_class, 2)
        Points, in random order.
    y : ndarray of int64, shape (2 * n_per_class,)
        Their classes, -1 and +1.

    Raises
    ------
    ValueError
        If `n_per_class` is less than 1.

    Notes
    -----
    After section 5 and Figure 2 of E. Grossmann, "AdaTree 2: boosting to build decision trees, or
    improving AdaTree with soft splitting rules" (2004). The text does not state the size of the
    circles. With the radius 1/9, a third of their distance, and 200 rows per class, signs of affine
    functions (`pboost.weak.affine`) have about these test errors, as means over 100 draws: AdaBoost
    of 400 rounds 8.2 %, a tree grown to no training error 15.2 %, and an AdaTree 2 of 400 nodes
    12.4 % at 12 weak classifiers per row (14 if it is grown by largest bound).

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.nine_circles(200, rng=0)
    >>> X.shape, int(y.sum())
    ((400, 2), 0)
    """
    n = check_integer("n_per_class", n_per_class, least=1)
    generator = as_generator(rng)
    X = np.concatenate([_inside(n, generator), _outside(n, generator)])
    y = np.repeat(np.array([1, -1], dtype=np.int64), n)
    order = generator.permutation(2 * n)
    return X[order], y[order]


def _inside(n: int, generator: np.random.Generator) -> FloatArray:
    """Draw n points that are uniform in the circles."""
    centre = NINE_CIRCLES_CENTRES[generator.integers(9, size=n)]
    # The root makes the density uniform over the area.
    distance = NINE_CIRCLES_RADIUS * np.sqrt(generator.random(n))
    angle = 2 * np.pi * generator.random(n)
    return centre + distance[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])


def _outside(n: int, generator: np.random.Generator) -> FloatArray:
    """Draw n points that are uniform in the square without the circles."""
    found, n_found = [], 0
    while n_found < n:
        points = generator.random((n, 2))
        # Of the nine cells of the square the circle in the point's own is the only one near it.
        offset = points - (np.floor(3 * points) + 0.5) / 3
        found.append(points[(offset**2).sum(axis=1) > NINE_CIRCLES_RADIUS**2])
        n_found += len(found[-1])
    return np.concatenate(found)[:n]
