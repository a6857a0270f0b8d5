"""The example of margin curves runs, and shows what the errata page says of it."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import pboost as pb

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "margin_curves.py"


@pytest.fixture(scope="module")
def example():
    if not EXAMPLE.exists():
        pytest.skip("no examples/ beside tests/")
    spec = importlib.util.spec_from_file_location("margin_curves", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def curves(example):
    return example.curves_at(0.2, 1000, 2)


@pytest.mark.full
def test_noise_of_the_logistic_model_is_its_own(example, curves):
    first, half = curves[example.LOGISTIC]
    assert example.seeming_noise(first) == pytest.approx(0.2, abs=0.006)  # of thetas 0.01 apart
    # tanh(H / 2) with H half the log odds of 0.8.
    expected = (1 - np.tanh(np.log(0.8 / 0.2) / 4)) / 2
    assert example.seeming_noise(half) == pytest.approx(expected, abs=0.005)


def test_trees_seem_to_have_more_noise_on_two_scales_only(example, curves):
    first, drawn = curves["15 nodes, 3 columns"]
    assert example.seeming_noise(first) == pytest.approx(0.2, abs=0.02)
    assert 0.3 < example.seeming_noise(drawn) < 0.36
    distance = {
        name: np.abs(c[0] - curves[example.LOGISTIC][0]).mean() for name, c in curves.items()
    }
    assert distance["15 nodes, 3 columns"] < distance["tree of 39 nodes"] < distance["100 stumps"]


@pytest.mark.full
def test_both_scales_are_of_the_same_margins(example):
    X, y = pb.datasets.xd6(300, rng=0, noise=0.1)
    actual = example.curves_at(0.1, 300, 1)
    for name, fit in example.MODELS.items():
        for scale, curve in zip(("probability", "half"), actual[name], strict=True):
            own = pb.inspection.margin_curve(
                fit, X, y, example.THETAS, cv=example.FOLDS, scale=scale, rng=0
            )
            # Single margins may lie at a theta but for rounding.
            assert np.abs(curve - own).max() <= 2 / 300


@pytest.mark.full
def test_command_and_page(example, tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    example.main(["--rows", "100", "--repeats", "1", "--out", str(tmp_path / "new")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 sets of 100 rows")
    assert len(lines) == 3 + len(example.MODELS) * len(example.NOISES)
    assert (tmp_path / "new" / example.FILE).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    page = ROOT / "docs" / "theory" / "errata.rst"
    if page.exists():
        text = page.read_text(encoding="utf-8")
        assert all(line in text for line in lines[1:3])
        rows = [line[:28] for line in lines[3:]]
        assert all(re.search(rf"^    {re.escape(row)} ", text, re.MULTILINE) for row in rows)
