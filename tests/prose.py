"""Phrases that the texts of this project do without, and where they stand.

    python tests/prose.py [PATH ...]     prints each phrase; without paths, all texts are read

Texts are docstrings, comments, error messages and paragraphs of pages. Code, doctests and literal
blocks are not read. `tests/lint.py` allows none of PHRASES, and no more of HABITS than a word in a
few hundred: these have good uses, but in bulk they make a text hard to read.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("pboost", "docs", "examples", "asv_bench")
#: Generated pages, and patches.
MADE = ("docs/api/generated", "docs/_build", "docs/gallery", "docs/dev/additions")

#: A phrase, and what to write in its place.
PHRASES = {
    r"\b[Hh]oles?\b": "missing value",
    r"\b(?:of|with|for) (?:two|2) labels\b": "binary",
    r"\b(?:of|with|for) many labels\b": "multiclass",
    r"\b[Ww]hat (?:an?|the) \w+ (?:adds|says|costs|knows|asks|takes|holds|wants|gives)\b": "a noun",
    r"(?:^|\. )Of (?!which|course)": "begin with the subject",
    r"\b(?:is|are) told\b": "receives, is passed",
    r"\bgo(?:es)? both ways\b": "is split between both branches",
    r"\bexpected another than\b": "expected one of ...",
    r"\b(?:rows?|it|they) leaves? early\b": "prediction stops early",
    r"\bthe same bits\b": "bit-identical",
    r"\bheld[ -]out rows? (?:that )?watch": "validation set",
    r"\b[Ww]ho (?:gives|wants|asks|needs|reads|knows)\b": "if you ...",
    r"\bcolumns? of levels\b": "categorical feature",
    r"\bcolumns? of (?:words|texts?)\b": "text feature",
    r"\bslopes? and (?:bends?|curvatures?)\b": "gradients and Hessians",
    r"\bshards?\b": "partition",
}
#: A word that is good English at times, and how often it may stand among 1,000 words.
HABITS = {
    r"\b[Ww]hat\b(?! (?:is|are|does|do|if)\b)": 0.5,
    r"\b[Ww]here (?!the parameters|X is|y is|n_)": 1.5,
    r"\b(?:those|that) of\b": 0.3,
    r"\b(?:says?|said|tells?|told|asks?|asked|knows|sees|wants?|wanted)\b": 0.3,
    r"\banswer(?:s|ed)?\b": 0.5,
}


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the first line's number and the text of each docstring, without its doctests."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            body = node.body[0]
            yield body.lineno, re.sub(r"(?m)^\s*(>>>|\.\.\. ).*$", "", text)


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a Python file; lines that follow each other are one comment."""
    block: list[str] = []
    start = last = -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.start[0] != last + 1:
            if block:
                yield start, " ".join(block)
            block, start = [], token.start[0]
        block.append(token.string.lstrip("#: "))
        last = token.start[0]
    if block:
        yield start, " ".join(block)


def messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield strings of four words and more that are not docstrings."""
    is_docstring = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "{}" for p in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in is_docstring
            and len(node.value.split()) > 3
        ):
            yield node.lineno, node.value


def kernel_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield docstrings and comments of a Cython file or a C header."""
    pattern = r'"""[\s\S]*?"""|(?m:(?:^[ \t]*|  )(?:#|//)(?!\w).*(?:\n[ \t]*(?:#|//)(?!\w).*)*)'
    for match in re.finditer(pattern + r"|/\*[\s\S]*?\*/", source):
        text = re.sub(r"(?m)^[ \t]*(#:?|//|\*)", "", match[0].strip('"'))
        yield source.count("\n", 0, match.start()) + 1, text


def paragraphs(source: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of a page, but not its code."""
    line, indent = 1, None
    for block in re.split(r"(\n[ \t]*\n)", source):
        text = block.strip("\n")
        depth = len(text) - len(text.lstrip())
        is_code = ">>>" in text or "```" in text or (indent is not None and depth > indent)
        if text.strip() and not is_code:
            yield line, text
            indent = depth if text.rstrip().endswith("::") or ".. code" in text else None
        line += block.count("\n")


def texts(path: Path) -> list[tuple[int, str]]:
    """Return the number of the first line, and the text, of each text in a file."""
    source = path.read_text()
    if path.suffix == ".py":
        tree = ast.parse(source)
        return [*docstrings(tree), *comments(source), *messages(tree)]
    if path.suffix in {".pyx", ".pxd", ".h"}:
        return list(kernel_texts(source))
    return list(paragraphs(source))


def all_files() -> list[Path]:
    """Return the files whose texts are read.

    Without the changelog, which lists former names, and without tables, which programs write.
    """
    endings = {".py", ".pyx", ".pxd", ".h", ".rst"}
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("tests/*.py")]
    for folder in FOLDERS:
        files += [path for path in (ROOT / folder).rglob("*") if path.suffix in endings]
    made = tuple(str(ROOT / folder) for folder in MADE)
    return [
        path
        for path in files
        if not str(path).startswith(made)
        and path.name != "prose.py"
        and not path.name.endswith("_table.rst")
    ]


def hits(paths: Iterable[Path], patterns: Iterable[str]) -> Iterator[tuple[Path, int, str, str]]:
    """Yield the file, the line, the pattern and the words around it, for each pattern found."""
    for path in paths:
        for line, text in texts(path):
            plain = re.sub(r"``.*?``", "``", text)
            for pattern in patterns:
                for match in re.finditer(pattern, plain, re.MULTILINE):
                    around = plain[max(0, match.start() - 30) : match.end() + 30]
                    number = line + plain.count("\n", 0, match.start())
                    yield path, number, pattern, " ".join(around.split())


def phrases(paths: Iterable[Path] | None = None) -> Iterator[str]:
    """Yield where a phrase stands that has a plainer form."""
    for path, line, pattern, around in hits(all_files() if paths is None else paths, PHRASES):
        yield f"{path.relative_to(ROOT)}:{line}: '{around}': write {PHRASES[pattern]}"


def habits(paths: Iterable[Path] | None = None) -> Iterator[str]:
    """Yield which words stand too often in docstrings of the package."""
    files = list((ROOT / "pboost").rglob("*.py")) if paths is None else paths
    text = "\n".join(t for path in files for _, t in docstrings(ast.parse(path.read_text())))
    n_words = max(len(text.split()), 1)
    for pattern, most in HABITS.items():
        share = 1000 * len(re.findall(pattern, text)) / n_words
        if share > most:
            yield f"{pattern}: {share:.1f} among 1,000 words of docstrings, at most {most}"


if __name__ == "__main__":
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or all_files()
    files = [f for path in chosen for f in ([path] if path.is_file() else path.rglob("*"))]
    files = [f for f in files if f in set(all_files())]
    for path, line, _, around in hits(files, [*PHRASES, *HABITS]):
        print(f"{path.relative_to(ROOT)}:{line}: {around}")
    sys.exit()
