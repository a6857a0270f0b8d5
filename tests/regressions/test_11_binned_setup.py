"""Set-up of a fit on binned columns.

It took 5 to 10 rounds of boosting: the codes were copied class by class one column after the other,
and then counted by a function that made 8 bytes of each. It must stay below 3 of a quiet machine.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

import pboost as pb

N_ROWS, N_FEATURES = 100_000, 20


def seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.mark.clock
def test_set_up_costs_a_few_rounds():
    """By processor time, with some allowance for a machine that does other things."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((N_ROWS, N_FEATURES)), rng.integers(0, 2, N_ROWS)
    columns = pb.data.bin_columns(X)

    def fit(rounds):
        return seconds(lambda: pb.fit_adaboost(columns, y, n_estimators=rounds, n_threads=1))

    fit(1)
    first, many = (min(fit(rounds) for _ in range(9)) for rounds in (1, 21))
    round_ = (many - first) / 20
    assert first - round_ < 4.5 * round_


def test_bins_are_counted_while_they_are_copied(monkeypatch):
    """What the search needs of the bins is there without another look at the codes."""
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 9, (500, 6)).astype(float), rng.integers(0, 2, 500)
    weight = rng.integers(0, 3, 500)
    columns = pb.data.bin_columns(X)
    expected = pb.fit_adaboost(columns, y, n_estimators=9, sample_weight=weight)

    def refuse(*_, **__):
        raise AssertionError("the codes are read once more")

    monkeypatch.setattr(np, "bincount", refuse)
    monkeypatch.setattr(np, "take", refuse)
    model = pb.fit_adaboost(columns, y, n_estimators=9, sample_weight=weight)
    assert model.threshold.tobytes() == expected.threshold.tobytes()
    assert model.vote.tobytes() == expected.vote.tobytes()
