"""The defaults of all builders, and their models: `python tests/api/defaults.py --write`.

Of each builder `defaults.json` has the settings of the model of ``fit_x(X, y)``, where defaults
that depend on the data or on other options are worked out, and a hash of that model, which is of
the machine that the fingerprint describes. The defaults in signatures are in tests/api.json.
"""

from __future__ import annotations

import inspect
import json
import sys
from functools import partial
from pathlib import Path

import pboost as pb

sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))
import digests
import fits
import hashes

RECORD = Path(__file__).with_name("defaults.json")
BUILDERS = sorted(name for name in pb.__all__ if name.startswith("fit_"))
#: Builders of other builders, with one; and builders of numbers, beside labels.
OF_BUILDERS = {
    "fit_bagging": (pb.fit_cart, pb.fit_boosted_tree),
    "fit_one_vs_rest": (pb.fit_adaboost, pb.fit_gradient_boosting),
}
OF_NUMBERS = (
    "fit_cart",
    "fit_random_forest",
    "fit_pruned_cart",
    "fit_gradient_boosting",
    "fit_within_budget",
)
#: What cannot be left out.
NEEDED = {"fit_within_budget": {"mean_comparisons": 10}}
OF_THREE = (
    "fit_cart",
    "fit_random_forest",
    "fit_one_vs_rest",
    "fit_probit_tree",
    "fit_pruned_cart",
    "fit_samme",
    "fit_sbpmt",
    "fit_gradient_boosting",
)


def calls():
    """Return the fits of the list, by how they would be written."""
    targets = {"two": fits.TWO, "three": fits.THREE, "numbers": fits.NUMBERS}
    actual = {}
    for name in BUILDERS:
        fit = getattr(pb, name)
        draws = {"rng": 0} if "rng" in inspect.signature(fit).parameters else {}
        for inner in OF_BUILDERS.get(name, (None,)):
            given = () if inner is None else (inner,)
            for target, y in targets.items():
                if target == "two" or name in (OF_THREE if target == "three" else OF_NUMBERS):
                    needed = NEEDED.get(name, {})
                    shown = (f"{option}={value}" for option, value in needed.items())
                    text = ", ".join([*(f.__name__ for f in given), "X", target, *shown])
                    actual[f"{name}({text})"] = partial(fit, *given, fits.X, y, **draws, **needed)
    actual["fit_matryoshka(X, two, join='all')"] = partial(
        pb.fit_matryoshka, fits.X, fits.TWO, join="all"
    )
    actual["fit_matryoshka(X, two, growth='greedy')"] = partial(
        pb.fit_matryoshka, fits.X, fits.TWO, growth="greedy"
    )
    return actual


def plain(value):
    """Return settings as a list can hold them."""
    return json.loads(json.dumps(value, default=lambda v: getattr(v, "tolist", lambda: repr(v))()))


def defaults():
    """Return what the list says of this version."""
    models = {name: fit() for name, fit in calls().items()}
    return {
        "fingerprint": hashes.fingerprint(),
        "settings": {name: plain(dict(m.settings)) for name, m in models.items()},
        "models": {name: digests.digest(m) for name, m in models.items()},
    }


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: defaults.py --write")
    RECORD.write_text(json.dumps(defaults(), indent=1, sort_keys=True) + "\n")
