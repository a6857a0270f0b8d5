"""Values that are asked for only where the way of a row needs them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.budget.questions import (
    BUDGET,
    AcquiredValue,
    AcquisitionError,
    Name,
    Query,
    Session,
    called,
)
from pboost.data.prices import (
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
from pboost.models.evaluate.known_values import PartialEvaluator, PartialValue
from pboost.models.evaluate.new_rows import match_names
from pboost.values import FloatArray, check_choice, check_number, shown

#: When a row is decided before all is known that its path reads.
WHOLE, PROVEN = "all that its path reads is known", "the rest cannot change the label"
#: Label, score, probabilities and bounds.
Found: TypeAlias = tuple[object, float | FloatArray, FloatArray | None, FloatArray]


@dataclass(frozen=True, slots=True)
class AcquisitionResult:
    """What a model says of a row of which it has asked what it needs, see
    `predict_with_acquisition`.

    Attributes
    ----------
    label : object
        The label, or of a regression the number.
    score : float, or ndarray of float64, shape (J,)
        The decision value; of trees and forests of J > 2 labels, which have none, the shares.
        Before all is known: that by what is known.
    probability : ndarray of float64, shape (J,), or None
        The probabilities of the labels that go with it; None where the model has none.
    bounds : ndarray of float64, shape (2,), or (2, J)
        The least and the largest score that the row can have, whatever is not known.
    acquired : tuple of AcquiredValue
        What was asked, in order.
    cost : float
        What was paid for it.
    is_settled : bool
        Whether the label is the one of `predict`, whatever is not known.
    reason : str
        Why nothing more was asked, as a sentence.
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
        """How often something was asked."""
        return sum(entry.calls for entry in self.acquired)


class Case:
    """A model, what it asks, and what that costs: the same for all rows."""

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
        """Return what a column is called."""
        names = self.model.feature_names
        return column if names is None else names[column]

    def group_of(self, column: int) -> str | None:
        """Return the name of a column's group, None where there is none."""
        cost_groups = self.cost_groups.items()
        return next((name for name, columns in cost_groups if column in columns), None)

    def columns_of(self, asked: object) -> tuple[int, ...]:
        """Return the columns of a name or a position, or of a group."""
        names, d = self.model.feature_names, self.model.n_features
        if isinstance(asked, str):
            if asked in self.cost_groups:
                return self.cost_groups[asked]
            if names is not None and asked in names:
                return (names.index(asked),)
        elif isinstance(asked, int | np.integer) and not isinstance(asked, bool) and 0 <= asked < d:
            return (int(asked),)
        known = f"positions below {d}" if names is None else f"the columns {', '.join(names)}"
        raise ValueError(f"row: expected {known}, or groups, got {shown(asked)}")

    def entries(self, row: Any) -> dict[Name, Any]:
        """Return what is said of a row, by columns and groups."""
        if isinstance(row, Mapping) or hasattr(row, "keys"):
            return {key: row[key] for key in row.keys()}  # noqa: SIM118 (a Series, too)
        if isinstance(row, str | bytes) or not isinstance(row, Sequence | np.ndarray):
            raise TypeError(
                "row: expected a mapping of columns to values or functions, or a sequence of one "
                f"for each column, got {shown(row)}"
            )
        if len(row) != self.model.n_features or np.ndim(row) != 1:
            raise ValueError(
                f"row: expected {self.model.n_features} values or functions, one for each column, "
                f"got {len(row)}"
            )
        return dict(enumerate(row))

    def read(self, values: Mapping[int, object]) -> FloatArray:
        """Return the numbers of values of columns; ValueError or TypeError where they are none."""
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
        """Return what is decided of a row of which all is known that counts."""
        model, share = self.model, self._shares(lambda: self.model.predict_proba(X)[0])
        if share is not None and len(share) > 2 and self.inquiry.of_shares:
            score = share
        else:
            score = model.decision_function(X)[0]
        return model.predict(X)[0].item(), _plain(score), share, np.array([score, score])

    def by_now(self, known: PartialValue) -> Found:
        """Return what is decided by what is known."""
        inquiry = self.inquiry
        score, bounds = inquiry.scores(known.value[None]), [known.low[-1], known.high[-1]]
        ends = bounds if score.ndim > 1 else known.lead_of_second()
        share = self._shares(lambda: inquiry.shares(known)[2])
        return inquiry.label(known).item(), _plain(score[0]), share, np.array(ends)

    def _shares(self, ask: Callable[[], FloatArray]) -> FloatArray | None:
        """Return probabilities, None where there are none."""
        try:
            return None if self.model.classes is None else ask()
        except NotImplementedError:  # of a loss without
            return None


