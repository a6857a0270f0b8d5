"""Random numbers: one place that turns what a user passes as `rng` into a generator."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from pboost.values import shown

Seed: TypeAlias = int | np.integer | np.random.SeedSequence | np.random.Generator | None


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
