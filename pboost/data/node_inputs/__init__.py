"""What nodes compare with thresholds where that is not a column of X."""
