"""Columns as the searches read them, sorted or binned, and how these are made."""
