"""The store on LMDB: stages on the kernel's thread, commits on its own, and reports back.

Three laws. What was reported survives a crash. What an append holds is there whole or not at all. ``append`` touches
no file, whatever the disk does.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from gateway.kernel.changes import Change, Changes, Enqueued, Lsn, Put
from gateway.kernel.ports import StoredMessage, StoreListener
from gateway_lmdb import recovery
from gateway_lmdb.environment import DEFAULT_MAP_SIZE, RECORD_SEEN, Environment
from gateway_lmdb.records import decode_content
from gateway_lmdb.relay import Relay
from gateway_lmdb.schema import Transaction, highest_number, pack_number
from gateway_lmdb.staged import Append, Staged, content_key
from gateway_lmdb.writer import Writer

#: The position of changes that are not from the kernel, so nobody waits for them.
_OUR_OWN: Final = Lsn(0)


class LmdbStore:
    """A ``Store`` in a directory. Every method is called on the kernel's thread.

    :param path: the directory, made if missing; one store at a time may have it open.
    :param call_in_kernel: makes a call on the kernel's thread, soon, in the order given; called from any thread. With
        Twisted, ``reactor.callFromThread``.
    :param retry_interval_s: how long to wait before writing again when the disk is full.
    :param map_size: the largest size the file may reach, in bytes. It costs address space alone.
    :raises StorageError: when the directory is in use or unusable, or a newer gateway wrote it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        call_in_kernel: Callable[[Callable[[], None]], None],
        retry_interval_s: float = 0.5,
        map_size: int = DEFAULT_MAP_SIZE,
    ) -> None:
        self._environment = Environment(Path(path), map_size)
        self._staged = Staged()
        self._relay = Relay(call_in_kernel, self._staged)
        self._appended = Lsn(0)
        self._is_closed = False
        self._highest_ids = self._read_highest_ids()
        self._writer = Writer(self._environment, self._relay, retry_interval_s)

    def listen(self, listener: StoreListener) -> None:
        """Name the listener. Called once, before the first ``append``."""
        self._relay.listen(listener)

    def append(self, changes: Changes) -> Lsn:
        """Stage ``changes`` as one step; they belong to the store from now on."""
        lsn = self._appended = Lsn(self._appended + 1)
        self._stage(Append(lsn, changes))
        return lsn

    def messages(self, message_ids: Sequence[int]) -> list[StoredMessage | None]:
        """Read contents back, staged or durable, in the order asked for; ``None`` where nothing is stored."""
        with self._environment.read() as transaction:
            found = [self._content(transaction, message_id) for message_id in message_ids]
        if self._environment.saw(sum(max(RECORD_SEEN, len(content.body)) for content in found if content)):
            self._stage(Append(_OUR_OWN, ()))  # wakes the writer: it trims between its transactions
        return found

    def _stage(self, append: Append) -> None:
        self._staged.add(append)
        self._writer.stage(append)

    def _content(self, transaction: Transaction, message_id: int) -> StoredMessage | None:
        tables = self._environment.tables
        for is_spilled, table in ((False, tables.contents), (True, tables.spilled)):
            is_staged, content = self._staged.find(content_key(message_id, is_spilled))
            if content is not None:
                return content
            if not is_staged and (record := transaction.get(pack_number(message_id), db=table)) is not None:
                return decode_content(record)
        return None

    def recover(self) -> Iterator[Change]:
        """Yield what was durable when the store was opened, before the first ``append``."""
        entities = recovery.entities(self._environment)
        yield from map(Put, entities)
        queues = recovery.queue_ids(entities)
        orphans: list[Enqueued] = []
        for enqueued in recovery.enqueued(self._environment):
            if enqueued.queue_id in queues:
                yield enqueued
            else:
                orphans.append(enqueued)
        self._stage(Append(_OUR_OWN, recovery.cleanup(self._environment, orphans, queues)))

    def highest_ids(self) -> tuple[int, int]:
        """Return the highest position and message id found when the store was opened."""
        return self._highest_ids

    def snapshot(self, directory: str | Path) -> None:
        """Write a compact copy of what is durable into an existing, empty directory, while the store is in use."""
        self._environment.snapshot(Path(directory))

    def close(self) -> None:
        """Make everything staged durable, report it, and release the files.

        A store that cannot write at this moment reports ``on_failed`` instead, and loses what it did not report.
        Closing twice is harmless.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._writer.stop()
        self._relay.deliver()
        self._environment.close()

    def _read_highest_ids(self) -> tuple[int, int]:
        tables = self._environment.tables
        with self._environment.read() as transaction:
            return highest_number(transaction, tables.enqueued), highest_number(transaction, tables.contents)