class RowInquiry:
    """What is known of a row, what has been asked, and, at the end, the decision."""

    def __init__(self, case: Case) -> None:
        self.case = case
        d = case.model.n_features
        self.is_known = np.zeros(d, dtype=np.bool_)
        # What stands for others: any value that the model takes.
        self.values = np.full((1, d), np.nan if case.model.takes_missing else 0.0)
        self.paid = np.zeros(len(case.feature_costs.cost), dtype=np.bool_)
        self.acquired: list[AcquiredValue] = []
        self.spent = 0.0
        self.decision: AcquisitionResult | None = None

    def take(self, values: Mapping[int, object]) -> None:
        """Take values of columns."""
        if values:
            columns = list(values)
            self.values[0, columns] = self.case.read(values)
            self.is_known[columns] = True

    def wants(self) -> tuple[int, ...]:
        """Return the columns that are wanted next, the cheapest; none where the row is decided."""
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
        """Return what is still to be paid for columns."""
        return float(self.case.feature_costs.cost[self._items(columns) & ~self.paid].sum())

    def _items(self, columns: Iterable[int]) -> NDArray[np.bool_]:
        """Return the items (n_items,) that are to be paid for columns."""
        read = np.zeros((1, len(self.is_known)), dtype=np.bool_)
        read[0, list(columns)] = True
        return self.case.feature_costs.items_of(read)[0]

    def features(self) -> Features:
        """Return the row as models take it."""
        return Features(self.values, self.case.model.feature_names, self.case.model.row_table)

    def tell(self, asked: Name, answer: object) -> None:
        """Take the answer to a question; AcquisitionError where it is none."""
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
        """Return the values that an answer gives to columns."""
        if asked not in self.case.cost_groups:
            return {columns[0]: answer}
        if not (isinstance(answer, Mapping) or hasattr(answer, "keys")):
            raise TypeError(f"expected a mapping of the columns of the group, got {shown(answer)}")
        values = {}
        for key in answer.keys():  # noqa: SIM118 (a Series, too)
            values[self.case.columns_of(key)[0]] = answer[key]
        if values.keys() != set(columns):
            names = [self.case.name_of(column) for column in columns]
            raise ValueError(f"expected values of the columns {names}, got {list(answer.keys())}")
        return {column: value for column, value in values.items() if not self.is_known[column]}


def _plain(score: FloatArray) -> float | FloatArray:
    return score if np.ndim(score) else float(score)


def _feature_costs_of(
    model: Model, feature_costs: FeatureCostOption, cost_groups: CostGroupOption
) -> tuple[FeatureCosts, Mapping[str, tuple[int, ...]]]:
    """Return costs of columns, and the columns of groups that have names.

    What is not given is what the model was fitted with, else 1 for each column.
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
    """Decide about one row, asking only for the values that its path through the model reads.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    row : mapping, or sequence of length d
        For each column that the model may read, by name or position, its value, or a function
        without arguments that returns it: a number, a category, or None where it is missing, as in
        tables. A function is called when the path wants the value, and once at most. Under the
        name of one of `cost_groups` a function that returns a mapping of the values of its columns.
    budget : float, optional
        The most that is paid. Where the next question would cost more the decision is made by what
        is known.
    feature_costs : sequence of float, or mapping, optional
        What the columns cost that are asked for, and groups, see `fit_gradient_boosting`. Values
        that are given are free. Default: the costs that the model was fitted with, else 1 each.
    cost_groups : mapping of names to columns, or sequence of sequences of columns, optional
        Columns that are paid together, once.
    exit : {"proven", "none"}
        "proven": nothing more is asked once no value of what is not known can change the label.
        "none": all is asked for that the path reads.

    Returns
    -------
    AcquisitionResult
        Label, score, bounds of the score, and what was acquired.

    Raises
    ------
    AcquisitionError
        If a function raises, or returns what is no value of its column. What was asked before is
        in its ``acquired``.
    NotImplementedError
        If it is not known which columns the model reads: of oracles, functions, and members of
        other packages.
    ValueError, TypeError
        If an option or a value given is not as described.

    See Also
    --------
    acquisition_session : Many rows at a time.

    Notes
    -----
    The label is the one of `predict` unless the budget ends before. A tree asks for the column of
    its next comparison; of the columns that the trees of a sum, of a forest or of an ensemble want
    next, or the nodes of a chain, each of which is on the path of the row, the cheapest is asked
    for, the first of several. A row of an `EarlyExitModel` asks in the order of the model, until it
    leaves. What is known is used in all trees for the bounds, which are the sums of the least and
    of the largest votes on the ways left open. Models that add up columns ask for all of these at
    once, and have no bounds before.

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
    >>> found = pb.acquisition.predict_with_acquisition(model, {0: 25, 1: lambda: 0})
    >>> found.label, [(entry.source, entry.cost) for entry in found.acquired]
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
        raise ValueError(f"row: expected values or functions for the columns {names}, too")
    while wants := inquiry.wants():
        for asked in dict.fromkeys(sources[column] for column in wants):
            inquiry.tell(asked, called(ask[asked], asked, inquiry.acquired))
    assert inquiry.decision is not None
    return inquiry.decision


