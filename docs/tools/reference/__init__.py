"""Pages of the reference, each generated from the code that it describes."""
