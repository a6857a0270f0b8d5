"""Where rows leave that leave only where they would pay: by walking each row joint by joint."""

from __future__ import annotations

import numpy as np

import pboost as pb
from reference.on_demand import columns_read


def purse(columns, price, groups):
    """Return what is paid for columns: own prices of columns > 0, and fees of named groups."""
    paid = {column: price[column] for column in columns if price.get(column, 0.0) > 0}
    for name, members in groups.items():
        if price[name] > 0 and any(column in members for column in columns):
            paid[name] = price[name]
    return paid


def walks(model, rows, price, groups):
    """Return of each row where it leaves, its values there, the slope, and what it has paid."""
    end = len(model.threshold)
    parts = [None, *(model.model.first(t) for t in range(1, end + 1))]
    return [walk(model, parts, row, price, groups) for row in rows]


def walk(model, parts, row, price, groups):
    """Return that of one row, given the models of the first joints."""
    end = len(parts) - 1
    paid = [{}, *(purse(columns_read(part, row), price, groups) for part in parts[1:])]
    for t in range(1, end + 1):
        value = values(parts[t], row)
        if value.ndim:
            last, best = np.sort(value)[-2:]
            size = best - last
        else:
            size = abs(value)
        is_sure = t == end or size >= model.threshold[t]
        if is_sure and (t == end or model.threshold[t] == 0 or paid[t + 1] != paid[t]):
            return t, value, 1.0 if t == end else model.slope[t], sum(paid[t].values())
    raise AssertionError


def values(model, row):
    """Return the decision value of a row, of several labels those of all, of forests the shares."""
    try:
        return pb.decision_function(model, row[None])[0]
    except TypeError:
        return pb.predict_proba(model, row[None])[0]
