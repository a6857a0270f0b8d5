"""Benchmarks: an airspeed velocity suite (`benchmarks`) and comparisons with peers (`peers`)."""
