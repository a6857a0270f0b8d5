"""The example with a probit tree of the Pima data, on made data."""

import gzip
import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.full

EXAMPLE = Path(__file__).parents[2] / "examples" / "probit_tree_pima.py"
NAMES = "Pregnancies,Glucose,BloodPressure,target"


@pytest.fixture
def example():
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    if not EXAMPLE.exists():
        pytest.skip("no examples/ beside tests/")
    spec = importlib.util.spec_from_file_location("probit_tree_pima", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_command(example, tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)).round(3)
    y = (X[:, 1] + rng.normal(size=400) > 0).astype(int)
    rows = [",".join([*map(str, x), str(k)]) for x, k in zip(X, y, strict=True)]
    with gzip.open(tmp_path / "pima.csv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join([NAMES, *rows]) + "\n")
    example.main(["--data", str(tmp_path), "--out", str(tmp_path / "new")])
    printed = capsys.readouterr().out
    assert printed.startswith("fit_probit_tree: ")
    assert "Glucose <=" in printed
    assert [line.split("  ")[0] for line in printed.splitlines()[-3:]] == list(example.RIVALS)
    figure = tmp_path / "new" / example.FILE
    assert figure.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_without_data(example, tmp_path, capsys):
    with pytest.raises(SystemExit):
        example.main(["--data", str(tmp_path)])
    assert "no file" in capsys.readouterr().err
