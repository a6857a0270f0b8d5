"""What estimators cost, as a score, searches that trade scores for it, models within a budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count, takewhile
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import pboost as pb
from pboost.sklearn.base import Estimator, Regressor, Scored
from pboost.sklearn.parameters import refusing
from pboost.values import Array, FloatArray, check_number, shown

#: Comparisons per row where nothing else is given.
USUAL = 50.0


def cost_scorer(estimator: object, X: object, y: object = None) -> float:
    """Return minus the mean number of comparisons of rows: a scorer, of which more is better.

    To be passed as ``scoring=``, best with others: ``scoring={"error": "neg_log_loss", "cost":
    cost_scorer}``.

    Parameters
    ----------
    estimator : estimator of pboost.sklearn, or Pipeline that ends with one
        Fitted.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,), default=None
        Their labels, which are not looked at: costs do not depend on them.

    Returns
    -------
    float
        Minus the mean of `pboost.prediction_cost`; of rows that leave early, up to there.

    Raises
    ------
    TypeError
        If it is another estimator.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pboost.sklearn import AdaBoostClassifier, cost_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> cost_scorer(AdaBoostClassifier(n_estimators=9).fit(X, y), X)
    -9.0
    """
    if isinstance(estimator, Pipeline):
        check_is_fitted(estimator)
        if len(estimator.steps) > 1:
            X = estimator[:-1].transform(X)
        estimator = estimator[-1]
    if not isinstance(estimator, Estimator):
        raise TypeError(
            "estimator: expected one of pboost.sklearn, or a Pipeline that ends with one, whose "
            f"comparisons can be counted, got {shown(estimator)}"
        )
    X = estimator._rows(X)  # first, as there may be no model
    return -float(np.mean(pb.prediction_cost(estimator.model_, X)))


def cheapest_within_standard_error(
    score: str = "score", cost: str = "cost", *, standard_errors: float = 1.0
) -> Callable[[Mapping[str, Array]], int]:
    """Return what to pass as ``refit=``: the cheapest setting that is about as good as the best.

    Parameters
    ----------
    score, cost : str
        The names of two scorers of the search, of which more is better; `cost` of `cost_scorer`.
    standard_errors : float
        A setting is as good if its mean score is below the best by at most so many standard errors
        of that mean, over the folds; 0: of equal ones the cheapest.

    Returns
    -------
    callable
        ``refit(cv_results)`` returning the number of the setting.

    Raises
    ------
    ValueError
        If there is no such score in the results of the search.

    References
    ----------
    .. [1] L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, "Classification and
       regression trees", Wadsworth (1984), section 3.4.3, of the rule of one standard error.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from pboost.sklearn import AdaBoostClassifier, cost_scorer, cheapest_within_standard_error
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(
    ...     AdaBoostClassifier(),
    ...     {"rounds": [10, 20, 100, 200]},
    ...     scoring={"score": "accuracy", "cost": cost_scorer},
    ...     refit=cheapest_within_standard_error(),
    ... )
    >>> search.fit(X, y).best_params_
    {'rounds': 10}
    """
    error = check_number("standard_errors", standard_errors, min_value=0.0)
    return partial(_cheapest_within_standard_error, score=score, cost=cost, standard_errors=error)


def best_within_budget(
    mean_comparisons: float, score: str = "score", cost: str = "cost"
) -> Callable[[Mapping[str, Array]], int]:
    """Return what to pass as ``refit=``: the best setting among those within a budget.

    Parameters
    ----------
    mean_comparisons : float
        The budget: mean number of comparisons per row.
    score, cost : str
        The names of two scorers of the search, of which more is better; `cost` of `cost_scorer`.

    Returns
    -------
    callable
        ``refit(cv_results)`` returning the number of the setting, of equal ones the cheapest.

    Raises
    ------
    ValueError
        If no setting is within the budget, with what the cheapest takes; or if there is no such
        score in the results of the search.

    See Also
    --------
    BudgetClassifier, BudgetRegressor : choose among models of several families within a budget.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from pboost.sklearn import AdaBoostClassifier, best_within_budget, cost_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(
    ...     AdaBoostClassifier(),
    ...     {"rounds": [1, 5, 20]},
    ...     scoring={"score": "neg_log_loss", "cost": cost_scorer},
    ...     refit=best_within_budget(10),
    ... )
    >>> search.fit(X, y).best_params_
    {'rounds': 5}
    """
    budget = check_number("mean_comparisons", mean_comparisons, min_value=0.0)
    return partial(_best_within_budget, score=score, cost=cost, mean_comparisons=budget)


def _cheapest_within_standard_error(
    cv_results: Mapping[str, Array], *, score: str, cost: str, standard_errors: float
) -> int:
    """Return the cheapest setting as good as the best, see `cheapest_within_standard_error`."""
    scores, costs = _means(cv_results, score), -_means(cv_results, cost)
    best = int(np.nanargmax(scores))
    folds = (f"split{k}_test_{score}" for k in count())
    of_best = np.array(
        [cv_results[fold][best] for fold in takewhile(cv_results.__contains__, folds)]
    )
    error = of_best.std(ddof=1) / np.sqrt(len(of_best)) if len(of_best) > 1 else 0.0
    is_good = scores >= scores[best] - standard_errors * error
    return _cheapest(is_good, scores, costs)


def _best_within_budget(
    cv_results: Mapping[str, Array], *, score: str, cost: str, mean_comparisons: float
) -> int:
    """Return the best setting within a budget, see `best_within_budget`."""
    scores, costs = _means(cv_results, score), -_means(cv_results, cost)
    is_within = (costs <= mean_comparisons) & np.isfinite(scores)
    if not is_within.any():
        raise ValueError(
            f"mean_comparisons: expected at least {np.nanmin(costs):.4g}, what the cheapest setting "
            f"takes, got {mean_comparisons:.4g}"
        )
    return _cheapest(is_within & (scores == scores[is_within].max()), scores, costs)


def _cheapest(is_one: Array, scores: FloatArray, costs: FloatArray) -> int:
    """Return the cheapest of some settings, among equal ones the one of the best score."""
    some = np.flatnonzero(is_one)
    order = np.lexsort((-scores[some], costs[some]))
    return int(some[order[0]])


def _means(cv_results: Mapping[str, Array], name: str) -> FloatArray:
    """Return the mean test scores of the settings."""
    column = cv_results.get(f"mean_test_{name}")
    if column is None:
        start = "mean_test_"
        known = [key.removeprefix(start) for key in cv_results if key.startswith(start)]
        raise ValueError(
            f"score, cost: expected names of scorers, {', '.join(map(repr, known))}, got {name!r}"
        )
    scores = np.asarray(column, dtype=np.float64)
    if np.isnan(scores).all():
        raise ValueError(f"score, cost: all values of {name!r} are NaN: every fit or score failed")
    return scores


class Within(Estimator):
    """Base of those within a budget."""

    def _options(self, overrides: Mapping[str, object]) -> dict[str, Any]:
        for name in ("mean_comparisons", "mean_feature_cost"):
            budget = getattr(self, name)
            if isinstance(budget, Sequence | np.ndarray) and not isinstance(budget, str):
                raise TypeError(
                    f"{name}: expected one budget, got {shown(budget)}; pboost.fit_within_budget fits "
                    "models for several, and a search tries several estimators"
                )
        if self.mean_comparisons is self.max_comparisons is self.mean_feature_cost is None:
            overrides = {**overrides, "mean_comparisons": USUAL}
        return super()._options(overrides)

    def _build(self, X: object, y: Any, options: dict[str, Any]) -> Any:
        del options["sample_weight"]  # there are none
        if len(y) == 1:
            raise ValueError("y: expected rows to test with beside those to fit to, got one sample")
        return super()._build(X, y, options)

    @property
    def curve_(self) -> FloatArray:
        """Budget, comparisons, error and its standard error, by cross-validation, (k, 4)."""
        check_is_fitted(self)
        curve = getattr(self.model_, "curve", None)
        table: FloatArray = np.array(
            self.model_.settings["curve"] if curve is None else curve, dtype=np.float64
        )
        return table


class BudgetClassifier(Within, Scored):
    """The most accurate classifier that rows can go through within a budget of comparisons.

    `pboost.fit_within_budget` as an estimator: models of several families are compared by
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
        budget and for usual ones below it; see `pboost.plot.budget_curve`.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from pboost.sklearn import BudgetClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> small = BudgetClassifier(mean_comparisons=5, random_state=0).fit(X[::2], y[::2])
    >>> small.prediction_cost_ <= 5, small.score(X[1::2], y[1::2]) > 0.9
    (True, True)
    """

    builder = staticmethod(pb.fit_within_budget)
    fixed_options: ClassVar = {"task": "classification"}
    left_out: ClassVar = ("class_weight",)
    class_weight = None

    @refusing
    def fit(self, X: object, y: object) -> Self:  # type: ignore[override]
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

    `pboost.fit_within_budget` as an estimator: sums of trees and single trees are compared by
    cross-validation. Weights of rows are not taken.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : GradientBoostingModel, or another model
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
    >>> BudgetRegressor(mean_comparisons=10, random_state=0).fit(X, y).prediction_cost_ <= 10
    True
    """

    builder = staticmethod(pb.fit_within_budget)
    fixed_options: ClassVar = {"task": "regression"}

    @refusing
    def fit(self, X: object, y: object) -> Self:  # type: ignore[override]
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
