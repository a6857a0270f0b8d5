"""Columns that were changed, or made by hand.

The arrays of `SortedColumns` and `BinnedColumns` could be written and were never checked: an order
that names a row that is not there was a segmentation fault. They cannot be written any more, and
what does not come from this package is checked when it is made.
"""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields, replace

import numpy as np
import pytest

import pboost as pb
from pboost.data.columns.columns import ARRAYS, SortedColumns

RNG = np.random.default_rng(7)
X = np.column_stack([RNG.normal(size=300), RNG.integers(0, 5, 300), RNG.normal(size=300)])
Y = (X[:, 0] + X[:, 1] > 2).astype(int)
SORTED, BINNED = pb.data.sort_columns(X), pb.data.bin_columns(X)
EITHER = pytest.mark.parametrize("columns", [SORTED, BINNED], ids=["sorted", "binned"])


def arrays_of(columns):
    names = [part.name for part in fields(columns) if part.init and part.name in ARRAYS]
    actual = {name: getattr(columns, name) for name in names}
    return {name: array for name, array in actual.items() if array is not None}


def assert_immutable(columns):
    for array in arrays_of(columns).values():
        for view in (array, array.view(), array[:1]):
            with pytest.raises(ValueError, match="read-only"):
                view[...] = 0
            with pytest.raises(ValueError, match="WRITEABLE"):
                view.setflags(write=True)


def assert_same(a, b):
    for name, array in arrays_of(a).items():
        assert np.array_equal(array, getattr(b, name)), name
    model, other = (pb.fit_boosted_tree(columns, Y, max_nodes=8) for columns in (a, b))
    assert model.vote.tobytes() == other.vote.tobytes()


def by_hand(columns, **changes):
    """The same columns, made of copies that the caller may change."""
    options = {f.name: getattr(columns, f.name) for f in fields(columns) if f.init}
    options |= {name: array.copy() for name, array in arrays_of(columns).items()}
    return type(columns)(**(options | changes))


@EITHER
def test_arrays_cannot_be_written(columns):
    assert_immutable(columns)
    rows = np.arange(0, 300, 2, dtype=np.int32)
    few = columns.select(rows, 256) if columns is SORTED else columns.select(rows)
    assert_immutable(few)
    with pytest.raises(AttributeError):
        columns.codes = np.zeros((3, 300), np.uint8)


@EITHER
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_and_copies(columns, protocol):
    for other in (
        pickle.loads(pickle.dumps(columns, protocol)),
        copy.copy(columns),
        copy.deepcopy(columns),
        replace(columns, names=("a", "b", "c")),
        by_hand(columns),
    ):
        assert_immutable(other)
        assert_same(columns, other)


@EITHER
def test_arrays_of_the_caller_are_copied_unless_nothing_can_change_them(columns):
    options = {f.name: getattr(columns, f.name) for f in fields(columns) if f.init}
    same = type(columns)(**options)
    assert all(getattr(same, name) is array for name, array in arrays_of(columns).items())
    codes = columns.codes.copy()
    other = replace(columns, codes=codes)
    codes[:] = 255
    assert np.array_equal(other.codes, columns.codes)
    # A view that is not writeable, of an array that is, or can be made so again.
    codes = columns.codes.copy()
    for owner_writes in (True, False):
        codes.setflags(write=owner_writes)
        view = codes.view()
        view.setflags(write=False)
        assert not np.shares_memory(replace(columns, codes=view).codes, codes)


def test_files_mapped_to_be_read_are_not_copied(tmp_path):
    path = tmp_path / "codes.bin"
    BINNED.codes.tofile(path)
    mapped = np.memmap(path, np.uint8, "r", shape=BINNED.codes.shape)
    columns = replace(BINNED, codes=mapped)
    assert np.shares_memory(columns.codes, mapped)
    assert_immutable(columns)
    assert_same(BINNED, columns)
    X.tofile(tmp_path / "X.bin")
    source = np.memmap(tmp_path / "X.bin", np.float64, "r", shape=X.shape)
    columns = pb.data.sort_columns(source, copy=False)
    assert np.shares_memory(columns.source, source)
    assert_same(SORTED, columns)
    assert_same(columns, pickle.loads(pickle.dumps(columns)))


