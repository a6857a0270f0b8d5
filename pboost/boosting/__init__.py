"""Functions that fit decision graphs and other binary boosting models."""
