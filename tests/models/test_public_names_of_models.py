"""What `dir` lists of models, and what is on their pages: names that users can rely on."""

from __future__ import annotations

import importlib.util
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import pboost as pb
from pboost.models.base import KINDS, Model, public_names

DOCS = Path(__file__).resolve().parents[2] / "docs"
FUNCTIONS = {
    "predict",
    "predict_proba",
    "decision_function",
    "staged_decision_function",
    "prediction_cost",
    "truncate",
    "describe",
}
INTERNALS = {
    "check_whole",
    "goes_with",
    "validate",
    "parts",
    "from_parts",
    "grown",
    "called",
    "node_exits",
    "leave",
    "file_kind",
    "is_no_graph",
    "values_at_end",
}
X = np.random.default_rng(0).normal(size=(60, 2))


def listed(found):
    return {name for name in dir(found) if not name.startswith("_")}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_lists_few_names(kind):
    cls = KINDS[kind]
    names = set(public_names(cls))
    assert len(names) <= 40
    assert names >= FUNCTIONS
    assert {field.name for field in fields(cls) if field.init} <= names
    assert names.isdisjoint(INTERNALS)
    assert all(hasattr(cls, name) for name in vars(cls).get("_public", ()))


MODELS = {
    "graph": lambda: pb.fit_adaboost(X, X[:, 0] > 0, n_estimators=2),
    "tree": lambda: pb.fit_cart(X, X[:, 0] > 0),
    "forest": lambda: pb.fit_random_forest(X, X[:, 0] > 0, n_estimators=2, rng=0),
    "sum": lambda: pb.fit_gradient_boosting(X, X[:, 0], n_estimators=2),
    "one-vs-rest": lambda: pb.fit_one_vs_rest(pb.fit_cart, X, np.digitize(X[:, 0], [-0.5, 0.5])),
    "record of trees": lambda: pb.models.as_tree_ensemble(
        pb.fit_gradient_boosting(X, X[:, 0], n_estimators=2)
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_list_what_they_have(name):
    model = MODELS[name]()
    assert len(listed(model)) <= 40
    if isinstance(model, Model):
        assert listed(model) == set(public_names(type(model)))
        assert "__class__" in dir(model)
        assert listed(model) >= FUNCTIONS
        np.testing.assert_array_equal(model.predict(X), pb.predict(model, X))


def test_pages_show_these_names():
    pytest.importorskip("sphinx_gallery")
    if not (DOCS / "conf.py").is_file():
        pytest.skip("no docs/ beside tests/")
    jinja2 = pytest.importorskip("jinja2")
    spec = importlib.util.spec_from_file_location("conf", DOCS / "conf.py")
    conf = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conf)
    text = (DOCS / "_templates" / "autosummary" / "class.rst").read_text(encoding="utf-8")
    template = jinja2.Environment(autoescape=False).from_string(text.replace("| underline", ""))
    for cls in KINDS.values():
        if cls.__name__ not in pb.models.__all__:
            continue
        names = {
            "fullname": f"pboost.models.{cls.__name__}",
            "module": "pboost.models",
            "objname": cls.__name__,
        }
        page = template.render(**names, **conf.autosummary_context)
        (line,) = (line for line in page.splitlines() if ":members:" in line)
        shown = set(line.partition(":members: ")[2].split(", "))
        assert FUNCTIONS <= shown <= set(public_names(cls))
    record = template.render(
        fullname="pboost.models.TreeEnsemble",
        module="pboost.models",
        objname="TreeEnsemble",
        **conf.autosummary_context,
    )
    assert "   :members:\n" in record
    (left_out,) = (line for line in record.splitlines() if "exclude" in line)
    assert "check_whole" in left_out
