"""The matrix of permissions: each operation of each protocol, the permissions it requires, and a client's attempt.

``docs/access.md`` shows the same table; a test compares them. ``C``, ``W`` and ``R`` are configure, write and read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pamqp import commands

from gateway.kernel.journal.records.access import PermissionRecord
from tests.management.console import Console
from tests.protocols.amqp.dialogue import Peer
from tests.protocols.amqp.frames import Sent
from tests.protocols.stomp.dialogue import Client as StompClient
from tests.protocols.stomp.frame_reader import ReceivedFrame
from tests.scenarios.all_protocols_broker import AllProtocolsBroker, published

USER: Final = "anna"

#: A permission that an operation requires: its letter and a regular expression for the resource's name.
Need = tuple[str, str]


class Scene:
    """A broker with guest's entities, and the user anna, who has the permissions that are ``granted``."""

    def __init__(self, granted: frozenset[Need]) -> None:
        self.gateway = AllProtocolsBroker()
        self.console = Console(self.gateway._door)  # type: ignore[arg-type]  # all that it asks of its gateway
        self._is_revoking = False
        self._set_up()
        self.gateway.put_user(USER, USER, "management")
        self.grant(granted)

    def _set_up(self) -> None:
        vhost = self.gateway.vhost
        for name in ("x", "src", "dst", "ae", "dlx"):
            vhost.declare_exchange(name, "fanout", is_durable=True)
        queue = vhost.declare_queue("q", is_durable=True)
        vhost.declare_queue("probe", is_durable=True)
        for exchange in ("x", "amq.topic"):
            vhost.bind(vhost.exchange(exchange), vhost.queue("probe"), "#")
        vhost.declare_queue("wrong", is_durable=True)
        vhost.bind(vhost.exchange("amq.topic"), vhost.queue("wrong"), "bad")
        vhost.bind(vhost.exchange("src"), queue, "k")
        vhost.bind(vhost.exchange("src"), vhost.exchange("dst"), "k")
        self.gateway.settle()

    def revoke_between(self) -> None:
        """Let each attempt run twice over one connection, and revoke all permissions of anna in between."""
        self._is_revoking = True

    def grant(self, needs: frozenset[Need]) -> None:
        """Grant these permissions to anna and no others."""
        patterns = ("|".join(f"^{name}$" for letter, name in needs if letter == each) or "^$" for each in "CWR")
        self.gateway.broker.directory.put_permission(PermissionRecord("/", USER, *patterns))

    def probed(self) -> int:
        """Return the number of messages routed by ``x`` and the topic exchange."""
        return len(self.gateway.vhost.queue("probe"))

    # Attempts of anna: whether the operation was allowed

    def amqp(self, *sent: Sent) -> bool:
        """Send methods or a publish; return whether the channel stays open."""
        peer = Peer(self.gateway._door)  # type: ignore[arg-type]  # all that a peer asks of its gateway
        peer.open(user=USER, password=USER)
        peer.send(commands.Channel.Open()).receive()
        if self._is_revoking:
            assert not any("Close" in line for line in peer.send(*sent).receive())
            self.grant(frozenset())
        received = peer.send(*sent, commands.Basic.Qos()).receive()
        refusals = [line for line in received if "Close" in line]
        assert all("ACCESS_REFUSED" in line for line in refusals), received
        return not refusals

    def stomp(self, *frames: tuple[str, dict[str, str]]) -> bool:
        """Send frames, each with a receipt; return whether the connection stays open."""
        client = StompClient(self.gateway._stomp_door)  # type: ignore[arg-type]  # all that it asks of its gateway
        assert [received.verb for received in client.connect(login=USER, passcode=USER)] == ["CONNECTED"]
        if self._is_revoking:
            first = [
                received for verb, headers in frames for received in client.command(verb, {**headers, "receipt": "r"})
            ]
            assert not any(frame.verb == "ERROR" for frame in first)
            self.grant(frozenset())
            frames = tuple((verb, {**headers, "id": "again"}) for verb, headers in frames)
        received: list[ReceivedFrame] = []
        for verb, headers in frames:
            received += client.command(verb, {**headers, "receipt": "r"})
        errors = [frame for frame in received if frame.verb == "ERROR"]
        assert all(b"ACCESS_REFUSED" in frame.body or b"refused" in frame.body for frame in errors), errors
        return not errors

    def mqtt(self) -> Any:
        """Return anna's MQTT 5 client with an open connection."""
        return self.gateway.client("c", username=USER, password=USER.encode())

    def mqtt_subscribe(self, filter: str) -> bool:
        """Subscribe with QoS 1; return whether the reason code is a success."""
        client = self.mqtt()
        if self._is_revoking:
            client.subscribe(filter, 1)
            self.grant(frozenset())
        (answer,) = (line for line in client.subscribe(filter, 1, id=2) if line.startswith("SUBACK"))
        code = answer.split()[2]
        assert code in ("1", "87"), answer
        return bool(code == "1")

    def mqtt_publish(self, **options: Any) -> bool:
        """Publish; return whether the message arrived."""
        client = self.mqtt()
        if self._is_revoking:
            client.publish("t", **options)
            self.grant(frozenset())
        before = self.probed()
        client.publish("t", **{**options, "id": 2})
        return self.probed() > before

    def mqtt_will(self) -> bool:
        """Lose a connection with a will; return whether the will arrived."""
        from tests.protocols.mqtt.packets import Will

        before = self.probed()
        client = self.gateway.client("c", username=USER, password=USER.encode(), will=Will("t", b"x"))
        if self._is_revoking:
            self.grant(frozenset())
        client.lose()
        return self.probed() > before

    def http(self, method: str, path: str, fields: object = None) -> bool:
        """Send a request to the API; return whether its status is a success."""
        if self._is_revoking:
            assert self.console.ask("GET", "/whoami", user=USER).status == 200
            self.grant(frozenset())
        answer = self.console.ask(method, path, fields, user=USER)
        said = answer.content.decode()
        assert answer.status < 300 or "refused" in said.lower() or "not_authorised" in said, answer
        return answer.status < 300


