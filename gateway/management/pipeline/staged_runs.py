"""The runs of batches that stage rows: a later run of a batch replaces the earlier ones.

A job that is killed leaves the rows it has staged. The job that runs again stages the same batch under other names, so
a batch of 50 GB would need twice its size until the first rows expire. An attempt named ``BATCH.RUN.TASK`` belongs to
a run of a batch. Runs are compared as text; the greatest is the latest. The names are kept with the rows on disk, so a
restart of the broker finds the runs again.
"""

from typing import NamedTuple

from gateway.management.pipeline.staged_files import AttemptKey


class BatchName(NamedTuple):
    """A batch of a user in a virtual host that runs write."""

    vhost: str
    user: str
    batch: str


class StagedRun:
    """A run: its name, its attempts, and the time of its last part in milliseconds."""

    __slots__ = ("attempts", "name", "updated_at_ms")

    def __init__(self, name: str, updated_at_ms: int) -> None:
        self.name = name
        self.attempts: set[AttemptKey] = set()
        self.updated_at_ms = updated_at_ms


class StagedRuns:
    """The latest run of each batch with staged rows."""

    def __init__(self) -> None:
        self._run_by_batch: dict[BatchName, StagedRun] = {}

    def later(self, key: AttemptKey) -> str | None:
        """Return the name of the later run of the same batch that stages rows; ``None`` without one."""
        batch, name = _run_of(key)
        run = self._run_by_batch.get(batch)
        return run.name if run is not None and name < run.name else None

    def add(self, key: AttemptKey, now_ms: int) -> list[AttemptKey]:
        """Note that a part of an attempt is staged; return the attempts that are replaced: those of an earlier run.

        An attempt of an earlier run, which a start has found on disk after the later one, is returned itself.
        """
        batch, name = _run_of(key)
        if not name:
            return []
        run = self._run_by_batch.get(batch)
        replaced: list[AttemptKey] = []
        if run is None or run.name < name:
            replaced = [] if run is None else [*run.attempts]
            run = self._run_by_batch[batch] = StagedRun(name, now_ms)
        elif run.name > name:
            return [key]
        run.attempts.add(key)
        run.updated_at_ms = max(run.updated_at_ms, now_ms)
        return replaced

    def updated_at_ms(self, key: AttemptKey) -> int | None:
        """Return the time of the last part of an attempt's run; ``None`` without one."""
        run = self._run(key)
        return None if run is None else run.updated_at_ms

    def remove(self, key: AttemptKey) -> None:
        """Forget an attempt, and its run after the last one."""
        run = self._run(key)
        if run is not None:
            run.attempts.discard(key)
            if not run.attempts:
                del self._run_by_batch[_run_of(key)[0]]

    def _run(self, key: AttemptKey) -> StagedRun | None:
        """Return the run of an attempt, if it is the latest one of its batch."""
        batch, name = _run_of(key)
        run = self._run_by_batch.get(batch)
        return run if run is not None and run.name == name else None


def _run_of(key: AttemptKey) -> tuple[BatchName, str]:
    """Return the batch and the run of an attempt; the run is empty if its name has none."""
    match key.name.split("."):
        case [batch, run, task] if batch and run and task:
            return BatchName(key.vhost, key.user, batch), run
    return BatchName(key.vhost, key.user, ""), ""
