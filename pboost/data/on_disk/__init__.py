"""Bin tables that are larger than memory, in batches, and store the result in a folder."""
