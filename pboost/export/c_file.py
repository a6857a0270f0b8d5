"""Models as C files: one file, without libraries, that gives the same decision values."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.read.check_xy import check_finite
from pboost.export.c_form import Walk
from pboost.export.c_lower import part_of
from pboost.export.c_numbers import (
    Grid,
    compared,
    fixed_part,
    folded,
    grid_of,
    leave_walk,
    single_part,
)
from pboost.export.c_print import TYPES, Code, check_prefix, write_part
from pboost.export.c_program import MOST_TESTED, Making, scores_of, text_of
from pboost.models.base import Model, check_model
from pboost.models.calibrated import CalibratedModel
from pboost.models.evaluate.exits import sizes
from pboost.models.evaluate.new_rows import match_columns
from pboost.models.files import check_path, replace_file
from pboost.values import FloatArray, check_choice, check_flag

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
DTYPES = ("float64", "float32", "int16")
VOTES = ("float64", "float32")


@dataclass(frozen=True, slots=True, eq=False)
class CFile:
    """What a C file holds, as `export_c` returns it.

    Attributes
    ----------
    dtype, votes : str
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

    dtype: str
    votes: str
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


def export_c(
    model: Model,
    path: str | os.PathLike[str],
    dtype: str = "float64",
    *,
    prefix: str = "model",
    votes: str = "float64",
    X: Any = None,
    ranges: ArrayLike | None = None,
    steps: ArrayLike | None = None,
    explain: bool = False,
) -> CFile:
    r"""Write a model as one file of C99, without malloc and without libraries.

    It has constant tables and functions: ``<prefix>_predict(x)`` returns the place of the label of
    a row in ``<prefix>_labels``, or the number; ``<prefix>_score(x)``, of several decision values
    ``<prefix>_scores(x, scores)``, what `decision_function` returns, or the shares of labels of
    trees and forests of more than two. A graph stays the graph that it is: where exits join there
    is one node. Rows leave an `EarlyExitModel`, such as one of `fit_within`, where they do here.
    Compiled with ``-D<PREFIX>_SELF_TEST`` the file is a program that evaluates 20 rows
    and compares the scores, unless the model has more than 65,536 columns.

    Parameters
    ----------
    model : DecisionGraph, Tree, Forest, StagewiseModel, EarlyExitModel, ProbitTree or others
        A model of comparisons, sums and products. See Raises for what is left out.
    path : str or path-like
        The file. One that is there is replaced as a whole, as by `save`.
    dtype : {"float64", "float32", "int16"}
        The numbers of a row. "float64": the bits of `decision_function`. "float32": the same for
        rows of float32. "int16": integers only, see Notes.
    prefix : str
        What all names in the file begin with, an identifier of C.
    votes : {"float64", "float32"}
        With ``dtype="float32"``: the numbers of votes and of their sums. In float32 they take half
        of the room; scores are then rounded.
    X : array_like of shape (n, d), or data frame, optional
        Rows, such as those of the training: of these are the rows of the self-test. In int16 they
        say how far columns reach, unless `ranges` does.
    ranges : array_like of shape (d, 2), optional
        With ``dtype="int16"``: the least and the largest value of each column.
    steps : float, or array_like of shape (d,), optional
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
        `EarlyExitModel` within a price, or of other than graphs, forests and sums of trees
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
    >>> model = pb.fit_adaboost(X, ["no", "no", "yes", "yes"], rounds=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "model.c")
    ...     made = pb.export_c(model, file, "int16", X=X)
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
    check_choice("votes", votes, VOTES)
    check_flag("explain", explain)
    if votes != VOTES[0] and dtype != "float32":
        raise ValueError(f'votes: expected "float64" unless dtype="float32", got {votes!r}')
    if dtype != "int16" and not (ranges is None and steps is None):
        raise ValueError(f'ranges, steps: expected None unless dtype="int16", got dtype={dtype!r}')
    rows = None if X is None else _rows_of(model, X)
    part = part_of(model)
    if explain and not (isinstance(part, Walk) and part.exits is None):
        raise NotImplementedError("explain: only graphs, trees and sums of trees have paths")
    if votes != VOTES[0] and not (isinstance(part, Walk) and part.tests.inputs is None):
        raise NotImplementedError(
            'votes: "float32" is for graphs, trees and sums of trees whose nodes compare columns; '
            '"float64" is for all'
        )
    made = Making(model, prefix, part, part, dtype, votes, rows=rows)
    if dtype == "int16":
        part = folded(model, part)
        made = _in_fixed_point(replace(made, exact=part, part=part), ranges, steps)
    elif dtype == "float32":
        made = replace(made, part=single_part(part, votes))
    replace_file(where, text_of(made, explain).encode("ascii"))
    fixed, grid = made.fixed, made.grid
    if fixed is None or grid is None:
        return CFile(dtype, votes, prefix, None, None, 1.0, 0.0, None)
    own = grid.offset, grid.step, fixed.scale, fixed.bound, made.uncertain
    return CFile(dtype, "int32", prefix, *own, fixed_size(model, fixed.part))


def _in_fixed_point(made: Making, ranges: Any, steps: Any) -> Making:
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
    is_level[tests.column[tests.set_number >= 0]] = True
    if model.table is not None:
        is_level |= model.table.n_levels > 0
    grid = grid_of(model.n_features, np.unique(tests.column), is_level, rows, ranges, steps)
    fixed, uncertain = fixed_part(walk, grid), None
    if rows is not None and model.labels is not None:
        given = grid.values(grid.numbers(rows))
        if walk.exits is not None or isinstance(model, CalibratedModel):
            lead = leave_walk(walk, given).near
        else:
            score = scores_of(model, given)
            lead = sizes(score[:, 0] if score.shape[1] == 1 else score)
        uncertain = int(np.count_nonzero(lead <= fixed.bound))
    return replace(made, part=fixed.part, fixed=fixed, grid=grid, uncertain=uncertain)


def _rows_of(model: Model, X: Any) -> FloatArray:
    """Return rows as the file reads them: columns in order, level numbers, NaN."""
    features = match_columns(model, X)
    check_finite(features, model.takes_missing)
    return np.asarray(features.values, dtype=np.float64)


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
    return code.n_bytes + _labels(model.labels) + _code(part) - NUMBER * (model.labels is None)


def _labels(labels: NDArray[Any] | None) -> int:
    """Return the bytes of the table of labels, and of their names."""
    if labels is None:
        return 0
    if labels.dtype.kind != "U":
        is_whole = labels.dtype.kind in "biu" and bool((np.abs(labels.astype(float)) < 2**31).all())
        return len(labels) * (4 if is_whole else 8)
    names = (label.encode("utf-8", "surrogatepass") for label in labels.tolist())
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
    if (walk.tests.set_number >= 0).any():
        chosen += large if walk.tests.member.shape[1] > 1 else small
    return chosen + several * (n > 1)
