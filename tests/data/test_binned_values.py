"""Columns in bins that keep values, in memory and in folders: models of the same values."""

import pickle
from functools import partial

import numpy as np
import pytest
from partitioned import contents, fit_parted

import pboost as pb
from pboost.data.columns.columns import BinnedValues, by_column, valued
from pboost.data.on_disk import encoded_batches
from pboost.data.on_disk.column_folder import STATE

RNG = np.random.default_rng(3)
N = 240
X = RNG.normal(size=(N, 4))
Y = np.where(X[:, 0] + X[:, 1] + RNG.normal(size=N) > 0, "yes", "no")
WEIGHT = RNG.random(N) + 0.1
HOLED = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
#: Builders that read values, and options.
FITS = {
    "gaussian": lambda X, y, w: pb.fit_adaboost(
        X, y, sample_weight=w, n_estimators=5, observation=pb.observation.gaussian(0.3)
    ),
    "affine": lambda X, y, w: pb.fit_adaboost(
        X, y, sample_weight=w, n_estimators=3, weak_learner=pb.weak.affine(n_directions=20)
    ),
    "separators": lambda X, y, w: pb.fit_adaboost(
        X, y, sample_weight=w, n_estimators=2, weak_learner=pb.weak.separator()
    ),
    "real": lambda X, y, w: pb.fit_real_adaboost(X, y, sample_weight=w, n_estimators=4),
    "probit tree": lambda X, y, w: pb.fit_probit_tree(
        X, y, sample_weight=w, max_depth=2, max_iter=9
    ),
    "sbpmt": lambda X, y, w: pb.fit_sbpmt(X, y, sample_weight=w, n_estimators=2, rng=0),
    "pruned": lambda X, y, w: pb.fit_pruned_cart(X, y, sample_weight=w, rng=0),
}


def arrays_of(model):
    """Return the bytes of a model but for the digest of its rows."""
    actual = {
        name: getattr(model, name).tobytes()
        for name in ("feature", "threshold", "vote", "coefficient", "alpha", "weight", "value")
        if isinstance(getattr(model, name, None), np.ndarray)
    }
    assert actual or hasattr(model, "intercept")
    return actual, str(pb.describe(model)) if hasattr(pb, "describe") else None


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_models_are_those_of_the_values(fit, dtype):
    values = (X if fit in ("separators", "real") else HOLED).astype(dtype)
    columns = pb.data.bin_columns(values, sample_weight=WEIGHT, keep_values=True)
    assert columns.source.dtype == dtype
    ours, theirs = FITS[fit](columns, Y, WEIGHT), FITS[fit](values, Y, WEIGHT)
    assert arrays_of(ours) == arrays_of(theirs)
    np.testing.assert_array_equal(pb.predict(ours, values), pb.predict(theirs, values))


def test_searches_read_codes(tmp_path):
    columns = pb.data.bin_columns(HOLED, max_bins=9, keep_values=True)
    plain = pb.data.bin_columns(HOLED, max_bins=9)
    for fit in (pb.fit_adaboost, pb.fit_cart, pb.fit_boosted_tree):
        assert contents(fit(columns, Y), tmp_path) == contents(fit(plain, Y), tmp_path)


def test_rows_are_held_out_and_predicted():
    columns = pb.data.bin_columns(X, keep_values=True)
    model = pb.fit_adaboost(columns, Y, n_estimators=20, validation=0.3, rng=0)
    assert len(model.record.validation) == 21
    model = pb.fit_bagging(
        partial(pb.fit_adaboost, n_estimators=3), columns, Y, n_estimators=3, rng=0
    )
    assert model.oob.error < 0.5
    with pytest.raises(TypeError, match=r"validation: expected rows with values.*keep_values=True"):
        pb.fit_adaboost(pb.data.bin_columns(X), Y, n_estimators=20, validation=0.3, rng=0)


