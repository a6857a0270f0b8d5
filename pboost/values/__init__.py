"""Values that are passed: arrays, numbers, choices, seeds; how they are checked and quoted."""

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
from pboost.values.peers import value_here

C = TypeVar("C", bound="Choice")
Text = TypeVar("Text", bound=str)
Array: TypeAlias = NDArray[Any]
FloatArray: TypeAlias = NDArray[np.float64]
#: Values of rows, float32 or float64.
Floats: TypeAlias = NDArray[np.floating]
IntArray: TypeAlias = NDArray[np.int32]
#: A table of features as users pass it: an array or what makes one, a data frame, columns that were
#: made before, or a source of rows. Code that reads it finds out which of these it is.
TableLike: TypeAlias = object
Seed: TypeAlias = (
    int | np.integer | np.random.SeedSequence | np.random.Generator | np.random.RandomState | None
)
#: Whether a bar shows how far a loop is, or what makes one as ``tqdm.tqdm`` does.
Progress: TypeAlias = bool | Callable[..., Any]
#: `with_bar` of a callback and of `progress`.
Bar: TypeAlias = Callable[..., AbstractContextManager[Callable[..., Any] | None]]

#: What is fitted.
Task: TypeAlias = Literal["classification", "regression"]
#: How the votes of the exits of a node follow from its masses.
VoteKind: TypeAlias = Literal["domain", "symmetric"]
#: What stands for a value that follows from other options.
Auto: TypeAlias = Literal["auto"]

INT32_MAX = np.iinfo(np.int32).max
#: The most nodes or leaves of one tree: the kernels count both exits of each.
MOST_NODES = INT32_MAX // 2
#: The longest text of a value that a message quotes.
LONGEST = 80
#: What `progress` can be.
BAR = "True, False or what makes a bar, as tqdm.tqdm does"


def freeze(array: object, dtype: DTypeLike | None = None) -> Array:
    """Return a C-contiguous copy of `array` that can never be made writeable again."""
    source = np.ascontiguousarray(array, dtype=dtype)
    # A view of immutable bytes, unlike an owning array, refuses setflags(write=True).
    return np.frombuffer(source.tobytes(), dtype=source.dtype).reshape(source.shape)


def sealed(array: Array) -> Array:
    """Return an array, not copied, as one that cannot be made writeable."""
    # A view of a buffer that is read-only refuses setflags(write=True).
    buffer: Any = array
    return np.asarray(memoryview(buffer).toreadonly())


def reject_masked(name: str, values: object) -> None:
    """Raise ValueError if values are hidden by a mask of NumPy; masks that hide none are passed."""
    rows = values if isinstance(values, list | tuple) else (values,)
    for number, row in enumerate(rows):
        if isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row):
            hidden = np.argwhere(np.ma.getmaskarray(row))
            at = hidden[0].tolist()
            place = at if row is values else [number, *at]
            raise ValueError(
                f"{name}: expected an array without a mask, got one that hides "
                f"{len(hidden)} values, the first at {place}; leave their rows out, or "
                "fill them in with its method filled()"
            )


def as_array(name: str, value: object) -> Array:
    """Return `value` as an array; ValueError where it is none, rows of different lengths, say, or
    hides values by a mask.
    """
    reject_masked(name, value)
    try:
        return np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name}: expected an array: {error}") from None


def first_false(right: Array | np.bool_) -> int:
    """Return the place of the first that is False; -1 if there is none."""
    return -1 if right.all() else int(right.argmin())


def shown(value: Any) -> str:
    """Return a value as a message quotes it: itself if that is short, else what kind it is."""
    if isinstance(value, int) and value.bit_length() > 3 * LONGEST:
        return f"an integer of {value.bit_length()} bits"  # Python may refuse to write it
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.isfunction(value) or inspect.isbuiltin(value):
        return f"the function {value.__name__}"
    is_long = isinstance(value, list | tuple | set | dict) and len(value) > LONGEST
    try:
        text = "" if is_long else repr(value)
    except Exception:  # of an object of the user's
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
    """Return the command that installs an extra of pboost, and the one for its package alone."""
    return f'pip install "pboosting[{extra}]" (or pip install {package})'


