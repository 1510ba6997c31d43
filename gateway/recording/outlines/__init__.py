"""Outlines of a protocol's bytes: names of frames and their codes, to compare a replay with its recording."""
