"""Builders and their options: functions that are given, names of options, what is refused.

Options that builders share are the fields of a `TypedDict`, each declared once::

    class SizeOptions(TypedDict, total=False):
        max_depth: Annotated[int | None, Option(None, check_integer, min_value=1)]

The docstring of the class describes them as its parameters. A builder takes them as ``**options:
Unpack[SizeOptions]``, so that editors and type checkers know their names and types. The decorator
`builder` adds them to its signature and its docstring, and calls it with all of them, checked.
"""

from __future__ import annotations

import inspect
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
from pboost.values.peers import alias_hint

Fit = TypeVar("Fit", bound=Callable[..., Any])
#: Parameters that are builders or their models: who has them is no builder of two-class models.
OF_BUILDERS = {"fit", "base_learner", "model"}
#: How alike two names are, from 0 to 1, of which one can be the other mistyped.
LIKE = 0.75
#: A parameter in a docstring: names, type, description.
PARAMETER = re.compile(r"^(\w[\w, ]*) : ?(.*)\n((?:    .*\n)*)", re.MULTILINE)
#: The same with its lines, and what stands for all options of a group in it.
ENTRY = re.compile(r"^(\S.*\n)((?:    .*\n)*)", re.MULTILINE)
REST = "**options"
TITLE = "Parameters\n----------\n"
#: What `builder` has made, and of what: wrappers of users have parameters of their own.
_PLAIN: dict[Callable[..., Any], Callable[..., Any]] = {}


class MulticlassError(ValueError):
    """Labels of more than two values, for a builder that takes two."""

    __module__ = "pboost.models"  # where it is public

    def __init__(self, message: str, instead: str = "") -> None:
        super().__init__(message)
        self.message, self.instead = message, instead

    def name_builder(self, name: str) -> None:
        """Add what to call instead, in which "{}" stands for the builder that was called."""
        if self.instead:
            self.args = (f"{self.message}: {self.instead.format(name)}",)


class NoLabelsError(TypeError):
    """A builder was given neither labels nor probabilities of labels."""


class Option:
    """The default of an option and the check of its values, in the annotation of a field.

    A type that is one `Literal`, or None, is checked without more.

    Parameters
    ----------
    default : object
        The default value.
    check : callable, optional
        Called as ``check(name, value, **limits)``; returns the value to use or raises an error.
        None is not checked if the type has it.
    **limits
        Further arguments of `check`.
    """

    def __init__(self, default: Any, check: Callable[..., Any] | None = None, **limits: Any):
        self.default = default
        self.check = partial(check, **limits) if check is not None and limits else check


class Declared(NamedTuple):
    """What a group declares of one of its options.

    Attributes
    ----------
    annotation : str
        The type, as written.
    default : object
        The default value.
    check : callable or None
        Called as ``check(name, value)``; None if any value is taken.
    takes_none : bool
        Whether None is a value that needs no check.
    entry : str
        The paragraph of the docstring.
    type : object
        The type that `annotation` stands for.
    """

    annotation: str
    default: Any
    check: Callable[..., Any] | None
    takes_none: bool
    entry: str
    type: Any


@cache
def declared(group: type) -> Mapping[str, Declared]:
    """Return the options of a group, in their order."""
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
    # Bases of a TypedDict are not known; a field's reference is the same in all groups.
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
    """Return all options of a group by their names, checked; others are left out."""
    result = {}
    for name, option in declared(group).items():
        value = options.get(name, option.default)
        if option.check is not None and not (value is None and option.takes_none):
            value = option.check(name, value)
        result[name] = value
    return result


def filled(group: type, options: Mapping[str, Any]) -> Any:
    """Return all options of a group by their names, of which those given are checked already."""
    return {
        name: options.get(name, declaration.default)
        for name, declaration in declared(group).items()
    }


def entries_of(docstring: str | None) -> dict[str, str]:
    """Return the paragraphs of parameters in a docstring, by their names.

    Of several that are described together, the first has the paragraph.
    """
    text = inspect.cleandoc(docstring or "").partition(TITLE)[2].partition("\n\n")[0] + "\n"
    entries: dict[str, str] = {}
    for head, words in ENTRY.findall(text):
        first, *others = head.rstrip().partition(" :")[0].split(", ")
        entries |= {first: head + words, **dict.fromkeys(others, "")}
    return entries


