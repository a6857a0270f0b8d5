"""`permutation_importance` answered zeros to labels that the model does not know.

Functions that compare labels with those of a model refuse others, and say which, and where.
"""

import numpy as np
import pytest

import pboost as pb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
TWO = np.where(X[:, 0] > 0, "ash", "oak")
THREE = np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0], [-0.5, 0.5])]
FITS = {
    "tree": lambda y: pb.fit_boosted_tree(X, y, max_nodes=2),
    "real": lambda y: pb.fit_real_adaboost(X, y, n_estimators=2),
    "cart": lambda y: pb.fit_cart(X, y, max_depth=2),
    "forest": lambda y: pb.fit_random_forest(X, y, n_estimators=2, rng=0),
    "bagging": lambda y: pb.fit_bagging(pb.fit_cart, X, y, n_estimators=2, rng=0),
    "rest": lambda y: pb.fit_one_vs_rest(pb.fit_adaboost, X, y, n_estimators=2),
    "samme": lambda y: pb.fit_samme(X, y, base_learner=pb.fit_cart, n_estimators=2),
    "stagewise": lambda y: pb.fit_gradient_boosting(X, y, loss="log_loss", n_estimators=2),
    "probit": lambda y: pb.fit_probitboost(X, y, max_iter=2),
}
UNKNOWN = TWO.copy()
UNKNOWN[11] = "yew"
REFUSED = r"^y: expected class labels of the model, \['ash', .*'oak'\], got 'yew' in row 11"


@pytest.mark.parametrize("kind", FITS)
def test_permutation_importance(kind):
    model = FITS[kind](TWO)
    with pytest.raises(ValueError, match=REFUSED):
        pb.inspection.permutation_importance(model, X, UNKNOWN, rng=0)
    for numbers in (np.arange(40), TWO == "ash"):
        with pytest.raises(ValueError, match=r"^y: expected class labels of the model.*in row 0"):
            pb.inspection.permutation_importance(model, X, numbers, rng=0)
    assert pb.inspection.permutation_importance(model, X, TWO, rng=0)[0].mean() > 0.1
    # Labels of one class only are no others.
    assert pb.inspection.permutation_importance(model, X, np.full(40, "oak"), rng=0).shape == (
        2,
        10,
    )


def test_strings_are_no_numbers():
    model = pb.fit_cart(X, X[:, 0] > 0)
    with pytest.raises(
        ValueError, match=r"^y: expected class labels of the model.*got 'True' in row"
    ):
        pb.inspection.permutation_importance(model, X, (X[:, 0] > 0).astype(str), rng=0)
    numbers = pb.inspection.permutation_importance(model, X, (X[:, 0] > 0).astype(int), rng=0)
    assert numbers[0].mean() > 0.1


def test_more_classes():
    model = FITS["cart"](THREE)
    with pytest.raises(ValueError, match=REFUSED):
        pb.inspection.permutation_importance(model, X, UNKNOWN, rng=0)
    with pytest.raises(ValueError, match=REFUSED):
        pb.models.cost_complexity_pruning_path(model, X, UNKNOWN)


def test_functions_of_two_classes():
    model = FITS["tree"](TWO)
    theta = [0.0]
    for function in (
        pb.certificate,
        pb.inspection.margins,
        pb.inspection.normalized_margins,
        lambda m, X, y: pb.inspection.margin_error(m, X, y, theta),
        lambda m, X, y: pb.inspection.margin_bound(m, X, y, theta),
        lambda m, X, y: pb.inspection.margin_curve(m, X, y, theta),
        lambda m, X, y: pb.continue_fit(m, X, y, max_nodes=1),
    ):
        with pytest.raises(ValueError, match=REFUSED):
            function(model, X, UNKNOWN)
    with pytest.raises(ValueError, match=r"^validation: y: expected class labels of the model"):
        pb.fit_boosted_tree(X, TWO, max_nodes=2, validation=(X, UNKNOWN))
