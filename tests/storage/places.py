"""Test locations of the storage engines."""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue

from gateway.kernel.journal.store import Store
from gateway_lmdb import LmdbStore
from gateway_memory import MemoryStore

TIMEOUT_S = 20.0


class MemoryPlace:
    """A memory store, committed by ``pump``."""

    def __init__(self) -> None:
        self.store = MemoryStore()

    def open(self) -> Store:
        self.store = self.store.reopened()
        return self.store

    def pump(self, until: Callable[[], bool]) -> None:
        self.store.commit()
        assert until(), "the condition is false after everything was committed"

    def crash(self) -> None:
        """Do nothing; ``open`` uses the committed data."""

    def close(self) -> None:
        """Do nothing; there are no files."""


class DeferringPlace(MemoryPlace):
    """A memory store that commits automatically after a delay."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Callable[[], None]] = []

    def open(self) -> Store:
        self.store = self.store.reopened(self.calls.append)
        return self.store

    def pump(self, until: Callable[[], bool]) -> None:
        while self.calls:
            self.calls.pop(0)()
        assert until(), "the condition is false after all calls were made"


class LmdbPlace:
    """An LMDB store in a temporary directory."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="gateway-store-")
        self.path = Path(self._directory.name) / "0"
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.store: LmdbStore | None = None

    def open(self) -> LmdbStore:
        self.store = self._opened()
        return self.store

    def _opened(self) -> LmdbStore:
        return LmdbStore(self.path, call_in_kernel=self.calls.put, retry_interval_s=0.01)

    def pump(self, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not until():
            try:
                self.calls.get(timeout=max(0.0, deadline - time.monotonic()))()
            except Empty:
                raise TimeoutError("the store took too long") from None

    def crash(self) -> None:
        """Replace the store with a copy of its durable data, as after a crash."""
        assert self.store is not None
        after = self.path.with_name(str(int(self.path.name) + 1))
        after.mkdir()
        self.store.snapshot(after)
        self._drop()
        self.path = after

    def close(self) -> None:
        self._drop()
        self._directory.cleanup()

    def _drop(self) -> None:
        """Close the store, discard its pending reports, and remove its files."""
        if self.store is not None:
            self.store.close()
            self.store = None
        self.calls = SimpleQueue()
        if self.path.is_dir():
            shutil.rmtree(self.path)


class GroupedLmdbPlace(LmdbPlace):
    """The same with a store that is written in groups; a window ends with the next ``pump``."""

    def _opened(self) -> LmdbStore:
        return LmdbStore(
            self.path,
            call_in_kernel=self.calls.put,
            call_later=lambda delay_s, call: self.calls.put(call),
            retry_interval_s=0.01,
        )
