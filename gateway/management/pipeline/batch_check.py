"""The check of a large batch before it is committed: all rows are read, and none is published."""

from collections.abc import Callable
from typing import Final

from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.errors import HttpError
from gateway.management.pipeline.awaiting import Steps
from gateway.management.pipeline.batches import PartPlace, StagedBatch, with_following
from gateway.management.pipeline.published import require_count
from gateway.management.pipeline.refusals import unroutable
from gateway.management.pipeline.row_checks import RowChecks
from gateway.management.pipeline.rows import RowHead, RowReader, RowRun

#: Work of one step, about a millisecond: a row is 1, one with another head than the row before has more.
_STEP: Final = 2048
_OTHER_HEAD: Final = 32


class BatchCheck:
    """Checks that each row of a batch can be published.

    ``read`` returns the steps that read a part, and begin to read the one after it.
    """

    def __init__(
        self,
        vhost: VirtualHost,
        batch: StagedBatch,
        checks: RowChecks,
        read: "Callable[[PartPlace, PartPlace | None], Steps[bytes]]",
    ) -> None:
        self._batch = batch
        self._checks = checks
        self._read = read
        self._routability = vhost.routability()
        self.checked = 0

    def steps(self) -> Steps[None]:
        """Return the steps of the check. :raises HttpError: for the first row that cannot be published."""
        name = self._batch.dead_letter_exchange
        dead_letters = None if name is None else self._checks.writable_exchange(name)
        reader = RowReader(self._batch.defaults)
        last: RowHead | None = None
        work = 0
        for place, following in with_following(self._batch.places()):
            content = yield from self._read(place, following)
            for run in reader.runs(content):
                if run.head is last:
                    self._checks.require_sizes(run)
                else:
                    work += _OTHER_HEAD
                    exchange = self._checks.exchange(run)
                    if not self._batch.may_drop:
                        yield from self._require_routable(exchange, run, dead_letters)
                last = run.head
                self.checked += len(run)
                work += len(run)
                if work >= _STEP:
                    yield None
                    work = 0
        require_count(self._batch, self.checked)

    def _require_routable(self, exchange: Exchange, run: RowRun, dead_letters: Exchange | None) -> Steps[None]:
        message = run.first_message()
        for target in (exchange, dead_letters):
            if target is not None and (yield from self._routability.steps(target, message)):
                return
        raise HttpError(409, "unroutable", unroutable(message.exchange, message.routing_key))
