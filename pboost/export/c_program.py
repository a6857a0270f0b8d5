"""The C file of a model: its head in words, its public functions, and the program that tests it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost._version import __version__
from pboost.data.convert import Features
from pboost.data.node_inputs import ColumnNames
from pboost.export.c_form import Part, Walk, is_exact, walks
from pboost.export.c_numbers import Fixed, Grid, sums_of
from pboost.export.c_print import (
    NO_VALUE,
    TYPES,
    Code,
    comment,
    filled_table,
    function,
    literal,
    plain,
    string,
    table,
    write_part,
)
from pboost.models.base import Averaged, Model, TwoClassModel
from pboost.models.calibrated import CalibratedModel
from pboost.models.text import counted
from pboost.models.tree_sum import StagewiseModel
from pboost.models.trees_of import link_of
from pboost.values import FloatArray

#: Columns that a head lists.
MOST_LISTED = 256
#: Rows of the self-test, and how often a value in it is missing.
TEST_ROWS, HOLES = 20, 0.1
#: The most columns of rows that are written into a file.
MOST_TESTED = 1 << 16
#: By how much what is made of exponentials may differ.
TOLERANCE = 1e-14


@dataclass(frozen=True, slots=True, eq=False)
class Making:
    """A model and what of it a C file has.

    Attributes
    ----------
    model : Model
        The model.
    prefix : str
        What names begin with.
    exact, part : Part
        The steps of the model, and those in the numbers of the file.
    dtype, votes : str
        The numbers of rows and of votes.
    grid, fixed : Grid and Fixed, or None
        Of int16.
    uncertain : int or None
        How many rows that were given are within the bound.
    rows : ndarray or None
        Rows that were given.
    """

    model: Model
    prefix: str
    exact: Part
    part: Part
    dtype: str
    votes: str
    grid: Grid | None = None
    fixed: Fixed | None = None
    uncertain: int | None = None
    rows: FloatArray | None = None

    @property
    def value(self) -> str:
        """The C type of the values of a row."""
        return TYPES[self.dtype]

    @property
    def total(self) -> str:
        """The C type of decision values."""
        return TYPES["int32" if self.fixed is not None else self.votes]


def scores_of(model: Model, rows: FloatArray) -> FloatArray:
    """Return the decision values (n, J) of rows of numbers and level numbers, or shares."""
    X: Any = rows
    if model.table is not None:
        X = Features(rows, model.feature_names, model.table)
    if isinstance(model, Averaged):
        found = model.values_of_mean(model.mean(X))
    else:
        found = model.decision_function(X)
    return found.reshape(len(rows), -1)


def text_of(made: Making, explain: bool) -> str:
    """Return the file; `explain`: with the function of paths."""
    model, p, upper, n = made.model, made.prefix, made.prefix.upper(), made.part.n_scores
    code = Code(p, made.value, made.total, model.takes_missing)
    write_part(code, p, made.part)
    public = _public_functions(made, code, explain)
    heads = [f"{text.splitlines()[0]};" for text in public]
    defined = {"FEATURES": model.n_features}
    if model.labels is not None:
        labels = _labels_table(p, model.labels)
        heads.append(f"extern {labels.partition(' =')[0]};")
        public.append(labels)
        defined["LABELS"] = len(model.labels)
    if n > 1:
        defined["SCORES"] = n
    body = code.text
    includes = ["#include <stdint.h>", *["#include <math.h>"] * ("INFINITY" in body)]
    parts = [
        "\n".join([comment(_head(made)), *includes]),
        "\n".join(f"#define {upper}_{name} {number}" for name, number in defined.items()),
        "\n".join(heads),
        body,
        *public,
        _self_test(made),
    ]
    return "\n\n".join(parts) + "\n"


def _public_functions(made: Making, code: Code, explain: bool) -> list[str]:
    """Return the functions of decision values, of the label or the number, and of paths.

    There is none of numbers in fixed point. Labels of rows that leave are those of the values
    there, before a factor rounds them.
    """
    part, p, n, total, model = made.part, made.prefix, made.part.n_scores, made.total, made.model
    row, score = f"(const {made.value} *x", f"{p}_score(x)"
    found = [
        function(f"void {p}_scores{row}, {total} *scores)", f"{p}_sums(x, scores);")
        if n > 1
        else function(
            f"{total} {p}_score{row})", f"{total} h[1];", f"{p}_sums(x, h);", "return h[0];"
        )
    ]
    leaves = isinstance(part, Walk) and part.exits is not None
    if model.labels is not None:
        body = [f"return {score} > 0;"]
        if n > 1 or leaves:
            label = f"{code.library('best')}(h, {n})" if n > 1 else "h[0] > 0"
            go = "leave" if leaves else "sums"
            body = [f"{total} h[{n}];", f"{p}_{go}(x, h);", f"return {label};"]
        found.append(function(f"int {p}_predict{row})", *body))
    elif made.fixed is None:
        if isinstance(model, StagewiseModel) and link_of(model) == "exp":
            score = f"{code.library('exp')}({score})"
        found.append(function(f"{total} {p}_predict{row})", f"return {score};"))
    if explain:
        assert isinstance(part, Walk)
        found.append(_path_function(p, part, row))
    return found


def _path_function(p: str, part: Walk, row: str) -> str:
    """Return the function that writes the exits that a row takes."""
    head, nodes, trees = f"int {p}_path{row}, int *at, int most)", len(part.tests), len(part.root)
    if not nodes:
        return function(head, "(void)x, (void)at, (void)most;", "return 0;")
    after = f"i + 1 < {nodes} ? i + 1 : -1" if part.is_chain else f"{p}_next[e]"
    return function(
        head,
        "int n = 0;",
        f"for (int t = 0; t < {trees}; t++) {{",
        (
            f"int i = {f'{p}_root[t]' if trees > 1 else literal(part.root[0])};",
            "while (i >= 0) {",
            (
                f"const int e = 2 * i + {p}_above(x, i);",
                "if (n < most) at[n] = e;",
                "n++;",
                f"i = {after};",
            ),
            "}",
        ),
        "}",
        "return n;",
    )


def _labels_table(prefix: str, labels: NDArray[Any]) -> str:
    """Return the table of the labels."""
    n = f"{prefix}_labels"
    if labels.dtype.kind == "U":
        return filled_table(f"char *const {n}", [string(v) for v in labels.tolist()], static=False)
    if labels.dtype.kind in "bi" or (labels.dtype.kind == "u" and labels.dtype.itemsize < 8):
        whole = labels.astype(np.int64)
        small = bool((np.abs(whole) < 2**31).all())
        return table(n, whole.astype(np.int32) if small else whole, static=False)
    return table(n, labels.astype(np.float64), static=False)


# The head


def _head(made: Making) -> Iterator[str]:
    """Yield the lines of the head."""
    model, upper = made.model, made.prefix.upper()
    yield f"{plain(repr(model))}"
    yield f"Made by pboost {plain(__version__)}."
    yield ""
    if isinstance(model, TwoClassModel) and len(model.record.certificate):
        note = f" ({plain(model.certificate_note)})" if model.certificate_note else ""
        certificate = model.record.certificate[-1]
        yield f"Certificate, a bound of the training error: {certificate:.6g}{note}"
    part = made.part
    if isinstance(part, Walk) and part.exits is not None:
        yield f"Rows leave early at up to {counted(len(part.exits.at), 'joint')}."
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
    if made.fixed.part.exits is not None:
        yield "This is when the row leaves; before it may not be within twice that of a threshold."
    if made.uncertain is not None:
        yield f"Rows given with the model that are within it: {made.uncertain}."


def _columns(made: Making) -> Iterator[str]:
    """Yield what the columns are that are read."""
    model, d = made.model, made.model.n_features
    read = np.zeros(d, dtype=np.bool_)
    if isinstance(made.exact, Walk) and made.exact.tests.inputs is None:
        read[made.exact.tests.column] = True
    else:
        read[:] = True
    names = ColumnNames(model.feature_names, d, model.table)
    columns = np.flatnonzero(read)
    for j in columns[:MOST_LISTED].tolist():
        name = "" if model.feature_names is None else f": {plain(names[j])}"
        yield f"x[{j}]{name}{_meaning(made, j)}"
    if len(columns) > MOST_LISTED:
        yield f"... ({len(columns)} columns are read)"
    if len(columns) < d:
        yield "Other columns are not read."


def _meaning(made: Making, column: int) -> str:
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


# The program that tests it


def _self_test(made: Making) -> str:
    """Return the program; of many columns a line that there is none."""
    p, n, upper = made.prefix, made.part.n_scores, made.prefix.upper()
    if made.model.n_features > MOST_TESTED:
        error = f'#error "models of more than {MOST_TESTED} columns have no self-test"'
        return f"#ifdef {upper}_SELF_TEST\n{error}\n#endif"
    given, expected = _test_rows(made)
    differs = "h[k] != known[k]"
    if not is_exact(made.part):
        room = f"{TOLERANCE} * (1.0 + (known[k] < 0.0 ? -known[k] : known[k]))"
        differs = f"!(h[k] - known[k] < {room} && known[k] - h[k] < {room})"
    main = function(
        "int main(void)",
        "int wrong = 0;",
        f"for (int r = 0; r < {len(given)}; r++) {{",
        (
            f"const {made.value} *x = {p}_test_rows + r * {upper}_FEATURES;",
            f"const {made.total} *known = {p}_test_scores + r * {n};",
            f"{made.total} h[{n}];",
            f"{p}_scores(x, h);" if n > 1 else f"h[0] = {p}_score(x);",
            f"for (int k = 0; k < {n}; k++) wrong += {differs};",
        ),
        "}",
        f'printf("%d scores of {len(given)} rows differ\\n", wrong);',
        "return wrong != 0;",
    )
    parts = [
        f"#ifdef {upper}_SELF_TEST\n#include <math.h>\n#include <stdio.h>",
        table(f"{p}_test_rows", given),
        table(f"{p}_test_scores", expected),
        f"{main}\n#endif",
    ]
    return "\n\n".join(parts)


def _test_rows(made: Making) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows of the self-test, and their scores, as the file has them."""
    rows = made.rows
    if rows is None or not len(rows):
        rows = _made_rows(made)
    else:
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, TEST_ROWS).astype(np.intp))]
    given = rows.astype(made.dtype) if made.grid is None else made.grid.numbers(rows)
    if made.fixed is None and made.votes == "float64":
        return given, scores_of(made.model, given.astype(np.float64))
    assert isinstance(made.part, Walk)
    return given, sums_of(made.part, given)