def _parted(case: Case, row: object) -> tuple[dict[int, object], dict[Name, Callable[[], object]]]:
    """Return the values that are given, by column, and the functions, by column or group."""
    known_values: dict[int, object] = {}
    ask: dict[Name, Callable[[], object]] = {}
    taken: set[int] = set()
    for key, value in case.entries(row).items():
        columns = case.columns_of(key)
        for column in columns:
            if column in taken:
                name = case.name_of(column)
                raise ValueError(f"row: expected each column once, got {name!r} twice")
            taken.add(column)
        is_group = key in case.cost_groups
        if callable(value):
            ask[key if is_group else case.name_of(columns[0])] = value
        elif is_group:
            raise TypeError(
                f"row: expected a function for the group {key!r}, got {shown(value)}; values are "
                "given by columns"
            )
        else:
            known_values[columns[0]] = value
    return known_values, ask


class AcquisitionSession(Session[RowInquiry, AcquisitionResult]):
    """Rows that are decided side by side, so that their questions can be answered in batches.

    Made by `acquisition_session`. ``session.ask()`` returns questions, ``session.tell(question,
    answer)`` takes answers, in any order; ``session[i]`` is the decision of row i, None as long as
    it is open; ``len(session)`` is the number of rows.

    Attributes
    ----------
    is_done : bool
        Whether all rows are decided.
    """

    def __init__(self, case: Case) -> None:
        super().__init__()
        self._case = case

    def add(self, row: object) -> int:
        """Add a row and return its number.

        Parameters
        ----------
        row : mapping
            Values of columns that are known, by name or position; others are asked for.
        """
        known_values, functions = _parted(self._case, row)
        if functions:
            raise TypeError(
                f"row: expected values, got a function for {next(iter(functions))!r}; questions "
                "are answered by tell, functions are called by predict_with_acquisition"
            )
        inquiry = RowInquiry(self._case)
        inquiry.take(known_values)
        return self._join(inquiry)

    def _go_on(self, row: int) -> None:
        """Find what a row is asked next."""
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
    """Decide about many rows, whose questions the caller answers, in batches if it likes.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    rows : iterable of mappings
        Of each row the values of columns that are known, by name or position; ``{}`` where nothing
        is. Others are asked for. ``session.add`` adds further rows.
    budget : float, optional
        The most that is paid for each row, see `predict_with_acquisition`.
    feature_costs : sequence of float, or mapping, optional
        See `predict_with_acquisition`.
    cost_groups : mapping of names to columns, or sequence of sequences of columns, optional
        See `predict_with_acquisition`. Columns of groups that have names are asked for together,
        and answered by a mapping; of other groups one by one, and paid once.
    exit : {"proven", "none"}
        See `predict_with_acquisition`.

    Returns
    -------
    AcquisitionSession
        The session, with methods ``ask`` and ``tell``.

    Raises
    ------
    NotImplementedError, ValueError, TypeError
        As `predict_with_acquisition` does.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = [[20, 0], [30, 0], [40, 1], [50, 0], [60, 1], [70, 1]], list("nnynyy")
    >>> session = pb.acquisition.acquisition_session(pb.fit_cart(X, y), [{0: 25}, {0: 65}])
    >>> while questions := session.ask():
    ...     print(questions[0])
    ...     for question, scanned in zip(questions, [0, 1]):
    ...         session.tell(question, scanned)
    Query(row=0, source=1, cost=1.0)
    >>> [found.label for found in session]
    ['n', 'y']
    """
    session = AcquisitionSession(Case(model, budget, feature_costs, cost_groups, exit))
    for row in rows:
        session.add(row)
    return session