def test_a_selection_is_pickled_with_its_own_rows():
    columns = pb.data.bin_columns(HOLED, keep_values=True)
    rows = np.arange(N - 1, 100, -3, dtype=np.int32)
    some = columns.select(rows)
    assert some.source is columns.source
    actual = pickle.loads(pickle.dumps(some))
    assert actual.source.shape == (len(rows), 4)
    for j in range(4):
        np.testing.assert_array_equal(actual.values(j), HOLED[rows, j])
        np.testing.assert_array_equal(some.values(j), HOLED[rows, j])
    np.testing.assert_array_equal(actual.features().values, HOLED[rows])
    assert columns.features().values is columns.source


def test_what_is_made_elsewhere_is_checked():
    columns = pb.data.bin_columns(X, keep_values=True)
    options = {name: getattr(columns, name) for name in columns._given()}
    assert BinnedValues(**options).values(1).tolist() == X[:, 1].tolist()
    for name, wrong, message in (
        ("rows", options["rows"][1:], "rows: expected shape"),
        ("rows", options["rows"] + np.int32(1), "expected indices of rows of the source"),
        ("source", X[:, :3], "source: expected 4 columns"),
        ("source", X.astype(int), "source: expected a matrix of float64 or float32"),
        ("source", HOLED, "expected"),
    ):
        with pytest.raises(ValueError, match=message):
            BinnedValues(**{**options, name: wrong})
    with pytest.raises(TypeError, match="values: expected True or False"):
        pb.data.bin_columns(X, keep_values="yes")


def test_the_values_are_a_copy_that_stays():
    values = X.copy()
    columns = pb.data.bin_columns(values, keep_values=True)
    values[:] = 0
    assert columns.source.tolist() == X.tolist()
    with pytest.raises(ValueError, match="read-only"):
        columns.source[0, 0] = 1.0
    assert valued(columns, by_column(X)).source.flags.f_contiguous


# Folders


@pytest.mark.parametrize("kind", ["float64", "float32", "mixed", "categories"])
def test_folders_keep_values(kind, tmp_path):
    values = HOLED.astype(np.float32) if kind in ("float32", "mixed") else HOLED
    by_class = np.argsort(Y, kind="stable")
    if kind == "categories":
        pd = pytest.importorskip("pandas")
        words = RNG.choice(["a", "b", "c"], N)
        frame = pd.DataFrame({"word": words, "x": X[:, 1]})
        given = [(frame[:99], Y[:99]), (frame[99:], Y[99:])]
        full_columns = pb.data.bin_columns(frame, keep_values=True)
    else:
        last = values[99:].astype(np.float64) if kind == "mixed" else values[99:]
        given = [(values[:99], Y[:99]), (last, Y[99:])]
        full_columns = pb.data.bin_columns(values, keep_values=True)
    columns, labels, _ = pb.data.bin_files(given, tmp_path / "columns", keep_values=True)
    assert isinstance(columns, BinnedValues)
    assert columns.source.dtype == (np.float32 if kind == "float32" else np.float64)
    np.testing.assert_array_equal(columns.source, full_columns.source[by_class])
    assert columns.source.T.flags.c_contiguous
    again = pb.data.open_columns(tmp_path / "columns", check=True).columns
    np.testing.assert_array_equal(again.source, columns.source)
    some = full_columns.select(by_class.astype(np.int32))
    sigma = [np.nan, 0.2] if kind == "categories" else 0.2
    fits = (
        lambda X, y: pb.fit_adaboost(
            X, y, n_estimators=5, observation=pb.observation.gaussian(sigma)
        ),
        lambda X, y: pb.fit_sbpmt(X, y, n_estimators=2, rng=0),
    )
    for fit in fits:
        ours, theirs = fit(columns, labels), fit(some, Y[by_class])
        assert contents(ours, tmp_path) == contents(theirs, tmp_path)


def test_partitions_from_folders(tmp_path):
    columns, y, weight = pb.data.bin_files([(X, Y, WEIGHT)], tmp_path / "columns", keep_values=True)
    rows = np.arange(N, dtype=np.int32)
    parts, at = [columns.select(r) for r in np.split(rows, [50, 51])], [50, 51]
    labels, weights = np.split(y, at), np.split(weight, at)
    options = {"max_nodes": 5, "validation": 0.2, "rng": 0}
    model = fit_parted("fit_boosted_tree", parts, labels, sample_weight=weights, **options)
    full_model = pb.fit_boosted_tree(columns, y, sample_weight=weight, **options)
    assert contents(model, tmp_path) == contents(full_model, tmp_path)


