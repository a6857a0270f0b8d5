"""Base classes of the estimators. Their parameters come from the signature of a fit function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from inspect import signature
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import get_tags
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

import pboost as pb
from pboost.data.read.check_xy import (
    as_weights,
    class_codes,
    is_continuous,
    label_array,
    label_values,
)
from pboost.data.read.convert import is_frame, is_sparse
from pboost.data.read.numbers import refuse_nul
from pboost.data.row_source import refuse_swapped
from pboost.data.targets import SoftLabels, fitted, labels_of_rows
from pboost.sklearn.callbacks import CallbackSupportMixin, run_with_callbacks, with_callbacks
from pboost.sklearn.parameters import (
    LEAST_OF_CLASSES,
    filled,
    meant,
    options_of,
    owners,
    parameters_of,
    refusing,
    storing,
    types_of,
)
from pboost.values import Array, FloatArray, IntArray, check_number, reject_masked, shown

#: Types of X that are not converted. Other types are converted to the first one.
DTYPES = (np.float64, np.float32)


class Estimator(CallbackSupportMixin, BaseEstimator):
    """Base class of the estimators. The parameters are the options of the fit function `builder`.

    A subclass with a `builder` gets an ``__init__`` with these parameters. In its docstring,
    ``{parameters}`` and ``{attributes}`` are replaced by descriptions.

    Attributes
    ----------
    builder : callable
        Function that fits the model.
    own_defaults : mapping
        Parameters that `builder` does not have, and defaults that differ from `builder`. Entries of
        base classes are inherited.
    fixed_options : mapping
        Arguments of the builder that are not parameters of the estimator.
    left_out : sequence of str
        Parameters of base classes that the estimator does not have.
    attributes : str
        Docstring entries for the attributes that the class adds. Entries of base classes are
        inherited.
    """

    builder: ClassVar[Callable[..., Any]]
    own_defaults: ClassVar[Mapping[str, object]] = {}
    fixed_options: ClassVar[Mapping[str, object]] = {}
    left_out: ClassVar[Sequence[str]] = ()
    attributes: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "builder" in vars(cls):
            defaults = parameters_of(cls.builder)
            for base in reversed(cls.__mro__):
                defaults |= vars(base).get("own_defaults", {})
            defaults = {k: value for k, value in defaults.items() if k not in cls.left_out}
            types = types_of(cls.builder)
            cls.__init__ = storing(cls.__name__, defaults, types)  # type: ignore[method-assign]
            if cls.__doc__ is not None:  # python -OO
                more = "".join(vars(base).get("attributes", "") for base in reversed(cls.__mro__))
                cls.__doc__ = filled(cls.__doc__, cls.builder, defaults, more)

    @refusing
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features. Missing values are NaN; text features and features with a categorical dtype
            are categorical features.
        y : array-like of shape (n_samples,)
            Target: classes for a classifier, finite numbers for a regressor.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights >= 0. An integer weight k has the effect of k copies of the row.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight, {})

    @with_callbacks
    def _fit(
        self, X: object, y: object, sample_weight: object, overrides: Mapping[str, object]
    ) -> Self:
        """Fit the model. Values in `overrides` replace the parameters with the same names."""
        checks, is_soft = self._checks(), isinstance(y, SoftLabels)
        targets = {} if is_soft else {"y": y, "y_numeric": isinstance(self, RegressorMixin)}
        reject_masked("y", y)  # scikit-learn would use the masked values
        if not (is_soft or isinstance(y, np.ndarray) or hasattr(y, "iloc")):
            refuse_nul(np.asarray(y, dtype=object), "y: expected class labels")
        # The fit function checks arrays. scikit-learn does not check them again here, because its
        # check is slow on small data.
        is_plain = _is_array(X, 2) and X.dtype in DTYPES and (is_soft or _is_array(y, 1))
        reads_tables = self._reads_tables(X)
        if not is_soft:
            refuse_swapped(X, y)
        if is_soft or reads_tables:
            rows = self._validated(X, skip_check_array=is_plain or reads_tables, **checks)
            labels = y
            if not is_soft:
                labels = column_or_1d(y, warn=True)
                check_consistent_length(rows, labels)
        else:
            rows, labels = self._validated(X, skip_check_array=is_plain, **targets, **checks)
        options = {**self.fixed_options, **self._options(overrides), "sample_weight": sample_weight}
        try:
            self.model_ = run_with_callbacks(self, self._build_reporting, rows, labels, options)
        except ValueError:
            if is_plain:  # scikit-learn raises an error for invalid input
                validate_data(self, X, **targets, **checks)
            raise
        return self

    def _build_reporting(
        self, X: object, y: object, options: dict[str, Any], callback: object
    ) -> Any:
        """Return the fitted model. Pass the callback to `builder` if it supports callbacks."""
        if callback is not None and "callback" in signature(type(self).builder).parameters:
            options = {**options, "callback": callback}
        return self._build(X, y, options)

    def _build(self, X: object, y: Any, options: dict[str, Any]) -> Any:
        """Return the model fitted with these options."""
        return fitted(type(self).builder, X, y, options)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        brief = copy(self)
        for name, value in self.get_params(deep=False).items():
            setattr(brief, name, _brief(value))
        return BaseEstimator.__repr__(brief, N_CHAR_MAX)

    def _options(self, overrides: Mapping[str, object]) -> dict[str, Any]:
        """Return the options of `builder` for the current parameters."""
        return meant(type(self).builder, {**vars(self), **overrides})

    def _rows(self, X: object) -> Any:
        """Return validated rows for prediction."""
        check_is_fitted(self)
        # scikit-learn would convert text to numbers, so pboost reads X.
        has_names = hasattr(self, "feature_names_in_") and _may_hold_text(X)
        if has_names or self._reads_tables(X):
            return validate_data(self, X, reset=False, skip_check_array=True)
        return self._validated(X, reset=False, **self._checks())

    def _validated(self, X: object, **options: Any) -> Any:
        """Return the result of scikit-learn's `validate_data`. If X has text, name its column."""
        try:
            return validate_data(self, X, **options)
        except ValueError as error:
            column = _first_text_column(X) if _may_hold_text(X) else None
            if column is None:
                raise
            raise ValueError(
                f"X: column {column} is not numeric; pass categorical_features=[{column}] to "
                f"{type(self).__name__}, or a data frame (transformers in a pipeline return data "
                'frames after set_output(transform="pandas"))'
            ) from error

    def _checks(self) -> dict[str, Any]:
        """Return the options of scikit-learn's validation of X."""
        is_finite = "allow-nan" if self._takes_missing() else True
        return {"dtype": DTYPES, "ensure_all_finite": is_finite}

    def _takes_missing(self) -> bool:
        """Return whether rows may contain missing values."""
        return getattr(self, "missing", "learn") != "error"

    def _reads_tables(self, X: object) -> bool:
        """Return whether X is passed to pboost without conversion by scikit-learn."""
        if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
            return True
        reject_masked("X", X)  # scikit-learn would use the masked values
        has_categories = getattr(self, "categorical_features", None) is not None
        return is_sparse(X) or is_frame(X) or (has_categories and isinstance(X, np.ndarray))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing()
        tags.input_tags.categorical = True
        tags.input_tags.sparse = type(self).builder is pb.fit_gradient_boosting
        return tags

    def predict(self, X: object) -> Array:
        """Return the predicted class or target value of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Rows with the same features as in training.

        Returns
        -------
        ndarray of shape (n_samples,)
            Elements of ``classes_`` for a classifier, numbers for a regressor.
        """
        X = self._rows(X)  # also checks that the estimator is fitted
        return self._said(pb.predict(self.model_, X))

    def _said(self, predicted: Array) -> Array:
        """Convert predictions of the model to predictions of the estimator."""
        return predicted

    @property
    def prediction_cost_(self) -> float:
        """Mean number of comparisons per training row.

        For a forest, the mean is over the bootstrap samples. For a model with early exits, it is
        over the rows that were used to choose the exits.
        """
        check_is_fitted(self)
        cost: float = self.model_.mean_prediction_cost
        return cost

    @property
    def feature_importances_(self) -> FloatArray:
        """Importance of each feature. The sum is 1. See `pboost.feature_importances`."""
        check_is_fitted(self)
        try:
            return pb.feature_importances(self.model_)
        except NotImplementedError as error:  # not defined for models whose nodes call functions
            raise AttributeError(str(error)) from error