def hint_missing_call(value: Any) -> str:
    """Return what a message adds where a function or class stands in place of what it returns."""
    is_one = inspect.isfunction(value) or isinstance(value, type)
    return f"; call it: {value.__name__}(...)" if is_one else ""


def check_flag(name: str, value: object) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}: expected True or False, got {shown(value)}")
    return bool(value)


def check_position(name: str, value: Any, n: int) -> int:
    """Return an index into n things, which may count from their end, as one from 0 on."""
    try:
        index = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer or a slice, got {shown(value)}") from None
    if not -n <= index < n:
        raise IndexError(f"{name}: expected a number below {n}, got {index}")
    return index % n


def check_choice(name: str, value: object, choices: Sequence[Text]) -> Text:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        expected = ", ".join(map(repr, choices))
        hint = value_here(value, choices)
        raise ValueError(f"{name}: expected one of {expected}, got {shown(value)}{hint}")
    return choices[choices.index(value)]


def check_integer(name: str, value: object, *, min_value: int, max_value: int = INT32_MAX) -> int:
    """Return `value` as an int in [least, most]."""
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
    """Return `value` as a finite float in [least, most], an end left out where it is open."""
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        raise TypeError(f"{name}: expected a number, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:  # of an integer
        number = math.inf
    inside = (min_value < number if open_min else min_value <= number) and (
        number < max_value if open_max else number <= max_value
    )
    if not (inside and math.isfinite(number)):
        # Infinity is no finite number: the end is open there.
        left, right = "(" if open_min else "[", ")" if open_max or max_value == math.inf else "]"
        raise ValueError(
            f"{name}: expected a number in {left}{min_value}, {max_value}{right}, got {shown(value)}"
        )
    return number


def check_callback(name: str, callback: object) -> Callable[..., Any] | None:
    """Return `callback` if it is None or can be called."""
    if callback is not None and not callable(callback):
        raise TypeError(f"{name}: expected a function or None, got {shown(callback)}")
    return callback


def check_progress(name: str, progress: Any) -> Progress:
    """Return what says whether there is a bar, if there can be one."""
    if not (isinstance(progress, bool | np.bool_) or callable(progress)):
        raise TypeError(f"{name}: expected {BAR}, got {shown(progress)}")
    _bar_maker(progress)  # before the work rather than after it
    return progress


def bar_of(options: Mapping[str, Any]) -> Bar:
    """Return what makes the callback of a loop, see `with_bar`, by the options of a fit."""
    return partial(with_bar, options["callback"], options["progress"])


@contextmanager
def with_bar(
    callback: Callable[..., object] | None,
    progress: Progress,
    total: int | None,
    unit: str,
    begun: int = 0,
) -> Iterator[Callable[..., Any] | None]:
    """Yield what a loop calls after each step: the callback, and with `progress` a bar before it.

    Parameters
    ----------
    callback : callable or None
        What the user gave.
    progress : bool or callable
        True for a bar of tqdm, or what makes one.
    total : int or None
        The number of the last step, if it is known.
    unit : str
        What is counted.
    begun : int
        Steps that are done before the first call.
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
    """Return a bar; TypeError where what is made is none."""
    try:
        bar = make(**options)
    except TypeError as error:
        raise TypeError(f"progress: expected {BAR}, got {shown(make)}: {error}") from error
    if not (hasattr(bar, "update") and hasattr(bar, "__enter__")):
        raise TypeError(f"progress: expected {BAR}, got {shown(make)}, which makes {shown(bar)}")
    return bar


def _bar_maker(progress: Any) -> Callable[..., Any] | None:
    """Return what makes a bar, None where none is wanted."""
    if callable(progress) or not progress:
        return progress or None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        hint = install_hint("progress", "tqdm")
        raise ImportError(f"progress: a bar needs tqdm: {hint}") from None
    return tqdm


def child(seed: tuple[int, ...], number: int) -> np.random.Generator:
    """Return one of the streams that follow from a seed, by its number alone."""
    return np.random.default_rng(np.random.SeedSequence(list(seed), spawn_key=(number,)))


def draw_seed(generator: np.random.Generator) -> tuple[int, ...]:
    """Draw the seed of as many streams as will be wanted."""
    return tuple(generator.integers(2**63, size=2).tolist())


#: Generators whose state is plain numbers; the first is NumPy's own choice.
_STORED_BITS = {bits.__name__: bits for bits in (np.random.PCG64, np.random.PCG64DXSM)}


def generator_state(generator: np.random.Generator) -> Mapping[str, Any] | None:
    """Return the state of a generator, which a file can hold; None of one that it cannot."""
    bits = generator.bit_generator
    return dict(bits.state) if type(bits) in _STORED_BITS.values() else None


def generator_in_state(state: Any) -> np.random.Generator:
    """Return a generator in a state; ValueError where it is none."""
    try:
        bits = _STORED_BITS[state["bit_generator"]](0)
        bits.state = state
    except (LookupError, TypeError, ValueError, OverflowError):
        raise ValueError(f"expected the state of a generator, got {shown(state)}") from None
    return np.random.Generator(bits)


def draw_key(generator: np.random.Generator) -> int:
    """Return the key of the random numbers of one fit."""
    return int(generator.integers(2**64, dtype=np.uint64))


def as_generator(rng: Seed) -> np.random.Generator:
    """Return a generator from `rng`, after SPEC 7 of the Scientific Python project.

    Parameters
    ----------
    rng : None, int, numpy.random.SeedSequence, numpy.random.Generator or numpy.random.RandomState
        None draws fresh entropy from the system; a generator is used as it is; of a RandomState,
        as scikit-learn has them, the next numbers are the seed of one.

    Returns
    -------
    numpy.random.Generator

    Raises
    ------
    TypeError
        For anything else.
    ValueError
        For an integer below 0.
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, np.random.RandomState):
        return np.random.default_rng(rng.randint(2**32, size=4, dtype=np.uint32))
    seeds = (int, np.integer, np.random.SeedSequence)
    if isinstance(rng, int | np.integer) and rng < 0:
        raise ValueError(f"rng: expected an integer of 0 or more, got {shown(int(rng))}")
    if rng is None or (isinstance(rng, seeds) and not isinstance(rng, bool)):
        return np.random.default_rng(rng)
    raise TypeError(
        "rng: expected None, an integer, a SeedSequence, a numpy.random.Generator or a "
        f"numpy.random.RandomState, got {type(rng).__name__}"
    )


