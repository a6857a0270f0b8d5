"""Reading of X and y: data frames, sequences, files and batches as numbers and categories."""
