"""Synthetic classification problems and their true class probabilities.

By default `monks`, `parity`, `tic_tac_toe` and `balance_scale` return all examples of a problem.
The other functions return random samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.read.check_xy import as_features, check_finite
from pboost.values import (
    FloatArray,
    Seed,
    TableLike,
    as_generator,
    check_choice,
    check_flag,
    check_integer,
    check_number,
    freeze,
)

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

_Labels: TypeAlias = NDArray[np.int64]

#: Number of values of each of the six attributes of the monk's problems.
_MONKS_VALUES = (3, 3, 2, 3, 4, 2)
#: One bit per example, in the order of `monks`. It is 1 for examples of the training set.
_MONKS_TRAINING = {
    1: "0c0024300a40698d2110071c22225b1057a30cdb021909123804d5"
    "87200280884904e004c09010901410814100c400a2a10571870055",
    2: "12ea22c00b50405edf220acf5c36190e45209810569221d509880e"
    "9798b1c48d6269a40d0257d49f20715c60ac9cb485ac040080aca1",
    3: "7a91001113cc0838f609b0b0220688e10502c3c01610024005609d"
    "104c0208b4085209a1a801412005801208401440860601b2c01485",
}
#: Examples with a wrong class in the published training set of the third problem.
_MONKS_NOISY = (4, 60, 202, 212, 213, 390)

#: Largest number of bits of `parity`, which gives a million rows.
_MOST_BITS = 20

_LINES = np.array(
    [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]]
)


#: Values of the option `part` of `monks`.
MonksPart: TypeAlias = Literal["all", "training"]


def monks(k: int, *, part: MonksPart = "all") -> tuple[FloatArray, _Labels]:
    """Return one of the three monk's problems, which classify robots by a logical rule.

    The attributes a1, ..., a6 take the values 1 to 3, 3, 2, 3, 4 and 2. The class of a robot is +1
    if

    1. a1 = a2 or a5 = 1;
    2. exactly two of the six attributes have the value 1;
    3. (a5 = 3 and a4 = 1) or (a5 is not 4 and a2 is not 3).

    Parameters
    ----------
    k : {1, 2, 3}
        Number of the problem.
    part : {"all", "training"}
        "all" returns all 432 robots with their true classes, which is the published test set.
        "training" returns the published training set of 124, 169 or 122 robots. In the third
        problem, 6 of these classes (5 %) are wrong.

    Returns
    -------
    X : ndarray of float64, shape (432, 6) or (n, 6)
        The attributes, in lexicographic order.
    y : ndarray of int64, shape (432,) or (n,)
        Classes -1 and +1.

    Raises
    ------
    ValueError
        If `k` or `part` is invalid.

    Notes
    -----
    S. B. Thrun et al., "The MONK's problems: a performance comparison of different learning
    algorithms", CMU-CS-91-197 (1991). The training sets and their wrong classes are from the UCI
    repository (J. Wnek, "MONK's Problems", CC BY 4.0). Published errors on 556, 601 and 554 rows
    refer to both parts together. The attributes are nominal; use `one_hot` to encode them.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.monks(3)
    >>> X.shape, int((y == 1).sum())
    ((432, 6), 228)
    >>> X, y = pb.datasets.monks(3, part="training")
    >>> X.shape, int((y == 1).sum())
    ((122, 6), 60)
    """
    k = check_integer("k", k, min_value=1, max_value=3)
    check_choice("part", part, get_args(MonksPart))
    X = _grid([range(1, n + 1) for n in _MONKS_VALUES])
    positive = _monks_rule(k, X)
    if part == "all":
        return X, _signs(positive)
    if k == 3:
        positive[list(_MONKS_NOISY)] ^= True
    packed = np.frombuffer(bytes.fromhex(_MONKS_TRAINING[k]), dtype=np.uint8)
    chosen = np.unpackbits(packed).astype(bool)
    return X[chosen], _signs(positive[chosen])


def _monks_rule(k: int, X: FloatArray) -> NDArray[np.bool_]:
    """Return a mask of the robots that satisfy rule `k`."""
    _, a2, _, a4, a5, _ = X.T
    if k == 1:
        return (X[:, 0] == a2) | (a5 == 1)
    if k == 2:
        return (X == 1).sum(axis=1) == 2
    return ((a5 == 3) & (a4 == 1)) | ((a5 != 4) & (a2 != 3))


def parity(bits: int, relevant: int) -> tuple[FloatArray, _Labels]:
    """Return all binary vectors with `bits` bits, classified by the parity of the first bits.

    Parameters
    ----------
    bits : int
        Length of the vectors, up to 20.
    relevant : int
        Number of leading bits that determine the class.

    Returns
    -------
    X : ndarray of float64, shape (2 ** bits, bits)
        Zeros and ones, in lexicographic order.
    y : ndarray of int64, shape (2 ** bits,)
        Class +1 if the number of ones among the relevant bits is odd, otherwise -1.

    Raises
    ------
    ValueError
        If `bits` is not from 1 to 20, or `relevant` not from 1 to `bits`.

    Notes
    -----
    Each proper subset of the relevant bits is independent of the class. Only the last split on a
    path improves a tree, and no stump is better than chance.

    C. Henry, R. Nock and F. Nielsen, "Real boosting a la carte with an application to boosting
    oblique decision trees" (IJCAI 2007), use a problem called Parity without defining it. Their
    errors are multiples of 1/256 near one half, which is consistent with 8 bits.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.parity(8, 5)
    >>> X.shape, int(y.sum())
    ((256, 8), 0)
    """
    bits = check_integer("bits", bits, min_value=1, max_value=_MOST_BITS)
    relevant = check_integer("relevant", relevant, min_value=1, max_value=bits)
    X = _grid([range(2)] * bits)
    return X, _signs(X[:, :relevant].sum(axis=1) % 2 == 1)


def tic_tac_toe() -> tuple[FloatArray, _Labels]:
    """Return all final boards of tic-tac-toe, classified by whether x has won.

    Returns
    -------
    X : ndarray of float64, shape (958, 9)
        Squares in row order: 1 for x, which moves first, -1 for o, 0 for blank.
    y : ndarray of int64, shape (958,)
        Class +1 if x has three in a row (626 boards), otherwise -1.

    Notes
    -----
    The boards are from the UCI repository (D. W. Aha, https://doi.org/10.24432/C5688J), in
    lexicographic order of X. Use `one_hot` to encode the states of the squares.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.tic_tac_toe()
    >>> X.shape, int((y == 1).sum())
    ((958, 9), 626)
    """
    boards = _grid([(-1, 0, 1)] * 9)
    excess = boards.sum(axis=1)
    lines = boards[:, _LINES].sum(axis=2)
    x_won, o_won = (lines == 3).any(axis=1), (lines == -3).any(axis=1)
    # Only the player who moved last can have completed a line.
    won = x_won & ~o_won & (excess == 1)
    lost = o_won & ~x_won & (excess == 0)
    drawn = ~x_won & ~o_won & (excess == 1) & (boards != 0).all(axis=1)
    ended = won | lost | drawn
    return boards[ended], _signs(won[ended])


def balance_scale() -> tuple[FloatArray, NDArray[np.str_]]:
    """Return all states of a balance scale, classified by the side to which it tips.

    Returns
    -------
    X : ndarray of float64, shape (625, 4)
        Left weight, left distance, right weight and right distance, each 1 to 5, in lexicographic
        order.
    y : ndarray of str, shape (625,)
        ``"L"`` or ``"R"``, the side with the larger product of weight and distance (288 rows each),
        or ``"B"`` if the scale is balanced (49 rows).

    Notes
    -----
    R. S. Siegler, "Three aspects of cognitive development", Cognitive Psychology 8 (1976). The rows
    are from the UCI repository (https://doi.org/10.24432/C5488X). For a binary problem, drop the
    balanced rows, as in the example, or compare one class with the rest.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.balance_scale()
    >>> X.shape, [int((y == side).sum()) for side in "LBR"]
    ((625, 4), [288, 49, 288])
    >>> tips = y != "B"
    >>> pb.fit_boosted_tree(X[tips], y[tips], max_nodes=20).classes.tolist()
    ['L', 'R']
    """
    X = _grid([range(1, 6)] * 4)
    torque = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    return X, np.array(["R", "B", "L"])[np.sign(torque).astype(np.int64) + 1]


def _grid(values: Sequence[Sequence[Any]]) -> FloatArray:
    """Return all combinations of the columns' values in lexicographic order."""
    axes = np.meshgrid(*values, indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1).astype(np.float64)


def _signs(positive: NDArray[np.bool_]) -> _Labels:
    """Return the classes: +1 for True, -1 for False."""
    return np.where(positive, np.int64(1), np.int64(-1))


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
) -> tuple[FloatArray, _Labels]:
    """Draw digits on a seven-segment display with randomly inverted segments.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.
    even : bool
        If True, the class is the parity of the digit (the domain LEDeven), otherwise the digit.
    irrelevant : int
        Number of fair random bits to append to the segments; the references use 0 or 17.
    noise : float
        Probability of inverting each segment, from 0 to 1/2.

    Returns
    -------
    X : ndarray of float64, shape (n, 7 + irrelevant)
        Zeros and ones. The segments are top, upper left, upper right, middle, lower left, lower
        right, bottom.
    y : ndarray of int64, shape (n,)
        +1 for an even digit, -1 for an odd digit; the digit itself if `even` is False.

    Raises
    ------
    ValueError
        If a number is out of range.

    See Also
    --------
    led_probability : Class probabilities, given the segments.

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
    n = check_integer("n", n, min_value=1)
    irrelevant = check_integer("irrelevant", irrelevant, min_value=0)
    noise = check_number("noise", noise, min_value=0, max_value=0.5)
    generator = as_generator(rng)
    digit = generator.integers(10, size=n)
    segments = _SEGMENTS[digit] ^ (generator.random((n, 7)) < noise)
    distractors = generator.integers(2, size=(n, irrelevant))
    X = np.concatenate([segments, distractors], axis=1).astype(np.float64)
    return X, _signs(digit % 2 == 0) if check_flag("even", even) else digit


def led_probability(X: ArrayLike, *, even: bool = True, noise: float = 0.1) -> FloatArray:
    """Return the class probabilities of `led`, given the segments.

    Parameters
    ----------
    X : array_like of shape (n, 7) or more columns
        Zeros and ones; columns after the seventh are ignored.
    even : bool
        If True, the class is the parity of the digit, otherwise the digit.
    noise : float
        Probability of inverting each segment, from 0 to 1/2.

    Returns
    -------
    ndarray of float64, shape (n,) or (n, 10)
        Probability of class +1, or of each digit if `even` is False.

    Raises
    ------
    ValueError
        If `X` has other values, or if the noise is 0 and a row is not a digit.

    Examples
    --------
    >>> import pboost as pb
    >>> eight = [[1, 1, 1, 1, 1, 1, 1]]
    >>> pb.datasets.led_probability(eight).round(3).tolist()
    [0.901]
    >>> pb.datasets.led_probability(eight, even=False).argmax(axis=1).tolist()
    [8]
    """
    rows = _as_rows(X, 7, more=True)
    noise = check_number("noise", noise, min_value=0, max_value=0.5)
    inverted = (_as_bits(rows[:, :7])[:, None] ^ _SEGMENTS).sum(axis=2)
    likelihood = noise**inverted * (1 - noise) ** (7 - inverted)
    total = likelihood.sum(axis=1, keepdims=True)
    if not total.all():
        row = int(np.argmin(total))
        raise ValueError(
            "X: expected the segments of a digit because noise=0, got an invalid pattern in "
            f"row {row}"
        )
    probability = likelihood / total
    return probability[:, ::2].sum(axis=1) if even else probability


def xd6(n: int, rng: Seed = None, *, noise: float = 0.0) -> tuple[FloatArray, _Labels]:
    """Draw rows of the XD6 problem, a disjunction of three conjunctions of three bits.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.
    noise : float
        Probability of a wrong class, from 0 to 1/2.

    Returns
    -------
    X : ndarray of float64, shape (n, 10)
        Fair random bits x0, ..., x9, as zeros and ones.
    y : ndarray of int64, shape (n,)
        +1 if x0 x1 x2, x3 x4 x5 or x6 x7 x8 are all ones, otherwise -1. Noise then changes some
        of the classes.

    Raises
    ------
    ValueError
        If a number is out of range.

    See Also
    --------
    xd6_probability : Probability of class +1.

    Notes
    -----
    W. Buntine and T. Niblett, "A further comparison of splitting rules for decision-tree
    induction", Machine Learning 8 (1992). Without noise, 1 - (7/8)^3 = 33 % of the rows are in
    class +1. For a given seed, X does not depend on `noise`. Increasing `noise` only adds wrong
    classes.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.xd6(1000, rng=0, noise=0.1)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 10), [-1, 1])
    """
    n = check_integer("n", n, min_value=1)
    noise = check_number("noise", noise, min_value=0, max_value=0.5)
    generator = as_generator(rng)
    bits = generator.integers(2, size=(n, 10)).astype(bool)
    wrong = generator.random(n) < noise
    return bits.astype(np.float64), _signs(_xd6_rule(bits) ^ wrong)


def xd6_probability(X: ArrayLike, *, noise: float = 0.0) -> FloatArray:
    """Return the probability of class +1 of `xd6`, given the bits.

    Parameters
    ----------
    X : array_like of shape (n, 10)
        Zeros and ones.
    noise : float
        Probability of a wrong class, from 0 to 1/2.

    Returns
    -------
    ndarray of float64, shape (n,)
        ``1 - noise`` if the rule holds, otherwise `noise`.

    Raises
    ------
    ValueError
        If `X` has values other than 0 and 1.

    Examples
    --------
    >>> import pboost as pb
    >>> rows = [[1, 1, 1, 0, 0, 0, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0, 0, 0, 0, 1]]
    >>> pb.datasets.xd6_probability(rows, noise=0.2).tolist()
    [0.8, 0.2]
    """
    rows = _as_rows(X, 10)
    noise = check_number("noise", noise, min_value=0, max_value=0.5)
    return np.where(_xd6_rule(_as_bits(rows)), 1 - noise, noise)


def _xd6_rule(bits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask of the rows that satisfy one of the three conjunctions."""
    terms = np.logical_and.reduceat(bits[:, :9], [0, 3, 6], axis=1)
    return np.logical_or.reduce(terms, axis=1)


