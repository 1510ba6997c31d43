"""Connections of clients that one node of a cluster takes, and another one serves."""
