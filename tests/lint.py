"""What the code looks like: imports between rooms, sizes, docstrings, and pages that list it.

    python tests/lint.py

It prints what breaks a rule, and returns 1 if anything does. It needs a checkout, the package
installed and scikit-learn. A rule is a function that yields what breaks it.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import importlib.util
import inspect
import itertools
import pkgutil
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import prose

import pboost
import pboost.dask
import pboost.sklearn

ROOT = Path(__file__).parents[1]
PACKAGE, DOCS, DEV = ROOT / "pboost", ROOT / "docs", ROOT / "docs" / "dev"

#: Where scikit-learn may be imported.
SKLEARN_HOMES = ("pboost.sklearn", "pboost.cli.commands", "pboost.datasets")
#: Rooms and files at the top level, from the ground up: each imports from lower floors only.
FLOORS = (
    ("_core", "_lazy", "_version"),
    ("values",),
    ("bounds", "losses", "threads"),
    ("data",),
    ("datasets", "models", "weak"),
    ("export", "observation"),
    ("growth",),
    ("boosting", "trees"),
    ("inspection", "probit"),
    ("ensembles",),
    ("budget", "distributed"),
    ("acquisition", "cli", "dask", "plot", "sklearn"),
    ("__main__",),
)
#: How many pairs of rooms of which one imports from the other, and files at the top.
MOST_PAIRS, MOST_AT_THE_TOP = 107, 14
FILE_LINES, KERNEL_LINES = 600, 80
#: Most parameters of a function that is not public; functions that have more, and why.
MOST_PARAMETERS = 8
MORE_PARAMETERS = {
    "Rounds": "the arrays of a compiled loop, and what it does with them",
    "fit": "the arguments that scikit-learn's estimators take, for training and validation rows",
}
#: Names of variables, parameters and attributes that do not say what they hold.
VAGUE = {"found", "said", "told", "given", "own", "most", "least", "one", "there", "here", "whole"}
VAGUE |= {"asks", "reasons", "goes_both", "adds_up", "of_many", "is_whole"}
VAGUE |= {"said_here", "uncalled", "check_made", "refuse_masked"}
#: Public names that are among them, by file.
VAGUE_BUT_PUBLIC = {
    name: {"least"} for name in ("base.py", "regression.py", "log_link.py")
}  # Loss.least
#: What the page of a room says, and in how many lines.
ROOM_LINES = 40
ROOM_SAYS = ("Purpose", "Depends on", "Must not depend on", "How to extend it")
#: Folders of docs that Sphinx makes.
MADE = {"generated", "_build", "gallery"}

#: Public names that are not at the top level.
SUBMODULE_NAMES = ["weak.stump", "weak.Stump", "weak.affine", "weak.Affine"]
SUBMODULE_NAMES += ["weak.oracle", "weak.Oracle", "weak.from_estimator", "weak.FromEstimator"]
SUBMODULE_NAMES += ["weak.separator", "weak.Separator", "weak.linear", "weak.Linear"]
SUBMODULE_NAMES += ["growth.graph_growth.StepRecord", "datasets.nine_circles"]
SUBMODULE_NAMES += ["growth.graph_growth.CartStep"]
OBSERVATIONS = ["exact", "flip", "half", "uniform", "adatree2", "gaussian", "sampled"]
OBSERVATIONS += ["Exact", "Flip", "Half", "Uniform", "AdaTree2", "Gaussian", "Sampled"]
SUBMODULE_NAMES += [f"observation.{name}" for name in OBSERVATIONS]
SUBMODULE_NAMES += [f"weak.{name}" for name in ("feature", "hypothesis", "Feature", "Hypothesis")]
NAMESPACES = ("acquisition", "data", "export", "inspection", "models", "plot")
SUBMODULE_NAMES += [
    f"{space}.{name}" for space in NAMESPACES for name in getattr(pboost, space).__all__
]
SUBMODULE_NAMES += [f"growth.generic_greedy.{name}" for name in ("GreedyStep", "RoundRecord")]
SUBMODULE_NAMES += ["dask", *(f"dask.{name}" for name in pboost.dask.__all__)]
SUBMODULE_NAMES += [f"losses.{name}" for name in pboost.losses.__all__]
SUBMODULE_NAMES += [f"bounds.{name}" for name in pboost.bounds.__all__]
SUBMODULE_NAMES += ["sklearn", *(f"sklearn.{name}" for name in pboost.sklearn.__all__)]
PROBLEMS = [f"datasets.{name}" for name in pboost.datasets.__all__ if name.islower()]
SUBMODULE_NAMES += [name for name in PROBLEMS if name not in SUBMODULE_NAMES]


# Imports


def module_name(path):
    parts = ("pboost", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@functools.cache
def imports(path):
    """Return the modules that a file imports anywhere, by name or by a call with their name."""
    actual = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path.name == "__init__.py":  # the names that it passes on are loaded on first use
        tree.body = [node for node in tree.body if not isinstance(node, ast.If)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            actual |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = f"{'.' * node.level}{node.module or ''}"
            actual |= {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            ("require", "import_module", "__import__")
        ):
            actual |= {
                arg.value
                for arg in node.args
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
            }
    return actual


def own_imports(path):
    """Return the modules of the package that a file imports."""
    names = {n if n in MODULES else n.rpartition(".")[0] for n in imports(path)}
    names |= {"pboost._core" for n in names if n.startswith("pboost._core.")}  # kernels
    return names & set(MODULES) - {"pboost"}


def room(module):
    """Return the folder of a module, or its file at the top level."""
    return module.split(".")[1]


def crossings(modules=MODULES):
    """Return pairs (module, module of another room that it imports from)."""
    return [
        (name, other)
        for name, path in modules.items()
        if name != "pboost"
        for other in sorted(own_imports(path))
        if room(other) != room(name)
    ]


def no_relative_import(modules=MODULES):
    for name, path in modules.items():
        yield from (f"{name} imports {of}" for of in imports(path) if of.startswith("."))


def imports_have_no_cycles(modules=MODULES):
    graph = {name: own_imports(path) for name, path in modules.items() if name != "pboost"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield " imports ".join(error.args[1])


def rooms_import_from_lower_floors_only(modules=MODULES):
    floor = {name: number for number, names in enumerate(FLOORS) for name in names}
    rooms = {room(name) for name in modules if name != "pboost"}
    yield from (f"{name} is on no floor" for name in sorted(rooms - set(floor)))
    yield from (f"FLOORS has {name}, which is none" for name in sorted(set(floor) - rooms))
    for name, other in crossings(modules):
        if floor.get(room(other), 0) >= floor.get(room(name), 0):
            yield f"{name} imports {other}"


def rooms_know_few_others():
    pairs = {(room(name), room(other)) for name, other in crossings()}
    if len(pairs) > MOST_PAIRS:
        yield f"{len(pairs)} pairs of rooms, of which one imports from the other"


def few_files_at_the_top():
    if (files := len(list(PACKAGE.glob("*.py")))) > MOST_AT_THE_TOP:
        yield f"{files} files in {PACKAGE.name}"


def only_the_command_line_imports_the_command_line():
    for name, other in crossings():
        if room(other) == "cli" and room(name) != "__main__":
            yield f"{name} imports {other}"


def only_some_modules_import_sklearn():
    for name, path in MODULES.items():
        users = any(imported.split(".")[0] == "sklearn" for imported in imports(path))
        if users and not name.startswith(SKLEARN_HOMES):
            yield name


def core_imports_no_sibling():
    pattern = re.compile(
        # Relative imports may leave the folder, too.
        r"^\s*(?:from|import|cimport)\s+pboost(?!\._core\b)|^\s*from\s+\.\.",
        re.MULTILINE,
    )
    files = [p for e in ("pyx", "pxd", "pyi", "py") for p in (PACKAGE / "_core").glob(f"*.{e}")]
    yield from (p.name for p in files if pattern.search(p.read_text(encoding="utf-8")))


def core_does_without_numpy_headers():
    pattern = re.compile(r"cimport\s+numpy|from\s+numpy\S*\s+cimport|arrayobject")
    files = [*(PACKAGE / "_core").glob("*.p[yx]*"), *(PACKAGE / "_core").glob("*.h")]
    yield from (p.name for p in files if pattern.search(p.read_text(encoding="utf-8")))


# Sizes


def source_files():
    return sorted(
        path
        for folder in (PACKAGE, ROOT / "tests", ROOT / "asv_bench")
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


def files_and_kernels_are_short(paths=None):
    for path in source_files() if paths is None else paths:
        if (lines := code_lines(path)) > FILE_LINES:
            yield f"{path}: {lines} lines of code"
        if path.suffix in (".pyx", ".pxd"):
            long = [of for of in cython_functions(path) if of[1] > KERNEL_LINES]
            yield from (f"{path}: {name} has {lines} lines" for name, lines in long)


def parameters_of_functions(path):
    """Yield name and number of parameters of each function of a file; a class has its init's."""
    for scope in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for node in ast.iter_child_nodes(scope):
            if isinstance(node, ast.FunctionDef):
                taken = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                bound = bool(taken) and taken[0].arg in ("self", "cls")
                yield scope.name if node.name == "__init__" else node.name, len(taken) - bound


