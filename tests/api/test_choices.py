"""Values of string options: the annotation, the check and the docstring list the same."""

from __future__ import annotations

import importlib.util
import inspect
import re
from functools import partial
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest

import pboost as pb
from pboost.data.targets import CRITERIA, IMPURITIES
from pboost.losses import LOSSES, LossName
from pboost.values.options import parameters_in

spec = importlib.util.spec_from_file_location(
    "public_names", Path(__file__).with_name("public_names.py")
)
names = importlib.util.module_from_spec(spec)
spec.loader.exec_module(names)
choices, hints_of = names.choices, names.hints_of

try:
    import pboost.sklearn as estimators
except ImportError:
    estimators = None

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
TWO, NUMBERS = X[:, 0] > 0, X[:, 0]
TREE = pb.fit_cart(X, TWO)
GRAPH = pb.fit_boosted_tree(X, TWO, max_nodes=2)
PROBABILITY = np.linspace(0.1, 0.9, 40)
ORACLES = {"one": lambda: True}
WRONG = "no such value"
#: Arguments that are no choices but text of the user.
TEXT = {
    ("export.to_c", "prefix"),
    ("losses.compiled", "name"),
}


def functions():
    """Return the public functions that users call, by their names."""
    spaces = {
        "": pb,
        "acquisition.": pb.acquisition,
        "data.": pb.data,
        "export.": pb.export,
        "inspection.": pb.inspection,
        "models.": pb.models,
        "plot.": pb.plot,
        "bounds.": pb.bounds,
        "datasets.": pb.datasets,
        "losses.": pb.losses,
        "observation.": pb.observation,
        "weak.": pb.weak,
        "dask.": pb.dask,
    }
    found = {}
    for prefix, space in spaces.items():
        for name in space.__all__:
            value = getattr(space, name)
            if inspect.isfunction(value):
                found[prefix + name] = value
    found["data.OneHot.transform"] = pb.data.OneHot.transform
    return found


FUNCTIONS = functions()


def listed(kind, words):
    """Return the strings that a docstring lists: in the type, or else in the description."""
    return set(re.findall(r'"([^"]*)"', kind)) or set(re.findall(r'"([^" ]+)"', words))


#: By names of functions or prefixes of them, the calls that are made with a value that is none.
CALLS = {
    "data.OneHot.transform": [partial(pb.data.fit_one_hot([["a"], ["b"]]).transform, [["a"]])],
    "acquisition.query_annotators": [
        partial(pb.acquisition.query_annotators, ORACLES, {"one": 0.1}, classes=[0, 1], budget=1)
    ],
    "acquisition.annotation_session": [
        partial(pb.acquisition.annotation_session, {"one": 0.1}, classes=[0, 1], budget=1)
    ],
    "data.bin_columns": [partial(pb.data.bin_columns, X)],
    "calibrate": [partial(pb.calibrate, GRAPH, X, TWO)],
    "continue_fit": [partial(pb.continue_fit, GRAPH, X, y=TWO, max_nodes=1)],
    "cross_validate": [partial(pb.cross_validate, pb.fit_cart, X, TWO)],
    "acquisition.predict_with_acquisition": [
        partial(pb.acquisition.predict_with_acquisition, GRAPH, lambda *_: 0.0)
    ],
    "acquisition.acquisition_session": [partial(pb.acquisition.acquisition_session, GRAPH)],
    "decision_function": [partial(pb.decision_function, GRAPH, X)],
    "distill": [partial(pb.distill, TREE, X)],
    "prediction_cost": [partial(pb.prediction_cost, GRAPH, X)],
    "export.to_c": [partial(pb.export.to_c, GRAPH, "no.c")],
    "feature_importances": [partial(pb.feature_importances, TREE)],
    "fit_real_adaboost": [partial(pb.fit_real_adaboost, X, TWO)],
    "fit_bagging": [partial(pb.fit_bagging, pb.fit_cart, X, TWO)],
    "fit_within_budget": [partial(pb.fit_within_budget, X, TWO, mean_comparisons=3)],
    "prediction_sets": [partial(pb.prediction_sets, GRAPH, X, TWO)],
    "inspection.logistic_margin_curve": [partial(pb.inspection.logistic_margin_curve, [0.1], 0.5)],
    "inspection.margin_bound": [partial(pb.inspection.margin_bound, GRAPH, X, TWO, 0.1)],
    "inspection.margin_curve": [partial(pb.inspection.margin_curve, GRAPH, X, TWO, [0.1])],
    "inspection.margin_error": [partial(pb.inspection.margin_error, GRAPH, X, TWO, 0.1)],
    "inspection.margins": [partial(pb.inspection.margins, GRAPH, X, TWO)],
    "partitions": [partial(pb.partitions, [X], [TWO])],
    "predict_proba": [partial(pb.predict_proba, GRAPH, X)],
    "prune": [partial(pb.prune, TREE, 0.1)],
    "row_predictor": [partial(pb.row_predictor, TREE)],
    "models.cost_complexity_pruning_path": [
        partial(pb.models.cost_complexity_pruning_path, TREE, X, TWO)
    ],
    "risk_threshold": [partial(pb.risk_threshold, GRAPH, X, TWO, max_risk=0.1)],
    "shap_values": [partial(pb.shap_values, TREE, X)],
    "search_space": [partial(pb.search_space, model="random_forest", n_rows=10)],
    "datasets.monks": [partial(pb.datasets.monks, 1)],
    "losses.compiled": [partial(pb.losses.compiled, 1)],
    "losses.from_gradients": [partial(pb.losses.from_gradients, len)],
}
for name in FUNCTIONS:
    if name.startswith("fit_"):
        fits = [partial(FUNCTIONS[name], X, TWO), partial(FUNCTIONS[name], X, NUMBERS)]
        CALLS.setdefault(name, fits if "task" in get_type_hints(FUNCTIONS[name]) else fits[:1])
    elif name.startswith(("weak.", "observation.")):
        CALLS.setdefault(name, [FUNCTIONS[name]])
