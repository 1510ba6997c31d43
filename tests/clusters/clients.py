"""Clients that publish numbered messages, or take them, and connect again to any node that answers.

A publisher sends again, in order, what was not confirmed when its connection ended. Publishers and takers are threads;
``failure`` has what a thread raised.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from threading import Event, Thread
from typing import Any, Final

from pamqp import commands, frame

from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster
from tests.clusters.links import AmqpLink, StompLink, stomp_frame
from tests.durability.mqtt_link import FOR_AN_HOUR, SocketLink

#: A client that waits for an answer for so long connects again, perhaps to another node.
PATIENCE_S: Final = 6.0

_PAUSE_S: Final = 0.1

#: Messages of a publisher that wait for their confirms, at most.
WINDOW: Final = 10

#: A publisher is so many messages ahead of its taker at most, and then looks again after a while, in seconds.
MOST_AHEAD: Final = 300
_BEHIND_S: Final = 0.02

_PREFETCH: Final = 50

#: The topic of the publishers of MQTT.
TOPIC: Final = "clusters"


class Client(Thread):
    """One client over all its connections, in a virtual host. ``ends`` counts those that ended without its doing."""

    def __init__(self, cluster: GatewayCluster, name: str) -> None:
        super().__init__(daemon=True, name=name)
        self.vhost = "/"
        self.cluster = cluster
        self.failure: BaseException | None = None
        self.ends = 0
        self._is_over = Event()

    def run(self) -> None:
        """Converse until the end, on one connection after the other."""
        try:
            while not self.is_done:
                node = self.cluster.answering()
                if node is not None:
                    self._connect_to(node)
                self._is_over.wait(_PAUSE_S)
        except BaseException as failure:  # raised by ``end``
            self.failure = failure

    def _connect_to(self, node: ClusterNode) -> None:
        try:
            self.converse(node)
        except (OSError, EOFError):
            self.ends += 1

    @property
    def mqtt_login(self) -> dict[str, Any]:
        """The user name and password of MQTT, which choose the virtual host; none for the default one."""
        return {} if self.vhost == "/" else {"username": f"{self.vhost}:guest", "password": b"guest"}

    @property
    def is_done(self) -> bool:
        """Whether the client has nothing more to do."""
        return self._is_over.is_set()

    def converse(self, node: ClusterNode) -> None:
        """Do the work on one connection, until it ends or the work is done."""
        raise NotImplementedError

    def end(self, timeout_s: float = 60.0) -> None:
        """End as soon as the work is done. :raises AssertionError: if it is not done in time."""
        self._is_over.set()
        self.join(timeout_s)
        if self.failure is not None:
            raise self.failure
        assert not self.is_alive(), f"{self.name} is not done after {timeout_s} s: {self}"


class Publisher(Client):
    """Publishes 1, 2, 3 ...; ``waiting`` has the numbers without an answer, in order."""

    def __init__(self, cluster: GatewayCluster, name: str) -> None:
        super().__init__(cluster, name)
        self.sent = 0
        self.waiting: list[int] = []
        self.confirmed: set[int] = set()
        #: How many of its messages have come; a publisher waits for its taker, else tests would measure backlogs.
        self.come: Callable[[], int] = lambda: self.sent

    def __str__(self) -> str:
        return f"{self.sent} sent, {len(self.confirmed)} confirmed, waiting for {self.waiting}"

    @property
    def is_done(self) -> bool:
        """Whether it was told to end, and everything is confirmed."""
        return super().is_done and not self.waiting

    def content(self, number: int) -> bytes:
        """Return the body of a message."""
        return f"{self.name} {number}".encode()

    def next_number(self) -> int:
        """Return the number of the next message, which waits for its confirm from now on."""
        self.sent += 1
        self.waiting.append(self.sent)
        return self.sent

    @property
    def has_room(self) -> bool:
        """Whether another message may be sent."""
        if len(self.waiting) >= WINDOW or self._is_over.is_set():
            return False
        is_ahead = self.sent - self.come() >= MOST_AHEAD
        if is_ahead and not self.waiting:
            self._is_over.wait(_BEHIND_S)
        return not is_ahead

    def confirm(self, number: int) -> None:
        """Note a confirm."""
        assert number not in self.confirmed, f"{self.name} {number} is confirmed twice"
        self.waiting.remove(number)
        self.confirmed.add(number)


class AmqpPublisher(Publisher):
    """Publishes with confirms to a queue. ``blocked_s`` has the reasons why it was blocked."""

    def __init__(self, cluster: GatewayCluster, name: str, queue: str) -> None:
        super().__init__(cluster, name)
        self._queue = queue
        self.reasons: list[str] = []

    def converse(self, node: ClusterNode) -> None:
        """Publish again what waits, then more."""
        with AmqpLink(node.addresses["amqp"], PATIENCE_S, self.vhost) as link:
            link.call(commands.Confirm.Select())
            tags: dict[int, int] = {}
            last_tag = 0
            fresh = list(self.waiting)
            while not self.is_done:
                for number in fresh:
                    last_tag += 1
                    tags[last_tag] = number
                    link.publish(self._queue, self.content(number))
                fresh = []
                if self.waiting:
                    self._take_answer(link, tags)
                while self.has_room:
                    fresh.append(self.next_number())

    def _take_answer(self, link: AmqpLink, tags: dict[int, int]) -> None:
        if not tags:
            return
        answer = link._next()
        if link.note(answer):
            if link.blocked:
                self.reasons.append(link.blocked)
            return
        if isinstance(answer, commands.Connection.Close | commands.Channel.Close):
            raise ConnectionResetError(str(answer.reply_text))
        if isinstance(answer, commands.Basic.Nack):  # whatever it is of, it is published again on another connection
            raise ConnectionResetError("the broker could not store a message")
        assert isinstance(answer, commands.Basic.Ack), f"{answer} for {self.name}"
        tag = answer.delivery_tag
        assert tag in tags, f"delivery tag {tag} of {self.name} is confirmed twice, or was never sent"
        answered = [each for each in tags if each <= tag] if answer.multiple else [tag]
        for each in answered:
            self.confirm(tags.pop(each))


class StompPublisher(Publisher):
    """Publishes with receipts to a queue."""

    def __init__(self, cluster: GatewayCluster, name: str, queue: str) -> None:
        super().__init__(cluster, name)
        self._destination = f"/amq/queue/{queue}"

    def converse(self, node: ClusterNode) -> None:
        """Send again what waits, then more."""
        with StompLink(node.addresses["stomp"], PATIENCE_S, self.vhost) as link:
            self._send(link, self.waiting)
            while not self.is_done:
                fresh = []
                while self.has_room:
                    fresh.append(self.next_number())
                self._send(link, fresh)
                if self.waiting:
                    answer = link.next_frame()
                    assert answer.verb == "RECEIPT"
                    self.confirm(int(answer["receipt-id"]))

    def _send(self, link: StompLink, numbers: Iterable[int]) -> None:
        for number in numbers:
            headers = {"destination": self._destination, "receipt": str(number), "persistent": "true"}
            link.send(stomp_frame("SEND", headers, self.content(number)))


class MqttPublisher(Publisher):
    """Publishes with QoS 1 or 2 in a session that survives."""

    def __init__(self, cluster: GatewayCluster, name: str, qos: int) -> None:
        super().__init__(cluster, name)
        self._qos = qos
        self._has_session = False
        #: Messages whose PUBREC came: only their release is repeated.
        self._received: set[int] = set()

    def converse(self, node: ClusterNode) -> None:
        """Continue the handshakes, then begin more."""
        with SocketLink(node.addresses["mqtt"]) as link:
            link.socket.settimeout(PATIENCE_S)
            link.send(link.write.connect(self.name, is_clean=False, properties=FOR_AN_HOUR, **self.mqtt_login))
            connack = link.receive_connack()
            assert connack.startswith("CONNACK")
            assert connack == "CONNACK present" or not self._has_session, f"the session of {self.name} is lost"
            if not self._has_session:  # the answer says that it is durable
                link.request(link.write.subscribe(("unused", 0)))
                self._has_session = True
            for number in self.waiting:
                self._send(link, number, is_again=True)
            while not self.is_done:
                while self.has_room:
                    self._send(link, self.next_number(), is_again=False)
                if self.waiting:
                    self._take_answer(link, link.receive_one())

    def _send(self, link: SocketLink, number: int, is_again: bool) -> None:
        if number in self._received:
            link.send(link.write.pubrel(packet_id(number)))
        else:
            content = self.content(number)
            link.send(link.write.publish(TOPIC, content, qos=self._qos, id=packet_id(number), dup=is_again))

    def _take_answer(self, link: SocketLink, line: str) -> None:
        if line.startswith("DISCONNECT"):
            raise ConnectionResetError(line)
        if line == "PINGRESP":  # from the follower, while no node leads
            return
        words = line.split()
        number = next(each for each in self.waiting if packet_id(each) == int(words[1][1:]))
        if words[0] in ("PUBACK", "PUBREC") and words[2:]:
            raise ConnectionResetError(f"the broker could not store a message: {line}")
        if words[0] == "PUBREC":
            self._received.add(number)
            link.send(link.write.pubrel(packet_id(number)))
        else:
            # PUBCOMP for an unknown identifier: the node that completed it before ended before it could say so
            assert words[0] == ("PUBCOMP" if self._qos == 2 else "PUBACK"), line
            assert words[2:] == [] or (words[0] == "PUBCOMP" and number in self._received), line
            self._received.discard(number)
            self.confirm(number)


def packet_id(number: int) -> int:
    """Return the packet identifier of a message."""
    return (number - 1) % 60_000 + 1


class Taker(Client):
    """Takes messages. ``first`` has, of each publisher, the numbers in the order in which they came first."""

    def __init__(self, cluster: GatewayCluster, name: str) -> None:
        super().__init__(cluster, name)
        self.first: dict[str, list[int]] = defaultdict(list)
        self.again: dict[str, list[int]] = defaultdict(list)
        #: The largest distance of a repetition to the latest message of its publisher.
        self.oldest_again = 0
        self._seen: set[bytes] = set()

    def __str__(self) -> str:
        return ", ".join(f"{len(numbers)} of {publisher}" for publisher, numbers in self.first.items())

    def has_all(self, publisher: Publisher) -> bool:
        """Whether everything that was confirmed has come."""
        return publisher.confirmed <= set(self.first[publisher.name])

    def note(self, content: bytes) -> None:
        """Note a message."""
        name, number = content.decode().split()
        if content in self._seen:
            self.again[name].append(int(number))
            self.oldest_again = max(self.oldest_again, self.first[name][-1] - int(number))
        else:
            self.first[name].append(int(number))
            self._seen.add(content)


class AmqpTaker(Taker):
    """Takes messages of queues, and acknowledges each."""

    def __init__(self, cluster: GatewayCluster, name: str, *queues: str) -> None:
        super().__init__(cluster, name)
        self._queues = queues

    def converse(self, node: ClusterNode) -> None:
        """Consume until the end."""
        with AmqpLink(node.addresses["amqp"], PATIENCE_S, self.vhost) as link:
            link.call(commands.Basic.Qos(0, _PREFETCH))
            for queue in self._queues:
                link.send(frame.marshal(commands.Basic.Consume(0, queue, queue), 1))
            while not self.is_done:
                method = link.next_method()
                if isinstance(method, commands.Basic.Cancel):
                    raise ConnectionResetError("cancelled by the broker")
                if isinstance(method, commands.Basic.Deliver):
                    self.note(_content(link))
                    link.send(frame.marshal(commands.Basic.Ack(method.delivery_tag), 1))


def _content(link: AmqpLink) -> bytes:
    """Return the body of a delivery."""
    size, content = link.next_method().body_size, b""
    while len(content) < size:
        part: Any = link.next_method()
        content += part.value
    return content


class MqttTaker(Taker):
    """Receives with QoS 2 in a session that survives."""

    def __init__(self, cluster: GatewayCluster, name: str) -> None:
        super().__init__(cluster, name)
        self._has_session = False
        #: Identifiers that are not released yet: a message with one of them is a repetition.
        self._holding: set[int] = set()
        self.is_subscribed = Event()

    def converse(self, node: ClusterNode) -> None:
        """Receive until the end."""
        with SocketLink(node.addresses["mqtt"]) as link:
            link.socket.settimeout(PATIENCE_S)
            link.send(link.write.connect(self.name, is_clean=False, properties=FOR_AN_HOUR, **self.mqtt_login))
            connack = link.receive_connack()
            assert connack == "CONNACK present" or not self._has_session, f"{connack}: the session is lost"
            if not self._has_session:
                link.request(link.write.subscribe((TOPIC, 2)))
                self._has_session = True
                self.is_subscribed.set()
            while not self.is_done:
                self._take(link, link.receive_one())

    def _take(self, link: SocketLink, line: str) -> None:
        words = line.split()
        if words[0] == "PUBREL":
            self._holding.discard(int(words[1][1:]))
            link.send(link.write.pubcomp(int(words[1][1:])))
        elif words[0] == "PUBLISH":
            at, content = int(words[2][1:]), line.split("'")[1].encode()
            if words[1] == "q1":
                self.note(content)
                link.send(link.write.puback(at))
                return
            if at not in self._holding:
                self._holding.add(at)
                self.note(content)
            link.send(link.write.pubrec(at))
        elif words[0] == "DISCONNECT":
            raise ConnectionResetError(line)
