"""The steps of a model that reads columns as C: functions of sums, and their tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.data.projections import Projections
from pboost.data.separators import Separators
from pboost.export.c_parts import Levels, Linear, LinearLeaves, Tests, Walk
from pboost.export.c_text import literal, narrow, table

#: What a missing value is in a row of int16.
NO_VALUE = -(2**15)
#: What a column's number is multiplied by where bits beside it say more of a node.
SIDE, SET = 2, 4


class Table(NamedTuple):
    """A constant table, which is written in the end."""

    name: str
    values: NDArray[Any]

    def __str__(self) -> str:
        return table(self.name, self.values)

    @property
    def n_bytes(self) -> int:
        """The room it takes; an empty one has a number that nobody reads."""
        return max(self.values.size, 1) * self.values.itemsize


@dataclass(slots=True)
class Code:
    """A C file in the making.

    Attributes
    ----------
    value : str
        Type of the values of a row.
    total : str
        Type of decision values.
    takes_missing : bool
        Whether values may be missing.
    blocks : list of Table and str
        Tables and functions so far.
    """

    value: str
    total: str
    takes_missing: bool
    blocks: list[Table | str] = field(default_factory=list)

    def table(self, name: str, values: NDArray[Any]) -> None:
        """Add a table."""
        self.blocks.append(Table(name, values))

    def function(self, head: str, *body: str) -> None:
        """Add a function, given the lines of its body."""
        lines = (f"    {line}" if line else "" for line in body)
        self.blocks.append("\n".join([f"static {head}", "{", *lines, "}"]))

    @property
    def n_bytes(self) -> int:
        """The room that all tables take."""
        return sum(block.n_bytes for block in self.blocks if isinstance(block, Table))


# The questions of nodes


def write_tests(code: Code, name: str, tests: Tests) -> None:
    """Add the function ``name_above(x, i)``: the exit of a row at node i."""
    has_sides = code.takes_missing and bool(tests.above.any()) and tests.inputs is None
    has_sets = bool((tests.set_number >= 0).any())
    factor = SET if has_sets else SIDE if has_sides else 1
    is_set = tests.set_number >= 0
    number = factor * tests.column.astype(np.int64)
    number += (factor > 1) * tests.above + (SET // 2) * is_set
    threshold = tests.threshold.copy()
    threshold[is_set] = tests.set_number[is_set]
    code.table(f"{name}_column", narrow(number))
    code.table(f"{name}_threshold", threshold)
    head = f"int {name}_above(const {code.value} *x, int i)"
    if tests.inputs is not None:
        _write_inputs(code, name, tests)
        code.function(head, f"return {name}_input(x, {name}_column[i]) > {name}_threshold[i];")
        return
    if factor == 1:
        code.function(head, f"return x[{name}_column[i]] > {name}_threshold[i];")
        return
    lines = [
        f"const int c = {name}_column[i];",
        f"const {code.value} v = x[c / {factor}], t = {name}_threshold[i];",
        *(_set_lines(code, name, tests) if has_sets else ()),
        f"return {_above(code)};",
    ]
    code.function(head, *lines)


def _above(code: Code) -> str:
    """Return whether v is above t, or missing where that is above."""
    if code.value == "int16_t":
        return f"v > t || ((c & 1) && v == {NO_VALUE})"
    return "c & 1 ? !(v <= t) : v > t"


def _set_lines(code: Code, name: str, tests: Tests) -> list[str]:
    """Add the sets; return what asks whether v is in set t: what is no level is missing."""
    code.table(f"{name}_set", tests.member)
    size = tests.member.shape[1]
    return [
        "if (c & 2) {",
        "    const int level = v >= 0 && v < 255 ? (int)v : 255;",
        "    if (level == 255 || level != v) return c & 1;",
        f"    if (level >= {8 * size}) return 0;",
        f"    return {name}_set[(int)t * {size} + level / 8] >> level % 8 & 1;",
        "}",
    ]


def _write_columns(code: Code, name: str, levels: Levels | None) -> str:
    """Return what reads column j that is added up, as a double; NaN where it is missing."""
    if levels is None:
        return "x[{}]"
    code.table(f"{name}_added", narrow(levels.column))
    # Signed: a comparison with 0 is made of it.
    code.table(f"{name}_level", levels.level.astype(np.int16))
    code.function(
        f"double {name}_read(const {code.value} *x, int j)",
        f"const double v = x[{name}_added[j]];",
        f"return {name}_level[j] < 0 || v != v ? v : v == {name}_level[j];",
    )
    return f"{name}_read(x, {{}})"


def _write_inputs(code: Code, name: str, tests: Tests) -> None:
    """Add the function ``name_input(x, k)``: the sum of columns with this number."""
    inputs, read = tests.inputs, _write_columns(code, name, tests.levels)
    if isinstance(inputs, Projections):
        _write_projections(code, name, inputs, read)
    else:
        assert isinstance(inputs, Separators)
        _write_separators(code, name, inputs, read)


def _write_projections(code: Code, name: str, sums: Projections, read: str) -> None:
    code.table(f"{name}_start", narrow(sums.start))
    code.table(f"{name}_term", narrow(sums.index))
    code.table(f"{name}_factor", sums.coefficient)
    value = "v"
    if sums.fill is not None and code.takes_missing:
        code.table(f"{name}_fill", sums.fill[sums.index])
        value = f"(v == v ? v : {name}_fill[t])"
    code.function(
        f"double {name}_input(const {code.value} *x, int k)",
        "double sum = 0.0;",
        f"for (int t = {name}_start[k]; t < {name}_start[k + 1]; t++) {{",
        f"    const double v = {read.format(f'{name}_term[t]')};",
        f"    sum += {name}_factor[t] * {value};",
        "}",
        "return sum;",
    )


def _write_separators(code: Code, name: str, sums: Separators, read: str) -> None:
    start, column, first, edge, value, missing = sums.tables()
    for called, values in (("start", start), ("term", column), ("first", first)):
        code.table(f"{name}_{called}", narrow(values))
    code.table(f"{name}_edge", edge)
    code.table(f"{name}_value", value)
    lines = [
        "double sum = 0.0;",
        f"for (int g = {name}_start[k]; g < {name}_start[k + 1]; g++) {{",
        f"    const double v = {read.format(f'{name}_term[g]')};",
        f"    int e = {name}_first[g];",
        f"    while (e < {name}_first[g + 1] && v > {name}_edge[e]) e++;",
        f"    sum += {name}_value[e + g];",
        "}",
        "return sum;",
    ]
    if missing is not None and code.takes_missing:
        code.table(f"{name}_missing", missing)
        lines[5] = f"    sum += v == v ? {name}_value[e + g] : {name}_missing[g];"
    code.function(f"double {name}_input(const {code.value} *x, int k)", *lines)


# Walks


def write_walk(code: Code, name: str, walk: Walk) -> None:
    """Add the sums of what a row meets on its walks."""
    n, k = len(walk.start), walk.added.shape[-1]
    sums = "s" if walk.lead else "h"
    lines = [f"{code.total} s[{n}];"] if walk.lead else []
    lines += [f"{sums}[{j}] = {literal(start)};" for j, start in enumerate(walk.start)]
    if len(walk.tests):
        write_tests(code, name, walk.tests)
    if walk.vote is not None:
        lines += graph_lines(code, name, walk, k)
    else:
        lines += tree_lines(code, name, walk, k, sums)
    for j in range(n):
        if walk.after is not None:
            lines.append(f"{sums}[{j}] = {literal(walk.after[j])} + {sums}[{j}];")
        if walk.divisor > 1:
            lines.append(f"{sums}[{j}] /= {walk.divisor};")
    if walk.lead:
        lines.append("h[0] = s[1] - s[0];")
    if not len(walk.tests):
        lines.insert(0, "(void)x;")
    code.function(f"void {name}_sums(const {code.value} *x, {code.total} *h)", *lines)


def graph_lines(code: Code, name: str, walk: Walk, k: int, first: Sequence[str] = ()) -> list[str]:
    """Return the lines that add the votes of exits; `first` is done before node i is asked."""
    n = len(walk.tests)
    if not n:
        return []
    assert walk.vote is not None
    one_sided = k == 1 and not walk.vote[:, 0].any()
    above = f"{name}_above(x, i)"
    if walk.is_chain and one_sided and not first:  # see `fixed_part`
        code.table(f"{name}_vote", walk.vote[:, 1])
        return [f"for (int i = 0; i < {n}; i++) if ({above}) h[0] += {name}_vote[i];"]
    code.table(f"{name}_vote", walk.vote)
    if k == 1:
        add = [f"h[0] += {name}_vote[e];"]
    else:
        add = [f"for (int k = 0; k < {k}; k++) h[k] += {name}_vote[{k} * e + k];"]
    if walk.is_chain:
        head, end = f"for (int i = 0; i < {n}; i++) {{", []
    else:
        code.table(f"{name}_next", narrow(walk.next))
        head, end = "for (int i = 0; i >= 0;) {", [f"i = {name}_next[e];"]
    body = [*first, f"const int e = 2 * i + {above};", *add, *end]
    return [head, *(f"    {line}" for line in body), "}"]


def tree_lines(
    code: Code, name: str, walk: Walk, k: int, sums: str, before: Sequence[str] = ()
) -> list[str]:
    """Return the lines that add the values of the leaves that a row reaches.

    `before` is done before tree t, of several.
    """
    assert walk.leaf is not None
    code.table(f"{name}_leaf", walk.leaf)
    n_trees, n = len(walk.root), len(walk.start)
    first = literal(walk.root[0])
    if n_trees > 1:
        code.table(f"{name}_root", narrow(walk.root))
        first = f"{name}_root[t]"
    lines = [f"int i = {first};"]
    if len(walk.tests):
        code.table(f"{name}_next", narrow(walk.next))
        lines.append(f"while (i >= 0) i = {name}_next[2 * i + {name}_above(x, i)];")
    turn = f"{k} * (t % {n // k})" if k > 1 else f"t % {n}"
    to = "" if n == k else f" + {turn}"
    if k == 1:
        to = f"t % {n}" if n > 1 else "0"
        lines.append(f"{sums}[{to}] += {name}_leaf[-1 - i];")
    else:
        source = f"{name}_leaf[{k} * (-1 - i) + k]"
        lines.append(f"for (int k = 0; k < {k}; k++) {sums}[k{to}] += {source};")
    if n_trees == 1:
        return lines
    lines = [*before, *lines]
    return [f"for (int t = 0; t < {n_trees}; t++) {{", *(f"    {line}" for line in lines), "}"]


# Sums of columns


def write_linear(code: Code, name: str, linear: Linear) -> None:
    """Add a linear function of a row."""
    n = len(linear.factor)
    lines = [f"h[0] = {literal(linear.constant)};"]
    if not n:
        lines.insert(0, "(void)x;")
    else:
        read = _write_columns(code, name, linear.levels)
        code.table(f"{name}_column", narrow(linear.column))
        code.table(f"{name}_factor", linear.factor)
        lines += [
            f"for (int t = 0; t < {n}; t++) {{",
            f"    double v = {read.format(f'{name}_column[t]')};",
        ]
        if code.takes_missing:
            code.table(f"{name}_fill", linear.fill)
            lines.append(f"    if (v != v) v = {name}_fill[t];")
        if linear.center is not None and linear.scale is not None:
            code.table(f"{name}_center", linear.center)
            code.table(f"{name}_scale", linear.scale)
            lines.append(f"    v = (v - {name}_center[t]) / {name}_scale[t];")
        lines += [f"    h[0] += {name}_factor[t] * v;", "}"]
    code.function(f"void {name}_sums(const {code.value} *x, {code.total} *h)", *lines)


def write_leaves(code: Code, name: str, leaves: LinearLeaves) -> None:
    """Add the linear functions of the leaf that a row reaches."""
    walk, (_, k, width) = leaves.walk, leaves.coefficient.shape
    lines = [f"int i = {walk.root[0]};"]
    if len(walk.tests):
        write_tests(code, name, walk.tests)
        code.table(f"{name}_next", narrow(walk.next))
        lines.append(f"while (i >= 0) i = {name}_next[2 * i + {name}_above(x, i)];")
    read = _write_columns(code, name, leaves.levels)
    code.table(f"{name}_equation", leaves.coefficient)
    value = "v"
    if code.takes_missing:
        code.table(f"{name}_fill", leaves.fill)
        row = f"{width - 1} * i + j" if len(leaves.fill) > 1 else "j"
        value = f"(v == v ? v : {name}_fill[{row}])"
    lines += [
        "i = -1 - i;",
        f"for (int k = 0; k < {k}; k++) {{",
        f"    const double *e = {name}_equation + {width} * ({k} * i + k);",
        "    h[k] = e[0];",
        f"    for (int j = 0; j < {width - 1}; j++) {{",
        f"        const double v = {read.format('j')};",
        f"        h[k] += e[1 + j] * {value};",
        "    }",
        "}",
    ]
    if leaves.absent.any():
        lines += _absent_lines(code, name, leaves)
    code.function(f"void {name}_sums(const {code.value} *x, {code.total} *h)", *lines)


def _absent_lines(code: Code, name: str, leaves: LinearLeaves) -> list[str]:
    """Return what keeps classes without a row in a leaf below the others.

    Their functions are constants, of which the lesser holds: that, or the number just below the
    least of the others.
    """
    k = leaves.coefficient.shape[1]
    code.table(f"{name}_absent", leaves.absent.astype(np.uint8))
    code.function(
        f"double {name}_below(double v)",
        "union { double number; int64_t bits; } of;",
        "of.number = v;",
        "if (v == 0.0) of.bits = INT64_MIN + 1;",
        "else of.bits += v > 0.0 ? -1 : 1;",
        "return of.number;",
    )
    most = literal(np.finfo(np.float64).max)
    return [
        f"double least = {most};",
        f"const uint8_t *absent = {name}_absent + {k} * i;",
        f"for (int k = 0; k < {k}; k++) if (!absent[k] && h[k] < least) least = h[k];",
        f"least = least > -{most} ? {name}_below(least) : -{most};",
        f"for (int k = 0; k < {k}; k++) if (absent[k] && h[k] > least) h[k] = least;",
    ]
