"""Builders and their options: functions that are given, names of options, what is refused."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from functools import partial, wraps
from typing import Any, TypeVar

from pboost.values import shown
from pboost.values.peers import said_here

Fit = TypeVar("Fit", bound=Callable[..., Any])
#: Parameters that are builders or their models: who has them is no builder of two-class models.
OF_BUILDERS = {"fit", "base", "model"}
#: How alike two names are, from 0 to 1, of which one can be the other mistyped.
LIKE = 0.75
#: A parameter in a docstring: names, type, description.
PARAMETER = re.compile(r"^(\w[\w, ]*) : ?(.*)\n((?:    .*\n)*)", re.MULTILINE)
#: What `builder` has made, and of what: wrappers of users have parameters of their own.
_PLAIN: dict[Callable[..., Any], Callable[..., Any]] = {}


class ManyClassesError(ValueError):
    """Labels of more than two values, for a builder that takes two."""

    __module__ = "pboost"  # where it is public

    def __init__(self, message: str, instead: str = "") -> None:
        super().__init__(message)
        self.message, self.instead = message, instead

    def name_builder(self, name: str) -> None:
        """Add what to call instead, in which "{}" stands for the builder that was called."""
        if self.instead:
            self.args = (f"{self.message}: {self.instead.format(name)}",)


class NoLabelsError(TypeError):
    """A builder was given neither labels nor probabilities of labels."""


def builder(fit: Fit) -> Fit:
    """Let a function that has options answer for those that it does not have.

    A decorator. Nothing is looked at unless a call fails: where an option is unknown, to say what
    it is called here, and where there are more than two classes, what to call instead.
    """

    @wraps(fit)
    def answering(*args: object, **options: Any) -> Any:
        try:
            return fit(*args, **options)
        except TypeError as error:
            at = error.__traceback__
            if at is not None and at.tb_next is not None and not isinstance(error, NoLabelsError):
                raise  # from within
        except ManyClassesError as error:
            if OF_BUILDERS.isdisjoint(option_names(fit)):
                error.name_builder(fit.__name__)
            raise
        _refuse_call(fit, args, options)
        return fit(*args, **options)  # something else is wrong, as Python says

    _PLAIN[answering] = fit
    return answering  # type: ignore[return-value]


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
        options = {name: value for name, value in options.items() if said_here(name, {"": known})}
    elif takes_builder and inspect.isfunction(first):
        theirs = option_names(first)
        if passed := [name for name in options if name in theirs and name not in known]:
            called = first.__name__
            given = ", ".join(f"{name}={shown(options[name])}" for name in passed)
            raise TypeError(
                f"{passed[0]}: is an option of {called}; pass functools.partial({called}, {given})"
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
    given = {**inner, **options}
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
    refuse_unknown(given, known, called, caller)
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
    given: dict[str, Any] = {}
    while isinstance(fit, partial):
        given = {**fit.keywords, **given}  # the outer ones count
        fit = fit.func
    return fit, given


def only_classifies(fit: object) -> bool:
    """Return whether this is a builder of this package that has no regression."""
    return inspect.isfunction(fit) and fit in _PLAIN and "task" not in option_names(fit)


def options_within(fit: object, options: Mapping[str, object]) -> dict[str, Any] | None:
    """Return the options of a builder and of those given to it; None if one is a user's function.

    Options of an outer builder count, since it passes them on.
    """
    given = dict(options)
    while True:
        while isinstance(fit, partial):
            given = {**fit.keywords, **given}  # the outer ones count
            if fit.args:
                given["fit"] = fit.args[0]
            fit = fit.func
        if not inspect.isfunction(fit) or fit not in _PLAIN:
            return None
        fit = given.pop("fit", None) or given.pop("base", None)
        if fit is None:
            return given


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
    text = inspect.cleandoc(docstring or "").partition("Parameters\n----------\n")[2]
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
        if said := said_here(option, takers):
            raise TypeError(f"{option}: {said}")
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
