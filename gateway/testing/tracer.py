"""The contract of ``gateway.api.Tracer`` as a check for any tracer. No broker runs."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Final

from gateway.hookspecs import TracedVhost
from gateway.kernel.archives.tracer import Tracer
from gateway.kernel.messages.message import Message, Properties, Value
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.messages.origin import Origin

BODIES: Final = (b"", b"{}", b"\xff\xfe\x00", b"x" * 100_000)
KEYS: Final = ("", "orders.new", "ключ", "k" * 255)
ORIGINS: Final = (
    Origin("127.0.0.1:5001 -> 127.0.0.1:5672", 3, "guest", "amqp091"),
    Origin("", 0, "guest", "HTTP"),
)
HEADERS: Final[Sequence[Mapping[str, Value]]] = (
    {},
    {"n": 1 << 62, "f": 0.5, "b": b"\xff", "t": datetime(2024, 2, 29, tzinfo=UTC), "y": True, "z": None},
    {"list": ["a", 1, {"deep": [None]}], "table": {"inner": {}}},
)


class StandInVhost:
    """Stands in for the virtual host of a plugin: keeps what the plugin publishes, and the users it disconnects."""

    def __init__(self, name: str = "/", node: str = "gateway@test") -> None:
        self.name = name
        self.node = node
        self.published: list[tuple[str, str, Properties, bytes]] = []
        self.published_to_queues: list[tuple[str, str, str, Properties, bytes]] = []
        self.closed: list[tuple[str, str]] = []

    def publish(self, exchange: str, routing_key: str, properties: Properties, body: bytes) -> None:
        """Keep a message of the tracer; the publisher's exchange and key come first."""
        self.published.append((exchange, routing_key, properties, body))

    def publish_to_queue(
        self, queue: str, exchange: str, routing_key: str, properties: Properties, body: bytes
    ) -> bool:
        """Keep a message for one queue, which takes it."""
        self.published_to_queues.append((queue, exchange, routing_key, properties, body))
        return True

    def close_connections(self, user: str, reason: str) -> None:
        """Keep the user and the reason."""
        self.closed.append((user, reason))


def check_tracer(make: Callable[[TracedVhost], Tracer]) -> None:
    """Check a tracer with unusual messages.

    :param make: returns the tracer of a virtual host, as ``gateway_tracers`` does. It must not use the virtual host
        before the first message.
    :raises AssertionError: with a sentence that names the broken promise.
    """
    vhost = StandInVhost()
    tracer = make(vhost)
    if vhost.published:
        raise AssertionError("The tracer published a message before the first call.")
    for body, key, headers, origin in product(BODIES, KEYS, HEADERS, ORIGINS):
        message = Message("e", key, native_header(Properties(headers=headers)), body)
        before = (message.exchange, message.routing_key, dict(message.headers), message.body)
        for queues in ([], ["q"], ["q", "r"]):
            _call("published", tracer.published, message, queues, origin)
        for redelivered in (False, True):
            _call("delivered", tracer.delivered, message, "q", redelivered, origin)
        if (message.exchange, message.routing_key, dict(message.headers), message.body) != before:
            raise AssertionError("The tracer modified a message.")


def _call(name: str, method: Callable[..., object], *arguments: object) -> None:
    try:
        answer = method(*arguments)
    except Exception as error:  # foreign code: any exception is a finding
        raise AssertionError(f"{name}() raised {error!r}.") from error
    if answer is not None:
        raise AssertionError(f"{name}() returned {answer!r}; a tracer returns nothing.")
