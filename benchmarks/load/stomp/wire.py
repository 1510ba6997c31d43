"""The STOMP 1.2 bytes the load generator sends and looks for, built ahead of the measurement.

The product's codec is deliberately not used here: a generator that shared it would share its mistakes.
"""

from collections.abc import Iterable
from typing import Final

END: Final = b"\0"
#: The end of a message: bodies are made of this letter.
BODY_LETTER: Final = b"x"
BODY_END: Final = BODY_LETTER + END
#: Between frames there may be ends of lines.
NEWLINE: Final = 0x0A

#: Every measured connection has at most this one subscription.
SUBSCRIPTION: Final = "0"

#: Messages are numbered in one width, so that all have one size.
NUMBER_DIGITS: Final = 5


def frame(verb: str, headers: Iterable[tuple[str, str]], body: bytes = b"") -> bytes:
    """Build a frame (STOMP 1.2, "STOMP Frames"); nothing in its headers needs to be escaped."""
    lines = "".join(f"{name}:{value}\n" for name, value in headers)
    return f"{verb}\n{lines}\n".encode() + body + END


def connect() -> bytes:
    """Build a CONNECT without heart-beats: one among the deliveries would cost a read."""
    login = ("login", "guest"), ("passcode", "guest")
    return frame("CONNECT", (("accept-version", "1.2"), ("host", "/"), ("heart-beat", "0,0"), *login))


def numeral(number: int) -> str:
    """Write a message's number, as it stands in headers."""
    return f"{number:0{NUMBER_DIGITS}}"


def send(destination: str, body: bytes, number: int, *, persistent: bool, correlated: bool, receipt: bool) -> bytes:
    """Build one SEND as clients do, with its length; what is not persistent does not say so."""
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
    """Build an ACK for each number; ``before`` is what stands before the number in the ``ack`` header of a MESSAGE."""
    beginning, ending = b"ACK\nid:" + before, b"\n\n" + END
    return b"".join([b"%b%d%b" % (beginning, number, ending) for number in numbers])
