"""Bad options of uncertain answers and of what is built on them: clear errors."""

import numpy as np
import pytest

import pboost as pb

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 3))
Y = np.where(X[:, 1] + RNG.normal(size=40) > 0, "yes", "no")
X.setflags(write=False)

FITS = {
    "adaboost": lambda **k: pb.fit_adaboost(X, Y, **({"n_estimators": 4} | k)),
    "tree": lambda **k: pb.fit_boosted_tree(X, Y, **({"max_nodes": 4} | k)),
    "matryoshka": lambda **k: pb.fit_matryoshka(X, Y, **({"shape": (2, 2)} | k)),
}
builders = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
REFUSED = (ValueError, TypeError)


# Observation models


@pytest.mark.parametrize("rate", [-0.1, -1e-300, 0.5, 0.75, 1.0, 3, np.nan, np.inf, -np.inf])
def test_rates_out_of_range(rate):
    with pytest.raises(ValueError, match="flip_rate"):
        pb.observation.flip(rate)


@pytest.mark.parametrize("rate", ["0.1", None, [0.1], 0.1j, True])
def test_rates_that_are_no_numbers(rate):
    with pytest.raises(REFUSED, match="flip_rate"):
        pb.observation.flip(rate)


def test_rates_in_range():
    for rate in (0, 0.0, np.float32(0.25), np.nextafter(0.5, 0)):
        assert pb.observation.flip(rate).flip_rate == rate
    with pytest.raises(TypeError):
        pb.observation.flip()


@pytest.mark.parametrize("strength", [0.0, -0.1, 1.1, np.nan])
def test_strengths_out_of_range(strength):
    with pytest.raises(ValueError, match="strength: expected"):
        pb.observation.adatree2(strength)


def test_strength_lies_between_exact_and_adatree2():
    reach = np.array([[0.1, 0.4, 0.0], [0.3, 0.0, 0.2]])
    exact, full = pb.observation.exact().table(reach[:, :2]), pb.observation.adatree2(1.0)
    stay = (1 + np.sqrt(reach[0, 0] / 0.4)) / 2
    assert full.table(reach)[0, 0] == 1 - stay
    for strength in (0.3, 1e-12):
        table = pb.observation.adatree2(strength).table(reach)
        assert table.shape == (2, 3)
        assert table[0, 0] == pytest.approx(strength * (1 - stay), rel=1e-3)
    np.testing.assert_allclose(table[:, :2], exact, atol=1e-12)


@builders
@pytest.mark.parametrize(
    "observation",
    ["flip", None, 0.1, pb.observation.flip, pb.weak.stump(), {"kind": "flip", "flip_rate": 0.1}],
    ids=["name", "None", "number", "function", "stump", "dict"],
)
def test_observation_of_a_wrong_type(fit, observation):
    with pytest.raises(TypeError, match=r"observation: expected .*pboost\.observation.*got"):
        fit(observation=observation)


@builders
def test_models_are_recorded(fit):
    for kind in ("exact", "half", "uniform", "adatree2"):
        made = fit(observation=getattr(pb.observation, kind)())
        options = {"strength": 1.0} if kind == "adatree2" else {}
        assert made.settings["observation"] == {"kind": kind, **options}
        assert (made.answer is None) == (kind == "exact")
    made = fit(observation=pb.observation.flip(0.125))
    assert made.settings["observation"] == {"kind": "flip", "flip_rate": 0.125}
    assert made.answer.shape == (made.n_nodes, 2, 2)
    assert made.answer.dtype == np.float64
    with pytest.raises(ValueError):
        made.answer[0, 0, 0] = 1


# Builders


@pytest.mark.parametrize("growth", ["best", "largest-bound", "Largest-Bound", "", None, 1])
@pytest.mark.parametrize("fit", [FITS["tree"], FITS["matryoshka"]], ids=["tree", "matryoshka"])
def test_unknown_growth(fit, growth):
    with pytest.raises(REFUSED, match=r"growth.*(largest_bound|nested)"):
        fit(growth=growth)


