"""Bad tables in every builder: a sentence that names column and row, and nothing changed."""

from __future__ import annotations

import copy
import datetime
import re
from functools import partial

import numpy as np
import pytest

import pboost as pb

pd = pytest.importorskip("pandas")
sparse = pytest.importorskip("scipy.sparse")

N = 60
RNG = np.random.default_rng(0)
A = RNG.normal(size=(N, 3))
WORDS, NUMBERS = np.where(A[:, 0] > 0, "b", "a"), A[:, 0] * 2
SHARE = RNG.dirichlet([1, 1], size=N)
for array in (A, WORDS, NUMBERS, SHARE):
    array.setflags(write=False)

AFFINE, GAUSSIAN = pb.weak.affine(), pb.observation.gaussian(0.1)
FITS = {
    "adaboost": partial(pb.fit_adaboost, n_estimators=2),
    "affine": partial(pb.fit_adaboost, n_estimators=2, weak_learner=AFFINE),
    "linear": partial(pb.fit_adaboost, n_estimators=2, weak_learner=pb.weak.linear()),
    "separators": partial(pb.fit_adaboost, n_estimators=2, weak_learner=pb.weak.separator()),
    "gaussian": partial(pb.fit_adaboost, n_estimators=2, observation=GAUSSIAN),
    "real": partial(pb.fit_real_adaboost, n_estimators=2),
    "columns": partial(pb.fit_real_adaboost, n_estimators=2, weak_learner=pb.weak.feature()),
    "boosted tree": partial(pb.fit_boosted_tree, max_nodes=2),
    "oblique": partial(pb.fit_oblique_tree, max_depth=1),
    "top down": partial(pb.fit_topdown_tree, max_nodes=2),
    "matryoshka": partial(pb.fit_matryoshka, shape=(2, 2)),
    "cart": pb.fit_cart,
    "numbers": partial(pb.fit_cart, task="regression"),
    "pruned": partial(pb.fit_pruned_cart, cv=3, rng=0),
    "forest": partial(pb.fit_random_forest, n_estimators=2, rng=0),
    "stagewise": partial(pb.fit_gradient_boosting, loss="log_loss", n_estimators=2),
    "sum of numbers": partial(pb.fit_gradient_boosting, loss="squared_error", n_estimators=2),
    "probit": partial(pb.fit_probitboost, max_iter=2),
    "probit tree": pb.fit_probit_tree,
    "sbpmt": partial(pb.fit_sbpmt, n_estimators=2, n_boosting_rounds=1, rng=0),
    "bagging": partial(pb.fit_bagging, pb.fit_cart, n_estimators=2, rng=0),
    "one-vs-rest": partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=2),
    "samme": partial(pb.fit_samme, n_estimators=2),
}
builders = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)


def truth(fit, n=N):
    return (NUMBERS if fit in (FITS["numbers"], FITS["sum of numbers"]) else WORDS)[:n]


def frame(column="v", of=pd.DataFrame, **columns):
    return of({"u": A[:, 0], "v": A[:, 1], **columns})


def late(value, first=1.0, at=37):
    """Return a column of objects with another value in some row."""
    column = np.full(N, first, dtype=object)
    column[at] = value
    return column


DAYS = pd.date_range("2020", periods=N)
#: What a column holds, and what is said of it.
COLUMNS = {
    "infinity": (np.where(np.arange(N) == 37, np.inf, 0.0), "got inf in column 'v', row 37"),
    "minus infinity": (late(-np.inf), "got -inf in column 'v', row 37"),
    "too large": (
        late(10**400),
        "column 'v': expected numbers in the range of float64, got a larger number in row 37",
    ),
    "no float": (late(2**53 + 1, 1), "column 'v': expected numbers that float64 can represent"),
    "dates": (DAYS, "column 'v' is not numeric: got dates"),
    "periods": (DAYS.to_period("D"), "column 'v' is not numeric: got dates"),
    "durations": (DAYS - DAYS[0], "column 'v' is not numeric: got times or intervals"),
    "a date": (late(datetime.date(2020, 1, 2)), "column 'v' is not numeric: got datetime"),
    "a list": ([[1, 2]] * N, "column 'v' is not numeric: got [1, 2] in row 0"),
    "a dict": (late({"a": 1}), "column 'v' is not numeric: got {'a': 1} in row 37"),
    "bytes": (late(b"a"), "column 'v' is not numeric: got b'a' in row 37"),
    "complex": (late(1j), "column 'v' is not numeric: got 1j in row 37"),
    "complex numbers": (A[:, 1] + 0j, "column 'v' is not numeric: got non-numeric values"),
    "text beside numbers": (late("a"), "column 'v': expected text in every row, got other"),
    "names of rows": (
        [f"row {i}" for i in range(N)],
        "column 'v': expected categories, got text with a unique value",
    ),
}


@builders
@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_that_are_refused(fit, kind):
    column, message = COLUMNS[kind]
    X = frame(v=column)
    before = copy.deepcopy(X)
    with pytest.raises((ValueError, TypeError), match=f"^X: .*{re.escape(message)}"):
        fit(X, truth(fit))
    pd.testing.assert_frame_equal(X, before)


