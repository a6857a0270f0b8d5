"""All models of `ordered` and all functions: ``python tests/fuzz/ordered_categories.py``.

It takes some minutes, and prints every function that gives one answer for an ordered category and
another for its rank numbers. ``tests/models/test_ordered_categories.py`` runs a part of it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).parent.resolve()]
sys.path.insert(0, str(Path(__file__).parents[1]))

import ordered  # noqa: E402


def main() -> int:
    """Return the number of differences."""
    import matplotlib

    matplotlib.use("Agg")
    n_calls = n_found = 0
    for layout in ordered.LAYOUTS:
        X = ordered.frames(layout)
        for name, (fit, target) in ordered.FITS.items():
            y = ordered.TARGETS[target]
            plain = {"plain": lambda X, fit=fit, y=y: fit(X, y)}
            for how, make in {**plain, **ordered.wrapped(name)}.items():
                calls, actual = ordered.differences(make, X, y, list(ordered.FUNCTIONS))
                n_calls += calls
                n_found += len(actual)
                for function in actual:
                    print(f"{layout}: {name}, {how}: {function}", flush=True)
    print(f"{n_calls} calls, {n_found} differences")
    return n_found


if __name__ == "__main__":
    raise SystemExit(min(main(), 1))
