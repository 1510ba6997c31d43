"""A virtual host: exchanges, queues, bindings and sessions, and the operations on them that all protocols share."""

from collections.abc import Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING

from gateway.kernel.archives.archives import Archives
from gateway.kernel.archives.message_observer import MessageObserver
from gateway.kernel.archives.message_traces import MessageTraces
from gateway.kernel.archives.trace_events import TraceEvents
from gateway.kernel.archives.trace_table import TraceTable
from gateway.kernel.errors import NotFound
from gateway.kernel.features.context import FeatureContext
from gateway.kernel.features.deduplication_caches import DeduplicationCaches
from gateway.kernel.features.keeping import Keeping
from gateway.kernel.features.offered_features import OfferedFeatures
from gateway.kernel.features.policy_applier import PolicyApplier
from gateway.kernel.interception.interception import Interception
from gateway.kernel.interception.publish_chain import InterceptionContext
from gateway.kernel.journal.batches import Batches
from gateway.kernel.journal.producers import Producers
from gateway.kernel.journal.records.topology import VhostRecord
from gateway.kernel.messages.bounds import require_arguments, require_binding_key
from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.names import printable, require_not_default
from gateway.kernel.queueing.consumer import ConsumedQueue
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.binding import Binding, Destination
from gateway.kernel.routing.bindings import Bindings
from gateway.kernel.routing.dead_letter_publisher import DeadLetters
from gateway.kernel.routing.default_exchange import default_exchange
from gateway.kernel.routing.exchange import MOST_QUEUES, Exchange, Route
from gateway.kernel.routing.exchange_identity import ExchangeIdentity
from gateway.kernel.routing.explaining_router import ExplainingRouter
from gateway.kernel.routing.router import Router, Walk
from gateway.kernel.sessions.retained import Retained
from gateway.kernel.sessions.sessions import Sessions
from gateway.kernel.sessions.will_publisher import WillPublisher
from gateway.kernel.sessions.wills import Wills
from gateway.kernel.settings.policies import Policies
from gateway.kernel.traffic import VhostTraffic
from gateway.kernel.vhosts.context import NodeContext, VhostContext
from gateway.kernel.vhosts.declarations import ExchangeDeclaration, QueueDeclaration
from gateway.kernel.vhosts.direct_reply_queues import DirectReplyQueues
from gateway.kernel.vhosts.exchanges import Exchanges
from gateway.kernel.vhosts.explanation import Explainer, Explanation
from gateway.kernel.vhosts.queues import Queues
from gateway.kernel.vhosts.routability import Routability
from gateway.kernel.vhosts.verdict import REFUSED, TAKEN, UNROUTED, Verdict
from gateway.kernel.vhosts.wide_publishing import WidePublishing

if TYPE_CHECKING:
    from gateway.kernel.plugin_times import CallTime
    from gateway.kernel.routing.exchange_type import ExchangeTypes


