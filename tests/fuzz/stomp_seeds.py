"""Sessions of STOMP clients, as stomp.py, stompit and stompjs write them."""

from typing import Final

from tests.fuzz.mutating import Session
from tests.fuzz.sandbox import PASSWORD, USER, VHOST


def frame(verb: str, *lines: str, body: bytes = b"") -> bytes:
    """Return a frame."""
    return "\n".join([verb, *lines]).encode() + b"\n\n" + body + b"\0\n"


def _connect(version: str, *lines: str, verb: str = "CONNECT") -> bytes:
    return frame(verb, f"accept-version:{version}", f"host:{VHOST}", f"login:{USER}", f"passcode:{PASSWORD}", *lines)


_SEND: Final = frame("SEND", "destination:/queue/fuzz.a", "content-type:text/plain", "receipt:1", body=b"hello")
_DISCONNECT: Final = frame("DISCONNECT", "receipt:bye")

SESSIONS: Final[tuple[Session, ...]] = (
    (
        _connect("1.2", "heart-beat:1000,1000", verb="STOMP"),
        frame("SUBSCRIBE", "id:0", "destination:/queue/fuzz.a", "ack:client", "prefetch-count:10", "receipt:s"),
        _SEND,
        frame("SEND", "destination:/queue/fuzz.a", "persistent:true", "content-length:6", body=b"a\0b\0cd"),
        b"\n",
        frame("ACK", "id:T_0@@session-x@@1"),
        frame("NACK", "id:T_0@@session-x@@2", "requeue:false"),
        frame("UNSUBSCRIBE", "id:0", "receipt:u"),
        _DISCONNECT,
    ),
    (
        _connect("1.1"),
        frame("BEGIN", "transaction:t", "receipt:b"),
        frame("SEND", "destination:/queue/fuzz.b", "transaction:t", "x-message-ttl:60000", "durable:True", body=b"1"),
        frame("SEND", "destination:/topic/fuzz.k", "transaction:t", "priority:3", "expiration:1000", body=b"2"),
        frame("COMMIT", "transaction:t", "receipt:c"),
        frame("BEGIN", "transaction:u"),
        frame("ABORT", "transaction:u"),
        _DISCONNECT,
    ),
    (
        _connect("1.0"),
        frame("SUBSCRIBE", "destination:/topic/fuzz.#", "ack:auto"),
        frame(
            "SEND", "destination:/exchange/amq.topic/fuzz.k", "reply-to:/temp-queue/r", "correlation-id:7", body=b"q"
        ),
        frame("SEND", "destination:/exchange/amq.fanout", body=b"x" * 4000),
        frame("UNSUBSCRIBE", "destination:/topic/fuzz.#"),
    ),
    (
        _connect("1.0,1.1,1.2", "client-id:me"),
        frame("SUBSCRIBE", "id:d", "destination:/topic/fuzz.d", "durable:true", "auto-delete:false"),
        frame("SUBSCRIBE", "id:e", "destination:/exchange/amq.direct/k", "durable:true", "x-queue-name:fuzz.e"),
        frame("UNSUBSCRIBE", "id:d", "durable:true"),
        frame(
            "SEND",
            "destination:/queue/fuzz.dl",
            "x-dead-letter-exchange:amq.topic",
            "x-dead-letter-routing-key:fuzz.k",
            "x-max-length:10",
            "x-overflow:reject-publish",
            "x-queue-type:quorum",
            body=b"z",
        ),
        frame(
            "SUBSCRIBE", "id:s", "destination:/queue/fuzz.s", "x-queue-type:stream", "ack:client", "prefetch-count:5"
        ),
        _DISCONNECT,
    ),
)
