"""Declare and check the options of fit functions, and suggest names for unknown options.

Options that several fit functions share are the fields of a `TypedDict`, each declared once::

    class SizeOptions(TypedDict, total=False):
        max_depth: Annotated[int | None, Option(None, check_integer, min_value=1)]

The docstring of the class describes the options. A fit function takes them as ``**options:
Unpack[SizeOptions]``, so that editors and type checkers show their names and types. The decorator
`builder` adds them to its signature and docstring, checks their values and fills in defaults.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from functools import cache, partial, wraps
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypedDict,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pboost.values import Progress, Seed, check_callback, check_choice, check_progress, shown
from pboost.values.parameter_aliases import ELSEWHERE, alias_hint, owner_hint

Fit = TypeVar("Fit", bound=Callable[..., Any])
#: Functions with these parameters do not add their name to a MulticlassError.
OF_BUILDERS = {"fit", "base_learner", "model"}
#: Options with a value for each row or feature, which are no examples of options.
OF_ROWS = ("y_proba", "classes", "sample_weight", "categorical_features")
#: Similarity from 0 to 1 above which an unknown option is treated as a typo.
LIKE = 0.75
#: Pattern of a parameter in a docstring with its names, type and description.
PARAMETER = re.compile(r"^(\w[\w, ]*) : ?(.*)\n((?:    .*\n)*)", re.MULTILINE)
#: Pattern of a parameter's entry in a docstring, and the placeholder for a group of options.
ENTRY = re.compile(r"^(\S.*\n)((?:    .*\n)*)", re.MULTILINE)
REST = "**options"
TITLE = "Parameters\n----------\n"
#: Undecorated function of each decorated function.
_PLAIN: dict[Callable[..., Any], Callable[..., Any]] = {}


class MulticlassError(ValueError):
    """Raised if the target of a binary fit function has more than two classes."""

    __module__ = "pboost.models"  # its public module

    def __init__(self, message: str, instead: str = "") -> None:
        super().__init__(message)
        self.message, self.instead = message, instead

    def name_builder(self, name: str) -> None:
        """Add a hint that contains the name of the called function to the message."""
        if self.instead:
            self.args = (f"{self.message}: {self.instead.format(name)}",)


class NoLabelsError(TypeError):
    """Raised if neither class labels nor class probabilities are passed."""


class Option:
    """Default and check of an option, used in the annotation of a field.

    Fields of type `Literal`, or `Literal` and None, are checked against their choices.

    Parameters
    ----------
    default : object
        The default value.
    check : callable, optional
        Called as ``check(name, value, **limits)``. Returns the value to use or raises an error.
        Skipped for None if the type includes None.
    **limits
        Further arguments of `check`.
    """

    def __init__(self, default: Any, check: Callable[..., Any] | None = None, **limits: Any):
        self.default = default
        self.check = partial(check, **limits) if check is not None and limits else check


class Declared(NamedTuple):
    """Declaration of an option.

    Attributes
    ----------
    annotation : str
        The type, as source text.
    default : object
        The default value.
    check : callable or None
        Called as ``check(name, value)``. None accepts any value.
    takes_none : bool
        Whether None is accepted without a check.
    entry : str
        Entry in the docstring.
    type : object
        The evaluated `annotation`.
    """

    annotation: str
    default: Any
    check: Callable[..., Any] | None
    takes_none: bool
    entry: str
    type: Any


@cache
def declared(group: type) -> Mapping[str, Declared]:
    """Return the options of a group in order of declaration."""
    hints = get_type_hints(group, include_extras=True)
    return {name: _declared(group, name, hints[name]) for name in group.__annotations__}


def _declared(group: type, name: str, hint: Any) -> Declared:
    (option,) = hint.__metadata__
    reference, kind = group.__annotations__[name], hint.__origin__
    kinds = get_args(kind) if type(None) in get_args(kind) else (kind,)
    members = [member for member in kinds if member is not type(None)]
    is_choice = len(members) == 1 and get_origin(members[0]) is Literal
    choices = get_args(members[0]) if is_choice else ()
    check = option.check or (partial(check_choice, choices=choices) if choices else None)
    text = reference.__forward_arg__.removeprefix("Annotated[").rpartition(", Option(")[0]
    # A TypedDict has no list of base classes. An inherited field is recognized by its annotation.
    home = vars(sys.modules[reference.__forward_module__]).values()
    owners = [
        owner
        for owner in home
        if is_typeddict(owner) and owner.__annotations__.get(name) is reference
    ]
    entries = (entries_of(owner.__doc__) for owner in (group, *owners))
    entry = next((described[name] for described in entries if name in described), "")
    return Declared(text, option.default, check, type(None) in kinds, entry, kind)


def checked(group: type, options: Mapping[str, Any]) -> Any:
    """Return all options of a group, checked and with defaults. Other options are ignored."""
    result = {}
    for name, option in declared(group).items():
        value = options.get(name, option.default)
        if option.check is not None and not (value is None and option.takes_none):
            value = option.check(name, value)
        result[name] = value
    return result


def filled(group: type, options: Mapping[str, Any]) -> Any:
    """Return all options of a group with defaults. The options are not checked."""
    return {
        name: options.get(name, declaration.default)
        for name, declaration in declared(group).items()
    }


def entries_of(docstring: str | None) -> dict[str, str]:
    """Return a mapping from the parameters in a docstring to their entries.

    If several parameters share an entry, it is returned for the first parameter.
    """
    text = inspect.cleandoc(docstring or "").partition(TITLE)[2].partition("\n\n")[0] + "\n"
    entries: dict[str, str] = {}
    for head, words in ENTRY.findall(text):
        first, *others = head.rstrip().partition(" :")[0].split(", ")
        entries |= {first: head + words, **dict.fromkeys(others, "")}
    return entries


def builder(fit: Fit) -> Fit:
    """Decorate a fit function, a function with a group of options, or another public function.

    The decorated function checks the options. For an unknown option the error suggests a similar
    name, and for more than two classes it suggests another function. For a missing argument, the
    error describes the argument.
    """
    group = _group_of(fit)
    signature = inspect.signature(fit) if group is None else _declare(fit, group)
    names = signature.parameters.keys()

    @wraps(fit)
    def answering(*args: object, **options: Any) -> Any:
        is_known = group is None or options.keys() <= names
        try:
            if is_known:
                if group is not None:
                    options |= checked(group, options)
                return fit(*args, **options)
        except TypeError as error:
            at = error.__traceback__
            if at is not None and at.tb_next is not None and not isinstance(error, NoLabelsError):
                raise  # the error was raised inside the function
        except MulticlassError as error:
            if OF_BUILDERS.isdisjoint(names):
                error.name_builder(fit.__name__)
            raise
        _refuse_call(fit, args, options)
        return fit(*args, **options)  # for other errors, Python's message is clear

    # A wrapper by a user copies the attributes of `answering`, so the signature is set on `fit`.
    fit.__signature__ = signature  # type: ignore[attr-defined]
    _PLAIN[answering] = fit
    return answering  # type: ignore[return-value]


def _group_of(fit: Callable[..., Any]) -> Any:
    """Return the group of options that a function takes, or None."""
    text = next((t for t in fit.__annotations__.values() if str(t).startswith("Unpack[")), None)
    return None if text is None else fit.__globals__[text[len("Unpack[") : -1]]


def _declare(fit: Any, group: type) -> inspect.Signature:
    """Add the options of a group to the docstring and annotations. Return the new signature."""
    signature, shared = inspect.signature(fit), declared(group)
    named = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    more = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=option.annotation,
        )
        for name, option in shared.items()
    ]
    parameters = [*named, *more]
    returned = {"return": fit.__annotations__["return"]}
    # With evaluated types, `typing.get_type_hints` works in any module.
    types = {name: option.type for name, option in shared.items()}
    fit.__annotations__ = {p.name: types.get(p.name, p.annotation) for p in parameters} | returned
    if fit.__doc__ is not None:  # python -OO
        fit.__doc__ = _described(fit.__doc__, [p.name for p in parameters], shared)
    return signature.replace(parameters=parameters)


def _described(docstring: str, order: list[str], shared: Mapping[str, Declared]) -> str:
    """Insert the entries of shared options into a docstring, unless it already has them."""
    text = inspect.cleandoc(docstring)
    head, _, rest = text.partition(TITLE)
    entries = entries_of(docstring)
    del entries[REST]
    entries = {name: declaration.entry for name, declaration in shared.items()} | entries
    section = "".join(entries[name] for name in sorted(entries, key=order.index))
    return head + TITLE + section + "\n" + rest.partition("\n\n")[2]


class Kinds(dict[str, Callable[..., Any]]):
    """A mapping from names to functions that create the values of an option."""

    def add(self, make: Fit) -> Fit:
        """Decorate a function with `builder` and register it."""
        self[make.__name__] = made = builder(make)
        return made


def _refuse_call(
    fit: Callable[..., object], arguments: tuple[object, ...], options: Mapping[str, object]
) -> None:
    """Raise TypeError for an unknown option or a missing fit function."""
    known = option_names(fit)
    takes_builder = known[:1] == ["fit"]
    first = arguments[0] if arguments else options.get("fit")
    named = [*options]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in _parameters(fit)):
        # The option may belong to the fit function that receives these options.
        named = [name for name in options if alias_hint(name, {"": known})]
    elif takes_builder and inspect.isfunction(first):
        theirs = option_names(first)
        if passed := [name for name in options if name in theirs and name not in known]:
            called = first.__name__
            shown_options = ", ".join(f"{name}={shown(options[name])}" for name in passed)
            raise TypeError(
                f"{passed[0]}: expected an option of {fit.__name__}, got an option of {called}; "
                f"pass functools.partial({called}, {shown_options})"
            )
    refuse_unknown(named, known, fit.__name__)
    if takes_builder and not callable(first):
        raise TypeError(
            "fit: expected a fit function such as fit_cart as the first argument, got "
            f"{shown(first)}{_hint_unfitted(first)}"
        )
    _refuse_positions(fit, arguments)
    _refuse_missing(fit, arguments, options)


def _refuse_positions(fit: Callable[..., object], arguments: tuple[object, ...]) -> None:
    """Raise TypeError for more positional arguments than the function has."""
    parameters = _parameters(fit)
    taken = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    options = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in OF_ROWS]
    if len(arguments) <= len(taken) or not options:
        return  # without options, Python's message is clear
    surplus = arguments[len(taken)]
    hint = f"pass options by name, such as {options[0]}={shown(surplus)}"
    if isinstance(surplus, os.PathLike) or (isinstance(surplus, str) and "." in surplus):
        hint = ELSEWHERE["path"]
    raise TypeError(
        f"{fit.__name__}: expected only {', '.join(taken)} without a name, got {len(arguments)} "
        f"arguments; {hint}"
    )


def _refuse_missing(
    fit: Callable[..., object], arguments: tuple[object, ...], options: Mapping[str, object]
) -> None:
    """Raise TypeError for an argument without a default that was not passed."""
    entries = parameters_in(fit.__doc__)
    for parameter in _parameters(fit)[len(arguments) :]:
        is_named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if is_named and parameter.default is parameter.empty and parameter.name not in options:
            kind, words = entries.get(parameter.name, ("a value", ""))
            summary = " ".join(words.split()).partition(". ")[0].rstrip(".")
            raise TypeError(
                f"{parameter.name}: {fit.__name__} requires this argument: {kind}"
                + f" ({summary})" * bool(summary)
            )


def _hint_unfitted(value: object) -> str:
    """Return a hint to pass a fit function in place of a fitted model."""
    is_fitted = hasattr(value, "predict") and not hasattr(value, "get_params")
    return "; pass the fit function itself, not the model that it returns" if is_fitted else ""


def check_fit(
    caller: Callable[..., object],
    name: str,
    fit: object,
    options: Mapping[str, object],
    needs: Iterable[str] = (),
) -> Callable[..., Any]:
    """Return `fit` if it is a function that accepts the options passed on to it.

    Options bound by ``functools.partial`` are checked too. A function with ``**options`` accepts
    any option.

    Parameters
    ----------
    caller : callable
        Public function that passes the options on.
    name : str
        Name of its argument that contains `fit`.
    fit : object
        Value passed by the user.
    options : mapping
        Options passed on to `fit`.
    needs : iterable of str
        Arguments that `fit` must accept in addition to X and y.
    """
    if not callable(fit):
        raise _no_fit(name, fit, caller)
    function, inner = unwrapped(fit)
    all_options = {**inner, **options}
    try:
        parameters = _parameters(function)
    except (TypeError, ValueError):  # some compiled functions have no signature
        if isinstance(function, type):
            raise _no_fit(name, fit, caller) from None
        return fit
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return fit
    known = option_names(function)
    called = getattr(function, "__name__", type(function).__name__)
    refuse_unknown(all_options, known, called, caller)
    try:
        inspect.signature(fit).bind_partial(None, None)
    except TypeError:
        raise _no_fit(name, fit, caller) from None
    missing = [option for option in needs if option not in known]
    if missing:
        raise TypeError(
            f"{name}: expected a function with an argument {missing[0]}, got {shown(fit)}"
        )
    return fit


def unwrapped(fit: object) -> tuple[Any, dict[str, Any]]:
    """Return the function inside ``functools.partial`` and the options bound to it."""
    bound: dict[str, Any] = {}
    while isinstance(fit, partial):
        bound = {**fit.keywords, **bound}  # outer options take precedence
        fit = fit.func
    return fit, bound


def only_classifies(fit: object) -> bool:
    """Return whether this is a fit function of pboost that does not support regression."""
    return inspect.isfunction(fit) and fit in _PLAIN and "task" not in option_names(fit)


def options_within(fit: object, options: Mapping[str, object]) -> dict[str, Any] | None:
    """Return the options of nested fit functions, or None if a function was defined by the user.

    Options of the outer function take precedence.
    """
    bound = dict(options)
    while True:
        while isinstance(fit, partial):
            bound = {**fit.keywords, **bound}  # outer options take precedence
            if fit.args:
                bound["fit"] = fit.args[0]
            fit = fit.func
        if not inspect.isfunction(fit) or fit not in _PLAIN:
            return None
        fit = bound.pop("fit", None) or bound.pop("base_learner", None)
        if fit is None:
            return bound


def _no_fit(name: str, fit: object, caller: Callable[..., object]) -> TypeError:
    is_validation = caller.__name__ == "cross_validate" and hasattr(fit, "get_params")
    hint = "; for estimators: sklearn.model_selection.cross_validate" if is_validation else ""
    hint = hint or _hint_unfitted(fit)
    return TypeError(
        f"{name}: expected a function of X and y such as fit_cart, got {shown(fit)}" + hint
    )


def option_names(function: Callable[..., object]) -> list[str]:
    """Return the parameters of a function that can be passed by name."""
    parameters = _parameters(function)
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return [parameter.name for parameter in parameters if parameter.kind in kinds]


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the parameters of a function before it was decorated by `builder`."""
    plain = _PLAIN.get(function, function) if inspect.isfunction(function) else function
    return [*inspect.signature(plain, follow_wrapped=False).parameters.values()]


