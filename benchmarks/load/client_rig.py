"""What a measurement asks of a protocol: a publisher and its consumers, set up, probed, driven and held to account."""

import select
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.load.consumer import Consumer
from benchmarks.load.drive import Flow


class BrokerRefused(Exception):
    """The broker refused a request, or said something nobody asked for; the message tells what."""


class Lost(Exception):
    """The broker delivered, confirmed or kept another number of messages than it was sent."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One whole delivery as seen on the wire: its number on the connection and its size in bytes."""

    tag: int
    wire_bytes: int


@dataclass(frozen=True, slots=True)
class Probe:
    """One message's fate: what each consumer saw of it, and its confirm's number (0 without confirms)."""

    arrivals: Sequence[Arrival]
    confirm_tag: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer: the sockets they go over, the bytes of the one and the size of the other.

    Where the size is not known, ``answer_bytes`` is 0, the answer is over with its first ``end``, and ends of lines may
    come behind.
    """

    outward: socket.socket
    inward: socket.socket
    message: bytes
    answer_bytes: int
    end: bytes = b""


class ClientRig(Protocol):
    """One publisher and whoever receives each of its messages, as one protocol knows them.

    Between the methods that read or write, nothing is on its way. An
    implementation serves one measurement and is closed by whoever opened it.
    """

    def probe(self) -> Probe:
        """Send one message and read all that follows from it; acknowledge whatever is still owed."""
        ...

    def flow(self, poll: select.epoll, probe: Probe) -> Flow:
        """Make the sockets non-blocking ends of a flow; the last probe tells sizes and numbers."""
        ...

    def settle(self) -> None:
        """Return once the broker has seen every acknowledgement. :raises Lost: when messages are left in a queue."""

    def check(self, before: Probe, after: Probe, messages: int) -> None:
        """Compare the broker's numbers between two probes. :raises Lost: when they differ from the messages counted."""


class ExchangeLane(ClientRig, Protocol):
    """A lane whose messages may also be exchanged one by one."""

    def delivery(self, probe: Probe) -> Exchange:
        """The exchange of a message for its delivery, as large as the probe's."""
        ...


class QueueLane(ExchangeLane, Protocol):
    """A lane whose messages may also wait in a queue, or be exchanged for a confirm."""

    def confirm(self) -> Exchange:
        """The exchange of a message for its confirm."""
        ...

    def waiting(self) -> int:
        """How many messages wait, all that were sent being counted."""
        ...

    def fill(self, messages: int) -> None:
        """Send so many messages, which nobody consumes yet, and wait until they wait. :raises Lost: if fewer do."""

    def pause(self) -> None:
        """Stop consuming; nothing is unacknowledged."""

    def resume(self, poll: select.epoll, arrival: Arrival) -> Consumer:
        """Consume what waits; ``arrival`` was the last delivery. Whoever calls releases the consumer's link."""
        ...
