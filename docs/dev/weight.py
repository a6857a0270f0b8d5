"""Measure the size of the package: ``python docs/dev/weight.py [FOLDER]`` prints a table.

FOLDER is a checkout, by default this one. Code lines are neither blank nor only a comment or a
docstring.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Types of tokens for layout, comments and punctuation.
LAYOUT = {
    tokenize.ENCODING,
    tokenize.NEWLINE,
    tokenize.NL,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.COMMENT,
    tokenize.OP,
    tokenize.ENDMARKER,
}
#: The comment that exempts a line from the formatter.
EXEMPT = "fmt" + ": skip"
#: Names that refer to partitions or Dask.
OF_PARTITIONS = re.compile(r"[Ss]hard|[Dd]ask|[Ii]n_partitions|IN_PARTITIONS|Partitioned")


def docstring_lines(tree: ast.AST) -> set[int]:
    """Return the line numbers of docstrings."""
    result: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = node.body[0] if node.body else None
            is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            if is_text and isinstance(first.value.value, str):
                result |= set(range(first.lineno, first.end_lineno + 1))
    return result


def tokens_of(text: str) -> list[tokenize.TokenInfo]:
    """Return the tokens of a file without layout and punctuation."""
    every = tokenize.generate_tokens(io.StringIO(text).readline)
    return [item for item in every if item.type not in LAYOUT]


def python_code(text: str) -> int:
    """Count the code lines of a Python file."""
    taken: set[int] = set()
    for item in tokenize.generate_tokens(io.StringIO(text).readline):
        if item.type not in LAYOUT - {tokenize.OP}:
            taken |= set(range(item.start[0], item.end[0] + 1))
    return len(taken - docstring_lines(ast.parse(text)))


def kernel_code(text: str) -> int:
    """Count the code lines of a Cython or C file."""
    text = re.sub(r'"""(?:.|\n)*?"""', "", re.sub(r"/\*(?:.|\n)*?\*/", "", text))
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith(("#:", "# ", "//")) for line in lines)


def knows_partitions(tree: ast.AST) -> bool:
    """Return True if a module uses names for partitions or Dask."""
    names = (getattr(n, "id", None) or getattr(n, "attr", None) for n in ast.walk(tree))
    return any(name and OF_PARTITIONS.search(name) for name in names)


def imports(tree: ast.AST) -> int:
    """Count the names that a module imports from files of the package."""
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    return sum(len(n.names) for n in nodes if (n.module or "").startswith("pboost"))


def weight(root: Path) -> dict[str, int]:
    """Return a mapping from the names of the measures to their values."""
    texts = {p: p.read_text("utf-8") for p in sorted((root / "pboost").rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    kernels = [p for p in (root / "pboost").rglob("*") if p.suffix in (".pyx", ".pxd", ".h", ".c")]
    every = [p for p in root.rglob("*.py") if not {"build", ".git"} & set(p.parts)]
    return {
        "Python tokens without punctuation": sum(len(tokens_of(t)) for t in texts.values()),
        "Python code": sum(map(python_code, texts.values())),
        "Cython and C code": sum(kernel_code(p.read_text("utf-8")) for p in kernels),
        "Python modules": len(texts),
        "modules that refer to partitions or Dask": sum(map(knows_partitions, trees.values())),
        "names imported between files": sum(map(imports, trees.values())),
        "lines exempt from ruff format": sum(
            p.read_text("utf-8").count("fmt" + ": skip") for p in every
        ),
        "annotations with Any": sum(
            bool(re.search(r"(:|->).*\bAny\b", line))
            for t in texts.values()
            for line in t.splitlines()
        ),
    }


if __name__ == "__main__":
    for what, count in weight(Path(sys.argv[1]) if sys.argv[1:] else ROOT).items():
        print(f"{what:<42}{count:>9,}")
