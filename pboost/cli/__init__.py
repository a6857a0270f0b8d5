"""The command line interface: ``pboost`` or ``python -m pboost``."""
