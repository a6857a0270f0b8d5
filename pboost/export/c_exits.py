"""Walks that rows leave early as C."""

from __future__ import annotations

import numpy as np

from pboost.export.c_code import Code, graph_lines, tree_lines, write_tests
from pboost.export.c_links import write_best
from pboost.export.c_parts import Leaving
from pboost.export.c_text import literal, narrow


def write_leaving(code: Code, name: str, part: Leaving) -> None:
    """Add ``name_leave(x, h)``, the values with which a row leaves, and ``name_sums``.

    The first returns what the values are multiplied by, as the second does.
    """
    walk, n, k = part.walk, len(part.walk.start), part.walk.added.shape[-1]
    write_tests(code, name, walk.tests)
    _write_sure(code, name, part.n_scores)
    code.table(f"{name}_exit", narrow(np.append(part.at, len(walk.tests) + len(walk.root))))
    for called, values in (("least", part.sure), ("slope", part.slope)):
        code.table(f"{name}_{called}", values)
    sums = "h" if walk.vote is not None else "s"
    asked = [f"if ({name}_sure(h, {name}_least[j])) return {name}_slope[j];", "j++;"]
    if walk.vote is None:
        _write_value(code, name, part)
        asked.insert(0, f"{name}_value(s, t / {part.each}, h);")
    place = "t" if walk.vote is None else "i"
    first = [f"if ({place} == {name}_exit[j]) {{", *(f"    {line}" for line in asked), "}"]
    lines = [*([f"{code.total} s[{n}];"] if sums == "s" else []), "int j = 0;"]
    lines += [f"{sums}[{j}] = {literal(start)};" for j, start in enumerate(walk.start)]
    if walk.vote is None:
        lines += tree_lines(code, name, walk, k, sums, first)
        lines.append(f"{name}_value(s, {len(walk.root) // part.each}, h);")
    else:
        lines += graph_lines(code, name, walk, k, first)
    head = f"(const {code.value} *x, {code.total} *h)"
    code.function(f"double {name}_leave{head}", *lines, "return 1.0;")
    scaled = _scaled_lines(part)
    code.function(f"void {name}_sums{head}", f"const double slope = {name}_leave(x, h);", *scaled)


def _write_sure(code: Code, name: str, n: int) -> None:
    """Add ``name_sure(h, least)``: whether values are so sure."""
    head = f"int {name}_sure(const {code.total} *h, double least)"
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