class Regressor(RegressorMixin, Estimator):
    """Base class of the regressors."""


class Classifier(ClassifierMixin, Estimator):
    """Base class of the classifiers.

    If `builder` only supports binary targets, a multiclass model is fitted one-vs-rest.
    """

    own_defaults: ClassVar = {"class_weight": None}

    @refusing
    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
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
        return self._fit(X, given_labels(y, y_proba, classes), sample_weight, {})

    def _build(self, X: object, y: Any, options: dict[str, Any]) -> Any:
        if isinstance(y, SoftLabels):
            self.classes_ = y.classes
        else:
            y = self._checked_labels(y)
        if self.class_weight is not None:
            weights = options["sample_weight"]
            y, options["sample_weight"] = with_class_weights(y, self.class_weight, weights)
        try:
            return super()._build(X, y, options)
        except pb.models.MulticlassError as error:
            if not get_tags(self).classifier_tags.multi_class:
                raise ValueError(
                    "y: Only binary classification is supported. The type of the target is "
                    f"multiclass, it has {len(self.classes_)} classes"
                ) from error
        return fitted(partial(pb.fit_one_vs_rest, type(self).builder), X, y, options)

    def _checked_labels(self, y: Array) -> Array:
        """Return valid class labels and set ``classes_``."""
        labels = label_array(y)
        if not len(labels):
            raise ValueError("y: expected at least one row of each class, got no rows")
        values = label_values(labels)
        if is_continuous(values):
            check_classification_targets(y)
        if len(values) < 2:
            only = values.tolist()[0]
            raise ValueError(f"y: expected two classes or more, got one class, {only!r}")
        self.classes_ = values.astype(y.dtype)
        return labels

    def _options(self, overrides: Mapping[str, object]) -> dict[str, Any]:
        if getattr(self, "min_samples_leaf", 1) is None:
            minimum = options_of(type(self).builder).get("min_samples_leaf")
            if self.class_weight is not None and (
                minimum or self.weak_learner in owners("min_samples_leaf")
            ):
                minimum = LEAST_OF_CLASSES
            overrides = {**overrides, "min_samples_leaf": minimum}
        return super()._options(overrides)

    def _said(self, predicted: Array) -> Array:
        return predicted.astype(self.classes_.dtype, copy=False)

    def predict_proba(self, X: object) -> FloatArray:
        """Return the probability of each class for each row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Rows with the same features as in training.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, with columns in the order of ``classes_``.
        """
        X = self._rows(X)
        return pb.predict_proba(self.model_, X)

    def predict_log_proba(self, X: object) -> FloatArray:
        """Return the logarithm of the probability of each class for each row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Rows with the same features as in training.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``; minus infinity if the probability is 0.
        """
        return logarithm(self.predict_proba(X))


