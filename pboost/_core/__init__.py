"""Compiled kernels. They know nothing of the modules above them."""

from importlib.util import find_spec
from pathlib import Path

# Python that is started in a clone finds the source there first, whatever is installed.
if find_spec("pboost._core.voting") is None:
    raise ImportError(
        f"this is pboost's source, not compiled: pip install -e . in {Path(__file__).parents[2]}, "
        "or start Python in another directory"
    )
