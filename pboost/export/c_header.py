"""What the head of a C file says in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pboost._version import __version__
from pboost.data.node_inputs import ColumnNames
from pboost.export.c_code import NO_VALUE
from pboost.export.c_making import Making, tests_of
from pboost.export.c_parts import Leaving, Walk, is_exact
from pboost.export.c_text import plain
from pboost.models.base import TwoClassModel
from pboost.models.calibrated import CalibratedModel
from pboost.models.text import counted

#: Columns that a header lists.
MOST_LISTED = 256


def header_of(made: Making) -> Iterator[str]:
    """Yield the lines of the head."""
    model, upper = made.model, made.prefix.upper()
    yield f"{plain(repr(model))}"
    yield f"Made by pboost {plain(__version__)}."
    yield ""
    if isinstance(model, TwoClassModel) and len(model.record.certificate):
        note = f" ({plain(model.certificate_note)})" if model.certificate_note else ""
        certificate = model.record.certificate[-1]
        yield f"Certificate, a bound of the training error: {certificate:.6g}{note}"
    if isinstance(made.part, Leaving):
        yield f"Rows leave early at up to {counted(len(made.part.at), 'joint')}."
    yield from _numbers(made)
    if model.takes_missing:
        missing = NO_VALUE if made.fixed else "NaN"
        yield f"A missing value is {missing}."
    else:
        yield "No value may be missing."
    yield f"A program that checks itself: cc -std=c99 -D{upper}_SELF_TEST"
    yield ""
    yield from _columns(made)


def _numbers(made: Making) -> Iterator[str]:
    """Yield what numbers mean, and how far they can be trusted."""
    labels = made.model.labels
    if made.fixed is None:
        yield "Build without -ffast-math, with -ffp-contract=off, and on x86 of 32 bits with"
        yield "-msse2 -mfpmath=sse: scores are then the same to the last bit."
        if not is_exact(made.part):
            yield "Probabilities are by exponential functions and logarithms of this file:"
            yield "scores are the same to 1e-14, of those above 1 relatively, and labels where the"
            yield "lead is more than 1e-12."
        if made.dtype == "float32":
            yield "Values are float32; thresholds are rounded down to float32 without a loss."
        if made.votes == "float32":
            yield "Votes and their sums are float32."
        return
    bound, terms = made.fixed.bound, made.fixed.terms
    what = "the size of a score" if made.part.n_scores == 1 else "the lead of a score over the next"
    yield f"Scores are counted in {made.fixed.scale:.17g}, votes in 2**{-made.fixed.shift}."
    if isinstance(made.model, CalibratedModel) and made.model.knot is not None:
        yield "They are the values of the model that was calibrated, less the one at which the"
        yield "probability of the second label crosses 1/2."
    yield f"At most {terms} of these, each rounded, are added up for a row on the grid."
    if labels is None:
        yield f"A score differs from the prediction by at most {bound:.6g}."
        return
    yield f"The label is that of the model where {what} is larger than {bound:.6g}."
    if isinstance(made.part, Leaving):
        yield "This is when the row leaves; before it may not be within twice that of a threshold."
    if made.uncertain is not None:
        yield f"Rows given with the model that are within it: {made.uncertain}."


def _columns(made: Making) -> Iterator[str]:
    """Yield what the columns are that are read."""
    model, d = made.model, made.model.n_features
    read = np.zeros(d, dtype=np.bool_)
    for tests in tests_of(made.exact):
        if tests.inputs is None:
            read[tests.column] = True
        else:
            read[:] = True
    if not isinstance(made.exact, Walk | Leaving):
        read[:] = True
    names = ColumnNames(model.feature_names, d, model.table)
    columns = np.flatnonzero(read)
    for j in columns[:MOST_LISTED].tolist():
        name = "" if model.feature_names is None else f": {plain(names[j])}"
        yield f"x[{j}]{name}{_said(made, j)}"
    if len(columns) > MOST_LISTED:
        yield f"... ({len(columns)} columns are read)"
    if len(columns) < d:
        yield "Other columns are not read."


def _said(made: Making, column: int) -> str:
    """Return what the numbers of a column stand for."""
    table_of, said = made.model.table, ""
    if made.grid is not None:
        offset, step = made.grid.offset[column], made.grid.step[column]
        said = f", value = {offset:.17g} + {step:.17g} * x[{column}]"
    values = None if table_of is None else table_of.values_of(column)
    if values is None or table_of is None:
        return said
    known = table_of.level_names(column) or [str(v) for v in values.tolist()]
    pairs = ", ".join(f"{k} = {plain(name)}" for k, name in enumerate(known))
    return f", the number of a level: {pairs}; others are missing"
