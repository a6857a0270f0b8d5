"""Weak classifiers that are functions of a row: oracles and estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.node_inputs.inputs import Inputs
from pboost.data.read.convert import RowTable
from pboost.values import Array, FloatArray, IntArray, TableLike

#: Function of rows and a random generator. It returns -1 or +1, or the probability of +1.
Function: TypeAlias = Callable[..., Any]
#: Tolerance for probabilities outside [0, 1].
SLACK = 1e-9
GIVEN_ANSWERS = "bounds the error of the answers in training, not of predictions"


@dataclass(frozen=True, eq=False)
class Oracles(Inputs):
    """Node inputs that are outputs of functions: input i is the output of function i.

    Attributes
    ----------
    functions : tuple
        Oracle functions or fitted estimators.
    is_random : bool
        Whether they are oracles, whose outputs can differ between calls.
    row_shape : tuple of int or None
        Shape of a row of X in training. None for a data frame.
    """

    functions: tuple[Any, ...]
    is_random: bool
    row_shape: tuple[int, ...] | None

    @property
    def note(self) -> str:  # type: ignore[override]
        """Text that explains the certificate of oracles; empty for estimators."""
        return GIVEN_ANSWERS if self.is_random else ""

    @property
    def n_inputs(self) -> int:
        """Number of functions."""
        return len(self.functions)

    def validate(self, n_features: int) -> None:
        """Raise ValueError if the functions do not accept rows with this number of features."""
        shape = self.row_shape
        if shape is not None and n_features != (shape[0] if shape else 1):
            raise ValueError(f"inputs: expected rows of shape {shape}, got {n_features} features")

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the functions."""
        kind = "oracle" if self.is_random else "estimator"
        return tuple(f"{kind} {i}" for i in range(self.n_inputs))

    def question(self, names: Sequence[str], number: int, threshold: float) -> str:
        """Return the text of the condition of a node."""
        if self.is_random:
            return f"{names[number]} answers -1"
        return super().question(names, number, threshold)

    def answer(self, names: Sequence[str], number: int, value: Callable[[int], float]) -> str:
        """Return the text of the output of an oracle."""
        return f"{names[number]} answers {value(number):+.0f}" if self.is_random else ""

    def columns_read(self) -> tuple[IntArray, IntArray]:
        """Raise NotImplementedError, because functions may use any feature."""
        raise NotImplementedError(
            "model: cannot determine the features used by weak classifiers that are functions of a "
            "row; use permutation_importance instead"
        )

    def select(self, kept: NDArray[np.int32]) -> Oracles:
        """Return a subset of the functions."""
        return Oracles(tuple(self.functions[i] for i in kept), self.is_random, self.row_shape)

    def members(self) -> dict[str, Array]:
        """Raise TypeError, because functions cannot be stored in a model file."""
        raise TypeError(
            "model: cannot store weak classifiers that are functions without pickling; pickle the "
            "model, or fit it again"
        )

    def values(self, X: Any) -> FloatArray:
        """Return the outputs for rows X, a `RowTable`, as (n, n_inputs)."""
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
        """Return the outputs of one function for selected rows.

        The default generator for oracles is ``default_rng(number)``. No function is
        called if there are no rows.
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
    """Return the output of an oracle for the n rows X: -1 or +1."""
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
    """Return the probability of +1 predicted by an estimator for the n rows X."""
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
    if not ((above >= -SLACK) & (above <= 1 + SLACK)).all():  # False for NaN
        wrong = above[~((above >= -SLACK) & (above <= 1 + SLACK))]
        raise ValueError(
            f"{where}: predict_proba(): expected probabilities in [0, 1], got {wrong[0]}"
        )
    return np.clip(above, 0.0, 1.0)
