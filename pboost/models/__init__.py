"""What is fitted: arrays that are checked, evaluated, explained in words, saved and loaded."""

from importlib import import_module
from pkgutil import iter_modules

# All modules are loaded: `load` knows the models whose classes have a `file_kind`.
for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
