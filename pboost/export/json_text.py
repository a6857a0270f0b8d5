"""Export and import of tree models as JSON, without rounding."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from pboost.data.node_inputs.inputs import WORDS
from pboost.data.read.table import MOST_LEVELS, Table
from pboost.models.as_trees import as_trees
from pboost.models.base import Model
from pboost.models.schema import ModelFileError
from pboost.models.tree_ensemble import TreeEnsemble
from pboost.values import Array, TableLike, shown
from pboost.values.json_texts import parse

#: Name and version of the format that is written and read.
FORMAT, VERSION = "pboost-trees", 1
#: Fields that have the same name in `TreeEnsemble` and JSON, and fields with another name.
PLAIN = ("builder", "aggregation", "link", "comparison", "n_features")
OURS = {"set": "category_set"}
#: Maximum size in bytes of a class label or category.
WIDEST = 1 << 16
#: Number of bits of an integer in the array of category sets.
WORD = 64
#: Maximum memory of the parsed document, as a multiple of the text size.
MOST_TIMES = 30
#: Memory limit of categories in bytes: a multiple of the text size, plus a constant. The limit of
#: class labels is a quarter of it.
MOST_OF_STRINGS, FREE_OF_STRINGS = 20, 12 << 20
#: JSON types of class labels and categories, for each kind of dtype.
_TYPES: dict[str, tuple[type, ...]] = {
    "b": (bool,),
    "i": (int,),
    "u": (int,),
    "f": (int, float),
    "U": (str,),
}


def to_json(
    model: Model | TreeEnsemble,
    X: TableLike | None = None,
    *,
    max_nodes: int = 100_000,
    indent: int | None = None,
) -> str:
    """Return a model as JSON text, in the format described in the user guide.

    Numbers are not rounded, and none of them is NaN or infinite. The text also contains category
    sets, the branches of missing values, and the categories.

    Parameters
    ----------
    model : fitted model of pboost, or TreeEnsemble
        A model that is a sum of trees, or the result of `as_tree_ensemble`.
    X : array_like of shape (n, d), or data frame, optional
        Rows that define the weights of the nodes, see `as_tree_ensemble`.
    max_nodes : int
        Maximum number of nodes of the trees that a decision graph is converted to.
    indent : int, optional
        Number of spaces to indent nested lines. By default, the text is a single line.

    Returns
    -------
    str

    Raises
    ------
    TypeError, ValueError
        See `as_tree_ensemble`.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.twonorm(100, rng=0)
    >>> model = pb.fit_adaboost(X, y, n_estimators=5)
    >>> pb.export.from_json(pb.export.to_json(model))
    <trees of fit_adaboost: 5 trees, 15 nodes>
    """
    trees = as_trees(model, X, max_nodes)
    named = {
        "format": FORMAT,
        "version": VERSION,
        **{name: getattr(trees, name) for name in PLAIN},
        **({} if trees.temperature == 1 else {"temperature": trees.temperature}),
        "feature_names": None if trees.feature_names is None else list(trees.feature_names),
        "classes": None if trees.classes is None else _values(trees.classes),
        "bias": trees.bias.tolist(),
        "sets": [trees.categories(number).tolist() for number in range(trees.n_sets)],
        "table": None if trees.table is None else _of_table(trees.table),
        "trees": [],
    }
    arrays = {name: getattr(trees, OURS.get(name, name)) for name in COLUMNS}
    for tree in range(trees.n_trees):
        at = slice(*trees.root[tree : tree + 2].tolist())
        of = {name: None if part is None else part[at].tolist() for name, part in arrays.items()}
        target = None if trees.target is None else int(trees.target[tree])
        named["trees"].append({"target": target, **of})
    return json.dumps(named, indent=indent, allow_nan=False, ensure_ascii=False)


def from_json(text: str | bytes) -> TreeEnsemble:
    """Return the trees in a text written by `to_json`.

    Parameters
    ----------
    text : str or bytes
        The result of `to_json`, or a text in the same format. Bytes are decoded as UTF-8.

    Returns
    -------
    TreeEnsemble
        The trees. Their arrays are bit-identical to the exported arrays.

    Raises
    ------
    ModelFileError
        If the text is not JSON, has another version, or does not contain valid trees. The message
        contains the name of the invalid field. Memory use is limited to 40 times the size of the
        text plus 16 MB.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = pb.datasets.twonorm(100, rng=0)
    >>> text = pb.export.to_json(pb.fit_cart(X, y, max_depth=2))
    >>> pb.export.from_json(text)
    <trees of fit_cart: 1 tree, 7 nodes>
    """
    if not isinstance(text, str | bytes):
        raise TypeError(f"text: expected the result of to_json, got {shown(text)}")
    try:
        document = parse(text, MOST_TIMES)
    except ValueError as error:
        raise ModelFileError(f"text: {error}") from None
    if not isinstance(document, dict) or (document.get("format"), document.get("version")) != (
        FORMAT,
        VERSION,
    ):
        version = document.get("version") if isinstance(document, dict) else None
        raise ModelFileError(
            f"text: expected format {FORMAT!r} of version {VERSION}, got version {shown(version)}; "
            "write the file again with to_json of this version of pboost"
        )
    try:
        return _read(document, MOST_OF_STRINGS * len(text) + FREE_OF_STRINGS)
    except KeyError as error:
        raise ModelFileError(f"text: expected the field {error}, which is missing") from None
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ModelFileError(f"text: expected trees as written by to_json: {error}") from None


def _read(document: dict[str, Any], max_string_bytes: int) -> TreeEnsemble:
    """Return the trees of a document. `max_string_bytes` limits the memory of strings."""
    trees = document["trees"]
    parts = {name: [tree[name] for tree in trees] for name in (*COLUMNS, "target")}
    columns: dict[str, Any] = {
        name: _joined(name, parts[name], *kind) for name, kind in COLUMNS.items()
    }
    names, classes, target = (
        document["feature_names"],
        document["classes"],
        _one("target", parts["target"]),
    )
    return TreeEnsemble(
        root=np.cumsum([0, *map(len, parts["feature"])]),
        **{OURS.get(name, name): column for name, column in columns.items()},
        target=None if target is None else _numbers("target", target, int),
        sets=_sets(document["sets"]),
        bias=_numbers("bias", document["bias"], float),
        classes=None if classes is None else _array(classes, max_string_bytes // 4),
        feature_names=None if names is None else tuple(_items("feature_names", names, str)),
        **{name: document[name] for name in PLAIN},
        temperature=document.get("temperature", 1.0),
        table=None if document["table"] is None else _to_table(document["table"], max_string_bytes),
    )


#: Type of each node array, and whether the array has several numbers per node.
COLUMNS: dict[str, tuple[type, bool]] = {
    "feature": (int, False),
    "threshold": (float, False),
    "set": (int, False),
    "children": (int, True),
    "missing": (int, False),
    "value": (float, True),
    "weight": (float, False),
}


def _one(name: str, parts: list[object]) -> Any:
    """Return the parts of all trees, or None if all parts are None."""
    if any((part is None) != (parts[0] is None) for part in parts):
        raise ValueError(f"{name}: expected null in all trees or in none")
    return None if not parts or parts[0] is None else parts


def _joined(name: str, parts: list[object], kind: type, is_several: bool) -> Array | None:
    """Return the concatenated arrays of all trees."""
    lists = _one(name, parts)
    if lists is None:
        return None
    return np.concatenate([_numbers(name, part, kind, is_several) for part in lists])


def _numbers(name: str, value: object, kind: type, is_several: bool = False) -> Array:
    """Return an array of numbers. Unlike NumPy, do not convert other types to numbers."""
    rows = _items(name, value, list) if is_several else [value]
    for row in rows:
        _items(name, row, int, kind)
    array = np.array(value, dtype=np.int64 if kind is int else np.float64)
    if kind is int and array.size and not -1 <= array.min() <= array.max() < 2**31:
        raise ValueError(f"{name}: expected integers from -1 to 2147483647")
    return array


def _items(name: str, value: object, *kinds: type) -> list[Any]:
    """Return the list after checking the types of its items."""
    if type(value) is not list or set(map(type, value)).difference(kinds):
        expected = "numbers" if int in kinds else "strings" if str in kinds else "lists of numbers"
        raise ValueError(f"{name}: expected {expected}")
    return value


def _sets(level_lists: Any) -> Array:
    """Return category sets as bit sets."""
    sets = np.zeros((len(_items("sets", level_lists, list)), WORDS), dtype=np.uint64)
    for words, levels in zip(sets, level_lists, strict=True):
        for level in _items("sets", levels, int):
            if not 0 <= level < MOST_LEVELS:
                raise ValueError(
                    f"sets: expected categories from 0 to {MOST_LEVELS - 1}, got {shown(level)}"
                )
            words[level // WORD] |= np.uint64(1 << level % WORD)
    return sets


def _values(values: Array) -> dict[str, Any]:
    """Return class labels or categories with their dtype."""
    return {"dtype": values.dtype.str.lstrip("<>|="), "values": values.tolist()}


def _array(record: dict[str, Any], max_bytes: int) -> Array:
    """Return class labels or categories as an array of at most `max_bytes`."""
    dtype, values = np.dtype(str(record["dtype"])), record["values"]
    if dtype.kind not in _TYPES or dtype.itemsize > (WIDEST if dtype.kind == "U" else WORD // 8):
        raise ValueError(
            f"dtype: expected a dtype of classes or categories, got {shown(record['dtype'])}"
        )
    _items("values", values, *_TYPES[dtype.kind])
    if dtype.kind == "U" and len(values) * dtype.itemsize > max_bytes:
        raise ValueError(f"values: expected strings of similar lengths, got dtype {dtype}")
    array = np.array(values, dtype=dtype)
    if array.tolist() != values:  # NumPy truncated or rounded a value
        raise ValueError(f"values: expected values that fit into {record['dtype']!r}")
    return array


def _of_table(table: Table) -> dict[str, Any]:
    # Give all strings the same dtype, because `from_json` makes one array.
    members = table.members()
    text = np.array(members.pop("category_text").tolist(), dtype=np.str_)
    return {name: _values(array) for name, array in {**members, "category_text": text}.items()}


def _to_table(record: dict[str, Any], max_bytes: int) -> Table | None:
    arrays: dict[str, Array] = {
        name: _array(record[name], max_bytes)
        for name, dtype in Table.stored.items()
        if dtype is not None
    }
    words = _items("category_text", record["category_text"]["values"], str)
    arrays["category_text"] = np.array(words, dtype=object)
    return Table.from_members(arrays, max_bytes)
