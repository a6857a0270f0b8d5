"""Options that builders share: declared once, in signatures and docstrings of all."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Annotated, Any, Literal, TypedDict, Unpack

import pytest

from pboost.values import check_integer
from pboost.values.options import Option, builder, checked, filled, option_names, parameters_in


class Size(TypedDict, total=False):
    """How large.

    Parameters
    ----------
    depth : int or None
        Greatest depth.
    leaves : int
        Number of leaves.
    """

    depth: Annotated[int | None, Option(None, check_integer, min_value=1)]
    leaves: Annotated[int, Option(7, check_integer, min_value=1)]


class Order(TypedDict, total=False):
    """In which order.

    Parameters
    ----------
    growth : {"depth", "best"}
        Which node is next.
    """

    growth: Annotated[Literal["depth", "best"], Option("best")]


class Both(Size, Order, total=False):
    """The options of `fit`.

    Parameters
    ----------
    depth, leaves :
        Of the tree.
    """


@builder
def fit(X: Any, *, own: float = 1.0, **options: Unpack[Both]) -> dict[str, Any]:
    """Fit something.

    Parameters
    ----------
    X : array
        Rows.
    **options
        Those of `Both`.
    own : float
        Its own.

    Returns
    -------
    dict
        What it was given.
    """
    return {"own": own, **options}


@builder
def fit_other(X: Any, **options: Unpack[Size]) -> Any:
    """Fit something else.

    Parameters
    ----------
    X : array
        Rows.
    leaves : int
        Leaves of each.
    **options
        Those of `Size`.
    """
    return options


def test_signatures_have_all_options():
    parameters = inspect.signature(fit).parameters
    assert [(p.name, p.default) for p in parameters.values()][2:] == [
        ("depth", None),
        ("leaves", 7),
        ("growth", "best"),
    ]
    assert parameters["depth"].annotation == "int | None"
    assert {p.kind for p in [*parameters.values()][1:]} == {inspect.Parameter.KEYWORD_ONLY}
    assert option_names(fit) == ["X", "own", "depth", "leaves", "growth"]
    assert fit.__annotations__.keys() == {*option_names(fit), "return"}


def test_docstrings_have_all_options_in_their_order():
    described = parameters_in(fit.__doc__)
    assert list(described) == ["X", "own", "depth", "leaves", "growth"]
    assert described["growth"] == ('{"depth", "best"}', "Which node is next.\n")
    assert fit.__doc__.count("Of the tree.") == 1  # of two that are described together
    assert fit.__doc__.endswith("Returns\n-------\ndict\n    What it was given.")
    # What a builder says itself counts, and what its group says before what the base says.
    assert parameters_in(fit_other.__doc__)["leaves"] == ("int", "Leaves of each.\n")
    assert parameters_in(fit_other.__doc__)["depth"] == ("int or None", "Greatest depth.\n")


def test_builders_are_given_all_options():
    assert fit(0) == {"own": 1.0, "depth": None, "leaves": 7, "growth": "best"}
    assert fit(X=0, depth=3, own=2.0) == {"own": 2.0, "depth": 3, "leaves": 7, "growth": "best"}
    assert partial(fit, leaves=2)(0)["leaves"] == 2


def test_values_are_checked():
    for options, said in (
        ({"depth": 0}, "depth: expected an integer from 1 to"),
        ({"growth": "worst"}, "growth: expected one of 'depth', 'best', got 'worst'"),
    ):
        with pytest.raises(ValueError, match=said):
            fit(0, **options)
    for options, said in (
        ({"leaves": None}, "leaves: expected an integer, got None"),
        ({"leave": 3}, "leave: fit has no such option; did you mean leaves"),
    ):
        with pytest.raises(TypeError, match=said):
            fit(0, **options)


def test_other_options_are_left_out():
    assert checked(Size, {"depth": 2, "growth": "best"}) == {"depth": 2, "leaves": 7}
    assert filled(Size, {"depth": "checked before"}) == {"depth": "checked before", "leaves": 7}
