"""A mask of NumPy was ignored, and the values that it hides were trained on.

Masks that hide something are refused wherever data are read; those that hide nothing are passed.
"""

import numpy as np
import pytest

import pboost as pb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X[:, 0] > 0
HIDDEN = np.zeros((40, 3), dtype=bool)
HIDDEN[7, 2] = HIDDEN[9, 0] = True
MASKED = np.ma.masked_array(X, HIDDEN)
ROW = np.arange(40) == 5

FITS = {
    "tree": lambda X, y=Y, **k: pb.fit_boosted_tree(X, y, nodes=3, **k),
    "chain": lambda X, y=Y, **k: pb.fit_adaboost(X, y, rounds=3, **k),
    "real": lambda X, y=Y, **k: pb.fit_adaboost_real(X, y, rounds=3, **k),
    "cart": lambda X, y=Y, **k: pb.fit_cart(X, y, **k),
    "forest": lambda X, y=Y, **k: pb.fit_forest(X, y, members=2, rng=0, **k),
    "stagewise": lambda X, y=Y, **k: pb.fit_stagewise(X, y, loss="logistic", steps=2, **k),
    "probit": lambda X, y=Y, **k: pb.fit_probitboost(X, y, steps=2, **k),
    "rest": lambda X, y=Y, **k: pb.fit_one_vs_rest(pb.fit_adaboost, X, y, rounds=2, **k),
    "samme": lambda X, y=Y, **k: pb.fit_samme(X, y, base=pb.fit_cart, rounds=1, **k),
    "bagging": lambda X, y=Y, **k: pb.fit_bagging(pb.fit_cart, X, y, members=2, rng=0, **k),
    "folds": lambda X, y=Y, **k: pb.cross_validate(pb.fit_cart, X, y, folds=2, rng=0, **k),
}
READERS = {
    "sort": pb.sort_columns,
    "bin": pb.bin_columns,
    "one_hot": lambda X: pb.one_hot(X, columns=[0]),
    "oracle": lambda X: pb.fit_adaboost(
        X, Y, rounds=1, weak=pb.weak.oracle(lambda *_: lambda rows, rng: np.ones(len(rows)))
    ),
}


@pytest.mark.parametrize("fit", [*FITS.values(), *READERS.values()], ids=[*FITS, *READERS])
@pytest.mark.parametrize("given", [MASKED, list(MASKED)], ids=["matrix", "rows"])
def test_features(fit, given):
    with pytest.raises(ValueError, match=r"^X: expected an array without a mask.*\[7, 2\].*filled"):
        fit(given)


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
    with pytest.raises(ValueError, match=r"^validation: X: expected an array without a mask"):
        FITS["rest"](X, validation=(MASKED, Y))
    with pytest.raises(ValueError, match=r"^y: expected an array without a mask"):
        FITS["rest"](X, validation=(X, np.ma.masked_array(Y, ROW)))


@pytest.mark.parametrize("kind", [k for k in FITS if k != "folds"])
def test_functions_of_a_model(kind):
    model = FITS[kind](X)
    for function in (pb.predict, pb.predict_proba, pb.evaluation_cost):
        with pytest.raises(ValueError, match=r"^X: expected an array without a mask"):
            function(model, MASKED)
    with pytest.raises(ValueError, match=r"^y: expected an array without a mask"):
        pb.permutation_importance(model, X, np.ma.masked_array(Y, ROW))


def test_functions_of_labels():
    model = FITS["tree"](X)
    for function in (pb.certificate, pb.margins, pb.normalised_margins):
        with pytest.raises(ValueError, match=r"^y: expected an array without a mask"):
            function(model, X, np.ma.masked_array(Y, ROW))
    with pytest.raises(ValueError, match=r"^X: expected an array without a mask"):
        pb.explain(model, MASKED[7])


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_masks_that_hide_nothing(fit):
    open_ = [np.ma.masked_array(a, np.zeros(a.shape, dtype=bool)) for a in (X, Y, np.ones(40))]
    fit(open_[0], open_[1], sample_weight=open_[2])


def test_the_values_of_an_open_mask_are_read():
    model = FITS["tree"](X)
    same = FITS["tree"](np.ma.masked_array(X), np.ma.masked_array(Y))
    assert same.vote.tobytes() == model.vote.tobytes()
    assert (pb.predict(model, np.ma.masked_array(X)) == pb.predict(model, X)).all()
