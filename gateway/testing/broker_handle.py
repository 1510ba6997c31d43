"""A broker for one test: its addresses, its faults, and assertions about it."""

import time
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from gateway.testing.broker_process import HOST, USER, BrokerProcess

#: A limit in bytes that the free space of a disk never reaches.
_MORE_THAN_ANY_DISK: Final = 2**60

#: The status of a request about something that does not exist any more.
_GONE: Final = ": 404 "

#: The most messages that one search of the management API returns.
_MOST_BODIES: Final = 500

#: The longest body that a search returns whole.
_LONGEST_BODY: Final = 2**20

_ALARM_TIMEOUT_S: Final = 30.0
_INTERVAL_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class TestBroker:
    """A broker for one test: addresses, login and a virtual host of its own.

    An MQTT client names the virtual host in its user name, ``mqtt_username``.
    """

    __test__ = False

    process: BrokerProcess
    vhost: str
    host: str = HOST
    username: str = USER
    password: str = USER

    @property
    def amqp_port(self) -> int:
        """The port of AMQP 0-9-1."""
        return self.process.ports["amqp"]

    @property
    def mqtt_port(self) -> int:
        """The port of MQTT."""
        return self.process.ports["mqtt"]

    @property
    def stomp_port(self) -> int:
        """The port of STOMP."""
        return self.process.ports["stomp"]

    @property
    def management_port(self) -> int:
        """The port of the management API."""
        return self.process.ports["management"]

    @property
    def amqp_url(self) -> str:
        """The URL for AMQP clients."""
        vhost = quote(self.vhost, safe="")
        return f"amqp://{self.username}:{self.password}@{self.host}:{self.amqp_port}/{vhost}"

    @property
    def mqtt_url(self) -> str:
        """The URL for MQTT clients; the user name has the virtual host."""
        return f"mqtt://{quote(self.mqtt_username, safe='')}:{self.password}@{self.host}:{self.mqtt_port}"

    @property
    def stomp_url(self) -> str:
        """The URL for STOMP clients; the header ``host`` of CONNECT has the virtual host."""
        return f"stomp://{self.username}:{self.password}@{self.host}:{self.stomp_port}"

    @property
    def web_mqtt_url(self) -> str:
        """The URL of MQTT over WebSocket."""
        return f"ws://{self.host}:{self.process.ports['web_mqtt']}/ws"

    @property
    def web_stomp_url(self) -> str:
        """The URL of STOMP over WebSocket."""
        return f"ws://{self.host}:{self.process.ports['web_stomp']}/ws"

    @property
    def management_url(self) -> str:
        """The URL of the management API, for ``gatewayctl --url``, with the login."""
        return f"http://{self.username}:{self.password}@{self.host}:{self.management_port}"

    @property
    def mqtt_username(self) -> str:
        """The user name of MQTT clients, with the virtual host."""
        return f"{self.vhost}:{self.username}"

    def request(self, method: str, *path: str, fields: object = None) -> Any:  # Any: a JSON value
        """Send a request to the management API, such as ``request("GET", "queues", broker.vhost)``."""
        return self.process.request(method, *path, fields=fields)

    def advance(self, seconds: float) -> None:
        """Advance the broker's clock, of all virtual hosts, if it has a fake one; see ``BrokerProcess.advance``."""
        self.process.advance(seconds)

    def enable(self, plugin: str, settings: dict[str, Any] | None = None) -> None:
        """Enable a plugin in the virtual host of this test."""
        self.request("PUT", "plugins", self.vhost, plugin, fields=settings or {})

    def routed(
        self, exchange: str, routing_key: str = "", headers: Mapping[str, Any] | None = None
    ) -> frozenset[str]:  # Any: a value of JSON
        """Return the queues that a message would reach, without publishing it.

        :raises RuntimeError: if there is no such exchange.
        """
        fields = {"exchange": exchange, "routing_key": routing_key, "headers": dict(headers or {})}
        explained = self.request("POST", "explain", self.vhost, fields=fields)
        return frozenset(queue["name"] for queue in explained["queues"])

    def assert_routed(
        self, exchange: str, routing_key: str, *queues: str, headers: Mapping[str, Any] | None = None
    ) -> None:
        """Check that a message would reach exactly these queues. :raises AssertionError: with those it would reach."""
        found = self.routed(exchange, routing_key, headers)
        if found != frozenset(queues):
            expected, actual = (", ".join(sorted(names)) or "no queue" for names in (queues, found))
            raise AssertionError(f"{exchange!r} routes {routing_key!r} to {actual}, not to {expected}")

    def bodies(self, queue: str) -> list[bytes]:
        """Return the bodies of all ready messages of a queue, first the next one. They stay as they are.

        :raises RuntimeError: if there is no such queue, if it is a stream, or if a body is longer than 1 MiB.
        """
        search = {"filter": {"states": ["ready"]}, "limit": _MOST_BODIES, "truncate": _LONGEST_BODY, "max_seconds": 60}
        page = self.request("POST", "workbench", self.vhost, queue, "search", fields=search)
        messages = page["messages"]
        while page["cursor"] is not None:
            fields = search | {"cursor": page["cursor"]}
            page = self.request("POST", "workbench", self.vhost, queue, "search", fields=fields)
            messages += page["messages"]
        if page["stopped_by"] is not None:
            raise RuntimeError(f"the search of queue {queue!r} ended early: {page['stopped_by']}")
        return [_body(message) for message in messages]

    def assert_arrived(self, queue: str, *bodies: bytes, timeout_s: float = 5.0) -> None:
        """Wait until the ready messages of a queue are exactly these, in this order; they stay in the queue.

        :raises AssertionError: with the messages that are there instead, after ``timeout_s`` seconds.
        """
        deadline = time.monotonic() + timeout_s
        while (found := self.bodies(queue)) != list(bodies):
            if time.monotonic() > deadline:
                raise AssertionError(f"queue {queue!r} has {found!r:.1000}, not {list(bodies)!r:.1000}")
            time.sleep(_INTERVAL_S)

    def drop_connections(self) -> int:
        """Close all connections of the virtual host, as an operator may, and return their number.

        Connections that end by themselves meanwhile are not counted.
        """
        names = [each["name"] for each in self.request("GET", "vhosts", self.vhost, "connections")]
        return sum(map(self._is_dropped, names))

    def _is_dropped(self, connection: str) -> bool:
        try:
            self.request("DELETE", "connections", connection)
        except RuntimeError as error:
            if _GONE not in str(error):
                raise
            return False
        return True

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the broker within the block: confirms and everything else come after it, in all virtual hosts.

        Blocks may be nested: the broker goes on after the last one.

        :raises RuntimeError: if another thread controls the broker for longer than 30 seconds.
        """
        self.process.pause()
        try:
            yield
        finally:
            self.process.resume()

    @contextmanager
    def delayed_confirms(self) -> Iterator[None]:
        """Delay within the block what waits for the disk, in all virtual hosts.

        That is confirms, PUBACK and receipts of persistent messages, and the answers to declarations of durable
        entities. Everything else goes on, deliveries too.

        :raises RuntimeError: if the store is not that in memory.
        """
        self.process.hold_confirms()
        try:
            yield
        finally:
            self.process.release_confirms()

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """Raise the alarm of the disk within the block: publishers of all virtual hosts are blocked."""
        self.request("PUT", "settings", "disk_free_limit", fields={"value": _MORE_THAN_ANY_DISK})
        try:
            self._wait_for_disk_alarm(is_raised=True)
            yield
        finally:
            self.request("DELETE", "settings", "disk_free_limit")
            self._wait_for_disk_alarm(is_raised=False)

    def _wait_for_disk_alarm(self, *, is_raised: bool) -> None:
        deadline = time.monotonic() + _ALARM_TIMEOUT_S
        while self.request("GET", "nodes")[0]["disk_free_alarm"] != is_raised:
            if time.monotonic() > deadline:
                raise RuntimeError("the alarm of the disk does not change")
            time.sleep(_INTERVAL_S)


def _body(message: Mapping[str, Any]) -> bytes:  # Any: a value of JSON
    payload: str = message["payload"]
    body = b64decode(payload) if message["payload_encoding"] == "base64" else payload.encode()
    if len(body) != message["payload_bytes"]:
        raise RuntimeError(f"a body of {message['payload_bytes']} bytes is longer than {_LONGEST_BODY}")
    return body
