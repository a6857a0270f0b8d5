"""The public interface, written to tests/api.json by `python tests/api/public_names.py --write`.

For each public name it has the signature with the defaults, the values of string parameters, and
the attributes. `api_released.json` has the names alone, as they were released:
`python tests/api/public_names.py --release`.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pboost as pb
from pboost.models.base import Model
from pboost.models.base import public_names as model_names

RECORD = Path(__file__).parents[1] / "api.json"
RELEASED = RECORD.with_name("api_released.json")
SPACES = {
    "pb": pb,
    "pb.acquisition": pb.acquisition,
    "pb.bounds": pb.bounds,
    "pb.dask": pb.dask,
    "pb.data": pb.data,
    "pb.datasets": pb.datasets,
    "pb.export": pb.export,
    "pb.inspection": pb.inspection,
    "pb.losses": pb.losses,
    "pb.models": pb.models,
    "pb.observation": pb.observation,
    "pb.plot": pb.plot,
    "pb.weak": pb.weak,
}
try:
    import pboost.sklearn
except ImportError:  # its names are then not compared
    pass
else:
    SPACES["pb.sklearn"] = pboost.sklearn

#: Classes whose attributes are in their docstrings.
ESTIMATORS = [pboost.sklearn.base.Estimator] if "pb.sklearn" in SPACES else []

#: What is for the package alone, of records and choices.
UNRECORDED = {"file_kind", "file_optional", "file_prefix", "from_parts", "parts", "takes"}


def call(value):
    """Return the parameters of what is called: names, kinds, defaults; annotations left out."""
    actual = inspect.signature(value)
    parameters = [p.replace(annotation=p.empty) for p in actual.parameters.values()]
    return str(actual.replace(parameters=parameters, return_annotation=actual.empty))


def choices(hint):
    """Return the strings that a type lists."""
    if get_origin(hint) is Literal:
        return {value for value in get_args(hint) if isinstance(value, str)}
    return set().union(*map(choices, get_args(hint))) if get_args(hint) else set()


def hints_of(function):
    """Return the types of the parameters of a function; none where matplotlib has them."""
    try:
        return get_type_hints(function)
    except NameError as error:
        if "Axes" in str(error):
            return {}
        raise


def attributes_of(estimator):
    """Return the attributes in the docstring of an estimator."""
    section = (estimator.__doc__ or "").partition("Attributes\n----------\n")[2]
    return set(re.findall(r"^(\w+_) :", section.partition("\n\n")[0], re.M))


def methods_of(estimator):
    """Return the public methods of an estimator that are defined in this package."""
    bases = [base for base in estimator.__mro__ if base.__module__.startswith("pboost.")]
    found = {name: value for base in bases for name, value in vars(base).items()}
    # Those that not all fitted estimators have are descriptors with a function.
    is_method = {n: inspect.isfunction(v) or hasattr(v, "fn") for n, v in found.items()}
    return {name for name in found if is_method[name] and not name.startswith("_")}


def values(function):
    """Return the values of the string parameters of a function, by their names."""
    found = {name: sorted(choices(hint)) for name, hint in hints_of(function).items()}
    return {name: listed for name, listed in found.items() if listed and name != "return"}


def described(value):
    """Return what a name stands for: a call, a class with its public attributes, or a type."""
    if inspect.isclass(value):
        names = {n for n in dir(value) if not n.startswith("_") and not hasattr(tuple, n)}
        names = {*model_names(value)} if issubclass(value, Model) else names - UNRECORDED
        if issubclass(value, BaseException):
            return {"bases": [base.__name__ for base in value.__bases__]}
        if is_estimator := issubclass(value, tuple(ESTIMATORS)):
            names = methods_of(value) | attributes_of(value)
        methods = {n: getattr(value, n, "") for n in sorted(names)}
        return {
            "call": call(value),
            "values": values(value.__init__) if is_estimator else {},
            "attributes": {n: call(m) if inspect.isfunction(m) else "" for n, m in methods.items()},
        }
    if inspect.ismodule(value):
        return "module"
    if inspect.isfunction(value):
        return {"call": call(value), "values": values(value)}
    return call(value) if callable(value) else type(value).__name__


def public_names():
    """Return what each public name stands for, by its name as users write it."""
    return {
        f"{space}.{name}": described(getattr(module, name))
        for space, module in SPACES.items()
        for name in sorted(module.__all__)
    }


def parameters(signature):
    """Return the names of parameters in a recorded signature."""
    tree = ast.parse(f"def f{signature.replace('<factory>', 'None')}: pass").body[0].args
    every = (*tree.posonlyargs, *tree.args, *tree.kwonlyargs)
    return [one.arg for one in every if one.arg != "self"]


def words(found):
    """Return, for each public name, the parameters and attributes that users write, in one text."""
    return {
        name: " ".join(sorted({*parameters(value.get("call", "()")), *value.get("attributes", ())}))
        if isinstance(value, dict)
        else ""
        for name, value in found.items()
    }


def changed(released, now):
    """Return the names that were added or removed since a release, as users write them."""
    found = {name.rpartition(".")[2] for name in released.keys() ^ now.keys()}
    both = released.keys() & now.keys()
    return found.union(*({*released[name].split()} ^ {*now[name].split()} for name in both))


def dumped(value):
    return json.dumps(value, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        RECORD.write_text(dumped(public_names()))
    elif sys.argv[1:] == ["--release"]:
        RELEASED.write_text(dumped(words(json.loads(RECORD.read_text()))))
    else:
        sys.exit("usage: public_names.py --write | --release")
