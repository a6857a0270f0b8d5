"""Builders that call other builders: bagging, one versus the rest, SAMME, presets."""