class Scored(Classifier):
    """Base class of classifiers with decision values."""

    def decision_function(self, X: object) -> FloatArray:
        """Return the decision values of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Rows with the same features as in training.

        Returns
        -------
        ndarray of shape (n_samples,) for binary, (n_samples, n_classes) for multiclass targets
            Decision values. In the binary case, a positive value predicts ``classes_[1]``.
        """
        X = self._rows(X)
        return _of_classes(pb.decision_function(self.model_, X))


class Staged(Estimator):
    """Base class of estimators that fit in stages and can predict after each stage."""

    attributes: ClassVar = """
n_iter_ : int
    Number of boosting iterations that were kept: rounds of gradient boosting, nodes of a decision
    graph, or base learners. In a one-vs-rest model, the largest number over the classes.
train_score_ : ndarray of shape (n_iterations + 1,)
    Score on the training rows before the first iteration and after each iteration; higher is
    better. This is minus the loss for gradient boosting and minus the certificate, an upper bound
    on the training error, for a decision graph. Not available for other models.
validation_score_ : ndarray
    Score on the validation set before the first iteration and after each iteration, including
    iterations that were not kept: minus the loss or the first `metric` for gradient boosting, with
    the sign for which higher is better, and the accuracy for a decision graph. Only available if
    `validation` was passed.
"""

    @property
    def n_iter_(self) -> int:
        """Number of boosting iterations that were kept."""
        check_is_fitted(self)
        return _iterations(self.model_)

    @property
    def train_score_(self) -> FloatArray:
        """Score on the training rows before the first iteration and after each iteration."""
        check_is_fitted(self)
        if isinstance(self.model_, pb.models.GradientBoostingModel):
            return -self.model_.training_loss
        if isinstance(self.model_, pb.models.DecisionGraph):
            return -self.model_.record.certificate
        raise _not_recorded("train_score_", self.model_)

    @property
    def validation_score_(self) -> FloatArray:
        """Score on the validation set before the first iteration and after each iteration."""
        check_is_fitted(self)
        if isinstance(self.model_, pb.models.GradientBoostingModel) and self.model_.metrics:
            return self.model_.validation_score
        if isinstance(self.model_, pb.models.DecisionGraph):
            error = self.model_.record.validation
            if error is not None:
                return 1 - error
        raise _not_recorded("validation_score_", self.model_)

    def staged_predict(self, X: object) -> Iterator[Array]:
        """Yield the predictions after each stage of the fit.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Rows with the same features as in training.

        Yields
        ------
        ndarray of shape (n_samples,)
            Predictions of one stage. In the last stage, they equal the result of `predict`.
        """
        X = self._rows(X)
        return map(self._said, pb.staged_predict(self.model_, X))