@pytest.mark.parametrize("growth", ["largest_error", "look_ahead", "breadth_first"])
def test_growths_of_trees_are_refused_for_matryoshki(growth):
    """Several paths lead to an exit: what it would answer is not one number."""
    with pytest.raises(ValueError, match="growth"):
        FITS["matryoshka"](growth=growth)


@pytest.mark.parametrize(
    "shape",
    [
        (),
        [],
        (0,),
        (2, 0),
        (0, 2),
        (-1, 2),
        (2.5, 2),
        (2, np.nan),
        ("2", "2"),
        (None, 2),
        8,
        "88",
        ((2, 2),),
        (True, 2),
        (2, 2**40),
    ],
    ids=str,
)
def test_shape(shape):
    with pytest.raises(REFUSED, match="shape"):
        FITS["matryoshka"](shape=shape)


@pytest.mark.parametrize("shape", [(3,), [2, 2], np.array([2, 2]), (np.int32(2), 2), (1, 1, 1)])
def test_shapes_that_are_fine(shape):
    made = FITS["matryoshka"](shape=shape)
    assert 1 <= made.n_nodes <= np.prod(shape)


def test_default_shape():
    made = pb.fit_matryoshka(X, Y, observation=pb.observation.flip(0.1))
    assert made.settings["shape"] == [8, 8]
    assert made.settings["max_nodes"] is None
    assert made.n_nodes == 64


def test_defaults_of_other_matryoshki():
    greedy = pb.fit_matryoshka(X, Y, growth="greedy", observation=pb.observation.flip(0.1))
    assert greedy.settings["max_nodes"] == 128
    chain = pb.fit_matryoshka(X, Y, join="all", observation=pb.observation.flip(0.1))
    assert (chain.settings["shape"], chain.n_nodes) == ([8, 30], 240)
    for join, rate in (("all", 0.3), ("sign", 1.0)):
        model = pb.fit_matryoshka(X, Y, shape=(2, 2), join=join)
        assert model.settings["learning_rate"] == rate
        same = pb.fit_matryoshka(X, Y, shape=(2, 2), join=join, learning_rate=rate)
        assert np.array_equal(same.vote, model.vote)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"growth": "greedy", "max_nodes": 4, "shape": (2, 2)},
            'shape: expected None with growth="greedy"',
        ),
        ({"growth": "nested", "max_nodes": 4}, 'max_nodes: expected None with growth="nested"'),
        ({"growth": "greedy", "max_nodes": 4, "join": "all"}, 'join: expected "sign"'),
        ({"growth": "greedy", "max_nodes": 0}, "max_nodes"),
        ({"growth": "greedy", "max_nodes": 2.5}, "max_nodes"),
        ({"growth": "greedy", "max_nodes": True}, "max_nodes"),
        ({"growth": "greedy", "max_nodes": "4"}, "max_nodes"),
        ({"growth": "greedy", "max_nodes": 4, "collect": "none"}, "collect"),
        ({"growth": "greedy", "max_nodes": 4, "join": "none"}, "join"),
    ],
)
def test_growth_and_size(options, message):
    with pytest.raises(REFUSED, match=message):
        pb.fit_matryoshka(X, Y, **options)


def test_greedy_settings():
    made = pb.fit_matryoshka(X, Y, growth="greedy", max_nodes=np.int64(4))
    assert (made.settings["growth"], made.settings["max_nodes"]) == ("greedy", 4)
    assert made.settings["shape"] is None


@pytest.mark.parametrize(
    ("name", "value"), [("collect", "add"), ("collect", None), ("join", "both"), ("join", True)]
)
def test_collect_and_join(name, value):
    with pytest.raises(REFUSED, match=f"{name}.*(additive|sign)"):
        FITS["matryoshka"](**{name: value})


