"""Everything that a broker keeps is there after a takeover: one of each kind is filled, and the leader is killed."""

import json
import time
from typing import Any, Final
from urllib.parse import quote

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster
from tests.clusters.rounds import ROUNDS
from tests.durability.mqtt_link import FOR_AN_HOUR, SocketLink
from tests.interop.amqp_clients.pika_client import parameters
from tests.management_client import get, put, request
from tests.waiting import wait_until

COUNT: Final = 60

#: Due while no node leads, or soon after.
DELAY_S: Final = 4.0

_PERSISTENT: Final = {"delivery_mode": 2}


class Contents:
    """One entity of each kind, in a virtual host that exists: it declares, fills and reads them."""

    def __init__(self, node: ClusterNode, run: str, vhost: str = "/") -> None:
        self.node = node
        self.run = run
        self.vhost = vhost
        self.mqtt_login: dict[str, Any] = {} if vhost == "/" else {"username": f"{vhost}:guest", "password": b"guest"}

    def _connect(self) -> pika.BlockingConnection:
        found = parameters(self.node.broker)
        found.virtual_host = self.vhost
        return pika.BlockingConnection(found)

    def declare(self) -> None:
        """Declare one of each kind."""
        put(self.node, f"users/{self.run}-user", {"password": "secret", "tags": "monitoring"})
        put(self.node, f"vhosts/{self.run}-vhost", {"description": "of the test"})
        put(
            self.node,
            f"permissions/{self.run}-vhost/{self.run}-user",
            {"configure": "^a", "write": ".*", "read": "^$"},
        )
        policy = {"pattern": f"^{self.run}-limited", "definition": {"max-length": 5}, "apply-to": "queues"}
        put(self.node, f"policies/{quote(self.vhost, safe='')}/{self.run}-policy", policy)
        with self._connect() as connection:
            channel = connection.channel()
            self._declare_queue(channel, "classic", **{"x-max-priority": 3})
            self._declare_queue(channel, "quorum", **{"x-queue-type": "quorum"})
            self._declare_queue(channel, "stream", **{"x-queue-type": "stream"})
            self._declare_queue(channel, "limited")
            self._declare_queue(channel, "dead")
            letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": self.name("dead")}
            self._declare_queue(channel, "expiring", **{"x-message-ttl": 1, **letters})
            self._declare_queue(channel, "due")
            later = {"x-delayed-type": "fanout"}
            channel.exchange_declare(self.name("later"), "x-delayed-message", durable=True, arguments=later)
            channel.queue_bind(self.name("due"), self.name("later"))

    def _declare_queue(self, channel: BlockingChannel, kind: str, **arguments: Any) -> None:
        channel.queue_declare(self.name(kind), durable=True, arguments=arguments)

    def name(self, kind: str) -> str:
        """Return the name of an entity."""
        return f"{self.run}-{kind}"

    def fill(self) -> None:
        """Publish to each, with confirms; let a session wait for a message, and retain one."""
        with self._connect() as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            for kind in ("classic", "quorum", "stream", "limited", "expiring"):
                for number in range(COUNT):
                    properties = pika.BasicProperties(priority=number % 3, headers={"n": number}, **_PERSISTENT)
                    channel.basic_publish("", self.name(kind), b"%d" % number, properties)
            delayed = pika.BasicProperties(headers={"x-delay": int(DELAY_S * 1000)}, **_PERSISTENT)
            self.delayed_s = time.monotonic()
            channel.basic_publish(self.name("later"), "", b"delayed", delayed)
        with SocketLink(self.node.addresses["mqtt"]) as session:
            session.send(
                session.write.connect(self.name("session"), is_clean=False, properties=FOR_AN_HOUR, **self.mqtt_login)
            )
            session.receive_connack()
            session.request(session.write.subscribe((self.name("topic"), 1)))
        with SocketLink(self.node.addresses["mqtt"]) as publisher:
            publisher.send(publisher.write.connect(self.name("publisher"), **self.mqtt_login))
            publisher.receive_connack()
            publisher.send(publisher.write.publish(self.name("topic"), b"kept", qos=1, id=1, retain=True))
            assert publisher.receive_one() == "PUBACK #1"
        # expired: dead-lettered at least as records of the next turns, which a last confirm covers
        dead = self.name("dead")
        wait_until(lambda: self.depths().get(dead) == COUNT, lambda: f"not dead-lettered: {self.depths()}")
        with self._connect() as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.basic_publish("", self.name("quorum"), b"last", pika.BasicProperties(**_PERSISTENT))

    def depths(self) -> dict[str, int]:
        """Return the number of messages of each queue."""
        with self._connect() as connection:
            channel = connection.channel()
            kinds = ("classic", "quorum", "limited", "expiring", "dead")
            names = map(self.name, kinds)
            return {
                name: channel.queue_declare(name, passive=True, durable=True).method.message_count for name in names
            }

    def definitions(self) -> dict[str, list[str]]:
        """Return all definitions, in an order of their own."""
        found = get(self.node, "definitions")
        return {
            kind: sorted(json.dumps(each, sort_keys=True) for each in rows)
            for kind, rows in found.items()
            if isinstance(rows, list)
        }

    def stream(self) -> list[tuple[int, bytes]]:
        """Read the stream from its beginning: offsets and bodies."""
        found: list[tuple[int, bytes]] = []
        with self._connect() as connection:
            channel = connection.channel()
            channel.basic_qos(prefetch_count=COUNT)
            first = {"x-stream-offset": "first"}
            for method, properties, body in channel.consume(
                self.name("stream"), arguments=first, inactivity_timeout=10
            ):
                assert method is not None, f"the stream ends after {found}"
                assert properties is not None
                assert properties.headers is not None
                found.append((int(properties.headers["x-stream-offset"]), body))
                channel.basic_ack(method.delivery_tag)
                if len(found) == COUNT:
                    break
            channel.cancel()
        return found

    def taken(self, kind: str) -> list[tuple[bytes, Any]]:
        """Take all messages of a queue: body, number in the headers."""
        found = []
        with self._connect() as connection:
            channel = connection.channel()
            while (got := channel.basic_get(self.name(kind), auto_ack=True))[0] is not None:
                _, properties, body = got
                found.append((body, (properties.headers or {}).get("n")))
        return found

    def received(self, client: str, *packets: bytes) -> list[str]:
        """Connect a client of MQTT with its session; return what it receives."""
        with SocketLink(self.node.addresses["mqtt"]) as link:
            link.send(link.write.connect(self.name(client), is_clean=False, properties=FOR_AN_HOUR, **self.mqtt_login))
            assert link.receive_connack() == ("CONNACK" if packets else "CONNACK present")
            answers = link.request(*packets) if packets else []
            return [*answers, *link.receive_answers(acknowledging=True)]


