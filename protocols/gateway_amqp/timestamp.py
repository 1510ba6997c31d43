"""A time that ``datetime`` cannot represent; a separate module, because mypyc cannot subclass ``int``."""


class Timestamp(int):
    """Seconds since 1970 out of the range of datetime; encoded unchanged (``T``)."""
