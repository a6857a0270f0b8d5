"""Estimators of trees, random forests, gradient boosting and probit trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self, get_args, get_type_hints

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

import pboost as pb
from pboost.data.targets import fitted
from pboost.sklearn.base import (
    Applied,
    Bagged,
    Classifier,
    Estimator,
    Regressor,
    Scored,
    SingleTree,
    Staged,
    StagedScores,
    given_labels,
)
from pboost.sklearn.parameters import options_of, refusing
from pboost.values import FloatArray, check_choice, check_flag

CLASSIFICATION, REGRESSION = {"task": "classification"}, {"task": "regression"}
#: The default of this option depends on whether class weights are used.
BY_CLASSES: dict[str, object] = {"min_samples_leaf": None}


class Cart(SingleTree):
    """Base class of CART estimators. Pruning is optional."""

    own_defaults: ClassVar = {
        "pruned": False,
        **{
            name: default
            for name, default in options_of(pb.fit_pruned_cart).items()
            if name in ("cv", "rule")
        },
    }

    def _build(self, X: object, y: Any, options: dict[str, Any]) -> Any:
        check_choice("rule", self.rule, get_args(get_type_hints(pb.fit_pruned_cart)["rule"]))
        if check_flag("pruned", self.pruned):
            options.pop("callback", None)  # callbacks are only supported for a single tree
            return fitted(pb.fit_pruned_cart, X, y, {"cv": self.cv, "rule": self.rule, **options})
        return super()._build(X, y, options)


class CartClassifier(Classifier, Cart):
    """Classification tree (CART), optionally pruned by cross-validation.

    This is the estimator of `pboost.fit_cart`, or of `pboost.fit_pruned_cart` with ``pruned=True``.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : Tree
        The pboost model. ``model_.pruning`` is the pruning table of a pruned tree.
    {attributes}

    References
    ----------
    .. [1] L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, "Classification and
       regression trees", Wadsworth (1984).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pboost.sklearn import CartClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = CartClassifier(pruned=True, rule="1se", random_state=0).fit(X, y)
    >>> tree.model_.n_leaves, CartClassifier().fit(X, y).model_.n_leaves
    (4, 9)
    """

    builder = staticmethod(pb.fit_cart)
    own_defaults: ClassVar = BY_CLASSES
    fixed_options: ClassVar = CLASSIFICATION


class CartRegressor(Regressor, Cart):
    """Regression tree (CART), optionally pruned by cross-validation.

    This is the estimator of `pboost.fit_cart`, or of `pboost.fit_pruned_cart` with ``pruned=True``.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : Tree
        The pboost model. ``model_.pruning`` is the pruning table of a pruned tree.
    {attributes}

    References
    ----------
    .. [1] L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, "Classification and
       regression trees", Wadsworth (1984).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from pboost.sklearn import CartRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> print(round(CartRegressor(pruned=True, random_state=0).fit(X, y).score(X, y), 2))
    0.58
    """

    builder = staticmethod(pb.fit_cart)
    fixed_options: ClassVar = REGRESSION


class RandomForestClassifier(Classifier, Applied, Bagged):
    """Random forest classifier.

    Each tree is fitted to a bootstrap sample of the rows, and each split considers a random subset
    of the features. This is the estimator of `pboost.fit_random_forest`.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : RandomForest
        The pboost model. ``model_.oob`` contains the out-of-bag error.
    {attributes}

    References
    ----------
    .. [1] L. Breiman, "Random forests", Machine Learning 45 (2001).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pboost.sklearn import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=50, random_state=0).fit(X, y)
    >>> print(round(forest.oob_score_, 2))
    0.95
    """

    builder = staticmethod(pb.fit_random_forest)
    own_defaults: ClassVar = BY_CLASSES
    fixed_options: ClassVar = CLASSIFICATION


class RandomForestRegressor(Regressor, Applied, Bagged):
    """Random forest regressor.

    Each tree is fitted to a bootstrap sample of the rows, and each split considers a random subset
    of the features. This is the estimator of `pboost.fit_random_forest`.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : RandomForest
        The pboost model. ``model_.oob`` contains the out-of-bag error.
    {attributes}

    References
    ----------
    .. [1] L. Breiman, "Random forests", Machine Learning 45 (2001).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from pboost.sklearn import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(n_estimators=50, random_state=0).fit(X, y)
    >>> print(round(forest.oob_score_, 2))
    0.4
    """

    builder = staticmethod(pb.fit_random_forest)
    fixed_options: ClassVar = REGRESSION

    def _build(self, X: object, y: Any, options: dict[str, Any]) -> Any:
        model = super()._build(X, y, options)
        self._oob_variance = 0.0
        if model.oob is not None and (is_left := model.oob.n_estimators > 0).any():
            weight = options["sample_weight"]
            weight = None if weight is None else np.asarray(weight)[is_left]
            known = y[is_left]
            mean = np.average(known, weights=weight)
            self._oob_variance = float(np.average((known - mean) ** 2, weights=weight))
        return model

    def _score_of_error(self, error: float) -> float:
        # For a constant target, the score equals sklearn.metrics.r2_score.
        scale = self._oob_variance or error
        return 1.0 - error / scale if scale else 1.0


def _has_probabilities(estimator: Any) -> bool:
    """Return whether the loss of the estimator converts decision values to probabilities."""
    if estimator.loss is None:
        return True
    try:
        pb.losses.check_loss(estimator.loss).probability(np.zeros(1))
    except NotImplementedError:
        return False
    return True


def _in_settings(name: str) -> property:
    """Return an attribute for the value of a parameter that the fit used."""

    def value(self: Any) -> Any:
        check_is_fitted(self)
        return self.model_.settings[name]

    return property(value, doc=f"Value of `{name}` that the fit used.")


class Resolved(Estimator):
    """Base class of estimators with parameters whose default is "auto"."""

    attributes: ClassVar = """
