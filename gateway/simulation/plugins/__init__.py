"""Plugins of the virtual world, which fail when the seed says so."""
