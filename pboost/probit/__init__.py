"""Builders of probit models, of trees with probit models in the leaves, and of ensembles of these."""
