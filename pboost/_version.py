"""The version of pboost, and a report of the versions of related packages."""

from __future__ import annotations

__version__ = "0.1.0"

#: Distributions whose versions are printed: pboost, its dependencies, and optional packages.
PACKAGES = (
    "pboosting",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "polars",
    "pyarrow",
    "narwhals",
    "matplotlib",
    "onnx",
    "onnxruntime",
    "treelite",
    "shap",
)


def show_versions() -> None:
    """Print the versions of pboost, Python and related packages.

    Include this output in a bug report.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.show_versions()  # doctest: +ELLIPSIS
    pboost: ...
    """
    import platform
    import sys
    from importlib import metadata

    print(f"pboost: {__version__}")
    print(f"python: {platform.python_version()} ({sys.implementation.name})")
    print(f"machine: {platform.machine()}, {platform.system()}")
    for name in PACKAGES:
        try:
            print(f"{name}: {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            print(f"{name}: not installed")
