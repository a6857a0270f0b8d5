"""Builders that are given a builder: bagging, one versus the rest, SAMME."""
