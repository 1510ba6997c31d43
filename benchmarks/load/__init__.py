"""Whole brokers compared under the same load generator: ``python -m benchmarks.load``."""
