"""Bin edges of partitioned rows by counting: passes over the rows, cells sent, and CPU time.

    python -m asv_bench.peers.counted --rows 1e5
    python -m asv_bench.peers.counted --rows 1e7 --parts 4

Run it from the root of a checkout with a built pboost. Columns with several distributions are
divided into partitions, which are processed in turn with one thread.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

import pboost as pb
from asv_bench.peers.report import Table, number
from asv_bench.peers.tables import cpu
from pboost.data.columns.exact_bin_edges import EdgeSearch, count_cells, joined_cells, sorted_keys


def columns(n, rng):
    """Return columns of n values, by name."""
    z = rng.normal(size=n)
    return {
        "normal": z,
        "normal, float32": z.astype(np.float32),
        "normal, two decimals": np.round(z, 2),
        "normal, four decimals": np.round(z, 4),
        "half of them 0": np.where(z > 0, 0, z),
        "Cauchy": rng.standard_cauchy(n),
        "uniform": rng.random(n),
        "whole numbers to a million": rng.integers(0, 1_000_000, n).astype(float),
        "log-normal": np.exp(30 * z),
        "each twice": np.repeat(z, 2)[:n],
    }


def found(parts, is_weighed):
    """Return the largest number of cells that a partition sends in each pass."""
    search, sent = EdgeSearch(256, is_weighed), []
    keys = [sorted_keys(values, mass) for values, mass in parts]
    while (question := search.question()) is not None:
        cells = [count_cells(part, question) for part in keys]
        sent.append(max(len(part.rows) for part in cells))
        search.take(joined_cells(cells, question))
    search.ends()
    return sent


def measured(n, n_parts):
    """Return the table of measurements."""
    rng = np.random.default_rng(0)
    mass = np.array_split(rng.integers(1, 2**40, n), n_parts)
    every = [(name, x, None) for name, x in columns(n, rng).items()]
    every.append(("normal, weights", every[0][1], mass))
    rows = []
    for name, x, weights in every:
        given = weights or [None] * n_parts
        parts = list(zip(np.array_split(x, n_parts), given, strict=True))
        seconds, sent = cpu(partial(found, parts, weights is not None))
        megabytes = sum(sent) * (24 if weights is None else 32) / 1e6
        sort = partial(
            pb.data.bin_columns, x[:, None].astype(float), bin_edges="exact", n_threads=1
        )
        rows.append(
            [
                name,
                str(len(sent)),
                number(megabytes),
                number(seconds / n * 1e9),
                number(cpu(sort)[0] / n * 1e9) if weights is None else "",
            ]
        )
    heads = ["column", "passes", "MB a partition", "ns per value", "bin_columns, ns"]
    return Table(f"edges of {n:,} rows in {n_parts} partitions", heads, rows)


def main(arguments=None):
    """Measure, and print the table."""
    parser = argparse.ArgumentParser("python -m asv_bench.peers.counted", description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--rst", action="store_true", help="print it as reStructuredText")
    options = parser.parse_args(arguments)
    table = measured(int(options.rows), options.parts)
    print(table.rst() if options.rst else table.text())


if __name__ == "__main__":
    main()
