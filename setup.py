"""Build of the Cython kernels; everything else is in pyproject.toml.

``PBOOST_DEBUG=1`` builds with bounds checks and the address and undefined-behaviour sanitizers.
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

DEBUG = os.environ.get("PBOOST_DEBUG", "0") == "1"

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "nonecheck": False,
    "cdivision": True,
    "freethreading_compatible": True,
    "embedsignature": True,
}

# No -ffast-math and no -march=native: NaN tests must hold and wheels must travel. Without
# -ffp-contract=off a SIMD variant of a loop fuses multiply-adds and its bits differ.
GNU_FLAGS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-g0"]
GNU_DEBUG_FLAGS = [
    "-O1",
    "-g",
    "-ffp-contract=off",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
]
MSVC_FLAGS = ["/O2", "/fp:precise"]


class BuildKernels(build_ext):
    """Choose compiler flags from the compiler that is really used."""

    def build_extensions(self):
        msvc = self.compiler.compiler_type == "msvc"
        flags = MSVC_FLAGS if msvc else GNU_DEBUG_FLAGS if DEBUG else GNU_FLAGS
        for extension in self.extensions:
            extension.extra_compile_args = flags
            if DEBUG and not msvc:
                extension.extra_link_args = ["-fsanitize=address,undefined"]
        super().build_extensions()


def kernels():
    """One extension per ``.pyx`` in ``pboost/_core``, and Cython's shared utilities once."""
    shared = "pboost._core._cyutility"
    extensions = [Extension(shared, sources=[])]
    for source in sorted(Path("pboost/_core").glob("*.pyx")):
        headers = [str(p) for p in sorted(Path("pboost/_core").glob("*.h"))]
        extensions.append(
            Extension(
                f"pboost._core.{source.stem}",
                [str(source)],
                depends=headers,
                include_dirs=["pboost/_core"],
            )
        )
    return cythonize(
        extensions,
        build_dir="build/cython",
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=shared,
    )


setup(ext_modules=kernels(), cmdclass={"build_ext": BuildKernels})
