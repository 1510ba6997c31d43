"""Super streams: partitioned streams and the exchange that distributes messages over them.

They are not part of the kernel: a super stream is an exchange with the argument ``x-super-stream``, whose bindings lead
to its *partitions*, streams named after it. They are interchangeable with those that RabbitMQ's tools create.
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

#: More partitions would not increase throughput.
MAX_PARTITIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class SuperStreamPartition:
    """One stream of a super stream, and its binding key."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class SuperStreamPlan:
    """The definition of a new super stream. ``arguments`` are those of its partitions."""

    name: str
    exchange_type: str
    partitions: Sequence[SuperStreamPartition]
    arguments: Arguments


def numbered_plan(name: str, partitions: int, exchange_type: str, arguments: Arguments) -> SuperStreamPlan:
    """Return a super stream with numbered partitions. :raises PreconditionFailed: if the number is out of range."""
    if not 0 < partitions <= MAX_PARTITIONS:
        too_few = "The partition number must be greater than 0"
        raise PreconditionFailed(
            too_few if partitions <= 0 else f"The maximum number of partitions is {MAX_PARTITIONS}"
        )
    return keyed_plan(name, [str(number) for number in range(partitions)], exchange_type, arguments)


def keyed_plan(name: str, keys: Sequence[str], exchange_type: str, arguments: Arguments) -> SuperStreamPlan:
    """Return a super stream with a partition for each binding key. :raises PreconditionFailed: if a key is repeated."""
    if not keys or len(set(keys)) < len(keys):
        raise PreconditionFailed("Binding keys must be given and be distinct")
    return SuperStreamPlan(name, exchange_type, [SuperStreamPartition(f"{name}-{key}", key) for key in keys], arguments)


def create_super_stream(vhost: VirtualHost, super_stream: SuperStreamPlan, user: str) -> None:
    """Create the exchange, the partitions and their bindings for a user; all of them or nothing.

    :raises PreconditionFailed: if one of the names exists; further errors are those of declaring and binding.
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
    """Delete a super stream: its partitions with their messages, and the exchange."""
    for stream in partitions_of(vhost, exchange):
        vhost.delete_queue(stream)
    vhost.delete_exchange(exchange.name)


def super_streams(vhost: VirtualHost) -> list[Exchange]:
    """Return the exchanges of the super streams of a virtual host."""
    return [exchange for exchange in vhost.exchange_by_name.values() if is_super_stream(exchange)]


def is_super_stream(exchange: Exchange) -> bool:
    """Return whether an exchange is that of a super stream."""
    return exchange.arguments.get(MARK) is True


def partitions_of(vhost: VirtualHost, exchange: Exchange) -> list[Stream]:
    """Return the streams of a super stream in partition order."""
    found = {binding.destination: None for binding in sorted(vhost.bindings.of(exchange), key=_order)}
    return [stream for stream in found if isinstance(stream, Stream)]


def _order(binding: Binding) -> tuple[int, str]:
    order = binding.arguments.get(ORDER)
    return order if isinstance(order, int) else MAX_PARTITIONS, binding.destination.name


@contextmanager
def _rollback_on_refusal(vhost: VirtualHost, super_stream: SuperStreamPlan) -> Iterator[None]:
    """On a refusal, delete what was created; none of it existed before."""
    try:
        yield
    except Refused:
        for partition in super_stream.partitions:
            if (stream := vhost.queue_by_name.get(partition.name)) is not None:
                vhost.delete_queue(stream)
        if super_stream.name in vhost.exchange_by_name:
            vhost.delete_exchange(super_stream.name)
        raise
