"""Train the base learners of an ensemble on several threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.check_xy import scaled_weights
from pboost.data.targets import Entries
from pboost.growth.graph_growth import Callback, MemberStep
from pboost.models.schema import OutOfBag
from pboost.threads import Workers
from pboost.values import Array, FloatArray

T = TypeVar("T")
#: Number of base learners that each thread trains before their results are added up.
BATCH = 4


class Tally:
    """Sums of out-of-bag predictions, compared with `truth`.

    `truth` contains class numbers, or regression targets if `n_classes` is 0. With soft labels, it
    has one entry for each row and each class with positive probability.
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
        """Add the predictions of one base learner for the listed rows, (rows, J) or (rows,)."""
        self.members[rows] += 1
        self.total[rows] += answers.reshape(len(rows), self.total.shape[1])

    def means(self) -> FloatArray:
        """Return the mean prediction of each row, or NaN without predictions."""
        mean = np.full(self.total.shape, np.nan)
        seen = np.flatnonzero(self.members)
        mean[seen] = self.total[seen] / self.members[seen, None]
        return mean if self.n_classes else mean[:, 0]

    def tested(self) -> NDArray[np.intp]:
        """Return the rows, or entries, that have a positive weight and a prediction."""
        members = self.members if self.rows is None else self.members[self.rows]
        seen = np.flatnonzero(members)
        return seen[self.weights[seen] > 0]

    def losses(self, tested: NDArray[np.intp], exponent: int = 0) -> FloatArray:
        """Return the losses of rows, after multiplication of the targets by 2**exponent."""
        rows = tested if self.rows is None else self.rows[tested]
        predicted, truth = self.total[rows] / self.members[rows, None], self.truth[tested]
        if self.n_classes:
            return (np.argmax(predicted, axis=1) != truth).astype(np.float64)
        return np.asarray((predicted[:, 0] - np.ldexp(truth, exponent)) ** 2)

    def close(self) -> OutOfBag:
        """Return the mean predictions and the out-of-bag error."""
        tested, error = self.tested(), np.nan
        if len(tested):
            weights = scaled_weights(self.weights[tested])[0]
            error = float(np.average(self.losses(tested), weights=weights))
        return OutOfBag(self.members, self.means(), error)

    def tell(self, callback: Callback | None, number: int, model: object) -> bool:
        """Call the callback, if any, with a new base learner; return whether to stop."""
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
    """Train and return base learners. `train` also returns the arguments of `Tally.add`.

    The callback can stop training. It is not called for the first `known` base learners.
    """
    every = partial(train_members, train, members, n_threads, cells)
    return tallied(every, tally, callback, known)


def tallied(
    every: Callable[[Callable[[Any], bool]], None],
    tally: Tally,
    callback: Callback | None,
    known: int = 0,
) -> list[Any]:
    """Train and return base learners as in `tallied_members`; `every` trains them."""
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
    """Call ``take(train(i))`` for i = 0, 1, .... `train` runs on several threads.

    The number of threads depends on `cells`, see `Workers`. `take` is always called in the order of
    base learners, until it returns True.
    """
    with Workers(n_threads, cells) as workers:
        batch = BATCH * workers.n_threads if workers.n_threads > 1 else 1
        for start in range(0, members, batch):

            def train_one(first: int, _: int, start: int = start) -> T:
                return train(start + first)

            for trained in workers.run_each(train_one, min(batch, members - start)):
                if take(trained):
                    return
