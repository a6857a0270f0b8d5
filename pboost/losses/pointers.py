"""Losses that are C functions of a user."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, get_args

import numpy as np

from pboost._core import pointer
from pboost.losses.base import Loss
from pboost.losses.search import GroupCounts
from pboost.values import FloatArray, Task, check_choice, shown

#: What the functions are, as capsules of Cython and argument types of ctypes say it.
OF_SLOPES = "void (double, double, double *, double *)"
OF_VALUE = "double (double, double)"
_DOUBLE, _PLACE = ctypes.c_double, ctypes.POINTER(ctypes.c_double)
_FUNCTION: Any = ctypes.CFUNCTYPE(None).__mro__[1]
_TYPES = {
    OF_SLOPES: (None, (_DOUBLE, _DOUBLE, _PLACE, _PLACE)),
    OF_VALUE: (_DOUBLE, (_DOUBLE, _DOUBLE)),
}


@dataclass(frozen=True, slots=True, eq=False)
class CompiledLoss(Loss):
    """A loss of labels whose derivatives are a C function; see `compiled`."""

    called: str
    derivatives: int = field(repr=False)
    of_value: int = field(repr=False)
    #: What the functions live in.
    kept: tuple[Any, ...] = field(repr=False)

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss, or by how much it is above that of f = 0."""
        made = pointer.values if self.of_value else pointer.integrals
        return _made(made, self.of_value or self.derivatives, y, f, 1)[0]

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the derivative in f."""
        return self.slopes(y, f)[0]

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the second derivative in f."""
        return self.slopes(y, f)[1]

    def slopes(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the curvature."""
        gradient, curvature = _made(pointer.slopes, self.derivatives, y, f, 2)
        return gradient, curvature

    def leaf_values(
        self, y: FloatArray, f: FloatArray, weight: FloatArray, count: GroupCounts
    ) -> FloatArray:
        """Return the steps at which the gradients of groups come to nothing."""
        step = np.empty(len(count))
        y, f, weight = (np.ascontiguousarray(part, dtype=np.float64) for part in (y, f, weight))
        number, room = np.ascontiguousarray(count, dtype=np.int64), np.empty((2, len(y)))
        pointer.leaf_steps(self.derivatives, y, f, weight, number, self.limit, room, step)
        return step

    def constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the number at which the gradients come to nothing."""
        return float(self.leaf_values(y, np.zeros(len(y)), weight, np.array([len(y)]))[0])

    def __copy__(self) -> CompiledLoss:
        return self

    def __deepcopy__(self, memo: object) -> CompiledLoss:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"the {self._called} loss is a compiled function, an address in this process, which "
            "cannot be pickled"
        )

    @property
    def _called(self) -> str:
        return self.called


@dataclass(frozen=True, slots=True, eq=False)
class CompiledNumbersLoss(CompiledLoss):
    """The same of numbers."""

    is_regression: ClassVar[bool] = True
    limit: ClassVar[float] = np.inf


def compiled(
    derivatives: object, *, name: str = "compiled", task: Task = "regression", value: object = None
) -> Loss:
    """Return the loss whose derivatives are a C function, called for every row without Python.

    Parameters
    ----------
    derivatives : int, function pointer of ctypes, function of Numba, or capsule
        A C function ``void (double y, double f, double *g, double *h)`` which stores the gradient
        in f and the second derivative, >= 0, in g and h: its address, a pointer of `ctypes`,
        what ``numba.cfunc`` returns (anything with an ``address``), or a ``PyCapsule``, as Cython's
        ``__pyx_capi__`` has. The gradient must rise with f, as that of a convex loss does.
    name : str
        How models and errors call the loss.
    task : {"regression", "classification"}
        Whether y are numbers, or labels -1 and +1.
    value : int, function pointer, function of Numba, or capsule, optional
        A C function ``double (double y, double f)``, the loss itself, by which trees are chosen.
        Default: the integral of the gradient from 0 to f, by eight calls.

    Returns
    -------
    Loss
        Derivatives beyond 1e150 in size are refused before the first tree, and end a fit later. It
        keeps the objects that it was given, not what an address belongs to. Functions are
        called by one thread, without the lock of the interpreter; a Python function that `ctypes`
        has wrapped takes the lock itself, at the price of Python. Models with this loss cannot be
        saved or pickled.

    Raises
    ------
    TypeError
        If it is no such function, as far as that can be told.
    ValueError
        If `task` is unknown, or an address is not positive.

    Examples
    --------
    >>> import ctypes
    >>> import numpy as np
    >>> import pboost as pb
    >>> place = ctypes.POINTER(ctypes.c_double)
    >>> @ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_double, place, place)
    ... def half_squared(y, f, g, h):
    ...     g[0], h[0] = f - y, 1.0
    >>> loss = pb.losses.compiled(half_squared, name="half squared")
    >>> loss.constant(np.array([1.0, 2.0, 6.0]), np.ones(3))
    3.0
    """
    check_choice("task", task, get_args(Task))
    if not isinstance(name, str) or not name:
        raise TypeError(f"name: expected words, got {shown(name)}")
    kind = CompiledNumbersLoss if task == "regression" else CompiledLoss
    of_value = 0 if value is None else _address("value", value, OF_VALUE)
    return kind(
        name, _address("derivatives", derivatives, OF_SLOPES), of_value, (derivatives, value)
    )


def _address(name: str, source: object, signature: str) -> int:
    """Return where a function is that was given in one of several ways."""
    function = source
    if isinstance(source, _FUNCTION):
        result, arguments = _TYPES[signature]
        if source.argtypes is not None and (source.restype, source.argtypes) != (result, arguments):
            raise TypeError(f"{name}: expected argument types of a function {signature}")
        function = ctypes.cast(source, ctypes.c_void_p).value or 0
    elif type(source).__name__ == "PyCapsule":
        function, capsule_signature = pointer.address_of(source)
        if (
            capsule_signature is not None
            and "(" in capsule_signature
            and "".join(capsule_signature.split()) != "".join(signature.split())
        ):
            raise TypeError(
                f"{name}: expected a function {signature}, got a capsule of {capsule_signature}"
            )
    elif not isinstance(source, int | np.integer):
        function = getattr(source, "address", None)
    if isinstance(function, bool) or not isinstance(function, int | np.integer):
        raise TypeError(
            f"{name}: expected the address of a function {signature}, a function pointer of "
            f"ctypes, a function with an address, as of Numba, or a PyCapsule, got {shown(source)}; "
            "a Python function is a method of a pboost.losses.Loss"
        )
    if function <= 0:
        raise ValueError(f"{name}: expected an address, a positive number, got {function}")
    return int(function)


def _made(made: Any, function: int, y: FloatArray, f: FloatArray, n: int) -> FloatArray:
    """Return n numbers for each of y and f, of the shape of f."""
    y, f = np.broadcast_arrays(y, f)
    rows = (np.ascontiguousarray(part, dtype=np.float64).ravel() for part in (y, f))
    out = np.empty((n, f.size))
    made(function, *rows, *out)
    return out.reshape(n, *f.shape)
