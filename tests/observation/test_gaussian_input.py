"""Gaussian answers: bad options, what is recorded and stored, and evaluation's own errors."""

import dataclasses
import pickle

import numpy as np
import pytest
from compare import assert_identical

import pboost as pb

RNG = np.random.default_rng(7)
X = RNG.normal(size=(40, 3))
Y = np.where(X[:, 1] + RNG.normal(size=40) > 0, "yes", "no")
CELLS = RNG.uniform(0.1, 0.5, X.shape)
X.setflags(write=False)
CELLS.setflags(write=False)

FITS = {
    "adaboost": lambda X=X, **k: pb.fit_adaboost(X, Y, **({"n_estimators": 4} | k)),
    "tree": lambda X=X, **k: pb.fit_boosted_tree(X, Y, **({"max_nodes": 4} | k)),
    "matryoshka": lambda X=X, **k: pb.fit_matryoshka(X, Y, **({"shape": (2, 2)} | k)),
}
builders = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
REFUSED = (ValueError, TypeError)


def gaussian_tree(sigma, **options):
    return FITS["tree"](observation=pb.observation.gaussian(sigma), **options)


# The observation model


@pytest.mark.parametrize(
    "sigma",
    [
        -1,
        np.nan,
        np.inf,
        -np.inf,
        [0.1, -1.0, 1],
        [[0.1, np.inf]],
        "0.3",
        None,
        ["a"],
        True,
        0.1j,
        {"sigma": 1},
        np.ones((2, 2, 2)),
        [[1.0], [1.0, 2.0]],
    ],
    ids=str,
)
def test_sigma_that_is_no_standard_deviation(sigma):
    with pytest.raises(REFUSED, match="sigma: expected"):
        pb.observation.gaussian(sigma)


def test_the_message_names_the_place():
    with pytest.raises(ValueError, match=r">= 0.*got -1\.0 at \[1, 0\]"):
        pb.observation.gaussian([[1, 1], [-1, 1]])


def test_data_frames_are_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match=r"sigma.*data frame"):
        pb.observation.gaussian(pandas.DataFrame(CELLS))


def test_the_model_keeps_a_copy():
    sigma = np.array([0.1, 0.2, 0.3])
    made = pb.observation.gaussian(sigma)
    sigma[:] = 5
    assert made.sigma.tolist() == [0.1, 0.2, 0.3]
    with pytest.raises(ValueError):
        made.sigma[0] = 1
    assert made == pb.observation.gaussian([0.1, 0.2, 0.3])
    assert hash(made) == hash(pb.observation.gaussian([0.1, 0.2, 0.3]))
    assert made != pb.observation.gaussian(0.1)
    assert pickle.loads(pickle.dumps(made)) == made
    assert "(40, 3)" in repr(pb.observation.gaussian(CELLS))


@builders
@pytest.mark.parametrize("sigma", [[0.1], [0.1] * 4, np.ones((39, 3)), np.ones((40, 2)), CELLS.T])
def test_sigma_of_another_shape_than_the_data(fit, sigma):
    with pytest.raises(ValueError, match=r"sigma: expected.*\(3,\).*\(40, 3\).*got"):
        fit(observation=pb.observation.gaussian(sigma))


@builders
def test_exact_search_is_refused(fit):
    with pytest.raises(ValueError, match=r'gaussian.*search="exact"'):
        fit(observation=pb.observation.gaussian(0.1), weak_learner=pb.weak.stump(search="exact"))


@builders
def test_binned_columns_are_refused(fit):
    with pytest.raises(ValueError, match=r"X.*gaussian.*BinnedColumns"):
        fit(X=pb.data.bin_columns(X), observation=pb.observation.gaussian(0.1))


@builders
def test_inputs_are_left_alone(fit):
    before, cells = X.copy(), CELLS.copy()
    fit(observation=pb.observation.gaussian(CELLS))
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(CELLS, cells)


def test_folds_have_other_rows():
    noise = pb.observation.gaussian(CELLS)
    with pytest.raises(ValueError, match=r"sigma: expected.*got shape \(40, 3\)"):
        pb.cross_validate(
            lambda A, b: pb.fit_adaboost(A, b, n_estimators=2, observation=noise), X, Y
        )
    noise = pb.observation.gaussian([0.1, 0.2, 0.3])
    result = pb.cross_validate(
        lambda A, b: pb.fit_adaboost(A, b, n_estimators=2, observation=noise), X, Y, cv=3
    )
    assert result.certificate_note


# What a model carries


@builders
def test_what_is_recorded(fit):
    for sigma, recorded, kept in (
        (0.5, 0.5, [0.5] * 3),
        ([0.1, 0.2, 0.3], [0.1, 0.2, 0.3], [0.1, 0.2, 0.3]),
        (CELLS, "per cell", [np.nan] * 3),
    ):
        model = fit(observation=pb.observation.gaussian(sigma))
        assert model.settings["observation"] == {"kind": "gaussian", "sigma": recorded}
        np.testing.assert_array_equal(model.sigma, kept)
        assert model.answer is None
        assert not model.is_exact
        assert not model.needs_class
        assert "under the observation model" in model.certificate_note
        assert "under the observation model" in pb.describe(model)
        with pytest.raises(ValueError):
            model.sigma[0] = 1
    assert fit().sigma is None
    assert fit().is_exact


