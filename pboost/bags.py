"""Bags: the rows that each member of an ensemble is trained on, and what the others say of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pboost.arrays import FloatArray, IntArray, freeze
from pboost.checks import scaled_weights
from pboost.model_checks import check_error
from pboost.options import check_integer
from pboost.rng import child, draw_seed
from pboost.threads import Workers
from pboost.values import check_flag

T = TypeVar("T")

#: Arrays of the record of rows out of the bags in files, and their dtypes.
OOB_MEMBERS: dict[str, np.dtype[Any] | None] = {
    "oob_members": np.dtype("<i4"),
    "oob_prediction": np.dtype("<f8"),
}
#: Members per thread that are trained before their results are taken in.
BATCH = 4


@dataclass(frozen=True, slots=True, eq=False)
class OutOfBag:
    """What the members of an ensemble predict for the training rows that they have not seen.

    Attributes
    ----------
    members : ndarray of int32, shape (n,)
        Number of members in whose bag the row was not.
    prediction : ndarray of float64, shape (n, J) or (n,)
        Mean of what they say: the shares of the classes; of a regression, the number. NaN where
        there are none.
    error : float
        Share of rows misclassified by them, or mean squared error, by weight, over the rows with
        such members; NaN if there are none.
    """

    members: IntArray
    prediction: FloatArray
    error: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", freeze(self.members, np.int32))
        object.__setattr__(self, "prediction", freeze(self.prediction, np.float64))
        if self.members.ndim != 1 or self.prediction.shape[:1] != self.members.shape:
            raise ValueError("oob: expected a prediction for each row")
        if not (self.members >= 0).all():
            raise ValueError("oob.members: expected numbers >= 0")
        if np.isinf(self.prediction).any():
            raise ValueError("oob.prediction: expected finite numbers, or NaN")
        check_error("oob.error", self.error)
        object.__setattr__(self, "error", float(self.error))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the field of a file's header and the arrays that hold the record."""
        arrays: dict[str, NDArray[Any]] = {
            "oob_members": self.members,
            "oob_prediction": self.prediction,
        }
        error = None if np.isnan(self.error) else self.error
        return {"oob_error": error}, arrays

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> OutOfBag | None:
        """Return the record of a file, None where there is none."""
        if not OOB_MEMBERS.keys() & arrays.keys():
            return None
        if not OOB_MEMBERS.keys() <= arrays.keys():
            raise ValueError("oob: the record is not complete")
        error = header.get("oob_error")
        error = np.nan if error is None else error
        return cls(arrays["oob_members"], arrays["oob_prediction"], error)


