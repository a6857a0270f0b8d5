"""A mask of NumPy was ignored, and the values that it hides were trained on.

In X what a mask hides is missing, as NaN is; elsewhere masks that hide something are refused. Those
that hide nothing are passed.
"""

import dataclasses
from functools import partial

import numpy as np
import pytest

import pboost as pb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X[:, 0] > 0
HIDDEN = np.zeros((40, 3), dtype=bool)
HIDDEN[7, 2] = HIDDEN[9, 0] = True
MASKED = np.ma.masked_array(np.where(HIDDEN, 1e9, X), HIDDEN)  # what is hidden would be noticed
MISSING = np.where(HIDDEN, np.nan, X)
ROW = np.arange(40) == 5

FITS = {
    "tree": lambda X, y=Y, **k: pb.fit_boosted_tree(X, y, max_nodes=3, **k),
    "chain": lambda X, y=Y, **k: pb.fit_adaboost(X, y, n_estimators=3, **k),
    "real": lambda X, y=Y, **k: pb.fit_real_adaboost(X, y, n_estimators=3, **k),
    "cart": lambda X, y=Y, **k: pb.fit_cart(X, y, **k),
    "forest": lambda X, y=Y, **k: pb.fit_random_forest(X, y, n_estimators=2, rng=0, **k),
    "stagewise": lambda X, y=Y, **k: pb.fit_gradient_boosting(
        X, y, loss="log_loss", n_estimators=2, **k
    ),
    "probit": lambda X, y=Y, **k: pb.fit_probitboost(X, y, max_iter=2, **k),
    "rest": lambda X, y=Y, **k: pb.fit_one_vs_rest(pb.fit_adaboost, X, y, n_estimators=2, **k),
    "samme": lambda X, y=Y, **k: pb.fit_samme(X, y, base_learner=pb.fit_cart, n_estimators=1, **k),
    "bagging": lambda X, y=Y, **k: pb.fit_bagging(pb.fit_cart, X, y, n_estimators=2, rng=0, **k),
    "folds": lambda X, y=Y, **k: pb.cross_validate(pb.fit_cart, X, y, cv=2, rng=0, **k),
}
ORACLE = pb.weak.oracle(lambda *_: Known())
FITS_OF_ROWS = {
    **FITS,
    "oracle": lambda X, y=Y, **k: pb.fit_adaboost(X, y, n_estimators=1, weak_learner=ORACLE, **k),
}
READERS = {"sort": pb.data.sort_columns, "bin": pb.data.bin_columns}


class Known:
    """Asks whether the first value of a row is known, and positive."""

    def __call__(self, rows, rng):
        assert not isinstance(rows, np.ma.MaskedArray)
        return np.where(rows[:, 0].astype(float) > 0, 1.0, -1.0)

    def __eq__(self, other):
        return isinstance(other, Known)


def same(found, expected):
    """Whether two results hold the same numbers, arrays to the last bit."""
    if isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected)
    elif dataclasses.is_dataclass(expected):
        assert type(found) is type(expected)
        for part in dataclasses.fields(expected):
            if not part.name.endswith("_seconds"):
                same(getattr(found, part.name), getattr(expected, part.name))
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for item, other in zip(found, expected, strict=True):
            same(item, other)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        same(list(found.values()), list(expected.values()))
    else:
        assert found == expected or (found != found and expected != expected)


TAKERS = {**FITS_OF_ROWS, **READERS}
takers = pytest.mark.parametrize("fit", TAKERS.values(), ids=TAKERS)


@takers
def test_features(fit):
    same(fit(MASKED), fit(MISSING))


@takers
def test_sequences_of_rows_that_hide_values(fit):
    with pytest.raises(ValueError, match=r"^X: expected an array without a mask.*\[7, 2\].*filled"):
        fit(list(MASKED))


