"""Times of the C loops in ``floor.c``, which are lower bounds for this machine."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from asv_bench.peers.measure import run

SOURCE = Path(__file__).with_name("floor.c")
#: Function, its name in the tables, and the search for which it is the lower bound.
KERNELS = {
    "histogram_pairs": ("C loop: histogram of two float64 sums", "binned"),
    "histogram_int64": ("C loop: histogram of one int64 sum", "binned"),
    "presorted_scan": ("C loop: scan of the sorted order", "exact"),
}
N_BINS = 256


def compiler() -> str | None:
    """Return the C compiler, or None."""
    return shutil.which(os.environ.get("CC", "cc"))


def measure(n: int, d: int, repeats: int) -> dict[str, float]:
    """Return the minimum CPU time of each loop, in ns per cell."""
    random = np.random.default_rng(0)
    orders = np.stack([random.permutation(n) for _ in range(d)]).astype(np.int32)
    codes = np.empty((d, n), dtype=np.uint8)
    for order, code in zip(orders, codes, strict=True):
        code[order] = np.arange(n) * N_BINS // n
    mass = random.exponential(size=n)
    signed = mass * random.choice([-1.0, 1.0], n)
    arguments = {
        "histogram_pairs": (codes, np.column_stack([mass, signed])),
        "histogram_int64": (codes, (mass * 2**40).astype(np.int64)),
        "presorted_scan": (orders, signed),
    }
    library = _compiled()
    result = {}
    for name, arrays in arguments.items():
        function = getattr(library, name)
        function.restype = ctypes.c_double
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        inner = max(1, 2_000_000 // (n * d))

        def loop(function=function, pointers=pointers, inner=inner):
            for _ in range(inner):
                function(ctypes.c_int64(n), ctypes.c_int64(d), *pointers)

        loop()
        best = min(run(loop)[0].cpu for _ in range(repeats))
        result[name] = best / (inner * n * d) * 1e9
    return result


def _compiled() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "floor.so"
        subprocess.run(
            [compiler(), "-O3", "-march=native", "-shared", "-fPIC", str(SOURCE), "-o", str(path)],
            check=True,
        )
        return ctypes.CDLL(str(path))
