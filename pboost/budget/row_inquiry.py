"""What is known of a row, what it is asked for next, and what is decided of it in the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.check_xy import check_finite
from pboost.data.convert import Features
from pboost.data.prices import PRICE_OPTIONS, Prices, plain_groups, read_prices
from pboost.data.table import column_label, positions
from pboost.models.base import Model, check_model
from pboost.models.known_values import Inquiry, Known
from pboost.models.new_rows import match_names
from pboost.models.priced import known_options
from pboost.values import FloatArray, check_choice, check_number, shown

#: When a row is decided before all is known that its path reads.
EXITS = ("proven", "none")
WHOLE, PROVEN, BUDGET = (
    "all that its path reads is known",
    "the rest cannot change the label",
    "the budget ends here",
)
#: What is asked: a column by its name, or its position where it has none, or a group.
Name: TypeAlias = str | int
#: Label, score, probabilities and bounds.
Found: TypeAlias = tuple[Any, Any, FloatArray | None, FloatArray]


class Asked(NamedTuple):
    """An entry of a ledger.

    Attributes
    ----------
    asked : str or int
        A column, by its name, or its position where columns have no names; or the name of a group.
    value : object
        What was answered.
    price : float
        What was paid; 0 of a column whose group was paid before.
    calls : int
        How often it was asked.
    """

    asked: Name
    value: Any
    price: float
    calls: int = 1


class AskError(RuntimeError):
    """A question that was not answered, or not by a value of its column.

    Attributes
    ----------
    asked : str or int
        What was asked, see `Asked`.
    ledger : tuple of Asked
        What was asked and answered before.
    """

    def __init__(self, message: str, asked: Name, ledger: tuple[Asked, ...]) -> None:
        super().__init__(message)
        self.asked, self.ledger = asked, ledger

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.asked, self.ledger)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a model says of a row of which it has asked what it needs, see `decide`.

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
    ledger : tuple of Asked
        What was asked, in order.
    price : float
        What was paid for it.
    is_settled : bool
        Whether the label is the one of `predict`, whatever is not known.
    reason : str
        Why nothing more was asked, as a sentence.
    """

    label: Any
    score: Any
    probability: FloatArray | None
    bounds: FloatArray
    ledger: tuple[Asked, ...]
    price: float
    is_settled: bool
    reason: str

    @property
    def calls(self) -> int:
        """How often something was asked."""
        return sum(entry.calls for entry in self.ledger)