class VirtualHost:
    """One virtual host: the interface of the protocols to its ``exchanges``, ``queues`` and ``bindings``.

    ``version`` grows when an exchange or a permission changes, so that publishers look both up again. ``policies`` are
    changed through the broker; ``policy_applier`` applies them. ``tracing`` and ``archiving`` are ``None`` while not in
    use. Adapters pass messages to ``interception.publishing``, if there are interceptors, before ``publish``.
    """

    def __init__(self, record: VhostRecord, exchange_types: "ExchangeTypes", node: NodeContext) -> None:
        journal, events, faults = node.journal, node.events, node.faults
        self.name = record.name
        self._faults = faults
        self.version = 0
        self.tracing: MessageObserver | None = None
        self.archiving: Archives | None = None
        self.traffic = VhostTraffic()
        self._budget = journal.budget
        self.queue_by_name: dict[str, QueueLike] = {}
        replies: dict[str, QueueLike] = {}
        self.default_exchange = default_exchange(record.name, self.queue_by_name, replies)
        self.exchange_by_name: dict[str, Exchange] = {"": self.default_exchange}
        self._router = router = Router(self.exchange_by_name, journal, faults)
        self.bindings = Bindings(journal, events, router.forget, faults, node.users.bindings)
        self._build_records(node)
        self.dead_letters = DeadLetters(
            self.name, self.exchange_by_name, self.queue_by_name, router, journal, events, faults, self.traffic
        )
        self.dead_letters.trace_events = self.trace_events
        plugin_calls = InterceptionContext(self.name, journal.budget, faults, self.trace_events.refused)
        self._build_features(node, plugin_calls)
        has_exchange, queues = self.exchange_by_name.__contains__, (self.queue_by_name, replies)
        self.interception = Interception(plugin_calls, node.clock, has_exchange, queues, self.invalidate_caches)
        self.reply_queues = DirectReplyQueues(self.name, replies, journal, router, self.interception)
        self.wide_publishing = WidePublishing(self, journal, router, self.traffic, self._is_taken)
        self._context = self._shared_context(record, node)
        self.exchanges = Exchanges(self._context, self.exchange_by_name, exchange_types, self.invalidate_caches)
        self.queues = Queues(self._context, self.queue_by_name, self.traffic, node.queue_rules, node.reserve)
        self.bindings.require_room = self.queues.require_room_for_binding
        self._build_sessions(node)

    def _build_records(self, node: NodeContext) -> None:
        """Build what keeps records of messages: the archives, the trace table and the traces of messages."""
        journal, clock = node.journal, node.clock
        self.archives = Archives(self.name, journal, clock, node.events, node.next_queue_id, node.archive_context)
        self.archives.on_change = self._archives_changed
        self.trace_table = TraceTable(self.archives, journal, clock)
        self.message_traces = MessageTraces(journal, self.archives.trace_rules)
        self.trace_events = TraceEvents(self.trace_table, self.message_traces, journal, clock)

    def _build_features(self, node: NodeContext, plugin_calls: InterceptionContext) -> None:
        """Build the policies, and what the features of queues and exchanges share."""
        journal = node.journal
        self.deduplication_caches = DeduplicationCaches(self.name, journal)
        self.keeping = Keeping(self.name, journal, node.events, node.faults, self.publish)
        self.queue_features = OfferedFeatures(plugin_calls)
        context = FeatureContext(
            node.clock,
            journal,
            self.dead_letters,
            self.delete_queue,
            self.archives,
            self.trace_events,
            self.deduplication_caches,
            self.queue_features,
        )
        self.policies = Policies(node.compile_pattern)
        self.policy_applier = PolicyApplier(
            self.policies, context, self.queue_by_name, self.exchange_by_name, self._router.forget
        )

    def _shared_context(self, record: VhostRecord, node: NodeContext) -> VhostContext:
        return VhostContext(
            record,
            node.journal,
            node.events,
            self._router,
            self.bindings,
            self.policy_applier,
            node.next_queue_id,
            node.faults,
            self.deduplication_caches,
            self.keeping,
            self.trace_events,
            node.users,
            self.interception,
            self.queue_features,
        )

    def _build_sessions(self, node: NodeContext) -> None:
        """Build the sessions of MQTT with their wills, the retained messages, and the batches of the pipeline."""
        journal, events = node.journal, node.events
        self.producers = Producers(self.name, journal)
        self.batches = Batches(self.name, journal)
        self.retained = Retained(self.name, journal, events)
        wills = WillPublisher(self.name, self.exchange_by_name, self.interception, self.retained, events, self.publish)
        self.wills = Wills(self.name, journal, node.clock, wills.publish)
        self.sessions = Sessions(self, journal, node.clock, self.wills, events)

    @property
    def record(self) -> VhostRecord:
        """The virtual host's record."""
        return self._context.record

    @property
    def exchange_types(self) -> "ExchangeTypes":
        """The factories by exchange type, as the plugins supply them now."""
        return self.exchanges.types

    @property
    def time_by_exchange_type(self) -> "dict[str, CallTime]":
        """The times of routing that no cached route saved, by exchange type."""
        return self._router.time_by_type

    def update_record(self, record: VhostRecord) -> None:
        """Replace the virtual host's record."""
        self._context.record = record

    def _archives_changed(self) -> None:
        self.archiving = self.archives if len(self.archives) else None
        self._router.forget()

    def invalidate_caches(self) -> None:
        """Make publishers look up exchanges and permissions again."""
        self.version += 1

    # Messages

    def publish(self, exchange: Exchange, message: Message, origin: "Origin | None" = None) -> Verdict:
        """Offer a message to every queue it is routed to. Without an ``origin`` it is not passed to tracers.

        If these are very many, most offers are made in later turns. The verdict is then ``TAKEN``, and the turn's
        budget has the pending work of the ``origin``'s connection.
        """
        route = exchange.routes.get(message.routing_key)
        if route is None or message.header.sender_keys:
            found = self._router.find(exchange, message)
            if isinstance(found, Walk):
                return self.wide_publishing.publish(found, message, origin)
            route = found
        if len(route.queues) > MOST_QUEUES:
            return self.wide_publishing.publish(route, message, origin)
        return self.publish_to_route(route, message, origin)

    def find_route(self, exchange: Exchange, message: Message) -> Route | Walk:
        """Return the route of a message, or the walk to it if it leads to very many queues.

        A deduplicating exchange on the way then counts the message as seen.
        """
        return self._router.find(exchange, message)

    def walking(self, walk: Walk) -> Iterator[None]:
        """Return the steps that find the route of a message to very many queues."""
        return self._router.steps(walk)

    def publish_to_route(self, route: Route, message: Message, origin: "Origin | None" = None) -> Verdict:
        """Offer a message to every queue of a route in this turn, and count it; see ``publish``."""
        queues = route.queues
        if self.tracing is not None:
            message = self.tracing.published(message, queues, origin)
        route.count += 1
        traffic = self.traffic.published_by("" if origin is None else origin.protocol)
        traffic.count(len(message.body))
        verdict = TAKEN
        for queue in queues:
            try:
                if queue.offer(message) is not None:
                    verdict = REFUSED
                    self.deduplication_caches.refused(message)
            except Exception as error:
                self._contain_offer(error, queue, message)
                verdict = REFUSED
        if self.archiving is not None:
            self.archiving.published(route.archives, message, origin)
        if len(queues) != 1:
            traffic.further_routes += len(queues) - 1
            if not queues:
                traffic.unroutable += 1
                return UNROUTED
            self._budget.work += len(queues)
        return verdict

    def _is_taken(self, queue: QueueLike, message: Message) -> bool:
        """Offer a message to a queue; return whether it was taken."""
        try:
            if queue.offer(message) is None:
                return True
            self.deduplication_caches.refused(message)
        except Exception as error:
            self._contain_offer(error, queue, message)
        return False

    def _contain_offer(self, error: Exception, queue: QueueLike, message: Message) -> None:
        """Contain an exception of a queue: the other queues get the message; its publisher gets a nack."""
        self._faults.contain("offer", error, vhost=self.name, subject=queue.name)
        self.deduplication_caches.refused(message)

    def explaining(self, exchange: Exchange, message: Message) -> Generator[None, None, Explanation]:
        """Return the steps that explain where a message would go and why, without publishing it."""
        router = ExplainingRouter(self.exchange_by_name, self._context.journal, self._faults)
        return Explainer(router, self.bindings, self.exchange_types).steps(exchange, message)

    def routability(self) -> Routability:
        """Return what tells which messages of a batch are routable, without publishing them."""
        return Routability(partial(ExplainingRouter, self.exchange_by_name, self._context.journal, self._faults))

    # Exchanges

    def exchange(self, name: str) -> Exchange:
        """Return an exchange. :raises NotFound: when it does not exist."""
        exchange = self.exchange_by_name.get(name)
        if exchange is None:
            raise NotFound(f"no exchange '{name}' in vhost '{self.name}'")
        return exchange

    def declare_exchange(
        self,
        name: str,
        type: str,
        *,
        is_durable: bool = False,
        is_auto_delete: bool = False,
        is_internal: bool = False,
        arguments: Arguments | None = None,
    ) -> Exchange:
        """Return the exchange of this name; create it if it does not exist.

        :raises CommandInvalid: when no plugin of this virtual host supplies the type.
        :raises AccessRefused: when the name is empty or reserved.
        :raises PreconditionFailed: when it exists with other properties (R10), or the type refuses the arguments.
        """
        asked = dict(arguments or {})
        return self.exchanges.declare(
            ExchangeDeclaration(self.name, printable(name), type, is_durable, is_auto_delete, is_internal, asked)
        )

    def delete_exchange(self, name: str, *, if_unused: bool = False) -> bool:
        """Delete an exchange with its bindings; return whether it existed. Raises as ``Exchanges.delete`` does."""
        return self.exchanges.delete(name, if_unused=if_unused)

    # Queues

    def queue(self, name: str) -> QueueLike:
        """Return a queue. :raises NotFound: when it does not exist."""
        queue = self.queue_by_name.get(name)
        if queue is None or self.queues.is_being_deleted(name):
            raise NotFound(f"no queue '{name}' in vhost '{self.name}'")
        return queue

    def declare_queue(
        self,
        name: str,
        *,
        is_durable: bool = False,
        owner: object | None = None,
        is_auto_delete: bool = False,
        arguments: Arguments | None = None,
        is_server_named: bool = False,
        claimant: object | None = None,
        user: str = "",
    ) -> QueueLike:
        """Return the queue of this name; create it if it does not exist, of the default type if none is named.

        ``owner`` makes it exclusive; ``claimant`` is the connection that declares it. A new queue counts for ``user``.

        :raises AccessRefused: when the name is reserved and ``is_server_named`` does not allow it.
        :raises ResourceLocked: when it has another owner, or only one of both is exclusive (R31).
        :raises PreconditionFailed: when it exists with other properties or arguments (R10), or is not permitted.
        """
        asked = dict(arguments or {})
        return self.queues.declare(
            QueueDeclaration(
                self.name, printable(name), is_durable, owner, is_auto_delete, asked, is_server_named, claimant, user
            )
        )

    def delete_queue(self, queue: QueueLike, *, if_unused: bool = False, if_empty: bool = False) -> int:
        """Delete a queue; return the number of ready messages. Raises as ``Queues.delete`` does."""
        count = self.queues.delete(queue, if_unused=if_unused, if_empty=if_empty)
        self.sessions.groups.deleted(queue)
        return count

    def delete_queue_if_done(self, queue: ConsumedQueue) -> None:
        """Delete an auto-delete queue after its last consumer (R32), or the queue of a group after its last member."""
        is_done = (queue.is_auto_delete and queue.is_unused) or self.sessions.groups.is_abandoned(queue)
        if is_done and not queue.is_deleted:
            with self._context.acting.being(None):
                self.delete_queue(self.queue_by_name[queue.name])

    def release(self, owner: object) -> None:
        """Delete the exclusive queues of a closed connection."""
        self.queues.release(owner)

    def publish_trace(self, exchange: str, message: Message) -> None:
        """Publish a message of a tracer, without tracing it; drop it if the exchange does not exist."""
        target = self.exchange_by_name.get(exchange)
        if target is not None:
            self.publish(target, message)

    def publish_to_queue(self, queue: str, message: Message) -> bool:
        """Publish a message of a plugin to one queue; return whether the queue exists and took it."""
        found = self.queue_by_name.get(queue)
        return found is not None and self.publish_to_route(Route((found,)), message) is TAKEN

    # Bindings

    def is_bound(self, exchange: str) -> bool:
        """Return whether anything is bound to an exchange; not if it does not exist."""
        found = self.exchange_by_name.get(exchange)
        return found is not None and bool(self.bindings.of(found))

    def bind(
        self,
        source: Exchange,
        destination: Destination,
        routing_key: str,
        arguments: Arguments | None = None,
        user: str = "",
    ) -> Binding:
        """Return the binding with these parameters; create it if it does not exist (R7). A new one counts for ``user``.

        :raises AccessRefused: when the source is the default exchange (R18).
        :raises PreconditionFailed: when the exchange type refuses the arguments, or key or arguments are too large.
        """
        require_not_default(source.name)
        require_binding_key(routing_key)
        if arguments:
            require_arguments(f"binding from exchange '{source.name}' in vhost '{self.name}'", arguments)
        return self.bindings.declare(source, destination, routing_key, dict(arguments or {}), user)

    def unbind(
        self, source: ExchangeIdentity, destination: Destination, routing_key: str, arguments: Arguments | None = None
    ) -> bool:
        """Remove a binding; return whether it existed."""
        binding = self.bindings.find(source, destination, routing_key, arguments or {})
        if binding is None:
            return False
        self.bindings.remove(binding)
        return True
