"""Benchmarks of parts of the gateway in one process; each is run by hand."""
