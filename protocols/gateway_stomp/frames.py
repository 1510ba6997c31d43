"""Frames of STOMP: a verb, headers, and a body of any bytes (1.2, "STOMP Frames")."""

from collections.abc import Iterable
from typing import Final

from gateway_stomp.header import StompHeader
from gateway_stomp.target import Target
from gateway_stomp.versions import Version

END: Final = b"\0\n"
"""The end of a sent frame. A newline follows the NUL, as in RabbitMQ, because some old clients wait for it."""

HEARTBEAT: Final = b"\n"

#: The verbs whose frames may have a body (1.2, "Body").
_WITH_BODY: Final = frozenset({"SEND", "MESSAGE", "ERROR"})


class Head:
    """The verb and headers of a frame. The first of repeated headers counts (1.2, "Repeated Header Entries").

    ``size`` is its length in bytes, ``content_length`` is -1 if it is not given. ``receipt`` and ``transaction`` are
    the headers of these names. One head serves many equal frames: ``header`` and ``target`` are set when the head of a
    SEND is first published, ``None`` before.
    """

    __slots__ = ("content_length", "header", "headers", "receipt", "size", "target", "transaction", "verb")

    def __init__(self, verb: str, headers: dict[str, str], content_length: int, size: int) -> None:
        self.verb = verb
        self.headers = headers
        self.content_length = content_length
        self.size = size
        self.receipt = headers.get("receipt")
        self.transaction = headers.get("transaction")
        self.header: StompHeader | None = None
        self.target: Target | None = None

    @property
    def may_have_body(self) -> bool:
        """Whether its frame may have a body."""
        return self.verb in _WITH_BODY


def encode(verb: str, headers: Iterable[tuple[str, str]], version: Version, body: bytes = b"") -> bytes:
    """Encode a frame. :class:`Version.V10` escapes nothing, so it is used for CONNECTED as well."""
    lines = [verb, *(f"{version.escape(name)}:{version.escape(value)}" for name, value in headers)]
    if body:
        lines.append(f"content-length:{len(body)}")
    return "\n".join(lines).encode() + b"\n\n" + body + END
