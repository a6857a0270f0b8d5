"""Walks that rows leave early as C."""

from __future__ import annotations

import numpy as np

from pboost.export.c_code import Code, graph_lines, tree_lines, write_tests
from pboost.export.c_links import write_best
from pboost.export.c_parts import Leaving
from pboost.export.c_text import literal, narrow


def write_leaving(code: Code, name: str, part: Leaving) -> None:
    """Add ``name_leave(x, h)``, the values with which a row leaves, and ``name_sums``.

    The first returns what the values are multiplied by, as the second does; in whole numbers the
    number of the exit, of rows that go to the end that of exits.
    """
    walk, n, k = part.walk, len(part.walk.start), part.walk.added.shape[-1]
    is_valued = walk.vote is None and not part.unit
    write_tests(code, name, walk.tests)
    _write_sure(code, name, part)
    code.table(f"{name}_exit", narrow(np.append(part.at, len(walk.tests) + len(walk.root))))
    for called, values in (("least", part.sure), ("slope", part.slope)):
        code.table(f"{name}_{called}", values)
    if part.even is not None:
        code.table(f"{name}_even", narrow(part.even))
    sums = "s" if is_valued else "h"
    left = "j" if part.unit else f"{name}_slope[j]"
    asked = [f"if ({name}_sure(h, {name}_least[j])) return {left};", "j++;"]
    if is_valued:
        _write_value(code, name, part)
        asked.insert(0, f"{name}_value(s, t / {part.each}, h);")
    place = "t" if walk.vote is None else "i"
    first = [f"if ({place} == {name}_exit[j]) {{", *(f"    {line}" for line in asked), "}"]
    lines = [*([f"{code.total} s[{n}];"] if sums == "s" else []), "int j = 0;"]
    lines += [f"{sums}[{j}] = {literal(start)};" for j, start in enumerate(walk.start)]
    if walk.vote is None:
        lines += tree_lines(code, name, walk, k, sums, first)
    else:
        lines += graph_lines(code, name, walk, k, first)
    if is_valued:
        lines.append(f"{name}_value(s, {len(walk.root) // part.each}, h);")
    head = f"(const {code.value} *x, {code.total} *h)"
    kind, end = ("int", "return j;") if part.unit else ("double", "return 1.0;")
    code.function(f"{kind} {name}_leave{head}", *lines, end)
    if part.unit:
        code.function(f"void {name}_sums{head}", *_whole_lines(name, part))
        return
    scaled = _scaled_lines(part)
    code.function(f"void {name}_sums{head}", f"const double slope = {name}_leave(x, h);", *scaled)


def _write_sure(code: Code, name: str, part: Leaving) -> None:
    """Add ``name_sure(h, least)``: whether values are so sure."""
    n, kind = part.n_scores, code.total if part.unit else "double"
    head = f"int {name}_sure(const {code.total} *h, {kind} least)"
    if n == 1:
        code.function(head, "return h[0] >= least || h[0] <= -least;")
        return
    write_best(code, f"{name}_best")
    code.function(
        head,
        f"const int best = {name}_best(h, {n});",
        f"for (int k = 0; k < {n}; k++) if (k != best && !(h[best] - h[k] >= least)) return 0;",
        "return 1;",
    )


def _write_value(code: Code, name: str, part: Leaving) -> None:
    """Add ``name_value(s, t, h)``: the values after t joints, of the sums of trees."""
    walk, n = part.walk, len(part.walk.start)
    if walk.after is not None:
        lines = [f"h[{j}] = {literal(walk.after[j])} + s[{j}];" for j in range(n)]
        lines.append("(void)t;")
    elif walk.lead:
        lines = ["h[0] = t ? s[1] / t - s[0] / t : 0.0;"]
    else:
        lines = [f"for (int k = 0; k < {n}; k++) h[k] = t ? s[k] / t : 0.0;"]
    code.function(f"void {name}_value(const {code.total} *s, int t, {code.total} *h)", *lines)


def _scaled_lines(part: Leaving) -> list[str]:
    """Return the lines that multiply values h by the slope; shares stay shares."""
    n = part.n_scores
    if not part.is_share:
        return [f"h[{j}] *= slope;" for j in range(n)]
    if n == 1:
        return ["h[0] *= slope;", "h[0] = h[0] < -1.0 ? -1.0 : h[0] > 1.0 ? 1.0 : h[0];"]
    equal = literal(1 / n)
    return [
        "double sum = 0.0;",
        f"for (int k = 0; k < {n}; k++) {{",
        f"    const double v = {equal} + slope * (h[k] - {equal});",
        "    sum += h[k] = v < 0.0 ? 0.0 : v > 1.0 ? 1.0 : v;",
        "}",
        f"for (int k = 0; k < {n}; k++) h[k] /= sum;",
    ]


def _whole_lines(name: str, part: Leaving) -> list[str]:
    """Return the lines that multiply whole numbers h with which a row left before the end.

    Products are of 64 bits, and divided towards 0 as C has it.
    """
    n, whole, unit = part.n_scores, literal(part.whole), literal(np.int64(part.unit))
    product = f"(int64_t)h[k] * {name}_slope[j] / {unit}"
    lines = [f"const int j = {name}_leave(x, h);", f"if (j == {len(part.at)}) return;"]
    if not part.is_share:
        return [*lines, f"for (int k = 0; k < {n}; k++) h[k] = (int32_t)({product});"]
    if n == 1:
        return [
            *lines,
            f"const int64_t v = {product.replace('[k]', '[0]')};",
            f"h[0] = v < -{whole} ? -{whole} : v > {whole} ? {whole} : (int32_t)v;",
        ]
    return [
        *lines,
        "int64_t sum = 0;",
        f"for (int k = 0; k < {n}; k++) {{",
        f"    const int64_t v = {name}_even[j] + {product};",
        f"    sum += h[k] = v < 0 ? 0 : v > {whole} ? {whole} : (int32_t)v;",
        "}",
        f"for (int k = 0; k < {n}; k++) h[k] = (int32_t)((int64_t)h[k] * {whole} / sum);",
    ]
