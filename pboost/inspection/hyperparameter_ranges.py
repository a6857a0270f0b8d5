"""Ranges of hyperparameters for a random search."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from pboost.values import Task, check_choice, check_integer
from pboost.values.options import builder

TunedModel = Literal["gradient_boosting", "random_forest"]


class SearchRange(NamedTuple):
    """Range of a hyperparameter.

    `RandomizedSearchCV` of scikit-learn draws from it with `rvs`, and a study of Optuna with
    `suggest`.

    Attributes
    ----------
    low, high : float or int
        The smallest and the largest value.
    log : bool
        Whether the logarithm is uniformly distributed, rather than the value.
    integer : bool
        Whether only integers are drawn.
    """

    low: float
    high: float
    log: bool = False
    integer: bool = False

    def rvs(self, random_state: Any = None) -> float | int:
        """Draw a random value.

        Parameters
        ----------
        random_state : None, int, numpy.random.RandomState or numpy.random.Generator
            Random numbers or their seed.

        Returns
        -------
        float or int
            The value.

        Examples
        --------
        >>> import pboost as pb
        >>> space = pb.search_space("gradient_boosting", n_rows=1000)
        >>> space["max_depth"].rvs(random_state=0)
        5
        """
        is_seed = random_state is None or isinstance(random_state, int | np.integer)
        random = np.random.RandomState(random_state) if is_seed else random_state
        # Each integer gets an interval of length 1, on the logarithmic scale from k to k + 1.
        low, high = self.low, self.high + self.integer
        if self.log:
            low, high = math.log(low), math.log(high)
        value = float(random.uniform(low, high))
        value = math.exp(value) if self.log else value
        return min(int(value), int(self.high)) if self.integer else min(value, self.high)

    def suggest(self, trial: Any, name: str) -> float | int:
        """Return the value that an Optuna trial suggests.

        Parameters
        ----------
        trial : optuna.Trial
            The trial.
        name : str
            Name of the hyperparameter.

        Returns
        -------
        float or int
            The value.
        """
        ask = trial.suggest_int if self.integer else trial.suggest_float
        value: float | int = ask(name, self.low, self.high, log=self.log)
        return value


@builder
def search_space(
    model: TunedModel, n_rows: int, task: Task = "classification"
) -> dict[str, SearchRange]:
    """Return ranges of hyperparameters for a random search.

    The number of trees of gradient boosting is not included: ``n_estimators="auto"`` adapts it to
    the learning rate.

    Parameters
    ----------
    model : {"gradient_boosting", "random_forest"}
        The model to tune: `fit_gradient_boosting` or `fit_random_forest`, or their estimators.
    n_rows : int
        Number of training rows, such as ``len(X)``. More rows allow deeper trees and larger leaves.
    task : {"classification", "regression"}
        Type of the target. Default: "classification".

    Returns
    -------
    dict
        Mapping from the name of each parameter to its `SearchRange`.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid; the message names it.

    See Also
    --------
    cross_validate : Compare models on the same folds.

    Examples
    --------
    >>> import pboost as pb
    >>> space = pb.search_space("gradient_boosting", n_rows=1000)
    >>> list(space)[:4]
    ['learning_rate', 'max_depth', 'min_samples_leaf', 'leaf_shrinkage']
    >>> space["learning_rate"]
    SearchRange(low=0.03, high=0.3, log=True, integer=False)
    """
    check_choice("model", model, get_args(TunedModel))
    check_choice("task", task, get_args(Task))
    n_rows = check_integer("n_rows", n_rows, min_value=2)
    rows_in_leaf = SearchRange(1, min(max(n_rows // 20, 2), 100), log=True, integer=True)
    if model == "random_forest":
        return {
            "max_features": SearchRange(*((0.05, 0.7) if task == "classification" else (0.2, 1.0))),
            "min_samples_leaf": rows_in_leaf._replace(high=min(rows_in_leaf.high, 20)),
        }
    deepest = 8 if n_rows < 5000 else 10
    return {
        "learning_rate": SearchRange(0.03, 0.3, log=True),
        "max_depth": SearchRange(2, deepest, integer=True),
        "min_samples_leaf": rows_in_leaf,
        "leaf_shrinkage": SearchRange(0.0, 4.0),
        "random_strength": SearchRange(0.0, 1.0),
        "subsample": SearchRange(0.5, 1.0),
        "max_features": SearchRange(0.3, 1.0),
    }
