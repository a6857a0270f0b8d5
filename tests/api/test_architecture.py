"""The shape of the code: what may import what, what importing does, and sizes."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import statistics
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import pboost

PACKAGE = Path(pboost.__file__).parent
ROOT = Path(__file__).parents[2]
SOURCE, DEV = ROOT / "pboost", ROOT / "docs" / "dev"

#: Where scikit-learn may be imported.
SKLEARN_HOMES = ("pboost.sklearn", "pboost.cli.demo", "pboost.datasets")
#: Rooms and files at the top level, from the ground up: each imports from lower floors only.
FLOORS = (
    ("_core", "_version"),
    ("values",),
    ("bounds", "losses", "threads"),
    ("data",),
    ("datasets", "models", "weak"),
    ("export", "observation"),
    ("growth",),
    ("boosting", "trees"),
    ("inspection", "probit"),
    ("ensembles",),
    ("budget",),
    ("cli", "dask", "sklearn"),
    ("__main__",),
)
OPTIONAL = (
    "pandas",
    "matplotlib",
    "tqdm",
    "narwhals",
    "sklearn",
    "polars",
    "joblib",
    "onnx",
    "onnxruntime",
    "shap",
    "shapiq",
    "treelite",
    "dask",
    "distributed",
)
FILE_LINES, KERNEL_LINES = 600, 80
#: What the page of a room says, and in how many lines.
ROOM_LINES = 40
ROOM_SAYS = ("What it is for", "What it knows", "What it must not know", "How to add to it")

needs_source = pytest.mark.skipif(
    not (SOURCE / "_core" / "split.pyx").exists(), reason="no source tree beside tests/"
)


def module_name(path):
    parts = ("pboost", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(path):
    """Return the modules that a file imports anywhere, by name or by a call with their name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            ("require", "import_module", "__import__")
        ):
            found |= {
                arg.value
                for arg in node.args
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
            }
    return found


def own_imports(path):
    """Return the modules of the package that a file imports."""
    names = {n if n in MODULES else n.rpartition(".")[0] for n in imports(path)}
    names |= {"pboost._core" for n in names if n.startswith("pboost._core.")}  # kernels
    return names & set(MODULES) - {"pboost"}


def run(code):
    """Run code in a fresh interpreter that finds the package where this one does."""
    path = os.pathsep.join([str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )


# Documentation


@needs_source
def test_every_module_is_in_the_layout():
    pages = "\n".join(path.read_text(encoding="utf-8") for path in DEV.rglob("*.rst"))
    names = {path.name for path in SOURCE.rglob("*.py")} - {"_version.py"}
    assert [name for name in sorted(names) if name not in pages] == []


def house():
    """Return the script that draws the picture of the house."""
    spec = importlib.util.spec_from_file_location("house", DEV / "house.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_source
def test_the_picture_and_the_list_of_files_are_true():
    made = house()
    again = "python docs/dev/house.py"
    assert made.PICTURE.read_text(encoding="utf-8") == made.svg(), again
    assert made.LIST.read_text(encoding="utf-8") == made.listing(), again


@needs_source
def test_every_room_has_a_page():
    rooms = {name for name in house().uses() if (SOURCE / name).is_dir()}
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (DEV / "rooms").glob("*.rst")}
    assert set(pages) == {name.strip("_") for name in rooms} | {"values"}
    for name, page in pages.items():
        assert page.count("\n") <= ROOM_LINES, name
        assert all(f"**{what}" in page for what in ROOM_SAYS), name


# Imports


def test_modules_are_found():
    assert {"pboost", "pboost.models.graph", "pboost.cli.demo", "pboost._core"} <= set(MODULES)
    assert "pboost.models.stored" in own_imports(MODULES["pboost.growth.step"])


def test_imports_have_no_cycles():
    graph = {name: own_imports(path) for name, path in MODULES.items() if name != "pboost"}
    TopologicalSorter(graph).prepare()  # raises CycleError, naming the cycle


def room(module):
    """Return the folder of a module, or its file at the top level."""
    return module.split(".")[1]


#: Rooms, and the others from which they import.
PAIRS = {
    (room(name), room(other))
    for name, path in MODULES.items()
    if name != "pboost"
    for other in own_imports(path)
    if room(other) != room(name)
}


def test_rooms_import_from_lower_floors_only():
    floor = {name: number for number, names in enumerate(FLOORS) for name in names}
    assert set(floor) == {room(name) for name in MODULES if name != "pboost"}
    upwards = [
        f"{name} imports {other}"
        for name, path in MODULES.items()
        if name != "pboost"
        for other in own_imports(path)
        if room(other) != room(name) and floor[room(other)] >= floor[room(name)]
    ]
    assert upwards == []


def test_rooms_know_few_others():
    assert {("growth", "weak"), ("weak", "data")} < PAIRS
    assert len(PAIRS) <= 90


def test_few_files_at_the_top():
    assert len(list(PACKAGE.glob("*.py"))) <= 14


@pytest.mark.parametrize("name", [n for n in MODULES if n not in ("pboost", "pboost.__main__")])
def test_only_the_command_line_imports_the_command_line(name):
    if name.startswith("pboost.cli"):
        pytest.skip("part of it")
    assert not [n for n in own_imports(MODULES[name]) if n.startswith("pboost.cli")]


def test_only_some_modules_import_sklearn():
    users = {
        name
        for name, path in MODULES.items()
        if any(imported.split(".")[0] == "sklearn" for imported in imports(path))
    }
    assert users, "the demonstration uses it"
    assert all(name.startswith(SKLEARN_HOMES) for name in users)


@needs_source
def test_core_imports_no_sibling():
    pattern = re.compile(r"^\s*(?:from|import|cimport)\s+pboost(?!\._core\b)", re.MULTILINE)
    files = [p for e in ("pyx", "pxd", "pyi", "py") for p in (SOURCE / "_core").glob(f"*.{e}")]
    assert len(files) > 10
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not pattern.search(text), file.name
        # Relative imports that leave the folder.
        assert not re.search(r"^\s*from\s+\.\.", text, re.MULTILINE), file.name


@needs_source
def test_core_does_without_numpy_headers():
    for file in [*(SOURCE / "_core").glob("*.p[yx]*"), *(SOURCE / "_core").glob("*.h")]:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"cimport\s+numpy|from\s+numpy\S*\s+cimport|arrayobject", text), file


