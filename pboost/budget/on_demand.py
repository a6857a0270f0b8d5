"""Values that are asked for only where the way of a row needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pboost.budget.questions import Question, Session
from pboost.budget.row_inquiry import AskError, Case, Decision, Name, RowInquiry
from pboost.models.base import Model
from pboost.values import shown


def decide(
    model: Model,
    row: Any,
    *,
    budget: float | None = None,
    prices: Any = None,
    groups: Any = None,
    exit: str = "proven",
) -> Decision:
    """Decide about one row, asking only for the values that its path through the model reads.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    row : mapping, or sequence of length d
        For each column that the model may read, by name or position, its value, or a function
        without arguments that returns it: a number, a category, or None where it is missing, as in
        tables. A function is called when the path wants the value, and once at most. Under the
        name of one of `groups` a function that returns a mapping of the values of its columns.
    budget : float, optional
        The most that is paid. Where the next question would cost more the decision is made by what
        is known.
    prices : sequence of float, or mapping, optional
        What the columns cost that are asked for, and groups, see `fit_stagewise`. Values that are
        given are free. Default: the prices that the model was fitted with, else 1 each.
    groups : mapping of names to columns, or sequence of sequences of columns, optional
        Columns that are paid together, once.
    exit : {"proven", "none"}
        "proven": nothing more is asked once no value of what is not known can change the label.
        "none": all is asked for that the path reads.

    Returns
    -------
    Decision
        Label, score, bounds of the score, and the ledger of what was asked.

    Raises
    ------
    AskError
        If a function raises, or returns what is no value of its column. What was asked before is
        in its ``ledger``.
    NotImplementedError
        If it is not known which columns the model reads: of oracles, functions, and members of
        other packages.
    ValueError, TypeError
        If an option or a value given is not as described.

    See Also
    --------
    decisions : Many rows at a time.

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
    >>> pb.decide(model, [25, scan]).label
    scanning
    'y'
    >>> found = pb.decide(model, {0: 25, 1: lambda: 0})
    >>> found.label, [(entry.asked, entry.price) for entry in found.ledger]
    ('n', [(1, 1.0)])
    """
    case = Case(model, budget, prices, groups, exit)
    inquiry = RowInquiry(case)
    given, ask = _parted(case, row)
    inquiry.take(given)
    sources = {column: name for name in ask for column in case.columns_of(name)}
    lacking = sorted(case.inquiry.columns - given.keys() - sources.keys())
    if lacking:
        names = [case.name_of(column) for column in lacking]
        raise ValueError(f"row: expected values or functions for the columns {names}, too")
    while wants := inquiry.wants():
        for asked in dict.fromkeys(sources[column] for column in wants):
            try:
                answer = ask[asked]()
            except Exception as error:
                said = f"{asked!r}: its function raised {error!r}"
                raise AskError(said, asked, tuple(inquiry.ledger)) from error
            inquiry.tell(asked, answer)
    assert inquiry.decision is not None
    return inquiry.decision


def _parted(case: Case, row: Any) -> tuple[dict[int, Any], dict[Name, Callable[[], Any]]]:
    """Return the values that are given, by column, and the functions, by column or group."""
    given: dict[int, Any] = {}
    ask: dict[Name, Callable[[], Any]] = {}
    taken: set[int] = set()
    for key, value in case.entries(row).items():
        columns = case.columns_of(key)
        for column in columns:
            if column in taken:
                name = case.name_of(column)
                raise ValueError(f"row: expected each column once, got {name!r} twice")
            taken.add(column)
        is_group = key in case.groups
        if callable(value):
            ask[key if is_group else case.name_of(columns[0])] = value
        elif is_group:
            raise TypeError(
                f"row: expected a function for the group {key!r}, got {shown(value)}; values are "
                "given by columns"
            )
        else:
            given[columns[0]] = value
    return given, ask


class Decisions(Session[RowInquiry, Decision]):
    """Rows that are decided side by side, so that their questions can be answered in batches.

    Made by `decisions`. ``session.ask()`` returns questions, ``session.tell(question, answer)``
    takes answers, in any order; ``session[i]`` is the decision of row i, None as long as it is
    open; ``len(session)`` is the number of rows.

    Attributes
    ----------
    is_done : bool
        Whether all rows are decided.
    """

    def __init__(self, case: Case) -> None:
        super().__init__()
        self._case = case

    def add(self, row: Any) -> int:
        """Add a row and return its number.

        Parameters
        ----------
        row : mapping
            Values of columns that are known, by name or position; others are asked for.
        """
        given, functions = _parted(self._case, row)
        if functions:
            raise TypeError(
                f"row: expected values, got a function for {next(iter(functions))!r}; questions "
                "are answered by tell, functions are called by decide"
            )
        inquiry = RowInquiry(self._case)
        inquiry.take(given)
        return self._join(inquiry)

    def tell(self, question: Question, answer: Any) -> None:
        """Take the answer to a question; of a group a mapping of the values of its columns.

        Raises
        ------
        AskError
            If it is no value of the column. The question stays open, and can be answered again.
        ValueError
            If the question is not open.
        """
        row = self._open_row(question)
        self._rows[row].tell(question.asked, answer)
        self._answered(question)

    def _go_on(self, row: int) -> None:
        """Find what a row is asked next."""
        inquiry, case = self._rows[row], self._case
        for column in inquiry.wants():
            group = case.group_of(column)
            asked = case.name_of(column) if group is None else group
            self._put(Question(row, asked, inquiry.price_of(case.columns_of(asked))))


def decisions(
    model: Model,
    rows: Iterable[Any] = (),
    *,
    budget: float | None = None,
    prices: Any = None,
    groups: Any = None,
    exit: str = "proven",
) -> Decisions:
    """Decide about many rows, whose questions the caller answers, in batches if it likes.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    rows : iterable of mappings
        Of each row the values of columns that are known, by name or position; ``{}`` where nothing
        is. Others are asked for. ``session.add`` adds further rows.
    budget : float, optional
        The most that is paid for each row, see `decide`.
    prices : sequence of float, or mapping, optional
        See `decide`.
    groups : mapping of names to columns, or sequence of sequences of columns, optional
        See `decide`. Columns of groups that have names are asked for together, and answered by a
        mapping; of other groups one by one, and paid once.
    exit : {"proven", "none"}
        See `decide`.

    Returns
    -------
    Decisions
        The session, with methods ``ask`` and ``tell``.

    Raises
    ------
    NotImplementedError, ValueError, TypeError
        As `decide` does.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = [[20, 0], [30, 0], [40, 1], [50, 0], [60, 1], [70, 1]], list("nnynyy")
    >>> session = pb.decisions(pb.fit_cart(X, y), [{0: 25}, {0: 65}])
    >>> while questions := session.ask():
    ...     print(questions[0])
    ...     for question, scanned in zip(questions, [0, 1]):
    ...         session.tell(question, scanned)
    Question(row=0, asked=1, price=1.0)
    >>> [found.label for found in session]
    ['n', 'y']
    """
    session = Decisions(Case(model, budget, prices, groups, exit))
    for row in rows:
        session.add(row)
    return session
