"""Benchmarks of pboost for airspeed velocity.

A method is named after what it measures, `time_`, `peakmem_` or `track_`, and the public function
that it calls.
"""
