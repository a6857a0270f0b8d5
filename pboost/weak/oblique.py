"""Weak learners that cut across columns, and learn how at each node."""

from __future__ import annotations

import math

from pboost.values import check_choice, check_integer, check_number
from pboost.weak.learners import Linear, Separator, Stump, checked_columns
from pboost.weak.votes import VOTES, vote_rule


def separator(
    stumps: int = 50,
    *,
    smoothing: float = 1e-3,
    learning_rate: float = 1.0,
    votes: str = "domain",
    criterion: str = "kearns-mansour",
    search: str = "auto",
    max_bins: int = 256,
) -> Separator:
    """Signs of sums of boosted stumps, which cut along curves through all columns at once.

    At each node AdaBoost is run on the rows that arrive there. Rows of which the sum of votes is
    positive take exit 1, the others exit 0. Where all rows are on one side, there is no split.

    Parameters
    ----------
    stumps : int
        Greatest number of stumps in a separator.
    smoothing : float
        Smoothing of the votes of stumps, see `fit_adaboost`.
    learning_rate : float
        Factor of these votes.
    votes : {"domain", "symmetric"}
        Kind of these votes.
    criterion : {"kearns-mansour", "gini", "entropy", "error"}
        What stumps minimise, see `stump`.
    search : {"auto", "exact", "binned"}
        See `stump`.
    max_bins : int
        Number of bins, 2 to 256. It does not change what the exact search finds.

    Returns
    -------
    Separator
        To be passed as ``weak=`` to a builder, which takes X as a matrix, a data frame or
        `SortedColumns`.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or out of range.

    Notes
    -----
    In a tree of exact answers a separator is trained with the weights of the data, on the rows that
    arrive. Everywhere else it is trained with the boosted weights.

    The votes of its stumps are rounded to multiples of 2^-32, so that sums are exact. For
    predictions its stumps are collapsed: it is then one table for each column that it reads.

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting a la carte with an application to
       boosting oblique decision trees", IJCAI 2007, section 4.3.

    Examples
    --------
    The diagonal of a square of 16 points:

    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.indices((4, 4)).reshape(2, 16).T
    >>> y = X.sum(axis=1) > 3
    >>> model = pb.fit_boosted_tree(X, y, nodes=1, weak=pb.weak.separator(20))
    >>> bool((pb.predict(model, X) == y).all())
    True
    >>> print(pb.describe(model).splitlines()[-1])
    node 0: separator 0 (20 stumps, 2 columns) <= 0: vote -4.3702, out; else vote +4.1149, out
    """
    rule = vote_rule(check_choice("votes", votes, VOTES), smoothing, learning_rate)
    return Separator(
        check_integer("stumps", stumps, least=1),
        rule.smoothing,
        rule.learning_rate,
        rule.kind,
        Stump(*checked_columns(criterion, search, max_bins, 0.0, 1)),
    )


def linear(
    criterion: str = "kearns-mansour",
    *,
    dense_gain: float | None = 1.0,
    pairs: int = 200,
    seed: int = 0,
    min_weight: float = 0.0,
    min_count: int = 1,
) -> Linear:
    """Sums of columns that are found at each node by descending a smoothed criterion.

    A direction stands for coefficients of columns. The best single column, good pairs of columns,
    and directions of all columns are candidates; the coefficients minimise the Kearns-Mansour
    criterion of answers that are sure far from the threshold only. Then the best threshold is
    found, as that of a stump is.

    Parameters
    ----------
    criterion : {"kearns-mansour", "gini", "entropy", "error"}
        What the threshold minimises, see `stump`. Directions are compared by "kearns-mansour".
    dense_gain : float or None
        A direction of all columns is taken if it lowers the criterion more than so many times as
        much as the best one of one or two columns; at least 0. None: directions of all columns
        are not looked for.
    pairs : int
        Greatest number of pairs of columns that are looked at; if there are more, so many are
        drawn, the same for all nodes.
    seed : int
        Seed of this draw, at least 0.
    min_weight : float
        Least share, 0 to 0.5, of the node's weight on either side of the cut.
    min_count : int
        Least number of training rows on either side.

    Returns
    -------
    Linear
        To be passed as ``weak=`` to a builder, which takes X as a matrix, a data frame or
        `SortedColumns`.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or out of range. The builder raises ValueError if more than 8192
        columns vary and `dense_gain` is not None.

    Notes
    -----
    Directions of all of k columns are found with eight matrices of k by k numbers: 64 k**2 bytes,
    and time in proportion to k**3, at each node.

    Units of columns do not matter. Answers are those of a projection with an error that has
    Student's t distribution with two degrees of freedom, whose width falls from 0.5 to 0.1 standard
    deviations (pairs: 0.2 and 0.05). The descent starts from linear discriminant analysis and from
    the two directions along which the variances of the classes differ most. Where more than 2,000
    rows arrive (pairs: 4,000), it looks at every second, or third, or ... row at first. The model
    then depends on the order of the rows, and copies of a row are not the same as weights.

    With two columns or fewer there are no directions of all columns apart from the pair.

    Examples
    --------
    A corner that is turned by a third of a right angle:

    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> a, b = X @ [0.87, 0.5], X @ [-0.5, 0.87]
    >>> y = (a > -0.5) & (b > -0.5)
    >>> model = pb.fit_boosted_tree(X, y, nodes=2, weak=pb.weak.linear())
    >>> bool(np.mean(pb.predict(model, X) == y) > 0.99)
    True
    """
    gain = math.inf if dense_gain is None else check_number("dense_gain", dense_gain, least=0.0)
    return Linear(
        gain,
        check_integer("pairs", pairs, least=1),
        check_integer("seed", seed, least=0),
        Stump(*checked_columns(criterion, "auto", 256, min_weight, min_count)),
    )
