"""README.md states what this tree does: what can be measured within seconds, is."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import pboost as pb
from pboost.cli.commands import builder
from pboost.cli.parser import build_parser

SCRIPT = Path(__file__).parents[2] / "docs" / "dev" / "readme_figures.py"


@pytest.fixture(scope="module")
def figures():
    if not SCRIPT.exists():
        pytest.skip("no docs/ beside tests/")
    spec = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[SCRIPT.stem] = module  # where its dataclass looks for annotations
    spec.loader.exec_module(module)
    yield module
    del sys.modules[SCRIPT.stem]


@pytest.mark.full
def test_what_readme_states_is_so(figures):
    actual = dict(figures.findings(slow=False))
    assert {name: wrong for name, wrong in actual.items() if wrong} == {}
    assert len(actual) == 3 + sum(not claim.slow for claim in figures.CLAIMS)


def test_readme_has_the_words_of_every_claim(figures):
    """Also of claims that are slow to measure."""
    words = [claim.words for claim in figures.CLAIMS]
    assert [regex for regex in words if not re.search(regex, figures.prose())] == []


@pytest.mark.full
def test_a_figure_that_is_wrong_or_new_is_found(figures, monkeypatch):
    text = figures.readme()
    monkeypatch.setattr(
        figures, "readme", lambda: text.replace("error on 30 binary", "error on 31 binary")
    )
    wrong = [name for name, lines in figures.findings(slow=False) if lines]
    assert len(wrong) == 1
    assert "binary data sets" in wrong[0]
    monkeypatch.setattr(figures, "readme", lambda: f"{text}\nIt has 7 colours.\n")
    assert figures.unmeasured() == ["7"]
    changed = re.sub(r"AUC: [\d.]+\n", "AUC: 0.1\n", text)
    monkeypatch.setattr(figures, "readme", lambda: changed)
    assert figures.check_lines()


def test_links_lead_somewhere(figures):
    links = re.findall(r"\]\((?!https?:)([^)#]+)|src=\"([^\"]+)", figures.readme())
    assert len(links) > 5
    assert [name for link in links for name in link if not (figures.ROOT / name).exists()] == []


def commands():
    """Return what README and the page of the command line call pboost with."""
    actual = []
    for name in ("README.md", "docs/how_to/command_line.rst"):
        path = SCRIPT.parents[2] / name
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        calls = (re.fullmatch(r"(?:\$| ) (?:python -m| ) *pboost (.*)", line) for line in lines)
        actual += [call[1] for call in calls if call]
    return actual


@pytest.mark.parametrize("call", commands())
def test_commands_that_are_shown_are_understood(call):
    options = build_parser().parse_args(call.split())
    if options.command in ("fit", "evaluate"):
        assert callable(builder(options))


def test_commands_are_found():
    assert not SCRIPT.exists() or len(commands()) > 10


@pytest.mark.full
def test_the_code_in_the_table_runs(figures, tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("onnx")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    X = pd.DataFrame({"age": np.arange(80.0) % 13, "monthly_fee": np.arange(80.0)})
    y = (X["age"] > 4).astype(int)
    X.assign(y=y).to_parquet("rows.parquet")
    names = {"pb": pb, "pd": pd, "X": X, "y": y, "X_test": X, "files": ["rows.parquet"]}
    names |= {"row": X.iloc[0].to_dict(), "model": pb.fit_gradient_boosting(X, y, n_estimators=2)}
    code = re.findall(r"`((?:\w+, \w+, \w+ = )?(?:\w+\()?pb\.[^`]+\))`", figures.readme())
    calls = [call for call in code if "pb.dask" not in call]  # a test of Dask needs workers
    assert len(calls) > 12
    for call in calls:
        exec(call, dict(names))
