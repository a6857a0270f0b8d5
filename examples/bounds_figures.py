"""Figures 2 and 3 of [M]: bounds on the training error of chains, trees and matryoshki.

[M] is E. Grossmann, "A theory of probabilistic boosting, decision trees and matryoshki",
arXiv:cs/0607110. Run as ``python bounds_figures.py --out folder``: prints the numbers and writes
one PNG per figure, for which matplotlib is needed.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

from pboost import bounds

RHOS = {"31/32": 31 / 32, "7/8": 7 / 8, "3/4": 3 / 4, "1/2": 1 / 2, "1/4": 1 / 4}
SIZES = (1024, 65536)
FILES = ("bounds_figure2.png", "bounds_figure3.png")
RHO_OF_FIGURE_3 = 31 / 32


def integer_sizes(T: int, levels: int) -> list[int]:
    """Return powers of 2 as equal as possible, ascending, whose product is T, a power of 2."""
    exponent, larger = divmod(T.bit_length() - 1, levels)
    return [2**exponent] * (levels - larger) + [2 ** (exponent + 1)] * larger


def table_of_rows(heads: list[str], rows: list[list[str]]) -> str:
    """Return right-aligned columns."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = (
        "  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in [heads, *rows]
    )
    return "\n".join(line.rstrip() for line in lines) + "\n"


def table_of_figure_2(T: int) -> str:
    """Return the bounds with T weak classifiers, one row per rho."""
    heads = ["rho", "edge", "tree", "two levels", "at T1", "2-matryoshka", "AdaBoost"]
    rows = []
    for name, rho in RHOS.items():
        inner = 2.0 ** np.arange(int(math.log2(T)) + 1)
        two = bounds.nested_bound((inner, T / inner), rho)
        best = int(np.argmin(two))
        row = [name, f"{math.sqrt(1 - rho**2) / 2:.3f}", f"{bounds.tree_bound(T, rho):.2e}"]
        row += [f"{two[best]:.2e}", f"{inner[best]:.0f}"]
        row += [f"{bounds.matryoshka2_bound(T, rho):.2e}", f"1e{T * math.log10(rho):.0f}"]
        rows.append(row)
    return table_of_rows(heads, rows)


def nested_at_levels(T: int) -> dict[str, list[float]]:
    """Return the bounds of 1, 2, ... levels: of sizes T**(1 / levels), and of integer sizes."""
    maximum = T.bit_length() - 1
    integer = [integer_sizes(T, levels) for levels in range(1, maximum + 1)]
    real = [[T ** (1 / levels)] * levels for levels in range(1, maximum + 5)]
    sizes = {"real": real, "smaller inside": integer, "larger inside": [s[::-1] for s in integer]}
    return {
        name: [float(bounds.nested_bound(s, RHO_OF_FIGURE_3)) for s in item]
        for name, item in sizes.items()
    }


def table_of_figure_3(T: int) -> str:
    """Return the bounds at each number of levels."""
    curves, rows = nested_at_levels(T), []
    for levels in range(1, len(curves["real"]) + 1):
        row = [str(levels), f"{T ** (1 / levels):.2f}"]
        row += [f"{v[levels - 1]:.5f}" if levels <= len(v) else "" for v in curves.values()]
        rows.append(row)
    return table_of_rows(["levels", "size", "bound", "smaller inside", "larger inside"], rows)


def tables() -> str:
    """Return all numbers as text."""
    parts = []
    for T in SIZES:
        parts.append(f"Figure 2: T = {T} weak classifiers\n\n{table_of_figure_2(T)}")
    for T in SIZES:
        parts.append(f"Figure 3: T = {T}, rho = 31/32\n\n{table_of_figure_3(T)}")
    return "\n".join(parts)


def draw_figure_2(path: Path) -> None:
    """Draw the bounds against T, and of two levels against the size of the inner tree."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    T, powers = np.geomspace(1, 1024, 200), 2.0 ** np.arange(11)
    for i, (name, rho) in enumerate(RHOS.items()):
        color = f"C{i}"
        left.loglog(T, bounds.tree_bound(T, rho), color=color, label=f"ρ = {name}")
        left.loglog(powers, bounds.matryoshka2_bound(powers, rho), "--", color=color)
        left.loglog(T, bounds.adaboost_bound(T, rho), ":", color=color)
        right.loglog(T, bounds.nested_bound((T, 1024 / T), rho), color=color, label=f"ρ = {name}")
    left.set(xlabel="weak classifiers T", ylabel="bound", ylim=(1e-4, 1.3))
    left.set_title("tree (full), 2-matryoshka (dashed), AdaBoost (dotted)", fontsize=9)
    right.set_title("tree of trees, 1024 weak classifiers", fontsize=9)
    right.set(xlabel="weak classifiers in the inner trees, T1")
    left.legend(fontsize=8)
    figure.savefig(path, dpi=72)


def draw_figure_3(path: Path) -> None:
    """Draw the bound of L levels of equal size against L."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    for axes, T in zip(figure.subplots(1, 2), SIZES, strict=True):
        styles = ("k-", "C0.--", "C1.--")
        labels = ("sizes T^(1/L)", "powers of 2, smaller inside", "powers of 2, larger inside")
        for curve, style, label in zip(nested_at_levels(T).values(), styles, labels, strict=True):
            axes.plot(range(1, len(curve) + 1), curve, style, label=label)
        axes.axhline(bounds.tree_bound(T, RHO_OF_FIGURE_3), color="C3", label="tree, not nested")
        axes.set(xlabel="nesting levels L", title=f"T = {T}, ρ = 31/32", ylim=(0, None))
        axes.set_xticks(range(2, T.bit_length() + 4, 2))
    axes.legend(fontsize=8)
    figure.axes[0].set_ylabel("bound")
    figure.savefig(path, dpi=72)


def main(argv: list[str] | None = None) -> None:
    """Print the numbers and write the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the figures")
    out = parser.parse_args(argv).out
    print(tables())
    out.mkdir(parents=True, exist_ok=True)
    for name, draw in zip(FILES, (draw_figure_2, draw_figure_3), strict=True):
        draw(out / name)
        print(f"written: {out / name}")


if __name__ == "__main__":
    main()
