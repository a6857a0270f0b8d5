"""Types and checks of arguments: arrays, numbers, choices, seeds and callbacks."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pboost._core.voting import NO_VOTE as NO_VOTE
from pboost._core.voting import VoteRule as VoteRule
from pboost._core.voting import half_log_odds as half_log_odds
from pboost.values.parameter_aliases import value_here

C = TypeVar("C", bound="Choice")
Text = TypeVar("Text", bound=str)
Array: TypeAlias = NDArray[Any]
FloatArray: TypeAlias = NDArray[np.float64]
#: Feature values, float32 or float64.
Floats: TypeAlias = NDArray[np.floating]
IntArray: TypeAlias = NDArray[np.int32]
#: A table of features passed by the user: array-like, data frame, prepared columns or row source.
TableLike: TypeAlias = object
Seed: TypeAlias = (
    int | np.integer | np.random.SeedSequence | np.random.Generator | np.random.RandomState | None
)
#: Whether to show a progress bar, or a callable that creates one, such as ``tqdm.tqdm``.
Progress: TypeAlias = bool | Callable[..., Any]
#: Function `with_bar` with a callback and `progress` already bound.
Bar: TypeAlias = Callable[..., AbstractContextManager[Callable[..., Any] | None]]

#: Task of a model.
Task: TypeAlias = Literal["classification", "regression"]
#: Methods to compute the votes of a node's exits from class weights.
VoteKind: TypeAlias = Literal["domain", "symmetric"]
#: Marks an option whose value is derived from other options.
Auto: TypeAlias = Literal["auto"]

INT32_MAX = np.iinfo(np.int32).max
#: Maximum number of nodes or leaves of a tree. The number of exits must fit in 32 bits.
MOST_NODES = INT32_MAX // 2
#: Maximum length of a value that is quoted in a message.
LONGEST = 80
#: Description of valid values of `progress`, for messages.
BAR = "True, False or a function that creates a progress bar, such as tqdm.tqdm"


def freeze(array: object, dtype: DTypeLike | None = None) -> Array:
    """Return a C-contiguous, permanently read-only copy of `array`."""
    source = np.ascontiguousarray(array, dtype=dtype)
    # Unlike an array that owns its data, a view of bytes cannot be made writable again.
    return np.frombuffer(source.tobytes(), dtype=source.dtype).reshape(source.shape)


def sealed(array: Array) -> Array:
    """Return a permanently read-only view of an array."""
    # A view of a read-only buffer cannot be made writable again.
    buffer: Any = array
    return np.asarray(memoryview(buffer).toreadonly())


def reject_masked(name: str, values: object) -> None:
    """Raise ValueError if a NumPy mask hides any value."""
    rows = values if isinstance(values, list | tuple) else (values,)
    for number, row in enumerate(rows):
        if isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row):
            hidden = np.argwhere(np.ma.getmaskarray(row))
            at = hidden[0].tolist()
            place = at if row is values else [number, *at]
            raise ValueError(
                f"{name}: expected an array without a mask, got a mask that hides "
                f"{len(hidden)} values, the first at {place}; drop their rows, or "
                "replace the values with the method filled()"
            )


def as_array(name: str, value: object) -> Array:
    """Convert `value` to an array; raise ValueError if it is ragged or masked."""
    reject_masked(name, value)
    try:
        return np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name}: expected an array: {error}") from None


def first_false(right: Array | np.bool_) -> int:
    """Return the index of the first False, or -1 if all are True."""
    return -1 if right.all() else int(right.argmin())


def shown(value: Any) -> str:
    """Return the repr of a value for a message, or its type if the repr is too long."""
    if isinstance(value, int) and value.bit_length() > 3 * LONGEST:
        # Python may raise an error if such a large integer is converted to text.
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.isfunction(value) or inspect.isbuiltin(value):
        return f"the function {value.__name__}"
    is_long = isinstance(value, list | tuple | set | dict) and len(value) > LONGEST
    try:
        text = "" if is_long else repr(value)
    except Exception:  # the repr of an object may raise any error
        text = ""
    if text and len(text) <= LONGEST and "\n" not in text:
        return text
    kind = type(value).__name__
    article = "an" if kind[0].lower() in "aeiou" else "a"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{article} {kind} of shape {shape}"
    return f"{article} {kind} of {len(value)} items" if is_long else f"{article} {kind}"


def install_hint(extra: str, package: str) -> str:
    """Return the command that installs an extra of pboost or the package that it needs."""
    return f'pip install "pboosting[{extra}]" (or pip install {package})'


def hint_missing_call(value: Any) -> str:
    """Return a hint to call `value` if it is a function or class."""
    is_one = inspect.isfunction(value) or isinstance(value, type)
    return f"; call it: {value.__name__}(...)" if is_one else ""


def check_flag(name: str, value: object) -> bool:
    """Return `value` as a bool; raise TypeError for other types."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}: expected True or False, got {shown(value)}")
    return bool(value)


