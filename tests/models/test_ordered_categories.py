"""An ordered category gives what its rank numbers give, in every function that reads rows."""

import itertools
import zlib

import numpy as np
import ordered
import pytest

import pboost as pb
from ordered import FITS, FUNCTIONS, LAYOUTS, PLOTS, TARGETS, quiet, same

pd = pytest.importorskip("pandas")

#: Functions that are called for each wrapped model, besides `predict`. For plain models all are.
FEW = 2
CHEAP = [name for name in FUNCTIONS if name not in {*PLOTS, "distill"}]
#: Models for which a few functions are called that take long.
SLOW = {
    "adaboost": ["plot_graph", "plot_steps"], "cart": ["plot_tree", "distill"],
    "forest": ["plot_regions"], "probitboost": ["plot_coefficients"],
}  # fmt: skip


def differing(models, X, y, names):
    """Return the functions that differ between two models, one of which reads ranks."""
    calls = {name: [quiet(lambda m=m, F=F, f=FUNCTIONS[name]: f(m, F, y))
                    for m, F in zip(models, X, strict=True)] for name in names}  # fmt: skip
    return [name for name, (one, other) in calls.items() if not same(one, other)]


def fitted(make, X):
    """Return the models of a category and of its ranks; None if both are refused."""
    one, other = (quiet(lambda F=F: make(F)) for F in X)
    if isinstance(one, type) or isinstance(other, type):
        assert one is other
        return None
    return one, other


def test_every_function_that_reads_rows_is_here():
    assert ordered.named(ordered.OF_MODEL) == set(FUNCTIONS)
    built = {name for name in pb.__all__ if name.startswith("fit_")} - ordered.NO_MODELS
    assert {getattr(part, "func", part).__name__ for part, _ in FITS.values()} == built


@pytest.mark.parametrize("name", FITS)
def test_ordered_categories_are_their_ranks(name):
    fit, target = FITS[name]
    y = TARGETS[target]
    start = zlib.crc32(name.encode())
    turn = itertools.islice(itertools.cycle(CHEAP), start % len(CHEAP), None)
    layouts = itertools.islice(itertools.cycle(LAYOUTS), start % len(LAYOUTS), None)
    X = ordered.frames(next(layouts))
    models = fitted(lambda F: fit(F, y), X)
    if models is not None:
        assert differing(models, X, y, [*CHEAP, *SLOW.get(name, [])]) == []
    for how, make in ordered.wrapped(name).items():
        X = ordered.frames(next(layouts))
        models = fitted(make, X)
        if models is not None:
            names = ["predict", *itertools.islice(turn, FEW)]
            assert (how, differing(models, X, y, names)) == (how, [])