class Case:
    """A model, what it asks, and what that costs: the same for all rows."""

    def __init__(self, model: Model, budget: Any, prices: Any, groups: Any, exit: str) -> None:
        check_model(model)
        check_choice("exit", exit, EXITS)
        self.model, self.settles = model, exit == "proven" and model.labels is not None
        self.budget = math.inf if budget is None else check_number("budget", budget, least=0.0)
        self.inquiry: Inquiry = model.inquiry(self.settles)
        self.prices, self.groups = _prices_of(model, prices, groups)

    def name_of(self, column: int) -> Name:
        """Return what a column is called."""
        names = self.model.feature_names
        return column if names is None else names[column]

    def group_of(self, column: int) -> str | None:
        """Return the name of a column's group, None where there is none."""
        groups = self.groups.items()
        return next((name for name, columns in groups if column in columns), None)

    def columns_of(self, asked: Any) -> tuple[int, ...]:
        """Return the columns of a name or a position, or of a group."""
        names, d = self.model.feature_names, self.model.n_features
        if isinstance(asked, str):
            if asked in self.groups:
                return self.groups[asked]
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

    def read(self, values: Mapping[int, Any]) -> FloatArray:
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
        found = np.zeros((1, model.n_features))
        found[0, columns] = features.values[0, columns]
        check_finite(Features(found, model.feature_names), model.takes_missing)
        return found[0, columns]

    def whole(self, X: Features) -> Found:
        """Return what is decided of a row of which all is known that counts."""
        model, share = self.model, self._shares(lambda: self.model.predict_proba(X)[0])
        has_score = share is None or len(share) == 2 or not self.inquiry.of_shares
        score = model.decision_function(X)[0] if has_score else share
        return model.predict(X)[0].item(), _plain(score), share, np.array([score, score])

    def by_now(self, known: Known) -> Found:
        """Return what is decided by what is known."""
        inquiry = self.inquiry
        score, bounds = inquiry.scores(known.value[None]), [known.low[-1], known.high[-1]]
        ends = bounds if score.ndim > 1 else known.lead_of_second()
        share = self._shares(lambda: inquiry.shares(known)[2])
        return inquiry.label(known).item(), _plain(score[0]), share, np.array(ends)

    def _shares(self, ask: Callable[[], FloatArray]) -> FloatArray | None:
        """Return probabilities, None where there are none."""
        try:
            return None if self.model.labels is None else ask()
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
        self.paid = np.zeros(len(case.prices.price), dtype=np.bool_)
        self.ledger: list[Asked] = []
        self.spent = 0.0
        self.decision: Decision | None = None

    def take(self, values: Mapping[int, Any]) -> None:
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
            cheapest = min(known.wants, key=self.price_of)
            if self.spent + self.price_of(cheapest) <= case.budget:
                return cheapest
            reason = BUDGET
        ledger = tuple(self.ledger)
        found = case.whole(X) if not known.wants else case.by_now(known)
        self.decision = Decision(*found, ledger, self.spent, reason != BUDGET, reason)
        return ()

    def price_of(self, columns: Iterable[int]) -> float:
        """Return what is still to be paid for columns."""
        return float(self.case.prices.price[self._items(columns) & ~self.paid].sum())

    def _items(self, columns: Iterable[int]) -> NDArray[np.bool_]:
        """Return the items (n_items,) that are to be paid for columns."""
        read = np.zeros((1, len(self.is_known)), dtype=np.bool_)
        read[0, list(columns)] = True
        return self.case.prices.items_of(read)[0]

    def features(self) -> Features:
        """Return the row as models take it."""
        return Features(self.values, self.case.model.feature_names, self.case.model.row_table)

    def tell(self, asked: Name, answer: Any) -> None:
        """Take the answer to a question; AskError where it is none."""
        columns = self.case.columns_of(asked)
        try:
            self.take(self._values(asked, columns, answer))
        except (TypeError, ValueError, OverflowError) as error:
            raise AskError(f"{asked!r}: {error}", asked, tuple(self.ledger)) from error
        price = self.price_of(columns)
        self.paid |= self._items(columns)
        self.spent += price
        self.ledger.append(Asked(asked, answer, price))

    def _values(self, asked: Name, columns: tuple[int, ...], answer: Any) -> dict[int, Any]:
        """Return the values that an answer gives to columns."""
        if asked not in self.case.groups:
            return {columns[0]: answer}
        if not (isinstance(answer, Mapping) or hasattr(answer, "keys")):
            raise TypeError(f"expected a mapping of the columns of the group, got {shown(answer)}")
        found = {}
        for key in answer.keys():  # noqa: SIM118 (a Series, too)
            found[self.case.columns_of(key)[0]] = answer[key]
        if found.keys() != set(columns):
            names = [self.case.name_of(column) for column in columns]
            raise ValueError(f"expected values of the columns {names}, got {list(answer.keys())}")
        return {column: value for column, value in found.items() if not self.is_known[column]}


def _plain(score: Any) -> Any:
    return score if np.ndim(score) else float(score)


def _prices_of(
    model: Model, prices: Any, groups: Any
) -> tuple[Prices, Mapping[str, tuple[int, ...]]]:
    """Return prices of columns, and the columns of groups that have names.

    What is not given is what the model was fitted with, else 1 for each column.
    """
    names, d = model.feature_names, model.n_features
    options = known_options(model) if prices is None and groups is None else None
    if options is None:
        options = {"prices": np.ones(d) if prices is None else prices, "groups": groups}
    found = read_prices({**PRICE_OPTIONS, **options}, names, d)
    assert found is not None
    pairs = plain_groups("groups", options["groups"]) or []
    called = {
        name: tuple(positions("groups", columns, names, d)) for name, columns in pairs if name
    }
    return found, called
