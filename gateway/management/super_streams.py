"""Super streams: streams that together hold what one could not, and the exchange that spreads messages over them.

There is no such thing in the kernel: a super stream is an exchange with the argument ``x-super-stream``, whose bindings
lead to its *partitions*, streams called after it. What RabbitMQ made is found, and what is made here RabbitMQ's tools
find.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from gateway.kernel.errors import PreconditionFailed, Refused
from gateway.kernel.messages.message import Arguments
from gateway.kernel.routing.binding import Binding
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.streams.stream import Stream
from gateway.kernel.vhosts.virtual_host import VirtualHost

MARK: Final = "x-super-stream"
ORDER: Final = "x-stream-partition-order"

#: More would not make anything faster.
MAX_PARTITIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class SuperStreamPartition:
    """One stream of a super stream, and the binding key that leads to it."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class SuperStreamPlan:
    """What a super stream is to be. ``arguments`` are those of its partitions."""

    name: str
    exchange_type: str
    partitions: Sequence[SuperStreamPartition]
    arguments: Arguments


def numbered_plan(name: str, partitions: int, exchange_type: str, arguments: Arguments) -> SuperStreamPlan:
    """Return a super stream whose partitions have numbers. :raises PreconditionFailed: for a number that is none."""
    if not 0 < partitions <= MAX_PARTITIONS:
        least = "The partition number must be greater than 0"
        raise PreconditionFailed(least if partitions <= 0 else f"There can be {MAX_PARTITIONS} partitions at most")
    return keyed_plan(name, [str(number) for number in range(partitions)], exchange_type, arguments)


def keyed_plan(name: str, keys: Sequence[str], exchange_type: str, arguments: Arguments) -> SuperStreamPlan:
    """Return a super stream with a partition for each binding key. :raises PreconditionFailed: if a key comes twice."""
    if not keys or len(set(keys)) < len(keys):
        raise PreconditionFailed("Binding keys must be given, and differ from each other")
    return SuperStreamPlan(name, exchange_type, [SuperStreamPartition(f"{name}-{key}", key) for key in keys], arguments)


def create_super_stream(vhost: VirtualHost, super_stream: SuperStreamPlan, user: str) -> None:
    """Make the exchange, the partitions and the bindings between them, for a user; all of them or nothing.

    :raises PreconditionFailed: when something of such a name is there already; and as declaring and binding do.
    """
    name, partitions = super_stream.name, super_stream.partitions
    if name in vhost.exchange_by_name:
        raise PreconditionFailed(f"there is already an exchange named {name}")
    for partition in partitions:
        if partition.name in vhost.queue_by_name:
            raise PreconditionFailed(f"there is already a queue named {partition.name}")
    arguments = {**super_stream.arguments, "x-queue-type": "stream"}
    with _rollback_on_refusal(vhost, super_stream):
        exchange = vhost.declare_exchange(name, super_stream.exchange_type, is_durable=True, arguments={MARK: True})
        for number, partition in enumerate(partitions):
            stream = vhost.declare_queue(partition.name, is_durable=True, arguments=arguments, user=user)
            vhost.bind(exchange, stream, partition.key, {ORDER: number}, user)


def delete_super_stream(vhost: VirtualHost, exchange: Exchange) -> None:
    """Delete a super stream: its partitions with all that is in them, and the exchange."""
    for stream in partitions_of(vhost, exchange):
        vhost.delete_queue(stream)
    vhost.delete_exchange(exchange.name)


def super_streams(vhost: VirtualHost) -> list[Exchange]:
    """Return the exchanges of the super streams of a virtual host."""
    return [exchange for exchange in vhost.exchange_by_name.values() if is_super_stream(exchange)]


def is_super_stream(exchange: Exchange) -> bool:
    """Whether an exchange is that of a super stream."""
    return exchange.arguments.get(MARK) is True


def partitions_of(vhost: VirtualHost, exchange: Exchange) -> list[Stream]:
    """Return the streams of a super stream, in their order."""
    found = {binding.destination: None for binding in sorted(vhost.bindings.of(exchange), key=_order)}
    return [stream for stream in found if isinstance(stream, Stream)]


def _order(binding: Binding) -> tuple[int, str]:
    order = binding.arguments.get(ORDER)
    return order if isinstance(order, int) else MAX_PARTITIONS, binding.destination.name


@contextmanager
def _rollback_on_refusal(vhost: VirtualHost, super_stream: SuperStreamPlan) -> Iterator[None]:
    """Delete what was made when something further cannot be; none of it was there before."""
    try:
        yield
    except Refused:
        for partition in super_stream.partitions:
            if (stream := vhost.queue_by_name.get(partition.name)) is not None:
                vhost.delete_queue(stream)
        if super_stream.name in vhost.exchange_by_name:
            vhost.delete_exchange(super_stream.name)
        raise
