"""Losses whose derivatives are C functions."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, get_args

import numpy as np

from pboost._core import pointer
from pboost.losses.base import Loss
from pboost.losses.line_search import GroupCounts
from pboost.values import FloatArray, Task, check_choice, shown

#: Signatures of the functions, for capsules of Cython and argument types of ctypes.
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
    """A loss for two classes whose derivatives are a C function; see `compiled`."""

    called: str
    derivatives: int = field(repr=False)
    of_value: int = field(repr=False)
    #: Objects that keep the functions alive.
    kept: tuple[Any, ...] = field(repr=False)

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss; if `value` was not passed, subtract the loss at f = 0."""
        made = pointer.values if self.of_value else pointer.integrals
        return _made(made, self.of_value or self.derivatives, y, f, 1)[0]

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the derivative in f."""
        return self.slopes(y, f)[0]

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the second derivative in f."""
        return self.slopes(y, f)[1]

    def slopes(self, y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the second derivative."""
        gradient, curvature = _made(pointer.slopes, self.derivatives, y, f, 2)
        return gradient, curvature

    def leaf_values(
        self, y: FloatArray, f: FloatArray, weight: FloatArray, count: GroupCounts
    ) -> FloatArray:
        """Return the step of each group for which the sum of the gradients is 0."""
        step = np.empty(len(count))
        y, f, weight = (np.ascontiguousarray(part, dtype=np.float64) for part in (y, f, weight))
        number, room = np.ascontiguousarray(count, dtype=np.int64), np.empty((2, len(y)))
        pointer.leaf_steps(self.derivatives, y, f, weight, number, self.limit, room, step)
        return step

    def constant(self, y: FloatArray, weight: FloatArray) -> float:
        """Return the decision value at which the sum of the gradients is 0."""
        return float(self.leaf_values(y, np.zeros(len(y)), weight, np.array([len(y)]))[0])

    def __copy__(self) -> CompiledLoss:
        return self

    def __deepcopy__(self, memo: object) -> CompiledLoss:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"the {self._called} loss is a compiled function and cannot be pickled; "
            "create it again with pboost.losses.compiled"
        )

    @property
    def _called(self) -> str:
        return self.called


@dataclass(frozen=True, slots=True, eq=False)
class CompiledNumbersLoss(CompiledLoss):
    """A regression loss whose derivatives are a C function."""

    is_regression: ClassVar[bool] = True


def compiled(
    derivatives: object, *, name: str = "compiled", task: Task = "regression", value: object = None
) -> Loss:
    """Return a loss from a C function, which is called for each row without Python.

    Parameters
    ----------
    derivatives : int, function pointer of ctypes, function of Numba, or capsule
        C function ``void (double y, double f, double *g, double *h)`` that stores the gradient in g
        and the second derivative, >= 0, in h. It can be an address, a `ctypes` pointer, the result
        of ``numba.cfunc`` or any object with an ``address``, or a ``PyCapsule`` from Cython's
        ``__pyx_capi__``. The gradient must not decrease in f, so the loss must be convex.
    name : str
        Name of the loss in models and error messages.
    task : {"regression", "classification"}
        Type of y: numbers, or the classes -1 and +1.
    value : int, function pointer, function of Numba, or capsule, optional
        C function ``double (double y, double f)`` that returns the loss. Default: the gradient is
        integrated from 0 to f with eight calls.

    Returns
    -------
    Loss
        A loss for `fit_gradient_boosting`. If a derivative exceeds 1e150 in absolute value, the fit
        raises an error before the first tree, and stops after it. Models with this loss cannot be
        saved or pickled.

    Raises
    ------
    TypeError
        If an argument is not such a function. Argument types of plain addresses are not checked.
    ValueError
        If `task` is unknown, or an address is not positive.

    Notes
    -----
    The functions are called by one thread without the interpreter lock. A Python function wrapped
    by `ctypes` acquires the lock itself and runs at the speed of Python. The loss keeps the objects
    passed to it alive. If you pass an address, keep the function alive yourself.

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
        raise TypeError(f"name: expected a non-empty string, got {shown(name)}")
    kind = CompiledNumbersLoss if task == "regression" else CompiledLoss
    of_value = 0 if value is None else _address("value", value, OF_VALUE)
    return kind(
        name, _address("derivatives", derivatives, OF_SLOPES), of_value, (derivatives, value)
    )


def _address(name: str, source: object, signature: str) -> int:
    """Return the address of a function given in one of the supported ways."""
    function = source
    if isinstance(source, _FUNCTION):
        result, arguments = _TYPES[signature]
        if source.argtypes is not None and (source.restype, source.argtypes) != (result, arguments):
            raise TypeError(f"{name}: expected a function {signature}, got other argument types")
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
            f"{name}: expected the address of a function {signature}, a ctypes function pointer, "
            "an object with an address such as a Numba function, or a PyCapsule, got "
            f"{shown(source)}; for a Python function, define a subclass of pboost.losses.Loss"
        )
    if function <= 0:
        raise ValueError(f"{name}: expected a positive address, got {function}")
    return int(function)


def _made(made: Any, function: int, y: FloatArray, f: FloatArray, n: int) -> FloatArray:
    """Call a kernel function for each pair of y and f; return n arrays in the shape of f."""
    y, f = np.broadcast_arrays(y, f)
    rows = (np.ascontiguousarray(part, dtype=np.float64).ravel() for part in (y, f))
    out = np.empty((n, f.size))
    made(function, *rows, *out)
    return out.reshape(n, *f.shape)
