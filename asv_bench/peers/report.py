"""Tables of what was measured, as text, Markdown and reStructuredText."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asv_bench.peers.floor import KERNELS
from asv_bench.peers.jobs import DEPTH, LIBRARIES, NOT_INSTALLED, PREDICTED, ROUNDS, Case

#: What was measured of each case, or ``{"skipped": reason}``.
Results = dict[Case, dict[str, Any]]
NOTHING = "–"
#: Rows times features below which pboost does not use a second thread.
CELLS_FOR_TWO_THREADS = 400_000
EXACT, BINNED = "pboost-exact", "pboost-binned"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text cells."""

    title: str
    header: list[str]
    rows: list[list[str]]

    def text(self) -> str:
        """Return the table with columns aligned by spaces."""
        lines = [self.header, *self.rows]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.header))]
        padded = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in lines]
        return "\n".join([self.title, "", *(line.rstrip() for line in padded)])

    def markdown(self) -> str:
        """Return the table as a Markdown pipe table."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join([f"**{self.title}**", "", *(f"| {' | '.join(line)} |" for line in lines)])

    def rst(self) -> str:
        """Return the table as a csv-table directive."""
        lines = [f".. csv-table:: {self.title}", f"   :header: {_quoted(self.header)}", ""]
        return "\n".join([*lines, *(f"   {_quoted(row)}" for row in self.rows)])


def _quoted(cells: list[str]) -> str:
    return ", ".join(f'"{cell}"' for cell in cells)


def number(value: float | None) -> str:
    """Return a number to two or three digits, which is what one run is good for."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def ratio(value: float | None, base: float | None) -> str:
    """Return `value` as a multiple of `base`."""
    return NOTHING if value is None or not base or base < 0 else number(value / base)


def _size(case: Case) -> list[str]:
    return [f"{case.n:,}", f"{case.d}"]


def _name(case: Case) -> list[str]:
    library = LIBRARIES[case.kind][case.library]
    return [library.label, library.search]


def _sorted(results: Results, kind: str, value: str) -> list[Case]:
    """Return the one-thread cases of a kind that were measured, size by size, least first."""
    result = [c for c in results if c.kind == kind and c.threads == 1 and value in results[c]]
    order = list(dict.fromkeys((c.n, c.d) for c in result))
    return sorted(result, key=lambda c: (order.index((c.n, c.d)), results[c][value]))


def _of(results: Results, case: Case, library: str, value: str, threads: int = 1) -> Any:
    """Return what another library was measured to do in the place of the one in `case`."""
    other = Case(case.kind, library, case.n, case.d, case.depth, threads)
    return results.get(other, {}).get(value)


def stumps(results: Results) -> Table:
    """Return ns per row, feature and round."""
    rows: list[tuple[tuple[int, int], float, list[str]]] = []
    for case in _sorted(results, "stumps", "cpu_ns"):
        of, ns = results[case], results[case]["cpu_ns"]
        ratios = [ratio(ns, _of(results, case, key, "cpu_ns")) for key in (EXACT, BINNED)]
        second = _of(results, case, case.library, "wall_ns", threads=2)
        cells = [number(ns), *ratios, number(of["wall_ns"]), number(second)]
        rows.append(((case.n, case.d), ns, [*_size(case), *_name(case), *cells]))
    order = list(dict.fromkeys(size for size, _, _ in rows))
    for case, of in results.items():
        for name, (label, search) in KERNELS.items() if case.kind == "floor" else ():
            if name in of:
                as_stumps = Case("stumps", "", case.n, case.d)
                ratios = [
                    ratio(of[name], _of(results, as_stumps, key, "cpu_ns"))
                    for key in (EXACT, BINNED)
                ]
                cells = [*_size(case), label, search, number(of[name]), *ratios]
                rows.append(((case.n, case.d), of[name], [*cells, NOTHING, NOTHING]))
    rows.sort(key=lambda row: (order.index(row[0]) if row[0] in order else len(order), row[1]))
    header = [
        "rows",
        "features",
        "library",
        "search",
        "ns",
        "÷ pboost exact",
        "÷ pboost binned",
        "ns, wall",
        "ns, wall, 2 threads",
    ]
    title = "Boosted stumps: ns per row, feature and round, after set-up"
    return Table(title, header, [cells for _, _, cells in rows])


