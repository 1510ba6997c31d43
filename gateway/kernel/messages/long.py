"""An integer that says how wide it is written; in a module of its own, for those that are compiled cannot have it."""


class Long(int):
    """An integer that a protocol of several widths writes in 64 bits where fewer would do, as in ``x-death``."""
