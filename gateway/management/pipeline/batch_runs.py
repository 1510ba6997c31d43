"""The batches of all virtual hosts that are published in slices, from their commits or continued after a restart."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, TypeAlias

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from gateway.kernel.broker.broker import Broker
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.logs import StructuredLog
from gateway.management.http.errors import HttpError
from gateway.management.http.routes import Fields, Reply
from gateway.management.pipeline.awaiting import Steps
from gateway.management.pipeline.batch_run import BatchRun, RunState
from gateway.management.pipeline.batches import StagedBatch
from gateway.management.pipeline.published import DUPLICATE
from gateway.management.pipeline.refusals import not_found
from gateway.management.pipeline.row_checks import RowChecks
from gateway.management.pipeline.staged_files import AttemptKey
from gateway.management.pipeline.staging import Staging

_log: Final = StructuredLog("pipeline")

#: The time before a run that failed by an unexpected error goes on, in seconds.
_AFTER_ERROR_S: Final = 5.0

#: Runs steps in slices; the deferred is called back at their end.
RunSteps: TypeAlias = "Callable[[Steps[None]], Deferred[Any]]"


class BatchRuns:
    """The batches in progress, by virtual host and name. A query has one batch in progress at most.

    ``run`` runs the steps of a batch in slices. ``later`` returns a deferred that is called back after some seconds.
    ``producer_memory_ms`` is the time for which a producer's last batch is remembered.
    """

    def __init__(
        self,
        broker: Broker,
        staging: Staging,
        run: RunSteps,
        later: "Callable[[float], Deferred[None]]",
        producer_memory_ms: int,
    ) -> None:
        self._broker = broker
        self._staging = staging
        self._run = run
        self._later = later
        self._producer_memory_ms = producer_memory_ms
        self._run_by_key: dict[tuple[str, str], BatchRun] = {}
        self._waiting: dict[BatchRun, list[Deferred[None]]] = {}

    def __len__(self) -> int:
        return len(self._run_by_key)

    def resume(self, replaced: Iterable[AttemptKey]) -> None:
        """Continue the batches that a restart has interrupted; called once, after the recovery.

        Of the ``replaced`` attempts, which later runs of their batches write again, those that are not committed are
        discarded.
        """
        for vhost in self._broker.vhost_by_name.values():
            for batch in vhost.batches:
                staged = StagedBatch.of_record(batch.record)
                self._staging.keep(staged.keys)
                run = self._new_run(vhost, staged)
                self._start(run, run.publishing())
        self._staging.discard_all(replaced)

    def of(self, vhost: VirtualHost) -> Iterator[BatchRun]:
        """Yield the batches of a virtual host."""
        return (run for (name, _), run in self._run_by_key.items() if name == vhost.name)

    @property
    def rows_left(self) -> int:
        """The number of rows of committed batches that are not published yet."""
        return sum(run.rows_left for run in self._run_by_key.values())

    @property
    def held(self) -> int:
        """The number of batches that are held."""
        return sum(run.state is RunState.HELD for run in self._run_by_key.values())

    def find(self, vhost: VirtualHost, staged: StagedBatch) -> BatchRun | Fields | None:
        """Return the run of a batch, or the answer to one of an earlier number; ``None`` if none is in progress.

        :raises HttpError: if an earlier batch of the query is in progress.
        """
        run = self._run_by_key.get((vhost.name, staged.name))
        if run is None or run.staged.identity is None or staged.identity is None:
            return run
        number = run.staged.identity.batch
        if staged.identity.batch > number:
            raise HttpError(503, "batch_in_progress", f"batch {number} of this query is not published completely")
        return run if staged.identity.batch == number else DUPLICATE

    def commit(self, vhost: VirtualHost, staged: StagedBatch, checks: RowChecks) -> BatchRun:
        """Check, commit and publish a batch, of which no run is in progress."""
        run = self._new_run(vhost, staged)
        self._start(run, run.committing(checks))
        return run

    def waiting(self, run: BatchRun, wait_s: float | None) -> Steps[object]:
        """Return the steps that wait for a run, no longer than some seconds, and its answer.

        :raises HttpError: if nothing of the batch was published.
        """
        if run.outcome is None and wait_s != 0:
            ended: Deferred[None] = Deferred()
            self._waiting[run] = [*(each for each in self._waiting.get(run, ()) if not each.called), ended]
            if wait_s is not None:
                self._later(wait_s).addCallback(lambda _: None if ended.called else ended.callback(None))
            yield ended
        if isinstance(run.outcome, HttpError):
            raise run.outcome
        return Reply(202, run.view) if run.outcome is None else run.outcome

    def stop(self) -> None:
        """Stop all batches after their rows at hand: the broker stops."""
        for run in self._run_by_key.values():
            run.is_stopped = True

    def discard(self, vhost: VirtualHost, name: str) -> None:
        """End a committed batch: the rest of its rows is not published. :raises HttpError: if there is none."""
        run = self._run_by_key.get((vhost.name, name))
        if run is None or run.batch is None or vhost.batches.get(name) is not run.batch:
            raise not_found(f"no committed batch '{name}' in vhost '{vhost.name}'")
        run.abandon()

    def _new_run(self, vhost: VirtualHost, staged: StagedBatch) -> BatchRun:
        run = BatchRun(self._broker, vhost, staged, self._staging, self._later, self._producer_memory_ms)
        self._run_by_key[vhost.name, run.name] = run
        return run

    def _start(self, run: BatchRun, steps: Steps[None]) -> None:
        self._run(steps).addCallbacks(partial(self._ended, run), partial(self._failed, run))

    def _ended(self, run: BatchRun, _: object) -> None:
        del self._run_by_key[run.vhost_name, run.name]
        self._answer(run)

    def _failed(self, run: BatchRun, failure: Failure) -> None:
        """Continue a committed batch after an unexpected error; refuse one that is not committed."""
        _log.error("a batch was interrupted", vhost=run.vhost_name, batch=run.name, error=failure.getTraceback())
        if run.batch is None:
            run.outcome = HttpError(500, "internal_error", "internal error, see the log of the gateway")
            self._ended(run, None)
            return
        run.state, run.reason = RunState.HELD, f"internal error: {failure.getErrorMessage()}"
        self._later(_AFTER_ERROR_S).addCallback(lambda _: self._start(run, run.publishing()))

    def _answer(self, run: BatchRun) -> None:
        for waiting in self._waiting.pop(run, []):
            if not waiting.called:
                waiting.callback(None)
