"""Metadata on JetStream: a key-value bucket with three copies."""

from typing import Any, Final

from twisted.logger import Logger

from gateway.cluster.errors import Unanswered
from gateway.cluster.metadata import Key, MetadataEntry, MetadataWatcher, Revision
from gateway_jetstream.errors import NatsError, NatsProtocolError
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.jetstream.key_value import KeyValue, KeyValueEntry
from gateway_jetstream.jetstream.ordered_consumer import OrderedConsumer
from gateway_jetstream.jetstream.publishing import StreamPublisher
from gateway_jetstream.ports.key_text import decode_key, encode_key
from gateway_jetstream.ports.layout import REPLICAS, Layout
from gateway_jetstream.ports.placing import create_stream
from gateway_jetstream.ports.repeating import ATTEMPT_S, repeated
from gateway_jetstream.ports.writes import ComparedWriter

_log: Final = Logger()


class JetStreamMetadata:
    """The metadata of a cluster."""

    def __init__(
        self, api: JetStreamApi, publish: StreamPublisher, reactor: Any, layout: Layout
    ) -> None:  # Any: as elsewhere
        self._api = api
        self._reactor = reactor
        self._bucket = KeyValue(api, publish, reactor, layout.bucket)
        self._writer = ComparedWriter(api, publish, reactor)

    async def create(self) -> None:
        """Create the bucket, unless it is there. :raises NatsError: if that is refused."""
        await create_stream(self._api, self._reactor, self._bucket.config(REPLICAS))

    async def get(self, key: Key) -> MetadataEntry | None:
        """Return the last write of a key, as the leader has it. :raises Unanswered: if there is no answer in time."""
        text = encode_key(key)
        try:
            found = await repeated(self._reactor, lambda: self._bucket.get(text, ATTEMPT_S))
        except NatsError as error:
            raise Unanswered(str(error)) from None
        return None if found is None else _entry(found)

    async def put(self, key: Key, value: bytes, expected: Revision) -> Revision:
        """Write a value. :raises Outdated: if the last revision is not the expected one."""
        return await self._write(key, value, expected)

    async def delete(self, key: Key, expected: Revision) -> Revision:
        """Delete a key. :raises Outdated: if the last revision is not the expected one."""
        return await self._write(key, None, expected)

    async def _write(self, key: Key, value: bytes | None, expected: Revision) -> Revision:
        message = self._bucket.message(encode_key(key), value)
        return Revision(await self._writer.write(self._bucket.stream, *message[:2], expected, message[2]))

    def watch(self, prefix: Key, watcher: MetadataWatcher) -> OrderedConsumer:
        """Report the keys below a prefix, and each later write of one."""
        pattern = f"{encode_key(prefix)}.>" if prefix else ">"
        return self._bucket.watch(pattern, lambda entry: _report(entry, watcher), watcher.on_current)


def _report(entry: KeyValueEntry, watcher: MetadataWatcher) -> None:
    """Report a write; one by another program, with a key that no node writes, is left out."""
    try:
        decoded = _entry(entry)
    except NatsProtocolError as error:
        _log.warn("a key of the metadata is left out: {reason}", reason=str(error))
        return
    watcher.on_entry(decoded)


def _entry(entry: KeyValueEntry) -> MetadataEntry:
    return MetadataEntry(decode_key(entry.key), entry.value, Revision(entry.revision))
