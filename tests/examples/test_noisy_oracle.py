"""The examples run, and show what they are said to show."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "noisy_oracle.py"
needs_example = pytest.mark.skipif(not EXAMPLE.exists(), reason="no examples/ beside tests/")


@pytest.fixture(scope="module")
def noisy_oracle():
    spec = importlib.util.spec_from_file_location("noisy_oracle", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_example
def test_asking_again_beats_one_answer(noisy_oracle):
    actual = noisy_oracle.compare(n_estimators=80, repeats=8)
    certain, sampled = actual.values()
    assert sampled[0] < certain[0]  # error on new cases
    assert certain[1] < certain[2] / 2  # what is claimed after one answer does not hold
    assert sampled[2] == pytest.approx(sampled[1], rel=0.3)  # an estimate, not a bound
    assert certain[3] == 1 < sampled[3]


@needs_example
def test_what_is_printed(noisy_oracle, capsys):
    noisy_oracle.main(["--rounds", "3", "--repeats", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("3 readers, means of 2 sets")
    assert [line.count("%") for line in lines[3:]] == [1, 1]
