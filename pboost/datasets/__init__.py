"""Generators of the sources' synthetic problems, and what is known of their probabilities.

First those that are enumerated: every example there is, without chance. Then those that are drawn.
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

#: Number of values of the six attributes of the monk's problems.
_MONKS_VALUES = (3, 3, 2, 3, 4, 2)
#: One bit per example, in the order of `monks`: whether it is in the published training set.
_MONKS_TRAINING = {
    1: "0c0024300a40698d2110071c22225b1057a30cdb021909123804d5"
    "87200280884904e004c09010901410814100c400a2a10571870055",
    2: "12ea22c00b50405edf220acf5c36190e45209810569221d509880e"
    "9798b1c48d6269a40d0257d49f20715c60ac9cb485ac040080aca1",
    3: "7a91001113cc0838f609b0b0220688e10502c3c01610024005609d"
    "104c0208b4085209a1a801412005801208401440860601b2c01485",
}
#: Examples whose label in the published training set of the third problem is wrong.
_MONKS_NOISY = (4, 60, 202, 212, 213, 390)

#: Largest number of bits of `parity`: a million rows.
_MOST_BITS = 20

_LINES = np.array(
    [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]]
)


#: Which of the rows of the monk's problems.
MonksPart: TypeAlias = Literal["all", "training"]


def monks(k: int, *, part: MonksPart = "all") -> tuple[FloatArray, _Labels]:
    """Return one of the three monk's problems: robots of six attributes, and a rule.

    With a1, ..., a6 the attributes, which take the values 1 to 3, 3, 2, 3, 4 and 2, a robot is of
    class +1 if

    1. a1 = a2 or a5 = 1;
    2. exactly two of the six attributes have the value 1;
    3. (a5 = 3 and a4 = 1) or (a5 is not 4 and a2 is not 3).

    Parameters
    ----------
    k : {1, 2, 3}
        Which problem.
    part : {"all", "training"}
        All 432 robots with their true labels, which is the published test set, or the published
        training set: 124, 169 or 122 of them. In the third, 6 of the labels (5 %) are wrong.

    Returns
    -------
    X : ndarray of float64, shape (432, 6) or (n, 6)
        The attributes, in lexicographic order.
    y : ndarray of int64, shape (432,) or (n,)
        Classes -1 and +1.

    Raises
    ------
    ValueError
        If there is no such problem or part.

    Notes
    -----
    S. B. Thrun et al., "The MONK's problems: a performance comparison of different learning
    algorithms", CMU-CS-91-197 (1991). Which robots are in the training sets, and which labels
    are wrong there, is taken from the UCI repository (J. Wnek, "MONK's Problems", CC BY 4.0).
    Published errors over 556, 601 and 554 rows are of both parts together. The values of an
    attribute are names, not quantities: `one_hot` gives each a column.

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
    """Return for each robot whether rule `k` holds."""
    _, a2, _, a4, a5, _ = X.T
    if k == 1:
        return (X[:, 0] == a2) | (a5 == 1)
    if k == 2:
        return (X == 1).sum(axis=1) == 2
    return ((a5 == 3) & (a4 == 1)) | ((a5 != 4) & (a2 != 3))


