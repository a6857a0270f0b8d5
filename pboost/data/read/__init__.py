"""Rows as users pass them, read: frames, sequences, files and batches as numbers and levels."""
