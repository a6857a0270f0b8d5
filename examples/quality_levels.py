"""Accuracy against training time: the levels of `quality`, and other libraries.

Run as ``python quality_levels.py --data folder``. The folder and the options are those of
``default_boosters.py``. The other libraries grow 30 to 1000 trees, and all their other parameters
are defaults. HistGradientBoosting does not stop early. ChimeraBoost chooses its number of trees
itself, up to the given one.

Prints a table of the losses and CPU times relative to ``quality=3``; ``--rst file`` also writes it
to a file, and ``--svg file`` plots it.
"""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from accuracy_picture import GRID, INK, mark, text
from default_boosters import (
    LIBRARIES,
    QUICK_ROWS,
    QUICK_SETS,
    TASKS,
    compared,
    data_sets,
    installed,
    outcome,
)
from oblique_trees import table
from table_command import Results, arguments, publish, stored, write

TREES = (30, 100, 300, 1000)
LEVELS, MIDDLE = (1, 2, 3, 4, 5), "pboost, quality=3"
COLORS = {
    "pboost": "#3d85e0",
    "LightGBM": "#e07b39",
    "XGBoost": "#d0453e",
    "HistGradientBoosting": "#b8860b",
    "CatBoost": "#9a5fd0",
    "ChimeraBoost": "#2a9d8f",
}
#: Geometry of a chart: the charts of the tasks are one below the other.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 600, 270, 56, 440, 34, 220
TIMES = (0.1, 0.3, 1, 3, 10, 30, 100)
#: Larger losses are drawn at the upper edge.
MOST_LOSS = 0.3


class Point(NamedTuple):
    """Mean log ratio of losses, its standard error, and ratio of CPU times, to ``quality=3``."""

    loss: float
    error: float
    time: float
    n_sets: int


def settings(names: dict[str, str]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the library and the options of each row of the table."""
    rows = {f"pboost, quality={k}": ("pboost", {"quality": k}) for k in LEVELS}
    for name, with_version in names.items():
        more = {"early_stopping": False} if name == "HistGradientBoosting" else {}
        number = "max_iter" if more else "n_estimators"
        for trees in TREES if name != "pboost" else ():
            rows[f"{with_version}, {trees} trees"] = name, {number: trees, **more}
    return rows


def points_of(results: Results, keys: list[str]) -> dict[str, Point]:
    """Return the point of each setting that was measured on at least two sets."""
    points = {}
    for row in dict.fromkeys(row for key in keys for row in results[key]):
        pairs = [(results[key][row], results[key][MIDDLE]) for key in keys if row in results[key]]
        if len(pairs) < 2:
            continue
        ratio, error, cpu = compared(pairs)
        points[row] = Point(float(ratio.mean()), error, cpu, len(ratio))
    return points


def rows_of(by_task: dict[str, dict[str, Point]], order: list[str]) -> str:
    """Return the table."""
    heads = [head for task in by_task for head in (f"{task}, {TASKS[task]}", "CPU time")]
    rows = [["setting", *heads]]
    for name in order:
        cells = []
        for points in by_task.values():
            at = points.get(name)
            cells += (
                ["", ""]
                if at is None
                else [f"{100 * at.loss:+.1f} ± {100 * at.error:.1f} %", f"{at.time:.2f}"]
            )
        if any(cells):
            rows.append([name, *cells])
    return table("Losses and CPU times relative to quality=3", rows)


def picture(by_task: dict[str, dict[str, Point]]) -> str:
    """Return charts of loss against CPU time as SVG."""
    parts = [part for k, task in enumerate(by_task) for part in chart(task, by_task[task], k)]
    for k, (name, ink) in enumerate(COLORS.items()):
        shape = "circle" if name == "pboost" else "square"
        parts += [mark(RIGHT + 14, 56 + 22 * k, ink, shape)]
        parts += [text(RIGHT + 24, 60 + 22 * k, name, "start", ink)]
    height = HEIGHT * len(by_task)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="12">'
    )
    return "\n".join([head, *parts, "</svg>", ""])


def chart(task: str, points: dict[str, Point], place: int) -> list[str]:
    """Return the elements of the chart of a task."""
    top, bottom = TOP + HEIGHT * place, BOTTOM + HEIGHT * place
    worst = min(max(point.loss for point in points.values()), MOST_LOSS)
    ticks = np.linspace(*bounds(min(point.loss for point in points.values()), worst), 5)

    def x_of(time: float) -> float:
        low, high = math.log(TIMES[0]), math.log(TIMES[-1])
        return LEFT + (RIGHT - LEFT) * (math.log(time) - low) / (high - low)

    def y_of(loss: float) -> float:
        return bottom - (bottom - top) * (loss - ticks[0]) / (ticks[-1] - ticks[0])

    parts = [text(8, top - 16, f"{task}: {TASKS[task]} relative to quality=3", "start")]
    for tick in ticks:
        parts.append(f'<path d="M{LEFT} {y_of(tick):.1f}H{RIGHT}" stroke="{GRID}"/>')
        parts.append(text(LEFT - 6, y_of(tick) + 4, f"{100 * tick:+.0f} %", "end"))
    for time in TIMES:
        parts.append(f'<path d="M{x_of(time):.1f} {bottom}v5" stroke="{INK}"/>')
        parts.append(text(x_of(time), bottom + 18, f"{time:g}"))
    parts.append(text((LEFT + RIGHT) / 2, bottom + 34, "CPU time relative to quality=3"))
    for name, ink in COLORS.items():
        places = [
            (x_of(at.time), y_of(min(at.loss, ticks[-1])))
            for row, at in points.items()
            if row.startswith(name)
        ]
        shape = "circle" if name == "pboost" else "square"
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        parts += [f'<path d="M{path}" fill="none" stroke="{ink}" stroke-width="2"/>'] * bool(path)
        parts += [mark(x, y, ink, shape) for x, y in places]
    return parts


def bounds(low: float, high: float) -> tuple[float, float]:
    """Return the ends of the axis of losses, in steps of 4 %."""
    return math.floor(low * 25) / 25, math.ceil(max(high, low + 0.04) * 25) / 25


def main(argv: list[str] | None = None) -> None:
    """Compare the settings on all sets of the folder."""
    warnings.filterwarnings("ignore")
    _, options, folder = arguments(
        __doc__,
        "three small sets of each task",
        argv,
        results="file with the outcomes of earlier runs",
        svg="file to write the charts to",
        rows=(1000, "largest number of rows of a set"),
    )
    most_rows = QUICK_ROWS if options.quick else options.rows
    results, measured = stored(options.results), settings(installed())
    keys: dict[str, list[str]] = {task: [] for task in TASKS}
    for data in data_sets(folder, most_rows):
        if options.quick and len(keys[data.task]) == QUICK_SETS:
            continue
        key = f"{data.name}, {data.task}, {most_rows} rows"
        keys[data.task].append(key)
        of_set = results.setdefault(key, {})
        for row, (name, chosen) in measured.items():
            if row not in of_set:
                of_set[row] = outcome(data, LIBRARIES[name], chosen, 1)
        write(options.results, results)
        print(data.name, file=sys.stderr)
    by_task = {task: points_of(results, of_task) for task, of_task in keys.items() if of_task}
    rows = dict.fromkeys(row for of_task in by_task.values() for row in of_task)
    publish(rows_of(by_task, list(rows)) + "\n", options.rst)
    if options.svg:
        Path(options.svg).write_text(picture(by_task), encoding="utf-8")


if __name__ == "__main__":
    main()
