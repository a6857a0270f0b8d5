"""Export of tree models to a SQL statement."""

from __future__ import annotations

import numpy as np

from pboost.models.as_trees import as_trees
from pboost.models.base import Model
from pboost.models.text import MOST
from pboost.models.tree_ensemble import LEAF, NO_SET, TreeEnsemble, values_of_sum
from pboost.values import FloatArray, shown

#: Number of digits that identify a float64, even if a database does not round to nearest.
DIGITS = 17


def to_sql(model: Model | TreeEnsemble, table: str, *, max_nodes: int = 100_000) -> str:
    """Return a SQL statement that evaluates a model on the rows of a table.

    The columns of the table must have the feature names of the training data, or ``x0``, ``x1``
    etc. if there were no names. NULL is a missing value. A category that did not occur in training
    is also a missing value, unless the feature had more than 255 categories: then it is treated
    like the rare ones. Categories are compared by value. Boolean categories are 1 and 0 in SQL.

    Parameters
    ----------
    model : fitted model of pboost, or TreeEnsemble
        A model that is a sum of trees, or the result of `as_tree_ensemble`.
    table : str
        Name of the table, which is quoted in the statement.
    max_nodes : int
        Maximum number of nodes of the trees that a decision graph is converted to.

    Returns
    -------
    str
        A statement ``SELECT ... AS "value" FROM "table"``. The value is the decision value or, for
        a regression, the predicted target. If there are several values, the class label is added to
        the name, as in ``value_red``.

    Raises
    ------
    TypeError, ValueError
        If a name cannot be written in SQL or occurs twice. See also `as_tree_ensemble`.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> tree = pb.fit_cart(X, [5.0, 5.0, 7.0, 7.0], task="regression")
    >>> print(pb.export.to_sql(tree, "measured"))
    SELECT CASE WHEN "x0" > 1.5 THEN 7.0 ELSE 5.0 END AS "value"
    FROM "measured"
    """
    trees = as_trees(model, None, max_nodes)
    names = trees.feature_names or ()
    if len(set(names)) < len(names):
        twice = next(name for j, name in enumerate(names) if name in names[:j])
        raise ValueError(f"model: expected unique feature names for SQL, got {twice!r} twice")
    read = np.unique(trees.feature[trees.feature != LEAF]).tolist()
    columns = {j: _quoted(names[j] if names else f"x{j}", "feature_names") for j in read}
    value = values_of_sum(trees)
    called = ["value"]
    if trees.n_values > 1:
        known = range(trees.n_values) if trees.classes is None else trees.classes.tolist()
        called = [f"value_{label}" for label in known]
    expressions = [
        f"{_sum(trees, columns, value, column)} AS {_quoted(name, 'classes')}"
        for column, name in enumerate(called)
    ]
    return f"SELECT {', '.join(expressions)}\nFROM {_quoted(table, 'table')}"


def _quoted(name: object, what: str) -> str:
    """Return a quoted SQL identifier."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise ValueError(
            f"{what}: expected a non-empty text without NUL characters, got {shown(name)}"
        )
    return '"' + name.replace('"', '""') + '"'


def _sum(trees: TreeEnsemble, columns: dict[int, str], value: FloatArray, column: int) -> str:
    """Return the SQL expression of one output. Parentheses limit the nesting depth of the sum."""
    bias = float(trees.bias[column])
    terms = [_number(bias)] if bias else []
    for tree in range(trees.n_trees):
        if trees.target is None or trees.target[tree] == column:
            terms.append(_tree(trees, columns, tree, value[:, column]))
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [f"({a} + {b})" for a, b in pairs] + terms[len(terms) // 2 * 2 :]
    return terms[0]


def _tree(trees: TreeEnsemble, columns: dict[int, str], tree: int, value: FloatArray) -> str:
    """Return the SQL expression of one tree."""
    root, stop = trees.root[tree : tree + 2].tolist()
    expression: dict[int, str] = {}
    for node in range(stop - 1, root - 1, -1):  # children first
        if trees.feature[node] == LEAF:
            expression[node] = _number(float(value[node]))
            continue
        question, asked = _question(trees, columns, node)
        yes, no = (expression.pop(root + int(trees.children[node, k])) for k in (asked, 1 - asked))
        expression[node] = f"CASE WHEN {question} THEN {yes} ELSE {no} END"
    return expression[root]


def _question(trees: TreeEnsemble, columns: dict[int, str], node: int) -> tuple[str, int]:
    """Return a condition and the child (0 or 1) of the rows for which it is true.

    The condition is not true for NULL, which goes to the other child. Unknown categories also go
    there, unless they are treated as "other".
    """
    column, number = int(trees.feature[node]), int(trees.category_set[node])
    asked = 0 if trees.missing is None or trees.missing[node] else 1
    name, threshold = columns[column], float(trees.threshold[node])
    order = None if trees.table is None or not trees.table.order else trees.table.order[column]
    if number == NO_SET and order is None:
        if threshold == MOST and asked == 0:
            return f"{name} IS NOT NULL", asked
        return f"{name} {'>' if asked else '<='} {_number(threshold)}", asked
    known = _levels(trees, column) if order is None else [[v] for v in order.tolist()]
    above = np.arange(len(known)) > threshold
    if number != NO_SET:
        above = np.isin(np.arange(len(known)), trees.categories(number))
    has_other = trees.table is not None and trees.table.has_shared(column)
    is_open = has_other and bool(above[-1] == asked)
    listed = np.flatnonzero(above == (bool(asked) != is_open))
    values = [_literal(v) for k in listed for v in known[k]]
    if is_open and not values:
        return f"{name} IS NOT NULL", asked
    return f"{name} {'NOT IN' if is_open else 'IN'} ({', '.join(values)})", asked


def _levels(trees: TreeEnsemble, column: int) -> list[list[str | bool | float]]:
    """Return the categories of each code of a feature, or the codes themselves."""
    table = trees.table
    levels = None if table is None else table.categories[column]
    if table is None or levels is None:
        return [[float(k)] for k in range(256)]
    values: list[list[str | bool | float]] = [[value] for value in levels.tolist()]
    other = None if table.other is None else table.other[column]
    return values if other is None else [*values, other.tolist()]


def _literal(value: str | bool | float) -> str:
    """Return a category as a SQL literal."""
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError(f"model: expected categories without NUL characters, got {value!r}")
        return "'" + value.replace("'", "''") + "'"
    return str(int(value)) if isinstance(value, bool) else _number(float(value))


def _number(value: float) -> str:
    """Return a number as a SQL literal that is read back as the same float64."""
    short = repr(value)
    return short if float(f"{value:.15g}") == value else f"{value:.{DIGITS}g}"
