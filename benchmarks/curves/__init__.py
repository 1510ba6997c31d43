"""How the cost of a message and the memory grow: one curve for each dimension, with its plot."""