OTHERS = {
    "no columns": (A[:, :0], "column"),
    "complex": (A + 0j, "X: expected numbers, got dtype complex128"),
    "dates": (np.full((N, 2), DAYS[0].to_datetime64()), "X: expected numbers, got dtype datetime"),
    "text": (np.full((N, 2), "a"), "X: expected numbers, got text; pass categorical columns"),
    "twice": (
        pd.DataFrame(A, columns=["u", "v", "u"]),
        "X: expected distinct column names, got 'u' twice",
    ),
    "a column": (pd.Series(A[:, 0]), "X: "),
}


@pytest.mark.parametrize("name", sorted(FITS.keys() - {"stagewise", "sum of numbers"}))
def test_sparse_matrices_are_refused(name):
    message = r"^X: .* sparse matrices are not supported, pass X.toarray\(\) or use fit_gradient"
    with pytest.raises(TypeError, match=message):
        FITS[name](sparse.csr_array(A), truth(FITS[name]))


@builders
@pytest.mark.parametrize("kind", OTHERS)
def test_tables_that_are_refused(fit, kind):
    X, message = OTHERS[kind]
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        fit(X, truth(fit))


@builders
@pytest.mark.parametrize("X", [A[:0], frame().iloc[:0]], ids=["matrix", "frame"])
def test_no_rows(fit, X):
    with pytest.raises(ValueError, match="expected at least one row"):
        fit(X, truth(fit, 0))


@builders
def test_frames_that_are_not_read_yet(fit):
    polars = pytest.importorskip("polars")
    with pytest.raises(
        TypeError, match=r"X: expected rows in memory, got a LazyFrame; pass X\.collect\(\)"
    ):
        fit(frame(of=polars.DataFrame).lazy(), truth(fit))


@builders
def test_collections_of_dask(fit):
    class Frame:
        columns = ("a", "b")

        def compute(self):
            raise AssertionError

    with pytest.raises(TypeError, match=r"; fit to pboost\.dask\.rows\(X, y\), predict"):
        fit(Frame(), truth(fit))


HIDDEN = {
    "one column": A * [1.0, np.nan, 1.0],
    "one column of a frame": frame(v=[None] * N),
    "text": frame(v=pd.array([None] * N, dtype="string")),
    "a category": frame(v=pd.Categorical([None] * N)),
    "all": A * np.nan,
}


@builders
@pytest.mark.parametrize("kind", HIDDEN)
def test_columns_without_values_are_taken(fit, kind):
    """Only whether it is missing can be asked, which tells no rows apart."""
    X = HIDDEN[kind]
    before = copy.deepcopy(X)
    model = fit(X, truth(fit))
    predicted = pb.predict(model, X)
    if kind == "all":
        assert (predicted == predicted[0]).all()
    if isinstance(X, np.ndarray):
        np.testing.assert_array_equal(X, before)
    else:
        pd.testing.assert_frame_equal(X, before)


def changed(value):
    share = SHARE.copy()
    share[4, 1] = value
    return share


@builders
@pytest.mark.parametrize(
    ("share", "message"),
    [
        (changed(-0.1), "y_proba: expected probabilities in .0, 1., got -0.1 in row 4, column 1"),
        (
            changed(np.nan),
            "y_proba: expected probabilities in .0, 1., got a missing value in row 4, column 1",
        ),
        (changed(2e-6 + SHARE[4, 1]), "y_proba: expected probabilities that sum to 1 in each row"),
    ],
    ids=["negative", "missing", "sum"],
)
def test_probabilities_of_labels(fit, share, message):
    if fit in (FITS["numbers"], FITS["sum of numbers"]):
        message = "y_proba"  # or that a regression has none
    with pytest.raises(ValueError, match=message):
        fit(A, y_proba=share)
    with pytest.raises(
        ValueError, match="y, y_proba: expected only one of these arguments, got both"
    ):
        fit(A, truth(fit), y_proba=SHARE)


@builders
def test_new_rows_of_other_kinds(fit):
    words = np.resize(["x", "y", "z"], N)
    model = fit(frame(v=words), truth(fit))
    with pytest.raises(ValueError, match="column 'v': expected text as in training, got numbers"):
        pb.predict(model, frame())
    other = fit(frame(), truth(fit))
    with pytest.raises(ValueError, match="column 'v': expected numbers as in training, got cat"):
        pb.predict(other, frame(v=words))
    for known in (model, other):
        with pytest.raises(
            ValueError, match="X: expected the features of the training data; missing: v"
        ):
            pb.predict(known, frame().drop(columns="v"))
        with pytest.raises(ValueError, match=r"X: .*got inf in column 'u', row 5"):
            pb.predict(
                known,
                frame(v=words if known is model else A[:, 1]).assign(
                    u=np.where(np.arange(N) == 5, np.inf, 0.0)
                ),
            )
