"""The whole broker in one process on a virtual clock, a simulated network and a simulated disk, driven by a seed."""
