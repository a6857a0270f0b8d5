"""Trees as JSON, and back: each number the same."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from pboost.data.table import Table
from pboost.models.base import Model
from pboost.models.stored import Arrays
from pboost.models.tree_record import TreeSum
from pboost.models.trees_of import as_trees
from pboost.values import Array, shown

#: What the texts call themselves, and which version is written and read.
FORMAT, VERSION = "pboost-trees", 1
#: Bytes that a label or level may take.
WIDEST = 1 << 16
#: Bits of a word of a set.
WORD = 64


def to_json(
    model: Model | TreeSum, X: Any = None, *, max_nodes: int = 100_000, indent: int | None = None
) -> str:
    """Return a model as text of JSON, as the page on export describes it.

    Numbers are written so that they are read as the same float64; no NaN or infinity stands in the
    text. It holds sets of levels, where missing values go, and what the levels are.

    Parameters
    ----------
    model : DecisionGraph, Tree, Forest, StagewiseModel, a model of models, or TreeSum
        A fitted model, see `trees_of`, or its trees.
    X : array_like of shape (n, d), or data frame, optional
        Rows by which nodes are weighted, see `trees_of`.
    max_nodes : int
        The most nodes that the trees of a graph may have.
    indent : int, optional
        By how much lines are indented; default: all in one line.

    Returns
    -------
    str

    Raises
    ------
    TypeError, ValueError
        As in `trees_of`.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.twonorm(100, rng=0)
    >>> model = pb.fit_adaboost(X, y, rounds=5)
    >>> pb.from_json(pb.to_json(model))
    <trees of fit_adaboost: 5 trees, 15 nodes>
    """
    trees = as_trees(model, X, max_nodes)
    weight, missing = trees.weight, trees.missing
    named = {
        "format": FORMAT, "version": VERSION, "builder": trees.builder,
        "aggregation": trees.aggregation, "link": trees.link, "comparison": trees.comparison,
        "n_features": trees.n_features,
        "feature_names": None if trees.feature_names is None else list(trees.feature_names),
        "labels": None if trees.labels is None else _values(trees.labels),
        "bias": trees.bias.tolist(),
        "sets": [trees.levels(number).tolist() for number in range(trees.n_sets)],
        "table": None if trees.table is None else _of_table(trees.table),
        "trees": [],
    }  # fmt: skip
    for tree in range(trees.n_trees):
        at = slice(*trees.root[tree : tree + 2].tolist())
        named["trees"].append(
            {
                "target": None if trees.target is None else int(trees.target[tree]),
                "feature": trees.feature[at].tolist(), "threshold": trees.threshold[at].tolist(),
                "set": trees.level_set[at].tolist(), "children": trees.children[at].tolist(),
                "missing": None if missing is None else missing[at].tolist(),
                "value": trees.value[at].tolist(),
                "weight": None if weight is None else weight[at].tolist(),
            }
        )  # fmt: skip
    return json.dumps(named, indent=indent, allow_nan=False, ensure_ascii=False)


def from_json(text: str | bytes) -> TreeSum:
    """Return the trees that `to_json` has written.

    Parameters
    ----------
    text : str or bytes
        What `to_json` returns, or by hand; bytes are UTF-8.

    Returns
    -------
    TreeSum
        Equal to those that were written, each array to the last bit.

    Raises
    ------
    ValueError
        If the text is no JSON, is of another version, or says no trees; with the field.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.twonorm(100, rng=0)
    >>> trees = pb.trees_of(pb.fit_cart(X, y, max_depth=2))
    >>> bool((pb.from_json(pb.to_json(trees)).value == trees.value).all())
    True
    """
    if not isinstance(text, str | bytes):
        raise TypeError(f"text: expected what to_json returns, got {shown(text)}")
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"text: expected JSON: {error}") from None
    if not isinstance(said, dict) or (said.get("format"), said.get("version")) != (FORMAT, VERSION):
        found = said.get("version") if isinstance(said, dict) else None
        raise ValueError(
            f"text: expected format {FORMAT!r} of version {VERSION}, got version {shown(found)}"
        )
    try:
        return _read(said)
    except KeyError as error:
        raise ValueError(f"text: expected the field {error}") from None
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"text: expected trees as to_json writes them: {error}") from None


def _read(said: dict[str, Any]) -> TreeSum:
    """Return the trees that are said, which check themselves."""
    trees, sets = said["trees"], np.zeros((len(said["sets"]), 4), dtype=np.uint64)
    for words, levels in zip(sets, said["sets"], strict=True):
        for level in levels:
            words[level // WORD] |= np.uint64(1 << level % WORD)
    parts = {name: [tree[name] for tree in trees] for name in (*COLUMNS, "target")}
    columns: dict[str, Any] = {
        name: _joined(name, parts[name], kind) for name, kind in COLUMNS.items()
    }
    names, labels = said["feature_names"], said["labels"]
    return TreeSum(
        root=np.cumsum([0, *map(len, parts["feature"])]), level_set=columns.pop("set"), **columns,
        target=_one("target", parts["target"]), sets=sets, bias=said["bias"],
        labels=None if labels is None else _array(labels), n_features=said["n_features"],
        feature_names=None if names is None else tuple(names), aggregation=said["aggregation"],
        link=said["link"], builder=said["builder"], comparison=said["comparison"],
        table=None if said["table"] is None else _to_table(said["table"]),
    )  # fmt: skip


#: Arrays of nodes, and what they hold.
COLUMNS: dict[str, type] = {
    "feature": int, "threshold": float, "set": int, "children": int, "missing": int,
    "value": float, "weight": float,
}  # fmt: skip


def _one(name: str, parts: list[Any]) -> Any:
    """Return the parts, or None where all are."""
    if any((part is None) != (parts[0] is None) for part in parts):
        raise ValueError(f"{name}: expected null in all trees, or in none")
    return None if not parts or parts[0] is None else parts


def _joined(name: str, parts: list[Any], kind: type) -> Array | None:
    """Return the arrays of all trees, one after another."""
    found = _one(name, parts)
    if found is None:
        return None
    joined = np.concatenate([np.asarray(part) for part in found])
    if joined.dtype.kind not in ("iu" if kind is int else "iuf"):
        raise ValueError(f"{name}: expected numbers")
    if kind is int and joined.size and not -1 <= joined.min() <= joined.max() < 2**31:
        raise ValueError(f"{name}: expected integers from -1")
    return joined


def _values(values: Array) -> dict[str, Any]:
    """Return labels or levels with their dtype."""
    return {"dtype": values.dtype.str.lstrip("<>|="), "values": values.tolist()}


def _array(said: dict[str, Any]) -> Array:
    dtype = np.dtype(said["dtype"])
    if dtype.kind not in "biufU" or dtype.itemsize > WIDEST:
        raise ValueError(f"dtype: expected that of labels or levels, got {said['dtype']!r}")
    return np.array(said["values"], dtype=dtype)


def _of_table(table: Table) -> dict[str, Any]:
    return {name: _values(array) for name, array in table.members().items()}


def _to_table(said: dict[str, Any]) -> Table | None:
    arrays: Arrays = {name: _array(said[name]) for name in Table.stored}
    return Table.from_members(arrays)