# What importing does


def test_import_leaves_optional_packages_alone():
    code = "import sys, pboost; print([m for m in {} if m in sys.modules])"
    assert run(code.format(OPTIONAL)).stdout.strip() == "[]"


def test_no_module_imports_optional_packages():
    homes = tuple(home for home in SKLEARN_HOMES if home != "pboost.cli.demo")
    others = [name for name in MODULES if not name.startswith(homes)]
    code = f"""
import importlib, sys
for name in {others}:
    importlib.import_module(name)
print([m for m in {OPTIONAL} if m in sys.modules])
"""
    assert len(others) > 80
    assert run(code).stdout.strip() == "[]"


def test_import_leaves_scipy_alone():
    code = "import sys, pboost; print([m for m in sys.modules if m.split('.')[0] == 'scipy'])"
    assert run(code).stdout.strip() == "[]"


def cpu_seconds(code):
    """Return the processor time of a fresh interpreter that runs code."""
    before = os.times()
    run(code)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


@pytest.mark.clock
def test_import_takes_little_more_than_numpy(monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    run("import numpy, pboost")  # compiles to bytecode, as an installation does
    pairs = [(cpu_seconds("import pboost"), cpu_seconds("import numpy")) for _ in range(11)]
    ours, numpys = (statistics.median(times) for times in zip(*pairs, strict=True))
    assert ours <= 4 * numpys


def test_import_is_silent():
    done = run("import pboost")
    assert (done.stdout, done.stderr) == ("", "")


def test_import_starts_no_thread():
    # The linear algebra of NumPy and SciPy starts threads of its own.
    code = """
import os, threading, numpy, scipy.special
tasks = "/proc/self/task"
count = lambda: len(os.listdir(tasks)) if os.path.isdir(tasks) else threading.active_count()
before = count(), threading.active_count()
import pboost
print(before == (count(), threading.active_count()))
"""
    assert run(code).stdout.strip() == "True"


def test_import_does_not_load_test_packages():
    code = "import sys, pboost; print([m for m in ('pytest', 'hypothesis') if m in sys.modules])"
    assert run(code).stdout.strip() == "[]"


# Sizes


def source_files():
    if not SOURCE.is_dir():
        return []
    folders = [SOURCE, ROOT / "tests", ROOT / "asv_bench"]
    return sorted(
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in (".py", ".pyx", ".pxd", ".h") and not path.name.startswith(".")
    )


def code_lines(path):
    """Return the number of lines of code of a file, without blanks, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        text = re.sub(r'"""(?:.|\n)*?"""', "", text)
        return sum(bool(re.sub(r"(#|//|/?\*).*", "", line).strip()) for line in text.splitlines())
    lines = text.splitlines()
    docs = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            docs |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in docs
        for number, line in enumerate(lines, start=1)
    )


def cython_functions(path):
    """Yield name and number of lines, docstrings left out, of each function of a Cython file."""
    text = re.sub(r'"""(?:.|\n)*?"""', "", path.read_text(encoding="utf-8"))
    lines = text.splitlines()
    heads = [i for i, line in enumerate(lines) if re.match(r"(?:cdef|cpdef|def)\b.*\(", line)]
    for i in heads:
        # A body ends before the next line at the margin that closes no signature.
        ends = (k for k in range(i + 1, len(lines)) if re.match(r"[^\s)]", lines[k]))
        body = "\n".join(lines[i : next(ends, len(lines))]).rstrip()
        yield re.search(r"(\w+)\(", lines[i]).group(1), body.count("\n") + 1


@needs_source
def test_files_are_measured(tmp_path):
    path = tmp_path / "one.py"
    path.write_text(
        '"""Doc.\n\nMore."""\n\n# why\nA = 1\n\n\ndef f():\n    """Doc."""\n    return A\n'
    )
    assert code_lines(path) == 3
    assert 100 < code_lines(SOURCE / "_core" / "grow.pyx") < 400


@needs_source
def test_functions_are_measured():
    kernels = dict(cython_functions(SOURCE / "_core" / "split.pyx"))
    assert kernels["search"] > 20


@needs_source
@pytest.mark.parametrize("path", source_files(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_sizes(path):
    assert code_lines(path) <= FILE_LINES
    if path.suffix in (".pyx", ".pxd"):
        assert [f for f in cython_functions(path) if f[1] > KERNEL_LINES] == []
