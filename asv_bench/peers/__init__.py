"""The same work by pboost and its peers, interleaved in one run: ``python -m asv_bench.peers``."""