@dataclass(frozen=True, slots=True)
class Row:
    """An operation, the permissions it requires, and an attempt."""

    protocol: str
    operation: str
    needs: frozenset[Need]
    attempt: Callable[[Scene], bool]

    @property
    def id(self) -> str:
        return f"{self.protocol}: {self.operation}"


def row(protocol: str, operation: str, needs: str, attempt: Callable[[Scene], bool]) -> Row:
    """Return a row; ``needs`` are written as ``C:name W:name``."""
    pairs = (need.split(":", 1) for need in needs.split())
    return Row(protocol, operation, frozenset((letter, name) for letter, name in pairs), attempt)


def _publish_fields() -> dict[str, object]:
    return {"routing_key": "k", "payload": "x", "payload_encoding": "string", "properties": {}}


_GET: Final = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
_SUBSCRIPTION: Final = "stomp-subscription-.*"
_OWN: Final = "mqtt-subscription-cqos1"
_GROUP: Final = "mqtt-shared-g-t"
_DLX: Final = {"x-dead-letter-exchange": "dlx"}
_AE: Final = {"alternate-exchange": "ae"}

c = commands
AMQP_ROWS: Final = [
    row("AMQP", "declare an exchange", "C:new", lambda s: s.amqp(c.Exchange.Declare(0, "new", "fanout"))),
    row("AMQP", "declare an exchange with an alternate one", "C:new R:new W:ae",
        lambda s: s.amqp(c.Exchange.Declare(0, "new", "fanout", arguments=_AE))),
    row("AMQP", "delete an exchange", "C:x", lambda s: s.amqp(c.Exchange.Delete(0, "x"))),
    row("AMQP", "declare a queue", "C:new", lambda s: s.amqp(c.Queue.Declare(0, "new"))),
    row("AMQP", "declare a queue with a dead-letter exchange", "C:new R:new W:dlx",
        lambda s: s.amqp(c.Queue.Declare(0, "new", arguments=_DLX))),
    row("AMQP", "delete a queue", "C:q", lambda s: s.amqp(c.Queue.Delete(0, "q"))),
    row("AMQP", "bind a queue", "W:q R:x", lambda s: s.amqp(c.Queue.Bind(0, "q", "x", "k"))),
    row("AMQP", "unbind a queue", "W:q R:src", lambda s: s.amqp(c.Queue.Unbind(0, "q", "src", "k"))),
    row("AMQP", "bind an exchange", "W:dst R:x", lambda s: s.amqp(c.Exchange.Bind(0, "dst", "x", "k"))),
    row("AMQP", "unbind an exchange", "W:dst R:src", lambda s: s.amqp(c.Exchange.Unbind(0, "dst", "src", "k"))),
    row("AMQP", "publish", "W:x", lambda s: s.amqp(published("k", exchange="x"))),
    row("AMQP", "publish to the default exchange", "W:amq.default", lambda s: s.amqp(published("q", exchange=""))),
    row("AMQP", "get", "R:q", lambda s: s.amqp(c.Basic.Get(0, "q"))),
    row("AMQP", "consume", "R:q", lambda s: s.amqp(c.Basic.Consume(0, "q"))),
    row("AMQP", "purge", "R:q", lambda s: s.amqp(c.Queue.Purge(0, "q"))),
]  # fmt: skip
MQTT_ROWS: Final = [
    row("MQTT", "SUBSCRIBE", f"C:{_OWN} W:{_OWN} R:{_OWN} R:amq.topic", lambda s: s.mqtt_subscribe("t")),
    row("MQTT", "SUBSCRIBE to a shared filter", f"C:{_GROUP} W:{_GROUP} R:{_GROUP} R:amq.topic",
        lambda s: s.mqtt_subscribe("$share/g/t")),
    row("MQTT", "PUBLISH", "W:amq.topic", lambda s: s.mqtt_publish(qos=1, id=1)),
    row("MQTT", "PUBLISH a retained message", "W:amq.topic", lambda s: s.mqtt_publish(qos=1, id=1, retain=True)),
    row("MQTT", "have a will published", "W:amq.topic", lambda s: s.mqtt_will()),
]  # fmt: skip
STOMP_ROWS: Final = [
    row("STOMP", "SEND to /exchange", "W:x", lambda s: s.stomp(("SEND", {"destination": "/exchange/x/k"}))),
    row("STOMP", "SEND to /topic", "W:amq.topic", lambda s: s.stomp(("SEND", {"destination": "/topic/t"}))),
    row("STOMP", "SEND to /queue", "C:new W:amq.default", lambda s: s.stomp(("SEND", {"destination": "/queue/new"}))),
    row("STOMP", "SEND to /amq/queue", "W:amq.default", lambda s: s.stomp(("SEND", {"destination": "/amq/queue/q"}))),
    row("STOMP", "SEND with a reply queue", "C:stomp.gen-.* R:stomp.gen-.* W:amq.default",
        lambda s: s.stomp(("SEND", {"destination": "/amq/queue/q", "reply-to": "/temp-queue/r"}))),
    row("STOMP", "SUBSCRIBE to /queue", "C:new R:new",
        lambda s: s.stomp(("SUBSCRIBE", {"id": "0", "destination": "/queue/new"}))),
    row("STOMP", "SUBSCRIBE to /queue with a dead-letter exchange", "C:new R:new W:dlx",
        lambda s: s.stomp(("SUBSCRIBE", {"id": "0", "destination": "/queue/new", **_DLX}))),
    row("STOMP", "SUBSCRIBE to /amq/queue", "R:q",
        lambda s: s.stomp(("SUBSCRIBE", {"id": "0", "destination": "/amq/queue/q"}))),
    row("STOMP", "SUBSCRIBE to /topic", f"C:{_SUBSCRIPTION} W:{_SUBSCRIPTION} R:{_SUBSCRIPTION} R:amq.topic",
        lambda s: s.stomp(("SUBSCRIBE", {"id": "0", "destination": "/topic/t"}))),
    row("STOMP", "SUBSCRIBE to /exchange", f"C:{_SUBSCRIPTION} W:{_SUBSCRIPTION} R:{_SUBSCRIPTION} R:x",
        lambda s: s.stomp(("SUBSCRIBE", {"id": "0", "destination": "/exchange/x/k"}))),
]  # fmt: skip
HTTP_ROWS: Final = [
    row("HTTP", "PUT an exchange", "C:new", lambda s: s.http("PUT", "/exchanges/%2F/new", {"type": "fanout"})),
    row("HTTP", "PUT an exchange with an alternate one", "C:new R:new W:ae",
        lambda s: s.http("PUT", "/exchanges/%2F/new", {"type": "fanout", "arguments": _AE})),
    row("HTTP", "DELETE an exchange", "C:x", lambda s: s.http("DELETE", "/exchanges/%2F/x")),
    row("HTTP", "PUT a queue", "C:new", lambda s: s.http("PUT", "/queues/%2F/new", {})),
    row("HTTP", "PUT a queue with a dead-letter exchange", "C:new R:new W:dlx",
        lambda s: s.http("PUT", "/queues/%2F/new", {"arguments": _DLX})),
    row("HTTP", "DELETE a queue", "C:q", lambda s: s.http("DELETE", "/queues/%2F/q")),
    row("HTTP", "POST a binding of a queue", "W:q R:x",
        lambda s: s.http("POST", "/bindings/%2F/e/x/q/q", {"routing_key": "k"})),
    row("HTTP", "DELETE a binding of a queue", "W:q R:src",
        lambda s: s.http("DELETE", "/bindings/%2F/e/src/q/q/k")),
    row("HTTP", "POST a binding of an exchange", "W:dst R:x",
        lambda s: s.http("POST", "/bindings/%2F/e/x/e/dst", {"routing_key": "k"})),
    row("HTTP", "DELETE a binding of an exchange", "W:dst R:src",
        lambda s: s.http("DELETE", "/bindings/%2F/e/src/e/dst/k")),
    row("HTTP", "POST a message", "W:x", lambda s: s.http("POST", "/exchanges/%2F/x/publish", _publish_fields())),
    row("HTTP", "POST get", "R:q", lambda s: s.http("POST", "/queues/%2F/q/get", _GET)),
    row("HTTP", "DELETE the contents of a queue", "R:q", lambda s: s.http("DELETE", "/queues/%2F/q/contents")),
]  # fmt: skip

ROWS: Final = [*AMQP_ROWS, *MQTT_ROWS, *STOMP_ROWS, *HTTP_ROWS]

__all__ = ["ROWS", "USER", "Row", "Scene"]