def test_a_call_goes_on_with_codes_and_values(tmp_path, monkeypatch):
    monkeypatch.setattr(encoded_batches, "SECONDS", -1.0)
    parts = [(X[k : k + 40], Y[k : k + 40]) for k in range(0, N, 40)]
    left, encoded = 10, []

    def batches():
        nonlocal left
        for part in parts:
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
            yield part

    encode = encoded_batches.Encoding._encode
    monkeypatch.setattr(
        encoded_batches.Encoding,
        "_encode",
        lambda self, rows, *more: (encoded.append(rows.batch), encode(self, rows, *more)),
    )
    folder = tmp_path / "columns"
    with pytest.raises(KeyboardInterrupt):
        pb.data.bin_files(batches, folder, keep_values=True)
    assert (folder / STATE).is_file()
    assert encoded == [0, 1]
    columns = pb.data.bin_files(batches, folder, keep_values=True)
    assert encoded == [0, 1, 2, 3, 4, 5]
    full_columns = pb.data.bin_files(parts, tmp_path / "whole", keep_values=True)
    for name in ("codes", "values"):
        ours, theirs = ((f / f"{name}.npy").read_bytes() for f in (folder, tmp_path / "whole"))
        assert ours == theirs
    np.testing.assert_array_equal(columns.columns.source, full_columns.columns.source)


@pytest.mark.parametrize("loss", ["values", "options"])
def test_what_was_left_without_values_begins_anew(loss, tmp_path, monkeypatch):
    monkeypatch.setattr(encoded_batches, "SECONDS", -1.0)
    left = 3

    def batches():
        nonlocal left
        for k in range(0, N, 120):
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
            yield X[k : k + 120], Y[k : k + 120]

    folder = tmp_path / "columns"
    left = 4
    with pytest.raises(KeyboardInterrupt):
        pb.data.bin_files(batches, folder, keep_values=loss == "values")
    if loss == "values":
        (folder / "values.npy.part").unlink()
    columns = pb.data.bin_files(batches, folder, keep_values=True)
    by_class = np.argsort(Y, kind="stable")
    np.testing.assert_array_equal(columns.columns.source, X[by_class])


def test_values_that_have_changed(tmp_path):
    folder = tmp_path / "columns"
    pb.data.bin_files([(X, Y)], folder, keep_values=True)
    path = folder / "values.npy"
    full_content = path.read_bytes()
    path.write_bytes(full_content[:-1])
    with pytest.raises(pb.data.FolderError, match=r"values\.npy has .* bytes, expected"):
        pb.data.open_columns(folder)
    path.write_bytes(full_content[:-1] + bytes([full_content[-1] ^ 1]))
    with pytest.raises(pb.data.FolderError, match=r"values\.npy has been changed"):
        pb.data.open_columns(folder, check=True)
    path.unlink()
    with pytest.raises(pb.data.FolderError, match=r"values\.npy is missing"):
        pb.data.open_columns(folder)


ORDER = RNG.permutation(N).astype(np.int32)


@pytest.mark.parametrize(
    "turned",
    [
        pb.data.sort_columns(X).select(ORDER, 255),
        pb.data.bin_columns(X, keep_values=True).select(ORDER),
    ],
    ids=["sorted", "binned"],
)
def test_rows_of_columns_in_another_order_keep_their_labels(turned):
    y, weight = Y[ORDER], WEIGHT[ORDER]
    for fit in ("real", "probit tree", "sbpmt"):
        ours, theirs = (FITS[fit](given, y, weight) for given in (turned, X[ORDER]))
        assert arrays_of(ours) == arrays_of(theirs), fit
        np.testing.assert_array_equal(pb.predict_proba(ours, X), pb.predict_proba(theirs, X))
    ours, theirs = (
        pb.fit_bagging(pb.fit_probit_tree, given, y, n_estimators=3, rng=0)
        for given in (turned, X[ORDER])
    )
    assert ours.oob.error == theirs.oob.error
    np.testing.assert_array_equal(pb.predict_proba(ours, X), pb.predict_proba(theirs, X))
