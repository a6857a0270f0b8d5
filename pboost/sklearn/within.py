"""Estimators of the most accurate model within a budget of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

import pboost as pb
from pboost.sklearn.base import Estimator, Regressor, Scored
from pboost.sklearn.parameters import refusing
from pboost.values import FloatArray, shown

#: Comparisons per row where nothing else is given.
USUAL = 50.0


class Within(Estimator):
    """Base of those within a budget."""

    def _options(self, given: Any) -> dict[str, Any]:
        for name in ("comparisons", "price"):
            budget = getattr(self, name)
            if isinstance(budget, Sequence | np.ndarray) and not isinstance(budget, str):
                raise TypeError(
                    f"{name}: expected one budget, got {shown(budget)}; pboost.fit_within fits "
                    "models for several, and a search tries several estimators"
                )
        if self.comparisons is self.worst is self.price is None:
            given = {**given, "comparisons": USUAL}
        return super()._options(given)

    def _build(self, X: Any, y: Any, options: dict[str, Any]) -> Any:
        del options["sample_weight"]  # there are none
        if len(y) == 1:
            raise ValueError("y: expected rows to test with beside those to fit to, got one sample")
        return super()._build(X, y, options)

    @property
    def curve_(self) -> FloatArray:
        """Budget, comparisons, error and its standard error, by cross-validation, (k, 4)."""
        check_is_fitted(self)
        curve = getattr(self.model_, "curve", None)
        found: FloatArray = np.array(
            self.model_.settings["curve"] if curve is None else curve, dtype=np.float64
        )
        return found


class BudgetClassifier(Within, Scored):
    """The most accurate classifier that rows can go through within a budget of comparisons.

    `pboost.fit_within` as an estimator: models of several families are compared by
    cross-validation, and rows leave the best one early where they are sure. Weights of rows, of
    classes and soft labels are not taken.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : EarlyExitModel or DecisionGraph
        The model, for the functions of pboost; ``model_.settings["chosen"]`` says which family.
    curve_ : ndarray of shape (k, 4)
        Budget, mean comparisons, error and its standard error of what would be chosen, for this
        budget and for usual ones below it; see `pboost.plot_budget_curve`.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from pboost.sklearn import BudgetClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> small = BudgetClassifier(comparisons=5, random_state=0).fit(X[::2], y[::2])
    >>> small.cost_ <= 5, small.score(X[1::2], y[1::2]) > 0.9
    (True, True)
    """

    builder = staticmethod(pb.fit_within)
    said: ClassVar = {"task": "classification"}
    left_out: ClassVar = ("class_weight",)
    class_weight = None

    @refusing
    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features; missing values are NaN, and columns of text or of a type of categories are
            categories.
        y : array-like of shape (n_samples,)
            Labels, of two or more values.

        Returns
        -------
        self : object
            The estimator.
        """
        return self._fit(X, y, None, {})


class BudgetRegressor(Within, Regressor):
    """The most accurate regression that rows can go through within a budget of comparisons.

    `pboost.fit_within` as an estimator: sums of trees and single trees are compared by
    cross-validation. Weights of rows are not taken.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : StagewiseModel, or another model
        The model, for the functions of pboost; ``model_.settings["chosen"]`` says which family.
    curve_ : ndarray of shape (k, 4)
        Budget, mean comparisons, error and its standard error of what would be chosen, for this
        budget and for usual ones below it.
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from pboost.sklearn import BudgetRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> BudgetRegressor(comparisons=10, random_state=0).fit(X, y).cost_ <= 10
    True
    """

    builder = staticmethod(pb.fit_within)
    said: ClassVar = {"task": "regression"}

    @refusing
    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features; missing values are NaN, and columns of text or of a type of categories are
            categories.
        y : array-like of shape (n_samples,)
            Finite numbers.

        Returns
        -------
        self : object
            The estimator.
        """
        return self._fit(X, y, None, {})
