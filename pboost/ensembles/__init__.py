"""Fit functions that call other fit functions: bagging, one-vs-rest, SAMME and presets."""
