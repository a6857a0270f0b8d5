"""Oracles, estimators and sampling that cannot work: what is said of them."""

import numpy as np
import pytest

import pboost as pb

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 2))
Y = np.where(X[:, 0] > 0, "yes", "no")
FITS = {
    "adaboost": (pb.fit_adaboost, {"n_estimators": 3}),
    "tree": (pb.fit_boosted_tree, {"max_nodes": 3}),
    "matryoshka": (pb.fit_matryoshka, {"shape": (2, 2)}),
}
builders = pytest.mark.parametrize("builder", FITS)
observations = pytest.mark.parametrize(
    "observation",
    [pb.observation.exact(), pb.observation.flip(0.1), pb.observation.sampled(3)],
    ids=lambda o: o.kind,
)


def fit(builder, weak, observation=None, features=X, **options):
    build, size = FITS[builder]
    made = pb.observation.exact() if observation is None else observation
    return build(features, Y, weak_learner=weak, observation=made, rng=0, **size, **options)


def good(X, rng):
    return np.where(X[:, 0] > rng.normal(), 1, -1)


def answering(answer, after=0):
    """Return an oracle whose classifiers are fine but from number `after` on."""
    trained = []

    def train(X, y, weight, rng):
        trained.append(0)
        return answer if len(trained) > after else good

    return pb.weak.oracle(train)


def failing(*_):
    raise ZeroDivisionError("oops")


def no_clock():
    return 0.0


# Options of sampling


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"n_draws": "first"}, "n_draws"),
        ({"n_draws": None}, "n_draws"),
        ({"n_draws": 0}, "n_draws"),
        ({"n_draws": 2.5}, "n_draws"),
        ({"n_draws": True}, "n_draws"),
        ({"n_draws": 65_536}, "n_draws"),
        ({"estimator": "MAP"}, "estimator"),
        ({"estimator": None}, "estimator"),
        ({"max_draws": 0}, "max_draws"),
        ({"max_draws": 1e3}, "max_draws"),
        ({"max_draws": 65_536}, "max_draws"),
        ({"n_draws": 5, "max_draws": 10}, "max_draws"),
        ({"clock": no_clock}, "clock"),
        ({"n_draws": 5, "clock": no_clock}, "clock"),
        ({"n_draws": "stopwatch", "clock": 3.0}, "clock"),
        ({"base": "flip"}, "base"),
        ({"base": pb.observation.sampled()}, "base"),
    ],
    ids=lambda value: str(value).split(" at 0x")[0],
)
def test_options_of_sampled(arguments, name):
    with pytest.raises((ValueError, TypeError), match=rf"^{name}: "):
        pb.observation.sampled(**arguments)


def test_options_that_are_fine():
    assert pb.observation.sampled(np.int32(4)).n_draws == 4
    assert pb.observation.sampled().max_draws == 1000
    assert pb.observation.sampled().settings() == {
        "kind": "sampled",
        "n_draws": "first_increase",
        "estimator": "map",
        "max_draws": 1000,
        "base": {"kind": "exact"},
    }


@builders
def test_pairs_that_do_not_go_together(builder):
    made = pb.observation.sampled(3, base=pb.observation.flip(0.1))
    for weak in (pb.weak.oracle(lambda *_: good), pb.weak.from_estimator(Estimator())):
        with pytest.raises(ValueError, match=r"observation: .*themselves.*exact\(\).*Flip"):
            fit(builder, weak, made)


@builders
def test_answers_that_need_a_number_to_compare(builder):
    class Blurred(pb.observation.Observation):
        kind = "blurred"

    with pytest.raises(ValueError, match=r"observation: 'blurred' requires a weak learner"):
        fit(builder, pb.weak.oracle(lambda *_: good), Blurred())


def test_soft_trees_of_samples_need_an_end():
    with pytest.raises(ValueError, match=r"nodes.*max_depth"):
        pb.fit_boosted_tree(X, Y, max_nodes=None, observation=pb.observation.sampled(3))


# Oracles


@pytest.mark.parametrize("train", [None, 3, "train", [lambda: 0]])
def test_oracles_that_are_no_functions(train):
    with pytest.raises(TypeError, match=r"train: expected a function"):
        pb.weak.oracle(train)


@builders
@observations
def test_train_that_fails(builder, observation):
    with pytest.raises(RuntimeError, match=r"weak classifier 0: train\(\) failed.*oops") as error:
        fit(builder, pb.weak.oracle(failing), observation)
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    with pytest.raises(TypeError, match=r"weak classifier 0: train\(\).*function.*None"):
        fit(builder, pb.weak.oracle(lambda *_: None), observation)


@builders
@observations
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (failing, "failed.*oops"),
        (lambda X, rng: None, r"shape \(30,\), got \(\)"),
        (lambda X, rng: np.ones(len(X) - 1), r"shape \(30,\), got \(29,\)"),
        (lambda X, rng: np.ones((len(X), 1)), r"shape \(30,\), got \(30, 1\)"),
        (lambda X, rng: np.zeros(len(X)), "-1 and .1, got 0|got np.float64.0"),
        (lambda X, rng: np.where(X[:, 0] > 0, 1, 2), "-1 and .1, got .*2"),
        (lambda X, rng: X[:, 0] > 0, "-1 and .1, got .*(True|False)"),
        (lambda X, rng: np.full(len(X), np.nan), "-1 and .1, got .*nan"),
        (lambda X, rng: np.full(len(X), "+1"), "-1 and .1, got .*1"),
    ],
    ids=["raises", "None", "short", "matrix", "zero", "two", "booleans", "nan", "text"],
)
def test_answers_that_are_none(builder, observation, answer, why):
    with pytest.raises((RuntimeError, ValueError), match=rf"weak classifier 0: answer\(\).*{why}"):
        fit(builder, answering(answer), observation)


