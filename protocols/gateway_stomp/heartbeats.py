"""Negotiation of heart-beat intervals (1.2, "Heart-beating")."""

import re
from dataclasses import dataclass
from typing import Final

from gateway_stomp.errors import StompError

_PAIR: Final = re.compile(r" *([0-9]{1,9}) *, *([0-9]{1,9}) *")


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """The intervals in seconds, 0 for none: one for sending heart-beats, and one for expecting them.

    The client's wishes are accepted, rounded to whole seconds of at least one, as with RabbitMQ.
    """

    send_s: int = 0
    expect_s: int = 0

    @property
    def written(self) -> str:
        """The ``heart-beat`` header of CONNECTED, in milliseconds."""
        return f"{self.send_s * 1000},{self.expect_s * 1000}"


def heartbeats(header: str | None) -> Heartbeats:
    """Return the intervals for the ``heart-beat`` of a CONNECT. :raises StompError: when it is not two numbers."""
    if header is None:
        return Heartbeats()
    pair = _PAIR.fullmatch(header)
    if pair is None:
        raise StompError("Invalid header", f"'heart-beat' must be two numbers, not '{header[:80]}'")
    return Heartbeats(send_s=_seconds(int(pair[2])), expect_s=_seconds(int(pair[1])))


def _seconds(milliseconds: int) -> int:
    return max(1, milliseconds // 1000) if milliseconds else 0
