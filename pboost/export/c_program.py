"""The text of a C file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.export.c_code import Code
from pboost.export.c_header import header_of
from pboost.export.c_links import write_best, write_exp
from pboost.export.c_making import Making
from pboost.export.c_members import write_part
from pboost.export.c_parts import Leaving, Walk
from pboost.export.c_self_test import self_test
from pboost.export.c_text import comment, filled_table, literal, string, table
from pboost.models.tree_sum import StagewiseModel
from pboost.models.trees_of import link_of

#: Between lines.
NEWLINE = "\n"


def text_of(made: Making, explain: bool) -> str:
    """Return the file; `explain`: with the function of paths."""
    model, p, upper, n = made.model, made.prefix, made.prefix.upper(), made.part.n_scores
    code = Code(made.value, made.total, model.takes_missing)
    write_part(code, p, made.part)
    if n > 1 and model.labels is not None:
        write_best(code, f"{p}_label")
    if is_exponential(model) and made.fixed is None:
        write_exp(code, f"{p}_exp")
    public = [_score_function(made), *_predict_function(made)]
    if explain:
        public.append(_path_function(made))
    heads = [f"{function.partition(NEWLINE)[0]};" for function in public]
    defined = {"FEATURES": model.n_features}
    if model.labels is not None:
        labels = _labels_table(p, model.labels)
        heads.append(f"extern {labels.partition(' =')[0]};")
        public.append(labels)
        defined["LABELS"] = len(model.labels)
    if n > 1:
        defined["SCORES"] = n
    body = "\n\n".join(map(str, code.blocks))
    includes = ["#include <stdint.h>", *(["#include <math.h>"] if "INFINITY" in body else [])]
    parts = [
        comment(header_of(made)) + NEWLINE + NEWLINE.join(includes),
        NEWLINE.join(f"#define {upper}_{name} {number}" for name, number in defined.items()),
        NEWLINE.join(heads),
        body,
        *public,
        self_test(made),
    ]
    return "\n\n".join(parts) + NEWLINE


def _score_function(made: Making) -> str:
    """Return the function of the decision value, or of all."""
    p, total = made.prefix, made.total
    if made.part.n_scores > 1:
        lines = [f"{p}_sums(x, scores);"]
        return _function(f"void {p}_scores(const {made.value} *x, {total} *scores)", lines)
    lines = [f"{total} h[1];", f"{p}_sums(x, h);", "return h[0];"]
    return _function(f"{total} {p}_score(const {made.value} *x)", lines)


def _predict_function(made: Making) -> list[str]:
    """Return the function of the label, or of the number; none of numbers in fixed point."""
    p, n, model = made.prefix, made.part.n_scores, made.model
    if model.labels is not None:
        lines = [f"return {p}_score(x) > 0;"]
        # Labels of rows that leave are those of the values there, before a factor rounds them.
        go = "leave" if isinstance(made.part, Leaving) else "sums"
        if n > 1 or go == "leave":
            said = f"{p}_label(h, {n})" if n > 1 else "h[0] > 0"
            lines = [f"{made.total} h[{n}];", f"{p}_{go}(x, h);", f"return {said};"]
        return [_function(f"int {p}_predict(const {made.value} *x)", lines)]
    if made.fixed is not None:
        return []
    said = f"{p}_score(x)"
    if is_exponential(model):
        said = f"{p}_exp({said})"
    return [_function(f"{made.total} {p}_predict(const {made.value} *x)", [f"return {said};"])]


def is_exponential(model: Any) -> bool:
    """Return whether predictions are exponentials of decision values."""
    return isinstance(model, StagewiseModel) and link_of(model) == "exp"


def _path_function(made: Making) -> str:
    """Return the function that writes the exits that a row takes."""
    part, p = made.part, made.prefix
    assert isinstance(part, Walk)
    head, nodes = f"int {p}_path(const {made.value} *x, int *at, int most)", len(part.tests)
    if not nodes:
        return _function(head, ["(void)x, (void)at, (void)most;", "return 0;"])
    after = f"i + 1 < {nodes} ? i + 1 : -1" if part.is_chain else f"{p}_next[e]"
    trees = len(part.root)
    lines = [
        "int n = 0;",
        f"for (int t = 0; t < {trees}; t++) {{",
        f"    int i = {f'{p}_root[t]' if trees > 1 else literal(part.root[0])};",
        "    while (i >= 0) {",
        f"        const int e = 2 * i + {p}_above(x, i);",
        "        if (n < most) at[n] = e;",
        "        n++;",
        f"        i = {after};",
        "    }",
        "}",
        "return n;",
    ]
    return _function(head, lines)


def _function(head: str, lines: list[str]) -> str:
    return NEWLINE.join([head, "{", *(f"    {line}" for line in lines), "}"])


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
