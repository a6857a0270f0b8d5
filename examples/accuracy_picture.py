"""The figure of a page of benchmarks: test error against comparisons per row.

Run as ``python accuracy_picture.py docs/benchmarks/accuracy_table.rst docs/_static/accuracy.svg``.
It plots the means of the table from ``accuracy_per_comparison.py``, in colors that are readable on
white and on black.
"""

from __future__ import annotations

import argparse
import math
import re
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

#: Models to plot: name in the table, name in the figure, color and marker.
DRAWN = {
    "soft tree": ("pboost: soft tree", "#2a9d8f", "circle"),
    "matryoshka 16,16,…": ("pboost: matryoshka", "#3d85e0", "circle"),
    "the same, rate 0.3": ("pboost: chain of small trees", "#9a5fd0", "circle"),
    "AdaBoost": ("pboost: AdaBoost", "#7d8a99", "circle"),
    "xgboost, depth 3": ("xgboost, depth 3", "#e07b39", "square"),
    "xgboost, depth 6": ("xgboost, default depth", "#d0453e", "square"),
    "scikit-learn tree": ("scikit-learn: tree", "#b8860b", "square"),
}
INK, GRID = "#808890", "#80889055"
WIDTH, HEIGHT = 480, 410
LEFT, RIGHT, TOP, BOTTOM = 46, 470, 30, 250
COSTS = (5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Line:
    """The points of a model, by budget: comparisons per row and error in %."""

    name: str
    points: list[tuple[float, float]]


def means(table: str) -> dict[str, list[tuple[float, float]]]:
    """Return the first table as comparisons per row and error in %, by model and budget."""
    first = table.split(".. table::")[1]
    result = {}
    for name, row in re.findall(r"^ *(\S.*?)  +(\d.*\))$", first, flags=re.MULTILINE):
        cells = re.findall(r"([\d.]+) \(([\d.]+)\)", row)
        result[name] = [(float(cost), float(error)) for error, cost in cells]
    return result


def lines_of(table: str) -> list[Line]:
    """Return the lines to plot."""
    rows = means(table)
    return [Line(name, list(dict.fromkeys(rows[name]))) for name in DRAWN if name in rows]


def x_of(cost: float) -> float:
    """Return the x coordinate of a cost, on a logarithmic scale."""
    low, high = math.log(COSTS[0]), math.log(COSTS[-1] * 1.1)
    return LEFT + (RIGHT - LEFT) * (math.log(cost) - low) / (high - low)


def text(x: float, y: float, words: str, anchor: str = "middle", ink: str = INK) -> str:
    """Return an SVG text element."""
    place = f'x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{ink}"'
    return f"<text {place}>{escape(words)}</text>"


def mark(x: float, y: float, ink: str, shape: str) -> str:
    """Return an SVG marker: circles for pboost, squares for other libraries."""
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{ink}"/>'
    return f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7" fill="{ink}"/>'


def picture(table: str) -> str:
    """Return the figure of a table as SVG."""
    lines = lines_of(table)
    errors = [error for line in lines for _, error in line.points]
    low, high = math.floor(min(errors)), math.ceil(max(errors))

    def y_of(error: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (error - low) / (high - low)

    parts = [text(LEFT - 40, TOP - 14, "test error, mean of ten data sets", "start")]
    for error in range(low, high + 1):
        y = y_of(error)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{RIGHT}" stroke="{GRID}"/>')
        parts.append(text(LEFT - 6, y + 4, f"{error} %", "end"))
    for cost in COSTS:
        parts.append(f'<path d="M{x_of(cost):.1f} {BOTTOM}v5" stroke="{INK}"/>')
        parts.append(text(x_of(cost), BOTTOM + 20, str(cost)))
    parts.append(text((LEFT + RIGHT) / 2, BOTTOM + 40, "comparisons to predict one row"))
    for k, line in enumerate(lines):
        label, ink, shape = DRAWN[line.name]
        places = [(x_of(cost), y_of(error)) for cost, error in line.points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        dash = ' stroke-dasharray="5 3"' if shape == "square" else ""
        parts.append(f'<path d="M{path}" fill="none" stroke="{ink}" stroke-width="2"{dash}/>')
        parts += [mark(x, y, ink, shape) for x, y in places]
        x, y = (LEFT, LEFT + 225)[k % 2], BOTTOM + 72 + 22 * (k // 2)
        parts.append(mark(x, y - 4, ink, shape))
        parts.append(text(x + 12, y, label, "start", ink))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="system-ui, sans-serif" font-size="13">'
    )
    return "\n".join([head, *parts, "</svg>", ""])


def main(argv: list[str] | None = None) -> None:
    """Read the table from one file and write the figure to another."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", type=Path, help="docs/benchmarks/accuracy_table.rst")
    parser.add_argument("svg", type=Path, help="the file to write")
    options = parser.parse_args(argv)
    options.svg.write_text(picture(options.table.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