_COLUMNS = 20
#: Absolute value of each nonzero coordinate of a class mean.
_MEAN = 2 / math.sqrt(_COLUMNS)


def twonorm(n: int, rng: Seed = None) -> tuple[FloatArray, _Labels]:
    """Draw two normal classes in 20 dimensions with unit covariance and opposite means.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.

    Returns
    -------
    X : ndarray of float64, shape (n, 20)
        Rows of class +1 have mean (a, ..., a), rows of class -1 (-a, ..., -a), with
        a = 2 / sqrt(20).
    y : ndarray of int64, shape (n,)
        Classes -1 and +1, equally likely.

    Raises
    ------
    ValueError
        If `n` is less than 1.

    See Also
    --------
    twonorm_probability : Probability of class +1.

    Notes
    -----
    L. Breiman, "Arcing classifiers", Annals of Statistics 26 (1998). The optimal decision boundary
    is a plane through the origin that is oblique to all axes. The Bayes error is 2.3 %.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.twonorm(300, rng=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((300, 20), [-1, 1])
    """
    n = check_integer("n", n, min_value=1)
    generator = as_generator(rng)
    y = _signs(generator.integers(2, size=n) == 1)
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
        ``1 / (1 + exp(-2 a s))`` for a row with the sum s, with a = 2 / sqrt(20).

    Raises
    ------
    ValueError
        If `X` has the wrong number of columns, or a value that is not finite.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.datasets.twonorm_probability([[0.0] * 20]).tolist()
    [0.5]
    """
    from scipy.special import expit

    return expit(2 * _MEAN * _as_rows(X, _COLUMNS).sum(axis=1))


def ringnorm(n: int, rng: Seed = None) -> tuple[FloatArray, _Labels]:
    """Draw two normal classes in 20 dimensions, one of which lies within the other.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.

    Returns
    -------
    X : ndarray of float64, shape (n, 20)
        Rows of class -1 have mean 0 and covariance 4 I, rows of class +1 have mean (a, ..., a),
        with a = 2 / sqrt(20), and unit covariance.
    y : ndarray of int64, shape (n,)
        Classes -1 and +1, equally likely.

    Raises
    ------
    ValueError
        If `n` is less than 1.

    See Also
    --------
    ringnorm_probability : Probability of class +1.

    Notes
    -----
    L. Breiman, "Arcing classifiers", Annals of Statistics 26 (1998), with the parameters of the
    DELVE data set of this name (7400 rows). The Bayes error is 1.24 %, published as 1.3 %. Some
    implementations use a = 1 / sqrt(20), with a Bayes error of 1.5 %.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.ringnorm(300, rng=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((300, 20), [-1, 1])
    """
    n = check_integer("n", n, min_value=1)
    generator = as_generator(rng)
    y = _signs(generator.integers(2, size=n) == 1)
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
        If `X` has the wrong number of columns, or a value that is not finite.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.datasets.ringnorm_probability([[0.0] * 20, [5.0] * 20]).round(3).tolist()
    [1.0, 0.0]
    """
    from scipy.special import expit

    rows = _as_rows(X, _COLUMNS)
    inner, outer = ((rows - _MEAN) ** 2).sum(axis=1), (rows**2).sum(axis=1) / 4
    return expit(_COLUMNS * math.log(2) + (outer - inner) / 2)


#: The three base waves (3, 21): triangles of height 6 centered at the features 11, 15 and 7.
_WAVES = np.maximum(6.0 - np.abs(np.arange(1, 22) - np.array([[11], [15], [7]])), 0)
#: The two waves that each class mixes. The first wave has the random weight.
_MIXED = np.array([[0, 1], [0, 2], [1, 2]])


def waveform(n: int, rng: Seed = None, *, noise_features: int = 0) -> tuple[FloatArray, _Labels]:
    """Draw noisy waves. Each class is a random mixture of two of three triangles.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.
    noise_features : int
        Number of standard normal features to append to the 21 features of the wave; the references
        use 0 or 19.

    Returns
    -------
    X : ndarray of float64, shape (n, 21 + noise_features)
        The waves with standard normal noise, and the noise features.
    y : ndarray of int64, shape (n,)
        Classes 0, 1, 2, equally likely.

    Raises
    ------
    ValueError
        If a number is out of range.

    See Also
    --------
    waveform_probability : Class probabilities.

    Notes
    -----
    Section 2.6.2 of L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, *Classification and
    regression trees* (1984). Class 0 mixes the triangles centered at the features 11 and 15,
    class 1 at 11 and 7, and class 2 at 15 and 7. The weight of the first triangle is uniform in
    [0, 1]. The Bayes error is 13.2 %, which the book estimates as 14 %. Some copies of the data
    number the classes in another order.

    For a binary problem, compare one class with the rest, as in the example, or keep the rows of
    two classes.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = pb.datasets.waveform(300, rng=0, noise_features=19)
    >>> X.shape, sorted(set(y.tolist()))
    ((300, 40), [0, 1, 2])
    >>> one_against_others = pb.fit_adaboost(X, np.where(y == 0, 1, -1), n_estimators=20)
    >>> pair = pb.fit_adaboost(X[y < 2], y[y < 2], n_estimators=20)
    >>> one_against_others.classes.tolist(), pair.classes.tolist()
    ([-1, 1], [0, 1])
    """
    n = check_integer("n", n, min_value=1)
    noise_features = check_integer("noise_features", noise_features, min_value=0)
    generator = as_generator(rng)
    y = generator.integers(3, size=n)
    share = generator.random((n, 1))
    first, second = _WAVES[_MIXED[y]].transpose(1, 0, 2)
    X = generator.standard_normal((n, 21 + noise_features))
    X[:, :21] += share * first + (1 - share) * second
    return X, y


def waveform_probability(X: ArrayLike) -> FloatArray:
    """Return the class probabilities of `waveform`.

    Parameters
    ----------
    X : array_like of shape (n, 21) or more columns
        Finite numbers; columns after the 21st are ignored.

    Returns
    -------
    ndarray of float64, shape (n, 3)
        Probability of each class. If only two classes are kept, divide their columns by the sum
        of the two columns.

    Raises
    ------
    ValueError
        If `X` has too few columns, or a value that is not finite.

    Notes
    -----
    The density of a class is an integral over the weight u of the first triangle. With the
    triangles g and h and r = x - h, the integrand ``exp(-|r - u (g - h)|^2 / 2)`` is proportional
    to a normal density in u, so the integral is a difference of normal distribution functions.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.waveform(1000, rng=0)
    >>> probability = pb.datasets.waveform_probability(X)
    >>> round(float((probability.argmax(axis=1) != y).mean()), 2)
    0.13
    """
    from scipy.special import softmax

    waves = _as_rows(X, 21, more=True)[:, :21]
    logs = [_log_mixture(waves, _WAVES[i], _WAVES[j]) for i, j in _MIXED]
    return softmax(np.stack(logs, axis=1), axis=1)


def _log_mixture(X: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the log density of a class that mixes two waves, up to a common constant."""
    from scipy.special import log_ndtr

    direction, rest = first - second, X - second
    length = math.sqrt(direction @ direction)
    along = rest @ direction / length
    # Integrate the normal density with mean `along` from 0 to `length`. Using the lower tail avoids
    # cancellation.
    flip = along < length / 2
    near = np.where(flip, along - length, -along)
    far = np.where(flip, along, length - along)
    upper, lower = log_ndtr(far), log_ndtr(near)
    mass = upper + np.log(-np.expm1(lower - upper))
    return mass - ((rest**2).sum(axis=1) - along**2) / 2 - math.log(length)


def mease_wyner(
    n: int, rng: Seed = None, *, q: float = 0.1, E: int = 5, d: int = 10
) -> tuple[FloatArray, _Labels]:
    """Draw uniform points in a cube that a plane divides into two classes, with label noise.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.
    q : float
        Bayes error, from 0 to 1/2: the probability of a wrong class.
    E : int
        Effective dimension, from 1 to d: the number of leading features that determine the class.
    d : int
        Number of features.

    Returns
    -------
    X : ndarray of float64, shape (n, d)
        Points, uniform in the unit cube.
    y : ndarray of int64, shape (n,)
        +1 if the sum of the first E features exceeds E/2, otherwise -1. Noise then changes some
        of the classes.

    Raises
    ------
    ValueError
        If a number is out of range.

    See Also
    --------
    mease_wyner_probability : Probability of class +1.

    Notes
    -----
    D. Mease and A. Wyner, "Evidence contrary to the statistical view of boosting", J. Mach. Learn.
    Res. 9 (2008), section 3. In this paper, E is called J. The defaults of E and d are from T. Qin
    and W.-M. Huang, "On subbagging boosted probit model trees", section 6.1.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.mease_wyner(2000, rng=0, q=0.2)
    >>> X.shape, sorted(set(y.tolist()))
    ((2000, 10), [-1, 1])
    """
    n = check_integer("n", n, min_value=1)
    q = check_number("q", q, min_value=0, max_value=0.5)
    d = check_integer("d", d, min_value=1)
    effective = check_integer("E", E, min_value=1, max_value=d)
    generator = as_generator(rng)
    X = generator.random((n, d))
    wrong = generator.random(n) < q
    return X, _signs((X[:, :effective].sum(axis=1) > effective / 2) ^ wrong)


def mease_wyner_probability(X: ArrayLike, *, q: float = 0.1, E: int = 5) -> FloatArray:
    """Return the probability of class +1 of `mease_wyner`.

    Parameters
    ----------
    X : array_like of shape (n, E) or more columns
        Finite numbers; columns after the first E are ignored.
    q : float
        Bayes error, from 0 to 1/2.
    E : int
        Effective dimension.

    Returns
    -------
    ndarray of float64, shape (n,)
        ``1 - q`` if the sum of the first E features exceeds E/2, otherwise `q`.

    Raises
    ------
    ValueError
        If a number is out of range, or `X` has too few columns.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.datasets.mease_wyner_probability([[0.9, 0.3], [0.1, 0.8]], q=0.2, E=2).tolist()
    [0.8, 0.2]
    """
    q = check_number("q", q, min_value=0, max_value=0.5)
    effective = check_integer("E", E, min_value=1)
    rows = _as_rows(X, effective, more=True)
    return np.where(rows[:, :effective].sum(axis=1) > effective / 2, 1 - q, q)


def _as_rows(X: TableLike, n_columns: int, *, more: bool = False) -> FloatArray:
    """Check X and return it as float64. `more` allows more than `n_columns` columns."""
    features = as_features(X)
    check_finite(features)
    width = features.values.shape[1]
    if width < n_columns or (width > n_columns and not more):
        wanted = f"{n_columns} columns{' or more' if more else ''}"
        raise ValueError(f"X: expected {wanted}, got {width}")
    return features.values.astype(np.float64, copy=False)


def _as_bits(X: FloatArray) -> NDArray[np.bool_]:
    """Convert rows of zeros and ones to booleans."""
    wrong = np.argwhere((X != 0) & (X != 1))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise ValueError(
            f"X: expected zeros and ones, got {X[row, column]} in column {column}, row {row}"
        )
    return X == 1


#: Centers (9, 2) and radius of the circles of `nine_circles`.
NINE_CIRCLES_CENTRES: FloatArray = freeze(
    [(i / 6, j / 6) for i in (1, 3, 5) for j in (1, 3, 5)], np.float64
)
NINE_CIRCLES_RADIUS = 1 / 9


def nine_circles(n_per_class: int, rng: Seed = None) -> tuple[FloatArray, _Labels]:
    """Draw rows of the nine-circles problem, with one class inside nine circles.

    The circles form a 3 by 3 grid in the unit square. Rows of class +1 are uniform in the circles,
    rows of class -1 in the rest of the square, so the classes do not overlap.

    Parameters
    ----------
    n_per_class : int
        Number of rows of each class; the reference uses 200.
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.

    Returns
    -------
    X : ndarray of float64, shape (2 * n_per_class, 2)
        Points, in random order.
    y : ndarray of int64, shape (2 * n_per_class,)
        Classes -1 and +1.

    Raises
    ------
    ValueError
        If `n_per_class` is less than 1.

    Notes
    -----
    The problem is described in section 5 and Figure 2 of E. Grossmann, "AdaTree 2: boosting to
    build decision trees, or improving AdaTree with soft splitting rules" (2004). The paper does not
    state the size of the circles. Here the radius is 1/9, a third of the distance between centers.

    With 200 rows per class and `pboost.weak.affine`, the mean test error over 100 draws is 8.2 %
    for AdaBoost with 400 rounds, 15.2 % for a tree grown to zero training error, and 12.4 % for
    AdaTree 2 with 400 nodes. AdaTree 2 evaluates 12 weak classifiers per row, or 14 with
    ``growth="largest_bound"``.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.nine_circles(200, rng=0)
    >>> X.shape, int(y.sum())
    ((400, 2), 0)
    """
    n = check_integer("n_per_class", n_per_class, min_value=1)
    generator = as_generator(rng)
    X = np.concatenate([_inside(n, generator), _outside(n, generator)])
    y = np.repeat(np.array([1, -1], dtype=np.int64), n)
    order = generator.permutation(2 * n)
    return X[order], y[order]


def _inside(n: int, generator: np.random.Generator) -> FloatArray:
    """Draw n points that are uniform in the circles."""
    centre = NINE_CIRCLES_CENTRES[generator.integers(9, size=n)]
    # The square root makes the density uniform over the area.
    distance = NINE_CIRCLES_RADIUS * np.sqrt(generator.random(n))
    angle = 2 * np.pi * generator.random(n)
    return centre + distance[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])


def _outside(n: int, generator: np.random.Generator) -> FloatArray:
    """Draw n points that are uniform in the square outside the circles."""
    parts, n_found = [], 0
    while n_found < n:
        points = generator.random((n, 2))
        # A point can only be inside the circle of its own cell of the 3 by 3 grid.
        offset = points - (np.floor(3 * points) + 0.5) / 3
        parts.append(points[(offset**2).sum(axis=1) > NINE_CIRCLES_RADIUS**2])
        n_found += len(parts[-1])
    return np.concatenate(parts)[:n]
