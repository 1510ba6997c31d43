"""The parts of the HTTP API that reach the leaders of other cells of a cluster."""
