"""What an idle connection costs a broker in memory, with AMQP with one channel."""

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

#: Opened before the first look at the memory, so that code and pools that all connections share do not count.
WARM_UP: Final = 20
#: Until whatever a broker does behind a new connection is done.
REST_S: Final = 2.0
#: Open files allowed, where the system lets us. Not simply the most possible: Erlang's helper process closes
#: every descriptor up to the limit when it starts, and containers allow a thousand million.
DESCRIPTORS: Final = 32_768
#: Descriptors needed besides the connections, by the generator and by the broker.
SPARE_DESCRIPTORS: Final = 500


@dataclass(frozen=True, slots=True)
class Idleness:
    """Connections of one protocol that say nothing: how the ``number``-th is opened, and KiB each that are owed.

    0 is none.
    """

    name: str
    protocol: str
    connect: Callable[[int, int], AbstractContextManager[object]]
    owed_kib: float


IDLENESS: Final = (
    Idleness("idle", AMQP, lambda port, number: amqp_connected(port), owed_kib=20.0),
    Idleness("mqtt idle", MQTT, lambda port, number: mqtt_connected(port, f"idle-{number}"), owed_kib=8.0),
    Idleness("stomp idle", STOMP, lambda port, number: stomp_connected(port), owed_kib=0.0),
)


@dataclass(frozen=True, slots=True)
class IdleMemory:
    """Resident memory of a freshly started broker, over so many idle connections."""

    connections: int
    baseline_bytes: int
    resident_bytes: int

    @property
    def kib_each(self) -> float:
        """KiB a connection."""
        return (self.resident_bytes - self.baseline_bytes) / self.connections / 1024


def raise_descriptor_limit() -> int:
    """Allow enough open files, here and in brokers started later; return how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


def measure_idle(peer: Peer, directory: Path, idleness: Idleness, connections: int) -> IdleMemory:
    """Start the broker, open the connections one after the other, and look at its memory."""
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
