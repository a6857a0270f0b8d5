"""Inputs of nodes other than features of X: projections, separators, category sets, functions."""
