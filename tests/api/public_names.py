"""The public names and what they are called with: `python tests/api/public_names.py --write`."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path

import pboost as pb
from pboost.models.base import Model
from pboost.models.base import public_names as model_names

RECORD = Path(__file__).with_name("public_names.json")
SPACES = {
    "pb": pb,
    "pb.bounds": pb.bounds,
    "pb.datasets": pb.datasets,
    "pb.generic": pb.generic,
    "pb.losses": pb.losses,
    "pb.observation": pb.observation,
    "pb.weak": pb.weak,
}

#: What is for the package alone, of records and choices.
UNRECORDED = {"file_kind", "file_optional", "file_prefix", "from_parts", "parts", "takes"}


def call(value):
    """Return the parameters of what is called: names, kinds, defaults; annotations left out."""
    actual = inspect.signature(value)
    parameters = [p.replace(annotation=p.empty) for p in actual.parameters.values()]
    return str(actual.replace(parameters=parameters, return_annotation=actual.empty))


def described(value):
    """Return what a name stands for: a call, a class with its public attributes, or a type."""
    if inspect.isclass(value):
        names = {n for n in dir(value) if not n.startswith("_") and not hasattr(tuple, n)}
        names = {*model_names(value)} if issubclass(value, Model) else names - UNRECORDED
        if issubclass(value, BaseException):
            return {"bases": [base.__name__ for base in value.__bases__]}
        methods = {n: getattr(value, n) for n in sorted(names)}
        return {
            "call": call(value),
            "attributes": {n: call(m) if inspect.isfunction(m) else "" for n, m in methods.items()},
        }
    if inspect.ismodule(value):
        return "module"
    return call(value) if callable(value) else type(value).__name__


def public_names():
    """Return what each public name stands for, by its name as users write it."""
    return {
        f"{space}.{name}": described(getattr(module, name))
        for space, module in SPACES.items()
        for name in sorted(module.__all__)
    }


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: public_names.py --write")
    RECORD.write_text(json.dumps(public_names(), indent=1, sort_keys=True) + "\n")
