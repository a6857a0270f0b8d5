"""Load the public names of a package on first use."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str], modules: Sequence[str] = ()
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        The ``__name__`` of the package.
    homes : mapping of str to str
        Maps each module that defines public names to these names, separated by spaces.
    modules : sequence of str, optional
        Public sub-modules, which are loaded on first use as well.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}
    every = sorted([*home_of, *modules])

    def get(name: str) -> Any:
        if name in home_of:
            value = getattr(import_module(home_of[name]), name)
        elif name in modules:
            value = import_module(f"{package}.{name}")
        else:
            hint = _hint(package, name, modules)
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        setattr(import_module(package), name, value)
        return value

    return every, get, lambda: list(every)


def _hint(package: str, name: str, modules: Sequence[str]) -> str:
    """Return a hint for a name that a sub-module has, or ""."""
    if name.startswith("_") or not modules:
        return ""
    if name.endswith(("Classifier", "Regressor")):
        return f"; the estimators are in {package}.sklearn"
    homes = [f"{package}.{home}" for home in modules]
    owner = next((h for h in homes if name in getattr(import_module(h), "__all__", ())), "")
    return f"; use {owner}.{name}" if owner else ""
