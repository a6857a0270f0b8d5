"""The comparison of losses of numbers: its figures are those of the models it names."""

from __future__ import annotations

import numpy as np
import pytest
from example_modules import imported

import pboost as pb

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def example():
    with imported("regression_losses") as module:
        yield module


def test_figures_are_those_of_the_models(example):
    actual = example.measured("5 % outliers", 3, 100)
    X, y = example.problem("5 % outliers", 3, 100)
    new, truth = example.problem("5 % outliers", 1003, 10_000)
    losses = ("absolute_error", pb.losses.Quantile(0.95))
    f, g = (
        pb.predict(pb.fit_gradient_boosting(X, y, loss=loss, n_estimators=200, max_depth=3), new)
        for loss in losses
    )
    assert actual[1] == np.mean(np.abs(truth - f))
    assert actual[5] == np.mean(truth <= g)


def test_the_table_has_a_line_for_each_noise(example, monkeypatch, capsys):
    monkeypatch.setattr(example, "measured", lambda noise, seed, rows: [seed + rows] * 6)
    example.main(["--rows", "10", "--seeds", "3"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(example.NOISES)
    assert all(line.split()[-6:] == ["11.000"] * 6 for line in lines[1:])
