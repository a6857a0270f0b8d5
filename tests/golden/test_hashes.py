"""The models of many small fits are, bit for bit, those of the lists of hashes."""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pboost as pb

sys.path.insert(0, str(Path(__file__).parent))
import digests
import fits
import hashes
import partition_fits

#: Options that do not choose the model, and those in place of `y`.
LEFT_OUT = {
    "X",
    "y",
    "y_proba",
    "classes",
    "fit",
    "model",
    "n_threads",
    "callback",
    "progress",
    "options",
    "state",
}
LISTED = hashes.stored(hashes.PORTABLE)["fits"] | hashes.stored(hashes.SAME_MACHINE)["fits"]


def changed(found, path):
    known = hashes.stored(path)
    here = hashes.platform_print() if path == hashes.PORTABLE else hashes.fingerprint()
    if known["fingerprint"] != here:
        pytest.skip(f"{path.name} was made where the last bits differ: {known['fingerprint']}")
    return {name for name, value in known["fits"].items() if found.get(name) != value}


@pytest.mark.quick
def test_portable_hashes_on_one_thread():
    actual = dict(hashes.hashes(hashes.stored(hashes.PORTABLE)["fits"], quick=True))
    assert not changed(actual, hashes.PORTABLE), "see tests/golden/hashes.py"


@pytest.fixture(scope="module")
def found():
    """Return all hashes; models that depend on threads or partitions fail here."""
    return dict(hashes.hashes())


@pytest.mark.full
@pytest.mark.parametrize("path", [hashes.PORTABLE, hashes.SAME_MACHINE], ids=lambda p: p.stem)
def test_hashes(found, path):
    assert not changed(found, path), "see tests/golden/hashes.py"


def test_lists_name_every_fit():
    assert {name.removesuffix(hashes.REDUCED) for name in LISTED} == hashes.every_fit().keys()
    assert len([name for name in LISTED if not name.endswith(hashes.REDUCED)]) >= 580


def test_every_builder_is_fitted_with_every_option_explicit():
    builders = set()
    for name, fit in hashes.every_fit().items():
        if not isinstance(fit, fits.Fit):
            continue
        builders.add(fit.build.__name__)
        expected = inspect.signature(fit.build).parameters.keys() - LEFT_OUT
        if fit.build in (pb.fit_bagging, pb.fit_one_vs_rest):
            expected |= inspect.signature(fit.arguments[0]).parameters.keys() - LEFT_OUT
        elif fit.build is pb.fit_pruned_cart:
            expected |= inspect.signature(pb.fit_cart).parameters.keys() - LEFT_OUT
        given = fit.options.keys() - LEFT_OUT | ({"sample_weight"} & expected)
        assert expected == given, name
    public = {name for name in pb.__all__ if name.startswith("fit_")}
    # What fit_within_budget returns is made by other builders.
    assert builders == public - {"fit_within_budget"} | {"continue_fit"}


def test_every_builder_is_fitted_to_partitions():
    every = partition_fits.partition_fits().values()
    assert {fit.builder for fit in every} == {
        "adaboost",
        "boosted_tree",
        "cart",
        "continue_fit",
        "forest",
        "matryoshka",
        "stagewise",
    }
    assert {len(divided) + 1 for divided in partition_fits.DIVIDED.values()} == {1, 2, 3, 5}


def test_a_changed_bit_is_another_hash():
    first, other = (
        pb.fit_cart(fits.X, fits.TWO, max_depth=2, sample_weight=np.full(len(fits.X), weight))
        for weight in (1, 1 + 2**-52)
    )
    again = pb.fit_cart(fits.X, fits.TWO, max_depth=2)
    assert digests.digest(first) == digests.digest(again) != digests.digest(other)
    bagged = [
        pb.fit_bagging(
            pb.fit_cart,
            fits.X,
            fits.TWO,
            n_estimators=2,
            rng=0,
            max_depth=depth,
            search="exact",
            max_bins=bins,
        )
        for depth, bins in ((2, 256), (3, 256), (2, 99))
    ]
    actual = [digests.digest(model) for model in bagged]
    assert actual[0] != actual[1]
    assert actual[0] == actual[2]  # options of members do not count


def test_a_digest_depends_neither_on_attributes_nor_on_sizes_of_numbers(monkeypatch):
    class Renamed:
        def __init__(self, path):
            self.bounds, self.ccp_alpha, self.n_leaves = (
                path.risk,
                path.ccp_alpha,
                path.n_leaves.astype(int),
            )

    path = pb.models.cost_complexity_pruning_path(pb.fit_cart(fits.X, fits.TWO, max_depth=3))
    monkeypatch.setitem(digests.RENAMED_KINDS, "Renamed", "PruningPath")
    expected = digests.digest(path)
    monkeypatch.setitem(digests.RENAMED, "risk", "bounds")
    assert digests.digest(Renamed(path)) == expected


def test_a_reduced_digest_leaves_out_what_numpy_rounds():
    model = pb.fit_adaboost(fits.X, fits.THREE, n_estimators=2)
    record = replace(model.record, certificate=model.record.certificate / 2)
    full, reduced = digests.digests(model)
    other, other_reduced = digests.digests(replace(model, record=record))
    assert full != other
    assert reduced == other_reduced
    assert digests.digests(replace(model, vote=model.vote / 2))[1] != reduced


def test_what_is_no_model_is_refused():
    with pytest.raises(KeyError, match="FitState"):
        digests.digest(pb.models.FitState())


def test_differences_are_said():
    assert hashes.differences({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"}) == [
        "changed: b",
        "changed: c",
    ]
    assert hashes.differences({"a": "1", "d": "2"}, {"a": "1"}) == ["new: d"]
