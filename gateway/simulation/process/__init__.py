"""A whole node as a process of the virtual world."""