def test_what_takes_no_missing_values():
    for given in (MASKED, list(MASKED)):
        with pytest.raises(ValueError, match=r"^X: expected an array without a mask"):
            pb.data.one_hot(given, columns=[0])
    with pytest.raises(
        ValueError, match=r"^X: expected finite numbers, got nan in column 0, row 9"
    ):
        pb.fit_cart(MASKED, Y, missing="error")


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.bool_, object], ids=str)
@pytest.mark.parametrize("kind", ["tree", "rest", "folds", "oracle"])
def test_types(kind, dtype):
    values = (4 * np.abs(X)).astype(dtype)
    is_float = dtype in (np.float32, object)
    missing = values.astype(dtype if is_float else np.float64)
    missing[HIDDEN] = None if dtype is object else np.nan
    same(FITS_OF_ROWS[kind](np.ma.masked_array(values, HIDDEN)), FITS_OF_ROWS[kind](missing))


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_labels_and_weights(fit):
    with pytest.raises(ValueError, match=r"^y: expected an array without a mask.* 1 values.*\[5\]"):
        fit(X, np.ma.masked_array(Y, ROW))
    with pytest.raises(ValueError, match=r"^sample_weight: expected an array without a mask"):
        fit(X, sample_weight=np.ma.masked_array(np.ones(40), ROW))


def test_targets_errors_and_validation_rows():
    with pytest.raises(ValueError, match=r"^y: expected an array without a mask"):
        pb.fit_cart(X, np.ma.masked_array(X[:, 0], ROW), task="regression")
    with pytest.raises(ValueError, match=r"^sigma: expected an array without a mask"):
        pb.observation.gaussian(np.ma.masked_array([1.0, 2.0, 3.0], [True, False, False]))
    with pytest.raises(ValueError, match=r"^validation: y: expected an array without a mask"):
        FITS["tree"](X, validation=(X, np.ma.masked_array(Y, ROW)))
    with pytest.raises(ValueError, match=r"^y: expected an array without a mask"):
        FITS["rest"](X, validation=(X, np.ma.masked_array(Y, ROW)))


@pytest.mark.parametrize("kind", ["tree", "chain", "stagewise"])
def test_validation_rows(kind):
    fit = FITS[kind]
    same(fit(X, validation=(MASKED, Y)), fit(X, validation=(MISSING, Y)))


def test_validation_rows_of_each_class():
    fit = partial(pb.fit_one_vs_rest, pb.fit_boosted_tree, X, Y, max_nodes=3)
    same(fit(validation=(MASKED, Y)), fit(validation=(MISSING, Y)))


MODELS = [kind for kind in FITS_OF_ROWS if kind != "folds"]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("trained", [X, MISSING], ids=["without holes", "with holes"])
def test_functions_of_a_model(kind, trained):
    model = FITS_OF_ROWS[kind](trained)
    for function in (pb.predict, pb.predict_proba, pb.prediction_cost):
        same(function(model, MASKED), function(model, MISSING))
    if kind != "oracle":
        same(*(pb.inspection.permutation_importance(model, Z, Y, rng=0) for Z in (MASKED, MISSING)))
    with pytest.raises(ValueError, match=r"^y: expected an array without a mask"):
        pb.inspection.permutation_importance(model, X, np.ma.masked_array(Y, ROW))
    with pytest.raises(ValueError, match=r"^X: expected an array without a mask"):
        pb.predict(model, list(MASKED))


@pytest.mark.parametrize("kind", MODELS)
def test_one_row(kind):
    model = FITS_OF_ROWS[kind](X)
    for row in (7, 9):
        expected = pb.explain(model, MISSING[row])
        for given in (MASKED[row], MASKED[row : row + 1]):
            explanation = pb.explain(model, given)
            assert str(explanation) == str(expected)
            same(explanation.contributions, expected.contributions)


def test_functions_of_labels():
    model = FITS["tree"](X)
    for function in (pb.certificate, pb.inspection.margins, pb.inspection.normalized_margins):
        same(function(model, MASKED, Y), function(model, MISSING, Y))
        with pytest.raises(ValueError, match=r"^y: expected an array without a mask"):
            function(model, X, np.ma.masked_array(Y, ROW))


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_masks_that_hide_nothing(fit):
    open_ = [np.ma.masked_array(a, np.zeros(a.shape, dtype=bool)) for a in (X, Y, np.ones(40))]
    fit(open_[0], open_[1], sample_weight=open_[2])


def test_the_values_of_an_open_mask_are_read():
    model = FITS["tree"](X)
    same = FITS["tree"](np.ma.masked_array(X), np.ma.masked_array(Y))
    assert same.vote.tobytes() == model.vote.tobytes()
    assert (pb.predict(model, np.ma.masked_array(X)) == pb.predict(model, X)).all()
