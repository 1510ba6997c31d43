"""The contract of ``gateway.api.Interceptor`` as a check for any interceptor.

No broker runs. An interceptor's own tests cover what it decides; this check covers that every decision is valid,
whatever the message, and that messages are not modified in place.
"""

from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import Final, get_args

from gateway.kernel.budget import SLOW_S
from gateway.kernel.interception.interceptor import Diversion, Interceptor, OnError, Refusal
from gateway.kernel.messages.message import Message, Properties, Value
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.messages.origin import Origin

BODIES: Final = (b"", b"{}", b'{"id": 1}', b"[1, 2", b"\xff\xfe\0", "текст".encode(), b"x" * 100_000)

KEYS: Final = ("", "orders.new", "a.*.#", "ключ", "k" * 255)

HEADERS: Final[tuple[Mapping[str, Value], ...]] = (
    {},
    {"text": "a", "number": 1, "truth": True, "nothing": None},
    {"list": ["a", 1, {"deep": [None]}], "table": {"inner": {}}, "bytes": b"\xff"},
    {"ключ": "ü", "": "empty name"},
)

ORIGINS: Final = (
    Origin("127.0.0.1:5001 -> 127.0.0.1:5672", 3, "guest", "amqp091"),
    Origin("127.0.0.1:5002 -> 127.0.0.1:1883", 0, "guest", "MQTT 5.0", "sensor-1"),
    Origin("", 0, "", "mqtt", "sensor-1"),  # a will
    Origin("", 0, "guest", "HTTP"),
)

#: An error of a client shows a reason of at most so many bytes (AMQP 0-9-1: the reply text with its name).
LONGEST_REASON: Final = 200


def check_interceptor(interceptor: Interceptor, messages: Sequence[Message] = ()) -> None:
    """Check an interceptor with unusual messages, and with ``messages`` of its own kind.

    :raises AssertionError: with a sentence that names the broken promise.
    """
    if interceptor.on_error not in get_args(OnError):
        raise AssertionError(f"on_error must be one of {', '.join(get_args(OnError))}, not {interceptor.on_error!r}.")
    for message in (*_unusual_messages(), *messages):
        for origin in ORIGINS:
            before = _content_of(message)
            _check_publish(interceptor, message, origin)
            _check_deliver(interceptor, message, origin)
            if _content_of(message) != before:
                raise AssertionError(f"The interceptor modified {_described(message)} in place; return an edited copy.")


def _check_publish(interceptor: Interceptor, message: Message, origin: Origin) -> None:
    starts_s = perf_counter()
    try:
        decision = interceptor.on_publish(message, origin)
    except Exception as error:  # foreign code: any exception is a finding
        raise AssertionError(f"on_publish() raised {error!r} for {_described(message)}.") from error
    if perf_counter() - starts_s > SLOW_S and _is_slow(interceptor, message, origin):
        raise AssertionError(f"on_publish() takes longer than {SLOW_S * 1000:g} ms for {_described(message)}.")
    if isinstance(decision, Refusal):
        if not decision.reason or len(decision.reason.encode()) > LONGEST_REASON:
            raise AssertionError(
                f"on_publish() refused {_described(message)} with a reason that is empty or longer than "
                f"{LONGEST_REASON} bytes: {decision.reason!r}."
            )
    elif isinstance(decision, Diversion):
        if not isinstance(decision.exchange, str) or not isinstance(decision.routing_key, str):
            raise AssertionError(f"on_publish() diverted {_described(message)} to {decision}, whose names are no text.")
    elif not isinstance(decision, Message):
        raise AssertionError(f"on_publish() returned {decision!r} for {_described(message)}, which is no decision.")
    elif decision.exchange != message.exchange:
        raise AssertionError(f"on_publish() moved {_described(message)} to another exchange; that needs a Diversion.")


def _is_slow(interceptor: Interceptor, message: Message, origin: Origin) -> bool:
    """Return whether the fastest of some further calls is slow as well: the machine may have been busy."""
    times_s = []
    for _ in range(5):
        starts_s = perf_counter()
        interceptor.on_publish(message, origin)
        times_s.append(perf_counter() - starts_s)
    return min(times_s) > SLOW_S


def _check_deliver(interceptor: Interceptor, message: Message, origin: Origin) -> None:
    try:
        delivered = interceptor.on_deliver(message, "queue", origin)
    except Exception as error:  # foreign code: any exception is a finding
        raise AssertionError(f"on_deliver() raised {error!r} for {_described(message)}.") from error
    if not isinstance(delivered, Message):
        raise AssertionError(f"on_deliver() returned {delivered!r} for {_described(message)}, which is not a Message.")


def _unusual_messages() -> Iterator[Message]:
    for key in KEYS:
        for headers in HEADERS:
            for body in BODIES:
                yield Message("source", key, native_header(Properties(headers=headers)), body)


def _content_of(message: Message) -> tuple[object, ...]:
    return message.exchange, message.routing_key, message.header, message.header.raw, message.body


def _described(message: Message) -> str:
    key, body = message.routing_key[:40], message.body[:40]
    return f"the message with key {key!r}, headers {dict(message.headers)!r} and body {body!r}"
