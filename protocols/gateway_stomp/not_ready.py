"""The answer to STOMP clients while the broker starts: an ERROR frame."""

from gateway_stomp.frames import encode
from gateway_stomp.versions import Version


def refusal(data: bytes, reason: str) -> bytes | None:
    """Return the answer to the first bytes of a client; ``None`` while its first frame is incomplete."""
    if b"\0" not in data:
        return None
    headers = [("message", "Broker not ready"), ("content-type", "text/plain")]
    return encode("ERROR", headers, Version.V10, f"{reason}\n".encode())
