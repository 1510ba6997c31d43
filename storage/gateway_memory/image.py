"""The content of a memory store, in plain dictionaries."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from gateway.kernel.journal.changes import (
    EVERYTHING,
    MESSAGE,
    PLACE,
    Appended,
    Change,
    Changes,
    Dequeued,
    Discarded,
    Enqueued,
    Put,
    Recovered,
    Removed,
    Sealed,
    SetAside,
    Stored,
    Truncated,
)
from gateway.kernel.journal.records.entity import ENTITY_BY_KIND, Entity
from gateway.kernel.messages import values
from gateway.kernel.messages.chunks import Entry
from gateway.kernel.messages.contents import ContentWriter
from gateway.kernel.messages.message import Value
from gateway.kernel.messages.stored_message import StoredMessage
from gateway_memory.streams import StreamImage


@dataclass(frozen=True, slots=True)
class Content:
    """A copy of a ``Stored`` at the time it was appended; the kernel may change the message's id later."""

    message_id: int
    is_spilled: bool
    content: StoredMessage


@dataclass(frozen=True, slots=True)
class AppendedLine:
    """A copy of an ``Appended`` at the time it was appended."""

    stream_id: int
    offset: int
    entry: Entry


Step: TypeAlias = (
    Put | Removed | SetAside | Content | Enqueued | Dequeued | Discarded | AppendedLine | Sealed | Truncated
)


def captured(changes: Changes) -> list[Step]:
    """Return copies of the changes that the kernel cannot modify."""
    writer = ContentWriter()
    return [_captured(change, writer) for change in changes]


def _captured(change: Change, writer: ContentWriter) -> Step:
    if isinstance(change, Stored):
        return _content(change)
    if isinstance(change, Appended):
        entry = change.timestamp_ms, change.filter_value, writer.encode(change.message)
        return AppendedLine(change.stream_id, change.offset, entry)
    return change


def _content(stored: Stored) -> Content:
    message = stored.message
    header = message.header
    content = StoredMessage(message.exchange, message.routing_key, header.format.name, header.stored_raw, message.body)
    return Content(stored.message_id, stored.is_spilled, content)


class Image:
    """The entities, contents, queue entries and streams after the steps applied so far.

    ``orphans`` are the changes by which a restart removed messages of queues and streams that do not exist.
    """

    def __init__(self) -> None:
        self.entities: dict[tuple[str, bytes], Entity] = {}
        self.contents: dict[int, StoredMessage] = {}
        self.spilled: dict[int, StoredMessage] = {}
        self.enqueued: dict[int, Enqueued] = {}
        self.streams: dict[int, StreamImage] = {}
        self.set_aside: dict[tuple[str, bytes], SetAside] = {}
        self.orphans: list[Change] = []

    def apply(self, step: Step) -> None:
        """Apply one step; applying it again has no effect."""
        match step:
            case Content(message_id, is_spilled, content):
                self._table(is_spilled)[message_id] = content
            case Enqueued():
                self.enqueued[step.position] = step
            case Dequeued():
                self.enqueued.pop(step.position, None)
            case Discarded():
                self._table(step.is_spilled).pop(step.message_id, None)
            case Put(entity):
                self.entities[_name(entity.kind, entity.key)] = entity
            case Removed(kind, key):
                self.entities.pop(_name(kind, key), None)
            case SetAside():
                self._set_aside(step)
            case AppendedLine(stream_id, offset, entry):
                self.stream(stream_id).append(offset, entry)
            case Sealed(segment):
                self.stream(segment.stream_id).seal(segment)
            case Truncated(stream_id, first) if first == EVERYTHING:
                self.streams.pop(stream_id, None)
            case Truncated(stream_id, first):
                self.stream(stream_id).truncate(first)

    def _set_aside(self, aside: SetAside) -> None:
        name, number = _name(aside.kind, aside.key), aside.key[0] if aside.key else None
        if aside.kind == MESSAGE and isinstance(number, int):
            was_there = self.contents.pop(number, None) is not None
        elif aside.kind == PLACE and isinstance(number, int):
            was_there = self.enqueued.pop(number, None) is not None
        else:
            was_there = self.entities.pop(name, None) is not None
        if was_there:
            self.set_aside[name] = aside

    def stream(self, stream_id: int) -> StreamImage:
        """Return the content of a stream."""
        return self.streams.setdefault(stream_id, StreamImage(stream_id))

    def content(self, message_id: int) -> StoredMessage | None:
        """Return the content of a message, spilled or not."""
        return self.contents.get(message_id) or self.spilled.get(message_id)

    def after_restart(self) -> "Image":
        """Return what a restart finds: nothing spilled, and no messages of deleted queues."""
        image = Image()
        image.entities = dict(self.entities)
        image.set_aside = dict(self.set_aside)
        queues = {
            *(entity.messages_id for entity in self.entities.values()),
            *(each.queue_id for each in self.set_aside.values()),
        } - {0}
        image.enqueued = {place: entry for place, entry in self.enqueued.items() if entry.queue_id in queues}
        lost = {entry.message_id for entry in self.enqueued.values() if entry.queue_id not in queues}
        lost -= {entry.message_id for entry in image.enqueued.values()}
        image.orphans = [Dequeued(place) for place in sorted(self.enqueued.keys() - image.enqueued.keys())]
        image.orphans += map(Discarded, sorted(lost))
        image.orphans += (Truncated(number, EVERYTHING) for number in sorted(self.streams.keys() - queues))
        image.contents = {message_id: kept for message_id, kept in self.contents.items() if message_id not in lost}
        image.streams = {number: stream.copied() for number, stream in self.streams.items() if number in queues}
        return image

    def changes(self) -> Iterator[Recovered]:
        """Yield what recovery yields: quarantined records, entities by kind, segments, queue entries by position."""
        yield from self.set_aside.values()
        for kind in ENTITY_BY_KIND:
            for (entity_kind, _), entity in self.entities.items():
                if entity_kind == kind:
                    yield Put(entity)
        for stream_id in sorted(self.streams):
            yield from self.streams[stream_id].segments()
        for position in sorted(self.enqueued):
            yield self.enqueued[position]

    def _table(self, is_spilled: bool) -> dict[int, StoredMessage]:
        return self.spilled if is_spilled else self.contents


def _name(kind: str, key: tuple[Value, ...]) -> tuple[str, bytes]:
    """Return a key for an entity, as every engine does: keys may contain mappings, which are not hashable."""
    return kind, values.dumps_key(key)
