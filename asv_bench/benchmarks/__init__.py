"""Benchmarks of pboost for airspeed velocity.

The name of a method is its kind of measurement, `time_`, `peakmem_` or `track_`, and the public
function that it calls.
"""
