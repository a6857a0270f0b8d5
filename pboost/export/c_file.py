"""Export of models to C files that need no libraries and compute the same decision values."""

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
from pboost.export.c_intermediate import Part, Walk, is_exact, part_of, walks
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
from pboost.export.c_types import (
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
from pboost.models.as_trees import link_of
from pboost.models.base import Averaged, Model, TwoClassModel, check_model
from pboost.models.calibrated import CalibratedModel
from pboost.models.evaluate.exits import sizes
from pboost.models.evaluate.match_input import finite_columns
from pboost.models.files import check_path, replace_file
from pboost.models.gradient_boosting import GradientBoostingModel
from pboost.models.text import counted
from pboost.values import Array, FloatArray, TableLike, check_choice, check_flag
from pboost.values.options import builder

#: Maximum number of features listed in the header comment.
MOST_LISTED = 256
#: Number of rows of the self-test, and the probability that a value is missing.
TEST_ROWS, HOLES = 20, 0.1
#: Maximum number of features for which test rows are written.
MOST_TESTED = 1 << 16
#: Tolerance of the self-test for models with exponential functions.
TOLERANCE = 1e-14


@dataclass(frozen=True, slots=True, eq=False)
class Making:
    """A model and its conversion to a C file.

    Attributes
    ----------
    model : Model
        The model.
    prefix : str
        Prefix of all names.
    exact, part : Part
        Representation of the model in float64, and in the number types of the file.
    dtype, vote_dtype : str
        Number types of rows and of votes.
    grid, fixed : Grid and Fixed, or None
        For int16, the grid of the features and the fixed-point model.
    uncertain : int or None
        Number of rows in `rows` whose class may differ because of rounding.
    rows : ndarray or None
        Rows that the user passed as X.
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
        """C type of the values of a row."""
        return TYPES[self.dtype]

    @property
    def total(self) -> str:
        """C type of decision values."""
        return TYPES["int32" if self.fixed is not None else self.vote_dtype]


def scores_of(model: Model, rows: FloatArray) -> FloatArray:
    """Return the decision values or class shares (n, J) of rows whose categories are codes."""
    X: TableLike = rows
    if model.table is not None:
        X = Features(rows, model.feature_names, model.table)
    if isinstance(model, Averaged):
        scores = model.values_of_mean(model.mean(X))
    else:
        scores = model.decision_function(X)
    return scores.reshape(len(rows), -1)


def text_of(made: Making, explain: bool) -> str:
    """Return the text of the C file. With `explain`, it has a function that writes paths."""
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
    """Return the C functions for decision values, predictions and paths.

    Regressions in fixed point have no predict function. At an early exit, the class is predicted
    from values that are not yet scaled and rounded.
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
    """Return the C function that writes the path of a row."""
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
    """Return the table of the class labels."""
    n = f"{prefix}_classes"
    if classes.dtype.kind == "U":
        return filled_table(f"char *const {n}", [string(v) for v in classes.tolist()], static=False)
    if classes.dtype.kind in "bi" or (classes.dtype.kind == "u" and classes.dtype.itemsize < 8):
        integers = classes.astype(np.int64)
        small = bool((np.abs(integers) < 2**31).all())
        return table(n, integers.astype(np.int32) if small else integers, static=False)
    return table(n, classes.astype(np.float64), static=False)


# The header comment


def _head(made: Making) -> Iterator[str]:
    """Yield the lines of the header comment."""
    model, upper = made.model, made.prefix.upper()
    yield f"{plain(repr(model))}"
    yield f"Made by pboost {plain(__version__)}."
    yield ""
    if isinstance(model, TwoClassModel) and len(model.record.certificate):
        note = f" ({plain(model.certificate_note)})" if model.certificate_note else ""
        certificate = model.record.certificate[-1]
        yield f"Certificate, an upper bound on the training error: {certificate:.6g}{note}"
    part = made.part
    if isinstance(part, Walk) and part.exits is not None:
        yield f"Prediction can stop early at up to {counted(len(part.exits.at), 'exit')}."
    yield from _numbers(made)
    if model.takes_missing:
        missing = NO_VALUE if made.fixed else "NaN"
        yield f"A missing value is {missing}."
    else:
        yield "Missing values are not supported."
        yield f"To compile a self-test: cc -std=c99 -D{upper}_SELF_TEST"
    yield ""
    yield from _columns(made)


def _numbers(made: Making) -> Iterator[str]:
    """Yield lines that describe the number types and their precision."""
    classes = made.model.classes
    if made.fixed is None:
        yield "Compile with -ffp-contract=off and without -ffast-math."
        yield "On 32-bit x86, add -msse2 -mfpmath=sse."
        if not is_exact(made.part):
            yield "Probabilities use the exponential function and the logarithm of this file."
            yield "Scores agree to 1e-14 (relative above 1)."
            yield "Classes agree if the lead is more than 1e-12."
        elif made.vote_dtype == "float64":
            yield "Scores are then bit-identical to the model."
        if made.dtype == "float32":
            yield "Values are float32. Rounding thresholds down to float32 changes no split."
        if made.vote_dtype == "float32":
            yield "Votes and their sums are float32."
        return
    bound, terms = made.fixed.bound, made.fixed.terms
    what = "the absolute score" if made.part.n_scores == 1 else "the lead of a score over the next"
    scale, shift = made.fixed.scale, made.fixed.shift
    yield f"The unit of scores is {scale:.17g}, and the unit of votes is 2**{-shift}."
    if isinstance(made.model, CalibratedModel) and made.model.knot is not None:
        yield "Scores are values of the uncalibrated model minus its value at a probability of 1/2."
    yield f"For a row on the grid, a score is a sum of at most {terms} rounded votes."
    if classes is None:
        yield f"A score differs from the prediction by at most {bound:.6g}."
        return
    yield f"The class is equal to the class of the model if {what} is larger than {bound:.6g}."
    if made.fixed.part.exits is not None:
        yield "With early exits, this holds for the score at the exit of a row."
        yield "Scores at earlier exits must be more than twice this bound below the threshold."
    if made.uncertain is not None:
        yield f"Number of rows passed as X whose class may differ: {made.uncertain}."


def _columns(made: Making) -> Iterator[str]:
    """Yield a line for each feature that the model reads."""
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
        yield f"... ({len(columns)} features are read)"
    if len(columns) < d:
        yield "Other features are not read."


def _meaning(made: Making, column: int) -> str:
    """Return a description of the values of a feature."""
    table_of, meaning = made.model.table, ""
    if made.grid is not None:
        offset, step = made.grid.offset[column], made.grid.step[column]
        meaning = f", value = {offset:.17g} + {step:.17g} * x[{column}]"
    values = None if table_of is None else table_of.values_of(column)
    if values is None or table_of is None:
        return meaning
    known = table_of.level_names(column) or [str(v) for v in values.tolist()]
    pairs = ", ".join(f"{k} = {plain(name)}" for k, name in enumerate(known))
    return f", category code: {pairs}; other values are missing"


# The self-test


def _self_test(made: Making) -> str:
    """Return the self-test program, or an #error directive if there are too many features."""
    p, n, upper = made.prefix, made.part.n_scores, made.prefix.upper()
    if made.model.n_features > MOST_TESTED:
        error = f'#error "models with more than {MOST_TESTED} features have no self-test"'
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
    """Return the rows of the self-test and their expected scores, in the types of the file."""
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
    """Return random test rows. Numbers are near thresholds, and some values are missing."""
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

#: Code size in bytes on Cortex-M0 (arm-none-eabi-gcc -Os), for int16 and one output. CHAIN is for
#: graphs in which both branches of a node lead to the next node.
CHAIN, GRAPH, TREE, TREES = 101, 108, 104, 132
#: Additional bytes for several outputs, for each output, for category sets of at most eight
#: categories, and for larger sets. A regression saves NUMBER bytes.
SEVERAL, EACH, SMALL_SETS, SETS, NUMBER = 62, 2, 36, 54, 16
#: Code sizes of models with early exits. Class shares need additional code, and compilers unroll
#: loops over two or three outputs (FEW).
LEAVING_CHAIN, LEAVING_GRAPH, LEAVING_TREES = 226, 228, 260
LEAVING_FEW, LEAVING_SEVERAL, LEAVING_SMALL_SETS, LEAVING_SETS = 198, 90, 44, 58
SHARE, FEW_SHARES, SHARES = 48, 92, 134
#: Maximum number of outputs whose loops are unrolled.
FEW = 3
#: Size of an address in bytes.
ADDRESS = 4
#: Number types of rows, and of votes.
CDtype: TypeAlias = Literal["float64", "float32", "int16"]
DTYPES: tuple[CDtype, ...] = get_args(CDtype)
VoteDtype: TypeAlias = Literal["float64", "float32"]
VOTES: tuple[VoteDtype, ...] = get_args(VoteDtype)


@dataclass(frozen=True, slots=True, eq=False)
class CFile:
    """Description of a C file, as returned by `to_c`.

    Attributes
    ----------
    dtype, vote_dtype : str
        Number types of rows and of votes. If rows are int16, votes are "int32".
    prefix : str
        Prefix of all names in the file.
    offset, step : ndarray of float64, shape (n_features,), or None
        For int16, the grid of each feature: the number q stands for the value ``offset[j] + step[j]
        * q``.
    scale : float
        Factor that converts the integer scores of an int16 file to decision values; otherwise 1.0.
        With isotonic calibration, the product is the decision value of ``model.model`` minus the
        value at which the probability crosses 1/2.
    bound : float
        Bound on rounding errors; 0.0 unless rows are int16. For a regression, it is the largest
        difference from `predict`. A classifier returns the class of `predict` if the absolute
        decision value, or the lead over the next class, is larger than the bound. With early exits,
        this also requires that values at earlier exits were more than twice the bound below the
        threshold.
    uncertain : int or None
        For int16 classifiers, the number of rows of `X` whose class may differ from `predict`;
        None without `X`.
    n_bytes : int or None
        For int16, the approximate size in bytes of code, tables and class labels for Cortex-M0
        (arm-none-eabi-gcc -Os). Above 400 bytes, the error is at most 5 %. Models with early exits
        also need 64-bit functions of the compiler, which take 92 bytes, or 804 bytes for class
        shares of several classes. None for other number types.
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
        """Convert rows X (n, n_features) to the int16 numbers that the file reads.

        Values are rounded to the nearest grid point and clipped to the grid; NaN becomes -32768.
        """
        return self._grid().numbers(np.asarray(X, dtype=np.float64))

    def from_grid(self, q: ArrayLike) -> FloatArray:
        """Convert int16 numbers (n, n_features) back to feature values."""
        return self._grid().values(np.asarray(q))

    def _grid(self) -> Grid:
        if self.offset is None or self.step is None:
            raise ValueError(f'dtype: expected a file with "int16" rows, got "{self.dtype}"')
        return Grid(self.offset, self.step)


@builder
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
    r"""Write a model to a single C99 file that needs neither malloc nor libraries.

    The file has constant tables and functions. ``<prefix>_predict(x)`` returns the predicted number
    or, for a classifier, the index of the predicted class in ``<prefix>_classes``.
    ``<prefix>_score(x)``, or ``<prefix>_scores(x, scores)`` if there are several outputs, returns
    the values of `decision_function`; for trees and forests with more than two classes, these are
    class shares. A decision graph is not expanded to trees, and the early exits of an
    `EarlyExitModel` are kept. Compiled with ``-D<PREFIX>_SELF_TEST``, the file is a program that
    evaluates 20 rows and compares the scores, unless there are more than 65,536 features.

    Parameters
    ----------
    model : fitted model of pboost
        A model such as a decision graph, a tree, a random forest or an `EarlyExitModel`. See Raises
        for models that are not supported.
    path : str or path-like
        Path of the file. An existing file is replaced atomically, as by `save`.
    dtype : {"float64", "float32", "int16"}
        Number type of a row. With "float64", scores are bit-identical to `decision_function`; with
        "float32", they are bit-identical for float32 rows. "int16" uses only integers, see Notes.
    prefix : str
        Prefix of all names in the file, a C identifier.
    vote_dtype : {"float64", "float32"}
        Number type of votes and their sums. "float32" requires ``dtype="float32"``. It halves the
        size of the tables, but scores are rounded.
    X : array_like of shape (n, d), or data frame, optional
        Rows, such as the training data. They are used for the self-test and, with
        ``dtype="int16"``, for the range of each feature unless `ranges` is passed.
    ranges : array_like of shape (d, 2), optional
        Minimum and maximum of each feature. Only for ``dtype="int16"``.
    grid_steps : float, or array_like of shape (d,), optional
        Distance between grid points, such as 1 for the output of an analog-to-digital converter.
        Only for ``dtype="int16"``. By default, it is 1 for integer features of `X` whose range
        fits in 65535 points, and otherwise the smallest power of two for which the range fits.
    explain : bool
        Whether to add the function ``<prefix>_path(x, at, most)`` to the file of a graph or of
        trees. For each node on the path of a row, it writes ``2 * node + exit`` to the array
        ``at``, which has room for ``most`` numbers. It returns the length of the path.

    Returns
    -------
    CFile
        Description of the number types, the grid, the error bound and the size of the file.

    Raises
    ------
    NotImplementedError
        If the model contains Python functions or models of other packages; if it is an
        `EarlyExitModel` with a feature cost, or without a graph, forest or gradient boosting model
        inside (export ``model.model`` instead); or if base learners encode the same categorical
        feature differently, which can happen with more than 255 categories. "int16" also does not
        support splits on sums of features, models that combine other models, more than 65,536
        features, calibrated multiclass models, or calibrated models with early exits.
    ValueError
        If an argument is invalid, or ``dtype="int16"`` is used without `X` and `ranges`.
    OSError
        If the file cannot be written. An existing file is then unchanged.

    See Also
    --------
    save : Write a model to a file that pboost can load.

    Notes
    -----
    With "int16", the number q of feature j stands for ``offset[j] + step[j] * q``. The number
    -32768 stands for a missing value. Thresholds are points of this grid, so splits of rows on the
    grid are exact. Votes are rounded to multiples of 2\ :sup:`-s`, with the largest s for which no
    sum overflows int32. A sum of T votes is within T 2\ :sup:`-s-1` of the decision value. The
    header comment contains this bound. The predicted class is the same as in Python if the absolute
    decision value is larger than the bound. A row may stop earlier than in Python if its value is
    less than twice the bound below the threshold of an exit.

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
    >>> made.to_grid([[2.0, np.nan]]).tolist()
    [[2, -32768]]
    >>> made.n_bytes
    123
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
        raise NotImplementedError(
            f"explain: expected a graph, a tree or a sum of trees, got a {type(model).__name__}"
        )
    if vote_dtype != VOTES[0] and not (isinstance(part, Walk) and part.tests.inputs is None):
        raise NotImplementedError(
            'vote_dtype: "float32" is only supported for graphs, trees and sums of trees whose '
            'nodes compare features; use "float64"'
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
    """Convert a model to int16 rows and fixed-point votes."""
    walk, model, rows = compared(made.part), made.model, made.rows
    if rows is None and ranges is None:
        raise ValueError(
            'X: expected rows with dtype="int16", got None; a model does not store the range of '
            "features, so pass X, or ranges with the minimum and maximum of each feature"
        )
    if model.n_features > MOST_TESTED:
        raise NotImplementedError(
            f'dtype: "int16" is only supported for at most {MOST_TESTED} features, got '
            f"{model.n_features}; fit the model only to the features that it uses"
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
    """Return X as numbers, with category codes, and NaN for missing values."""
    return np.asarray(finite_columns(model, X).values, dtype=np.float64)


# Size


def c_size(model: Model) -> int:
    """Return the approximate size in bytes of the int16 file of a model.

    Raises
    ------
    NotImplementedError
        If the model cannot be exported in int16.
    """
    part = folded(model, part_of(model))
    compared(part)
    # Use any grid, because the size does not depend on it.
    grid = Grid(*np.broadcast_to([[0.0], [1.0]], (2, model.n_features)))
    return fixed_size(model, fixed_part(part, grid).part)


def fixed_size(model: Model, part: Walk) -> int:
    """Return the approximate size in bytes of the int16 file of a fixed-point model."""
    code = Code("", TYPES["int16"], TYPES["int32"], model.takes_missing)
    write_part(code, "", part)
    return code.n_bytes + _labels(model.classes) + _code(part) - NUMBER * (model.classes is None)


def _labels(classes: Array | None) -> int:
    """Return the size in bytes of the table of class labels."""
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
    """Return the size in bytes of the code."""
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
