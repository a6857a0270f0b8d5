"""The program in a C file that evaluates rows and compares their scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.export.c_arithmetic import sums_of
from pboost.export.c_making import Making, scores_of, tests_of
from pboost.export.c_parts import Leaving, Walk, is_exact
from pboost.export.c_text import table
from pboost.values import FloatArray

#: Rows of the self-test, and how often a value in it is missing.
TEST_ROWS, HOLES = 20, 0.1
#: The most columns of rows that are written into a file.
MOST_TESTED = 1 << 16
#: By how much what is made of exponentials may differ.
TOLERANCE = 1e-14


def self_test(made: Making) -> str:
    """Return the program; of many columns a line that there is none."""
    p, n, upper = made.prefix, made.part.n_scores, made.prefix.upper()
    if made.model.n_features > MOST_TESTED:
        return (
            f"#ifdef {upper}_SELF_TEST\n"
            f'#error "models of more than {MOST_TESTED} columns have no self-test"\n#endif'
        )
    given, expected = _test_rows(made)
    call = f"{p}_scores(x, h)" if n > 1 else f"h[0] = {p}_score(x)"
    differs = "h[k] != known[k]"
    if not is_exact(made.part):
        room = f"{TOLERANCE} * (1.0 + (known[k] < 0.0 ? -known[k] : known[k]))"
        differs = f"!(h[k] - known[k] < {room} && known[k] - h[k] < {room})"
    lines = [
        f"#ifdef {upper}_SELF_TEST",
        "#include <math.h>",
        "#include <stdio.h>",
        "",
        table(f"{p}_test_rows", given),
        "",
        table(f"{p}_test_scores", expected),
        "",
        "int main(void)",
        "{",
        "    int wrong = 0;",
        f"    for (int r = 0; r < {len(given)}; r++) {{",
        f"        const {made.value} *x = {p}_test_rows + r * {upper}_FEATURES;",
        f"        const {made.total} *known = {p}_test_scores + r * {n};",
        f"        {made.total} h[{n}];",
        f"        {call};",
        f"        for (int k = 0; k < {n}; k++) wrong += {differs};",
        "    }",
        f'    printf("%d scores of {len(given)} rows differ\\n", wrong);',
        "    return wrong != 0;",
        "}",
        "#endif",
    ]
    return "\n".join(lines)


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
    assert isinstance(made.part, Walk | Leaving)
    return given, sums_of(made.part, given)


def _made_rows(made: Making) -> FloatArray:
    """Return rows made of thresholds, levels and holes; the same for the same model."""
    model, d = made.model, made.model.n_features
    rng = np.random.default_rng(0)
    found: list[list[FloatArray]] = [[] for _ in range(d)]
    for tests in tests_of(made.exact):
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
