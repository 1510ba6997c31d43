"""The STOMP 1.2 bytes that the load generator sends and searches for, built before the measurement.

The product's codec is deliberately not used: a generator that shared it would share its errors.
"""

from collections.abc import Iterable
from typing import Final

END: Final = b"\0"
#: The end of a message: bodies consist of this letter.
BODY_LETTER: Final = b"x"
BODY_END: Final = BODY_LETTER + END
#: Line ends may stand between frames.
NEWLINE: Final = 0x0A

#: Every measured connection has at most one subscription.
SUBSCRIPTION: Final = "0"

#: Message numbers have a fixed width, so that all messages have the same size.
NUMBER_DIGITS: Final = 5


def frame(verb: str, headers: Iterable[tuple[str, str]], body: bytes = b"") -> bytes:
    """Build a frame (STOMP 1.2, "STOMP Frames"); nothing in its headers needs escaping."""
    lines = "".join(f"{name}:{value}\n" for name, value in headers)
    return f"{verb}\n{lines}\n".encode() + body + END


def connect() -> bytes:
    """Build a CONNECT without heart-beats: one among the deliveries would cost a read."""
    login = ("login", "guest"), ("passcode", "guest")
    return frame("CONNECT", (("accept-version", "1.2"), ("host", "/"), ("heart-beat", "0,0"), *login))


def numeral(number: int) -> str:
    """Return a message's number as text of fixed width, for headers."""
    return f"{number:0{NUMBER_DIGITS}}"


def send(destination: str, body: bytes, number: int, *, persistent: bool, correlated: bool, receipt: bool) -> bytes:
    """Build one SEND with a content-length; ``persistent`` is omitted if false."""
    headers = [("destination", destination), ("content-length", str(len(body)))]
    if persistent:
        headers.append(("persistent", "true"))
    if correlated:
        headers.append(("correlation-id", numeral(number)))
    if receipt:
        headers.append(("receipt", numeral(number)))
    return frame("SEND", headers, body)


def subscribe(destination: str, ack_mode: str, receipt: str) -> bytes:
    """Build the SUBSCRIBE of the one subscription."""
    headers = ("id", SUBSCRIPTION), ("destination", destination), ("ack", ack_mode), ("receipt", receipt)
    return frame("SUBSCRIBE", headers)


def acks(before: bytes, numbers: Iterable[int]) -> bytes:
    """Build an ACK for each number; ``before`` precedes the number in the ``ack`` header of a MESSAGE."""
    beginning, ending = b"ACK\nid:" + before, b"\n\n" + END
    return b"".join([b"%b%d%b" % (beginning, number, ending) for number in numbers])