def private_functions_have_few_parameters(paths=None):
    """The options of users are their own; inside, what goes together is one record."""
    public = {name.rpartition(".")[2] for name in (*pboost.__all__, *SUBMODULE_NAMES)}
    public |= {f"plot_{name}" for name in pboost.plot.__all__}
    for path in sorted(PACKAGE.rglob("*.py")) if paths is None else paths:
        for name, number in parameters_of_functions(path):
            if number > MOST_PARAMETERS and name not in public | MORE_PARAMETERS.keys():
                yield f"{path.name}: {name} has {number} parameters"


# Names


def names_bound(tree):
    """Yield name and line of what a module binds: variables, parameters, attributes and so on."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node.id if isinstance(node, ast.Name) else node.attr, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, node.lineno


def names_say_what_they_hold(paths=None):
    for path in sorted(PACKAGE.rglob("*.py")) if paths is None else paths:
        vague = VAGUE - VAGUE_BUT_PUBLIC.get(path.name, set())
        bound = names_bound(ast.parse(path.read_text(encoding="utf-8")))
        yield from (f"{path.name}, line {line}: {name}" for name, line in bound if name in vague)


def classes_have_different_names(paths=None):
    homes = {}
    for path in sorted(PACKAGE.rglob("*.py")) if paths is None else paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(path.name)
    for name, files in homes.items():
        if len(files) > 1:
            yield f"{name}: {', '.join(files)}"


# Pages of developers


def every_module_is_in_the_layout():
    pages = "\n".join(path.read_text(encoding="utf-8") for path in DEV.rglob("*.rst"))
    names = {path.name for path in PACKAGE.rglob("*.py")} - {"_version.py"}
    yield from (name for name in sorted(names) if name not in pages)


def house():
    """Return the script that draws the picture of the house."""
    spec = importlib.util.spec_from_file_location("house", DEV / "house.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def the_picture_and_the_list_of_files_are_true():
    made = house()
    for path, text in ((made.PICTURE, made.svg()), (made.LIST, made.listing())):
        if path.read_text(encoding="utf-8") != text:
            yield f"{path.name}: python docs/dev/house.py"


def every_room_has_a_page():
    rooms = {name for name in house().uses() if (PACKAGE / name).is_dir()}
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (DEV / "rooms").glob("*.rst")}
    yield from sorted(set(pages) ^ ({name.strip("_") for name in rooms} | {"values"}))
    for name, page in pages.items():
        if page.count("\n") > ROOM_LINES:
            yield f"{name}.rst: more than {ROOM_LINES} lines"
        yield from (f"{name}.rst: no {what}" for what in ROOM_SAYS if f"**{what}" not in page)


# Pages of users


def pages():
    return sorted(p for p in DOCS.rglob("*.rst") if not MADE & set(p.relative_to(DOCS).parts))


def every_public_name_is_in_the_reference():
    text = (DOCS / "api" / "index.rst").read_text("utf-8")
    listed = set(re.findall(r"^   ([\w.]+)$", text, flags=re.MULTILINE))
    yield from sorted({*pboost.__all__, *SUBMODULE_NAMES} - listed - {"__version__"})


def every_builder_is_among_those_to_choose_from():
    text = (DOCS / "getting_started" / "choosing_a_model.rst").read_text("utf-8")
    builders = {name for name in pboost.__all__ if name.startswith("fit_")}
    yield from sorted(builders - set(re.findall(r"~pboost\.(\w+)", text)))


def lines_under_titles_are_as_long_as_they(paths=None):
    """What is not may be the mark of a merge, in the midst of a text."""
    for page in pages() if paths is None else paths:
        lines = page.read_text(encoding="utf-8").splitlines()
        for number, (above, line) in enumerate(itertools.pairwise(lines), start=2):
            title = re.fullmatch(r"([-=~^]){4,}", line) and above.strip()
            if title and len(line) < len(above):
                yield f"{page}, line {number}"


# Docstrings


def public_objects():
    """Return the public names and what they are, but for modules."""
    names = [name for name in pboost.__all__ if name != "__version__"] + SUBMODULE_NAMES
    actual = {name: functools.reduce(getattr, name.split("."), pboost) for name in names}
    return {name: value for name, value in actual.items() if not inspect.ismodule(value)}


def sections(found):
    """Return the text of each numpydoc section of an object, by its title."""
    text = inspect.getdoc(found) or ""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    return {"Summary": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def described(section):
    """Return the names that a section of parameters or attributes describes."""
    lines = re.findall(r"^\*{0,2}(\w+(?:, \w+)*) :", section, flags=re.MULTILINE)
    lines += re.findall(r"^\*\*(\w+)$", section, flags=re.MULTILINE)
    return {name for line in lines for name in line.split(", ")}


def every_module_has_a_docstring():
    for info in pkgutil.walk_packages(pboost.__path__, "pboost."):
        # The last is one that Cython adds.
        if not info.name.endswith("._cyutility") and not importlib.import_module(info.name).__doc__:
            yield info.name


def of_function(function):
    """Yield what is missing from the docstring of a function."""
    parts = sections(function)
    signature = inspect.signature(function)
    wrong = described(parts.get("Parameters", "")) ^ set(signature.parameters)
    yield from (f"Parameters: {name}" for name in sorted(wrong))
    returns = str(signature.return_annotation)
    expected = "Yields" if "Iterator" in returns else "Returns"
    if {"Returns", "Yields"} & set(parts) != (set() if returns == "None" else {expected}):
        yield f"{expected}: {returns}"
    # A pair of functions may share the example of one.
    elsewhere = "with an example" in parts.get("See Also", "")
    if ">>>" not in parts.get("Examples", "") and not elsewhere:
        yield "no example"


def of_class(cls):
    """Yield what is missing from the docstrings of a class."""
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    choices = pboost.weak.Weak | pboost.observation.Observation | pboost.losses.Loss
    # Those are described where they are raised, at the function that makes them, or at their base.
    if not issubclass(cls, BaseException | choices):
        attributes = described(sections(cls).get("Attributes", ""))
        expected = {field.name for field in fields if field.init}
        if not attributes or (fields and not expected):
            yield "no attributes"
        yield from (f"Attributes: {name}" for name in sorted(expected - attributes))
    for name, member in vars(cls).items():
        is_member = inspect.isfunction(member) or isinstance(member, property)
        if is_member and not name.startswith("_") and not inspect.getdoc(member):
            yield f"{name} has no docstring"


def docstrings_say_all_there_is(objects=None):
    for name, item in (public_objects() if objects is None else objects).items():
        summary = sections(item)["Summary"].strip().split("\n\n")[0]
        if "\n" in summary or not summary.endswith("."):
            yield f"{name}: the summary is one sentence in one line"
        if inspect.isfunction(item):
            yield from (f"{name}: {what}" for what in of_function(item))
        if inspect.isclass(item):
            yield from (f"{name}: {what}" for what in of_class(item))


def texts_use_plain_phrases():
    yield from prose.phrases()


def docstrings_have_few_of_some_words():
    yield from prose.habits()


RULES = (
    no_relative_import,
    imports_have_no_cycles,
    rooms_import_from_lower_floors_only,
    rooms_know_few_others,
    few_files_at_the_top,
    only_the_command_line_imports_the_command_line,
    only_some_modules_import_sklearn,
    core_imports_no_sibling,
    core_does_without_numpy_headers,
    files_and_kernels_are_short,
    private_functions_have_few_parameters,
    names_say_what_they_hold,
    classes_have_different_names,
    every_module_is_in_the_layout,
    the_picture_and_the_list_of_files_are_true,
    every_room_has_a_page,
    every_public_name_is_in_the_reference,
    every_builder_is_among_those_to_choose_from,
    lines_under_titles_are_as_long_as_they,
    every_module_has_a_docstring,
    docstrings_say_all_there_is,
    texts_use_plain_phrases,
    docstrings_have_few_of_some_words,
)


def main():
    """Print what breaks the rules; 1 if anything does."""
    actual = [f"{rule.__name__}: {what}" for rule in RULES for what in rule()]
    print(*actual, sep="\n", end="\n" if actual else "")
    return int(bool(actual))


if __name__ == "__main__":
    sys.exit(main())