def builder(fit: Fit) -> Fit:
    """Let a function take a group of options, and answer for options that it does not have.

    A decorator. Where an option is unknown, the error says what it is called here, and where there
    are more than two classes, what to call instead.
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
                raise  # from within
        except MulticlassError as error:
            if OF_BUILDERS.isdisjoint(names):
                error.name_builder(fit.__name__)
            raise
        _refuse_call(fit, args, options)
        return fit(*args, **options)  # something else is wrong, as Python says

    # Wrappers of users copy what `answering` has; they have parameters of their own.
    fit.__signature__ = signature  # type: ignore[attr-defined]
    _PLAIN[answering] = fit
    return answering  # type: ignore[return-value]


def _group_of(fit: Callable[..., Any]) -> Any:
    """Return the group of options that a function takes, None without."""
    text = next((t for t in fit.__annotations__.values() if str(t).startswith("Unpack[")), None)
    return None if text is None else fit.__globals__[text[len("Unpack[") : -1]]


def _declare(fit: Any, group: type) -> inspect.Signature:
    """Give a function the docstring and annotations of all its options; return its signature."""
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
    # Types, not text, so that `typing.get_type_hints` needs none of the modules of the groups.
    types = {name: option.type for name, option in shared.items()}
    fit.__annotations__ = {p.name: types.get(p.name, p.annotation) for p in parameters} | returned
    if fit.__doc__ is not None:  # python -OO
        fit.__doc__ = _described(fit.__doc__, [p.name for p in parameters], shared)
    return signature.replace(parameters=parameters)


def _described(docstring: str, order: list[str], shared: Mapping[str, Declared]) -> str:
    """Return a docstring with the paragraphs of shared options that it has none of its own of."""
    text = inspect.cleandoc(docstring)
    head, _, rest = text.partition(TITLE)
    entries = entries_of(docstring)
    del entries[REST]
    entries = {name: declaration.entry for name, declaration in shared.items()} | entries
    section = "".join(entries[name] for name in sorted(entries, key=order.index))
    return head + TITLE + section + "\n" + rest.partition("\n\n")[2]


class Kinds(dict[str, Callable[..., Any]]):
    """The functions that make what an option can be, by the kinds that are named like them."""

    def add(self, make: Fit) -> Fit:
        """Register a function, which answers for options as a builder does; a decorator."""
        self[make.__name__] = made = builder(make)
        return made


def _refuse_call(
    fit: Callable[..., object], arguments: tuple[object, ...], options: Mapping[str, object]
) -> None:
    """Raise TypeError for an option that a function does not have, or a builder that is not there.

    Return where all are known.
    """
    known = option_names(fit)
    takes_builder = known[:1] == ["fit"]
    first = arguments[0] if arguments else options.get("fit")
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in _parameters(fit)):
        # It may be one of the builder that it is passed on to.
        options = {name: value for name, value in options.items() if alias_hint(name, {"": known})}
    elif takes_builder and inspect.isfunction(first):
        theirs = option_names(first)
        if passed := [name for name in options if name in theirs and name not in known]:
            called = first.__name__
            shown_options = ", ".join(f"{name}={shown(options[name])}" for name in passed)
            raise TypeError(
                f"{passed[0]}: is an option of {called}; pass functools.partial({called}, {shown_options})"
            )
    refuse_unknown(options, known, fit.__name__)
    if takes_builder and not callable(first):
        raise TypeError("fit: expected a builder such as fit_cart first")


def check_fit(
    caller: Callable[..., object],
    name: str,
    fit: object,
    options: Mapping[str, object],
    needs: Iterable[str] = (),
) -> Callable[..., Any]:
    """Return `fit` if it is a function that takes the options that are passed on to it.

    Those that a ``functools.partial`` holds are looked at, too; what takes any options answers for
    itself.

    Parameters
    ----------
    caller : callable
        The public function that passes them on.
    name : str
        The argument of it that holds `fit`.
    fit : object
        What the user gave.
    options : mapping
        What is passed on.
    needs : iterable of str
        Arguments that `fit` is given besides X and y.
    """
    if not callable(fit):
        raise _no_fit(name, fit, caller)
    function, inner = unwrapped(fit)
    all_options = {**inner, **options}
    try:
        parameters = _parameters(function)
    except (TypeError, ValueError):  # some that are compiled have none
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
        raise TypeError(f"{name}: expected a function that takes {missing[0]}, got {shown(fit)}")
    return fit


def unwrapped(fit: object) -> tuple[Any, dict[str, Any]]:
    """Return the function of ``functools.partial``, and the options given by it."""
    bound: dict[str, Any] = {}
    while isinstance(fit, partial):
        bound = {**fit.keywords, **bound}  # the outer ones count
        fit = fit.func
    return fit, bound


def only_classifies(fit: object) -> bool:
    """Return whether this is a builder of this package that has no regression."""
    return inspect.isfunction(fit) and fit in _PLAIN and "task" not in option_names(fit)


def options_within(fit: object, options: Mapping[str, object]) -> dict[str, Any] | None:
    """Return the options of a builder and of those given to it; None if one is a user's function.

    Options of an outer builder count, since it passes them on.
    """
    bound = dict(options)
    while True:
        while isinstance(fit, partial):
            bound = {**fit.keywords, **bound}  # the outer ones count
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
    return TypeError(
        f"{name}: expected a builder such as fit_cart, a function of X and y, got {shown(fit)}"
        + hint
    )


def option_names(function: Callable[..., object]) -> list[str]:
    """Return the arguments of a function that can be given by name."""
    parameters = _parameters(function)
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return [parameter.name for parameter in parameters if parameter.kind in kinds]


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the parameters of a function, of a wrapper its own."""
    plain = _PLAIN.get(function, function) if inspect.isfunction(function) else function
    return [*inspect.signature(plain, follow_wrapped=False).parameters.values()]


