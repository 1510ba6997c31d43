"""Recordings of connections: what clients sent and when, without their secrets, for a replay in the simulation."""
