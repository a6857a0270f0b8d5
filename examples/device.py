"""Models of limited size for a microcontroller: pboost, emlearn and micromlgen.

Run as ``python device.py --data folder``, or set the environment variable PBOOST_DATA to the
folder, with files as described in the module ``published_table``. Requires scikit-learn, emlearn,
micromlgen and a compiler: arm-none-eabi-gcc for Cortex-M0, or gcc -m32. At most 4,000 rows of each
data set are drawn and converted to int16, with the grid of the training rows, so all tools see the
same numbers. 70 % of each class are training rows. 30 % of these select the model of each tool with
the smallest error within a number of bytes of code and tables (.text, .rodata and .data with -Os).
The trees of the other tools are from scikit-learn and vote as in their C code; micromlgen does not
support extremely randomized trees. Prints tables of means over three divisions; ``--rst file`` also
writes them to a file.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from many_classes import divided, read
from numpy.typing import NDArray
from oblique_trees import table
from table_command import arguments, each_timed, publish

import pboost as pb

SETS = ("banknote", "pima", "magic04", "spambase", "raisin", "breast_cancer_wdbc")
BYTES = (1024, 4096)
MOST_ROWS, QUICK_SETS, QUICK_ROWS = 4000, 1, 300
DIVISIONS = 3
TOOLS = ("pboost", "emlearn", "micromlgen")
ARM = ("arm-none-eabi-gcc", "-mcpu=cortex-m0", "-mthumb", "-ffreestanding")
HOST = ("gcc", "-m32")
#: Calls the predict function of the other tools; unused functions are removed.
EMLEARN = "int entry(const int16_t *x) {{ return device_predict(x, {d}); }}\n"
MICROMLGEN = (
    'extern "C" int entry(float *x) {{ static Eloquent::ML::Port::{kind} m; '
    "return m.predict(x); }}\n"
)

ADATREE = pb.observation.adatree2()
CHAINS = (5, 10, 20, 40, 80, 160, 320)
OURS: dict[str, Callable[..., Any]] = {
    **{f"stumps {t}": partial(pb.fit_adaboost, n_estimators=t) for t in CHAINS},
    **{
        f"soft tree {n}": partial(pb.fit_boosted_tree, max_nodes=n, observation=ADATREE)
        for n in (15, 31, 63)
    },
    **{
        f"matryoshka {shape}": partial(pb.fit_matryoshka, shape=shape, observation=ADATREE)
        for shape in ((4, 4), (8, 8), (4, 4, 4))
    },
    **{
        f"chain of trees {shape}": partial(
            pb.fit_matryoshka, shape=shape, join="all", learning_rate=0.5
        )
        for shape in ((3, 8), (3, 20), (7, 4), (7, 10), (7, 30), (15, 10))
    },
    **{
        f"sum of {t} trees, depth {d}": partial(
            pb.fit_gradient_boosting,
            loss="log_loss",
            n_estimators=t,
            max_depth=d,
            learning_rate=0.3,
        )
        for t, d in ((8, 2), (8, 3), (20, 2), (20, 3), (50, 2), (50, 3))
    },
}


class Made(NamedTuple):
    """The results of one model: bytes, predictions, and mean comparisons."""

    size: int
    predict: Callable[[NDArray[Any]], NDArray[Any]]
    cost: Callable[[NDArray[Any]], float]


def compiler() -> tuple[str, ...]:
    """Return the compiler, for Cortex-M0 if available."""
    return ARM if shutil.which(ARM[0]) else HOST


def size_of(source: str, folder: Path, end: str = "c", include: str = "") -> int:
    """Return the bytes of code and tables."""
    path, built = folder / f"device.{end}", folder / "device.o"
    path.write_text(source, encoding="utf-8")
    command, *flags = compiler()
    flags += ["-Os", "-w", "-c", str(path), "-o", str(built)]
    if end == "cpp":
        command = command.replace("gcc", "g++")
        flags += ["-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"]
    subprocess.run([command, *flags, *([f"-I{include}"] if include else [])], check=True)
    size = "arm-none-eabi-size" if command.startswith("arm") else "size"
    out = subprocess.run([size, str(built)], check=True, capture_output=True, text=True).stdout
    text, data, *_ = out.splitlines()[1].split()
    return int(text) + int(data)


def ours(values: NDArray[Any], y: NDArray[Any], folder: Path) -> Iterator[Made]:
    """Yield models of pboost, in int16."""
    for fit in OURS.values():
        model, path = fit(values, y), folder / "ours.c"
        file = pb.export.to_c(model, path, "int16", prefix="device", X=values, grid_steps=1)
        assert file.from_grid(file.to_grid(values)).tolist() == values.tolist()
        source = path.read_text(encoding="ascii")
        source = source.replace("int32_t device_score", "static int32_t device_score")
        yield Made(
            size_of(source, folder),
            partial(pb.predict, model),
            partial(_cost, model),
        )


def _cost(model: Any, rows: NDArray[Any]) -> float:
    return float(pb.prediction_cost(model, rows).mean())


def theirs(values: NDArray[Any], y: NDArray[Any]) -> Iterator[Any]:
    """Yield trees and forests of scikit-learn."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    for leaves in (4, 8, 16, 32, 64):
        yield DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0).fit(values, y)
    for kind in (RandomForestClassifier, ExtraTreesClassifier):
        for trees in (3, 5, 10, 20):
            for leaves in (4, 8, 16, 32):
                forest = kind(trees, max_leaf_nodes=leaves, random_state=0)
                yield forest.fit(values, y)


