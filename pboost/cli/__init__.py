"""The command line: ``python -m pboost``, and ``pboost`` where it is installed."""