@pytest.mark.timeout(300 + 240 * ROUNDS)
def test_everything_is_there_after_a_takeover(cluster: GatewayCluster) -> None:
    for at in range(ROUNDS):
        leader = cluster.leader()
        contents = Contents(leader, f"contents{at}")
        contents.declare()
        contents.fill()
        before = contents.definitions(), contents.depths(), contents.stream()
        epoch = leader.led_epoch
        leader.kill()
        contents.node = cluster.leader(after=epoch)
        assert (contents.definitions(), contents.depths(), contents.stream()) == before
        require_contents(contents)
        cluster.start()


def require_contents(contents: Contents) -> None:
    """Take everything, and compare it with what was published."""
    numbers = range(COUNT)
    by_priority = [number for rest in (2, 1, 0) for number in numbers if number % 3 == rest]
    assert contents.taken("classic") == [(b"%d" % number, number) for number in by_priority]
    quorum = [(b"%d" % number, number) for number in numbers]
    assert contents.taken("quorum") == [*quorum, (b"last", None)]
    assert contents.taken("limited") == quorum[-5:]
    assert sorted(contents.taken("dead")) == sorted(quorum)
    wait_until(lambda: time.monotonic() - contents.delayed_s >= DELAY_S, timeout_s=DELAY_S)
    due: list[Any] = []
    wait_until(lambda: due.extend(contents.taken("due")) or due, "the delayed message does not come")  # type: ignore[func-returns-value]
    assert [body for body, _ in due] == [b"delayed"]
    topic = contents.name("topic")
    received = [line.replace(" dup", "") for line in contents.received("session")]  # it may have been sent before
    assert received == [f"PUBLISH q1 #1 {topic} 'kept'"]
    with SocketLink(contents.node.addresses["mqtt"]) as link:
        link.send(link.write.connect(contents.name("new"), **contents.mqtt_login))
        link.receive_connack()
        answers = {*link.request(link.write.subscribe((topic, 1))), *link.receive_answers(acknowledging=True)}
    assert f"PUBLISH q1 #1 retain {topic} 'kept'" in answers
    user = f"{contents.run}-user:secret"
    assert request(contents.node, "GET", "whoami", login=user)["name"] == f"{contents.run}-user"