def parameters_in(docstring: str | None) -> dict[str, tuple[str, str]]:
    """Return the type and description of each parameter in a numpydoc docstring.

    The description is empty for parameters that share an entry.
    """
    text = inspect.cleandoc(docstring or "").partition(TITLE)[2]
    return {
        name: (kind, textwrap.dedent(words) if name == names else "")
        for names, kind, words in PARAMETER.findall(text.partition("\n\n")[0] + "\n")
        for name in names.split(", ")
    }


def refuse_unknown(
    options: Iterable[str],
    known: Collection[str],
    builder: str,
    caller: Callable[..., object] | None = None,
    renamed: Mapping[str, str] | None = None,
) -> None:
    """Raise a TypeError for an unknown option. The message suggests a name.

    Parameters
    ----------
    options : iterable of str
        Options passed by the user.
    known : collection of str
        Options of the fit function.
    builder : str
        Name of the fit function.
    caller : callable, optional
        Function that passes the options on to the fit function.
    renamed : mapping, optional
        Options of fit functions that have another name in `known`.
    """
    takers, passed = {builder: known}, ""
    if caller is not None:
        takers = {caller.__name__: option_names(caller), **takers}
        passed = f", called by {caller.__name__},"
    for option in options:
        if option in known:
            continue
        if peer_hint := alias_hint(option, takers, renamed):
            raise TypeError(f"{option}: {peer_hint}")
        names = [name for names in takers.values() for name in names]
        near = get_close_matches(option, names, 1, cutoff=LIKE)
        listed = ", ".join(sorted({*known} - {"X", "y"}))
        hint = f"; did you mean {near[0]}?" if near else owner_hint(option) or f"; it has {listed}"
        raise TypeError(f"{option}: {builder}{passed} has no such option{hint}")


