"""Options that a builder passes on to another one, or to a function of the user's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any

from pboost.values import shown


def check_fit(
    caller: Callable[..., Any],
    name: str,
    fit: Any,
    options: Mapping[str, Any],
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
        raise _no_fit(name, fit)
    function, given = fit, dict(options)
    while isinstance(function, partial):
        given = {**function.keywords, **given}
        function = function.func
    try:
        parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):  # some that are compiled have none
        if isinstance(function, type):
            raise _no_fit(name, fit) from None
        return fit
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return fit
    known = option_names(function)
    called = getattr(function, "__name__", type(function).__name__)
    through = f"{called}, to which {caller.__name__} passes it on,"
    refuse_unknown(given, known, through, [*known, *option_names(caller)])
    try:
        inspect.signature(fit).bind_partial(None, None)
    except TypeError:
        raise _no_fit(name, fit) from None
    missing = [option for option in needs if option not in known]
    if missing:
        raise TypeError(f"{name}: expected a function that takes {missing[0]}, got {shown(fit)}")
    return fit


def _no_fit(name: str, fit: Any) -> TypeError:
    return TypeError(
        f"{name}: expected a builder such as fit_cart, a function of X and y, got {shown(fit)}"
    )


def option_names(function: Callable[..., Any]) -> list[str]:
    """Return the arguments of a function that can be given by name."""
    parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return [parameter.name for parameter in parameters if parameter.kind in kinds]


def refuse_unknown(
    options: Iterable[str], known: Collection[str], builder: str, meant: Collection[str]
) -> None:
    """Raise TypeError if an option is none of those known, naming the closest of those `meant`."""
    for option in options:
        if option not in known:
            near = get_close_matches(option, meant, 1)
            listed = ", ".join(sorted({*known} - {"X", "y"}))
            hint = f"; did you mean {near[0]}?" if near else f"; it has {listed}"
            raise TypeError(f"{option}: {builder} has no such option{hint}")
