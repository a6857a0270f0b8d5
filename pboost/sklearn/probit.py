"""Estimators of probit trees, and of those boosted on subsamples."""

from __future__ import annotations

import pboost as pb
from pboost.sklearn.base import Scored, StagedScores


class ProbitTreeClassifier(Scored):
    """A small tree with a probit model of all columns in each leaf.

    `pboost.fit_probit_tree` as an estimator.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : ProbitTree
        The model, for the functions of pboost, ``pboost.coefficients(self.model_)`` for one.
    {attributes}

    References
    ----------
    .. [1] T. Qin and W.-M. Huang, "On subbagging boosted probit model trees", algorithm 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pboost.sklearn import ProbitTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> ProbitTreeClassifier().fit(X, y).score(X, y) > 0.95
    True
    """

    builder = staticmethod(pb.fit_probit_tree)


class SBPMTClassifier(StagedScores):
    """Boosted probit trees on subsamples of the rows.

    `pboost.fit_sbpmt` as an estimator.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : SubaggedProbitTrees
        The model, for the functions of pboost; ``model_.oob`` has the error out of the subsamples.
    {attributes}

    References
    ----------
    .. [1] T. Qin and W.-M. Huang, "On subbagging boosted probit model trees".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pboost.sklearn import SBPMTClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> SBPMTClassifier(members=5, random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    builder = staticmethod(pb.fit_sbpmt)
