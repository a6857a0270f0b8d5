"""The charts of gradient boosting: training time and log loss beside other libraries.

Run as ``python boosted_picture.py docs/benchmarks/boosted_table.rst docs/_static/boosted.svg``: it
draws the rows of 100,000 rows and depth 6 of the table that ``asv_bench.peers.boosted`` writes.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from xml.sax.saxutils import escape

#: The libraries: their names in the table and in the chart. The fastest variant of each is drawn.
LIBRARIES = {
    "pboost": "pboost",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "scikit-learn": "scikit-learn",
    "catboost": "CatBoost",
}
ROWS, DEPTH = "100,000", "6"
OURS, OTHERS, INK = "#2a9d8f", "#e07b39", "#808890"
WIDTH, LEFT, PANEL, BAR, GAP = 480, 100, 290, 20, 8


def bars(table: str) -> dict[str, tuple[float, float]]:
    """Return seconds and log loss by library, from the table of two classes."""
    first = table.partition("two classes")[2].partition("csv-table")[0]
    row = rf'"{ROWS}", "{DEPTH}", "([^"]+)", "([\d.]+)", "[\d.]+", "[\d.]+", "([\d.]+)"'
    by_library: dict[str, tuple[float, float]] = {}
    for name, seconds, loss in re.findall(row, first):
        library = name.split()[0].rstrip(",")
        if library == "pboost" and name != "pboost":
            continue
        best = by_library.get(library, (float("inf"), 0.0))
        by_library[library] = min(best, (float(seconds), float(loss)))
    return {label: by_library[name] for name, label in LIBRARIES.items() if name in by_library}


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Return a line of text."""
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{INK}">{escape(words)}</text>'
    )


def panel(title: str, values: dict[str, float], form: str, top: float) -> list[str]:
    """Return the parts of one bar chart."""
    parts, largest = [text(0, top + 12, title)], max(values.values())
    for k, (label, value) in enumerate(values.items()):
        y = top + 26 + k * (BAR + GAP)
        width = PANEL * value / largest
        ink = OURS if label == "pboost" else OTHERS
        parts.append(text(LEFT - 8, y + 15, label, "end"))
        parts.append(
            f'<rect x="{LEFT}" y="{y:.0f}" width="{width:.1f}" height="{BAR}" fill="{ink}"/>'
        )
        parts.append(text(LEFT + width + 6, y + 15, form.format(value)))
    return parts


def picture(table: str) -> str:
    """Return both charts, an SVG."""
    by_label = bars(table)
    height = 26 + len(by_label) * (BAR + GAP) + 20
    parts = panel(
        f"Training time of 100 trees of depth {DEPTH}, {ROWS} rows, one thread",
        {label: seconds for label, (seconds, _) in by_label.items()},
        "{:.2f} s",
        0,
    )
    parts += panel(
        "Log loss on new rows",
        {label: loss for label, (_, loss) in by_label.items()},
        "{:.3f}",
        height,
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {2 * height}" '
        f'width="{WIDTH}" height="{2 * height}" font-family="system-ui, sans-serif" '
        f'font-size="13">'
    )
    return "\n".join([head, *parts, "</svg>", ""])


def main(argv: list[str] | None = None) -> None:
    """Draw the table of a file into another."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", type=Path, help="docs/benchmarks/boosted_table.rst")
    parser.add_argument("svg", type=Path, help="the file to write")
    options = parser.parse_args(argv)
    options.svg.write_text(picture(options.table.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
