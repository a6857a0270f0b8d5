"""Interleaved benchmarks of pboost and its peers: ``python -m asv_bench.peers``."""
