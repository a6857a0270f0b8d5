"""Soft trees keep the weights of few exits: 8 bytes per row and exit that waits for them."""

import tracemalloc

import numpy as np
import pytest

import pboost as pb
from pboost.boosting import boosted_tree
from pboost.growth import soft_tree

GROWTHS = ("largest_bound", "largest_error", "breadth_first", "look_ahead")


def problem(n):
    r = np.random.default_rng(3)
    X = r.normal(size=(n, 2))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * r.normal(size=n) > 0, 1, -1)


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("observation", [pb.observation.flip(0.1), pb.observation.gaussian(0.3)])
def test_no_more_weights_than_exits_that_wait(observation, growth, monkeypatch):
    """Looking ahead, all that are open keep theirs."""
    monkeypatch.setattr(soft_tree, "BLOCK_BYTES", 1)  # arrays are made one at a time
    trees = []

    class Counting(soft_tree.SoftTree):
        made = found = 0

        def buffer(self):
            self.made += not self.buffers
            return super().buffer()

        def find(self, exit_):
            split = super().find(exit_)
            kept = self.made - len(self.buffers)
            waiting = len(self.heap) if growth == "look_ahead" else self.n_waiting
            assert kept <= waiting + 3
            self.found += 1
            trees.append(self)
            return split

    monkeypatch.setattr(boosted_tree, "SoftTree", Counting)
    X, y = problem(300)
    model = pb.fit_boosted_tree(X, y, max_nodes=60, growth=growth, observation=observation)
    assert model.n_nodes == 60
    assert trees[-1].found >= 60
    if growth == "largest_bound":
        assert trees[-1].made < 45


@pytest.mark.parametrize(
    ("observation", "most"), [(pb.observation.flip(0.1), 44), (pb.observation.gaussian(0.3), 80)]
)
def test_memory_in_arrays_of_weights(observation, most, monkeypatch):
    """64 nodes: at most 44 exits wait. Answers of rows are freed with the weights they made."""
    monkeypatch.setattr(soft_tree, "BLOCK_BYTES", 1)
    X, y = problem(20_000)
    weak = pb.weak.stump(search="binned")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        pb.fit_boosted_tree(
            X, y, max_nodes=64, weak_learner=weak, observation=observation, n_threads=1
        )
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak <= most * 8 * len(X)
