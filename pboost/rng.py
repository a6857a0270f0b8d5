"""Random numbers: one place that turns what a user passes as `rng` into a generator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from pboost.values import shown

Seed: TypeAlias = int | np.integer | np.random.SeedSequence | np.random.Generator | None


def takes_rng(fit: Callable[..., Any]) -> bool:
    """Return whether a function has an argument `rng` which has not been given to it yet."""
    given: set[str] = set()
    inner: Any = fit
    while isinstance(inner, partial):
        given |= inner.keywords.keys()
        inner = inner.func
    try:
        return "rng" in inspect.signature(fit).parameters and "rng" not in given
    except (TypeError, ValueError):  # of what is not written in Python
        return False


def child(seed: tuple[int, ...], number: int) -> np.random.Generator:
    """Return one of the streams that follow from a seed, by its number alone."""
    return np.random.default_rng(np.random.SeedSequence(list(seed), spawn_key=(number,)))


def draw_seed(generator: np.random.Generator) -> tuple[int, ...]:
    """Draw the seed of as many streams as will be wanted."""
    return tuple(generator.integers(2**63, size=2).tolist())


def as_generator(rng: Seed) -> np.random.Generator:
    """Return a generator from `rng`, after SPEC 7 of the Scientific Python project.

    Parameters
    ----------
    rng : None, int, numpy.random.SeedSequence or numpy.random.Generator
        None draws fresh entropy from the system; a generator is used as it is.

    Returns
    -------
    numpy.random.Generator

    Raises
    ------
    TypeError
        For anything else, a legacy ``RandomState`` included.
    ValueError
        For an integer below 0.
    """
    if isinstance(rng, np.random.Generator):
        return rng
    seeds = (int, np.integer, np.random.SeedSequence)
    if isinstance(rng, int | np.integer) and rng < 0:
        raise ValueError(f"rng: expected an integer of 0 or more, got {shown(int(rng))}")
    if rng is None or (isinstance(rng, seeds) and not isinstance(rng, bool)):
        return np.random.default_rng(rng)
    raise TypeError(
        "rng: expected None, an integer, a SeedSequence or a numpy.random.Generator, "
        f"got {type(rng).__name__}"
    )
