"""The steps of any model as C, also of models that are made of others."""

from __future__ import annotations

import numpy as np

from pboost.export.c_code import Code, write_leaves, write_linear, write_walk
from pboost.export.c_exits import write_leaving
from pboost.export.c_links import write_best, write_interpolation, write_link, write_log
from pboost.export.c_parts import Leaving, Line, Linear, LinearLeaves, Maps, Members, Part, Walk
from pboost.export.c_text import literal, narrow


def write_part(code: Code, name: str, part: Part) -> None:
    """Add the function ``name_sums(x, h)``, which writes the decision values of a row to h."""
    if isinstance(part, Walk):
        write_walk(code, name, part)
    elif isinstance(part, Linear):
        write_linear(code, name, part)
    elif isinstance(part, LinearLeaves):
        write_leaves(code, name, part)
    elif isinstance(part, Leaving):
        write_leaving(code, name, part)
    elif isinstance(part, Line):
        _write_line(code, name, part)
    elif isinstance(part, Maps):
        _write_maps(code, name, part)
    else:
        _write_members(code, name, part)


def _write_line(code: Code, name: str, line: Line) -> None:
    """Add half of a straight line of what a part says."""
    own, most, k = f"{name}_of", literal(line.most), line.part.n_scores
    write_part(code, own, line.part)
    value = "of[0]" if k == 1 else "(of[1] - of[0])"
    code.function(
        f"void {name}_sums(const {code.value} *x, {code.total} *h)",
        f"double of[{k}], v;",
        f"{own}_sums(x, of);",
        f"v = {value} * {literal(line.slope)} + {literal(line.intercept)};",
        f"v = v < -{most} ? -{most} : v > {most} ? {most} : v;",
        "h[0] = v / 2.0;",
    )


def _write_maps(code: Code, name: str, maps: Maps) -> None:
    """Add the logarithms of the probabilities that maps find by what a part says."""
    own, k, given = f"{name}_of", maps.n_scores, maps.part.n_scores
    write_part(code, own, maps.part)
    write_log(code, f"{name}_log")
    lines = [f"double of[{given}], p[{k}];", f"{own}_sums(x, of);"]
    if k == 1 and given == 2:
        lines.append("of[0] = of[1] - of[0];")
    if maps.slope is not None and maps.intercept is not None:
        most = literal(maps.most)
        write_link(code, f"{name}_odds", "half_log_odds")
        code.table(f"{name}_slope", maps.slope)
        code.table(f"{name}_intercept", maps.intercept)
        found = [
            f"double v = of[k] * {name}_slope[k] + {name}_intercept[k], two[2];",
            f"v = (v < -{most} ? -{most} : v > {most} ? {most} : v) / 2.0;",
            f"{name}_odds(&v, 1, two);",
            "p[k] = two[1];",
        ]
    else:
        assert maps.knot is not None
        assert maps.share is not None
        assert maps.start is not None
        code.table(f"{name}_knot", maps.knot)
        code.table(f"{name}_share", maps.share)
        code.table(f"{name}_start", narrow(maps.start))
        write_interpolation(code, f"{name}_map", f"{name}_knot", f"{name}_share")
        found = [f"p[k] = {name}_map(of[k], {name}_start[k], {name}_start[k + 1] - 1);"]
    lines += [f"for (int k = 0; k < {k}; k++) {{", *(f"    {line}" for line in found), "}"]
    most = literal(maps.most_half)
    if k == 1:
        lines += [
            f"h[0] = ({name}_log(p[0]) - {name}_log(1.0 - p[0])) / 2.0;",
            f"h[0] = h[0] < -{most} ? -{most} : h[0] > {most} ? {most} : h[0];",
        ]
    else:
        least = literal(-2 * maps.most_half)
        lines += [
            "double sum = 0.0;",
            f"for (int k = 0; k < {k}; k++) sum += p[k];",
            f"for (int k = 0; k < {k}; k++) {{",
            f"    h[k] = {name}_log(sum > 0.0 ? p[k] / sum : {literal(1 / k)});",
            f"    if (h[k] < {least}) h[k] = {least};",
            "}",
        ]
    code.function(f"void {name}_sums(const {code.value} *x, {code.total} *h)", *lines)


def _write_members(code: Code, name: str, whole: Members) -> None:
    """Add what the members of a model say, put together."""
    n, sums = len(whole.start), "s" if whole.lead else "h"
    width = max((part.n_scores for part in whole.members), default=1)
    lines = [f"{code.total} s[{n}];"] if whole.lead else []
    lines += [f"{sums}[{j}] = {literal(start)};" for j, start in enumerate(whole.start)]
    lines.append(f"{code.total} of[{width}];" if whole.members else "(void)x;")
    if whole.rule == "shares":
        lines.append(f"double p[{max(map(len, whole.place))}];")
    for m, part in enumerate(whole.members):
        own = f"{name}_m{m}"
        write_part(code, own, part)
        lines.append(f"{own}_sums(x, of);")
        lines += _said_lines(code, name, whole, m, sums)
    if whole.divisor != 1:
        lines += [f"{sums}[{j}] /= {literal(float(whole.divisor))};" for j in range(n)]
    if whole.lead:
        lines.append("h[0] = s[1] - s[0];")
    if whole.rule == "votes" and whole.members:
        write_best(code, f"{name}_best")
    for link in sorted(set(whole.link)):
        write_link(code, f"{name}_{link}", link)
    code.function(f"void {name}_sums(const {code.value} *x, {code.total} *h)", *lines)


def _said_lines(code: Code, name: str, whole: Members, m: int, sums: str) -> list[str]:
    """Return the lines that add what a member says, whose decision values are in `of`."""
    n, own = whole.members[m].n_scores, f"{name}_m{m}"
    if whole.rule == "values":
        return [f"{sums}[{m}] = of[0];"]
    if whole.rule == "sum":
        return [f"{sums}[0] += of[0];"]
    labels, weight = whole.place[m], literal(whole.weight[m])
    is_all = np.array_equal(labels, np.arange(len(whole.start)))
    if not is_all:
        code.table(f"{own}_label", narrow(labels))
    if whole.rule == "shares":
        place = "k" if is_all else f"{own}_label[k]"
        added = "p[k]" if whole.weight[m] == 1 else f"{weight} * p[k]"
        return [
            f"{name}_{whole.link[m]}(of, {n}, p);",
            f"for (int k = 0; k < {len(labels)}; k++) {sums}[{place}] += {added};",
        ]
    place = f"{name}_best(of, {n})"
    return [f"{sums}[{place if is_all else f'{own}_label[{place}]'}] += {weight};"]