def changed(name, place, value, columns=SORTED):
    array = getattr(columns, name).copy()
    array[place] = value
    return {name: array}


def swapped(name, first, second, columns=SORTED):
    array = getattr(columns, name).copy()
    array[..., [first, second]] = array[..., [second, first]]
    return {name: array}


SORTED_WRONG = {
    "row-out-of-range": (changed("packed_order", (0, 5), 2**30), "each row once"),
    "row-twice": (changed("packed_order", (0, 5), SORTED.order(0)[6]), "each row once"),
    "first-tied": (
        changed("packed_order", (0, 0), SORTED.packed_order[0, 0] | np.int32(-(2**31))),
        "rows sorted by value|bins that cover",
    ),
    "tie-not-marked": (
        {"packed_order": SORTED.packed_order & np.int32(2**31 - 1)},
        "sign bit",
    ),
    "not-sorted": (swapped("packed_order", 0, 299), "rows sorted by value"),
    "codes": (changed("codes", (0, 0), SORTED.codes[0, 0] ^ 1), "codes: expected the bin of"),
    "no-bins": (changed("n_bins", 0, 0), "n_bins: expected bins"),
    "many-bins": (changed("n_bins", 0, 257), "n_bins: expected bins"),
    "bin-edges": (changed("bin_start", (0, 3), 2**31 - 1), "bin_start"),
    "bins-decrease": (swapped("bin_start", 1, 2), "bin_start"),
    "bins-begin-later": (changed("bin_start", (0, 0), 1), "bin_start"),
    "rows-beyond": (changed("rows", 0, 300), "rows of the source"),
    "rows-negative": (changed("rows", 0, -1), "rows of the source"),
    "dtype": ({"packed_order": SORTED.packed_order.astype(np.int64)}, "array of int32"),
    "list": ({"codes": SORTED.codes.tolist()}, "array of uint8, got list"),
    "few-places": ({"bin_start": SORTED.bin_start[:, :200]}, "n_bins: expected bins"),
    "no-places": ({"bin_start": SORTED.bin_start[:, :0]}, r"bin_start: expected shape \(3, 2\)"),
    "shape": ({"bin_start": np.tile(SORTED.bin_start, 2)}, r"shape \(3, 257\)"),
    "flat": ({"codes": SORTED.codes.ravel()}, "codes: expected 2 dimensions"),
    "few-rows": ({"rows": SORTED.rows[:10]}, r"rows: expected shape \(300,\)"),
    "source": ({"source": X[:, :2]}, "expected 3 (columns|features)"),
    "source-list": ({"source": X.tolist()}, "source: expected a matrix"),
    "source-nan": (changed("source", (7, 0), np.nan), "finite numbers"),
    "source-changed": ({"source": X[::-1].copy()}, "rows sorted by value"),
    "names": ({"names": ("a", "b")}, "expected 3 names"),
    "name": ({"names": (1, 2, 3)}, "names: expected strings"),
}