def setup(results: Results) -> Table:
    """Return the seconds of the set-up and of a whole fit."""
    rows = []
    for case in _sorted(results, "stumps", "cpu_all"):
        of = results[case]
        ratios = [
            ratio(of["cpu_all"], _of(results, case, key, "cpu_all")) for key in (EXACT, BINNED)
        ]
        extrapolated = "" if of["high"] >= ROUNDS else "*"
        error = f"{100 * of['error']:.1f} ({int(of['high'])})"
        cells = [number(of["cpu_setup"]), number(of["cpu_all"]) + extrapolated, *ratios, error]
        rows.append([*_size(case), *_name(case), *cells])
    header = [
        "rows",
        "features",
        "library",
        "search",
        "set-up, s",
        f"{ROUNDS} rounds in all, s",
        "÷ pboost exact",
        "÷ pboost binned",
        "test error, % (rounds)",
    ]
    title = f"Boosted stumps: set-up and {ROUNDS} rounds in all (* extrapolated)"
    return Table(title, header, rows)


def threads(results: Results) -> Table:
    """Return what a second thread gives."""
    rows = []
    for case in results:
        wanted = case.kind == "stumps" and case.n * case.d >= CELLS_FOR_TWO_THREADS
        if wanted and case.threads == 2 and "wall_ns" in results[case]:
            for value, label in (("wall_ns", "rounds, ns"), ("wall_all", "whole fit, s")):
                first, two = _of(results, case, case.library, value), results[case][value]
                cells = [label, number(first), number(two), ratio(first, two)]
                rows.append([*_size(case), *_name(case), *cells])
    header = ["rows", "features", "library", "search", "what", "1 thread", "2 threads", "speed-up"]
    return Table("Second thread: wall time of boosted stumps", header, rows)


def memory(results: Results) -> Table:
    """Return the peak memory of a fit at the largest size."""
    measured = [c for c in results if results[c].get("peak_mb") is not None]
    largest = max((c.n * c.d for c in measured), default=0)
    rows = []
    for case in _sorted({c: results[c] for c in measured}, "stumps", "peak_mb"):
        if case.n * case.d == largest:
            peak = results[case]["peak_mb"]
            cells = [number(peak), ratio(peak, _of(results, case, EXACT, "peak_mb"))]
            rows.append([*_size(case), *_name(case), *cells])
    header = ["rows", "features", "library", "search", "MB", "÷ pboost exact"]
    return Table("Peak memory of a fit of boosted stumps, above the input", header, rows)


def tree(results: Results) -> Table:
    """Return the seconds of one weighted tree."""
    rows = []
    for kind, base in (("full tree", "pboost-gini"), ("tree", "pboost")):
        for case in _sorted(results, kind, "cpu"):
            of = results[case]
            cells = [
                number(of["cpu"]),
                number(of["wall"]),
                ratio(of["cpu"], _of(results, case, base, "cpu")),
                f"{100 * of['error']:.1f}",
            ]
            depth = "full" if case.depth is None else str(case.depth)
            rows.append([*_size(case), depth, *_name(case), *cells])
    header = [
        "rows",
        "features",
        "depth",
        "library",
        "search",
        "CPU, s",
        "wall, s",
        "÷ pboost",
        "test error, %",
    ]
    title = f"One weighted tree: grown in full (÷ pboost, gini) and to depth {DEPTH} (÷ pboost)"
    return Table(title, header, rows)


def predict(results: Results) -> Table:
    """Return the rows scored per second."""
    result = _sorted(results, "predict", "cpu_rate")[::-1]
    rows = []
    for case in result:
        best = _of(results, case, EXACT, "cpu_rate")
        rate = results[case]["cpu_rate"]
        second = _of(results, case, case.library, "wall_rate", threads=2)
        cells = [number(rate), ratio(best, rate), number(results[case]["wall_rate"])]
        rows.append([_name(case)[0], *cells, number(second)])
    header = ["library", "million rows/s", "times slower than pboost", "wall", "wall, 2 threads"]
    n, d = PREDICTED
    return Table(f"Scoring {n:,} float32 rows of {d} features by {ROUNDS} stumps", header, rows)


def row(results: Results) -> Table:
    """Return the time of scoring one row."""
    rows = []
    for case in _sorted(results, "predict", "row_us"):
        us = results[case]["row_us"]
        rows.append([_name(case)[0], number(us), ratio(us, _of(results, case, EXACT, "row_us"))])
    title = f"Scoring one float32 row by {ROUNDS} stumps: one call"
    return Table(title, ["library", "µs, wall", "÷ pboost"], rows)


TABLES: dict[str, Callable[[Results], Table]] = {
    "stumps": stumps,
    "setup": setup,
    "threads": threads,
    "memory": memory,
    "tree": tree,
    "predict": predict,
    "row": row,
}


def notes(results: Results) -> list[str]:
    """Return why competitors were left out, each reason once."""
    lines = []
    for case, of in results.items():
        if of.get("skipped") == NOT_INSTALLED:
            lines.append(f"{LIBRARIES[case.kind][case.library].module}: {NOT_INSTALLED}")
        elif "skipped" in of:
            lines.append(f"{case}: {of['skipped']}")
    return list(dict.fromkeys(lines))
