"""Rows through models: as a model reads them, node by node, by kernels, and where they leave."""