class Choice:
    """Base of what the options `weak_learner` and `observation` can be.

    Attributes
    ----------
    kind : str
        Its name: that of the function that makes it.
    """

    __slots__ = ()

    kind: ClassVar[str]

    def settings(self) -> dict[str, Any]:
        """Return the options as plain values, for the model's record of how it was made."""
        options = [option.name for option in fields(self)]  # type: ignore[arg-type]
        return {"kind": self.kind, **{name: _plain(getattr(self, name)) for name in options}}


def _plain(value: object) -> Any:
    """Return an option as a plain value: a function's name, None for infinity."""
    if isinstance(value, Choice):
        return value.settings()
    if callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    return None if isinstance(value, float) and value == math.inf else value


def check_instance(option: str, base: type[C], value: object) -> C:
    """Return what an option was given, if it is one of those that the room of its name makes."""
    if not isinstance(value, base):
        raise TypeError(
            f"{option}: expected one of pboost.{option.removesuffix('_learner')}, got "
            f"{shown(value)}{hint_missing_call(value)}"
        )
    return value


def vote_rule(kind: object, smoothing: object, learning_rate: object) -> VoteRule:
    """Return the rule of votes that a builder's options mean, checked."""
    return VoteRule(
        check_choice("votes", kind, get_args(VoteKind)),
        check_number("smoothing", smoothing, min_value=0.0, max_value=1.0),
        check_number("learning_rate", learning_rate, min_value=0.0, max_value=1.0, open_min=True),
    )