#: Those whose calls need a folder or a cluster.
ELSEWHERE = {"data.bin_files", "dask.rows"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring_and_annotation_list_the_same(name):
    function = FUNCTIONS[name]
    hints, described = hints_of(function), parameters_in(function.__doc__)
    for parameter, (kind, words) in described.items():
        if parameter not in hints:
            continue
        found = choices(hints[parameter])
        if (found and words) or ("{" in kind and '"' in kind):
            assert listed(kind, words) == found, parameter


@pytest.mark.parametrize("name", FUNCTIONS)
def test_defaults_are_among_the_choices(name):
    function = FUNCTIONS[name]
    hints = hints_of(function)
    for parameter in inspect.signature(function).parameters.values():
        if isinstance(parameter.default, str) and (name, parameter.name) not in TEXT:
            assert parameter.default in choices(hints[parameter.name]), parameter.name


def refused(call, parameter):
    """Return the values that an error lists for a value that is none of them."""
    with pytest.raises(ValueError, match=rf"^{parameter}: expected") as caught:
        call(**{parameter: WRONG})
    said = str(caught.value).partition(", got ")[0]
    return set(re.findall(r"'([^']*)'", said)) | set(re.findall(r'"([^"]*)"', said))


CHECKED = [
    (name, parameter)
    for name, function in FUNCTIONS.items()
    if name not in ELSEWHERE
    for parameter, hint in hints_of(function).items()
    if parameter != "return" and choices(hint)
]


@pytest.mark.parametrize(("name", "parameter"), CHECKED)
def test_other_values_are_refused(name, parameter):
    said = set().union(*(refused(call, parameter) for call in CALLS[name]))
    assert said == choices(hints_of(FUNCTIONS[name])[parameter])


def test_choices_are_found():
    assert len(CHECKED) > 60
    assert set(CALLS) <= set(FUNCTIONS)


def test_lists_that_are_kept_twice_are_equal():
    assert choices(LossName) == LOSSES.keys() - {"quantile"}  # requires a level
    assert tuple(IMPURITIES) == CRITERIA


def options_of_estimators():
    if estimators is None:
        return
    for name in estimators.__all__:
        kind = getattr(estimators, name)
        if isinstance(kind, type):
            for parameter, hint in get_type_hints(kind.__init__).items():
                if found := choices(hint):
                    yield name, parameter, found


@pytest.mark.parametrize(("name", "parameter", "found"), [*options_of_estimators()])
def test_estimators(name, parameter, found):
    kind = getattr(estimators, name)
    described = parameters_in(kind.__doc__)
    kind_of, words = described[parameter]
    if words:
        assert listed(kind_of, words) == found
    default = inspect.signature(kind).parameters[parameter].default
    assert not isinstance(default, str) or default in found
    y = TWO if name.endswith("Classifier") else NUMBERS
    said = refused(lambda **given: kind(**given).fit(X, y), parameter)
    assert said <= found
    assert said == found or parameter == "criterion"
