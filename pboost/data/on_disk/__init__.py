"""Columns in bins as files of a folder, and tables that are read in batches to make them."""