def check_position(name: str, value: Any, n: int) -> int:
    """Return an index of n items as an integer >= 0. Negative indices count from the end."""
    try:
        index = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer or a slice, got {shown(value)}") from None
    if not -n <= index < n:
        raise IndexError(f"{name}: expected a number below {n}, got {index}")
    return index % n


def check_choice(name: str, value: object, choices: Sequence[Text]) -> Text:
    """Return `value`; raise ValueError if it is not one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        expected = ", ".join(map(repr, choices))
        hint = value_here(value, choices)
        raise ValueError(f"{name}: expected one of {expected}, got {shown(value)}{hint}")
    return choices[choices.index(value)]


def check_integer(name: str, value: object, *, min_value: int, max_value: int = INT32_MAX) -> int:
    """Return `value` as an int in [min_value, max_value]."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}: expected an integer, got {shown(value)}")
    if not min_value <= value <= max_value:
        received = shown(int(value))
        raise ValueError(
            f"{name}: expected an integer from {min_value} to {max_value}, got {received}"
        )
    return int(value)


def check_number(
    name: str,
    value: object,
    *,
    min_value: float,
    max_value: float = math.inf,
    open_min: bool = False,
    open_max: bool = False,
) -> float:
    """Return `value` as a finite float between the bounds. The bounds can be open."""
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        raise TypeError(f"{name}: expected a number, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:  # a huge integer
        number = math.inf
    inside = (min_value < number if open_min else min_value <= number) and (
        number < max_value if open_max else number <= max_value
    )
    if not (inside and math.isfinite(number)):
        # Values must be finite: show infinite bounds as open.
        left, right = "(" if open_min else "[", ")" if open_max or max_value == math.inf else "]"
        raise ValueError(
            f"{name}: expected a number in {left}{min_value}, {max_value}{right}, "
            f"got {shown(value)}"
        )
    return number


def check_callback(name: str, callback: object) -> Callable[..., Any] | None:
    """Return `callback`; raise TypeError if it is neither None nor callable."""
    if callback is not None and not callable(callback):
        raise TypeError(f"{name}: expected a function or None, got {shown(callback)}")
    return callback


def check_progress(name: str, progress: Any) -> Progress:
    """Return `progress`; raise an error if no progress bar can be created from it."""
    if not (isinstance(progress, bool | np.bool_) or callable(progress)):
        raise TypeError(f"{name}: expected {BAR}, got {shown(progress)}")
    _bar_maker(progress)  # report a missing tqdm before the work starts
    return progress


def bar_of(options: Mapping[str, Any]) -> Bar:
    """Bind `with_bar` to the callback and the progress option of a fit."""
    return partial(with_bar, options["callback"], options["progress"])


@contextmanager
def with_bar(
    callback: Callable[..., object] | None,
    progress: Progress,
    total: int | None,
    unit: str,
    begun: int = 0,
) -> Iterator[Callable[..., Any] | None]:
    """Yield a function that updates the progress bar and then calls the callback.

    Parameters
    ----------
    callback : callable or None
        Callback of the user.
    progress : bool or callable
        True for a tqdm bar, or a function that creates a bar.
    total : int or None
        Number of the last step, if known.
    unit : str
        Name of a step in the bar.
    begun : int
        Number of steps done before the first call.
    """
    make = _bar_maker(progress)
    if make is None:
        yield callback
        return
    with _made_bar(make, total=total, initial=begun, unit=f" {unit}") as bar:
        done = begun

        def tell(step: int, record: object) -> Any:
            nonlocal done
            bar.update(step - done)
            done = step
            return callback is not None and callback(step, record)

        yield tell


def _made_bar(make: Callable[..., object], **options: Any) -> Any:
    """Create a progress bar; raise TypeError if the result is not a bar."""
    try:
        bar = make(**options)
    except TypeError as error:
        raise TypeError(f"progress: expected {BAR}, got {shown(make)}: {error}") from error
    if not (hasattr(bar, "update") and hasattr(bar, "__enter__")):
        raise TypeError(f"progress: expected {BAR}, got {shown(make)}, which returns {shown(bar)}")
    return bar


def _bar_maker(progress: Any) -> Callable[..., Any] | None:
    """Return the function that creates progress bars, or None if no bar is shown."""
    if callable(progress) or not progress:
        return progress or None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        hint = install_hint("progress", "tqdm")
        raise ImportError(f"progress: tqdm is required but not installed: {hint}") from None
    return tqdm


def child(seed: tuple[int, ...], number: int) -> np.random.Generator:
    """Return a generator that depends only on a seed and a number."""
    return np.random.default_rng(np.random.SeedSequence(list(seed), spawn_key=(number,)))


def draw_seed(generator: np.random.Generator) -> tuple[int, ...]:
    """Draw a seed from which `child` derives generators."""
    return tuple(generator.integers(2**63, size=2).tolist())


#: Bit generators whose state contains only numbers. The first is NumPy's default.
_STORED_BITS = {bits.__name__: bits for bits in (np.random.PCG64, np.random.PCG64DXSM)}


def generator_state(generator: np.random.Generator) -> Mapping[str, Any] | None:
    """Return the state of a generator, or None if a file cannot store it."""
    bits = generator.bit_generator
    return dict(bits.state) if type(bits) in _STORED_BITS.values() else None


def generator_in_state(state: Any) -> np.random.Generator:
    """Return a generator in a stored state; raise ValueError if the state is invalid."""
    try:
        bits = _STORED_BITS[state["bit_generator"]](0)
        bits.state = state
    except (LookupError, TypeError, ValueError, OverflowError):
        raise ValueError(f"expected the state of a generator, got {shown(state)}") from None
    return np.random.Generator(bits)


def draw_key(generator: np.random.Generator) -> int:
    """Draw the key of the counter-based random numbers of a fit."""
    return int(generator.integers(2**64, dtype=np.uint64))


def as_generator(rng: Seed) -> np.random.Generator:
    """Return a NumPy generator for `rng`, following SPEC 7 of Scientific Python.

    Parameters
    ----------
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
        None uses fresh entropy from the system. A generator is returned unchanged. A RandomState
        supplies the seed of a new generator.

    Returns
    -------
    numpy.random.Generator

    Raises
    ------
    TypeError
        If `rng` has another type.
    ValueError
        If `rng` is a negative integer.
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, np.random.RandomState):
        return np.random.default_rng(rng.randint(2**32, size=4, dtype=np.uint32))
    seeds = (int, np.integer, np.random.SeedSequence)
    if isinstance(rng, int | np.integer) and rng < 0:
        raise ValueError(f"rng: expected an integer >= 0, got {shown(int(rng))}")
    if rng is None or (isinstance(rng, seeds) and not isinstance(rng, bool)):
        return np.random.default_rng(rng)
    raise TypeError(
        "rng: expected None, an integer, a SeedSequence, a numpy.random.Generator or a "
        f"numpy.random.RandomState, got {type(rng).__name__}"
    )


class Choice:
    """Base class of the values of the options `weak_learner` and `observation`.

    Attributes
    ----------
    kind : str
        Name of the function that creates it.
    """

    __slots__ = ()

    kind: ClassVar[str]

    def settings(self) -> dict[str, Any]:
        """Return the options as plain values that a model can store."""
        options = [option.name for option in fields(self)]  # type: ignore[arg-type]
        return {"kind": self.kind, **{name: _plain(getattr(self, name)) for name in options}}


def _plain(value: object) -> Any:
    """Return an option as a plain value. A function becomes its name, and infinity None."""
    if isinstance(value, Choice):
        return value.settings()
    if callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    return None if isinstance(value, float) and value == math.inf else value


def check_instance(option: str, base: type[C], value: object) -> C:
    """Return `value`; raise TypeError if it was not created by the option's module."""
    if not isinstance(value, base):
        raise TypeError(
            f"{option}: expected one of pboost.{option.removesuffix('_learner')}, got "
            f"{shown(value)}{hint_missing_call(value)}"
        )
    return value


def vote_rule(kind: object, smoothing: object, learning_rate: object) -> VoteRule:
    """Return the vote rule for checked options of a fit."""
    return VoteRule(
        check_choice("votes", kind, get_args(VoteKind)),
        check_number("smoothing", smoothing, min_value=0.0, max_value=1.0),
        check_number("learning_rate", learning_rate, min_value=0.0, max_value=1.0, open_min=True),
    )