@pytest.mark.parametrize(("changes", "message"), SORTED_WRONG.values(), ids=SORTED_WRONG)
def test_sorted_columns_that_are_none(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(SORTED, **changes)


BINNED_WRONG = {
    "code": (changed("codes", (1, 3), 200, BINNED), "codes: expected numbers below n_bins"),
    "no-bins": (changed("n_bins", 1, 0, BINNED), "n_bins: expected 1 to 256"),
    "many-bins": (changed("n_bins", 1, 300, BINNED), "n_bins: expected 1 to 256"),
    "nan": (changed("upper", (0, 3), np.nan, BINNED), "lower, upper"),
    "overlap": (changed("upper", (0, 3), BINNED.lower[0, 4], BINNED), "lower, upper"),
    "reversed": (changed("lower", (0, 3), BINNED.upper[0, 3] + 1e-9, BINNED), "lower, upper"),
    "few-places": (
        {"lower": BINNED.lower[:, :9], "upper": BINNED.upper[:, :9]},
        "n_bins: expected 1 to 9 bins",
    ),
    "shape": ({"lower": BINNED.lower[:, :9]}, r"upper: expected shape \(3, 9\)"),
    "shapes": ({"lower": np.tile(BINNED.lower, 2)}, r"lower: expected shape \(3, 256\)"),
    "dtype": ({"codes": BINNED.codes.astype(np.int32)}, "array of uint8"),
    "empty": ({"codes": BINNED.codes[:, :0]}, "at least one row and one column"),
    "names": ({"names": "abc"}, "names: expected strings"),
}


@pytest.mark.parametrize(("changes", "message"), BINNED_WRONG.values(), ids=BINNED_WRONG)
def test_binned_columns_that_are_none(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(BINNED, **changes)


def test_pickles_that_were_changed():
    content = pickle.dumps(SORTED, 5)
    order = SORTED.packed_order.tobytes()
    assert order in content
    damaged = content.replace(order, b"\x01" * len(order))
    with pytest.raises(ValueError, match="each row once"):
        pickle.loads(damaged)


def test_rows_are_selected_once():
    with pytest.raises(ValueError, match="each row at most once"):
        SORTED.select(np.array([3, 3], dtype=np.int32), 256)
    with pytest.raises(IndexError):
        SORTED.select(np.array([300], dtype=np.int32), 256)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_of_any_layout_are_found_right(dtype, order):
    source = np.asarray(np.round(X, 1), dtype=dtype, order=order)
    columns = pb.data.sort_columns(source, copy=False)
    assert columns.source is source
    assert_same(columns, by_hand(columns))
    some = columns.select(np.array([7, 3, 250, 11, 12], dtype=np.int32), 2)
    by_hand(some)


def test_a_source_that_changes_is_no_crash():
    values = X.copy()
    columns = pb.data.sort_columns(values, copy=False)
    assert not np.shares_memory(pb.data.sort_columns(values).source, values)
    for change in (RNG.permuted(X, axis=0), np.full_like(X, np.nan), X * 1e300, np.zeros_like(X)):
        values[:] = change
        with np.errstate(all="ignore"):
            for fit in (
                lambda: pb.fit_adaboost(columns, Y, n_estimators=4),
                lambda: pb.fit_boosted_tree(columns, Y, max_nodes=6),
                lambda: pb.fit_cart(columns, Y),
                lambda: pb.fit_boosted_tree(
                    columns, Y, max_nodes=3, weak_learner=pb.weak.separator()
                ),
                lambda: pb.fit_boosted_tree(
                    columns, Y, max_nodes=3, weak_learner=pb.weak.affine(), rng=0
                ),
                lambda: pb.fit_boosted_tree(
                    columns, Y, max_nodes=3, weak_learner=pb.weak.linear(), rng=0
                ),
            ):
                try:
                    model = fit()
                except ValueError:
                    continue
                assert pb.predict(model, X).shape == (300,)
    with pytest.raises(ValueError, match="rows sorted by value"):
        pickle.loads(pickle.dumps(columns))


def test_fits_leave_columns_as_they_are():
    before = {name: array.tobytes() for name, array in arrays_of(SORTED).items()}
    also = {name: array.tobytes() for name, array in arrays_of(BINNED).items()}
    w = np.arange(300) % 3
    for columns in (SORTED, BINNED):
        for weight in (None, w):
            pb.fit_adaboost(columns, Y, n_estimators=5, sample_weight=weight)
            pb.fit_boosted_tree(columns, Y, max_nodes=5, sample_weight=weight)
            pb.fit_cart(columns, Y, sample_weight=weight)
    assert before == {name: array.tobytes() for name, array in arrays_of(SORTED).items()}
    assert also == {name: array.tobytes() for name, array in arrays_of(BINNED).items()}


def test_columns_made_by_hand_train_the_same_models():
    assert isinstance(SORTED, SortedColumns)
    for columns in (SORTED, BINNED):
        assert_same(columns, by_hand(columns))
