"""The exchange and queue methods of AMQP 0-9-1 on one channel: declare, delete, bind, unbind, purge."""

from typing import Final

from pamqp import commands
from pamqp.base import Frame

from gateway.access import Operation
from gateway.access.indirect_publishing import require_alternate, require_dead_letters, require_unrestricted_topics
from gateway.kernel.errors import NotFound
from gateway.kernel.messages.message import Arguments
from gateway.kernel.names import REPLY_TO, printable, require_free, require_not_default
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.queueing.queue_operations import require_queue
from gateway.kernel.routing.binding import Destination
from gateway.kernel.routing.exchange import Exchange
from gateway_amqp.methods import table_of
from gateway_amqp.scope import Scope

#: The beginning of the names that the broker chooses for queues.
_GENERATED: Final = "amq.gen-"


class Topology:
    """Translates declarations to calls of the virtual host. Remembers the last declared queue (R19).

    ``_generated`` is the name of the server-named queue whose declaration waits for a permission, otherwise empty.
    """

    __slots__ = ("_generated", "_scope", "last_queue_name")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.last_queue_name = ""
        self._generated = ""

    # Exchanges

    def declare_exchange(self, method: commands.Exchange.Declare) -> None:
        """Declare an exchange, or check that it exists (40, 10)."""
        vhost = self._scope.vhost
        name = printable(method.exchange)
        if method.passive:
            require_not_default(name)
            vhost.exchange(name)
        else:
            vhost.exchanges.factory(method.exchange_type, table_of(method.arguments))
            require_not_default(name)
            self._require(Operation.CONFIGURE, "exchange", name)
            self._require_alternate(name, table_of(method.arguments))
            vhost.declare_exchange(
                name,
                method.exchange_type,
                is_durable=method.durable,
                is_auto_delete=method.auto_delete,
                is_internal=method.internal,
                arguments=table_of(method.arguments),
            )
        if not method.nowait:
            self._answer(commands.Exchange.DeclareOk(), method.durable and not method.passive)

    def delete_exchange(self, method: commands.Exchange.Delete) -> None:
        """Delete an exchange; a missing one is not an error (40, 20)."""
        name = printable(method.exchange)
        require_not_default(name)
        self._require(Operation.CONFIGURE, "exchange", name)
        steps = self._scope.vhost.exchanges.deleting(name, if_unused=method.if_unused)

        def answer() -> None:
            if not method.nowait:
                self._answer(commands.Exchange.DeleteOk(), is_durable=True)

        self._scope.host.work_through(steps, answer)

    def bind_exchange(self, method: commands.Exchange.Bind) -> None:
        """Bind an exchange to another (40, 30)."""
        vhost = self._scope.vhost
        self._require_bindable("exchange", method.destination, method.source, method.routing_key)
        require_not_default(method.destination)
        require_not_default(method.source)
        source, destination = vhost.exchange(method.source), vhost.exchange(method.destination)
        require_unrestricted_topics(self._scope.host.identity.permissions, destination.name, destination)
        vhost.bind(source, destination, method.routing_key, table_of(method.arguments), self._scope.origin.user)
        if not method.nowait:
            self._answer(commands.Exchange.BindOk(), source.is_durable and destination.is_durable)

    def unbind_exchange(self, method: commands.Exchange.Unbind) -> None:
        """Remove a binding between exchanges; a missing one is not an error (40, 40)."""
        vhost = self._scope.vhost
        self._require_bindable("exchange", method.destination, method.source, method.routing_key)
        require_not_default(method.destination)
        require_not_default(method.source)
        destination = vhost.exchange_by_name.get(method.destination)
        self._unbind(method.source, destination, method.routing_key, table_of(method.arguments))
        if not method.nowait:
            self._answer(commands.Exchange.UnbindOk(), is_durable=True)

    # Queues

    def declare_queue(self, method: commands.Queue.Declare) -> None:
        """Declare a queue, or check that it exists; answer with its numbers of messages and consumers (50, 10, R36)."""
        name = printable(method.queue)
        vhost = self._scope.vhost
        if not method.passive and vhost.queues.is_being_deleted(name):
            self._scope.host.work_through(vhost.queues.deletion_of(name), lambda: self._declare_now(name, method))
        else:
            self._declare_now(name, method)

    def _declare_now(self, name: str, method: commands.Queue.Declare) -> None:
        if name == REPLY_TO or name in self._scope.vhost.reply_queues.by_name:
            queue_name, messages, consumers = name, 0, 1
        else:
            queue = self._passive(name) if method.passive else self._declare(name, method)
            queue_name, messages, consumers = queue.name, len(queue), len(queue.consumers)
            self.last_queue_name = queue_name
        if not method.nowait:
            ok = commands.Queue.DeclareOk(None, messages, consumers)
            ok.queue = queue_name  # set afterwards: pamqp's constructor refuses names that RabbitMQ accepts
            self._answer(ok, method.durable and not method.passive)

    def delete_queue(self, method: commands.Queue.Delete) -> None:
        """Delete a queue and answer with its number of messages; a missing one is not an error (50, 40)."""
        name = self._queue_name(method.queue)
        self._require(Operation.CONFIGURE, "queue", name)
        queue = self._scope.vhost.queue_by_name.get(name)
        count = 0
        if queue is not None:
            queue.require_owner(self._scope.host)
            count = self._scope.vhost.delete_queue(queue, if_unused=method.if_unused, if_empty=method.if_empty)

        def answer() -> None:
            if not method.nowait:
                self._answer(commands.Queue.DeleteOk(count), is_durable=True)

        queues = self._scope.vhost.queues
        if queues.is_being_deleted(name):
            self._scope.host.work_through(queues.deletion_of(name), answer)
        else:
            answer()

    def purge_queue(self, method: commands.Queue.Purge) -> None:
        """Remove the ready messages of a queue; answer with their number (50, 30)."""
        queue = require_queue(self.used_queue(method.queue, Operation.READ), "queue.purge")
        count = len(queue)

        def answer() -> None:
            if not method.nowait:
                self._answer(commands.Queue.PurgeOk(count), queue.is_durable)

        self._scope.host.work_through(self._scope.vhost.queues.purging(queue), answer)

    def bind_queue(self, method: commands.Queue.Bind) -> None:
        """Bind a queue to an exchange (50, 20)."""
        vhost = self._scope.vhost
        name = self._queue_name(method.queue)
        routing_key = method.routing_key
        if not method.queue and not routing_key:
            routing_key = name  # R19: an empty name means the last declared queue
        self._require_bindable("queue", name, method.exchange, routing_key)
        require_not_default(method.exchange)
        source, queue = vhost.exchange(method.exchange), vhost.queue(name)
        queue.require_owner(self._scope.host)
        vhost.bind(source, queue, routing_key, table_of(method.arguments), self._scope.origin.user)
        if not method.nowait:
            self._answer(commands.Queue.BindOk(), source.is_durable and queue.is_durable)

    def unbind_queue(self, method: commands.Queue.Unbind) -> None:
        """Remove a binding of a queue; a missing one is not an error (50, 50)."""
        name = self._queue_name(method.queue)
        routing_key = method.routing_key
        if not method.queue and not routing_key:
            routing_key = name
        self._require_bindable("queue", name, method.exchange, routing_key)
        require_not_default(method.exchange)
        queue = self._scope.vhost.queue_by_name.get(name)
        if queue is not None:
            queue.require_owner(self._scope.host)
        self._unbind(method.exchange, queue, routing_key, table_of(method.arguments))
        self._answer(commands.Queue.UnbindOk(), is_durable=True)

    def used_queue(self, name: str, operation: Operation) -> QueueLike:
        """Return a queue after a permission check. An empty name is the last declared queue.

        :raises NotFound: :raises AccessRefused: :raises ResourceLocked: when it does not exist, or not for this user.
        """
        name = self._queue_name(name)
        self._require(operation, "queue", name)
        queue = self._scope.vhost.queue(name)
        queue.require_owner(self._scope.host)
        return queue

    def _passive(self, name: str) -> QueueLike:
        queue = self._scope.vhost.queue(name)
        queue.require_owner(self._scope.host)
        queue.redeclared()
        return queue

    def _declare(self, name: str, method: commands.Queue.Declare) -> QueueLike:
        is_server_named = not name
        if is_server_named:
            name = self._generated = self._generated or _GENERATED + self._scope.token()
        if not (is_server_named or self._may_restore(name)) and name not in self._scope.vhost.queue_by_name:
            require_free("queue", name)
        self._require(Operation.CONFIGURE, "queue", name)
        self._require_dead_letters(name, table_of(method.arguments))
        self._generated = ""
        return self._scope.vhost.declare_queue(
            name,
            is_durable=method.durable,
            owner=self._scope.host if method.exclusive else None,
            is_auto_delete=method.auto_delete,
            arguments=table_of(method.arguments),
            is_server_named=is_server_named or self._may_restore(name),
            claimant=self._scope.host,
            user=self._scope.origin.user,
        )

    def _may_restore(self, name: str) -> bool:
        """Whether a node of the cluster declares again a queue whose name a former leader chose."""
        return self._scope.host.is_resumed and name.startswith(_GENERATED)

    def _queue_name(self, name: str) -> str:
        if name:
            return printable(name)
        if not self.last_queue_name:
            raise NotFound("no previously declared queue")
        return self.last_queue_name

    def _unbind(
        self, source_name: str, destination: Destination | None, routing_key: str, arguments: Arguments
    ) -> None:
        source: Exchange | None = self._scope.vhost.exchange_by_name.get(source_name)
        if source is not None and destination is not None:
            self._scope.vhost.unbind(source, destination, routing_key, arguments)

    def _require(self, operation: Operation, kind: str, name: str) -> None:
        self._scope.host.identity.permissions.require(operation, kind, name)

    def _require_alternate(self, name: str, arguments: Arguments) -> None:
        require_alternate(
            self._scope.host.identity.permissions, name, arguments, self._named_in(arguments, "alternate-exchange")
        )

    def _require_dead_letters(self, name: str, arguments: Arguments) -> None:
        exchange = self._named_in(arguments, "x-dead-letter-exchange")
        require_dead_letters(self._scope.host.identity.permissions, name, arguments, exchange)

    def _named_in(self, arguments: Arguments, argument: str) -> Exchange | None:
        """Return the exchange that an argument names, ``None`` if it does not exist."""
        name = arguments.get(argument)
        return self._scope.vhost.exchange_by_name.get(name) if isinstance(name, str) else None

    def _require_bindable(self, kind: str, destination: str, source: str, routing_key: str) -> None:
        """Require write on the destination and read on the source of a binding, and the topic permission if topics are
        restricted.
        """
        self._require(Operation.WRITE, kind, destination)
        self._require(Operation.READ, "exchange", source)
        exchange = self._scope.vhost.exchange_by_name.get(source)
        if exchange is not None and exchange.type_name == "topic":
            self._scope.host.identity.permissions.require_topic(Operation.READ, source, routing_key)

    def _answer(self, method: Frame, is_durable: bool) -> None:
        if is_durable:
            self._scope.reply_durably(method)
        else:
            self._scope.reply(method)
