"""Columns that were pickled as the mere list of their fields, without what is counted since.

They were taken without a check, could be written, and binned ones ended in an AttributeError.
"""

import numpy as np
import pytest

import pboost as pb

X = np.random.default_rng(0).normal(size=(60, 3))
Y = X[:, 0] + X[:, 1] > 0


def of_state(kind, state):
    columns = object.__new__(kind)
    columns.__setstate__(state)
    return columns


def state_of(columns):
    if isinstance(columns, pb.BinnedColumns):
        wide = [np.pad(a, ((0, 0), (0, 256 - a.shape[1]))) for a in (columns.lower, columns.upper)]
        return [columns.codes.copy(), columns.n_bins.copy(), *wide, None]
    names = ["source", "rows", "packed_order", "bin_start", "n_bins", "codes"]
    return [getattr(columns, name).copy() for name in names] + [None]


@pytest.mark.parametrize("made", [pb.sort_columns(X), pb.bin_columns(X, max_bins=16)])
def test_they_are_like_others(made):
    old = of_state(type(made), state_of(made))
    for fit in (pb.fit_adaboost, pb.fit_boosted_tree):
        size = {"rounds": 5} if fit is pb.fit_adaboost else {"nodes": 5}
        models = [fit(columns, Y, **size) for columns in (made, old)]
        assert models[0].vote.tobytes() == models[1].vote.tobytes()
    with pytest.raises(ValueError, match="read-only"):
        old.codes[0, 0] = 1
    assert repr(old)


@pytest.mark.parametrize("made", [pb.sort_columns(X), pb.bin_columns(X, max_bins=16)])
def test_they_are_checked(made):
    state = state_of(made)
    codes = state[0] if isinstance(made, pb.BinnedColumns) else state[5]
    codes[0, 0] = 255
    with pytest.raises(ValueError, match="codes"):
        of_state(type(made), state)
