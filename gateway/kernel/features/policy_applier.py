"""The application of arguments and policies to the queues and exchanges of one virtual host."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gateway.kernel.archives.archive import EXCHANGE as ARCHIVE_OF_EXCHANGE
from gateway.kernel.features.table import features_for
from gateway.kernel.settings.policies import EXCHANGE, Policies, kind_of_queue

if TYPE_CHECKING:
    from gateway.kernel.features.context import FeatureContext
    from gateway.kernel.features.plugin_feature import QueueFeatureType
    from gateway.kernel.plugin_times import PartTimes
    from gateway.kernel.queueing.queue_like import QueueLike
    from gateway.kernel.routing.exchange import Exchange
    from gateway.kernel.settings.effective_settings import EffectiveSettings


class PolicyApplier:
    """Applies the ``policies`` of a virtual host.

    A new queue or exchange gets the current policies when it is declared. When a policy changes, existing ones are
    checked in slices; only those with other matching policies are updated, and they keep their messages and consumers.
    """

    def __init__(
        self,
        policies: Policies,
        context: "FeatureContext",
        queue_by_name: "Mapping[str, QueueLike]",
        exchange_by_name: "Mapping[str, Exchange]",
        forget_routes: Callable[[], None],
    ) -> None:
        self._policies = policies
        self._context = context
        self._queue_by_name = queue_by_name
        self._exchange_by_name = exchange_by_name
        self._forget_routes = forget_routes
        self._walked_version: int | None = None

    def release(self) -> None:
        """Release the virtual host, which was deleted with its queues."""
        self._context = replace(self._context, delete=lambda queue: None)

    def apply_to_queue(self, queue: "QueueLike") -> None:
        """Compute the settings of a queue and apply the features they require."""
        queue.settings = self._policies.settings(kind_of_queue(queue.arguments), queue.name, queue.arguments)
        self.reapply(queue)

    def reapply(self, queue: "QueueLike") -> None:
        """Apply the features that the current settings of a queue require."""
        queue.apply(features_for(queue, self._context))

    def apply_to_exchange(self, exchange: "Exchange") -> None:
        """Compute the settings of an exchange, and open its archive if they require one."""
        self._set_exchange(exchange, self._policies.settings(EXCHANGE, exchange.name, exchange.arguments))

    def _set_exchange(self, exchange: "Exchange", settings: "EffectiveSettings") -> None:
        exchange.settings = settings
        archives = self._context.archives
        if settings.enabled_by_policy("archive"):
            exchange.archive = archives.open(
                ARCHIVE_OF_EXCHANGE, exchange.name, settings.text_by_policy("archive-table")
            )
        else:
            self.stop_archiving(exchange)

    def stop_archiving(self, exchange: "Exchange") -> None:
        """Stop archiving the messages of an exchange."""
        if exchange.archive is not None:
            exchange.archive = None
            self._context.archives.retire(ARCHIVE_OF_EXCHANGE, exchange.name)

    def policies_restored(self) -> None:
        """Apply policies to the predeclared exchanges, which exist before the policies are recovered."""
        for exchange in self._exchange_by_name.values():
            self._reapply_to_exchange(exchange)
        self._forget_routes()

    @property
    def feature_times(self) -> "PartTimes":
        """The times of the calls of the features that plugins offer, by type."""
        return self._context.offered.times

    def use_features(self, types: "Sequence[QueueFeatureType]") -> None:
        """Replace the features that plugins offer; queues with their settings get the new objects, in slices."""
        offered = self._context.offered
        if tuple(types) == offered.types:
            return
        concerned = {name for feature_type in (*offered.types, *types) for name in feature_type.settings}
        offered.use(types)
        self._policies.use(offered.settings)
        self._context.clock.background.add(self._apply_to_queues_with(concerned))

    def _apply_to_queues_with(self, names: "Set[str]") -> Iterator[None]:
        """Compute the settings of the queues that have one of these, and apply their features."""
        for queue in list(self._queue_by_name.values()):
            if not queue.is_deleted and not names.isdisjoint(queue.settings):
                self._in_job(self.apply_to_queue, queue)
            yield

    def reapply_all(self) -> None:
        """Apply features to every queue again, after a change outside its settings."""
        self._context.clock.background.add(self._reapply_all())

    def _reapply_all(self) -> Iterator[None]:
        for queue in list(self._queue_by_name.values()):
            if not queue.is_deleted:
                self._in_job(self.reapply, queue)
            yield

    def policies_changed(self) -> None:
        """Check all queues and exchanges in slices; a change in between starts the check again."""
        if self._walked_version is None:
            self._context.clock.background.add(self._reapply_in_slices())

    def _reapply_in_slices(self) -> Iterator[None]:
        """Update queues and exchanges with other matching policies, one per step, until no policy changes."""
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
        """Update an exchange if other policies match it now; return whether they do."""
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
                    self._in_job(self.reapply, queue)
            yield

    def _in_job(self, update: "Callable[[QueueLike], None]", queue: "QueueLike") -> None:
        """Update a queue in a job, whose dead letters delay no confirm."""
        self._context.journal.delaying_no_confirm(partial(update, queue))
