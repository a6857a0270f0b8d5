"""Weak learners and observation models by kind: what makes them, and new ones in one place."""

import numpy as np
import pytest

import pboost as pb
from pboost.observation.answers import TableObservation
from pboost.weak.stump_search import StumpSearch

X = np.random.default_rng(0).normal(size=(80, 3))
Y = X[:, 0] + 0.5 * X[:, 1] > 0
BUILDERS = {
    "chain": lambda **options: pb.fit_adaboost(X, Y, n_estimators=6, **options),
    "tree": lambda **options: pb.fit_boosted_tree(X, Y, max_nodes=6, **options),
    "matryoshka": lambda **options: pb.fit_matryoshka(X, Y, shape=(2, 3), **options),
}
builders = pytest.mark.parametrize("fit", BUILDERS.values(), ids=BUILDERS)


@pytest.mark.parametrize("room", [pb.weak, pb.observation], ids=["weak", "observation"])
def test_kinds_are_public_and_called_as_what_makes_them(room):
    assert len(room.KINDS) >= 7
    for name, make in room.KINDS.items():
        assert name in room.__all__
        assert getattr(room, name) is make


def test_settings_name_the_kind():
    for name, make in {**pb.weak.KINDS, **pb.observation.KINDS}.items():
        try:
            made = make()
        except TypeError:  # it has options that must be given
            continue
        assert made.settings()["kind"] == name


class FirstColumnSearch(StumpSearch):
    """Stumps on the first column, at the middle of all rows that arrive."""

    def best(self, weights):
        arrives = weights.fixed > 0
        if arrives.sum() < 2:
            return None
        threshold = float(np.median(self.data.values(0)[arrives]))
        cut = self.cut_at(0, threshold, weights)
        return cut if all(sum(side) > 0 for side in cut.masses) else None


class FirstColumn(pb.weak.Stump):
    """A weak learner as it is written elsewhere: its search is all it says."""

    kind = "first-column"
    searches = FirstColumnSearch


class Doubting(TableObservation):
    """An observation model as it is written elsewhere: its table is all it says."""

    kind = "doubting"

    def table(self, reach):
        return np.array([[0.25, 0.25], [0.75, 0.75]])


@builders
def test_a_learner_from_elsewhere(fit):
    observation = pb.observation.flip(0.1)  # no compiled loop
    model = fit(weak_learner=FirstColumn(), observation=observation)
    assert model.n_nodes
    assert not model.feature.any()
    assert isinstance(model.settings["weak_learner"], dict)
    assert model.settings["weak_learner"]["kind"] == "first-column"
    assert model.threshold[0] == np.median(X[:, 0])


@builders
def test_an_observation_model_from_elsewhere(fit):
    model = fit(observation=Doubting())
    same = fit(observation=pb.observation.flip(0.25))
    np.testing.assert_array_equal(model.vote, same.vote)
    np.testing.assert_array_equal(model.answer, same.answer)
    assert model.settings["observation"]["kind"] == "doubting"
