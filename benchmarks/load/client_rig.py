"""The clients of a measurement, independent of the protocol: a publisher and its consumers."""

import select
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.load.consumer import Consumer
from benchmarks.load.drive import Flow


class BrokerRefused(Exception):
    """The broker refused a request or sent something unexpected; the message has the details."""


class Lost(Exception):
    """The broker delivered, confirmed or kept a different number of messages than it was sent."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One whole delivery on the wire: its number on the connection and its size in bytes."""

    tag: int
    wire_bytes: int


@dataclass(frozen=True, slots=True)
class Probe:
    """The result of one message: each consumer's delivery, and its confirm's number (0 without confirms)."""

    arrivals: Sequence[Arrival]
    confirm_tag: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer: their sockets, the request's bytes and the answer's size.

    If the size is unknown, ``answer_bytes`` is 0 and the answer ends with the first ``end``; line ends may follow.
    """

    outward: socket.socket
    inward: socket.socket
    message: bytes
    answer_bytes: int
    end: bytes = b""


class ClientRig(Protocol):
    """One publisher and the receivers of its messages, for one protocol.

    Between the methods that read or write, nothing is in transit. An implementation serves one measurement; its
    creator closes it.
    """

    def probe(self) -> Probe:
        """Send one message and read everything that follows from it; acknowledge all deliveries."""
        ...

    def flow(self, poll: select.epoll, probe: Probe) -> Flow:
        """Make the sockets non-blocking and register them as a flow; the last probe gives sizes and numbers."""
        ...

    def settle(self) -> None:
        """Return once the broker has processed every acknowledgement. :raises Lost: if messages are left in a queue."""

    def check(self, before: Probe, after: Probe, messages: int) -> None:
        """Compare the broker's numbers between two probes. :raises Lost: if they differ from the messages counted."""


class ExchangeRig(ClientRig, Protocol):
    """A rig whose messages may also be exchanged one by one."""

    def delivery(self, probe: Probe) -> Exchange:
        """Return the exchange of a message for its delivery, as large as the probe's."""
        ...


class QueueRig(ExchangeRig, Protocol):
    """A rig whose messages may also wait in a queue, or be exchanged for a confirm."""

    def confirm(self) -> Exchange:
        """Return the exchange of a message for its confirm."""
        ...

    def waiting(self) -> int:
        """Return the number of ready messages, once all that were sent are counted."""
        ...

    def fill(self, messages: int) -> None:
        """Send messages without a consumer, and wait until they are ready. :raises Lost: if fewer are."""

    def pause(self) -> None:
        """Stop consuming; nothing is unacknowledged."""

    def resume(self, poll: select.epoll, arrival: Arrival) -> Consumer:
        """Consume the ready messages; ``arrival`` was the last delivery. The caller releases the consumer's link."""
        ...