class StagedScores(Staged, Scored):
    """Base class of classifiers with decision values at each stage of the fit."""

    def staged_decision_function(self, X: object) -> Iterator[FloatArray]:
        """Yield the decision values after each stage of the fit.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Rows with the same features as in training.

        Yields
        ------
        ndarray of shape (n_samples,) for binary, (n_samples, n_classes) for multiclass targets
            Decision values of one stage. In the last stage, they equal the result of
            `decision_function`.
        """
        X = self._rows(X)
        return map(_of_classes, pb.staged_decision_function(self.model_, X))

    def staged_predict_proba(self, X: object) -> Iterator[FloatArray]:
        """Yield the class probabilities after each stage of the fit.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Rows with the same features as in training.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            Probabilities of one stage. In the last stage, they equal the result of
            `predict_proba`.
        """
        X = self._rows(X)
        return pb.staged_predict_proba(self.model_, X)


class Applied(Estimator):
    """Base class of estimators whose models consist of trees."""

    def _has_leaves(self) -> bool:
        """Return whether `apply` is available. One-vs-rest models do not support it."""
        return not isinstance(getattr(self, "model_", None), pb.models.OneVsRest)

    @available_if(_has_leaves)
    def apply(self, X: object) -> IntArray:
        """Return the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Rows with the same features as in training.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_trees) for several trees
            Leaf numbers, counted from 0 from left to right as in `pboost.inspection.apply`.
        """
        X = self._rows(X)
        return pb.inspection.apply(self.model_, X)


class SingleTree(Applied):
    """Base class of estimators whose model is a single tree."""

    attributes: ClassVar = """
tree_ : Tree
    The fitted tree.
"""

    @property
    def tree_(self) -> pb.models.Tree:
        """The fitted tree."""
        check_is_fitted(self)
        tree: pb.models.Tree = getattr(self.model_, "partition", self.model_)
        return tree

    def decision_path(self, X: object) -> csr_matrix:
        """Return the nodes on the path of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Rows with the same features as in training.

        Returns
        -------
        sparse matrix of shape (n_samples, n_nodes)
            Matrix in CSR format with a 1 for each node on the path from the root to the leaf. Nodes
            are numbered as in `pboost.inspection.decision_path`.
        """
        X = self._rows(X)
        paths = pb.inspection.decision_path(self.tree_, X)
        ends = np.cumsum([0, *map(len, paths)])
        nodes = np.concatenate(paths)
        shape = len(paths), self.tree_.n_nodes
        return csr_matrix((np.ones(len(nodes), dtype=np.int64), nodes, ends), shape=shape)

    def get_depth(self) -> int:
        """Return the depth of the tree.

        Returns
        -------
        int
            The largest number of splits on a path from the root to a leaf.
        """
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves of the tree.

        Returns
        -------
        int
            The number of leaves.
        """
        return self.tree_.n_leaves


class Bagged(Estimator):
    """Base class of estimators whose base learners are fitted to samples of the rows."""

    attributes: ClassVar = """
estimators_ : list
    The fitted base learners, which are pboost models.
oob_score_ : float
    Out-of-bag score: accuracy for a classifier, R squared for a regressor, with sample weights.
    Only available if some base learner was not fitted to all training rows.
