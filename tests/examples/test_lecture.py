"""Exercises and figures of the lecture notes [L]."""

from __future__ import annotations

import importlib.util
import sys
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

import pboost as pb

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

PLUS = [(1, 3), (2, 1), (4, 8), (5, 9), (7, 7)]
MINUS = [(3, 4), (5, 2), (6, 5), (9, 8), (8, 3)]


def example(name):
    path = EXAMPLES / f"{name}.py"
    if not path.exists():
        pytest.skip("no examples/ beside tests/")
    spec = importlib.util.spec_from_file_location(f"{name}_figure", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def figure():
    return example("losses")


@pytest.fixture
def points():
    return example("ten_points")


def page_has(page, table):
    """Whether the lines of a table stand on a page, one after another."""
    path = ROOT / "docs" / "theory" / page
    if not path.exists():
        pytest.skip("no docs/ beside tests/")
    text = "\n".join(line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return "\n".join(line.strip() for line in table.splitlines()) in text


def has_picture(page, name):
    text = (ROOT / "docs" / "theory" / page).read_text(encoding="utf-8")
    content = (ROOT / "docs" / "_static" / name).read_bytes()
    return f".. image:: /_static/{name}" in text and content[:8] == b"\x89PNG\r\n\x1a\n"


def test_figure_of_losses(figure, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    figure.main(["--out", str(tmp_path / "new")])
    path = tmp_path / "new" / figure.FILE
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert path.stat().st_size > 10_000
    assert capsys.readouterr().out == figure.table()


def test_page_has_the_printed_table(figure):
    assert page_has("losses.rst", figure.table())
    assert has_picture("losses.rst", figure.FILE)


# AdaBoost on ten points


def test_three_rounds_of_adaboost():
    X, y = np.array(PLUS + MINUS, float), np.repeat([1, -1], 5)
    stumps = pb.weak.stump("error")
    model = pb.fit_adaboost(
        X, y, n_estimators=3, weak_learner=stumps, votes="symmetric", smoothing=0
    )
    # The weights by hand: three points err in each round.
    error_2 = 3 * 0.1 * 0.5 / 0.7
    error_3 = 3 * 0.1 * 0.5 / 0.7 * 0.5 / (1 - error_2)
    errors = np.array([0.3, error_2, error_3])
    expected = 0.5 * np.log((1 - errors) / errors)
    np.testing.assert_allclose(np.abs(model.vote[:, 0]), expected, rtol=1e-9)
    assert expected.round(2).tolist() == [0.42, 0.65, 0.92]
    assert errors.round(2).tolist() == [0.30, 0.21, 0.14]
    assert model.feature.tolist() == [0, 0, 1]
    assert model.threshold.tolist() == [2.5, 7.5, 6.0]
    assert (pb.predict(model, X) == y).all()
    assert [int((labels != y).sum()) for labels in pb.staged_predict(model, X)] == [3, 3, 0]


def test_figure_of_ten_points(points, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    points.main(["--out", str(tmp_path / "new")])
    path = tmp_path / "new" / points.FILE
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert path.stat().st_size > 10_000
    table = points.table(points.fit())
    assert capsys.readouterr().out == table
    assert page_has("examples.rst", table)
    assert has_picture("examples.rst", points.FILE)


def test_rounds_of_the_figure(points):
    assert points.PLUS == PLUS
    assert points.MINUS == MINUS
    actual = points.rounds(points.fit())
    assert [(round(item.error, 2), round(item.alpha, 2)) for item in actual] == [
        (0.30, 0.42),
        (0.21, 0.65),
        (0.14, 0.92),
    ]
    for item in actual:
        assert item.alpha == pytest.approx(0.5 * np.log((1 - item.error) / item.error))
        assert item.weight.sum() == pytest.approx(1)
    # The points that a round gets wrong have half of the weight in the next.
    for item, after in pairwise(actual):
        assert after.weight[item.answer != points.Y].sum() == pytest.approx(0.5)
    assert (np.sign(sum(entry.alpha * entry.answer for entry in actual)) == points.Y).all()


# Weak universality


def test_stumps_are_not_weakly_universal():
    X = np.array([(0, 0), (0, 1), (1, 0), (1, 1)], float)
    model = pb.fit_adaboost(X, [0, 1, 1, 0], n_estimators=10)
    assert model.n_nodes == 0
    assert pb.certificate(model) == 1.0
    errors = [
        np.mean((X[:, j] > threshold) ^ [0, 1, 1, 0])
        for j in (0, 1)
        for threshold in (-0.5, 0.5, 1.5)
    ]
    assert set(errors) == {0.5}


def without(s):
    """Return a string with s[1:] and s[:-1] in it, but not s."""
    fillings = ("".join(p) for n in range(1, len(s) + 2) for p in product("ab", repeat=n))
    return next(z for c in fillings if s not in (z := s[1:] + c + s[:-1]))


def best_substring(X, y, weight):
    """Return the z of largest edge among strings of the data and those made to miss one."""
    candidates = [z for s in X for z in (s, without(s))]
    edges = [abs(sum(weight * y * [1 if x in z else -1 for x in X])) for z in candidates]
    k = int(np.argmax(edges))
    return candidates[k], edges[k]


class Substring:
    def __init__(self, z):
        self.z = z

    def __call__(self, X, rng):
        return np.array([1 if x in self.z else -1 for x in X])


def train_substring(X, y, weight, rng):
    return Substring(best_substring(X, y, weight)[0])


WORDS = np.array(["".join(p) for n in (1, 2, 3, 4) for p in product("ab", repeat=n)])


@pytest.mark.parametrize("seed", range(10))
def test_substrings_are_weakly_universal(seed):
    rng = np.random.default_rng(seed)
    X = rng.choice(WORDS, rng.integers(2, 25), replace=False)
    weight = rng.exponential(size=len(X)) ** 3
    weight /= weight.sum()
    y = rng.choice([-1, 1], len(X))
    assert best_substring(X, y, weight)[1] > 1e-9
    for s in X:
        z = without(s)
        assert s not in z
        assert all(part in z for part in (s[1:], s[:-1]))


def test_substrings_boost_to_no_error():
    rng = np.random.default_rng(0)
    X, y = WORDS[:14], rng.integers(0, 2, 14)
    weak = pb.weak.oracle(train_substring)
    model = pb.fit_adaboost(X, y, n_estimators=300, weak_learner=weak)
    assert (pb.predict(model, X) == y).all()
    assert pb.predict(model, ["abababab"]).shape == (1,)
    rest = pb.fit_one_vs_rest(
        pb.fit_adaboost, X, np.array(list("xyz" * 5))[:14], weak_learner=weak, n_estimators=400
    )
    assert (pb.predict(rest, X) == np.array(list("xyz" * 5))[:14]).all()
