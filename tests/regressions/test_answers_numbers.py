"""Numbers that NumPy cannot keep apart, or cannot hold, were merged or ended in its own errors.

Integers are exact or refused, in X and in y; what stands for no matrix is named, with the way out.
"""

import warnings
from fractions import Fraction

import numpy as np
import pytest

import pboost as pb

RNG = np.random.default_rng(0)
BIG = 2**53
Y = np.arange(12) % 2 == 1
X = RNG.normal(size=(12, 2))
FITS = {
    "tree": lambda X, y=Y: pb.fit_boosted_tree(X, y, max_nodes=3),
    "cart": lambda X, y=Y: pb.fit_cart(X, y),
    "probit": lambda X, y=Y: pb.fit_probitboost(X, y, max_iter=1),
    "sort": lambda X: pb.data.sort_columns(X),
    "bin": lambda X: pb.data.bin_columns(X),
}
fits = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
INEXACT = r"^X: column .*: expected numbers that float64 .*, got the integer -?{} in row 5"


def with_cell(value, dtype):
    Z = np.ones((12, 2), dtype=dtype)
    Z[:, 0] = np.arange(12)
    Z[5, 1] = value
    return Z


# Features


@fits
@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (BIG + 1, np.int64),
        (-BIG - 1, np.int64),
        (2**63 - 1, np.int64),
        (2**64 - 1, np.uint64),
        (BIG + 1, object),
        (-(10**30), object),
    ],
    ids=str,
)
def test_integers_that_are_no_floats(fit, value, dtype):
    with pytest.raises(ValueError, match=INEXACT.format(abs(value))):
        fit(with_cell(value, dtype))


@fits
def test_integers_of_frames_and_sequences(fit):
    pd = pytest.importorskip("pandas")
    bad = with_cell(BIG + 1, np.int64)
    with pytest.raises(ValueError, match=INEXACT.format(BIG + 1) + "(?s:.*)"):
        fit(pd.DataFrame(bad, columns=["a", "b"]))
    with pytest.raises(ValueError, match=INEXACT.format(BIG + 1)):
        fit(pd.DataFrame(bad, columns=["a", "b"], dtype="Int64"))
    with pytest.raises(ValueError, match=INEXACT.format(BIG + 1)):
        fit(bad.tolist())
    mixed = bad.tolist()
    mixed[3][0] = 0.5  # NumPy would make floats of all
    with pytest.raises(ValueError, match=INEXACT.format(BIG + 1)):
        fit(mixed)


@fits
@pytest.mark.parametrize("value", [BIG, -BIG, 2**60, 2**62 + 2**12, -(2**63)], ids=str)
def test_integers_that_are_floats(fit, value):
    exact = with_cell(float(value), np.float64)
    for given in (with_cell(value, np.int64), with_cell(value, object), exact.tolist(), exact):
        fit(given)


def test_large_floats_are_passed():
    columns = pb.data.sort_columns([[1e300, 2.0], [1e17 + 16, 0.5]])  # without a warning
    assert columns.source.tolist() == [[1e300, 2.0], [1e17 + 16, 0.5]]


def test_predictions_from_integers():
    model = pb.fit_boosted_tree(with_cell(3, float), Y, max_nodes=2)
    for function in (pb.predict, pb.predict_proba, pb.prediction_cost, pb.explain):
        with pytest.raises(
            ValueError, match=r"^X: column 1: expected .* got the integer 9007199254740993 in row 0"
        ):
            function(model, [[1, BIG + 1]])


@fits
def test_beyond_all_floats(fit):
    for given in ([[0, 10**400], [1, 2]] * 6, with_cell(10**400, object)):
        with pytest.raises(ValueError, match=r"^X: column 1: expected numbers in the range"):
            fit(given)


def test_missing_numbers_of_objects():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1.0, 2.0, 3.0]})
    known = [[1.0, 1.0], [np.nan, 2.0], [3.0, 3.0]]
    for given in (frame, frame.astype(object), frame.to_numpy(object)):
        columns = pb.data.sort_columns(given)
        np.testing.assert_array_equal(columns.source, known)
        assert columns.order(0).tolist() == [0, 2, 1]
        assert columns.codes.tolist() == [[0, 2, 1], [0, 1, 2]]
        with pytest.raises(
            ValueError, match=r"^X: expected finite numbers, got nan in column ('a'|0), row 1"
        ):
            pb.fit_cart(given, [0, 1, 0], missing="error")
    frame.loc[0, "a"] = BIG + 1  # beside what is missing no integer is rounded
    for given in (frame, frame.astype(object), frame.to_numpy(object)):
        with pytest.raises(
            ValueError,
            match=r"^X: column .*: expected .* got the integer 9007199254740993 in row 0",
        ):
            pb.data.sort_columns(given)


def test_columns_that_are_not_encoded():
    encoding = pb.data.fit_one_hot([["ash", 1], ["oak", 2]])
    with pytest.raises(
        ValueError, match=r"^X: column 1: expected .* got the integer 9007199254740993 in row 0"
    ):
        encoding.transform([["ash", BIG + 1]])
    values = np.array([[BIG], [BIG + 1]])  # as categories they are not rounded
    assert pb.data.one_hot(values, columns=[0])[0].tolist() == [[1.0, 0.0], [0.0, 1.0]]


