"""A cluster of three nodes and three NATS servers on this machine, to try it: ``make cluster``."""
