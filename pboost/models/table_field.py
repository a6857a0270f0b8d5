"""The field of a model that says what the columns of its training data were."""

from __future__ import annotations

from typing import Any

from pboost.data.read.table import Table
from pboost.models.stored import Arrays, Dtypes, Header, Kind, Parts, kept_as


class OfTable(Kind):
    """What the columns are, where they are not all numbers or some had holes."""

    optional = True

    def check(self, record: Any, name: str) -> None:
        """Check it with the number of columns."""
        getattr(record, name).validate(record.n_features)

    def dtypes(self, name: str) -> Dtypes:
        """Return the arrays of tables."""
        return {member: (dtype, True) for member, dtype in Table.stored.items()}

    def store(self, name: str, value: Any) -> Parts:
        """Return the arrays, if there is a table."""
        return {}, {} if value is None else value.members()

    def read(self, name: str, header: Header, arrays: Arrays) -> Table | None:
        """Return the table, None where there is none."""
        return Table.from_members(arrays)


def table_field() -> Any:
    """Return the field of the table of the columns, None by default."""
    return kept_as(OfTable(), default=None, kw_only=True)
