"""What is made of an object that several models read, kept while they do."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from threading import RLock
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class _Entry:
    """An object that is held, and what was made of it."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.lock, self.made = RLock(), dict[Hashable, Any]()


#: What the functions that run now hold, the outermost first; threads of `Workers` have it, too.
_HELD: ContextVar[tuple[_Entry, ...]] = ContextVar("held", default=())


class Holding:
    """Holds objects from ``with`` to its end; what is kept outlasts a pause."""

    def __init__(self, sources: tuple[Any, ...]) -> None:
        self._own = tuple(map(_Entry, sources))
        self._before: list[Token[tuple[_Entry, ...]]] = []

    def __enter__(self) -> None:
        self._before.append(_HELD.set((*_HELD.get(), *self._own)))

    def __exit__(self, *raised: object) -> None:
        _HELD.reset(self._before.pop())


_NOTHING = nullcontext()


def held(X: Any, *more: Any) -> AbstractContextManager[None]:
    """Return a context in which `kept` makes each thing once of X, and of what else is given.

    X must not change meanwhile. A matrix of floats is read as it is, and of it nothing is kept.
    """
    is_plain = not more and type(X) is np.ndarray and X.dtype.kind == "f"
    return _NOTHING if is_plain else Holding((X, *more))


def steps_held(holding: AbstractContextManager[None], steps: Iterator[T]) -> Iterator[T]:
    """Yield what an iterator yields, whose steps are made in the context, and not its user's."""
    while True:
        with holding:
            found = next(steps, None)
        if found is None:
            return
        yield found


def _entry(X: Any) -> _Entry | None:
    """Return what is held of X, None if it is not."""
    return next((entry for entry in _HELD.get() if entry.source is X), None)


def kept(X: Any, what: Hashable, make: Callable[[], T]) -> T:
    """Return ``make()``; while X is held, what it returned when it was first asked for `what`."""
    entry = _entry(X)
    if entry is None:
        return make()
    with entry.lock:
        if what not in entry.made:
            entry.made[what] = make()
        found: T = entry.made[what]
        return found


def kept_before(X: Any, what: Hashable) -> Any:
    """Return what `kept` has made of X while it is held; None if it has not."""
    entry = _entry(X)
    return None if entry is None else entry.made.get(what)