def parity(bits: int, relevant: int) -> tuple[FloatArray, _Labels]:
    """Return all words of some bits, labelled by the parity of the first of them.

    Parameters
    ----------
    bits : int
        Length of the words, up to 20.
    relevant : int
        Number of bits, the first ones, that count; the others are irrelevant.

    Returns
    -------
    X : ndarray of float64, shape (2 ** bits, bits)
        Zeros and ones, in lexicographic order.
    y : ndarray of int64, shape (2 ** bits,)
        Class +1 where the number of ones among the relevant bits is odd, otherwise -1.

    Raises
    ------
    ValueError
        If `bits` is not from 1 to 20, or `relevant` not from 1 to `bits`.

    Notes
    -----
    As long as one relevant bit is not known, the others say nothing of the class: no split but
    the last on a path improves a tree, and no single stump is better than chance.

    The domain Parity of C. Henry, R. Nock and F. Nielsen, "Real boosting a la carte with an
    application to boosting oblique decision trees" (IJCAI 2007) is not defined there. Its errors
    are multiples of 1/256 near one half, which suits 8 bits of which some are relevant.

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
    """Return all boards at the end of a game of tic-tac-toe, labelled by whether x has won.

    Returns
    -------
    X : ndarray of float64, shape (958, 9)
        Squares row by row: 1 for x, which moves first, -1 for o, 0 for blank.
    y : ndarray of int64, shape (958,)
        Class +1 where x has three in a row (626 boards), otherwise -1.

    Notes
    -----
    The boards of the UCI repository (D. W. Aha, https://doi.org/10.24432/C5688J), enumerated: they
    stand in lexicographic order of X. `one_hot` gives each state of a square a column.

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
    # Who has just moved tells whose line ended the game; the other has none.
    won = x_won & ~o_won & (excess == 1)
    lost = o_won & ~x_won & (excess == 0)
    drawn = ~x_won & ~o_won & (excess == 1) & (boards != 0).all(axis=1)
    ended = won | lost | drawn
    return boards[ended], _signs(won[ended])


def balance_scale() -> tuple[FloatArray, NDArray[np.str_]]:
    """Return all states of a balance scale, labelled by the side to which it tips.

    Returns
    -------
    X : ndarray of float64, shape (625, 4)
        Left weight, left distance, right weight and right distance, each 1 to 5, in lexicographic
        order.
    y : ndarray of str, shape (625,)
        ``"L"`` or ``"R"``, whichever side has the larger product of weight and distance (288 rows
        each), ``"B"`` where they balance (49 rows).

    Notes
    -----
    R. S. Siegler, "Three aspects of cognitive development", Cognitive Psychology 8 (1976); the rows
    of the UCI repository (https://doi.org/10.24432/C5488X). Three classes: for a builder of
    two-class models, drop the rows that balance, as in the example, or set one class against the
    others.

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
    """Return all combinations of the columns' values, in lexicographic order."""
    axes = np.meshgrid(*values, indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1).astype(np.float64)


def _signs(positive: NDArray[np.bool_]) -> _Labels:
    """Return the label +1 where `positive`, -1 elsewhere."""
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
    """Draw digits as a display of seven segments shows them, some segments inverted.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
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
    rows = _as_rows(X, 7, more=True)
    noise = check_number("noise", noise, min_value=0, max_value=0.5)
    inverted = (_as_bits(rows[:, :7])[:, None] ^ _SEGMENTS).sum(axis=2)
    likelihood = noise**inverted * (1 - noise) ** (7 - inverted)
    total = likelihood.sum(axis=1, keepdims=True)
    if not total.all():
        row = int(np.argmin(total))
        raise ValueError(f"X: expected digits, as the noise is 0, got another word in row {row}")
    probability = likelihood / total
    return probability[:, ::2].sum(axis=1) if even else probability


def xd6(n: int, rng: Seed = None, *, noise: float = 0.0) -> tuple[FloatArray, _Labels]:
    """Draw the XD6 problem: three conjunctions of three bits, and one irrelevant bit.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
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
    rows = _as_rows(X, 10)
    noise = check_number("noise", noise, min_value=0, max_value=0.5)
    return np.where(_xd6_rule(_as_bits(rows)), 1 - noise, noise)


def _xd6_rule(bits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for each row whether one of the three conjunctions holds."""
    terms = np.logical_and.reduceat(bits[:, :9], [0, 3, 6], axis=1)
    return np.logical_or.reduce(terms, axis=1)


_COLUMNS = 20
#: Every coordinate of a class mean that is not 0, but for its sign.
_MEAN = 2 / math.sqrt(_COLUMNS)


def twonorm(n: int, rng: Seed = None) -> tuple[FloatArray, _Labels]:
    """Draw two normal classes of unit covariance and opposite means in 20 dimensions.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
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

    return expit(2 * _MEAN * _as_rows(X, _COLUMNS).sum(axis=1))


def ringnorm(n: int, rng: Seed = None) -> tuple[FloatArray, _Labels]:
    """Draw two normal classes in 20 dimensions, of which one lies within the other.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
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
        If `X` has another number of columns or holds a number that is not finite.

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


#: The three base waves (3, 21): triangles of height 6 about the attributes 11, 15 and 7.
_WAVES = np.maximum(6.0 - np.abs(np.arange(1, 22) - np.array([[11], [15], [7]])), 0)
#: The two waves that each class mixes; the first of them gets the random share.
_MIXED = np.array([[0, 1], [0, 2], [1, 2]])


def waveform(n: int, rng: Seed = None, *, noise_features: int = 0) -> tuple[FloatArray, _Labels]:
    """Draw waves: each class is a random mixture of two of three triangles, with noise.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
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

    waves = _as_rows(X, 21, more=True)[:, :21]
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
) -> tuple[FloatArray, _Labels]:
    """Draw points of a cube that a plane through its centre divides, with noise of a known rate.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
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
    q = check_number("q", q, min_value=0, max_value=0.5)
    effective = check_integer("E", E, min_value=1)
    rows = _as_rows(X, effective, more=True)
    return np.where(rows[:, :effective].sum(axis=1) > effective / 2, 1 - q, q)


def _as_rows(X: TableLike, n_columns: int, *, more: bool = False) -> FloatArray:
    """Return `X` as finite float64 rows with `n_columns` columns, or with `more`."""
    features = as_features(X)
    check_finite(features)
    width = features.values.shape[1]
    if width < n_columns or (width > n_columns and not more):
        wanted = f"{n_columns} columns{' or more' if more else ''}"
        raise ValueError(f"X: expected {wanted}, got {width}")
    return features.values.astype(np.float64, copy=False)


def _as_bits(X: FloatArray) -> NDArray[np.bool_]:
    """Return rows of zeros and ones as booleans."""
    wrong = np.argwhere((X != 0) & (X != 1))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise ValueError(
            f"X: expected zeros and ones, got {X[row, column]} in column {column}, row {row}"
        )
    return X == 1


#: Centres (9, 2) of the circles of `nine_circles`, and their radius.
NINE_CIRCLES_CENTRES: FloatArray = freeze(
    [(i / 6, j / 6) for i in (1, 3, 5) for j in (1, 3, 5)], np.float64
)
NINE_CIRCLES_RADIUS = 1 / 9


def nine_circles(n_per_class: int, rng: Seed = None) -> tuple[FloatArray, _Labels]:
    """Draw the nine-circles problem: one class in nine circles, the other in what remains.

    The circles stand in a 3 by 3 grid in the unit square. Rows of class +1 are uniform in them,
    rows of class -1 uniform in the rest of the square, so that the classes do not overlap.

    Parameters
    ----------
    n_per_class : int
        Number of rows of each class; the source has 200.
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
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
    n = check_integer("n_per_class", n_per_class, min_value=1)
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
    parts, n_found = [], 0
    while n_found < n:
        points = generator.random((n, 2))
        # Of the nine cells of the square the circle in the point's own is the only one near it.
        offset = points - (np.floor(3 * points) + 0.5) / 3
        parts.append(points[(offset**2).sum(axis=1) > NINE_CIRCLES_RADIUS**2])
        n_found += len(parts[-1])
    return np.concatenate(parts)[:n]
