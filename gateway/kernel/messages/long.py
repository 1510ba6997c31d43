"""An integer type that is encoded in 64 bits; a separate module, because mypyc cannot subclass ``int``."""


class Long(int):
    """An integer that a protocol with several widths always encodes in 64 bits, as in ``x-death``."""
