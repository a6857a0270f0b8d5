"""Builders of decision graphs and of other two-class boosters."""
