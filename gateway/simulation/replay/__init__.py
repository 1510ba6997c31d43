"""Replays a recording of connections in the simulation, and compares the broker's answers with the recorded ones."""
