"""Sorted and binned features for split searches."""
