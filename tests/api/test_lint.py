"""The rules of tests/lint.py find what breaks them; that nothing does is for .ci/lint to say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
if not (Path(__file__).parents[2] / "pboost" / "_core" / "split.pyx").exists():
    pytest.skip("no source tree beside tests/", allow_module_level=True)
import lint
import prose


def test_imports_are_read():
    assert {"pboost", "pboost.models.graph", "pboost.cli.table", "pboost._core"} <= set(
        lint.MODULES
    )
    assert "pboost.models.schema" in lint.own_imports(lint.MODULES["pboost.growth.graph_growth"])


def test_imports_that_may_not_be_are_found(tmp_path):
    path, other = tmp_path / "multiclass.py", tmp_path / "columns.py"
    path.write_text("import pboost.data.columns.columns\nfrom . import more\n")
    other.write_text("from pboost.values import labels\n")
    modules = {"pboost.values.labels": path, "pboost.data.columns.columns": other}
    assert list(lint.no_relative_import(modules)) == ["pboost.values.labels imports ..more"]
    assert (
        "pboost.values.labels imports pboost.data.columns.columns"
        in lint.rooms_import_from_lower_floors_only(modules)
    )


def test_files_are_measured(tmp_path):
    path = tmp_path / "one.py"
    path.write_text(
        '"""Doc.\n\nMore."""\n\n# why\nA = 1\n\n\ndef f():\n    """Doc."""\n    return A\n'
    )
    assert lint.code_lines(path) == 3
    assert list(lint.files_and_kernels_are_short([path])) == []
    path.write_text("A = 1\n" * 601)
    assert list(lint.files_and_kernels_are_short([path])) == [f"{path}: 601 lines of code"]


def test_functions_of_kernels_are_measured(tmp_path):
    kernels = dict(lint.cython_functions(lint.PACKAGE / "_core" / "split.pyx"))
    assert kernels["search"] > 20
    path = tmp_path / "one.pyx"
    path.write_text("cdef int f(int a,\n           int b):\n" + "    a += b\n" * 80)
    assert list(lint.files_and_kernels_are_short([path])) == [f"{path}: f has 82 lines"]


def test_parameters_are_counted(tmp_path):
    path = tmp_path / "module.py"
    taken = ", ".join("abcdefgh")
    path.write_text(f"def f({taken}): ...\nclass A:\n    def __init__(self, {taken}, *, i): ...\n")
    assert list(lint.private_functions_have_few_parameters([path])) == [
        "module.py: A has 9 parameters"
    ]


def test_vague_names_are_listed(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "def f(most, limit=1):\n"
        "    found: int = most\n"
        "    with open('x') as told, open('y') as file:\n"
        "        file.here = [one for one in told]\n"
        "    return found\n"
    )
    assert list(lint.names_say_what_they_hold([path])) == [
        "module.py, line 1: most",
        "module.py, line 2: found",
        "module.py, line 3: told",
        "module.py, line 4: here",
        "module.py, line 4: one",
    ]


def test_classes_of_one_name_are_listed(tmp_path):
    paths = [tmp_path / name for name in ("a.py", "b.py", "c.py")]
    for path, name in zip(paths, ("Rows", "Rows", "Columns"), strict=True):
        path.write_text(f"class {name}: ...\n")
    assert list(lint.classes_have_different_names(paths)) == ["Rows: a.py, b.py"]


def test_a_line_under_a_title_that_is_too_short_is_found(tmp_path):
    page = tmp_path / "page.rst"
    page.write_text("Title\n=====\n\nLong title\n=======\n")
    assert list(lint.lines_under_titles_are_as_long_as_they([page])) == [f"{page}, line 5"]


def test_docstrings_that_lack_something_are_found():
    def function(a, b) -> int:
        """Return something

        Parameters
        ----------
        a : int
        """

    @dataclass
    class Two:
        """Two.

        Attributes
        ----------
        a : int
        """

        a: int
        b: int

        def more(self):
            pass

    assert list(lint.docstrings_say_all_there_is({"function": function, "Two": Two})) == [
        "function: the summary is one sentence in one line",
        "function: Parameters: b",
        "function: Returns: int",
        "function: no example",
        "Two: Attributes: b",
        "Two: more has no docstring",
    ]


def test_phrases_are_found_in_texts_but_not_in_code(tmp_path, monkeypatch):
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(
        '"""Fill the holes.\n\n>>> holes\n"""\n\n# a shard of rows\nholes = 1\n'
        'raise ValueError("x: expected another than the first")\n'
    )
    assert [found.partition(": ")[0] for found in prose.phrases([path])] == [
        "module.py:1",
        "module.py:6",
        "module.py:8",
    ]
    page = tmp_path / "page.rst"
    page.write_text(
        "A page.\n\nOf two models this is one.\n\n.. code-block:: console\n\n   holes\n"
    )
    assert len(list(prose.phrases([page]))) == 1


def test_frequent_words_of_docstrings_are_found(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('"""Return what the model says."""\n')
    assert len(list(prose.habits([path]))) == 2
    path.write_text('"""Return the predictions of the model."""\n')
    assert list(prose.habits([path])) == []
