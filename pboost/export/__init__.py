"""Export of models to the formats of other tools."""

from typing import TYPE_CHECKING

from pboost._lazy import lazy_names

if TYPE_CHECKING:
    from pboost.export.c_file import CFile as CFile
    from pboost.export.c_file import to_c as to_c
    from pboost.export.json_text import from_json as from_json
    from pboost.export.json_text import to_json as to_json
    from pboost.export.onnx_treelite import to_onnx as to_onnx
    from pboost.export.onnx_treelite import to_treelite as to_treelite
    from pboost.export.shap_trees import to_shap as to_shap
    from pboost.export.shap_trees import to_shapiq as to_shapiq
    from pboost.export.sql import to_sql as to_sql

_NAMES = {
    "pboost.export.c_file": "CFile to_c",
    "pboost.export.json_text": "from_json to_json",
    "pboost.export.onnx_treelite": "to_onnx to_treelite",
    "pboost.export.shap_trees": "to_shap to_shapiq",
    "pboost.export.sql": "to_sql",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
