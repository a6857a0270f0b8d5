"""The text of a C file: literals, tables, and functions for each type of representation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.node_inputs.inputs import Indicators
from pboost.data.node_inputs.sums import Projections, Separators
from pboost.export.c_intermediate import (
    PLAIN,
    AffineMap,
    EnsembleSum,
    JointExits,
    Maps,
    Part,
    Tests,
    Walk,
)
from pboost.models.calibrated import MOST_HALF, MOST_LINE
from pboost.values import Array, shown

#: Number that stands for a missing value in an int16 row.
NO_VALUE = -(2**15)
#: Factor of a stored feature index, whose low bits then contain one (SIDE) or two (SET) flags.
SIDE, SET = 2, 4

#: Reserved names: keywords of C99, C11, C23 and C++, and two macros.
KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const
constexpr const_cast continue decltype default delete do double dynamic_cast else enum explicit
export extern false float for friend goto if inline int long main mutable namespace new noexcept
not not_eq nullptr operator or or_eq private protected public register reinterpret_cast restrict
return short signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using
virtual void volatile wchar_t while xor xor_eq NAN INFINITY
"""
RESERVED = frozenset(KEYWORDS.split())
#: Maximum length of a prefix: C99 compares only the first 63 characters of identifiers.
LONGEST_PREFIX = 31
#: Maximum width of the lines of a table.
WIDTH = 100
#: Floats below this number are written as decimals if they are integers.
SHORT = 1000
#: C types by dtype.
TYPES = {"float64": "double", "float32": "float"} | {
    f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_PLAIN = frozenset(map(ord, " !#$%&'()*+,-./:;<=>@[]^_`{|}~")) | frozenset(
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)


def check_prefix(prefix: object) -> str:
    """Return the prefix after checking that it is a valid C identifier."""
    if not isinstance(prefix, str):
        raise TypeError(f"prefix: expected a str, got {shown(prefix)}")
    received = f"got {shown(prefix)}"
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", prefix, re.ASCII):
        raise ValueError(
            f"prefix: expected a C identifier (a letter, then letters, digits or _), {received}"
        )
    if len(prefix) > LONGEST_PREFIX:
        raise ValueError(f"prefix: expected at most {LONGEST_PREFIX} characters, {received}")
    if prefix in RESERVED:
        raise ValueError(f"prefix: expected a name that is not a keyword of C or C++, {received}")
    return prefix


def literal(value: Any) -> str:
    """Return a number as a C literal that is read back exactly."""
    kind = np.asarray(value).dtype
    if kind.kind in "iub":
        integer = int(value)
        if integer == -(2**63):  # C has no literal for this number
            return f"(-{2**63 - 1}LL - 1)"
        return f"{integer}" if abs(integer) < 2**31 else f"{integer}LL"
    end = "f" if kind == np.float32 else ""
    number = float(value)
    if np.isnan(number):
        return "NAN"
    if np.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    if number.is_integer() and abs(number) < SHORT and not (number == 0 and np.signbit(number)):
        return f"{int(number)}.0{end}"
    mantissa, exponent = number.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{int(exponent)}{end}"


def string(text: str) -> str:
    """Return a C string literal. Bytes that are not plain ASCII are escaped."""
    characters = (
        chr(b) if b in _PLAIN else f"\\{b:03o}" for b in text.encode("utf-8", "surrogatepass")
    )
    return f'"{"".join(characters)}"'


def plain(text: object) -> str:
    """Return text for a comment. Characters that are not plain ASCII become code points."""
    ascii_text = "".join(
        letter if ord(letter) in _PLAIN or letter == '"' else f"<{ord(letter):x}>"
        for letter in str(text)
    )
    return ascii_text.replace("*/", "* /").replace("/*", "/ *")


def comment(lines: Iterable[str]) -> str:
    """Return lines as a comment. Text that is not from pboost must be passed through `plain`."""
    return "\n".join(["/*", *(f" * {line}".rstrip() for line in lines), " */"])


def narrow(values: ArrayLike) -> Array:
    """Return integers in the smallest type that can store all of them."""
    array = np.asarray(values)
    lowest, highest = int(array.min(initial=0)), int(array.max(initial=0))
    for kind in (np.uint8, np.int8, np.uint16, np.int16, np.int32):
        if np.iinfo(kind).min <= lowest and highest <= np.iinfo(kind).max:
            return array.astype(kind)
    return array.astype(np.int64)


def table(name: str, values: Array, *, static: bool = True) -> str:
    """Return a constant table. C has no empty tables, so an empty one gets one unused number."""
    flat = values.ravel() if values.size else np.zeros(1, dtype=values.dtype)
    return filled_table(f"{TYPES[flat.dtype.name]} {name}", [literal(v) for v in flat], static)


def filled_table(what: str, entries: list[str], static: bool = True) -> str:
    """Return a constant table with these entries."""
    lines, line = [], "   "
    for entry in entries:
        if len(line) + len(entry) + 2 > WIDTH:
            lines.append(line)
            line = "   "
        line += f" {entry},"
    body = "\n".join([*lines, line])
    return f"{'static ' if static else ''}const {what}[{len(entries)}] = {{\n{body}\n}};"


#: Pattern of a function name in c_functions.h. LIBRARY maps the name to the text of the function.
CALLED = re.compile(r"\bpboost_(\w+)\(")
HEADER = Path(__file__).with_name("c_functions.h").read_text(encoding="ascii")
LIBRARY = {CALLED.findall(text)[0]: text for text in HEADER.split("\n\n") if CALLED.search(text)}
#: A line of C, a list of lines, or a tuple of indented lines. False values are skipped.
Lines: TypeAlias = "str | bool | Sequence[Lines] | None"


@dataclass(slots=True)
class Code:
    """The contents of a C file while it is written.

    Attributes
    ----------
    prefix : str
        Prefix of all names.
    value, total : str
        C types of the values of a row, and of decision values.
    takes_missing : bool
        Whether missing values are supported.
    blocks : list
        Tables and functions of the file.
    """

    prefix: str
    value: str
    total: str
    takes_missing: bool
    blocks: list[tuple[str, Array] | str] = field(default_factory=list)

    def table(self, name: str, values: Array) -> None:
        """Add a table."""
        self.blocks.append((name, values))

    def function(self, head: str, *body: Lines) -> None:
        """Add a function with these lines in its body."""
        self.blocks.append(f"static {function(head, *body)}")

    def sums(self, name: str, *body: Lines, kind: str = "void", called: str = "sums") -> None:
        """Add the function that writes the decision values of a row."""
        self.function(f"{kind} {name}_{called}(const {self.value} *x, {self.total} *h)", *body)

    def library(self, name: str) -> str:
        """Add a library function, unless it was added before, and return its name."""
        for needed in CALLED.findall(LIBRARY[name])[1:]:
            self.library(needed)
        text = LIBRARY[name].strip().replace("pboost_total", self.total)
        text = text.replace("pboost_", f"{self.prefix}_")
        if text not in self.blocks:
            self.blocks.append(text)
        return f"{self.prefix}_{name}"

    @property
    def n_bytes(self) -> int:
        """Size of all tables in bytes."""
        tables = (block[1] for block in self.blocks if not isinstance(block, str))
        return sum(max(values.size, 1) * values.itemsize for values in tables)

    @property
    def text(self) -> str:
        """Text of all blocks."""
        return "\n\n".join(b if isinstance(b, str) else table(*b) for b in self.blocks)


def function(head: str, *body: Lines) -> str:
    """Return a function with these lines in its body."""
    return "\n".join([head, "{", *_laid(body, "    "), "}"])


def _laid(body: Sequence[Lines], indent: str) -> Iterator[str]:
    for line in body:
        if isinstance(line, str) and line:
            yield indent + line
        elif line and not isinstance(line, str | bool):
            yield from _laid(line, indent + "    " * isinstance(line, tuple))


# Splits of nodes


def _write_tests(code: Code, name: str, tests: Tests) -> None:
    """Add the function ``name_above(x, i)``, which returns the branch of a row at node i."""
    is_set = tests.category_set >= 0
    has_sets = bool(is_set.any())
    has_sides = code.takes_missing and bool(tests.missing.any()) and tests.inputs is None
    factor = SET if has_sets else SIDE if has_sides else 1
    number = factor * tests.feature.astype(np.int64)
    number += (factor > 1) * tests.missing + (SET // 2) * is_set
    threshold = np.where(is_set, tests.category_set, tests.threshold)
    code.table(f"{name}_column", narrow(number))
    code.table(f"{name}_threshold", threshold.astype(tests.threshold.dtype))
    value, size = f"x[{name}_column[i]]", tests.sets.shape[1]
    if tests.inputs is not None:
        _write_inputs(code, name, tests)
        value = f"{name}_input(x, {name}_column[i])"
    if has_sets:
        code.table(f"{name}_set", tests.sets)
    missing = "c & 1 ? !(v <= t) : v > t"
    if code.value == "int16_t":
        missing = f"v > t || ((c & 1) && v == {NO_VALUE})"
    body: Lines = [
        f"const int c = {name}_column[i];",
        f"const {code.value} v = x[c / {factor}], t = {name}_threshold[i];",
        has_sets
        and [
            "if (c & 2) {",
            (
                "const int level = v >= 0 && v < 255 ? (int)v : 255;",
                "if (level == 255 || level != v) return c & 1;",
                f"if (level >= {8 * size}) return 0;",
                f"return {name}_set[(int)t * {size} + level / 8] >> level % 8 & 1;",
            ),
            "}",
        ],
        f"return {missing};",
    ]
    if factor == 1:
        body = f"return {value} > {name}_threshold[i];"
    code.function(f"int {name}_above(const {code.value} *x, int i)", body)


def _write_columns(code: Code, name: str, levels: Indicators | None) -> str:
    """Return an expression for term j of a sum as a double, or NaN for a missing value."""
    if levels is None:
        return "x[{}]"
    code.table(f"{name}_added", narrow(levels.column))
    # The type is signed, because the C code checks for negative numbers.
    code.table(f"{name}_level", levels.level.astype(np.int16))
    code.function(
        f"double {name}_read(const {code.value} *x, int j)",
        f"const double v = x[{name}_added[j]];",
        f"return {name}_level[j] < 0 || v != v ? v : v == {name}_level[j];",
    )
    return f"{name}_read(x, {{}})"


def _write_inputs(code: Code, name: str, tests: Tests) -> None:
    """Add the function ``name_input(x, k)``, which computes sum k of the features of a row."""
    sums, read = tests.inputs, _write_columns(code, name, tests.levels)
    term = f"const double v = {read.format(f'{name}_term[t]')};"
    if isinstance(sums, Projections):
        tables = {"start": sums.start, "term": sums.index}
        more, value = {"factor": sums.coefficient}, "v"
        if sums.fill is not None and code.takes_missing:
            more["fill"] = sums.fill[sums.index]
            value = f"(v == v ? v : {name}_fill[t])"
        body = [term, f"sum += {name}_factor[t] * {value};"]
    else:
        assert isinstance(sums, Separators)
        start, column, first, edge, steps, missing = sums.tables()
        tables = {"start": start, "term": column, "first": first}
        more, value = {"edge": edge, "value": steps}, f"{name}_value[e + t]"
        if missing is not None and code.takes_missing:
            more["missing"] = missing
            value = f"v == v ? {value} : {name}_missing[t]"
        body = [
            term,
            f"int e = {name}_first[t];",
            f"while (e < {name}_first[t + 1] && v > {name}_edge[e]) e++;",
            f"sum += {value};",
        ]
    for called, values in {**{k: narrow(v) for k, v in tables.items()}, **more}.items():
        code.table(f"{name}_{called}", values)
    code.function(
        f"double {name}_input(const {code.value} *x, int k)",
        "double sum = 0.0;",
        f"for (int t = {name}_start[k]; t < {name}_start[k + 1]; t++) {{",
        tuple(body),
        "}",
        "return sum;",
    )


# Walks


def _write_walk(code: Code, name: str, walk: Walk) -> None:
    """Add the function that sums the values on the paths of a row.

    With early exits, ``name_leave`` computes the sums and returns the factor of the values at the
    exit. In fixed point, it returns the index of the exit. If no exit is taken, this index is the
    number of exits.
    """
    part, first = walk.exits, list[Lines]()
    # True if values at an exit must be computed from the sums of the first trees.
    is_valued = part is not None and not walk.is_graph and not part.unit
    sums = "s" if walk.lead or is_valued else "h"
    if len(walk.tests) or part is not None:
        _write_tests(code, name, walk.tests)
    if part is not None:
        first = _exit_lines(code, name, walk, part)
    lines: list[Lines] = [
        sums == "s" and f"{code.total} s[{len(walk.start)}];",
        part is not None and "int j = 0;",
        [f"{sums}[{j}] = {literal(start)};" for j, start in enumerate(walk.start)],
        _graph_lines(code, name, walk, first)
        if walk.is_graph
        else _tree_lines(code, name, walk, sums, first),
    ]
    if part is None:
        unused = not len(walk.tests) and "(void)x;"
        code.sums(name, unused, *lines, _end_lines(walk, sums))
        return
    if is_valued:
        lines.append(f"{name}_value(s, {len(walk.root) // part.each}, h);")
    else:
        lines.append(_end_lines(walk, sums))
    kind, what = ("int", "j") if part.unit else ("double", "1.0")
    code.sums(name, *lines, f"return {what};", kind=kind, called="leave")
    code.sums(name, _scaled_lines(name, walk.n_scores, part))


def _end_lines(walk: Walk, sums: str) -> list[Lines]:
    """Return the lines that compute decision values from sums."""
    lines = list[Lines]()
    for j in range(len(walk.start)):
        if walk.after is not None:
            lines.append(f"{sums}[{j}] = {literal(walk.after[j])} + {sums}[{j}];")
        if walk.divisor > 1:
            lines.append(f"{sums}[{j}] /= {walk.divisor};")
    return [*lines, walk.lead and "h[0] = s[1] - s[0];"]


def _graph_lines(code: Code, name: str, walk: Walk, first: list[Lines]) -> Lines:
    """Return the lines that add votes. The lines `first` are executed before each node."""
    n, k, vote = len(walk.tests), walk.added.shape[-1], walk.added
    if not n:
        return None
    above = f"{name}_above(x, i)"
    if walk.is_chain and k == 1 and not vote[:, 0].any() and walk.exits is None:  # see `fixed_part`
        code.table(f"{name}_vote", vote[:, 1])
        return f"for (int i = 0; i < {n}; i++) if ({above}) h[0] += {name}_vote[i];"
    code.table(f"{name}_vote", vote)
    if not walk.is_chain:
        code.table(f"{name}_next", narrow(walk.next))
    return [
        f"for (int i = 0; i < {n}; i++) {{" if walk.is_chain else "for (int i = 0; i >= 0;) {",
        (
            first,
            f"const int e = 2 * i + {above};",
            f"h[0] += {name}_vote[e];"
            if k == 1
            else f"for (int k = 0; k < {k}; k++) h[k] += {name}_vote[{k} * e + k];",
            not walk.is_chain and f"i = {name}_next[e];",
        ),
        "}",
    ]


def _descent(code: Code, name: str, walk: Walk) -> Lines:
    """Return the lines that find the leaf of a row in tree t."""
    root = literal(walk.root[0])
    if len(walk.root) > 1:
        code.table(f"{name}_root", narrow(walk.root))
        root = f"{name}_root[t]"
    if len(walk.tests):
        code.table(f"{name}_next", narrow(walk.next))
    step = f"while (i >= 0) i = {name}_next[2 * i + {name}_above(x, i)];"
    return [f"int i = {root};", len(walk.tests) > 0 and step]


def _tree_lines(code: Code, name: str, walk: Walk, sums: str, first: list[Lines]) -> Lines:
    """Return the lines that add leaf values. The lines `first` are executed before each tree."""
    code.table(f"{name}_leaf", walk.added)
    n_trees, n, k = len(walk.root), len(walk.start), walk.added.shape[-1]
    turn = "" if n == k else f"t % {n}" if k == 1 else f" + {k} * (t % {n // k})"
    add = f"{sums}[{turn or 0}] += {name}_leaf[-1 - i];"
    if k > 1:
        leaf = f"{name}_leaf[{k} * (-1 - i) + k]"
        add = f"for (int k = 0; k < {k}; k++) {sums}[k{turn}] += {leaf};"
    lines: Lines = [_descent(code, name, walk), add]
    if n_trees > 1:
        lines = [f"for (int t = 0; t < {n_trees}; t++) {{", (first, lines), "}"]
    return lines


def _exit_lines(code: Code, name: str, walk: Walk, part: JointExits) -> list[Lines]:
    """Return the lines that stop early. Add the functions and tables that they use."""
    n, is_valued = walk.n_scores, not (walk.is_graph or part.unit)
    kind = code.total if part.unit else "double"
    best = [
        f"const int best = {code.library('best') if n > 1 else ''}(h, {n});",
        f"for (int k = 0; k < {n}; k++) if (k != best && !(h[best] - h[k] >= least)) return 0;",
        "return 1;",
    ]
    sure = ["return h[0] >= least || h[0] <= -least;"] if n == 1 else best
    code.function(f"int {name}_sure(const {code.total} *h, {kind} least)", *sure)
    code.table(f"{name}_exit", narrow(np.append(part.at, len(walk.tests) + len(walk.root))))
    code.table(f"{name}_least", part.sure)
    code.table(f"{name}_slope", part.slope)
    if part.even is not None:
        code.table(f"{name}_even", narrow(part.even))
    if is_valued:  # compute the values after t trees from the sums
        value: Lines = [f"for (int k = 0; k < {n}; k++) h[k] = t ? s[k] / t : 0.0;"]
        if walk.after is not None:
            after = enumerate(map(literal, walk.after))
            value = [[f"h[{j}] = {number} + s[{j}];" for j, number in after], "(void)t;"]
        elif walk.lead:
            value = ["h[0] = t ? s[1] / t - s[0] / t : 0.0;"]
        head = f"void {name}_value(const {code.total} *s, int t, {code.total} *h)"
        code.function(head, value)
    return [
        f"if ({'i' if walk.is_graph else 't'} == {name}_exit[j]) {{",
        (
            is_valued and f"{name}_value(s, t / {part.each}, h);",
            f"if ({name}_sure(h, {name}_least[j])) return "
            f"{'j' if part.unit else f'{name}_slope[j]'};",
            "j++;",
        ),
        "}",
    ]


def _scaled_lines(name: str, n: int, part: JointExits) -> list[Lines]:
    """Return the lines that multiply the values at an early exit by a factor.

    Integers are multiplied in 64 bits. Shares are clipped and normalized. If a row takes no exit,
    its values are not multiplied.
    """
    k, each = ("0", "") if n == 1 else ("k", f"for (int k = 0; k < {n}; k++) ")
    first: Lines = f"const double slope = {name}_leave(x, h);"
    kind, cast, zero, maximum, equal = "double", "", "0.0", "1.0", literal(1 / n)
    value, share = f"h[{k}] * slope", "h[k] / sum"
    moved = f"{equal} + slope * (h[k] - {equal})"
    if part.unit:
        first = [f"const int j = {name}_leave(x, h);", f"if (j == {len(part.at)}) return;"]
        kind, cast, zero, maximum = "int64_t", "(int32_t)", "0", literal(part.full_share)
        value = f"(int64_t)h[{k}] * {name}_slope[j] / {literal(np.int64(part.unit))}"
        moved, share = f"{name}_even[j] + {value}", f"(int32_t)((int64_t)h[k] * {maximum} / sum)"
    minimum = f"-{maximum}" if n == 1 else zero
    clipped = f"v < {minimum} ? {minimum} : v > {maximum} ? {maximum} : {cast}v;"
    if not part.is_share:
        return [first, f"{each}h[{k}] = {f'{cast}({value})' if cast else value};"]
    if n == 1:
        return [first, f"const {kind} v = {value};", f"h[0] = {clipped}"]
    return [
        first,
        f"{kind} sum = {zero};",
        f"{each}{{",
        (f"const {kind} v = {moved};", f"sum += h[k] = {clipped}"),
        "}",
        f"{each}h[k] = {share};",
    ]


# Linear functions, and combinations of other models


def _write_affine(code: Code, name: str, part: AffineMap) -> None:
    """Add the function that computes linear functions of a row. Each leaf can have its own."""
    (_, k, width), walk = part.coefficient.shape, part.walk
    if walk is not None and len(walk.tests):
        _write_tests(code, name, walk.tests)
    read, column, value = _write_columns(code, name, part.levels), "j", "v"
    code.table(f"{name}_equation", part.coefficient)
    if part.column is not None:
        code.table(f"{name}_column", narrow(part.column))
        column = f"{name}_column[j]"
    if code.takes_missing:
        code.table(f"{name}_fill", part.fill)
        row = f"{width - 1} * i + j" if len(part.fill) > 1 else "j"
        value = f"(v == v ? v : {name}_fill[{row}])"
    if part.scaled is not None:
        code.table(f"{name}_center", part.scaled[0])
        code.table(f"{name}_scale", part.scaled[1])
        value = f"(({value} - {name}_center[j]) / {name}_scale[j])"
    lowered = ""
    if part.absent is not None and part.absent.any():
        code.table(f"{name}_absent", part.absent.astype(np.uint8))
        lowered = f"{code.library('lower')}({name}_absent + {k} * i, {k}, h);"
    # A single function needs no loop over k, and a single leaf needs no index.
    at, row = ("k", f"{k} * i + k") if k > 1 else ("0", "i")
    body: list[Lines] = [
        f"const double *e = {name}_equation{f' + {width} * ({row})' if walk else ''};",
        f"h[{at}] = e[0];",
        f"for (int j = 0; j < {width - 1}; j++) {{",
        (f"const double v = {read.format(column)};", f"h[{at}] += e[1 + j] * {value};"),
        "}",
    ]
    if width == 1:
        body = [*body[:2], "(void)x;"]
    code.sums(
        name,
        walk is not None and [_descent(code, name, walk), "i = -1 - i;"],
        [f"for (int k = 0; k < {k}; k++) {{", tuple(body), "}"] if k > 1 else body,
        lowered,
    )


def _write_maps(code: Code, name: str, maps: Maps) -> None:
    """Add the function that computes the decision values of calibrated probabilities."""
    k, model, n_inputs = maps.n_scores, maps.model, maps.part.n_scores
    write_part(code, f"{name}_of", maps.part)
    lines: list[Lines] = [
        f"double of[{n_inputs}]{'' if maps.is_line else f', p[{k}]'};",
        f"{name}_of_sums(x, of);",
        k == 1 and n_inputs == 2 and "of[0] = of[1] - of[0];",
    ]
    # Several isotonic maps need no clipping.
    clip = code.library("clip") if k == 1 or model.slope is not None else ""
    if maps.is_line:
        line = f"of[0] * {literal(model.slope[0])} + {literal(model.intercept[0])}"
        code.sums(name, *lines, f"h[0] = {clip}({line}, {literal(MOST_LINE)}) / 2.0;")
        return
    if model.slope is None:
        tables = {"knot": model.knot, "share": model.share, "start": narrow(model.start)}
        ends = f"{name}_start[k], {name}_start[k + 1] - 1"
        mapped = f"{code.library('map')}({name}_knot, {name}_share, of[k], {ends})"
        chance: Lines = (f"p[k] = {mapped};",)
    else:
        tables = {"slope": model.slope, "intercept": model.intercept}
        line = f"of[k] * {name}_slope[k] + {name}_intercept[k]"
        chance = (
            f"const double v = {clip}({line}, {literal(MOST_LINE)});",
            "double two[2];",
            f"{code.library('log_odds')}(&v, 1, two);",
            "p[k] = two[1];",
        )
    for called, values in tables.items():
        code.table(f"{name}_{called}", values)
    if k == 1:
        log = code.library("log")
        end = f"h[0] = {clip}(({log}(p[0]) - {log}(1.0 - p[0])) / 2.0, {literal(MOST_HALF)});"
    else:
        end = f"{code.library('log_shares')}(p, {k}, {literal(-2 * MOST_HALF)}, h);"
    code.sums(name, *lines, f"for (int k = 0; k < {k}; k++) {{", chance, "}", end)


def _write_members(code: Code, name: str, ensemble: EnsembleSum) -> None:
    """Add the function that combines the decision values of base learners."""
    n, sums = len(ensemble.start), "s" if ensemble.lead else "h"
    width = max((part.n_scores for part in ensemble.members), default=1)
    added = list[Lines]()
    for m, part in enumerate(ensemble.members):
        write_part(code, f"{name}_m{m}", part)
        added += [f"{name}_m{m}_sums(x, of);", _added_lines(code, name, ensemble, m, sums)]
    has_room = any(link not in PLAIN and link != "vote" for link in ensemble.link)
    divisor = literal(float(ensemble.divisor))
    code.sums(
        name,
        ensemble.lead and f"{code.total} s[{n}];",
        [f"{sums}[{j}] = {literal(start)};" for j, start in enumerate(ensemble.start)],
        f"{code.total} of[{width}];" if ensemble.members else "(void)x;",
        has_room and f"double p[{max(map(len, ensemble.place))}];",
        added,
        ensemble.divisor != 1 and [f"{sums}[{j}] /= {divisor};" for j in range(n)],
        ensemble.lead and "h[0] = s[1] - s[0];",
    )


def _added_lines(code: Code, name: str, ensemble: EnsembleSum, m: int, sums: str) -> Lines:
    """Return the lines that add base learner m. The C array `of` has its decision values."""
    n, place, link = ensemble.members[m].n_scores, ensemble.place[m], ensemble.link[m]
    weight, label = literal(ensemble.weight[m]), "{}"
    if not np.array_equal(place, np.arange(len(ensemble.start))):
        label = str(place[0])
        if len(place) > 1 or link == "vote":
            code.table(f"{name}_m{m}_label", narrow(place))
            label = f"{name}_m{m}_label[{{}}]"
    if link == "vote":
        best = f"{code.library('best')}(of, {n})"
        return f"{sums}[{label.format(best)}] += {weight};"
    source = "of" if link in PLAIN else "p"
    value = f"{source}[{'k' if len(place) > 1 else 0}]"
    if ensemble.weight[m] != 1:
        value = f"{weight} * {value}"
    each = f"for (int k = 0; k < {len(place)}; k++) " if len(place) > 1 else ""
    called = "" if link in PLAIN else code.library(link.replace(" ", "_"))
    return [
        called and f"{called}(of, {n}, p);",
        f"{each}{sums}[{label.format('k' if each else 0)}] += {value};",
    ]


WRITERS: dict[type[Part], Callable[[Code, str, Any], None]] = {
    Walk: _write_walk,
    AffineMap: _write_affine,
    Maps: _write_maps,
    EnsembleSum: _write_members,
}


def write_part(code: Code, name: str, part: Part) -> None:
    """Add the function ``name_sums(x, h)``, which writes the decision values of a row to h."""
    WRITERS[type(part)](code, name, part)