n_estimators_, learning_rate_, leaf_shrinkage_, random_strength_, subsample_, growth_ : object
    Values of the parameters that the fit used in place of "auto".
""".rstrip()
    n_estimators_ = _in_settings("n_estimators")
    learning_rate_ = _in_settings("learning_rate")
    leaf_shrinkage_ = _in_settings("leaf_shrinkage")
    random_strength_ = _in_settings("random_strength")
    subsample_ = _in_settings("subsample")
    growth_ = _in_settings("growth")


def validation_sets(
    X_val: object, y_val: object, sample_weight_val: object, eval_set: Any
) -> dict[str, Any]:
    """Return `validation` for the arguments of `fit`; empty if there are none."""
    if eval_set is None:
        if X_val is None and y_val is None and sample_weight_val is None:
            return {}
        if X_val is None or y_val is None:
            raise ValueError("X_val, y_val: expected both or neither, got one of them")
        weights = () if sample_weight_val is None else (sample_weight_val,)
        return {"validation": (X_val, y_val, *weights)}
    if X_val is not None:
        raise ValueError("eval_set: expected None with X_val, got both; pass one of them")
    sets = [eval_set] if isinstance(eval_set, tuple) else list(eval_set)
    named = {f"validation_{number}": rows for number, rows in enumerate(sets)}
    return {"validation": dict([*reversed(named.items())][:1]) | named}


class GradientBoostingClassifier(StagedScores, Applied, Resolved):
    """Gradient boosting classifier.

    Each tree is fitted to the gradients of the loss of the previous trees. This is the estimator of
    `pboost.fit_gradient_boosting`. Multiclass targets are fitted with the softmax loss, or
    one-vs-rest if `loss` only supports binary targets.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : GradientBoostingModel or OneVsRest
        The pboost model. ``model_.stop_reason`` is the reason why the fit ended.
    {attributes}

    References
    ----------
    .. [1] J. Friedman, T. Hastie and R. Tibshirani, "Additive logistic regression: a statistical
       view of boosting", Annals of Statistics 28 (2000).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pboost.sklearn import GradientBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> print(round(GradientBoostingClassifier(n_estimators=20).fit(X, y).score(X, y), 2))
    0.97
    """

    builder = staticmethod(pb.fit_gradient_boosting)
    own_defaults: ClassVar = BY_CLASSES
    fixed_options: ClassVar = CLASSIFICATION

    @refusing
    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        y_proba: ArrayLike | None = None,
        classes: object = None,
        X_val: object = None,
        y_val: object = None,
        sample_weight_val: object = None,
        eval_set: object = None,
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
        y_proba : array-like or data frame of shape (n_samples, n_classes), default=None
            Soft labels: the probability of each class for each row. An array of shape (n_samples,)
            contains the probability of the second of two classes. If `y` is also passed, as in
            cross-validation, the model is fitted to `y_proba`.
        classes : array-like of shape (n_classes,), default=None
            Classes of the columns of `y_proba`. By default, these are the column names if `y_proba`
            is a data frame, and 0, 1, ... otherwise.
        X_val, y_val, sample_weight_val : array-like, default=None
            Validation set for early stopping, instead of the parameter `validation`.
        eval_set : list of tuples (X, y) or (X, y, sample_weight), default=None
            Several validation sets, named "validation_0", "validation_1", ... in
            ``model_.metrics``. As in XGBoost, the last one decides when training stops.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        sets = validation_sets(X_val, y_val, sample_weight_val, eval_set)
        return self._fit(X, given_labels(y, y_proba, classes), sample_weight, sets)

    @available_if(_has_probabilities)
    def predict_proba(self, X: object) -> FloatArray:  # noqa: D102
        return super().predict_proba(X)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: object) -> FloatArray:  # noqa: D102
        return super().predict_log_proba(X)

    @available_if(_has_probabilities)
    def staged_predict_proba(self, X: object) -> Iterator[FloatArray]:  # noqa: D102
        return super().staged_predict_proba(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # One-vs-rest classification compares probabilities.
        tags.classifier_tags.multi_class = _has_probabilities(self)
        return tags


class GradientBoostingRegressor(Regressor, Staged, Applied, Resolved):
    """Gradient boosting regressor.

    Each tree is fitted to the gradients of the loss of the previous trees. This is the estimator of
    `pboost.fit_gradient_boosting`.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : GradientBoostingModel
        The pboost model. ``model_.stop_reason`` is the reason why the fit ended.
    {attributes}

    References
    ----------
    .. [1] J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of
       Statistics 29 (2001).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from pboost.sklearn import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> print(round(GradientBoostingRegressor(n_estimators=50).fit(X, y).score(X, y), 2))
    0.78
    """

    builder = staticmethod(pb.fit_gradient_boosting)
    own_defaults: ClassVar = {"loss": "squared_error"}
    fixed_options: ClassVar = REGRESSION

    @refusing
    def fit(
        self,
        X: object,
        y: object,
        sample_weight: object = None,
        *,
        X_val: object = None,
        y_val: object = None,
        sample_weight_val: object = None,
        eval_set: object = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features. Missing values are NaN; text features and features with a categorical dtype
            are categorical features.
        y : array-like of shape (n_samples,)
            Target: finite numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights >= 0. An integer weight k has the effect of k copies of the row.
        X_val, y_val, sample_weight_val : array-like, default=None
            Validation set for early stopping, instead of the parameter `validation`.
        eval_set : list of tuples (X, y) or (X, y, sample_weight), default=None
            Several validation sets, named "validation_0", "validation_1", ... in
            ``model_.metrics``. As in XGBoost, the last one decides when training stops.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        sets = validation_sets(X_val, y_val, sample_weight_val, eval_set)
        return self._fit(X, y, sample_weight, sets)


class ProbitTreeClassifier(Scored, SingleTree):
    """Small classification tree with a probit model in each leaf.

    This is the estimator of `pboost.fit_probit_tree`.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : ProbitTree
        The pboost model, for example for ``pboost.inspection.coefficients(self.model_)``.
    {attributes}

    References
    ----------
    .. [1] T. Qin and W.-M. Huang, "On subbagging boosted probit model trees", algorithm 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pboost.sklearn import ProbitTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> print(round(ProbitTreeClassifier().fit(X, y).score(X, y), 2))
    0.99
    """

    builder = staticmethod(pb.fit_probit_tree)
    attributes: ClassVar = """
n_iter_ : int
    The largest number of boosting iterations in a leaf.
"""

    @property
    def n_iter_(self) -> int:
        """The largest number of boosting iterations in a leaf."""
        check_is_fitted(self)
        return max(int(self.model_.taken.max()), 0)


class SBPMTClassifier(StagedScores, Bagged):
    """Subagged boosted probit trees (SBPMT).

    Boosted probit trees are fitted to subsamples of the rows, and their votes are combined. This is
    the estimator of `pboost.fit_sbpmt`.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : SubaggedProbitTrees
        The pboost model. ``model_.oob`` contains the out-of-bag error.
    {attributes}

    References
    ----------
    .. [1] T. Qin and W.-M. Huang, "On subbagging boosted probit model trees".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pboost.sklearn import SBPMTClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = SBPMTClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> print(round(classifier.score(X, y), 2))
    0.99
    """

    builder = staticmethod(pb.fit_sbpmt)
