"""What `continue_fit` keeps between calls, in an object that belongs to the caller."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from pboost.data.columns.columns import BinnedColumns, SortedColumns
from pboost.data.read.check_xy import label_array
from pboost.data.read.codes import RowLabels
from pboost.data.read.convert import Features
from pboost.data.row_digest import hashes
from pboost.data.targets import SoftLabels
from pboost.models.evaluate.new_rows import columns_to_fit
from pboost.values import shown


class FitState:
    """The state of a fit, which makes many short calls of `continue_fit` nearly as fast as one.

    Pass a new one to the first call of a series of `continue_fit`, and the same object to each call
    after it, with the model that the call before returned and the same data. A call then starts
    where the call before ended: it neither prepares the data nor evaluates the model again. The
    models are the same as without a state, bit for bit.

    A state holds the bins or the sorted columns, the decision values or the weights of the training
    rows, and the arrays that training works in. It belongs to the caller: models never refer to it.

    It is for one model and one set of data. If `model`, `X`, `y`, `sample_weight` or `validation`
    is another than in the call before, `continue_fit` raises ValueError; values of X are compared
    by a hash of each row. If training is interrupted by an exception, the state is empty, like a
    new one. It cannot be copied or pickled.

    Attributes
    ----------
    model : DecisionGraph, StagewiseModel or None
        The model that it continues; None if it is empty.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> y = X[:, 0] * X[:, 1]
    >>> model = pb.fit_stagewise(X, y, steps=1)
    >>> state = pb.FitState()
    >>> for _ in range(99):
    ...     model = pb.continue_fit(model, X, y, steps=1, state=state)
    >>> model
    <fit_stagewise: 100 trees, 4 features, squared loss>
    """

    __slots__ = ("_fit", "_model", "_rows")

    def __init__(self) -> None:
        self._model: Any = None
        self._rows: Mapping[str, Any] = {}
        self._fit: Any = None

    @property
    def model(self) -> Any:
        """The model that it continues; None if it is empty."""
        return self._model

    def __repr__(self) -> str:
        return "<FitState: empty>" if self._fit is None else f"<FitState: {self._model!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a FitState cannot be copied or pickled; pass a new one to continue_fit")


def take(state: FitState, model: Any, rows: Mapping[str, Any]) -> Any:
    """Return the fit that was kept for this model and these rows, None if there is none.

    The state is then empty. `rows` has the fingerprints of the data, by argument.
    """
    fit = state._fit
    if fit is None:
        return None
    if model is not state._model:
        raise ValueError(
            "model: expected the model that continue_fit returned with this state, "
            f"{state._model!r}, got another, {model!r}; pass a new FitState() for it"
        )
    for name, found in rows.items():
        kept = state._rows[name]
        if not (kept is found or (type(kept) is bytes and kept == found)):
            raise ValueError(
                f"{name}: expected the values that the state was made with, got others; pass "
                "them, or a new FitState()"
            )
    keep(state, None, {}, None)
    return fit


def keep(state: FitState, model: Any, rows: Mapping[str, Any], fit: Any) -> None:
    """Keep a fit for the next call, which is to be with this model and these rows."""
    state._model, state._rows, state._fit = model, rows, fit


def check_state(state: Any, rng: Any) -> FitState:
    """Return the option `state` if it is one; with it `rng` must be None."""
    if not isinstance(state, FitState):
        raise TypeError(f"state: expected a FitState or None, got {shown(state)}")
    if rng is not None:
        raise ValueError(
            "rng: expected None with state=, which keeps what has been drawn; without a state rng "
            "is taken"
        )
    return state


def fingerprints(model: Any, X: Any, y: Any, sample_weight: Any, validation: Any) -> dict[str, Any]:
    """Return what tells the data of a call from others, by argument: a digest of arrays.

    X is as `columns_to_fit` returns it; prepared columns cannot change and stand for themselves.
    """
    found = {"X": X, "y": y, "sample_weight": sample_weight}
    if isinstance(validation, tuple | list) and 2 <= len(validation) <= 3:
        more = "validation X", "validation y", "validation sample_weight"
        values = columns_to_fit(model, validation[0]), *(*validation[1:], None)[:2]
        found |= dict(zip(more, values, strict=True))
    return {name: _fingerprint(values) for name, values in found.items()}


def _fingerprint(values: Any) -> Any:
    if values is None or isinstance(values, SortedColumns | BinnedColumns):
        return values
    if isinstance(values, SoftLabels):
        return _digest(values.labels, values.share)
    if isinstance(values, RowLabels):
        return _digest(values.labels, values.codes)
    if isinstance(values, Features):
        return _digest(np.array(values.values.shape), hashes(values.values))
    return _digest(label_array(values))


def _digest(*arrays: Any) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for array in arrays:
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.digest()
