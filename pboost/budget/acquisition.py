"""Prediction with feature acquisition: feature values are requested only if they are needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.budget.sessions import (
    BUDGET,
    AcquiredValue,
    AcquisitionError,
    Name,
    Query,
    Session,
    called,
)
from pboost.data.feature_costs import (
    COST_OPTIONS,
    CostGroupOption,
    FeatureCostOption,
    FeatureCosts,
    plain_cost_groups,
    read_feature_costs,
)
from pboost.data.read.check_xy import check_finite
from pboost.data.read.convert import Features
from pboost.data.read.table import column_label, positions
from pboost.models.base import EXITS, ExitRule, Model, check_model, known_options
from pboost.models.evaluate.match_input import match_names
from pboost.models.evaluate.partial_evaluation import PartialEvaluator, PartialValue
from pboost.values import FloatArray, check_choice, check_number, shown

#: Reasons to stop before all features are known.
WHOLE, PROVEN = (
    "all features on the path are known",
    "the unknown features cannot change the class",
)
#: Class, score, probabilities and bounds.
Found: TypeAlias = tuple[object, float | FloatArray, FloatArray | None, FloatArray]


@dataclass(frozen=True, slots=True)
class AcquisitionResult:
    """Prediction for one row with acquired features, see `predict_with_acquisition`.

    Attributes
    ----------
    label : object
        The predicted class or, for regression, the predicted value.
    score : float, or ndarray of float64, shape (J,)
        The decision value or, for multiclass trees and forests, the class shares. If features are
        unknown, the score is estimated from the known features.
    probability : ndarray of float64, shape (J,), or None
        The class probabilities for this score; None if the model has no probabilities.
    bounds : ndarray of float64, shape (2,), or (2, J)
        The smallest and the largest score that the row can have for any values of the unknown
        features.
    acquired : tuple of AcquiredValue
        The acquired values, in order.
    cost : float
        The total cost of the acquired values.
    is_settled : bool
        Whether `predict` returns this class for any values of the unknown features.
    reason : str
        Why no more values were acquired.
    """

    label: object
    score: float | FloatArray
    probability: FloatArray | None
    bounds: FloatArray
    acquired: tuple[AcquiredValue, ...]
    cost: float
    is_settled: bool
    reason: str

    @property
    def calls(self) -> int:
        """Return the number of queries."""
        return sum(entry.calls for entry in self.acquired)


class Case:
    """A model with its acquisition options, shared by all rows."""

    def __init__(
        self,
        model: Model,
        budget: float | None,
        feature_costs: FeatureCostOption,
        cost_groups: CostGroupOption,
        exit: ExitRule,
    ) -> None:
        check_model(model)
        check_choice("exit", exit, EXITS)
        self.model, self.settles = model, exit == "proven" and model.classes is not None
        self.budget = math.inf if budget is None else check_number("budget", budget, min_value=0.0)
        self.inquiry: PartialEvaluator = model.inquiry(self.settles)
        self.feature_costs, self.cost_groups = _feature_costs_of(model, feature_costs, cost_groups)

    def name_of(self, column: int) -> Name:
        """Return the name of a feature, or its index if there are no names."""
        names = self.model.feature_names
        return column if names is None else names[column]

    def group_of(self, column: int) -> str | None:
        """Return the name of the group of a feature, or None if the feature is in no group."""
        cost_groups = self.cost_groups.items()
        return next((name for name, columns in cost_groups if column in columns), None)

    def columns_of(self, asked: object) -> tuple[int, ...]:
        """Return the indices of the features with this name, index or group name."""
        names, d = self.model.feature_names, self.model.n_features
        if isinstance(asked, str):
            if asked in self.cost_groups:
                return self.cost_groups[asked]
            if names is not None and asked in names:
                return (names.index(asked),)
        elif isinstance(asked, int | np.integer) and not isinstance(asked, bool) and 0 <= asked < d:
            return (int(asked),)
        known = f"an index below {d}" if names is None else f"a feature ({', '.join(names)})"
        raise ValueError(f"row: expected {known} or the name of a group, got {shown(asked)}")

    def entries(self, row: Any) -> dict[Name, Any]:
        """Return a row as a mapping from features or groups to values or functions."""
        if isinstance(row, Mapping) or hasattr(row, "keys"):
            return {key: row[key] for key in row.keys()}  # noqa: SIM118 (may be a Series)
        if isinstance(row, str | bytes) or not isinstance(row, Sequence | np.ndarray):
            raise TypeError(
                "row: expected a mapping of features to values or functions, or a sequence with "
                f"one entry per feature, got {shown(row)}"
            )
        if len(row) != self.model.n_features or np.ndim(row) != 1:
            raise ValueError(
                f"row: expected {self.model.n_features} values or functions, one per feature, "
                f"got {len(row)}"
            )
        return dict(enumerate(row))

    def read(self, values: Mapping[int, object]) -> FloatArray:
        """Return feature values as numbers; raise ValueError or TypeError if they are invalid."""
        model, columns = self.model, list(values)
        row = np.full((1, model.n_features), None, dtype=object)
        for column, value in values.items():
            if isinstance(value, Sequence | Mapping) and not isinstance(value, str):
                label = column_label(model.feature_names, column)
                raise TypeError(
                    f"X: expected a number or a category in {label}, got {shown(value)}"
                )
            row[0, column] = value
        features = match_names(None, model.n_features, row, model.row_table)
        row_values = np.zeros((1, model.n_features))
        row_values[0, columns] = features.values[0, columns]
        check_finite(Features(row_values, model.feature_names), model.takes_missing)
        return row_values[0, columns]

    def full_outcome(self, X: Features) -> Found:
        """Return the outcome for a row whose relevant features are all known."""
        model, share = self.model, self._shares(lambda: self.model.predict_proba(X)[0])
        if share is not None and len(share) > 2 and self.inquiry.of_shares:
            score = share
        else:
            score = model.decision_function(X)[0]
        return model.predict(X)[0].item(), _plain(score), share, np.array([score, score])

    def by_now(self, known: PartialValue) -> Found:
        """Return the outcome that is estimated from the known features."""
        inquiry = self.inquiry
        score, bounds = inquiry.scores(known.value[None]), [known.low[-1], known.high[-1]]
        ends = bounds if score.ndim > 1 else known.lead_of_second()
        share = self._shares(lambda: inquiry.shares(known)[2])
        return inquiry.label(known).item(), _plain(score[0]), share, np.array(ends)

    def _shares(self, ask: Callable[[], FloatArray]) -> FloatArray | None:
        """Return the class probabilities, or None if the model has none."""
        try:
            return None if self.model.classes is None else ask()
        except NotImplementedError:  # the loss has no probabilities
            return None


class RowInquiry:
    """Known and acquired features of a row and, at the end, the decision."""

    def __init__(self, case: Case) -> None:
        self.case = case
        d = case.model.n_features
        self.is_known = np.zeros(d, dtype=np.bool_)
        # Unknown features get an arbitrary value that the model accepts.
        self.values = np.full((1, d), np.nan if case.model.takes_missing else 0.0)
        self.paid = np.zeros(len(case.feature_costs.cost), dtype=np.bool_)
        self.acquired: list[AcquiredValue] = []
        self.spent = 0.0
        self.decision: AcquisitionResult | None = None

    def take(self, values: Mapping[int, object]) -> None:
        """Add known values of features."""
        if values:
            columns = list(values)
            self.values[0, columns] = self.case.read(values)
            self.is_known[columns] = True

    def wants(self) -> tuple[int, ...]:
        """Return the cheapest features that are needed next, or () if the row is decided."""
        case, X = self.case, self.features()
        known = case.inquiry.known(X, self.is_known)
        is_settled = case.settles and int(case.inquiry.possible(known).sum()) == 1
        reason = WHOLE if not known.wants else PROVEN if is_settled else ""
        if not reason:
            cheapest = min(known.wants, key=self.cost_of)
            if self.spent + self.cost_of(cheapest) <= case.budget:
                return cheapest
            reason = BUDGET
        acquired = tuple(self.acquired)
        outcome = case.full_outcome(X) if not known.wants else case.by_now(known)
        self.decision = AcquisitionResult(*outcome, acquired, self.spent, reason != BUDGET, reason)
        return ()

    def cost_of(self, columns: Iterable[int]) -> float:
        """Return the part of the cost of features that has not been paid yet."""
        return float(self.case.feature_costs.cost[self._items(columns) & ~self.paid].sum())

    def _items(self, columns: Iterable[int]) -> NDArray[np.bool_]:
        """Return a mask (n_items,) of the cost items that features need."""
        read = np.zeros((1, len(self.is_known)), dtype=np.bool_)
        read[0, list(columns)] = True
        return self.case.feature_costs.items_of(read)[0]

    def features(self) -> Features:
        """Return the row as input for models."""
        return Features(self.values, self.case.model.feature_names, self.case.model.row_table)

    def tell(self, asked: Name, answer: object) -> None:
        """Add the result of a query; raise AcquisitionError if it is invalid."""
        columns = self.case.columns_of(asked)
        try:
            self.take(self._values(asked, columns, answer))
        except (TypeError, ValueError, OverflowError) as error:
            raise AcquisitionError(f"{asked!r}: {error}", asked, tuple(self.acquired)) from error
        cost = self.cost_of(columns)
        self.paid |= self._items(columns)
        self.spent += cost
        self.acquired.append(AcquiredValue(asked, answer, cost))

    def _values(self, asked: Name, columns: tuple[int, ...], answer: Any) -> dict[int, object]:
        """Return the feature values in the result of a query."""
        if asked not in self.case.cost_groups:
            return {columns[0]: answer}
        if not (isinstance(answer, Mapping) or hasattr(answer, "keys")):
            raise TypeError(f"expected a mapping of features to values, got {shown(answer)}")
        values = {}
        for key in answer.keys():  # noqa: SIM118 (may be a Series)
            values[self.case.columns_of(key)[0]] = answer[key]
        if values.keys() != set(columns):
            names = [self.case.name_of(column) for column in columns]
            raise ValueError(f"expected values of the features {names}, got {list(answer.keys())}")
        return {column: value for column, value in values.items() if not self.is_known[column]}


def _plain(score: FloatArray) -> float | FloatArray:
    return score if np.ndim(score) else float(score)


def _feature_costs_of(
    model: Model, feature_costs: FeatureCostOption, cost_groups: CostGroupOption
) -> tuple[FeatureCosts, Mapping[str, tuple[int, ...]]]:
    """Return the feature costs and the features of each named group.

    By default, these are the costs and groups of the fit. Without them, each feature costs 1.
    """
    names, d = model.feature_names, model.n_features
    options = known_options(model) if feature_costs is None and cost_groups is None else None
    if options is None:
        options = {
            "feature_costs": np.ones(d) if feature_costs is None else feature_costs,
            "cost_groups": cost_groups,
        }
    cost_table = read_feature_costs({**COST_OPTIONS, **options}, names, d)
    assert cost_table is not None
    pairs = plain_cost_groups("cost_groups", options["cost_groups"]) or []
    called = {
        name: tuple(positions("cost_groups", columns, names, d)) for name, columns in pairs if name
    }
    return cost_table, called


# One row, and many


def predict_with_acquisition(
    model: Model,
    row: object,
    *,
    budget: float | None = None,
    feature_costs: FeatureCostOption = None,
    cost_groups: CostGroupOption = None,
    exit: ExitRule = "proven",
) -> AcquisitionResult:
    """Predict one row, acquiring only the feature values that its path through the model needs.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    row : mapping, or sequence of length d
        For each feature of the model, by name or index, its value or a function without arguments
        that returns it. A value is a number, a category, or None for a missing value. A function is
        called at most once, when its value is needed. For a named group of `cost_groups`, pass a
        function that returns a mapping of features to values.
    budget : float, optional
        Maximum cost. If the next query would exceed it, the prediction is based on the known
        values.
    feature_costs : sequence of float, or mapping, optional
        Costs of acquiring features and groups, see `fit_gradient_boosting`. Values passed in `row`
        are free. By default, the costs that the model was fitted with, else 1 for each feature.
    cost_groups : mapping of names to columns, or sequence of sequences of columns, optional
        Groups of features that are acquired together, at a single cost.
    exit : {"proven", "none"}
        "proven" stops as soon as the unknown features cannot change the predicted class. "none"
        acquires all features on the path.

    Returns
    -------
    AcquisitionResult
        Predicted class, score, bounds on the score, and the acquired values.

    Raises
    ------
    AcquisitionError
        If a function raises an error or returns an invalid value. The attribute ``acquired``
        contains the values acquired before.
    NotImplementedError
        If the features that the model uses are not known. This applies to models with oracles,
        Python functions or base learners from other packages.
    ValueError, TypeError
        If an option or a value is invalid.

    See Also
    --------
    acquisition_session : Predict many rows at a time.

    Notes
    -----
    Unless the budget ends the acquisition, the predicted class is equal to the class that `predict`
    returns for the complete row. For a tree, the feature of the next split is acquired. For
    ensembles and chains, the features of the next split of each tree, or of the nodes of the chain,
    are candidates; the cheapest feature is acquired, and the first one if costs are equal. For an
    `EarlyExitModel`, features are acquired in the order of the stages until prediction stops. For
    linear models, all features are acquired at once.

    The lower bound is the sum over all trees of the smallest vote that the row can still get, and
    the upper bound is the sum of the largest votes.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = [[20, 0], [30, 0], [40, 1], [50, 0], [60, 1], [70, 1]], list("nnynyy")
    >>> model = pb.fit_cart(X, y)
    >>> def scan():
    ...     print("scanning")
    ...     return 1
    >>> pb.acquisition.predict_with_acquisition(model, [25, scan]).label
    scanning
    'y'
    >>> result = pb.acquisition.predict_with_acquisition(model, {0: 25, 1: lambda: 0})
    >>> result.label, [(entry.source, entry.cost) for entry in result.acquired]
    ('n', [(1, 1.0)])
    """
    case = Case(model, budget, feature_costs, cost_groups, exit)
    inquiry = RowInquiry(case)
    known_values, ask = _parted(case, row)
    inquiry.take(known_values)
    sources = {column: name for name in ask for column in case.columns_of(name)}
    lacking = sorted(case.inquiry.columns - known_values.keys() - sources.keys())
    if lacking:
        names = [case.name_of(column) for column in lacking]
        raise ValueError(f"row: expected values or functions for the features {names}, got none")
    while wants := inquiry.wants():
        for asked in dict.fromkeys(sources[column] for column in wants):
            inquiry.tell(asked, called(ask[asked], asked, inquiry.acquired))
    assert inquiry.decision is not None
    return inquiry.decision


def _parted(case: Case, row: object) -> tuple[dict[int, object], dict[Name, Callable[[], object]]]:
    """Return two mappings: the known values and the functions of a row."""
    known_values: dict[int, object] = {}
    ask: dict[Name, Callable[[], object]] = {}
    taken: set[int] = set()
    for key, value in case.entries(row).items():
        columns = case.columns_of(key)
        for column in columns:
            if column in taken:
                name = case.name_of(column)
                raise ValueError(f"row: expected each feature once, got {name!r} twice")
            taken.add(column)
        is_group = key in case.cost_groups
        if callable(value):
            ask[key if is_group else case.name_of(columns[0])] = value
        elif is_group:
            raise TypeError(
                f"row: expected a function for the group {key!r}, got {shown(value)}; pass known "
                "values for each feature"
            )
        else:
            known_values[columns[0]] = value
    return known_values, ask


class AcquisitionSession(Session[RowInquiry, AcquisitionResult]):
    """Prediction of many rows at the same time, so that queries can be processed in batches.

    Use `acquisition_session` to create a session. ``session.ask()`` returns queries, and
    ``session.tell(query, value)`` sets their results in any order. ``session[i]`` is the result for
    row i, or None while row i is undecided. ``len(session)`` is the number of rows.

    Attributes
    ----------
    is_done : bool
        Whether all rows are decided.
    """

    def __init__(self, case: Case) -> None:
        super().__init__()
        self._case = case

    def add(self, row: object) -> int:
        """Add a row and return its index.

        Parameters
        ----------
        row : mapping
            Known feature values, by name or index. All other features are acquired.
        """
        known_values, functions = _parted(self._case, row)
        if functions:
            raise TypeError(
                f"row: expected values, got a function for {next(iter(functions))!r}; use "
                "predict_with_acquisition to call functions"
            )
        inquiry = RowInquiry(self._case)
        inquiry.take(known_values)
        return self._join(inquiry)

    def _go_on(self, row: int) -> None:
        """Add the next queries of a row."""
        inquiry, case = self._rows[row], self._case
        for column in inquiry.wants():
            group = case.group_of(column)
            asked = case.name_of(column) if group is None else group
            self._put(Query(row, asked, inquiry.cost_of(case.columns_of(asked))))


def acquisition_session(
    model: Model,
    rows: Iterable[Any] = (),
    *,
    budget: float | None = None,
    feature_costs: FeatureCostOption = None,
    cost_groups: CostGroupOption = None,
    exit: ExitRule = "proven",
) -> AcquisitionSession:
    """Start a session that predicts many rows and returns queries for their features in batches.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    rows : iterable of mappings
        The known feature values of each row, by name or index; ``{}`` if none are known. All other
        features are acquired. Use ``session.add`` to add more rows.
    budget : float, optional
        Maximum cost for each row, see `predict_with_acquisition`.
    feature_costs : sequence of float, or mapping, optional
        See `predict_with_acquisition`.
    cost_groups : mapping of names to columns, or sequence of sequences of columns, optional
        See `predict_with_acquisition`. A named group is acquired by a single query, whose result is
        a mapping. If a group has no name, each of its features is queried separately, but the cost
        is charged only once.
    exit : {"proven", "none"}
        See `predict_with_acquisition`.

    Returns
    -------
    AcquisitionSession
        The session, with methods ``ask`` and ``tell``.

    Raises
    ------
    NotImplementedError, ValueError, TypeError
        See `predict_with_acquisition`.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = [[20, 0], [30, 0], [40, 1], [50, 0], [60, 1], [70, 1]], list("nnynyy")
    >>> session = pb.acquisition.acquisition_session(pb.fit_cart(X, y), [{0: 25}, {0: 65}])
    >>> while queries := session.ask():
    ...     print(queries[0])
    ...     for query, scanned in zip(queries, [0, 1]):
    ...         session.tell(query, scanned)
    Query(row=0, source=1, cost=1.0)
    >>> [result.label for result in session]
    ['n', 'y']
    """
    session = AcquisitionSession(Case(model, budget, feature_costs, cost_groups, exit))
    for row in rows:
        session.add(row)
    return session
