"""What is made of an object that several models read, kept while they do."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from threading import Lock, RLock
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class _Entry:
    """An object that is held, how often, and what was made of it."""

    def __init__(self, source: Any) -> None:
        self.source, self.users = source, 0
        self.lock, self.made = RLock(), dict[Hashable, Any]()


#: By the number of the object, which no other has while it is held.
_ENTRIES: dict[int, _Entry] = {}
_LOCK = Lock()


class Holding:
    """Holds objects on all threads, from ``with`` to its end; what is kept outlasts a pause."""

    def __init__(self, sources: tuple[Any, ...]) -> None:
        self._own = {id(source): _Entry(source) for source in sources}

    def __enter__(self) -> None:
        with _LOCK:
            for number, entry in self._own.items():
                _ENTRIES.setdefault(number, entry).users += 1

    def __exit__(self, *raised: object) -> None:
        with _LOCK:
            for number in self._own:
                _ENTRIES[number].users -= 1
                if not _ENTRIES[number].users:
                    del _ENTRIES[number]


_NOTHING = nullcontext()


def held(X: Any, *more: Any) -> AbstractContextManager[None]:
    """Return a context in which `kept` makes each thing once of X, and of what else is given.

    X must not change meanwhile. A matrix of floats is read as it is, and of it nothing is kept.
    """
    is_plain = not more and type(X) is np.ndarray and X.dtype.kind == "f"
    return _NOTHING if is_plain else Holding((X, *more))


def kept(X: Any, what: Hashable, make: Callable[[], T]) -> T:
    """Return ``make()``; while X is held, what it returned when it was first asked for `what`."""
    entry = _ENTRIES.get(id(X))
    if entry is None:
        return make()
    with entry.lock:
        if what not in entry.made:
            entry.made[what] = make()
        found: T = entry.made[what]
        return found


def kept_before(X: Any, what: Hashable) -> Any:
    """Return what `kept` has made of X while it is held; None if it has not."""
    entry = _ENTRIES.get(id(X))
    return None if entry is None else entry.made.get(what)
