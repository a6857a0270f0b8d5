"""What is fitted: arrays that are checked, evaluated, explained in words, saved and loaded."""
