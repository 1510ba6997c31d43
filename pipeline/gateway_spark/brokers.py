"""The brokers of a source: one, or several that do not know each other.

Streams of one name at several brokers are partitions of one queue: ``oslo:0`` is partition 0 at the broker ``oslo``.
The names are part of the offsets in checkpoints, so a broker may move to another URL, and not to another name.
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Final

from gateway_spark.address import Address
from gateway_spark.client import Client, Fields, Partition
from gateway_spark.errors import BrokerRefused, OptionError, Unreachable
from gateway_spark.offsets import Key, PartitionOffset, encode, is_same
from gateway_spark.options import QueueSelection

#: HTTP statuses of a queue that is no stream, and of one that does not exist.
NO_STREAM: Final = (400, 404)


#: Timeout for a connection to a node whose answer is only compared with that of another, in seconds.
COMPARISON_TIMEOUT_S: Final = 2.0


class Brokers:
    """A client for each broker of a source, by its name; a single broker has the empty name. Not thread-safe."""

    def __init__(self, address_by_broker: Mapping[str, Address]) -> None:
        self._address_by_broker = address_by_broker
        self._client_by_broker = {name: Client(address) for name, address in address_by_broker.items()}

    def close(self) -> None:
        """Close all connections."""
        for client in self._client_by_broker.values():
            client.close()

    def streams(self, selection: QueueSelection, *, are_required: bool = True) -> dict[Key, Partition]:
        """Return the partitions of all selected queues, at all brokers.

        :raises OptionError: if a named queue is required, and one of them has no stream of that name.
        """
        found: dict[Key, Partition] = {}
        for broker, client in self._client_by_broker.items():
            try:
                found |= _streams_of(broker, client, selection)
            except BrokerRefused as refusal:
                if refusal.status not in NO_STREAM:
                    raise
                if are_required:
                    where = f" at broker '{broker}'" if broker else ""
                    raise OptionError(f"queues '{selection}' cannot be read{where}: {refusal}") from None
        return found

    def require_clusters(self, selection: QueueSelection, streams: Mapping[Key, Partition]) -> None:
        """Check that the nodes of each broker are those of one cluster: that each has these streams.

        Nodes without an answer are not checked. :raises OptionError: if a node has other streams of these names.
        """
        for broker, address in self._address_by_broker.items():
            own = {key: each.incarnation for key, each in streams.items() if each.broker == broker}
            for node in address.nodes if len(address.nodes) > 1 else ():
                found = _streams_at(broker, replace(address, nodes=(node,), retry_s=0), selection)
                if found is not None and not all(
                    key in found and is_same(found[key].incarnation, own[key]) for key in own
                ):
                    raise OptionError(
                        f"{node} has other streams than {address.nodes[0]}: 'urls' are the nodes of one cluster, "
                        "and several brokers are given by 'brokers'"
                    )

    def offset_at(self, partition: Partition, time_ms: int) -> int:
        """Return the offset of the first message at or after a time; if there is none yet, the next offset."""
        return self._client_by_broker[partition.broker].offset_at(partition.queue, time_ms)

    def offset_after(self, partition: Partition, offset: int, size_bytes: int) -> int:
        """Return the offset about this many bytes after another."""
        return self._client_by_broker[partition.broker].offset_after(partition.queue, offset, size_bytes)

    def batches(self, query: str) -> list[Fields]:
        """Return the batches of a query that are not published yet.

        :raises AccessError: without the tag *monitoring*.
        """
        found = (batch for client in self._client_by_broker.values() for batch in client.batches())
        return [batch for batch in found if batch["query"] == query]

    def report(self, consumer: str, positions: Mapping[Key, PartitionOffset]) -> None:
        """Report a query's progress, so that each broker can show the lag of its own partitions."""
        for broker, client in self._client_by_broker.items():
            own = {Key(key.queue, key.number): entry for key, entry in positions.items() if key.broker == broker}
            if own:
                client.report(consumer, {"offsets": encode(own)})


def _streams_of(broker: str, client: Client, selection: QueueSelection) -> dict[Key, Partition]:
    return {
        Key(queue, f"{broker}:{number}" if broker else number): replace(each, broker=broker)
        for queue, partitions in client.streams(selection).items()
        for number, each in partitions.items()
    }


def _streams_at(broker: str, address: Address, selection: QueueSelection) -> dict[Key, Partition] | None:
    """Return the streams of one node: none if it does not have one of them, ``None`` if it does not answer."""
    with closing(Client(address, connect_timeout_s=COMPARISON_TIMEOUT_S)) as client:
        try:
            return _streams_of(broker, client, selection)
        except Unreachable:
            return None
        except BrokerRefused:
            return {}