def check_out_of_bag(oob: OutOfBag, labels: NDArray[Any] | None) -> None:
    """Check that a record is that of a model with these labels, or of a regression."""
    shape = () if labels is None else (len(labels),)
    if oob.prediction.shape[1:] != shape:
        raise ValueError(
            f"oob: expected predictions of shape (n, *{shape}), got {oob.prediction.shape}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class MemberStep:
    """One member, as passed to ``callback(step, record)`` of builders of many members.

    Attributes
    ----------
    model : object
        The member.
    oob_error : float
        Out-of-bag error of the members so far, as in `OutOfBag`.
    """

    model: Any
    oob_error: float


Callback = Callable[[int, MemberStep], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Bags:
    """How the rows of the members are drawn: those of member i follow from the seed and i alone.

    Attributes
    ----------
    rows : ndarray of int32, shape (n_positive,)
        The rows of positive weight, from which is drawn.
    weights : ndarray of float64, shape (n,)
        Their weights.
    size : int
        Number of rows drawn.
    replace : bool
        Whether a row can be drawn again.
    seed : tuple of int
        Of all streams.
    """

    rows: IntArray
    weights: FloatArray
    size: int
    replace: bool
    seed: tuple[int, ...]

    def stream(self, member: int) -> np.random.Generator:
        """Return the stream of numbers of a member."""
        return child(self.seed, member)

    def draw(self, member: int) -> tuple[FloatArray, np.random.Generator]:
        """Return the row weights of a member, 0 out of its bag, and its stream of numbers."""
        generator = self.stream(member)
        n = len(self.rows)
        if not self.replace and self.size == n:
            return self.weights, generator
        weights = np.zeros(len(self.weights))
        if self.replace:
            count = np.bincount(generator.integers(0, n, self.size), minlength=n)
            weights[self.rows] = self.weights[self.rows] * count
        else:
            taken = self.rows.take(generator.choice(n, self.size, replace=False, shuffle=False))
            weights[taken] = self.weights.take(taken)
        return weights, generator


def make_bags(
    weights: FloatArray | None, n: int, size: Any, replace: Any, generator: np.random.Generator
) -> Bags:
    """Check the options that say how rows are drawn."""
    replace = check_flag("replace", replace)
    weights = np.ones(n) if weights is None else weights
    rows = np.flatnonzero(weights > 0).astype(np.int32)
    if size is None:
        size = len(rows)
    size = check_integer("size", size, least=1)
    if weights.max(initial=0.0) > np.finfo(np.float64).max / max(size, len(rows)):
        raise ValueError("sample_weight: expected weights with a finite sum in every bag")
    if not replace and size > len(rows):
        raise ValueError(
            f"size: expected at most {len(rows)}, the number of rows of positive weight, where "
            f"rows are drawn once, got {size}"
        )
    return Bags(rows, weights, size, replace, draw_seed(generator))


class Tally:
    """Sums of what members say of rows out of their bags."""

    def __init__(self, n: int, n_classes: int) -> None:
        self.members = np.zeros(n, dtype=np.int32)
        self.total = np.zeros((n, max(n_classes, 1)))
        self.n_classes = n_classes

    def add(self, rows: NDArray[np.intp], said: FloatArray) -> None:
        """Add what one member says of the listed rows, (rows, J) or (rows,)."""
        self.members[rows] += 1
        self.total[rows] += said.reshape(len(rows), self.total.shape[1])

    def close(self, truth: NDArray[Any], weights: FloatArray) -> OutOfBag:
        """Return means, and their error against classes, or numbers, with these weights."""
        mean = np.full(self.total.shape, np.nan)
        seen = np.flatnonzero(self.members)
        mean[seen] = self.total[seen] / self.members[seen, None]
        tested = seen[weights[seen] > 0]
        if self.n_classes:
            loss = (np.argmax(mean[tested], axis=1) != truth[tested]).astype(np.float64)
        else:
            loss = (mean[tested, 0] - truth[tested]) ** 2
        error = np.nan
        if len(tested):
            error = float(np.average(loss, weights=scaled_weights(weights[tested])[0]))
        return OutOfBag(self.members, mean if self.n_classes else mean[:, 0], error)


def tell(
    callback: Callback | None,
    number: int,
    model: Any,
    tally: Tally,
    truth: NDArray[Any],
    weights: FloatArray,
) -> bool:
    """Tell the callback, if there is one, of a member, by its number; returns whether to stop."""
    if callback is None:
        return False
    error = tally.close(truth, weights).error
    return bool(callback(number, MemberStep(model, error)))


def train_members(
    train: Callable[[int], T],
    members: int,
    n_threads: int,
    take: Callable[[T], Any],
) -> None:
    """Call ``take(train(i))`` for each member, in order; `train` runs on several threads.

    Sums that `take` makes do not depend on the number of threads, then. If it returns True, no
    more are taken.
    """
    batch = BATCH * n_threads if n_threads > 1 else 1
    with Workers(n_threads) as workers:
        for start in range(0, members, batch):

            def one(first: int, _: int, start: int = start) -> T:
                return train(start + first)

            for trained in workers.run_each(one, min(batch, members - start)):
                if take(trained):
                    return
