"""Count the modules that a call enters, and the calls between modules.

    python docs/dev/crossings.py             print the counts of three small calls
    python docs/dev/crossings.py --list      also list each pair of modules with its count

Calls of Python functions of the package are counted with `sys.setprofile`. Calls of compiled
kernels and of other packages are not: a callback from them counts as a call by the Python function
above it.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np

import pboost as pb

PACKAGE = Path(pb.__file__).parent


def crossings(call):
    """Return the modules that `call()` enters, and the number of calls between each pair."""
    modules = set()
    pairs = Counter()
    stack = []

    def module_of(frame):
        path = Path(frame.f_code.co_filename)
        return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else None

    def profile(frame, event, _):
        if event == "call":
            module = module_of(frame)
            above = next((name for name in reversed(stack) if name is not None), "the user")
            stack.append(module)
            if module is not None:
                modules.add(module)
                if module != above:
                    pairs[above, module] += 1
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return modules, pairs


def cases():
    """Return the calls to count, by name."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(200) > 0, 1, -1)
    model = pb.fit_adaboost(X, y, n_estimators=10)
    return {
        "fit_adaboost(X, y)": lambda: pb.fit_adaboost(X, y, n_estimators=10),
        "predict(model, X)": lambda: pb.predict(model, X),
        "continue_fit(model, X, y)": lambda: pb.continue_fit(model, X, y, n_estimators=5),
    }


def main():
    for name, call in cases().items():
        call()  # imports and caches of the first call are not counted
        modules, pairs = crossings(call)
        print(f"{name}: {len(modules)} modules, {sum(pairs.values())} crossings")
        if sys.argv[1:] == ["--list"]:
            for (above, module), count in sorted(pairs.items(), key=lambda it: -it[1]):
                print(f"    {count:4d}  {above} -> {module}")


if __name__ == "__main__":
    main()
