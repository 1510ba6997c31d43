"""The link of a federated queue to one upstream: messages come while consumers here wait for them."""

from collections.abc import Callable
from typing import Any, Final

from pika.exceptions import ConsumerCancelled
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from gateway.bridges.amqp_connection import AmqpDialer
from gateway.bridges.amqp_ends import AmqpSource, ensure_queue
from gateway.bridges.federated_destination import local_destination
from gateway.bridges.link import Lost
from gateway.bridges.parcel import Parcel
from gateway.bridges.received_from import queue_headers
from gateway.bridges.transfer import ShovelAckMode, Transfer
from gateway.bridges.upstreams import Upstream
from gateway.kernel.clock import Clock
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.vhosts.virtual_host import VirtualHost

#: The priority of a link at the upstream's queue: consumers there have precedence, and it is no reason to federate on.
_PRIORITY: Final = -1


class GatedSource(AmqpSource):
    """A source that consumes only while ``is_open``."""

    is_open = False
    _is_started = False
    _is_consuming = False
    _is_cancelling = False

    def start(self, receive: Callable[[Parcel], None]) -> None:
        """Call ``receive`` with each message from now on, while the source is open."""
        self._receive = receive
        self._is_started = True
        self.set_open(self.is_open)

    def set_open(self, is_open: bool) -> None:
        """Consume, or cancel the consumer; messages that are on their way still arrive."""
        self.is_open = is_open
        if not self._is_started or self._is_cancelling or is_open == self._is_consuming:
            return
        self._is_consuming = is_open
        if is_open:
            super().start(self._receive)
            return
        self._is_cancelling = True
        cancelling: Deferred[Any] = self.channel.basic_cancel(self.consumer_tag)
        cancelling.addCallbacks(self._cancelled, lambda failure: None)  # it fails when the channel ends

    def _cancelled(self, result: object) -> None:
        self._is_cancelling = False
        self.set_open(self.is_open)

    def consuming_failed(self, failure: Failure) -> None:
        """End the link, unless the consumer was cancelled by ``set_open``."""
        if not (self._is_cancelling and isinstance(failure.value, ConsumerCancelled)):
            super().consuming_failed(failure)


class QueueLink:
    """One queue and one upstream."""

    kind: Final = "queue"

    def __init__(
        self, vhost: VirtualHost, queue: QueueLike, upstream: Upstream, dialer: AmqpDialer, clock: Clock
    ) -> None:
        self.upstream = upstream
        self.uri = upstream.uris[0]
        self.remote_name = upstream.queue or queue.name
        self._vhost = vhost
        self._queue = queue
        self._dialer = dialer
        self._clock = clock
        self._remote_vhost = ""
        self._source: GatedSource | None = None

    @property
    def _name(self) -> str:
        return f"Federation link (upstream: {self.upstream.name}, policy: {self._queue.name})"

    async def open(self, lost: Lost) -> Transfer:
        """Open both ends. Raises the errors of the connections; then no end is left open."""
        upstream, queue = self.upstream, self._queue
        self._source = None
        connection, self.uri = await self._dialer.connect_first(upstream.uris, self._name, self._vhost.name)
        self._remote_vhost = self._vhost.name if self.uri.vhost is None else self.uri.vhost
        try:
            await ensure_queue(connection, self.remote_name, queue.arguments, False, is_durable=queue.is_durable)
            channel = await connection.open_channel()
            await channel.basic_qos(prefetch_count=upstream.prefetch)
            no_ack = upstream.ack_mode is ShovelAckMode.NO_ACK
            source = GatedSource(connection, channel, lost, self.remote_name, no_ack)
            source.consumer_tag = upstream.consumer_tag
            source.consumer_arguments = {"x-priority": _PRIORITY}
            destination = await local_destination(self._dialer, self._name, self._vhost.name, upstream.ack_mode, lost)
        except BaseException:
            connection.leave()
            raise
        self._source = source
        self.follow_consumers()
        return Transfer(source, destination, upstream.ack_mode, self._addressed, self._clock.call_later)

    def follow_consumers(self) -> None:
        """Consume at the upstream while the queue here is empty and has consumers, which are no links."""
        source, queue = self._source, self._queue
        if source is None:
            return
        has_consumers = any(consumer.priority >= 0 for consumer in queue.consumers)
        if not source.is_open:
            source.set_open(has_consumers and not len(queue))
        elif not has_consumers or len(queue) >= max(1, self.upstream.prefetch):
            source.set_open(False)

    async def clean_up(self) -> None:
        """Leave the upstream as it is: its queue may have messages."""

    def _addressed(self, parcel: Parcel) -> bool:
        """Address a message to the queue here."""
        properties = parcel.properties
        entry = {
            "uri": self.uri.shown,
            "virtual_host": self._remote_vhost,
            "queue": self.remote_name,
            "redelivered": parcel.is_redelivered,
        }
        properties.headers = queue_headers(properties.headers, parcel.exchange, parcel.routing_key, entry)
        if not self.upstream.trusts_user_id:
            properties.user_id = None
        parcel.exchange, parcel.routing_key = "", self._queue.name
        return True
