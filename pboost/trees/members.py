"""Members of an ensemble, trained on several threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.check_xy import scaled_weights
from pboost.data.targets import Entries
from pboost.growth.step import Callback, MemberStep
from pboost.models.stored import OutOfBag
from pboost.threads import Workers
from pboost.values import Array, FloatArray

T = TypeVar("T")
#: Members per thread that are trained before their results are taken in.
BATCH = 4


class Tally:
    """Sums of what members say of rows out of their bags.

    They are tested against `truth`, classes, or numbers where `n_classes` is 0, with weights; those
    of the entries, where there are such.
    """

    def __init__(
        self,
        truth: Array,
        weights: FloatArray,
        n_classes: int,
        entries: Entries | None = None,
    ) -> None:
        n = len(truth) if entries is None else len(entries.first)
        self.members = np.zeros(n, dtype=np.int32)
        self.total = np.zeros((n, max(n_classes, 1)))
        self.truth, self.weights, self.n_classes = truth, weights, n_classes
        self.rows = None if entries is None else entries.rows

    def add(self, rows: NDArray[np.intp], answers: FloatArray) -> None:
        """Add what one member says of the listed rows, (rows, J) or (rows,)."""
        self.members[rows] += 1
        self.total[rows] += answers.reshape(len(rows), self.total.shape[1])

    def means(self) -> FloatArray:
        """Return the mean of what members say of each row, NaN if none says anything."""
        mean = np.full(self.total.shape, np.nan)
        seen = np.flatnonzero(self.members)
        mean[seen] = self.total[seen] / self.members[seen, None]
        return mean if self.n_classes else mean[:, 0]

    def tested(self) -> NDArray[np.intp]:
        """Return the rows, or entries, of positive weight of which members say something."""
        members = self.members if self.rows is None else self.members[self.rows]
        seen = np.flatnonzero(members)
        return seen[self.weights[seen] > 0]

    def losses(self, tested: NDArray[np.intp], exponent: int = 0) -> FloatArray:
        """Return the losses of some rows, whose targets are times a power of two."""
        rows = tested if self.rows is None else self.rows[tested]
        predicted, truth = self.total[rows] / self.members[rows, None], self.truth[tested]
        if self.n_classes:
            return (np.argmax(predicted, axis=1) != truth).astype(np.float64)
        return np.asarray((predicted[:, 0] - np.ldexp(truth, exponent)) ** 2)

    def close(self) -> OutOfBag:
        """Return means, and their error."""
        tested, error = self.tested(), np.nan
        if len(tested):
            weights = scaled_weights(self.weights[tested])[0]
            error = float(np.average(self.losses(tested), weights=weights))
        return OutOfBag(self.members, self.means(), error)

    def tell(self, callback: Callback | None, number: int, model: object) -> bool:
        """Tell the callback, if there is one, of a member; returns whether to stop."""
        if callback is None:
            return False
        return bool(callback(number, MemberStep(model, self.close().error)))


def tallied_members(
    train: Callable[[int], tuple[T, NDArray[np.intp], FloatArray]],
    members: int,
    n_threads: int | None,
    cells: int,
    tally: Tally,
    callback: Callback | None,
    known: int = 0,
) -> list[T]:
    """Return the members until the callback stops; `train` returns their tallies, too.

    Of the first, that are `known`, it is not told.
    """
    every = partial(train_members, train, members, n_threads, cells)
    return tallied(every, tally, callback, known)


def tallied(
    every: Callable[[Callable[[Any], bool]], None],
    tally: Tally,
    callback: Callback | None,
    known: int = 0,
) -> list[Any]:
    """Return the members that `every` has taken one after another, see `tallied_members`."""
    models: list[Any] = []

    def take(trained: tuple[Any, NDArray[np.intp], FloatArray]) -> bool:
        models.append(trained[0])
        tally.add(*trained[1:])
        is_new = len(models) > known
        return is_new and tally.tell(callback, len(models), trained[0])

    every(take)
    return models


def train_members(
    train: Callable[[int], T],
    members: int,
    n_threads: int | None,
    cells: int | None,
    take: Callable[[T], Any],
) -> None:
    """Call ``take(train(i))`` for each member, in order; `train` runs on several threads.

    There are as many as work on `cells` is worth, see `Workers`. Sums that `take` makes do not
    depend on their number, then. If it returns True, no more are taken.
    """
    with Workers(n_threads, cells) as workers:
        batch = BATCH * workers.n_threads if workers.n_threads > 1 else 1
        for start in range(0, members, batch):

            def train_one(first: int, _: int, start: int = start) -> T:
                return train(start + first)

            for trained in workers.run_each(train_one, min(batch, members - start)):
                if take(trained):
                    return
