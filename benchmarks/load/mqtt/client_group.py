"""Publishers and subscribers in synchronised rounds: all publish a burst, then all receive everything."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Final

from benchmarks.load.client_rig import Lost
from benchmarks.load.mqtt import wire
from benchmarks.load.mqtt.client import Client, connected
from benchmarks.load.workloads import Workload

#: Most unacknowledged deliveries of a subscriber; brokers are configured to permit more.
PORTION: Final = 500

#: By QoS, the packet types of the receiver's and the sender's acknowledgements in turn; 0 for none.
HANDSHAKES: Final[Mapping[int, Sequence[tuple[int, int]]]] = {
    0: (),
    1: ((wire.PUBACK, 0),),
    2: ((wire.PUBREC, wire.PUBREL), (wire.PUBCOMP, 0)),
}

#: Every measurement uses new names, so that nothing cached for a name helps the next one.
_serial = count(1)


class Publisher:
    """Publishes the same burst repeatedly; its packet identifiers are free again at the end of each round."""

    def __init__(self, client: Client, topic: str, workload: Workload) -> None:
        self.client = client
        body, qos = bytes(workload.body_bytes), workload.qos
        numbers = range(1, workload.window + 1)
        self._burst = b"".join(wire.publish(topic, body, qos, number) for number in numbers)
        ids = wire.identifiers(workload.window)
        self._dialogue = [(_acks(received, ids), _acks(sent, ids)) for received, sent in HANDSHAKES[qos]]

    def publish(self) -> None:
        """Send the burst at once."""
        self.client.send(self._burst)

    def conclude(self) -> None:
        """Wait until the broker has acknowledged all of it in the order of the publishes (MQTT-4.6.0-2)."""
        for received, sent in self._dialogue:
            self.client.expect(received)
            self.client.send(sent)


class Subscriber:
    """Receives and acknowledges all publishes of a round, and compares every byte."""

    def __init__(self, client: Client, topics: Sequence[str], workload: Workload) -> None:
        self.client = client
        body, qos = bytes(workload.body_bytes), workload.qos
        self._handshake = HANDSHAKES[qos]
        self._id_at = wire.identifier_at(topics[0], body, qos)
        messages = [wire.publish(topic, body, qos) for topic in topics]
        self._size = len(messages[0])
        self._expected = b"".join(message * workload.window for message in messages)
        self._buffer = bytearray(len(self._expected))

    def receive(self) -> None:
        """Read the round's messages in portions, and acknowledge each portion at once."""
        with memoryview(self._buffer) as view:
            for start in range(0, len(view), self._size * PORTION):
                portion = view[start : start + self._size * PORTION]
                self.client.read_into(portion)
                self._acknowledge(portion)
        self._check()

    def _acknowledge(self, portion: memoryview) -> None:
        if not self._handshake:
            return
        ids = bytearray(len(portion) // self._size * 2)
        for byte in (0, 1):
            column = portion[self._id_at + byte :: self._size]
            ids[byte::2] = column
            column[:] = bytes(len(column))  # bytes that the broker may choose are not compared
        for sent, received in self._handshake:
            self.client.send(_acks(sent, bytes(ids)))
            self.client.expect(_acks(received, bytes(ids)))

    def _check(self) -> None:
        """Check that every message arrived as often as it was sent; those of several publishers in any order."""
        if self._buffer == self._expected:
            return
        found, expected = self._cut(bytes(self._buffer)), self._cut(self._expected)
        if found != expected:
            raise Lost(f"{sum((expected - found).values())} messages came as others, or not as often as published")

    def _cut(self, octets: bytes) -> Counter[bytes]:
        return Counter(octets[at : at + self._size] for at in range(0, len(octets), self._size))


@dataclass(frozen=True, slots=True)
class ClientGroup:
    """The clients of one workload. ``deliveries`` are those of a round."""

    publishers: Sequence[Publisher]
    subscribers: Sequence[Subscriber]
    deliveries: int

    def round(self) -> None:
        """Let all publishers publish and all subscribers receive."""
        for publisher in self.publishers:
            publisher.publish()
        for publisher in self.publishers:
            publisher.conclude()
        for subscriber in self.subscribers:
            subscriber.receive()

    def settle(self) -> None:
        """Return once the broker has processed every acknowledgement; unexpected messages are an error."""
        for client in [end.client for end in self.publishers] + [end.client for end in self.subscribers]:
            client.ping()


@contextmanager
def open_client_group(port: int, workload: Workload) -> Iterator[ClientGroup]:
    """Connect and subscribe all clients; all are closed when the context ends."""
    prefix = f"bench/{next(_serial)}"
    topics = [f"{prefix}/{number:04}/temperature" for number in range(workload.publishers)]
    topic_filter = topics[0] if workload.publishers == 1 else f"{prefix}/+/temperature"
    with ExitStack() as stack:
        subscribers = []
        for number in range(workload.subscribers):
            client = stack.enter_context(connected(port, f"{prefix}/subscriber/{number}"))
            client.subscribe(topic_filter, workload.qos)
            subscribers.append(Subscriber(client, topics, workload))
        publishers = [
            Publisher(stack.enter_context(connected(port, f"{prefix}/publisher/{number}")), topic, workload)
            for number, topic in enumerate(topics)
        ]
        yield ClientGroup(publishers, subscribers, workload.window * len(publishers) * len(subscribers))


def _acks(kind: int, packet_ids: bytes) -> bytes:
    return wire.acks(kind, packet_ids) if kind else b""
