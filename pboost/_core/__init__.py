"""Compiled kernels. They do not import any other module of pboost."""

from importlib.util import find_spec
from pathlib import Path

# Python started in a clone imports the source there first, even if pboost is installed.
if find_spec("pboost._core.voting") is None:
    raise ImportError(
        f"this is pboost's source, not compiled: pip install -e . in {Path(__file__).parents[2]}, "
        "or start Python in another directory"
    )
