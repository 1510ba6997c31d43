"""How queues and exchanges of one virtual host get what their arguments and the policies ask for, and get it anew."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from gateway.kernel.archives.archive import EXCHANGE as ARCHIVE_OF_EXCHANGE
from gateway.kernel.features.fitting import features_for
from gateway.kernel.settings.policies import EXCHANGE, Policies, kind_of_queue

if TYPE_CHECKING:
    from gateway.kernel.features.context import FeatureContext
    from gateway.kernel.queueing.queue import Queue
    from gateway.kernel.routing.exchange import Exchange
    from gateway.kernel.settings.effective_settings import EffectiveSettings


class PolicyApplier:
    """Applies the ``policies`` of a virtual host.

    What is declared sees the newest policies at once. What is there already is gone through when a policy changes, in
    slices if it is much; only what other policies hold for now is touched, and keeps its messages and consumers.
    """

    def __init__(
        self,
        policies: Policies,
        context: "FeatureContext",
        queue_by_name: "Mapping[str, Queue]",
        exchange_by_name: "Mapping[str, Exchange]",
        forget_routes: Callable[[], None],
    ) -> None:
        self._policies = policies
        self._context = context
        self._queue_by_name = queue_by_name
        self._exchange_by_name = exchange_by_name
        self._forget_routes = forget_routes
        self._walked_version: int | None = None

    def adopt(self, queue: "Queue") -> None:
        """Compute the settings of a queue and give it the features they call for."""
        queue.settings = self._policies.settings(kind_of_queue(queue.arguments), queue.name, queue.arguments)
        self.reapply(queue)

    def reapply(self, queue: "Queue") -> None:
        """Give a queue the features its settings call for, by what is known of it now."""
        queue.apply(features_for(queue, self._context))

    def fit_exchange(self, exchange: "Exchange") -> None:
        """Compute the settings of an exchange, and keep what comes by if they say so."""
        self._set_exchange(exchange, self._policies.settings(EXCHANGE, exchange.name, exchange.arguments))

    def _set_exchange(self, exchange: "Exchange", settings: "EffectiveSettings") -> None:
        exchange.settings = settings
        archives = self._context.archives
        if settings.orders("archive"):
            exchange.archive = archives.open(ARCHIVE_OF_EXCHANGE, exchange.name)
        else:
            self.unfit_exchange(exchange)

    def unfit_exchange(self, exchange: "Exchange") -> None:
        """Keep nothing more of what comes by an exchange."""
        if exchange.archive is not None:
            exchange.archive = None
            self._context.archives.retire(ARCHIVE_OF_EXCHANGE, exchange.name)

    def policies_restored(self) -> None:
        """Fit the exchanges that a virtual host is born with: they were there before its policies came back."""
        for exchange in self._exchange_by_name.values():
            self._reapply_to_exchange(exchange)
        self._forget_routes()

    def reapply_all(self) -> None:
        """Give every queue the features it needs now that something other than its settings changed."""
        self._context.clock.background.add(self._reapply_all())

    def _reapply_all(self) -> Iterator[None]:
        for queue in list(self._queue_by_name.values()):
            if not queue.is_deleted:
                self.reapply(queue)
            yield

    def policies_changed(self) -> None:
        """Go through everything that is there, in slices; a change on the way begins anew when the slice ends."""
        if self._walked_version is None:
            self._context.clock.background.add(self._reapply_in_slices())

    def _reapply_in_slices(self) -> Iterator[None]:
        """Fit what other policies hold for now, an object a step, until no policy has changed on the way."""
        try:
            while self._walked_version != self._policies.version:
                self._walked_version = self._policies.version
                yield from self._reapply_to_queues(self._walked_version)
                yield from self._reapply_to_exchanges(self._walked_version)
        finally:
            self._walked_version = None

    def _reapply_to_exchanges(self, version: int) -> Iterator[None]:
        is_changed = False
        for exchange in list(self._exchange_by_name.values()):
            if self._policies.version != version:
                break
            is_changed |= self._reapply_to_exchange(exchange)
            yield
        if is_changed:
            self._forget_routes()

    def _reapply_to_exchange(self, exchange: "Exchange") -> bool:
        """Fit an exchange if other policies hold for it now; return whether they do."""
        if not exchange.name or self._exchange_by_name.get(exchange.name) is not exchange:
            return False
        settings = self._policies.changed(exchange.settings, EXCHANGE, exchange.name, exchange.arguments)
        if settings is None:
            return False
        self._set_exchange(exchange, settings)
        return True

    def _reapply_to_queues(self, version: int) -> Iterator[None]:
        for queue in list(self._queue_by_name.values()):
            if self._policies.version != version:
                return
            if not queue.is_deleted:
                kind = kind_of_queue(queue.arguments)
                settings = self._policies.changed(queue.settings, kind, queue.name, queue.arguments)
                if settings is not None:
                    queue.settings = settings
                    self.reapply(queue)
            yield
