"""How queues and exchanges of one virtual host get what their arguments and the policies ask for, and get it anew."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from gateway.kernel.archive import EXCHANGE as ARCHIVE_OF_EXCHANGE
from gateway.kernel.features.fitting import features_for
from gateway.kernel.policies import EXCHANGE, Policies, kind_of_queue
from gateway.kernel.slices import in_slices

if TYPE_CHECKING:
    from gateway.kernel.exchange import Exchange
    from gateway.kernel.features.surroundings import Surroundings
    from gateway.kernel.queue import Queue


class Equipment:
    """Applies the ``policies`` of a virtual host.

    What is declared sees the newest policies at once. What is there already is gone through when a policy changes, in
    slices if it is much; only what other policies hold for now is touched, and keeps its messages and consumers.
    """

    def __init__(
        self,
        policies: Policies,
        surroundings: "Surroundings",
        queue_by_name: "Mapping[str, Queue]",
        exchange_by_name: "Mapping[str, Exchange]",
        forget_routes: Callable[[], None],
    ) -> None:
        self._policies = policies
        self._surroundings = surroundings
        self._queue_by_name = queue_by_name
        self._exchange_by_name = exchange_by_name
        self._forget_routes = forget_routes

    def fit(self, queue: "Queue") -> None:
        """Compute the settings of a queue and give it the features they call for."""
        queue.settings = self._policies.settings(kind_of_queue(queue.arguments), queue.name, queue.arguments)
        self.refit(queue)

    def refit(self, queue: "Queue") -> None:
        """Give a queue the features its settings call for, by what is known of it now."""
        queue.equip(features_for(queue, self._surroundings))

    def fit_exchange(self, exchange: "Exchange") -> None:
        """Compute the settings of an exchange, and keep what comes by if they say so."""
        exchange.settings = self._policies.settings(EXCHANGE, exchange.name, exchange.arguments)
        archives = self._surroundings.archives
        if exchange.settings.orders("archive"):
            exchange.archive = archives.open(ARCHIVE_OF_EXCHANGE, exchange.name)
        else:
            self.unfit_exchange(exchange)

    def unfit_exchange(self, exchange: "Exchange") -> None:
        """Keep nothing more of what comes by an exchange."""
        if exchange.archive is not None:
            exchange.archive = None
            self._surroundings.archives.retire(ARCHIVE_OF_EXCHANGE, exchange.name)

    def policies_restored(self) -> None:
        """Fit the exchanges that a virtual host is born with: they were there before its policies came back."""
        self._reapply_to_exchanges()

    def refit_queues(self) -> None:
        """Give every queue the features it needs now that something other than its settings changed."""
        in_slices(self._surroundings.clock, self._refit_queues())

    def _refit_queues(self) -> Iterator[None]:
        for queue in list(self._queue_by_name.values()):
            if not queue.is_deleted:
                self.refit(queue)
            yield

    def policies_changed(self) -> None:
        """Go through everything that is there."""
        in_slices(self._surroundings.clock, self._reapply(self._policies.version))

    def _reapply(self, version: int) -> Iterator[None]:
        """Fit what other policies hold for now, a step each; stop when yet another change begins anew."""
        self._reapply_to_exchanges()
        yield
        for queue in list(self._queue_by_name.values()):
            if self._policies.version != version:
                return
            kind = kind_of_queue(queue.arguments)
            if not queue.is_deleted and self._policies.changes(queue.settings, kind, queue.name):
                self.fit(queue)
            yield

    def _reapply_to_exchanges(self) -> None:
        for exchange in self._exchange_by_name.values():
            if exchange.name and self._policies.changes(exchange.settings, EXCHANGE, exchange.name):
                self.fit_exchange(exchange)
        self._forget_routes()
