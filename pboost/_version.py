"""The version of the package, the one place that states it, and those of what it works with."""

from __future__ import annotations

__version__ = "0.1.0"

#: The distribution that was installed, what it is built on, then what it can work with.
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
    """Print the versions of pboost, of Python and of the packages that it works with.

    A report of a defect is to begin with this.

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
