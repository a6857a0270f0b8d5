"""Problems that are enumerated: every example there is, without chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.values import FloatArray, check_choice, check_integer

Labels: TypeAlias = NDArray[np.int64]

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


def monks(k: int, *, part: str = "all") -> tuple[FloatArray, Labels]:
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
    k = check_integer("k", k, least=1, most=3)
    check_choice("part", part, ("all", "training"))
    X = _grid([range(1, n + 1) for n in _MONKS_VALUES])
    positive = _monks_rule(k, X)
    if part == "all":
        return X, signs(positive)
    if k == 3:
        positive[list(_MONKS_NOISY)] ^= True
    packed = np.frombuffer(bytes.fromhex(_MONKS_TRAINING[k]), dtype=np.uint8)
    chosen = np.unpackbits(packed).astype(bool)
    return X[chosen], signs(positive[chosen])


def _monks_rule(k: int, X: FloatArray) -> NDArray[np.bool_]:
    """Return for each robot whether rule `k` holds."""
    _, a2, _, a4, a5, _ = X.T
    if k == 1:
        return (X[:, 0] == a2) | (a5 == 1)
    if k == 2:
        return (X == 1).sum(axis=1) == 2
    return ((a5 == 3) & (a4 == 1)) | ((a5 != 4) & (a2 != 3))


def parity(bits: int, relevant: int) -> tuple[FloatArray, Labels]:
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
    bits = check_integer("bits", bits, least=1, most=_MOST_BITS)
    relevant = check_integer("relevant", relevant, least=1, most=bits)
    X = _grid([range(2)] * bits)
    return X, signs(X[:, :relevant].sum(axis=1) % 2 == 1)


def tic_tac_toe() -> tuple[FloatArray, Labels]:
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
    return boards[ended], signs(won[ended])


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
    >>> pb.fit_boosted_tree(X[tips], y[tips], nodes=20).labels.tolist()
    ['L', 'R']
    """
    X = _grid([range(1, 6)] * 4)
    torque = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    return X, np.array(["R", "B", "L"])[np.sign(torque).astype(np.int64) + 1]


def _grid(values: Sequence[Sequence[Any]]) -> FloatArray:
    """Return all combinations of the columns' values, in lexicographic order."""
    axes = np.meshgrid(*values, indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1).astype(np.float64)


def signs(positive: NDArray[np.bool_]) -> Labels:
    """Return the label +1 where `positive`, -1 elsewhere."""
    return np.where(positive, np.int64(1), np.int64(-1))
