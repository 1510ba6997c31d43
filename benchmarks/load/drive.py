"""The generator's loop: one thread and one epoll for all flows of a workload."""

import gc
import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from benchmarks.load.consumer import Consumer
from benchmarks.load.link import Endpoint
from benchmarks.load.publisher import Publisher

#: Without progress for this long, messages were lost or the broker hangs.
STALL_S: Final = 15.0


class Stalled(Exception):
    """Messages are missing and no more arrive."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A publisher and its consumers (possibly none), each of which receives everything."""

    publisher: Publisher
    consumers: Sequence[Consumer]

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """Both ends of the flow."""
        return [self.publisher, *self.consumers]

    @property
    def settled(self) -> int:
        """The number of messages that every consumer has received and, with confirms, the broker has confirmed."""
        counts = [consumer.delivered for consumer in self.consumers]
        if self.publisher.confirms is not None:
            counts.append(self.publisher.confirmed_messages)
        return min(counts)

    @property
    def is_finished(self) -> bool:
        """Return whether everything sent is delivered, confirmed and acknowledged."""
        return self.settled == self.publisher.messages and all(consumer.is_settled for consumer in self.consumers)


def drive(poll: select.epoll, flows: Sequence[Flow], seconds: float) -> None:
    """Publish for this many seconds, or up to the publishers' limits; return when everything is settled."""
    endpoints = {endpoint.link.descriptor: endpoint for flow in flows for endpoint in flow.endpoints}
    end = perf_counter() + seconds
    while perf_counter() < end and not all(flow.publisher.is_exhausted for flow in flows):
        for flow in flows:
            flow.publisher.allow(flow.settled)
        _turn(poll, endpoints, timeout_s=max(0.0, end - perf_counter()))
    for flow in flows:
        flow.publisher.finish()
    while not all(flow.is_finished for flow in flows):
        if not _turn(poll, endpoints, timeout_s=STALL_S):
            raise Stalled("; ".join(f"{flow.settled} of {flow.publisher.messages} settled" for flow in flows))


def drain(poll: select.epoll, consumers: Sequence[Consumer], messages: int) -> None:
    """Consume until this many messages have arrived in total."""
    endpoints: dict[int, Endpoint] = {consumer.link.descriptor: consumer for consumer in consumers}
    while sum(consumer.delivered for consumer in consumers) < messages or not all(c.is_settled for c in consumers):
        if not _turn(poll, endpoints, timeout_s=STALL_S):
            raise Stalled(f"{sum(consumer.delivered for consumer in consumers)} of {messages} delivered")


@contextmanager
def collector_paused() -> Iterator[None]:
    """Disable garbage collection, to keep it out of the generator's own cost."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _turn(poll: select.epoll, endpoints: dict[int, Endpoint], timeout_s: float) -> bool:
    """Wait for ready sockets and serve each once; return whether one was ready."""
    events = poll.poll(timeout_s)
    for descriptor, event in events:
        endpoint = endpoints[descriptor]
        if event & select.EPOLLOUT:
            endpoint.link.has_room()
            endpoint.write()
        if event & ~select.EPOLLOUT:
            endpoint.read()
    return bool(events)