def _made_rows(made: Making) -> FloatArray:
    """Return rows made of thresholds, levels and holes; the same for the same model."""
    model, d = made.model, made.model.n_features
    rng = np.random.default_rng(0)
    found: list[list[FloatArray]] = [[] for _ in range(d)]
    for tests in (walk.tests for walk in walks(made.exact)):
        if tests.inputs is not None or not len(tests):
            continue
        order = np.argsort(tests.column, kind="stable")
        columns, first = np.unique(tests.column[order], return_index=True)
        for j, of in zip(
            columns.tolist(), np.split(tests.threshold[order], first[1:]), strict=True
        ):
            found[j].append(of)
    levels = np.zeros(d, dtype=int) if model.table is None else model.table.n_levels
    rows = np.empty((TEST_ROWS, d))
    for j in range(d):
        if levels[j]:
            rows[:, j] = rng.integers(0, levels[j], TEST_ROWS)
            continue
        near = np.concatenate(found[j]) if found[j] else np.array([-1.0, 0.0, 1.0])
        near = near[np.abs(near) < np.finfo(np.float32).max / 4]
        at = rng.choice(near, TEST_ROWS) if len(near) else np.zeros(TEST_ROWS)
        rows[:, j] = at + rng.integers(-1, 2, TEST_ROWS) * np.maximum(1.0, np.abs(at)) / 64
    if model.takes_missing:
        rows[rng.random(rows.shape) < HOLES] = np.nan
    return rows
