"""Curves of the cost of a message and of memory, one for each dimension, with plots."""
