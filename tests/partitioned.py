"""Tables divided into partitions, for tests that models do not depend on how rows are divided."""

import numpy as np

import pboost as pb
from pboost.data.read.check_xy import with_categories

PARTS = (1, 2, 5, 16)


def tables(**options):
    """Return tables by name: (columns, y, weights)."""

    def binned(values, **more):
        return pb.data.bin_columns(values, **more, **options)

    rng = np.random.default_rng(3)
    n = 300
    X = rng.normal(size=(n, 5))
    y = (X[:, 0] + X[:, 1] ** 2 > 1 + rng.normal(size=n)).astype(int)
    weight = rng.random(n) ** 4
    weight[rng.random(n) < 0.2] = 0
    tied = np.round(X, 0)
    holed = X.copy()
    holed[rng.random(X.shape) < 0.2] = np.nan
    holed[:, 3] = np.nan
    level = np.array(["red", "green", "blue", "black"])[rng.integers(0, 4, n)]
    mixed = np.empty((n, 3), dtype=object)
    mixed[:, 0], mixed[:, 1], mixed[:, 2] = (
        level,
        X[:, 1],
        np.where(y * rng.random(n) > 0.3, "a", level),
    )
    mixed[rng.random(n) < 0.1, 0] = None
    mixed = with_categories(mixed, [0, 2])
    names = np.where(y > 0, "yes", "no")
    return {
        "numbers": (binned(X), y, None),
        "ties": (binned(tied, max_bins=7), names, np.full(n, 0.1)),
        "weights": (binned(X, sample_weight=weight), y, weight),
        "weights that add up to 1": (binned(X), y, weight / weight.sum()),
        "large weights": (binned(tied), y == 1, weight * 1e300),
        "holes": (binned(holed), names, weight),
        "holes, no weights": (binned(holed), y, None),
        "categories": (binned(mixed), y, None),
        "categories, weights": (binned(mixed), y, weight),
    }


TABLES = tables()
#: The same tables, whose columns keep the values of their rows.
VALUED = tables(keep_values=True)


def send_few_rows(monkeypatch, n_bytes=0):
    """Have nodes sent as rows only if these have at most so many bytes."""
    monkeypatch.setattr("pboost.distributed.tree_partitions.FEW_BYTES", n_bytes)
    monkeypatch.setattr("pboost.distributed.tree_partitions.FEW_SHARE", 0.0)


def divided(table, n_parts, seed=0):
    """Return rows in partitions of random sizes, some of them empty, in a random order."""
    columns, y, weight = table
    rng = np.random.default_rng([seed, n_parts])
    at = np.sort(rng.integers(0, len(y) + 1, n_parts - 1))
    rows = np.split(rng.permutation(len(y)).astype(np.int32), at)
    weights = None if weight is None else [weight[r] for r in rows]
    return [columns.select(r) for r in rows], [y[r] for r in rows], weights


def contents(model, path):
    pb.save(model, path / "model")
    return (path / "model").read_bytes()


def fit_parted(builder, X, y, *, sample_weight=None, **options):
    """Fit a builder, given by its name, to rows in partitions."""
    return getattr(pb, builder)(pb.partitions(X, y, sample_weight=sample_weight), **options)


def continue_parted(model, X, y, *, sample_weight=None, **options):
    """Continue a model on rows in partitions."""
    return pb.continue_fit(model, pb.partitions(X, y, sample_weight=sample_weight), **options)


def bin_parts(X, *, sample_weight=None, **options):
    """Return the columns of each partition, binned together, also of those without rows."""
    y = [np.zeros(len(part)) for part in X] if isinstance(X, list) else X
    weighted = {} if sample_weight is None else {"weighted_bin_edges": True}
    rows = pb.partitions(X, y, sample_weight=sample_weight, **weighted, **options)
    actual = dict(zip(rows._numbers, (part.columns for part in rows._parts), strict=True))
    none = rows.bins.select(np.empty(0, dtype=np.int32))
    return [actual.get(k, none) for k in range(len(X))]


def fit_dask(builder, X, y, **options):
    """Fit a builder, given by its name, to Dask collections."""
    names = ("sample_weight", "max_bins", "bin_edges", "weighted_bin_edges", "keep_values")
    own = {name: options.pop(name) for name in names if name in options}
    return getattr(pb, builder)(pb.dask.rows(X, y, **own), **options)
