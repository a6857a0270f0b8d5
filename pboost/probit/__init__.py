"""Builders of probit models, of trees with probit models in the leaves, and ensembles of them."""
