"""What the members of a model say of a row, as its files have it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pboost.models.stored import Arrays, Dtypes, Header, Kind, Parts

#: What members of a model say of a row: the label they predict, or their probabilities.
VOTES = ("majority", "average")


def check_vote(record: Any, name: str) -> None:
    """Raise ValueError if a field is none of the things that members can say."""
    if getattr(record, name) not in VOTES:
        raise ValueError(f"{name}: expected one of {VOTES}, got {getattr(record, name)!r}")


class Vote(Kind):
    """What members say: files without it are of those that say a label."""

    def check(self, record: Any, name: str) -> None:
        """Check that it is known."""
        check_vote(record, name)

    def dtypes(self, name: str) -> Dtypes:
        """Return the array of one text, which not all files have."""
        return {name: (None, True)}

    def store(self, name: str, value: Any) -> Parts:
        """Return it, unless it is what files without it say."""
        return {}, {} if value == VOTES[0] else {name: np.array([value])}

    def read(self, name: str, header: Header, arrays: Arrays) -> Any:
        """Return what a file says."""
        return " ".join(arrays[name].astype(str).ravel()) if name in arrays else VOTES[0]
