"""``gateway profile``: where the CPU time of a running broker goes."""
