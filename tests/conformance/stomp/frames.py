"""Encoded frames for tests; header lines are not escaped, so that a test controls every byte."""


def frame(verb: str, *lines: str, body: bytes = b"") -> bytes:
    return "\n".join([verb, *lines, "", ""]).encode() + body + b"\0"


def connect(version: str, *lines: str, login: str = "guest", passcode: str = "guest", verb: str = "CONNECT") -> bytes:
    """Return a CONNECT. It does not name 1.0, as clients that support no other version."""
    asked = [] if version == "1.0" else [f"accept-version:{version}", "host:/"]
    return frame(verb, *asked, f"login:{login}", f"passcode:{passcode}", *lines)


def send(destination: str, *lines: str, body: bytes = b"hi") -> bytes:
    return frame("SEND", f"destination:{destination}", *lines, body=body)


def subscribe(destination: str, *lines: str, id: str = "s") -> bytes:
    return frame("SUBSCRIBE", f"id:{id}", f"destination:{destination}", *lines)


def unsubscribe(*lines: str, id: str = "s") -> bytes:
    return frame("UNSUBSCRIBE", f"id:{id}", *lines)


def begin(transaction: str, *lines: str) -> bytes:
    return frame("BEGIN", f"transaction:{transaction}", *lines)


def commit(transaction: str, *lines: str) -> bytes:
    return frame("COMMIT", f"transaction:{transaction}", *lines)


def abort(transaction: str, *lines: str) -> bytes:
    return frame("ABORT", f"transaction:{transaction}", *lines)


def disconnect(*lines: str) -> bytes:
    return frame("DISCONNECT", *lines)
