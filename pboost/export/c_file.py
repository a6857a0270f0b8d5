"""Models as C files: one file, without libraries, that gives the same decision values."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._version import __version__
from pboost.data.node_inputs.inputs import ColumnNames
from pboost.data.read.convert import Features
from pboost.export.c_form import Part, Walk, is_exact, part_of, walks
from pboost.export.c_numbers import (
    Fixed,
    Grid,
    compared,
    fixed_part,
    folded,
    grid_of,
    leave_walk,
    single_part,
    sums_of,
)
from pboost.export.c_print import (
    NO_VALUE,
    TYPES,
    Code,
    check_prefix,
    comment,
    filled_table,
    function,
    literal,
    plain,
    string,
    table,
    write_part,
)
from pboost.models.base import Averaged, Model, TwoClassModel, check_model
from pboost.models.calibrated import CalibratedModel
from pboost.models.evaluate.exits import sizes
from pboost.models.evaluate.new_rows import finite_columns
from pboost.models.files import check_path, replace_file
from pboost.models.text import counted
from pboost.models.tree_sum import GradientBoostingModel
from pboost.models.trees_of import link_of
from pboost.values import Array, FloatArray, TableLike, check_choice, check_flag

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
    dtype, vote_dtype : str
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
    dtype: CDtype
    vote_dtype: VoteDtype | Literal["int32"]
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
        return TYPES["int32" if self.fixed is not None else self.vote_dtype]


def scores_of(model: Model, rows: FloatArray) -> FloatArray:
    """Return the decision values (n, J) of rows of numbers and level numbers, or shares."""
    X: TableLike = rows
    if model.table is not None:
        X = Features(rows, model.feature_names, model.table)
    if isinstance(model, Averaged):
        scores = model.values_of_mean(model.mean(X))
    else:
        scores = model.decision_function(X)
    return scores.reshape(len(rows), -1)


def text_of(made: Making, explain: bool) -> str:
    """Return the file; `explain`: with the function of paths."""
    model, p, upper, n = made.model, made.prefix, made.prefix.upper(), made.part.n_scores
    code = Code(p, made.value, made.total, model.takes_missing)
    write_part(code, p, made.part)
    public = _public_functions(made, code, explain)
    heads = [f"{text.splitlines()[0]};" for text in public]
    defined = {"FEATURES": model.n_features}
    if model.classes is not None:
        classes = _classes_table(p, model.classes)
        heads.append(f"extern {classes.partition(' =')[0]};")
        public.append(classes)
        defined["CLASSES"] = len(model.classes)
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
    functions = [
        function(f"void {p}_scores{row}, {total} *scores)", f"{p}_sums(x, scores);")
        if n > 1
        else function(
            f"{total} {p}_score{row})", f"{total} h[1];", f"{p}_sums(x, h);", "return h[0];"
        )
    ]
    leaves = isinstance(part, Walk) and part.exits is not None
    if model.classes is not None:
        body = [f"return {score} > 0;"]
        if n > 1 or leaves:
            label = f"{code.library('best')}(h, {n})" if n > 1 else "h[0] > 0"
            go = "leave" if leaves else "sums"
            body = [f"{total} h[{n}];", f"{p}_{go}(x, h);", f"return {label};"]
        functions.append(function(f"int {p}_predict{row})", *body))
    elif made.fixed is None:
        if isinstance(model, GradientBoostingModel) and link_of(model) == "exp":
            score = f"{code.library('exp')}({score})"
        functions.append(function(f"{total} {p}_predict{row})", f"return {score};"))
    if explain:
        assert isinstance(part, Walk)
        functions.append(_path_function(p, part, row))
    return functions


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


def _classes_table(prefix: str, classes: Array) -> str:
    """Return the table of the labels."""
    n = f"{prefix}_classes"
    if classes.dtype.kind == "U":
        return filled_table(f"char *const {n}", [string(v) for v in classes.tolist()], static=False)
    if classes.dtype.kind in "bi" or (classes.dtype.kind == "u" and classes.dtype.itemsize < 8):
        integers = classes.astype(np.int64)
        small = bool((np.abs(integers) < 2**31).all())
        return table(n, integers.astype(np.int32) if small else integers, static=False)
    return table(n, classes.astype(np.float64), static=False)


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
    classes = made.model.classes
    if made.fixed is None:
        yield "Build without -ffast-math, with -ffp-contract=off, and on x86 of 32 bits with"
        yield "-msse2 -mfpmath=sse: scores are then the same to the last bit."
        if not is_exact(made.part):
            yield "Probabilities are by exponential functions and logarithms of this file:"
            yield "scores are the same to 1e-14, of those above 1 relatively, and labels where the"
            yield "lead is more than 1e-12."
        if made.dtype == "float32":
            yield "Values are float32; thresholds are rounded down to float32 without a loss."
        if made.vote_dtype == "float32":
            yield "Votes and their sums are float32."
        return
    bound, terms = made.fixed.bound, made.fixed.terms
    what = "the size of a score" if made.part.n_scores == 1 else "the lead of a score over the next"
    yield f"Scores are counted in {made.fixed.scale:.17g}, votes in 2**{-made.fixed.shift}."
    if isinstance(made.model, CalibratedModel) and made.model.knot is not None:
        yield "They are the values of the model that was calibrated, less the one at which the"
        yield "probability of the second label crosses 1/2."
    yield f"At most {terms} of these, each rounded, are added up for a row on the grid."
    if classes is None:
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
        read[made.exact.tests.feature] = True
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
    table_of, meaning = made.model.table, ""
    if made.grid is not None:
        offset, step = made.grid.offset[column], made.grid.step[column]
        meaning = f", value = {offset:.17g} + {step:.17g} * x[{column}]"
    values = None if table_of is None else table_of.values_of(column)
    if values is None or table_of is None:
        return meaning
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
    test_rows, expected = _test_rows(made)
    differs = "h[k] != known[k]"
    if not is_exact(made.part):
        room = f"{TOLERANCE} * (1.0 + (known[k] < 0.0 ? -known[k] : known[k]))"
        differs = f"!(h[k] - known[k] < {room} && known[k] - h[k] < {room})"
    main = function(
        "int main(void)",
        "int wrong = 0;",
        f"for (int r = 0; r < {len(test_rows)}; r++) {{",
        (
            f"const {made.value} *x = {p}_test_rows + r * {upper}_FEATURES;",
            f"const {made.total} *known = {p}_test_scores + r * {n};",
            f"{made.total} h[{n}];",
            f"{p}_scores(x, h);" if n > 1 else f"h[0] = {p}_score(x);",
            f"for (int k = 0; k < {n}; k++) wrong += {differs};",
        ),
        "}",
        f'printf("%d scores of {len(test_rows)} rows differ\\n", wrong);',
        "return wrong != 0;",
    )
    parts = [
        f"#ifdef {upper}_SELF_TEST\n#include <math.h>\n#include <stdio.h>",
        table(f"{p}_test_rows", test_rows),
        table(f"{p}_test_scores", expected),
        f"{main}\n#endif",
    ]
    return "\n\n".join(parts)


def _test_rows(made: Making) -> tuple[Array, Array]:
    """Return the rows of the self-test, and their scores, as the file has them."""
    rows = made.rows
    if rows is None or not len(rows):
        rows = _made_rows(made)
    else:
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, TEST_ROWS).astype(np.intp))]
    test_rows = rows.astype(made.dtype) if made.grid is None else made.grid.numbers(rows)
    if made.fixed is None and made.vote_dtype == "float64":
        return test_rows, scores_of(made.model, test_rows.astype(np.float64))
    assert isinstance(made.part, Walk)
    return test_rows, sums_of(made.part, test_rows)


def _made_rows(made: Making) -> FloatArray:
    """Return rows made of thresholds, levels and holes; the same for the same model."""
    model, d = made.model, made.model.n_features
    rng = np.random.default_rng(0)
    column_values: list[list[FloatArray]] = [[] for _ in range(d)]
    for tests in (walk.tests for walk in walks(made.exact)):
        if tests.inputs is not None or not len(tests):
            continue
        order = np.argsort(tests.feature, kind="stable")
        columns, first = np.unique(tests.feature[order], return_index=True)
        for j, of in zip(
            columns.tolist(), np.split(tests.threshold[order], first[1:]), strict=True
        ):
            column_values[j].append(of)
    levels = np.zeros(d, dtype=int) if model.table is None else model.table.n_levels
    rows = np.empty((TEST_ROWS, d))
    for j in range(d):
        if levels[j]:
            rows[:, j] = rng.integers(0, levels[j], TEST_ROWS)
            continue
        near = np.concatenate(column_values[j]) if column_values[j] else np.array([-1.0, 0.0, 1.0])
        near = near[np.abs(near) < np.finfo(np.float32).max / 4]
        at = rng.choice(near, TEST_ROWS) if len(near) else np.zeros(TEST_ROWS)
        rows[:, j] = at + rng.integers(-1, 2, TEST_ROWS) * np.maximum(1.0, np.abs(at)) / 64
    if model.takes_missing:
        rows[rng.random(rows.shape) < HOLES] = np.nan
    return rows


# The public function

#: Bytes of code of Cortex-M0 as arm-none-eabi-gcc -Os makes it of walks in int16 that add up one
#: number: of chains, whose nodes add one vote each, other graphs, one tree, and several.
CHAIN, GRAPH, TREE, TREES = 101, 108, 104, 132
#: Bytes more where several numbers are added up, of each of them, and where nodes ask for sets, of
#: at most eight levels or of more; fewer where numbers are predicted.
SEVERAL, EACH, SMALL_SETS, SETS, NUMBER = 62, 2, 36, 54, 16
#: The same of walks that rows leave early, with what asks at joints and multiplies by slopes;
#: beside these what is more for two decision values or three, whose loops are unrolled, or more,
#: and where they are shares, of one, two or three, or more.
LEAVING_CHAIN, LEAVING_GRAPH, LEAVING_TREES = 226, 228, 260
LEAVING_FEW, LEAVING_SEVERAL, LEAVING_SMALL_SETS, LEAVING_SETS = 198, 90, 44, 58
SHARE, FEW_SHARES, SHARES = 48, 92, 134
#: The most decision values whose loops are unrolled.
FEW = 3
#: An address.
ADDRESS = 4
#: The numbers that rows have in a file, and votes.
CDtype: TypeAlias = Literal["float64", "float32", "int16"]
DTYPES: tuple[CDtype, ...] = get_args(CDtype)
VoteDtype: TypeAlias = Literal["float64", "float32"]
VOTES: tuple[VoteDtype, ...] = get_args(VoteDtype)


@dataclass(frozen=True, slots=True, eq=False)
class CFile:
    """What a C file holds, as `to_c` returns it.

    Attributes
    ----------
    dtype, vote_dtype : str
        The numbers of rows, and of votes: "int32" where rows are int16.
    prefix : str
        What its names begin with.
    offset, step : ndarray of float64, shape (n_features,), or None
        Of int16 the values of columns: number q of column j stands for ``offset[j] + step[j] * q``.
    scale : float
        What sums of the file are multiplied by to be decision values: 1 but of int16. Of an
        isotonic calibration in int16 they are then the decision values of ``model.model`` less that
        at which the probability crosses 1/2.
    bound : float
        Size of a decision value, of several its lead over the next, beyond which the label is sure
        to be that of `predict` for the same row: 0.0 but of int16. A row within it has nearly no
        lead. Of a regression how far values are from those of `predict`. Of models that rows leave
        early the value is that with which a row leaves, and at no joint before it may be less than
        twice the bound from where the row would leave.
    uncertain : int or None
        Of int16, how many rows of X are within the bound; None without X.
    n_bytes : int or None
        Of int16, about how many bytes code and tables take, with labels: as arm-none-eabi-gcc -Os
        makes them for Cortex-M0, within 5 % from 400 bytes on. Where rows leave early the
        compiler's own functions of 64 bits come beside it: 92 bytes, of shares of several labels
        804. None of other numbers.
    """

    dtype: CDtype
    vote_dtype: VoteDtype | Literal["int32"]
    prefix: str
    offset: FloatArray | None
    step: FloatArray | None
    scale: float
    bound: float
    uncertain: int | None
    n_bytes: int | None = None

    def to_grid(self, X: ArrayLike) -> NDArray[np.int16]:
        """Return rows X (n, n_features) of numbers as the file reads them in int16.

        Values are rounded to the nearest point of the grid, those beyond it to its ends; NaN is
        -32768.
        """
        return self._grid().numbers(np.asarray(X, dtype=np.float64))

    def from_grid(self, q: ArrayLike) -> FloatArray:
        """Return the values for which numbers (n, n_features) of int16 stand."""
        return self._grid().values(np.asarray(q))

    def _grid(self) -> Grid:
        if self.offset is None or self.step is None:
            raise ValueError(f'dtype: expected a file of "int16", got one of "{self.dtype}"')
        return Grid(self.offset, self.step)


def to_c(
    model: Model,
    path: str | os.PathLike[str],
    dtype: CDtype = "float64",
    *,
    prefix: str = "model",
    vote_dtype: VoteDtype = "float64",
    X: TableLike | None = None,
    ranges: ArrayLike | None = None,
    grid_steps: ArrayLike | None = None,
    explain: bool = False,
) -> CFile:
    r"""Write a model as one file of C99, without malloc and without libraries.

    It has constant tables and functions: ``<prefix>_predict(x)`` returns the place of the label of
    a row in ``<prefix>_classes``, or the number; ``<prefix>_score(x)``, of several decision values
    ``<prefix>_scores(x, scores)``, what `decision_function` returns, or the shares of labels of
    trees and forests of more than two. A graph stays the graph that it is: where exits join there
    is one node. Rows leave an `EarlyExitModel`, such as one of `fit_within_budget`, where they do
    here. Compiled with ``-D<PREFIX>_SELF_TEST`` the file is a program that evaluates 20 rows
    and compares the scores, unless the model has more than 65,536 columns.

    Parameters
    ----------
    model : DecisionGraph, Tree, RandomForest, GradientBoostingModel, EarlyExitModel, ProbitTree or
    others
        A model of comparisons, sums and products. See Raises for what is left out.
    path : str or path-like
        The file. One that is there is replaced as a whole, as by `save`.
    dtype : {"float64", "float32", "int16"}
        The numbers of a row. "float64": the bits of `decision_function`. "float32": the same for
        rows of float32. "int16": integers only, see Notes.
    prefix : str
        What all names in the file begin with, an identifier of C.
    vote_dtype : {"float64", "float32"}
        With ``dtype="float32"``: the numbers of votes and of their sums. In float32 they take half
        of the room; scores are then rounded.
    X : array_like of shape (n, d), or data frame, optional
        Rows, such as those of the training: of these are the rows of the self-test. In int16 they
        say how far columns reach, unless `ranges` does.
    ranges : array_like of shape (d, 2), optional
        With ``dtype="int16"``: the least and the largest value of each column.
    grid_steps : float, or array_like of shape (d,), optional
        With ``dtype="int16"``: the distances of the values that columns can have, such as 1 for the
        counts of a converter. Default: 1 for columns of X of whole numbers, if they have at most
        65535 values; else the least power of two with which the range has room.
    explain : bool
        Add ``<prefix>_path(x, at, most)``, which writes to ``at`` the exits that a row takes, as
        ``2 * node + exit``, at most so many, and returns their number. Of graphs and trees.

    Returns
    -------
    CFile
        What the numbers in the file stand for.

    Raises
    ------
    NotImplementedError
        If the model holds functions (oracles, hypotheses, other packages); if it is an
        `EarlyExitModel` within a feature cost, or of other than graphs, forests and sums of trees
        (``model.model`` can be exported); if its members number the categories of a feature in
        different ways, as those of an ensemble can do with more than 255 categories.
        If `dtype` is "int16" and nodes compare sums of columns, the model consists of others or has
        more than 65,536 columns; or if it is a calibration of more than two labels, or of early
        exits.
    ValueError
        If an argument is not as described, or ``dtype="int16"`` comes without `X` and `ranges`.
    OSError
        If the file cannot be written; what was there before is then unchanged.

    See Also
    --------
    save : a file for Python.

    Notes
    -----
    In "int16" number q of column j stands for ``offset[j] + step[j] * q``, and -32768 for a missing
    value. Thresholds are points of this grid, so that for rows on it comparisons are those of the
    model. Votes are rounded to multiples of 2\ :sup:`-s`, with the largest s with which no sum
    overflows int32, and added up in int32. Where T votes are added up the sum is within
    T 2\ :sup:`-s-1` of the decision value, so that labels agree wherever that is larger; the head
    of the file has the number. Rows leave early where they do here, unless a value is below the
    threshold of its joint by less than twice the bound. Sums with which they
    leave are multiplied by the slopes in 64 bits.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 1.0], [3.0, 5.0]])
    >>> model = pb.fit_adaboost(X, ["no", "no", "yes", "yes"], n_estimators=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "model.c")
    ...     made = pb.export.to_c(model, file, "int16", X=X)
    ...     text = file.read_text()
    >>> "int model_predict(const int16_t *x);" in text
    True
    >>> made.to_grid([[2.0, np.nan]]).tolist()
    [[2, -32768]]
    """
    check_model(model)
    where = check_path(path)
    check_choice("dtype", dtype, DTYPES)
    check_prefix(prefix)
    check_choice("vote_dtype", vote_dtype, VOTES)
    check_flag("explain", explain)
    if vote_dtype != VOTES[0] and dtype != "float32":
        raise ValueError(
            f'vote_dtype: expected "float64" unless dtype="float32", got {vote_dtype!r}'
        )
    if dtype != "int16" and not (ranges is None and grid_steps is None):
        raise ValueError(
            f'ranges, grid_steps: expected None unless dtype="int16", got dtype={dtype!r}'
        )
    rows = None if X is None else _rows_of(model, X)
    part = part_of(model)
    if explain and not (isinstance(part, Walk) and part.exits is None):
        raise NotImplementedError("explain: only graphs, trees and sums of trees have paths")
    if vote_dtype != VOTES[0] and not (isinstance(part, Walk) and part.tests.inputs is None):
        raise NotImplementedError(
            'vote_dtype: "float32" is for graphs, trees and sums of trees whose nodes compare columns; '
            '"float64" is for all'
        )
    made = Making(model, prefix, part, part, dtype, vote_dtype, rows=rows)
    if dtype == "int16":
        part = folded(model, part)
        made = _in_fixed_point(replace(made, exact=part, part=part), ranges, grid_steps)
    elif dtype == "float32":
        made = replace(made, part=single_part(part, vote_dtype))
    replace_file(where, text_of(made, explain).encode("ascii"))
    fixed, grid = made.fixed, made.grid
    if fixed is None or grid is None:
        return CFile(dtype, vote_dtype, prefix, None, None, 1.0, 0.0, None)
    grid_fields = grid.offset, grid.step, fixed.scale, fixed.bound, made.uncertain
    return CFile(dtype, "int32", prefix, *grid_fields, fixed_size(model, fixed.part))


def _in_fixed_point(made: Making, ranges: ArrayLike | None, grid_steps: ArrayLike | None) -> Making:
    """Return the same in the numbers of int16."""
    walk, model, rows = compared(made.part), made.model, made.rows
    if rows is None and ranges is None:
        raise ValueError(
            'X: expected rows with dtype="int16", or ranges=, the least and the largest value of '
            "each column; a model does not know how far its columns reach"
        )
    if model.n_features > MOST_TESTED:
        raise NotImplementedError(
            f'dtype="int16": is for models of at most {MOST_TESTED} columns, got '
            f"{model.n_features}; fit the model to the columns that it reads"
        )
    is_level = np.zeros(model.n_features, dtype=np.bool_)
    tests = walk.tests
    is_level[tests.feature[tests.category_set >= 0]] = True
    if model.table is not None:
        is_level |= model.table.n_levels > 0
    grid = grid_of(model.n_features, np.unique(tests.feature), is_level, rows, ranges, grid_steps)
    fixed, uncertain = fixed_part(walk, grid), None
    if rows is not None and model.classes is not None:
        on_grid = grid.values(grid.numbers(rows))
        if walk.exits is not None or isinstance(model, CalibratedModel):
            lead = leave_walk(walk, on_grid).near
        else:
            score = scores_of(model, on_grid)
            lead = sizes(score[:, 0] if score.shape[1] == 1 else score)
        uncertain = int(np.count_nonzero(lead <= fixed.bound))
    return replace(made, part=fixed.part, fixed=fixed, grid=grid, uncertain=uncertain)


def _rows_of(model: Model, X: TableLike) -> FloatArray:
    """Return rows as the file reads them: columns in order, level numbers, NaN."""
    return np.asarray(finite_columns(model, X).values, dtype=np.float64)


# Size


def c_size(model: Model) -> int:
    """Return about how many bytes the file of a model takes in int16.

    Raises
    ------
    NotImplementedError
        If the model cannot be exported in int16.
    """
    part = folded(model, part_of(model))
    compared(part)
    # Where thresholds lie makes no difference to their room.
    grid = Grid(*np.broadcast_to([[0.0], [1.0]], (2, model.n_features)))
    return fixed_size(model, fixed_part(part, grid).part)


def fixed_size(model: Model, part: Walk) -> int:
    """Return about how many bytes a walk in fixed point takes with its labels."""
    code = Code("", TYPES["int16"], TYPES["int32"], model.takes_missing)
    write_part(code, "", part)
    return code.n_bytes + _labels(model.classes) + _code(part) - NUMBER * (model.classes is None)


def _labels(classes: Array | None) -> int:
    """Return the bytes of the table of labels, and of their names."""
    if classes is None:
        return 0
    if classes.dtype.kind != "U":
        fits_int32 = classes.dtype.kind in "biu" and bool(
            (np.abs(classes.astype(float)) < 2**31).all()
        )
        return len(classes) * (4 if fits_int32 else 8)
    names = (label.encode("utf-8", "surrogatepass") for label in classes.tolist())
    return sum(ADDRESS + len(name) + 1 for name in names)


def _code(walk: Walk) -> int:
    """Return the bytes of code."""
    part, n = walk.exits, walk.n_scores
    if not walk.is_graph:
        chosen = TREES if len(walk.root) > 1 else TREE
    else:
        chosen = CHAIN if walk.is_chain and walk.added.shape[-1] == 1 else GRAPH
    small, large, several = SMALL_SETS, SETS, SEVERAL + EACH * n
    if part is not None:
        chosen = LEAVING_TREES
        if walk.is_graph:
            chosen = LEAVING_CHAIN if walk.is_chain else LEAVING_GRAPH
        small, large = LEAVING_SMALL_SETS, LEAVING_SETS
        several = LEAVING_FEW if n <= FEW else LEAVING_SEVERAL + EACH * n
        if part.is_share:
            chosen += SHARE if n == 1 else FEW_SHARES if n <= FEW else SHARES
    if (walk.tests.category_set >= 0).any():
        chosen += large if walk.tests.sets.shape[1] > 1 else small
    return chosen + several * (n > 1)
