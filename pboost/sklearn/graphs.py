"""Estimators of decision graphs: AdaBoost, soft trees, matryoshka models and oblique trees."""

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
    """Base class of classifiers that consist of one decision graph or of one graph per class."""

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
            Features. Missing values are NaN; text features and features with a categorical dtype
            are categorical features.
        y : array-like of shape (n_samples,)
            Class labels, with at least two classes. Can be None if `y_proba` is passed.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights >= 0. An integer weight k has the effect of k copies of the row.
        sigma : float, array-like of shape (n_features,) or (n_samples, n_features), default=None
            Standard deviations of the measurement errors of X, for ``observation="gaussian"``. They
            replace the parameter `sigma`.
        y_proba : array-like or data frame of shape (n_samples, n_classes), default=None
            Soft labels: the probability of each class for each row. An array of shape (n_samples,)
            contains the probability of the second of two classes. If `y` is also passed, as in
            cross-validation, the model is fitted to `y_proba`.
        classes : array-like of shape (n_classes,), default=None
            Classes of the columns of `y_proba`. By default, these are the column names if `y_proba`
            is a data frame, and 0, 1, ... otherwise.

        Returns
        -------
        self : object
            The fitted estimator.
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
                f"route: expected 'hard' with observation {kind!r}, which requires the class of "
                "each row and is not available in prediction, got 'expected'"
            )
        return options

    def decision_function(self, X: object, sigma: ArrayLike | None = None) -> FloatArray:
        """Return the decision values of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in training.
        sigma : float, array-like of shape (n_features,) or (n_samples, n_features), default=None
            Standard deviations of the measurement errors of these rows, for models with Gaussian
            observations. If passed, predictions use ``route="expected"``.

        Returns
        -------
        ndarray of shape (n_samples,) for binary, (n_samples, n_classes) for multiclass targets
            Half the log odds of ``classes_[1]`` in the binary case. In the multiclass case, the sum
            of votes for each class. In a one-vs-rest model, half the log odds of each class against
            all other classes.
        """
        X = self._rows(X)
        route: Any = self.route if sigma is None else "expected"
        return pb.decision_function(self.model_, X, route, sigma=sigma)

    def predict(self, X: object, sigma: ArrayLike | None = None) -> Array:
        """Return the predicted class of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in training.
        sigma : float, array-like of shape (n_features,) or (n_samples, n_features), default=None
            See `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Elements of ``classes_``.
        """
        score = self.decision_function(X, sigma)
        return self._said(self.model_.labels_of(score))

    def predict_proba(self, X: object, sigma: ArrayLike | None = None) -> FloatArray:
        """Return the probability of each class for each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in training.
        sigma : float, array-like of shape (n_features,) or (n_samples, n_features), default=None
            See `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, with columns in the order of ``classes_``.
        """
        score = self.decision_function(X, sigma)
        return self.model_.probabilities(score)

    def predict_log_proba(self, X: object, sigma: ArrayLike | None = None) -> FloatArray:
        """Return the logarithm of the probability of each class for each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in training.
        sigma : float, array-like of shape (n_features,) or (n_samples, n_features), default=None
            See `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``; minus infinity if the probability is 0.
        """
        return logarithm(self.predict_proba(X, sigma))

    def score(
        self, X: object, y: object, sample_weight: object = None, sigma: ArrayLike | None = None
    ) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in training.
        y : array-like of shape (n_samples,)
            True classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.
        sigma : float, array-like of shape (n_features,) or (n_samples, n_features), default=None
            See `decision_function`.

        Returns
        -------
        float
            Fraction of the rows with a correct prediction.
        """
        return accuracy_score(y, self.predict(X, sigma), sample_weight=sample_weight)


class AdaBoostClassifier(GraphClassifier):
    """AdaBoost classifier: a weighted vote of weak classifiers.

    This is the estimator of `pboost.fit_adaboost`. The model has a certificate, an upper bound on
    the training error. Multiclass targets are fitted with one vote per class, or one-vs-rest if an
    option only supports binary targets.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : DecisionGraph or OneVsRest
        The pboost model, which you can pass to functions such as `pboost.certificate`.
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
    >>> print(round(AdaBoostClassifier(n_estimators=20).fit(X, y).score(X, y), 2))
    1.0
    """

    builder = staticmethod(pb.fit_adaboost)


class SoftTreeClassifier(GraphClassifier):
    """AdaTree classifier: a boosted tree that is trained with soft splits.

    This is the estimator of `pboost.fit_boosted_tree`. Multiclass targets are fitted with one vote
    per class, or one-vs-rest if an option only supports binary targets. With
    ``growth="largest_error"`` the algorithm is AdaTree 2. With ``observation="exact"`` it is
    AdaTree 1.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : DecisionGraph or OneVsRest
        The pboost model, which you can pass to functions such as `pboost.describe`.
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
    >>> print(round(SoftTreeClassifier(max_nodes=15).fit(X, y).score(X, y), 2))
    0.99
    """

    builder = staticmethod(pb.fit_boosted_tree)
    own_defaults: ClassVar = {"observation": "adatree2"}

    def _is_one_tree(self) -> bool:
        """Return whether the model is a single tree. One-vs-rest models have several trees."""
        return not isinstance(getattr(self, "model_", None), pb.models.OneVsRest)

    @available_if(_is_one_tree)
    def get_depth(self) -> int:
        """Return the depth of the tree.

        Returns
        -------
        int
            The largest number of nodes on a path from the root to a leaf.
        """
        check_is_fitted(self)
        return int(self.model_.longest_costs()[-1])

    @available_if(_is_one_tree)
    def get_n_leaves(self) -> int:
        """Return the number of leaves of the tree.

        Returns
        -------
        int
            The number of leaves.
        """
        check_is_fitted(self)
        return self.model_.n_nodes + 1


class MatryoshkaClassifier(GraphClassifier):
    """Matryoshka classifier: a tree whose nodes are trees.

    Paths split inside an inner tree and merge after this tree. This is the estimator of
    `pboost.fit_matryoshka`. Multiclass targets are fitted with one vote per class if
    ``join="all"``, and one-vs-rest otherwise.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : DecisionGraph or OneVsRest
        The pboost model, which you can pass to functions such as `pboost.describe`.
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pboost.sklearn import MatryoshkaClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = MatryoshkaClassifier(shape=(4, 4), observation="adatree2").fit(X, y)
    >>> print(round(classifier.score(X, y), 2))
    1.0
    """

    builder = staticmethod(pb.fit_matryoshka)


class ObliqueTreeClassifier(GraphClassifier):
    """BoostODT classifier: a small oblique tree that splits on the sign of a sum of boosted stumps.

    This is the estimator of `pboost.fit_oblique_tree`. Multiclass targets are fitted one-vs-rest.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : DecisionGraph or OneVsRest
        The pboost model, which you can pass to functions such as `pboost.describe`.
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
    >>> print(round(ObliqueTreeClassifier(max_depth=2, n_stumps=10).fit(X, y).score(X, y), 2))
    1.0
    """

    builder = staticmethod(pb.fit_oblique_tree)