# What is no matrix


@fits
def test_sparse_matrices(fit):
    sparse = pytest.importorskip("scipy.sparse")
    for given in (sparse.csr_matrix(X), sparse.csc_array(X)):
        with pytest.raises(TypeError, match=r"^X: .*sparse matrices are not supported.*toarray"):
            fit(given)


def test_sparse_matrices_elsewhere():
    sparse = pytest.importorskip("scipy.sparse")
    given, model = sparse.csr_matrix(X), FITS["tree"](X)
    with pytest.raises(TypeError, match=r"^X: .*toarray"):
        pb.explain(model, given)
    oracle = pb.weak.oracle(lambda *_: None)
    for fit in (
        pb.data.one_hot,
        lambda X: pb.fit_adaboost(X, Y, n_estimators=1, weak_learner=oracle),
    ):
        with pytest.raises(TypeError, match=r"^X: .*toarray"):
            fit(given)


@fits
def test_lazy_frames(fit):
    polars = pytest.importorskip("polars")
    lazy = polars.DataFrame(X, schema=["a", "b"]).lazy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError, match=r"^X: .*got a LazyFrame; pass X.collect\(\)"):
            fit(lazy)
        with pytest.raises(TypeError, match=r"^X: .*collect"):
            pb.predict(FITS["tree"](X), lazy)
    fit(lazy.collect())


class Batch:
    """What a batch of rows of pyarrow offers; narwhals does not know it."""

    class Column:
        type = "double"
        null_count = 0

        def __init__(self, values):
            self.values = values

        def __len__(self):
            return len(self.values)

        def slice(self, start, length):
            return Batch.Column(self.values[start : start + length])

        def to_numpy(self, zero_copy_only=True):
            assert not zero_copy_only
            return self.values

    column_names = ("a", "b")
    columns = (None, None)
    num_columns = 2

    def __len__(self):
        return len(X)

    def column(self, j):
        return self.Column(X[:, j])


def test_batches_of_rows():
    model = FITS["tree"](Batch())
    assert model.feature_names == ("a", "b")
    assert (pb.predict(model, Batch()) == pb.predict(model, X)).all()


def test_batches_of_pyarrow():
    pyarrow = pytest.importorskip("pyarrow")
    batch = pyarrow.RecordBatch.from_arrays([X[:, 0], X[:, 1]], names=["a", "b"])
    for table in (batch, pyarrow.Table.from_batches([batch])):
        model = FITS["tree"](table)
        assert model.feature_names == ("a", "b")
        assert (pb.predict(model, table) == pb.predict(model, X)).all()
        pb.cross_validate(FITS["tree"], table, Y, cv=2, rng=0)


# Numbers to be predicted

REGRESSIONS = {
    "cart": lambda y: pb.fit_cart(X, y, task="regression"),
    "forest": lambda y: pb.fit_random_forest(X, y, n_estimators=2, task="regression", rng=0),
    "stagewise": lambda y: pb.fit_gradient_boosting(X, y, loss="squared_error", n_estimators=2),
    "folds": lambda y: pb.cross_validate(
        lambda X, y: pb.fit_cart(X, y, task="regression"), X, y, task="regression", cv=2, rng=0
    ),
}


@pytest.mark.parametrize("fit", REGRESSIONS.values(), ids=REGRESSIONS)
def test_targets(fit):
    objects = np.array([1, 2.5, np.float32(3), Fraction(1, 2), True, np.int8(4)] * 2, dtype=object)
    fit(objects)
    for position, value, error, message in (
        (7, None, ValueError, "y: missing number in row 7"),
        (7, float("nan"), ValueError, "y: missing number in row 7"),
        (3, "4", TypeError, "y: expected numbers, got '4' in row 3"),
        (3, 1j, TypeError, "y: expected numbers, got 1j in row 3"),
        (4, 10**400, ValueError, "y: expected finite numbers up to 1e.150, got inf in row 4"),
        (
            4,
            BIG + 1,
            ValueError,
            "y: expected numbers that float64 can represent, got the integer 9007199254740993",
        ),
    ):
        wrong = objects.copy()
        wrong[position] = value
        with pytest.raises(error, match=f"^{message}"):
            fit(wrong)
    with pytest.raises(
        ValueError,
        match=r"^y: expected numbers that float64 .*, got the integer 9007199254740993 in row 1",
    ):
        fit(np.where(Y, BIG + 1, BIG))
    with pytest.raises(
        ValueError,
        match=r"^y: expected numbers that float64 .*, got the integer 9007199254740993 in row 1",
    ):
        fit([0.5, BIG + 1] * 6)
    fit(np.where(Y, BIG, -(2**60)))


def test_objects_are_the_numbers_that_they_hold():
    y = X[:, 0]
    predicted = pb.predict(REGRESSIONS["cart"](y.astype(object)), X)
    np.testing.assert_array_equal(predicted, pb.predict(REGRESSIONS["cart"](y), X))
