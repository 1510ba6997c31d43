"""Benchmarks of the gateway; the product does not import this package."""
