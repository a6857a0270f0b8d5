"""Functions that fit decision trees, random forests and gradient-boosted trees."""