def test_the_weak_classifier_is_named():
    for after in (1, 2):
        with pytest.raises(RuntimeError, match=rf"weak classifier {after}: answer\(\) failed"):
            fit("adaboost", answering(failing, after), pb.observation.sampled(2))


def test_errors_at_prediction_name_the_node():
    broken = []

    def train(X, y, weight, rng):
        number = len(broken)
        broken.append(False)

        def answer(X, rng):
            if broken[number]:
                raise KeyError("gone")
            return good(X, rng)

        return answer

    model = fit("adaboost", pb.weak.oracle(train), pb.observation.sampled(2))
    broken[1] = True
    with pytest.raises(RuntimeError, match=r"node 1: answer\(\) failed.*gone"):
        pb.predict(model, X)


def test_interrupts_pass():
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit("adaboost", pb.weak.oracle(stop))


# Estimators


class Estimator:
    """Says what it is told to."""

    def __init__(self, found=None, classes=(-1, 1)):
        self.found, self.classes = found, classes

    def fit(self, X, y, sample_weight):
        self.classes_ = np.array(self.classes)

    def predict_proba(self, X):
        if self.found is not None:
            return self.found(X)
        p = np.where(X[:, 0] > 0, 0.9, 0.2)
        return np.column_stack([1 - p, p])


def test_estimators_that_are_none():
    class Half:
        def fit(self, X, y):
            pass

    for wrong in (None, Half(), Half, 3, "tree"):
        with pytest.raises(TypeError, match=r"estimator: expected an object with"):
            pb.weak.from_estimator(wrong)


@builders
@observations
@pytest.mark.parametrize(
    ("estimator", "why"),
    [
        (Estimator(failing), r"predict_proba\(\) failed.*oops"),
        (Estimator(classes=(1,)), r"classes_.*got \[1\]"),
        (Estimator(classes=(0, 1)), r"classes_.*got \[0, 1\]"),
        (Estimator(lambda X: np.ones((len(X), 1))), r"shape \(30, 2\), got \(30, 1\)"),
        (Estimator(lambda X: np.ones(len(X))), r"shape \(30, 2\), got \(30,\)"),
        (Estimator(lambda X: np.full((len(X), 2), np.nan)), "probabilities in .0, 1., got nan"),
        (Estimator(lambda X: np.full((len(X), 2), 1.5)), "probabilities in .0, 1., got 1.5"),
        (Estimator(lambda X: np.full((len(X), 2), -0.5)), "probabilities in .0, 1., got -0.5"),
        (Estimator(lambda X: np.full((len(X), 2), "p")), r"predict_proba\(\) failed.*ValueError"),
    ],
    ids=[
        "raises",
        "one class",
        "other classes",
        "one column",
        "no columns",
        "nan",
        "above 1",
        "below 0",
        "text",
    ],
)
def test_estimators_that_go_wrong(builder, observation, estimator, why):
    weak = pb.weak.from_estimator(estimator)
    with pytest.raises((RuntimeError, ValueError), match=f"weak classifier 0: .*{why}"):
        fit(builder, weak, observation)


def test_fit_that_fails():
    class Unweighted(Estimator):
        def fit(self, X, y):
            pass

    with pytest.raises(RuntimeError, match=r"weak classifier 0: fit\(\) failed.*sample_weight"):
        fit("tree", pb.weak.from_estimator(Unweighted()))


# Rows


@builders
def test_rows_that_are_none(builder):
    weak = pb.weak.oracle(lambda *_: good)
    for wrong, error in (
        (pb.data.sort_columns(X), TypeError),
        (pb.data.bin_columns(X), TypeError),
        (3.0, ValueError),
        ([[1.0], [2.0, 3.0]], ValueError),
        (X[:, :0], ValueError),
        (X[:-1], ValueError),
    ):
        with pytest.raises(error, match=r"^(X|y): "):
            fit(builder, weak, features=wrong)
    model = fit(builder, weak, pb.observation.sampled(2))
    for wrong in (X[:, :1], X[0], X[:, :, None]):
        with pytest.raises(ValueError, match=r"^X: expected"):
            pb.predict(model, wrong)


@builders
def test_inputs_are_left_alone(builder):
    before, labels, weight = X.copy(), Y.copy(), np.ones(30)
    fit(builder, pb.weak.oracle(lambda *_: good), pb.observation.sampled(2), sample_weight=weight)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(Y, labels)
    np.testing.assert_array_equal(weight, np.ones(30))


def test_values_are_not_checked():
    values = X.copy()
    values[3, 1] = np.nan
    model = fit("adaboost", pb.weak.oracle(lambda *_: good), features=values)
    assert pb.predict(model, values).shape == (30,)