@pytest.mark.parametrize("sigma", [0.5, [0.1, 0.2, 0.3], CELLS], ids=["scalar", "feature", "cell"])
def test_files_and_pickles(tmp_path, sigma):
    model = gaussian_tree(sigma)
    pb.save(model, tmp_path / "model.npz")
    for again in (pb.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert_identical(model, again)
        np.testing.assert_array_equal(model.sigma, again.sigma)
        scores = pb.decision_function(again, X, route="expected", sigma=CELLS)
        expected = pb.decision_function(model, X, route="expected", sigma=CELLS)
        np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize(
    "sigma", [[0.1, 0.2], [0.1, np.nan, 0.2], [0.1, -0.1, 0.2], [0.1, np.inf, 0.2], [[0.1] * 3]]
)
def test_graphs_with_a_wrong_sigma(sigma):
    model = gaussian_tree(0.5)
    fields = {
        item.name: getattr(model, item.name) for item in dataclasses.fields(model) if item.init
    }
    with pytest.raises(ValueError, match="sigma"):
        pb.models.DecisionGraph(**(fields | {"sigma": np.array(sigma)}))
    with pytest.raises(ValueError, match="sigma"):
        pb.models.DecisionGraph(**(fields | {"answer": np.full((model.n_nodes, 2, 2), 0.5)}))


def test_data_without_a_split():
    ones = np.ones((40, 3))
    model = FITS["tree"](X=ones, observation=pb.observation.gaussian(1.0))
    assert model.n_nodes == 0
    assert pb.inspection.reach(model, ones).shape == (40, 0)
    scores = pb.decision_function(model, ones, route="expected")
    np.testing.assert_array_equal(scores, np.full(40, model.bias))
    assert pb.certificate(model, ones, Y) == pytest.approx(pb.certificate(model), rel=1e-12)


# Evaluation


ASKED = {
    "expected": lambda m, A, **k: pb.decision_function(m, A, route="expected", **k),
    "sample": lambda m, A, **k: pb.decision_function(m, A, route="sample", **k),
    "reach": pb.inspection.reach,
    "certificate": lambda m, A, **k: pb.certificate(m, A, Y[: len(A)], **k),
}
asked = pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)


@asked
def test_a_model_of_cells_needs_sigma(ask):
    model = gaussian_tree(CELLS)
    with pytest.raises(ValueError, match=r"sigma: expected.*these rows"):
        ask(model, X)
    ask(model, X, sigma=0.3)


@asked
@pytest.mark.parametrize("observation", [pb.observation.exact(), pb.observation.flip(0.1)])
def test_sigma_for_another_model(ask, observation):
    with pytest.raises(
        ValueError, match=r"sigma: expected None for a model that was not fitted with sigma"
    ):
        ask(FITS["tree"](observation=observation), X, sigma=0.3)


@asked
@pytest.mark.parametrize(
    "sigma", [-0.5, -1.0, np.nan, "1", [0.1] * 2, np.ones((39, 3)), np.ones((1, 3)), [[0.1] * 3]]
)
def test_bad_sigma(ask, sigma):
    with pytest.raises(REFUSED, match="sigma: expected"):
        ask(gaussian_tree(0.3), X, sigma=sigma)


def test_the_hard_route_ignores_noise():
    with pytest.raises(ValueError, match=r"sigma.*hard"):
        pb.decision_function(gaussian_tree(0.3), X, sigma=0.3)
    with pytest.raises(ValueError, match=r"sigma: expected None without X and y"):
        pb.certificate(gaussian_tree(0.3), sigma=0.3)


@pytest.mark.parametrize("sigma", [None, 0.3, [0.1, 0.2, 0.3], CELLS[:0]], ids=str)
def test_no_rows(sigma):
    model = gaussian_tree(0.3)
    for route in ("expected", "sample"):
        assert pb.decision_function(model, X[:0], route=route, sigma=sigma).shape == (0,)
    assert pb.inspection.reach(model, X[:0], sigma=sigma).shape == (0, model.n_nodes)


def test_sigma_goes_with_the_columns_of_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    per_feature = np.array([0.1, 0.2, 0.9])
    model = FITS["tree"](X=frame, observation=pb.observation.gaussian(per_feature), max_nodes=8)
    turned = [2, 0, 1]
    for sigma in (per_feature, CELLS):
        expected = pb.decision_function(model, X, route="expected", sigma=sigma)
        scores = pb.decision_function(
            model, frame.iloc[:, turned], route="expected", sigma=sigma[..., turned]
        )
        np.testing.assert_array_equal(scores, expected)