"""

    @property
    def estimators_(self) -> list[Any]:
        """The fitted base learners, which are pboost models."""
        check_is_fitted(self)
        return list(self.model_)

    @property
    def oob_score_(self) -> float:
        """Out-of-bag score on the training rows."""
        check_is_fitted(self)
        if self.model_.oob is None or np.isnan(self.model_.oob.error):
            raise AttributeError(
                "oob_score_: not available, because every base learner was fitted to all "
                "training rows"
            )
        return self._score_of_error(self.model_.oob.error)

    def _score_of_error(self, error: float) -> float:
        """Convert an out-of-bag error to a score."""
        return 1.0 - error


def _iterations(model: Any) -> int:
    """Return the number of boosting iterations of a model."""
    if isinstance(model, pb.models.OneVsRest):
        return max(map(_iterations, model.models))
    return model.n_nodes if isinstance(model, pb.models.DecisionGraph) else len(model)


def _not_recorded(name: str, model: object) -> AttributeError:
    return AttributeError(f"{name}: not available for this {type(model).__name__}")


def logarithm(share: FloatArray) -> FloatArray:
    """Return the logarithm of probabilities without a warning for zeros."""
    with np.errstate(divide="ignore"):
        return np.log(share)


def given_labels(y: object, y_proba: ArrayLike | None, classes: object) -> Any:
    """Return soft labels if `y_proba` is passed, else `y`. scikit-learn validates `y` later."""
    if y_proba is None and classes is None:
        return y
    if y is None or y_proba is None:
        return labels_of_rows(y, y_proba, classes)
    # Cross-validation passes y to every fit.
    soft = labels_of_rows(None, y_proba, classes)
    class_codes(soft.classes, y, len(soft.share))
    return soft


def with_class_weights(
    y: Array | SoftLabels, class_weight: object, sample_weight: ArrayLike | None
) -> tuple[Array | SoftLabels, FloatArray]:
    """Return the target and the sample weights multiplied by the class weights."""
    _check_class_weight(class_weight)
    weights = as_weights(sample_weight, len(y.share if isinstance(y, SoftLabels) else y))
    if isinstance(y, SoftLabels):
        y, balance = _soft_weighted(y, class_weight)
    else:
        balance = compute_sample_weight(class_weight, y)
    return y, balance if weights is None else weights * balance


def _check_class_weight(class_weight: object) -> None:
    """Raise an error if `class_weight` is neither "balanced" nor a mapping of weights."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        return
    if not isinstance(class_weight, Mapping):
        hint = ""
        if isinstance(class_weight, str) and class_weight == "balanced_subsample":
            hint = "; class weights cannot depend on the bootstrap sample"
        raise (ValueError if isinstance(class_weight, str) else TypeError)(
            "class_weight: expected 'balanced' or a dict of weights by class, got "
            f"{shown(class_weight)}{hint}"
        )
    for label, weight in class_weight.items():
        check_number(f"class_weight[{label!r}]", weight, min_value=0.0)


def _soft_weighted(y: SoftLabels, class_weight: object) -> tuple[SoftLabels, FloatArray]:
    """Apply class weights to soft labels. Return normalized soft labels and sample weights."""
    if class_weight == "balanced":
        mass = y.share.sum(axis=0)
        wanted = np.full(len(mass), len(y.share) / len(mass))
        factor = np.divide(wanted, mass, out=np.zeros(len(mass)), where=mass > 0)
    else:
        factor = compute_class_weight(class_weight, classes=y.classes, y=y.classes)
    share = y.share * factor
    total = share.sum(axis=1)
    of_weight = total > 0
    share[~of_weight] = y.share[~of_weight]
    share[of_weight] /= total[of_weight, None]
    return SoftLabels(y.classes, share), total


class _Brief(str):
    """String whose representation has no quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _brief(value: Any) -> object:
    """Return a parameter for the repr of an estimator. Data are shown by type and shape."""
    if type(value) in (list, tuple) and len(value) <= 3:
        return type(value)(map(_brief, value))
    text = shown(value)
    return _Brief(f"<{text.partition(' ')[2]}>") if text.startswith(("a ", "an ")) else value


def _may_hold_text(X: object) -> bool:
    """Return whether X is an array of objects or text, or a list or tuple."""
    return X.dtype.kind in "OUT" if isinstance(X, np.ndarray) else isinstance(X, list | tuple)


def _first_text_column(X: object) -> int | None:
    """Return the number of the first column that has text other than numbers, or None."""
    values = np.asarray(X, dtype=object)
    for number, column in enumerate(values.T if values.ndim == 2 else ()):
        try:
            column.astype(np.float64)
        except ValueError:
            return number
        except TypeError:  # scikit-learn explains objects that are neither numbers nor text
            return None
    return None


def _of_classes(score: FloatArray) -> FloatArray:
    """Return decision values in the shape that scikit-learn expects."""
    return score[:, 1] - score[:, 0] if score.shape[1:] == (2,) else score


def _is_array(values: object, ndim: int) -> TypeGuard[Array]:
    """Return whether `values` is a plain ndarray with `ndim` dimensions."""
    return type(values) is np.ndarray and values.ndim == ndim
