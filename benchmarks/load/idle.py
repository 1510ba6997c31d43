"""The memory of idle connections; each AMQP connection has one channel."""

import resource
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.load.amqp.client import connected as amqp_connected
from benchmarks.load.mqtt.client import connected as mqtt_connected
from benchmarks.load.peers import Peer
from benchmarks.load.processes import resident_bytes
from benchmarks.load.stomp.client import connected as stomp_connected
from benchmarks.load.workloads import AMQP, MQTT, STOMP

#: Opened before the first memory reading, so that code and pools shared by all connections are not counted.
WARM_UP: Final = 20
#: Time for a broker to finish its work for new connections.
REST_S: Final = 2.0
#: Open files, if the system permits so many. Not the maximum: Erlang's helper process closes
#: every descriptor up to the limit when it starts, and containers allow a thousand million.
DESCRIPTORS: Final = 32_768
#: Descriptors needed besides the connections, by the generator and by the broker.
SPARE_DESCRIPTORS: Final = 500


@dataclass(frozen=True, slots=True)
class Idleness:
    """Idle connections of one protocol: how the ``number``-th is opened, and the required KiB per connection.

    0 means no requirement.
    """

    name: str
    protocol: str
    connect: Callable[[int, int], AbstractContextManager[object]]
    required_kib: float


IDLENESS: Final = (
    Idleness("idle", AMQP, lambda port, number: amqp_connected(port), required_kib=20.0),
    Idleness("mqtt idle", MQTT, lambda port, number: mqtt_connected(port, f"idle-{number}"), required_kib=3.0),
    Idleness("stomp idle", STOMP, lambda port, number: stomp_connected(port), required_kib=0.0),
)


@dataclass(frozen=True, slots=True)
class IdleMemory:
    """Resident memory of a freshly started broker, for this many idle connections."""

    connections: int
    baseline_bytes: int
    resident_bytes: int

    @property
    def kib_each(self) -> float:
        """The KiB per connection."""
        return (self.resident_bytes - self.baseline_bytes) / self.connections / 1024


def raise_descriptor_limit() -> int:
    """Raise the limit of open files, here and for brokers started later; return it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


def measure_idle(peer: Peer, directory: Path, idleness: Idleness, connections: int) -> IdleMemory:
    """Start the broker, open the connections one after the other, and read its memory."""
    connections = min(connections, raise_descriptor_limit() - SPARE_DESCRIPTORS)
    with peer.launch(directory) as broker, ExitStack() as stack:
        port = broker.ports[idleness.protocol]
        for number in range(WARM_UP):
            stack.enter_context(idleness.connect(port, number))
        time.sleep(REST_S)
        baseline = resident_bytes(broker.pid)
        for number in range(connections):
            stack.enter_context(idleness.connect(port, WARM_UP + number))
        time.sleep(REST_S)
        return IdleMemory(connections, baseline, resident_bytes(broker.pid))
