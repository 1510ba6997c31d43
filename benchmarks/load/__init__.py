"""Whole brokers, side by side, under the same load generator: ``python -m benchmarks.load``."""
