"""Slow, readable twins of the compiled kernels. Nothing here imports pboost."""
