"""The loops that grow graphs and trees."""
