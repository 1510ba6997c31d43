"""Frames of STOMP: a verb, headers, and a body of any bytes (1.2, "STOMP Frames")."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from gateway_stomp.versions import Version

if TYPE_CHECKING:
    from gateway_stomp.header import StompHeader
    from gateway_stomp.publishing import Target

END: Final = b"\0\n"
"""What ends a frame on its way out. Like RabbitMQ we send a newline behind, which some old clients wait for."""

HEARTBEAT: Final = b"\n"

NEVER_REPEATED: Final = frozenset({"receipt", "transaction", "correlation-id", "amqp-message-id"})
"""Headers whose values clients use once, or seldom more. To remember what holds one costs a seventh of what its message
does, and is for nothing."""

#: The verbs whose frames may have a body (1.2, "Body").
_WITH_BODY: Final = frozenset({"SEND", "MESSAGE", "ERROR"})


class Head:
    """What comes before the body of a frame. Of repeated headers the first counts (1.2, "Repeated Header Entries").

    ``size`` is how many bytes it took on the wire, ``content_length`` is -1 where the frame does not tell it. Clients
    repeat themselves, so one head serves many frames: ``header`` and ``target`` are what publishing made of the head of
    a SEND, ``None`` before.
    """

    __slots__ = ("content_length", "header", "headers", "size", "target", "verb")

    def __init__(self, verb: str, headers: Mapping[str, str], content_length: int, size: int) -> None:
        self.verb = verb
        self.headers = headers
        self.content_length = content_length
        self.size = size
        self.header: StompHeader | None = None
        self.target: Target | None = None

    @property
    def may_have_body(self) -> bool:
        """Whether its frame may have a body."""
        return self.verb in _WITH_BODY


def encode(verb: str, headers: Iterable[tuple[str, str]], version: Version, body: bytes = b"") -> bytes:
    """Return a frame as bytes. :class:`Version.V10` escapes nothing, so it is for CONNECTED too."""
    lines = [verb, *(f"{version.escape(name)}:{version.escape(value)}" for name, value in headers)]
    if body:
        lines.append(f"content-length:{len(body)}")
    return "\n".join(lines).encode() + b"\n\n" + body + END
