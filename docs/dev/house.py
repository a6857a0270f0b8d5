"""Draw the subpackages and their imports, and list the first sentence of each file.

    python docs/dev/house.py     writes docs/dev/house.svg and docs/dev/files.rst

A *room* is a subpackage or a module at the top level. It is drawn one *floor* above the highest
room that it imports from. The command line runs `import pboost` and is drawn above all rooms. An
arrow is omitted if a path of other arrows implies it.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

PACKAGE = Path(__file__).resolve().parents[2] / "pboost"
PICTURE, LIST = (Path(__file__).with_name(name) for name in ("house.svg", "files.rst"))
#: Files at the top level that are not drawn.
LEFT_OUT = {"_lazy", "_version", "__main__"}
#: Sizes in pixels: picture width, letter width, line height, gap between boxes, gap between floors.
WIDTH, LETTER, LINE, GAP, STAIRS = 760, 6.05, 13, 26, 34
#: Width of the boxes of a floor, by the number of boxes.
BOX = {1: 420, 2: 320, 3: 222, 4: 160}


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Return a mapping from module names to the files of the package."""
    result = {}
    for path in sorted(package.rglob("*.py")):
        parts = (package.name, *path.relative_to(package).with_suffix("").parts)
        result[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return result


def room(module: str) -> str:
    """Return the room of a module: its subpackage, or the module at the top level."""
    return module.split(".")[1]


def rooms_imported(path: Path) -> set[str]:
    """Return the rooms that a file imports from, including imports inside functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path.name == "__init__.py":  # exported names are loaded on first use
        tree.body = [node for node in tree.body if not isinstance(node, ast.If)]
    nodes = ast.walk(tree)
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    inside = {node.module for node in froms if node.module.startswith("pboost.")}
    top = {alias.name for node in froms if node.module == "pboost" for alias in node.names}
    return {room(name) for name in inside} | top


def pairs(package: Path = PACKAGE) -> set[tuple[str, str]]:
    """Return the pairs (room, room that it imports from)."""
    return {
        (room(name), other)
        for name, path in modules(package).items()
        if "." in name
        for other in rooms_imported(path)
        if other != room(name)
    }


def uses(package: Path = PACKAGE) -> dict[str, set[str]]:
    """Return a mapping from each drawn room to the rooms that it imports from."""
    result: dict[str, set[str]] = {room(name): set() for name in modules(package) if "." in name}
    for name, other in pairs(package):
        result[name].add(other)
    drawn = {name: result[name] - LEFT_OUT for name in sorted(result) if name not in LEFT_OUT}
    faces = {
        room(name)
        for name, path in modules(package).items()
        if "." in name and re.search(r"^ *import pboost\b", path.read_text("utf-8"), re.MULTILINE)
    }
    highest = floors({name: drawn[name] for name in drawn if name not in faces})[-1]
    return {name: drawn[name] | set(highest if name in faces else ()) for name in drawn}


def floors(below: dict[str, set[str]]) -> list[list[str]]:
    """Return the rooms of each floor, starting with the lowest floor.

    Circular imports raise CycleError.
    """
    number: dict[str, int] = {}
    for name in TopologicalSorter(below).static_order():
        number[name] = 1 + max((number[other] for other in below[name]), default=-1)
    return [[n for n in sorted(number) if number[n] == i] for i in range(max(number.values()) + 1)]


def arrows(below: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Return the pairs of rooms that no path of other pairs implies."""

    def reach(name: str) -> set[str]:
        return below[name].union(*(reach(other) for other in below[name]))

    return sorted(
        (name, other)
        for name, others in below.items()
        for other in others
        if not any(other in reach(between) for between in others - {other})
    )


def first_sentence(path: Path) -> str:
    """Return the first sentence of a file's docstring without the full stop, or an empty string."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        text = ast.get_docstring(ast.parse(text)) or ""
    elif path.suffix == ".pyx":
        text = text.removeprefix('"""').partition('"""')[0]
    else:
        text = re.match(r"(/?[#*] ?.*\n|\s\*.*\n)*", text).group()
        text = re.sub(r"^ ?/?[#*]+ ?|\*/$", "", text, flags=re.MULTILINE)
    return re.split(r"\.(?:\s|$)", " ".join(text.split("\n\n")[0].split()))[0]


class Box:
    """The box of a room in the picture, with its text and position."""

    def __init__(self, name: str, x: float, width: float) -> None:
        self.name, self.x, self.width = name, x, width
        letters = int((width - 18) / LETTER)
        folder = PACKAGE / name
        source = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
        purpose = first_sentence(source).replace("`", "")
        kind = "*.pyx" if name == "_core" else "*.py"
        files = sorted(p.stem for p in folder.rglob(kind) if p.stem != "__init__")
        self.title = name if folder.is_dir() else f"{name}.py"
        self.purpose = textwrap.wrap(purpose, letters, break_on_hyphens=False)
        self.files = textwrap.wrap("  ".join(files), letters)

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def height(self) -> float:
        return LINE * (1 + len(self.purpose) + len(self.files)) + 4 * bool(self.files) + 14

    def draw(self, y: float, height: float) -> Iterator[str]:
        """Yield the SVG elements of the box, with its top at y and with the height of its floor."""
        yield (
            f'<rect x="{self.x:.0f}" y="{y:.0f}" width="{self.width:.0f}" height="{height:.0f}" '
            'rx="5" class="room"/>'
        )
        y += 4
        for kind, lines in (("name", [self.title]), ("what", self.purpose), ("file", self.files)):
            y += 4 * (kind == "file")
            for line in lines:
                y += LINE
                yield (
                    f'<text x="{self.x + 9:.0f}" y="{y:.0f}" class="{kind}">{escape(line)}</text>'
                )


def arranged(below: dict[str, set[str]]) -> list[list[Box]]:
    """Return the boxes of each floor, starting with the highest floor.

    A box is placed near the boxes of the rooms that import it.
    """
    centre: dict[str, float] = {}
    drawn = arrows(below)
    rows = []
    for names in reversed(floors(below)):
        users = {name: [centre[u] for u, other in drawn if other == name] for name in names}
        names.sort(key=lambda n: (sum(users[n]) / len(users[n]) if users[n] else WIDTH / 2, n))
        width = BOX[len(names)]
        x = (WIDTH - len(names) * (width + GAP) + GAP) / 2
        row = [Box(name, x + i * (width + GAP), width) for i, name in enumerate(names)]
        centre |= {box.name: box.middle for box in row}
        rows.append(row)
    return rows


def passage(row: list[Box], x: float) -> float:
    """Return the position at which an arrow passes between the boxes of a floor."""
    gaps = [row[0].x - GAP / 2, *(box.x + box.width + GAP / 2 for box in row)]
    return min(gaps, key=lambda gap: abs(gap - x))


def curve(points: list[tuple[float, float]]) -> str:
    """Return an arrow that passes through the points in vertical direction."""
    path = "M{:.0f} {:.0f}".format(*points[0])
    for (x1, y1), (x2, y2) in pairwise(points):
        bend = (y2 - y1) / 2 if x1 != x2 else 0
        path += f"C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"
    return f'<path d="{path}" class="arrow"/>'


def spread(number: int, count: int, box: Box) -> float:
    """Return the position of arrow `number` of `count` arrows on the edge of a box."""
    return box.middle + (number - (count - 1) / 2) * min(36, (box.width - 40) / count)


def svg() -> str:
    """Return the picture as SVG text."""
    below = uses()
    rows = arranged(below)
    heights = [max(box.height for box in row) for row in rows]
    tops = [16 + sum(heights[:i]) + i * STAIRS for i in range(len(rows))]
    at = {box.name: (i, box) for i, row in enumerate(rows) for box in row}
    drawn = arrows(below)
    lines = []
    for name, other in drawn:
        (i, box), (k, end) = at[name], at[other]
        # The arrows at a box are sorted by the position of their other end.
        out = sorted((o for n, o in drawn if n == name), key=lambda o: at[o][1].middle)
        into = sorted((n for n, o in drawn if o == other), key=lambda n: at[n][1].middle)
        x1 = spread(out.index(other), len(out), box)
        x2 = spread(into.index(name), len(into), end)
        points = [(x1, tops[i] + heights[i])]
        for floor in range(i + 1, k):
            x = passage(rows[floor], x1 + (x2 - x1) * (floor - i) / (k - i))
            points += [(x, tops[floor] - 4), (x, tops[floor] + heights[floor] + 4)]
        lines.append(curve([*points, (x2, tops[k] - 2)]))
    boxes = [
        line
        for row, y, height in zip(rows, tops, heights, strict=True)
        for box in row
        for line in box.draw(y, height)
    ]
    total = tops[-1] + heights[-1] + 16
    return "\n".join(
        [HEAD.format(width=WIDTH, height=f"{total:.0f}"), *lines, *boxes, "</svg>", ""]
    )


HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" \
viewBox="0 0 {width} {height}" font-family="'DejaVu Sans Mono', Menlo, Consolas, monospace" \
font-size="10">
<style>
.ground {{ fill: #fff }}
.room {{ fill: #f3f6fb; stroke: #5b6b8c }}
.name {{ font-weight: bold; font-size: 12px; fill: #14213d }}
.what {{ fill: #14213d }}
.file {{ fill: #5b6b8c }}
.arrow {{ fill: none; stroke: #8a97b4; stroke-width: 1.2; marker-end: url(#tip) }}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" \
orient="auto"><path d="M0 0 8 4 0 8z" fill="#5b6b8c"/></marker></defs>
<rect width="{width}" height="{height}" class="ground"/>"""


def listing() -> str:
    """Return the page that lists the files of each room, starting with the lowest floor."""
    title = "Files"
    lines = [":nosearch:", "", title, "=" * len(title), ""]
    lines += ["The first sentence of each file, written by ``docs/dev/house.py``.", ""]
    rooms = [name for floor in floors(uses()) for name in floor if (PACKAGE / name).is_dir()]
    folders = [
        folder
        for name in rooms
        for folder in (PACKAGE / name, *sorted((PACKAGE / name).glob("[a-z]*/")))
    ]
    for folder in (PACKAGE, *folders):
        title = folder.relative_to(PACKAGE.parent if folder == PACKAGE else PACKAGE).as_posix()
        lines += [title, "-" * len(title), ""]
        for path in sorted(folder.iterdir() if folder == PACKAGE else folder.rglob("*")):
            if path.suffix in (".py", ".pyx", ".pxd", ".h") and (said := first_sentence(path)):
                said = re.sub(r"(?<!`)`(?!`)", "``", said)
                item = f"* ``{path.relative_to(folder).as_posix()}``: {said}"
                lines += textwrap.wrap(item, 100, subsequent_indent="  ", break_on_hyphens=False)
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PICTURE.write_text(svg(), encoding="utf-8")
    LIST.write_text(listing(), encoding="utf-8")
    print(f"{len(uses())} rooms on {len(floors(uses()))} floors, {len(pairs())} pairs")