@pytest.mark.parametrize("observation", [pb.observation.exact(), pb.observation.flip(0.1)])
@pytest.mark.parametrize("target", [0.0, 1.0, -0.5, 1.5, np.nan, np.inf, "0.5", [0.5]])
def test_target_certificate(observation, target):
    with pytest.raises(REFUSED, match="target_certificate"):
        FITS["tree"](observation=observation, target_certificate=target)


@builders
@pytest.mark.parametrize("kind", ["exact", "adatree2"])
def test_inputs_are_left_alone(fit, kind):
    before = X.copy()
    fit(observation=getattr(pb.observation, kind)())
    np.testing.assert_array_equal(X, before)


# Evaluation


@builders
@pytest.mark.parametrize("kind", ["uniform", "adatree2"])
def test_routes_of_answers_that_depend_on_the_class(fit, kind):
    """The error names the model of the answers, says why, and what can be done."""
    model = fit(observation=getattr(pb.observation, kind)())
    why = rf"(?is)(?=.*route)(?=.*{kind})(?=.*depend)(?=.*class)(?=.*hard)"
    for route in ("expected", "sample"):
        with pytest.raises(ValueError, match=why):
            pb.decision_function(model, X, route=route)
    with pytest.raises(ValueError, match=rf"(?is)(?=.*{kind})(?=.*depend)(?=.*class)"):
        pb.inspection.reach(model, X)
    assert pb.inspection.reach(model, X, Y).shape == (40, model.n_nodes)
    assert pb.decision_function(model, X, route="hard").shape == (40,)


@pytest.mark.parametrize("route", ["soft", "Hard", "", None, 0, b"hard"])
def test_unknown_route(route):
    model = FITS["tree"](observation=pb.observation.flip(0.1))
    with pytest.raises(REFUSED, match=r"route.*hard"):
        pb.decision_function(model, X, route=route)


@pytest.mark.parametrize("draws", [0, -1, 1.5, "3", None, np.nan])
def test_draws(draws):
    model = FITS["tree"](observation=pb.observation.flip(0.1))
    with pytest.raises(REFUSED, match="draws"):
        pb.decision_function(model, X, route="sample", draws=draws)


@pytest.mark.parametrize("kind", ["half", "adatree2"])
def test_labels_of_reach_and_certificate(kind):
    model = FITS["tree"](observation=getattr(pb.observation, kind)())
    for y in (Y[:-1], np.where(Y == "no", "nein", Y), np.array([0, 1] * 20), Y[:, None]):
        with pytest.raises(REFUSED, match=r"\by\b"):
            pb.inspection.reach(model, X, y)
        with pytest.raises(REFUSED, match=r"\by\b"):
            pb.certificate(model, X, y)


@pytest.mark.parametrize("value", [-np.inf, np.inf])
@pytest.mark.parametrize("route", ["hard", "expected", "sample"])
def test_not_finite(route, value):
    model = FITS["matryoshka"](observation=pb.observation.flip(0.1))
    Z = X.copy()
    Z[17, 2] = value
    for call in (pb.inspection.reach, lambda m, A: pb.decision_function(m, A, route=route)):
        with pytest.raises(ValueError, match=r"(?=.*\b17\b)(?=.*\b2\b)"):
            call(model, Z)
        with pytest.raises(ValueError, match="3"):
            call(model, X[:, :2])


@pytest.mark.parametrize("route", ["hard", "expected", "sample"])
def test_no_rows(route):
    model = FITS["tree"](observation=pb.observation.flip(0.1))
    assert pb.decision_function(model, X[:0], route=route).shape == (0,)
    assert pb.inspection.reach(model, X[:0]).shape == (0, model.n_nodes)


def test_soft_trees_need_an_end():
    X, y = np.arange(6.0)[:, None], [0, 0, 1, 0, 1, 1]
    with pytest.raises(ValueError, match=r"nodes.*max_depth"):
        pb.fit_boosted_tree(X, y, max_nodes=None, observation=pb.observation.flip(0.1))
    model = pb.fit_boosted_tree(
        X, y, max_nodes=None, max_depth=2, observation=pb.observation.flip(0.1)
    )
    assert model.n_nodes == 3
