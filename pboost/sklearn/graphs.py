"""Estimators of decision graphs: chains, soft trees, matryoshki and oblique trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, get_args

from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

import pboost as pb
from pboost.sklearn.base import StagedScores, given_labels, logarithm
from pboost.sklearn.parameters import TYPES, refusing
from pboost.values import Array, FloatArray, check_choice


class GraphClassifier(StagedScores):
    """Base of those whose model is a decision graph, or one for each of more than two classes."""

    own_defaults: ClassVar = {"route": "hard"}

    @refusing
    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        sigma: ArrayLike | None = None,
        *,
        y_proba: ArrayLike | None = None,
        classes: object = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features; missing values are NaN, and columns of text or of a type of categories are
            categories.
        y : array-like of shape (n_samples,)
            Labels, of two or more values; it can be None with `y_proba`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0 of the rows; weight k stands for k copies of the row.
        sigma : float, array-like of shape (n_features,) or (n_samples, n_features), default=None
            With ``observation="gaussian"``: standard deviations of the errors of X, in place of
            those that are a parameter.
        y_proba : array-like or data frame of shape (n_samples, n_classes), default=None
            In place of y: the probability of each label for each row; of shape (n_samples,) that of
            the second of two. With y, as in a cross-validation that measures by y, this is fitted.
        classes : array-like of shape (n_classes,), default=None
            The labels of the columns of `y_proba`; None: the names of those of a data frame, or
            0, 1, and so on.

        Returns
        -------
        self : object
            The estimator.
        """
        check_choice("route", self.route, get_args(TYPES["route"]))
        overrides = {} if sigma is None else {"sigma": sigma}
        return self._fit(X, given_labels(y, y_proba, classes), sample_weight, overrides)

    def _options(self, overrides: Mapping[str, object]) -> dict[str, Any]:
        options = super()._options(overrides)
        observation: Any = options.get("observation")
        if self.route == "expected" and getattr(observation, "needs_class", False):
            kind = getattr(observation, "kind", "")
            raise ValueError(
                f"route: expected 'hard' with observation {kind!r}, whose answers "
                "depend on the class of a row, which is not known in a prediction, got 'expected'"
            )
        return options

    def decision_function(self, X: object, sigma: ArrayLike | None = None) -> FloatArray:
        """Return the decision values of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows, of the columns of training.
        sigma : float, array-like of shape (n_features,) or (n_samples, n_features), default=None
            Standard deviations of the errors of these rows, for models with gaussian answers:
            rows are then predicted by the expected route.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) of more than two classes
            Half log odds of the second of two classes; of more the sum of votes for each class, or
            its half log odds against the rest.
        """
        X = self._rows(X)
        route: Any = self.route if sigma is None else "expected"
        return pb.decision_function(self.model_, X, route, sigma=sigma)

    def predict(self, X: object, sigma: ArrayLike | None = None) -> Array:
        """Return the label of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows, of the columns of training.
        sigma : float, array-like of shape (n_features,) or (n_samples, n_features), default=None
            See `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels among ``classes_``.
        """
        score = self.decision_function(X, sigma)
        return self._said(self.model_.labels_of(score))

    def predict_proba(self, X: object, sigma: ArrayLike | None = None) -> FloatArray:
        """Return the probability of each class for each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows, of the columns of training.
        sigma : float, array-like of shape (n_features,) or (n_samples, n_features), default=None
            See `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        score = self.decision_function(X, sigma)
        return self.model_.probabilities(score)

    def predict_log_proba(self, X: object, sigma: ArrayLike | None = None) -> FloatArray:
        """Return the logarithm of the probability of each class for each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of training.
        sigma : float, array-like of shape (n_features,) or (n_samples, n_features), default=None
            See `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``; minus infinity for a probability of 0.
        """
        return logarithm(self.predict_proba(X, sigma))

    def score(
        self, X: object, y: object, sample_weight: object = None, sigma: ArrayLike | None = None
    ) -> float:
        """Return the share of rows whose label is predicted.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows, of the columns of training.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        sigma : float, array-like of shape (n_features,) or (n_samples, n_features), default=None
            See `decision_function`.

        Returns
        -------
        float
            The accuracy.
        """
        return accuracy_score(y, self.predict(X, sigma), sample_weight=sample_weight)


class AdaBoostClassifier(GraphClassifier):
    """AdaBoost: a chain of weak classifiers, whose answers may be known to err.

    `pboost.fit_adaboost` as an estimator. A decision graph has a certificate, an upper bound on
    its training error. Of more than two classes its exits vote for each; with options for which
    there are two only, each class is told from the rest.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : DecisionGraph or OneVsRest
        The model, for the functions of pboost, ``pboost.certificate(self.model_)`` for one.
    {attributes}

    References
    ----------
    .. [1] R. E. Schapire and Y. Singer, "Improved boosting algorithms using confidence-rated
       predictions", Machine Learning 37 (1999).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pboost.sklearn import AdaBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> AdaBoostClassifier(n_estimators=20).fit(X, y).score(X, y) > 0.95
    True
    """

    builder = staticmethod(pb.fit_adaboost)


class SoftTreeClassifier(GraphClassifier):
    """AdaTree: a boosted tree, in training with answers that are not sure.

    `pboost.fit_boosted_tree` as an estimator. Of more than two classes the exits vote for each;
    with options for which there are two only, each class is told from the rest.
    With ``growth="largest_error"`` it is AdaTree 2, and AdaTree 1 with ``observation="exact"``.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : DecisionGraph or OneVsRest
        The model, for the functions of pboost, ``pboost.describe(self.model_)`` for one.
    {attributes}

    References
    ----------
    .. [1] E. Grossmann, "AdaTree 2: boosting to build decision trees, or improving AdaTree with
       soft splitting rules" (2004).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pboost.sklearn import SoftTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> SoftTreeClassifier(max_nodes=15).fit(X, y).score(X, y) > 0.95
    True
    """

    builder = staticmethod(pb.fit_boosted_tree)
    own_defaults: ClassVar = {"observation": "adatree2"}

    def _is_one_tree(self) -> bool:
        """Return whether there is one tree: not if each class has a model of its own."""
        return not isinstance(getattr(self, "model_", None), pb.models.OneVsRest)

    @available_if(_is_one_tree)
    def get_depth(self) -> int:
        """Return the depth of the tree.

        Returns
        -------
        int
            The largest number of nodes on a path from the root out of the tree.
        """
        check_is_fitted(self)
        return int(self.model_.longest_costs()[-1])

    @available_if(_is_one_tree)
    def get_n_leaves(self) -> int:
        """Return the number of leaves of the tree.

        Returns
        -------
        int
            The number of exits that lead out of the tree.
        """
        check_is_fitted(self)
        return self.model_.n_nodes + 1


class MatryoshkaClassifier(GraphClassifier):
    """A tree whose nodes are trees: paths part inside an inner tree and join again behind it.

    `pboost.fit_matryoshka` as an estimator. Of more than two classes the exits vote for each with
    ``join="all"``; else each is told from the rest.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : DecisionGraph or OneVsRest
        The model, for the functions of pboost, ``pboost.describe(self.model_)`` for one.
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pboost.sklearn import MatryoshkaClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> MatryoshkaClassifier(shape=(4, 4), observation="adatree2").fit(X, y).score(X, y) > 0.95
    True
    """

    builder = staticmethod(pb.fit_matryoshka)


class ObliqueTreeClassifier(GraphClassifier):
    """BoostODT: a small tree, each of whose nodes is the sign of a sum of boosted stumps.

    `pboost.fit_oblique_tree` as an estimator; of more than two classes, each is told from the rest.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : DecisionGraph or OneVsRest
        The model, for the functions of pboost, ``pboost.describe(self.model_)`` for one.
    {attributes}

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting a la carte with an application to
       boosting oblique decision trees", IJCAI 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pboost.sklearn import ObliqueTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> ObliqueTreeClassifier(max_depth=2, n_stumps=10).fit(X, y).score(X, y) > 0.95
    True
    """

    builder = staticmethod(pb.fit_oblique_tree)
