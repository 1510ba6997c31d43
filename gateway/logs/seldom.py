"""Log lines that a client can cause as often as it likes: one in a while of each kind, with how many were left out."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from gateway.logs.structured import Log

#: Seconds between two lines of one kind.
INTERVAL_S: Final = 10.0

#: Kinds that are remembered.
_MOST_KINDS: Final = 256


class SeldomLog:
    """Writes at most one line of a kind in ``INTERVAL_S``. ``now_s`` is any clock that runs on."""

    def __init__(self, part: str) -> None:
        self._log = Log(part)
        self._last: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()

    def info(self, event: str, now_s: float, kind: Hashable, **fields: object) -> None:
        """Write a line, unless one of this kind was written a moment ago."""
        written_s, left_out = self._last.pop((event, kind), (None, 0))
        if written_s is not None and 0 <= now_s - written_s < INTERVAL_S:
            self._last[event, kind] = (written_s, left_out + 1)
            return
        self._last[event, kind] = (now_s, 0)
        if len(self._last) > _MOST_KINDS:
            self._last.popitem(last=False)
        self._log.info(event, **fields, **({"left_out": left_out} if left_out else {}))
