"""Decisions within a budget: what a row may cost, and the model that is best for it."""
