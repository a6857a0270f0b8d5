"""Weak classifiers that are functions of a row: as a model holds them, and how they are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.node_inputs.inputs import Inputs
from pboost.data.read.convert import RowTable
from pboost.values import Array, FloatArray, IntArray, TableLike

#: A function of rows, and of a generator: -1 or +1, or the probability of +1.
Function: TypeAlias = Callable[..., Any]
#: Rounding by which probabilities may leave [0, 1].
SLACK = 1e-9
GIVEN_ANSWERS = "certifies the answers given in training, not those of predictions"


@dataclass(frozen=True, eq=False)
class Oracles(Inputs):
    """What nodes ask: number i of a row is the answer of function i.

    Attributes
    ----------
    functions : tuple
        Of oracles, their functions; of estimators, the fitted estimators.
    is_random : bool
        Whether they are oracles, whose answers may differ from call to call.
    row_shape : tuple of int or None
        Shape of one row of X in training; None where it was a data frame.
    """

    functions: tuple[Any, ...]
    is_random: bool
    row_shape: tuple[int, ...] | None

    @property
    def note(self) -> str:  # type: ignore[override]
        """What to know of a certificate that rests on them."""
        return GIVEN_ANSWERS if self.is_random else ""

    @property
    def n_inputs(self) -> int:
        """Number of functions."""
        return len(self.functions)

    def validate(self, n_features: int) -> None:
        """Raise ValueError if these cannot be asked about rows with this many columns."""
        shape = self.row_shape
        if shape is not None and n_features != (shape[0] if shape else 1):
            raise ValueError(f"inputs: made for rows of shape {shape}, not {n_features} columns")

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return how each is called."""
        kind = "oracle" if self.is_random else "estimator"
        return tuple(f"{kind} {i}" for i in range(self.n_inputs))

    def question(self, names: Sequence[str], number: int, threshold: float) -> str:
        """Return how the test of a node is written."""
        if self.is_random:
            return f"{names[number]} answers -1"
        return super().question(names, number, threshold)

    def answer(self, names: Sequence[str], number: int, value: Callable[[int], float]) -> str:
        """Return what an oracle answered, in words."""
        return f"{names[number]} answers {value(number):+.0f}" if self.is_random else ""

    def columns_read(self) -> tuple[IntArray, IntArray]:
        """Raise NotImplementedError: that is not known of functions."""
        raise NotImplementedError(
            "model: which columns its weak classifiers read is not known, as they are functions of "
            "a row; see permutation_importance"
        )

    def select(self, kept: NDArray[np.int32]) -> Oracles:
        """Return some of the functions only."""
        return Oracles(tuple(self.functions[i] for i in kept), self.is_random, self.row_shape)

    def members(self) -> dict[str, Array]:
        """Raise TypeError: functions are in no file."""
        raise TypeError(
            "model: its weak classifiers are functions, which cannot be stored without pickling; "
            "pickle the model, or fit it again"
        )

    def values(self, X: Any) -> FloatArray:
        """Return the numbers of rows X, a `RowTable`, as (n, n_inputs)."""
        every = np.arange(X.n_rows)
        columns = [self.value(i, X, every) for i in range(self.n_inputs)]
        return np.column_stack(columns) if columns else np.empty((X.n_rows, 0))

    def value(
        self,
        number: int,
        X: RowTable,
        positions: NDArray[np.intp],
        generator: np.random.Generator | None = None,
    ) -> FloatArray:
        """Return the answers of one function to some rows.

        Without a generator oracles are asked with ``default_rng(number)``. No rows are not asked.
        """
        if not len(positions):
            return np.empty(0)
        where = f"model: node {number}"
        rows, function = X.take(positions), self.functions[number]
        if not self.is_random:
            return probability(function, rows, len(positions), where)
        generator = np.random.default_rng(number) if generator is None else generator
        return ask(function, rows, len(positions), generator, where).astype(np.float64)


def ask(
    answer: Function, X: TableLike, n: int, generator: np.random.Generator, where: str
) -> NDArray[np.int8]:
    """Return the answers of an oracle to the n rows X: -1 or +1."""
    try:
        answers = np.asarray(answer(X, generator))
    except Exception as error:
        raise RuntimeError(f"{where}: answer() failed: {error!r}") from error
    if answers.shape != (n,):
        raise ValueError(f"{where}: answer(): expected shape ({n},), got {answers.shape}")
    if answers.dtype.kind not in "iufO" or not np.isin(answers, (-1, 1)).all():
        wrong = answers if answers.dtype.kind not in "iuf" else answers[~np.isin(answers, (-1, 1))]
        raise ValueError(f"{where}: answer(): expected -1 and +1, got {wrong.flat[0]!r}")
    return answers.astype(np.int8)


def probability(estimator: Any, X: Any, n: int, where: str) -> FloatArray:
    """Return the probability of +1 that a fitted estimator gives the n rows X."""
    try:
        probabilities = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    except Exception as error:
        raise RuntimeError(f"{where}: predict_proba() failed: {error!r}") from error
    classes = np.asarray(getattr(estimator, "classes_", (-1, 1))).tolist()
    if sorted(classes) != [-1, 1]:
        raise ValueError(f"{where}: classes_: expected -1 and +1, got {classes}")
    if probabilities.shape != (n, 2):
        raise ValueError(
            f"{where}: predict_proba(): expected shape ({n}, 2), got {probabilities.shape}"
        )
    above = probabilities[:, classes.index(1)]
    if not ((above >= -SLACK) & (above <= 1 + SLACK)).all():  # NaN is neither
        wrong = above[~((above >= -SLACK) & (above <= 1 + SLACK))]
        raise ValueError(f"{where}: predict_proba(): expected probabilities, got {wrong[0]}")
    return np.clip(above, 0.0, 1.0)