def arguments_of(fit: Callable[..., object]) -> Collection[str]:
    """Return the parameter names of a function. Without a signature, there are none."""
    try:
        return inspect.signature(fit).parameters
    except (TypeError, ValueError):  # not written in Python
        return ()


def takes_rng(fit: Callable[..., object]) -> bool:
    """Return whether a function has an argument `rng` that is not bound yet."""
    return "rng" in arguments_of(fit) and "rng" not in unwrapped(fit)[1]


class SeedOption(TypedDict, total=False):
    """Option for the source of randomness.

    Parameters
    ----------
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Seed or generator of random numbers. Pass an int for reproducible results.
    """

    rng: Annotated[Seed, Option(None)]


class ThreadOption(TypedDict, total=False):
    """Option for the number of threads.

    Parameters
    ----------
    n_threads : int or None
        Number of threads; -1 uses all cores. None chooses a number that suits the amount of
        work. The model does not depend on it.
    """

    n_threads: Annotated[int | None, Option(None)]


class BarOptions(TypedDict, total=False):
    """Options that report the progress of a fit.

    Parameters
    ----------
    callback : callable, optional
        Called as ``callback(step, record)`` after each step. Return True to stop the fit.
    progress : bool or callable
        Whether to show a progress bar of tqdm (extra ``progress``) on standard error. A callable
        with the interface of ``tqdm.tqdm`` creates another kind of bar.
    """

    callback: Annotated[Callable[[int, Any], Any] | None, Option(None, check_callback)]
    progress: Annotated[Progress, Option(False, check_progress)]


class RunOptions(ThreadOption, BarOptions, total=False):
    """Options for the execution of a fit."""


class FitOptions(SeedOption, RunOptions, total=False):
    """Options for the execution of a fit and its source of randomness."""
