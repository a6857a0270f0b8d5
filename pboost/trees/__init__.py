"""Builders of classification and regression trees, and of forests and sums of them."""