def parameters_in(docstring: str | None) -> dict[str, tuple[str, str]]:
    """Return type and description of each parameter in a docstring, in the style of numpydoc.

    Those that are described together have no description here.
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
) -> None:
    """Raise TypeError for an option that is none of those known, and say what may be meant.

    Parameters
    ----------
    options : iterable of str
        What is given.
    known : collection of str
        The options of the builder.
    builder : str
        Its name.
    caller : callable, optional
        The function of which these are further options, that passes them on.
    """
    takers, passed = {builder: known}, ""
    if caller is not None:
        takers = {caller.__name__: option_names(caller), **takers}
        passed = f", to which {caller.__name__} passes it on,"
    for option in options:
        if option in known:
            continue
        if peer_hint := alias_hint(option, takers):
            raise TypeError(f"{option}: {peer_hint}")
        names = [name for names in takers.values() for name in names]
        near = get_close_matches(option, names, 1, cutoff=LIKE)
        listed = ", ".join(sorted({*known} - {"X", "y"}))
        hint = f"; did you mean {near[0]}?" if near else f"; it has {listed}"
        raise TypeError(f"{option}: {builder}{passed} has no such option{hint}")


def arguments_of(fit: Callable[..., object]) -> Collection[str]:
    """Return the names of the arguments of a function; none of what does not tell them."""
    try:
        return inspect.signature(fit).parameters
    except (TypeError, ValueError):  # of what is not written in Python
        return ()


def takes_rng(fit: Callable[..., object]) -> bool:
    """Return whether a function has an argument `rng` which has not been given to it yet."""
    return "rng" in arguments_of(fit) and "rng" not in unwrapped(fit)[1]


class SeedOption(TypedDict, total=False):
    """Where random numbers come from.

    Parameters
    ----------
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.
    """

    rng: Annotated[Seed, Option(None)]


class ThreadOption(TypedDict, total=False):
    """How many threads a fit takes.

    Parameters
    ----------
    n_threads : int or None
        Threads, -1 for all; None: as many as the work is worth. The model does not depend on it.
    """

    n_threads: Annotated[int | None, Option(None)]


class BarOptions(TypedDict, total=False):
    """What a fit tells on its way.

    Parameters
    ----------
    callback : callable, optional
        Called as ``callback(step, record)`` after each step; returning True stops.
    progress : bool or callable
        True shows a bar of tqdm (extra ``progress``) on standard error; or what makes a bar, as
        ``tqdm.tqdm`` does.
    """

    callback: Annotated[Callable[[int, Any], Any] | None, Option(None, check_callback)]
    progress: Annotated[Progress, Option(False, check_progress)]


class RunOptions(ThreadOption, BarOptions, total=False):
    """How a fit is run."""


class FitOptions(SeedOption, RunOptions, total=False):
    """How a fit is run, and where its random numbers come from."""
