"""The port for what every node knows: virtual hosts, users, exchanges, queues, owners."""

from dataclasses import dataclass
from typing import Final, NewType, Protocol, TypeAlias

from gateway.cluster.errors import Outdated

Key: TypeAlias = tuple[str, ...]
"""The parts of a key, from the general to the particular: ``("queue", "/", "orders")``. At least one."""

Revision = NewType("Revision", int)
"""The number of a write. All writes of a cluster have one order."""

#: The revision of a key that was never written. A deleted key has the revision of its deletion.
NEVER: Final = Revision(0)


@dataclass(frozen=True, slots=True)
class MetadataEntry:
    """A key with its last value, ``None`` if it was deleted, and the revision of that write."""

    key: Key
    value: bytes | None
    revision: Revision


class MetadataWatcher(Protocol):
    """Follows the writes below a prefix. The calls are never made from inside a call of the port."""

    def on_entry(self, entry: MetadataEntry) -> None:
        """Take the last write of a key. Revisions rise, none comes twice; superseded writes may be missing."""
        ...

    def on_current(self) -> None:
        """Note that every key that existed when the watch began was reported. Called once."""
        ...


class MetadataWatch(Protocol):
    """A watch, until it is stopped."""

    def stop(self) -> None:
        """Make no more calls; safe to call twice."""
        ...


class Metadata(Protocol):
    """Keys and values with one order of all writes. All calls are made on one thread.

    A write is refused with ``Outdated`` unless the key's last revision is the expected one, and then nothing was
    written. A write that returned survives the loss of a minority of the engine. ``get`` and ``watch`` may be behind:
    decisions are made by writes alone. ``Unanswered`` means that a write may have been made or not.
    """

    async def get(self, key: Key) -> MetadataEntry | None:
        """Return the last write of a key that this side knows of, also a deletion; ``None`` if there is none."""
        ...

    async def put(self, key: Key, value: bytes, expected: Revision) -> Revision:
        """Write a value if the last revision of the key is ``expected``; return the revision of this write."""
        ...

    async def delete(self, key: Key, expected: Revision) -> Revision:
        """Delete a key if its last revision is ``expected``; return the revision of the deletion."""
        ...

    def watch(self, prefix: Key, watcher: MetadataWatcher) -> MetadataWatch:
        """Report the keys that begin with ``prefix`` and have more parts, and then each write of one of them."""
        ...


async def compare_and_set(
    metadata: Metadata, key: Key, value: bytes | None, expected: Revision
) -> tuple[bool, MetadataEntry | None]:
    """Write a value, or delete the key for ``None``, if its last revision is ``expected``.

    Return whether that was done, and the last write of the key: this one, or else the one that was found instead.

    :raises Unanswered: if the engine does not answer.
    """
    try:
        if value is None:
            revision = await metadata.delete(key, expected)
        else:
            revision = await metadata.put(key, value, expected)
    except Outdated:
        return False, await metadata.get(key)
    return True, MetadataEntry(key, value, revision)
