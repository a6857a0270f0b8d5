"""Compiled kernels. They do not import any other module of pboost."""

from importlib.util import find_spec
from pathlib import Path

# If Python is started in a clone, it imports this source folder even if pboost is installed.
if find_spec("pboost._core.voting") is None:
    raise ImportError(
        "pboost: expected a compiled package, got the source code; "
        f"run pip install -e . in {Path(__file__).parents[2]}, "
        "or start Python in another directory"
    )
