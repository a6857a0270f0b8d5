"""The comparison on nine circles: its numbers are those of the models it names."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import pboost as pb

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "nine_circles.py"
#: Fewer directions than the page has, for speed.
WEAK = pb.weak.affine(n_directions=30)
PAGE = ROOT / "docs" / "theory" / "nine_circles.rst"


@pytest.fixture(scope="module")
def example():
    if not SCRIPT.exists():
        pytest.skip("no examples/ beside tests/")
    spec = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[SCRIPT.stem] = module  # where its dataclasses look for their annotations
    spec.loader.exec_module(module)
    module.WEAK = WEAK
    yield module
    del sys.modules[SCRIPT.stem]


@pytest.fixture(scope="module")
def results(example):
    return example.measure(2, 500, example.QUICK_SIZES)


def test_numbers_are_those_of_the_models(example, results):
    weak, soft = WEAK, pb.observation.adatree2()
    for number in range(2):
        X, y = pb.datasets.nine_circles(200, rng=number)
        X_test, y_test = pb.datasets.nine_circles(500, rng=100 + number)
        models = {
            "AdaBoost": pb.fit_adaboost(X, y, n_estimators=400, weak_learner=weak),
            "AdaTree 1": pb.fit_boosted_tree(X, y, max_nodes=None, weak_learner=weak),
            "AdaTree 2": pb.fit_boosted_tree(
                X, y, max_nodes=400, weak_learner=weak, observation=soft, growth="largest_error"
            ),
            "(4, 4, 4, 4)": pb.fit_matryoshka(
                X, y, shape=(4, 4, 4, 4), weak_learner=weak, observation=soft
            ),
        }
        for name, model in models.items():
            error, cost, longest = results.whole[name][number]
            evaluations = pb.prediction_cost(model, X_test)
            assert error == pytest.approx(np.mean(pb.predict(model, X_test) != y_test))
            assert (cost, longest) == (evaluations.mean(), evaluations.max())
        assert results.curves["AdaTree 1"][number, -1, 0] == 0
        first_model = pb.fit_adaboost(X, y, n_estimators=1, weak_learner=weak)
        first = [
            np.mean(pb.predict(first_model, X) != y),
            np.mean(pb.predict(first_model, X_test) != y_test),
            1,
        ]
        np.testing.assert_allclose(results.curves["AdaBoost"][number, 0], first)
        sign = pb.fit_matryoshka(
            X, y, shape=(2,) * 8, collect="sign", weak_learner=weak, observation=soft, smoothing=0
        )
        certificates = results.certificates['(2,) * 8, collect="sign"'][number]
        assert certificates[1] == pytest.approx(pb.certificate(sign), rel=1e-12)
        assert certificates[0] != certificates[1]


def test_curves_end_at_the_whole_models(example, results):
    for name, values in results.whole.items():
        assert results.sizes[-1] == 400
        np.testing.assert_allclose(results.curves[name][:, -1, 1:], values[:, :2])
        assert (np.diff(results.curves[name][..., 2], axis=1) >= 0).all()


def test_what_is_expected_holds(example, results):
    actual = example.claims(results)
    assert len(actual) == 7
    assert [holds for claim, holds in actual.items() if "prototype" not in claim] == [True] * 5


@pytest.mark.parametrize(
    ("name", "column", "value", "n_broken"),
    [
        ("AdaTree 1", 0, 0.0, 3),
        ("AdaBoost", 0, 0.99, 3),
        ("(4, 4, 4, 4)", 0, 0.2, 2),
        ("(4, 4, 4, 4)", 1, 81.0, 1),
        ("tree, 256 nodes", 1, 0.01, 1),
        ("tree, 256 nodes", 0, 0.9, 1),
        ("tree, 400 nodes", 1, 0.5, 1),
    ],
)
def test_what_does_not_hold_is_said(example, results, name, column, value, n_broken):
    """One figure is changed; the others are the prototype's where it has any."""
    full = {name: values.copy() for name, values in results.whole.items()}
    for known, (error, cost) in example.PROTOTYPE.items():
        full[known][:, :2] = error / 100, cost
    certificates = {name: values.copy() for name, values in results.certificates.items()}
    for known, certificate in example.PROTOTYPE_CERTIFICATES.items():
        certificates[known][:] = certificate
    right = dataclasses.replace(results, whole=full, certificates=certificates)
    assert all(example.claims(right).values())
    (full if name in full else certificates)[name][:, column] = value
    assert sum(not holds for holds in example.claims(right).values()) == n_broken


def test_output(example, results, tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(example, "measure", lambda *arguments: results)
    example.main(["--quick", "--output", str(tmp_path / "new")])
    out = capsys.readouterr().out
    assert example.tables(results) in out
    assert example.table_of_budgets(results) in out
    for claim, holds in example.claims(results).items():
        assert f"{'holds' if holds else 'does not hold'}: {claim}\n" in out
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(example.FILES)
    for path in (tmp_path / "new").iterdir():
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert path.stat().st_size > 5_000
    with pytest.raises(SystemExit):
        example.main(["--sets", "1"])


def test_budgets(example, results):
    """Costs at each size read off the curves, sizes chosen by their mean."""
    rows = {line[:28].strip(): line for line in example.table_of_budgets(results).splitlines()}
    cost, error = (results.curves["AdaBoost"].mean(axis=0)[:, k] for k in (2, 1))
    np.testing.assert_array_equal(cost, results.sizes)
    for i, budget in enumerate(example.BUDGETS):
        cell = rows["AdaBoost"][28 + 7 * i : 35 + 7 * i].strip()
        less = example.BUDGETS[i - 1] if i else 0
        larger = (cost > less) & (cost <= budget)
        assert cell == (f"{100 * error[larger][-1]:.1f}" if larger.any() else "")
    assert re.fullmatch(r"AdaTree 1 +\d+\.\d +\d+\.\d", rows["AdaTree 1"])  # of mean cost below 10


def test_page_has_the_tables_of_these_models(example, results):
    if not PAGE.exists():
        pytest.skip("no docs/ beside tests/")
    page = PAGE.read_text(encoding="utf-8")
    for table in (example.tables(results), example.table_of_budgets(results)):
        for line in table.splitlines():
            name = line[:28].strip()
            figures = re.findall(r"\[.*?\]", line)  # those of the prototype
            if name in {**results.curves, **results.certificates}:
                assert re.search(rf"^ +{re.escape(name)} ", page, re.MULTILINE)
                assert all(figure in page for figure in figures)
    for claim in example.claims(results):
        assert f"holds: {claim}" in page or f"does not hold: {claim}" in page
