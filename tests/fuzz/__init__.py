"""The fuzzer: model files that are mutated, and models of random arrays. See `__main__.py`."""
