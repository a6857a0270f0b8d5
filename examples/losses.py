"""The figure of losses of [L]: what a margin costs under each loss.

[L] are the lecture notes "Tree-based learning and ensemble methods". Run as
``python losses.py --out folder``: prints a table and writes one PNG, for which matplotlib is
needed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from pboost.losses import LOSSES

FILE = "losses.png"
OF_LABELS = {
    name: LOSSES[name] for name in ("exponential", "log_loss", "squared_error", "hinge", "probit")
}
MARGINS = (-2.0, -1.0, 0.0, 0.5, 1.0, 2.0)


def losses(margin: np.ndarray) -> dict[str, np.ndarray]:
    """Return the loss of each margin, by the name of the loss."""
    result = {"misclassification": (margin <= 0).astype(float)}
    for name, loss in OF_LABELS.items():
        result[name] = loss.reported * loss.value(np.ones_like(margin), margin)
    return result


def table() -> str:
    """Return the losses of a few margins."""
    columns = losses(np.array(MARGINS))
    width = max(map(len, columns))
    lines = ["margin".ljust(width) + "".join(f"{m:9.1f}" for m in MARGINS)]
    for name, values in columns.items():
        lines.append(name.ljust(width) + "".join(f"{value:9.4f}" for value in values))
    return "\n".join(lines) + "\n"


def write_figure(path: Path) -> None:
    """Draw all losses against the margin."""
    from matplotlib.figure import Figure

    margin = np.linspace(-2, 2, 801)
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot(xlabel="margin $y f$", ylabel="loss", ylim=(0, 4), xlim=(-2, 2))
    for name, values in losses(margin).items():
        style = {"color": "black", "drawstyle": "steps-mid"} if name[0] == "m" else {}
        axes.plot(margin, values, label=name, **style)
    axes.legend()
    figure.savefig(path, dpi=120, metadata={"Software": None})


def main(argv: list[str] | None = None) -> None:
    """Print the table and write the figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the figure")
    out = parser.parse_args(argv).out
    print(table(), end="")
    out.mkdir(parents=True, exist_ok=True)
    write_figure(out / FILE)


if __name__ == "__main__":
    main()
