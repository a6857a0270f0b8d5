"""The comparison on sparse data, on small sets and without the other libraries."""

from __future__ import annotations

import pytest
from example_modules import imported

pytestmark = pytest.mark.full


def test_small_sets(monkeypatch, tmp_path, capsys):
    with imported("sparse_text") as example:
        ours = {name: fit for name, fit in example.LIBRARIES.items() if "pboost" in name}
        monkeypatch.setattr(example, "LIBRARIES", ours)
        monkeypatch.setattr(example, "N_TREES", 3)
        path = tmp_path / "table.rst"
        options = ["--rows", "300", "--columns", "400", "--repeats", "1", "--rst", str(path)]
        monkeypatch.setattr("sys.argv", ["sparse_text.py", *options])
        example.main()
    printed, rows = capsys.readouterr().out, path.read_text(encoding="utf-8").splitlines()
    assert printed.count("pboost, defaults: fit") == len(example.DATA)
    assert [line[7:] for line in rows if line.startswith("   * - ")][1:] == [
        f"{name}, 300 x 400" for name in example.DATA
    ]
