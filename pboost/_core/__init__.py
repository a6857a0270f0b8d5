"""Compiled kernels. They know nothing of the modules above them."""
