"""Benchmarks: an airspeed velocity suite (`benchmarks`) and a comparison with peers (`peers`)."""
