"""Training loops that grow decision graphs and trees."""