def votes(model: Any, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the class with the most votes of trees, the first if tied, as in both tools."""
    trees = getattr(model, "estimators_", [model])
    said = np.sum([tree.predict_proba(rows) >= 0.5 for tree in trees], axis=0)
    return said.argmax(axis=1)


def comparisons(model: Any, rows: NDArray[Any]) -> float:
    """Return the mean number of comparisons per row in all trees."""
    trees = getattr(model, "estimators_", [model])
    return float(sum(tree.decision_path(rows).sum() / len(rows) - 1 for tree in trees))


def emlearn_size(model: Any, d: int, folder: Path) -> int:
    """Return the bytes of the smaller of the two formats of emlearn."""
    with np.errstate():  # importing emlearn changes NumPy's overflow handling
        import emlearn

    result = []
    for method in ("inline", "loadable"):
        path = folder / "device.h"
        emlearn.convert(model, method=method, dtype="int16_t").save(file=str(path), name="device")
        text = path.read_text(encoding="utf-8")
        # Static functions that are not called are removed.
        text = re.sub(r"^(int\w*) device_predict", r"static \1 device_predict", text, flags=re.M)
        result.append(size_of(text + EMLEARN.format(d=d), folder, include=emlearn.includedir))
    return min(result)


def micromlgen_size(model: Any, folder: Path) -> int:
    """Return the bytes of the code from micromlgen."""
    import micromlgen

    text = micromlgen.port(model).replace("#include <cstdarg>", "#include <stdint.h>")
    kind = "DecisionTree" if "class DecisionTree" in text else "RandomForest"
    return size_of(text + MICROMLGEN.format(kind=kind), folder, "cpp")


def best(every: list[Made], rows: NDArray[Any], y: NDArray[Any], most: int) -> Made:
    """Return the model with the smallest error within the bytes, the smallest model if tied."""
    allowed = [made for made in every if made.size <= most]
    return min(allowed, key=lambda made: (np.mean(made.predict(rows) != y), made.size))


class Data:
    """The name of a data set, its file and the number of rows to read."""

    def __init__(self, name: str, path: Path, most: int) -> None:
        self.name, self.path, self.most = name, path, most


def on_grid(train: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows as integers on the grid of the training rows."""
    minimum, maximum = train.min(axis=0), train.max(axis=0)
    span = np.where(maximum > minimum, maximum - minimum, 1.0)
    step = 2.0 ** np.ceil(np.log2(span / 65000))
    is_integer = (train == np.floor(train)).all(axis=0) & (span < 65000)
    step = np.where(is_integer, 1.0, step)
    middle = np.rint((minimum / 2 + maximum / 2) / step)
    return np.clip(np.rint(rows / step) - middle, -32767, 32767)


def outcome(divisions: int, data: Data) -> tuple[str, list[dict[str, list[float]]]]:
    """Return bytes, comparisons and error of each tool, by size limit."""
    X, y, _ = read(data.path, data.most)
    result: list[dict[str, list[list[float]]]] = [{tool: [] for tool in TOOLS} for _ in BYTES]
    for seed in range(divisions):
        split = divided(X, y, (), seed)
        inner = divided(split.X, split.y, (), seed)
        with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of other libraries
            folder = Path(name)
            train, choose, test = (
                on_grid(inner.X, rows) for rows in (inner.X, inner.X_test, split.X_test)
            )
            trees = list(theirs(train, inner.y))
            made = {"pboost": list(ours(train, inner.y, folder))}
            sizes = {
                "emlearn": partial(emlearn_size, d=X.shape[1], folder=folder),
                "micromlgen": partial(micromlgen_size, folder=folder),
            }
            for tool, size in sizes.items():
                made[tool] = [
                    Made(size(tree), partial(votes, tree), partial(comparisons, tree))
                    for tree in trees
                    if tool == "emlearn" or not type(tree).__name__.startswith("Extra")
                ]
        for tool, every in made.items():
            for limit, of in zip(BYTES, result, strict=True):
                first = best(every, choose, inner.y_test, limit)
                error = 100 * np.mean(first.predict(test) != split.y_test)
                of[tool].append([first.size, first.cost(test), error])
    means = [{tool: np.mean(of[tool], axis=0).tolist() for tool in TOOLS} for of in result]
    return data.name, means


def tables(results: list[tuple[str, list[dict[str, list[float]]]]]) -> str:
    """Return one table per size limit."""
    parts = []
    for k, limit in enumerate(BYTES):
        head = ["set"]
        for tool in TOOLS:
            head += [f"{tool}: bytes", "comparisons", "error %"]
        rows, ahead = [head], 0
        for name, item in results:
            figures = [item[k][tool] for tool in TOOLS]
            ahead += all(figures[0][2] < of[2] for of in figures[1:])
            cells = [f"{b:.0f} {c:.1f} {e:.2f}".split() for b, c, e in figures]
            rows.append([name, *(cell for of in cells for cell in of)])
        title = f"Models of at most {limit} bytes, {' '.join(compiler()[:2])} -Os"
        parts += [
            table(title, rows),
            f"pboost has the lowest error on {ahead} of {len(results)} sets.\n",
        ]
    return "\n".join(parts)


def main(argv: list[str] | None = None) -> None:
    """Run the comparison."""
    quick = "one set, few rows, one division"
    parser, options, folder = arguments(__doc__, quick, argv)
    paths = {name: folder / f"{name}.csv.gz" for name in SETS}
    missing = [
        name for name in SETS[: QUICK_SETS if options.quick else None] if not paths[name].exists()
    ]
    if missing:
        parser.error(f"no data: {folder} lacks {', '.join(missing)}")
    maximum = QUICK_ROWS if options.quick else MOST_ROWS
    sets = [Data(name, paths[name], maximum) for name in SETS][
        : QUICK_SETS if options.quick else None
    ]
    results = each_timed(sets, partial(outcome, 1 if options.quick else DIVISIONS))
    publish(tables(results), options.rst)


if __name__ == "__main__":
    main()
