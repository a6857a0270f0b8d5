"""Read X and y from data frames, sequences, files and batches."""
