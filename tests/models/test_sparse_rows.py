"""Predictions from sparse matrices, which must equal the predictions from dense rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import pboost as pb
from pboost.models.evaluate import sparse_rows

RNG = np.random.default_rng(0)
X = np.where(RNG.random((90, 7)) < 0.3, RNG.integers(-3, 4, (90, 7)), 0).astype(float)
TWO = X[:, 0] + X[:, 1] + 0.3 * RNG.normal(size=90) > 0
THREE = TWO + (X[:, 2] > 0)
HOLED = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
SHORT = {"n_estimators": 4}
MODELS = {
    "gradient boosting": lambda: pb.fit_gradient_boosting(X, TWO, **SHORT),
    "softmax": lambda: pb.fit_gradient_boosting(X, THREE, **SHORT),
    "regression": lambda: pb.fit_gradient_boosting(X, X @ np.arange(7.0) / 3, **SHORT),
    "stumps": lambda: pb.fit_adaboost(X, TWO, **SHORT),
    "tree": lambda: pb.fit_cart(X, TWO, max_depth=3),
    "leaf": lambda: pb.fit_cart(X[:, :1] * 0.0 + np.zeros(7), TWO),
    "forest": lambda: pb.fit_random_forest(X, TWO, rng=0, **SHORT),
    "linear": lambda: pb.fit_probitboost(X, TWO, max_iter=4),
    "one vs rest": lambda: pb.fit_one_vs_rest(pb.fit_adaboost, X, THREE, **SHORT),
    "missing values": lambda: pb.fit_gradient_boosting(HOLED, TWO, **SHORT),
}


@pytest.mark.parametrize("kind", MODELS)
def test_all_functions_equal_those_of_dense_rows(kind, monkeypatch):
    model, values = MODELS[kind](), HOLED if kind == "missing values" else X
    monkeypatch.setattr(sparse_rows, "BLOCK_CELLS", 100)  # several blocks
    given = sparse.csr_array(values)
    assert np.array_equal(pb.predict(model, given), pb.predict(model, values))
    functions = [pb.decision_function, pb.prediction_cost]
    if model.classes is not None:
        functions.append(pb.predict_proba)
    for function in functions:
        assert np.array_equal(function(model, given), function(model, values))
    if kind in ("gradient boosting", "softmax", "stumps"):
        stages = zip(
            pb.staged_predict_proba(model, given),
            pb.staged_predict_proba(model, values),
            strict=True,
        )
        assert all(np.array_equal(*pair) for pair in stages)
    if kind in ("gradient boosting", "tree", "forest", "missing values"):
        leaves = pb.inspection.apply(model, given)
        assert np.array_equal(leaves, pb.inspection.apply(model, values))


def test_all_formats():
    model = MODELS["gradient boosting"]()
    expected = pb.decision_function(model, X)
    rows, columns = np.nonzero(X)
    shuffled = RNG.permutation(len(rows))
    twice = np.concatenate([shuffled, shuffled])  # each entry is stored in two halves
    halves = X[rows, columns][twice] / 2
    unsorted = sparse.coo_array((halves, (rows[twice], columns[twice])), X.shape)
    unsorted_rows = sparse.csr_matrix(X)
    unsorted_rows.indices[:2], unsorted_rows.data[:2] = (
        unsorted_rows.indices[1::-1].copy(),
        unsorted_rows.data[1::-1].copy(),
    )
    wide = sparse.csc_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    explicit = sparse.csr_array(X)
    explicit.data[3] = 0.0  # a stored zero
    formats = [getattr(sparse, f"{name}_matrix")(X) for name in ("lil", "dok", "bsr", "dia")]
    for given in (unsorted, unsorted_rows, wide, sparse.csr_array(X.astype(np.float32)), *formats):
        before = given.copy()
        assert np.array_equal(pb.decision_function(model, given), expected)
        assert given.nnz == before.nnz
        assert (given != before).nnz == 0
    assert np.array_equal(
        pb.decision_function(model, explicit), pb.decision_function(model, explicit.toarray())
    )
    assert pb.predict(model, sparse.csr_array((0, 7))).shape == (0,)


def test_the_input_is_checked():
    model, bad = MODELS["gradient boosting"](), X.copy()
    with pytest.raises(ValueError, match=r"^X: expected 7 columns, got 6"):
        pb.predict(model, sparse.csr_array(X[:, :6]))
    bad[4, 2] = np.inf
    with pytest.raises(
        ValueError, match=r"^X: expected finite numbers, got inf in column 2, row 4"
    ):
        pb.predict(model, sparse.csc_array(bad))
    bad[4, 2] = np.nan
    with pytest.raises(ValueError, match=r"nan in column 2, row 4; impute missing values first"):
        pb.predict(replace(MODELS["tree"](), missing=None), sparse.csr_array(bad))
    with pytest.raises(TypeError, match=r"^X: expected a sparse matrix of numbers, got dtype comp"):
        pb.predict(model, sparse.csr_array(X.astype(complex)))
    with pytest.raises(ValueError, match=r"^X: expected two dimensions \(rows, columns\), got 1"):
        pb.predict(model, sparse.coo_array(X[0]))
    with pytest.raises(NotImplementedError, match=r'^route: expected "hard" with a sparse matrix'):
        pb.decision_function(MODELS["stumps"](), sparse.csr_array(X), "expected")


def test_wide_rows_take_little_memory():
    n, d = 300, 2_000_000  # 4.8 GB as a dense matrix
    values = sparse.csr_array((np.ones(n), (np.arange(n), np.arange(n) * 5000)), (n, d))
    split = pb.fit_cart([[0.0], [1.0]], [0, 1])
    tree = replace(split, feature=np.where(split.feature < 0, -1, 5000), n_features=d)
    assert pb.predict(tree, values).nonzero()[0].tolist() == [1]
