"""A run of the store on a simulated disk, written as a plan: what happens in which order, without chance.

A plan is JSON: ``says`` is a sentence, and ``steps`` are lists, each with the name of a method of ``StoreRun`` and its
arguments. So a plan keeps its meaning when generators of runs change. What a loss of power takes is left to chance: a
plan is played with several seeds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import Put
from gateway.simulation.disk import ProcessKilled
from gateway.testing.store_session import entities_in, vhost_record
from gateway_lmdb import LmdbStore
from tests.simulation.disk.small_world import SmallWorld
from tests.storage.listeners import RecordingListener

PLANS: Final = Path(__file__).parent / "plans"

_COMMITS_S: Final = 0.5

#: With half of these or more, a loss of power takes what a plan is about.
_SEEDS: Final = 60


class StoreRun:
    """A store whose promises are checked. ``broken`` are the promises that it broke.

    What was reported durable, or was there at a start, is there at each later start.
    """

    def __init__(self, seed: int) -> None:
        self.broken: list[str] = []
        self._world = SmallWorld(seed)
        self._store: LmdbStore | None = None
        self._listener = RecordingListener()
        self._promised: set[str] = set()
        self._appended: list[tuple[int, set[str]]] = []

    def play(self, plan: dict[str, Any]) -> None:
        for name, *arguments in plan["steps"]:
            getattr(self, name)(*arguments)
        self._world.disk.kill()

    def start(self, killed_after: int | None = None) -> None:
        """Start the store; it may be killed after some operations."""
        try:
            self._store = self._world.open(retry_interval_s=0.02, killed_after=killed_after)
        except ProcessKilled:
            return
        self._listener, self._appended = RecordingListener(), []
        self._store.listen(self._listener)
        found = {entity.name for entity in entities_in(list(self._store.recover()))}  # type: ignore[attr-defined]
        if missing := self._promised - found:
            self.broken.append(f"what was durable is missing after a start: {sorted(missing)}")
        self._promised = found

    def append(self, *names: str) -> None:
        assert self._store is not None
        lsn = self._store.append([Put(vhost_record(name)) for name in names])
        self._appended.append((lsn, set(names)))

    def run(self, seconds: float = _COMMITS_S) -> None:
        """Let the threads of the store work, and note what is reported durable."""
        self._world.run_for(seconds)
        self._note()

    def until(self, operation: str) -> None:
        """Let them work until an operation of the disk, and note what is reported durable."""
        self._world.run_until(lambda: self._world.log[-1].startswith(operation))
        self._note()

    def compact(self) -> None:
        assert self._store is not None
        self._store.compact()

    def disturb(self, count: int) -> None:
        """Let the next syncs fail."""
        self._world.disk.disturb(count)

    def kill(self) -> None:
        self._world.disk.kill()

    def power_cut(self) -> None:
        self._world.disk.power_cut()

    def _note(self) -> None:
        for lsn, names in self._appended:
            if lsn <= self._listener.watermark:
                self._promised |= names


def plan_of(name: str) -> dict[str, Any]:
    plan: dict[str, Any] = json.loads((PLANS / f"{name}.json").read_text(encoding="utf-8"))
    return plan


def broken_promises(plan: dict[str, Any]) -> list[str]:
    """Play a plan with each seed, and return the promises that the store broke."""
    return [broken for seed in range(_SEEDS) for broken in _broken_with(plan, seed)]


def _broken_with(plan: dict[str, Any], seed: int) -> list[str]:
    run = StoreRun(seed)
    try:
        run.play(plan)
    except (AssertionError, StorageError) as error:
        run.broken.append(f"{type(error).__name__}: {error}")
    except Exception as error:  # a thread of the store ended with it
        run.broken.append(f"traceback: {type(error).__name__}: {error}")
    return run.broken
