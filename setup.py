"""Build of the Cython kernels; everything else is in pyproject.toml.

``PBOOST_DEBUG=1`` builds with bounds checks and the address and undefined-behaviour sanitizers,
``PBOOST_DEBUG=thread`` with bounds checks and the thread sanitizer. See docs/dev/contributing.rst.

Kernels are compiled against the limited API of CPython, so that one wheel serves all versions from
the oldest that is supported on. Free-threaded interpreters have none.
"""

import os
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SANITIZERS = {
    "0": "",
    # A cast of a double that its integer type cannot hold is undefined, too, but has its own name.
    "1": "address,undefined,float-cast-overflow",
    "thread": "thread",
}
debug = os.environ.get("PBOOST_DEBUG", "") or "0"
if debug not in SANITIZERS:
    raise SystemExit(f"PBOOST_DEBUG is one of {', '.join(SANITIZERS)}, got {debug!r}")
SANITIZE = SANITIZERS[debug]
DEBUG = bool(SANITIZE)
#: The oldest CPython of `requires-python`, as its headers and as the tag of wheels say it.
LIMITED_API, TAG = "0x030B0000", "cp311"
#: Where Cython's utilities are, memoryviews above all.
SHARED = "pboost._core._cyutility"
CORES = len(getattr(os, "sched_getaffinity", lambda _: ())(0)) or os.cpu_count() or 1
IS_LIMITED = not sysconfig.get_config_var("Py_GIL_DISABLED")

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
# A finding ends the process: a line in the middle of a passed test would not be read. Line tables
# are all that a report needs of -g.
GNU_DEBUG_FLAGS = [
    "-O1",
    "-g1",
    "-ffp-contract=off",
    "-fno-omit-frame-pointer",
    f"-fsanitize={SANITIZE}",
    "-fno-sanitize-recover=all",
]
MSVC_FLAGS = ["/O2", "/fp:precise"]
# Wheels for Linux carry neither symbols nor tables for unwinding: no exception crosses C, and
# Python needs neither. Elsewhere linkers leave them out, or name their options differently.
SMALL_FLAGS = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
SMALL_LINK_FLAGS = ["-Wl,--strip-all"]


class BuildKernels(build_ext):
    """Choose compiler flags from the compiler that is really used, and compile on all cores."""

    def finalize_options(self):
        super().finalize_options()
        if self.parallel is None:
            self.parallel = CORES

    def build_extensions(self):
        msvc = self.compiler.compiler_type == "msvc"
        flags = MSVC_FLAGS if msvc else GNU_DEBUG_FLAGS if DEBUG else GNU_FLAGS
        small = self.plat_name.startswith("linux") and not DEBUG
        for extension in self.extensions:
            extension.extra_compile_args = flags + SMALL_FLAGS if small else flags
            if extension.name == SHARED and flags is GNU_FLAGS:  # no loop of ours: half the time
                extension.extra_compile_args = [*extension.extra_compile_args, "-O1"]
            if small:
                extension.extra_link_args = SMALL_LINK_FLAGS
            if DEBUG and not msvc:
                extension.extra_link_args = [f"-fsanitize={SANITIZE}"]
        super().build_extensions()

    def copy_extensions_to_source(self):
        """Leave no kernel of another name in place: it would be found first."""
        super().copy_extensions_to_source()
        for extension in self.extensions:
            built = Path(self.get_ext_filename(extension.name))
            for other in built.parent.glob(f"{built.name.split('.')[0]}.*"):
                if other.suffix in (".so", ".pyd") and other.name != built.name:
                    other.unlink()


def kernels(build_dir="build/cython", force=None):
    """One extension per ``.pyx`` in ``pboost/_core``, and Cython's shared utilities once."""
    limited = {
        "define_macros": [("Py_LIMITED_API", LIMITED_API)] if IS_LIMITED else [],
        "py_limited_api": IS_LIMITED,
    }
    extensions = [Extension(SHARED, sources=[], **limited)]
    for source in sorted(Path("pboost/_core").glob("*.pyx")):
        headers = [str(p) for p in sorted(Path("pboost/_core").glob("*.h"))]
        extensions.append(
            Extension(
                f"pboost._core.{source.stem}",
                [str(source)],
                depends=headers,
                include_dirs=["pboost/_core"],
                **limited,
            )
        )
    return cythonize(
        extensions,
        build_dir=build_dir,
        force=force,
        nthreads=CORES,
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=SHARED,
    )


if __name__ == "__main__":  # processes that translate other kernels may import this file
    setup(
        ext_modules=kernels(),
        cmdclass={"build_ext": BuildKernels},
        options={"bdist_wheel": {"py_limited_api": TAG}} if IS_LIMITED else {},
    )
