"""The models of many small fits are, bit for bit, those of the lists of hashes."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

import pboost as pb

sys.path.insert(0, str(Path(__file__).parent))
import fits
import hashes

#: Options that do not choose the model.
LEFT_OUT = {
    "X",
    "y",
    "y_proba",
    "labels",
    "fit",
    "model",
    "n_threads",
    "callback",
    "progress",
    "options",
    "state",
}


@pytest.fixture(scope="module")
def found():
    return dict(hashes.hashes())


@pytest.mark.parametrize("path", [hashes.PORTABLE, hashes.SAME_MACHINE], ids=lambda p: p.stem)
def test_hashes(found, path):
    known = hashes.stored(path)
    here = hashes.platform_print() if path == hashes.PORTABLE else hashes.fingerprint()
    if known["fingerprint"] != here:
        pytest.skip(f"{path.name} was made where the last bits differ: {known['fingerprint']}")
    changed = {name for name, value in known["fits"].items() if found.get(name) != value}
    assert not changed, "see tests/golden/hashes.py"


def test_lists_name_every_fit(found):
    listed = hashes.stored(hashes.PORTABLE)["fits"] | hashes.stored(hashes.SAME_MACHINE)["fits"]
    assert listed.keys() == found.keys()
    assert len(listed) >= 130


def test_every_builder_is_fitted_with_every_option_explicit():
    builders = set()
    for name, fit in fits.all_fits().items():
        builders.add(fit.build.__name__)
        expected = inspect.signature(fit.build).parameters.keys() - LEFT_OUT
        if fit.build in (pb.fit_bagging, pb.fit_one_vs_rest):
            expected |= inspect.signature(fit.arguments[0]).parameters.keys() - LEFT_OUT
        elif fit.build is pb.fit_pruned_cart:
            expected |= inspect.signature(pb.fit_cart).parameters.keys() - LEFT_OUT
        assert expected == fit.options.keys() | ({"sample_weight"} & expected), name
    public = {name for name in pb.__all__ if name.startswith("fit_")}
    # What fit_within returns is made by other builders.
    assert builders == public - {"fit_one_hot", "fit_within"} | {"continue_fit"}


def test_a_changed_bit_is_another_hash():
    model = pb.fit_cart(fits.X, fits.TWO, max_depth=2)
    other = pb.fit_cart(fits.X, fits.TWO, max_depth=2, sample_weight=np.full(fits.N, 1 + 2**-52))
    assert hashes.digest(model) == hashes.digest(pb.fit_cart(fits.X, fits.TWO, max_depth=2))
    assert hashes.digest(model) != hashes.digest(other)
    bagged = [
        pb.fit_bagging(
            pb.fit_cart,
            fits.X,
            fits.TWO,
            members=2,
            rng=0,
            max_depth=depth,
            search="exact",
            max_bins=bins,
        )
        for depth, bins in ((2, 256), (3, 256), (2, 99))
    ]
    found = [hashes.digest(model) for model in bagged]
    assert found[0] != found[1]
    assert found[0] == found[2]  # options of members do not count


def test_differences_are_said():
    assert hashes.differences({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"}) == [
        "changed: b",
        "changed: c",
    ]
    assert hashes.differences({"a": "1", "d": "2"}, {"a": "1"}) == ["new: d"]
