"""Which columns the way of a row reads, found by walking models with a dictionary, node by node."""

from __future__ import annotations

import math

import numpy as np

import pboost as pb


class Row(dict):
    """The values of a row by column, which keeps in which order they were read first."""

    def __init__(self, values):
        super().__init__(enumerate(values))
        self.read = []

    def __getitem__(self, column):
        if column not in self.read:
            self.read.append(int(column))
        return super().__getitem__(column)


def columns_read(model, values):
    """Return the columns that the way of a row reads, in the order of the way."""
    row = Row(values)
    walk(model, row)
    return row.read


def walk(model, row):
    """Send a row through a model, member by member, tree by tree, node by node."""
    if isinstance(model, pb.models.DecisionGraph):
        walk_graph(model, row)
    elif isinstance(model, pb.models.Tree):
        walk_tree(model, row)
    elif isinstance(model, pb.models.GradientBoostingModel):
        walk(model.trees, row)
    elif isinstance(model, pb.models.ProbitTree):
        leaf = model.partition.leaf[walk_tree(model.partition, row)]
        read(row, np.flatnonzero((model.coefficient[leaf, :, 1:] != 0).any(axis=0)))
    elif isinstance(model, pb.models.ProbitModel):
        read(row, np.flatnonzero(model.slopes))
    elif isinstance(model, pb.models.LinearModel):
        read(row, np.flatnonzero(model.weights))
    else:
        for member in getattr(model, "models", model):
            walk(member, row)


def read(row, columns):
    for column in columns:
        row[column]


def walk_graph(model, row):
    node = 0 if model.n_nodes else -1
    while node >= 0:
        number = model.feature[node]
        if model.inputs is None:
            value = row[number]
        else:
            start, index = model.inputs.columns_read()
            columns = index[start[number] : start[number + 1]]
            full = np.zeros((1, len(row)))
            full[0, columns] = [row[column] for column in columns]
            value = model.inputs.values(full)[0, number]
        is_missing = math.isnan(value)
        above = model.missing[node] > 0.5 if is_missing else value > model.threshold[node]
        node = model.next[node, int(above)]


def walk_tree(tree, row):
    """Return the leaf."""
    node = 0
    while tree.feature[node] >= 0:
        column, threshold = int(tree.feature[node]), tree.threshold[node]
        member = None
        if column >= tree.n_features:
            member = tree.subset[column - tree.n_features]
            column = int(tree.subset_column[column - tree.n_features])
        value = row[column]
        if math.isnan(value):
            second = bool(tree.missing[node])
        elif member is None:
            second = value > threshold
        else:
            second = bool(int(member[int(value) // 64]) >> (int(value) % 64) & 1)
        node = int(tree.children[node, int(second)])
    return node
