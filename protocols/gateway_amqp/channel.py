"""One AMQP channel: dispatches each method to the part of the channel that handles it."""

from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct
from typing import Any, Final, TypeAlias

from pamqp import commands
from pamqp.base import Frame

from gateway.access import PermissionUnknown
from gateway.kernel.broker.connections import ChannelInfo
from gateway.kernel.budget import WORK_PER_CLOCK_READING
from gateway.kernel.errors import CommandInvalid, NotImplementedHere, PreconditionFailed
from gateway.kernel.journal.confirms import Confirms
from gateway.kernel.messages.bounds import require_sender_keys
from gateway.kernel.messages.message import Header, Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway_amqp.consuming import Consuming
from gateway_amqp.content import FRAME_END, Assembly
from gateway_amqp.deliveries import DeliveryWriter
from gateway_amqp.errors import FrameError, channel_error
from gateway_amqp.header import AMQP
from gateway_amqp.intercepted import Intercepted
from gateway_amqp.methods import AccessRequest, AccessRequestOk, decode_method
from gateway_amqp.publishing import Confirming, Plain, Target, Transactional, require_mode
from gateway_amqp.repetition import LastPublish
from gateway_amqp.scope import Scope
from gateway_amqp.targets import Targets
from gateway_amqp.topology import Topology

PUBLISH: Final = b"\x00\x3c\x00\x28"
ACK: Final = b"\x00\x3c\x00\x50"

_ack_arguments: Final[Callable[[bytes, int], tuple[int, int]]] = Struct(">QB").unpack_from


class Channel:
    """One channel of one connection. Owns its parts; ``assembly`` is the content that is received frame by frame."""

    __slots__ = (
        "_answered",
        "_confirmed",
        "_confirms",
        "_holdings",
        "_intake",
        "_max_message_size",
        "_publisher",
        "_scope",
        "_target_by_method",
        "_targets",
        "_topology",
        "_traffic",
        "_vhost",
        "_writer",
        "assembly",
        "consuming",
        "last",
        "number",
    )

    def __init__(self, scope: Scope, frame_max: int) -> None:
        self.number = scope.number
        self.assembly: Assembly | None = None
        self._scope = scope
        self._holdings = scope.host.holdings
        self._vhost = scope.vhost
        self._traffic = scope.vhost.traffic.by_protocol[scope.origin.protocol]
        self._max_message_size = scope.max_message_size
        self._writer = DeliveryWriter(scope.number, scope.outbox, frame_max)
        self._topology = Topology(scope)
        self.consuming = Consuming(scope, self._topology, self._writer)
        self._targets = Targets(scope, self.consuming.channel_counters, self._connect_interceptors)
        self._target_by_method = self._targets.by_method
        self._publisher: Plain = Plain(scope.vhost, scope.origin, self._unrouted)
        self._intake: Plain = self._publisher  # before it come the interceptors, if there are any
        self._confirms: Confirms | None = None
        self._answered = 0
        self._confirmed = 0
        self.last = LastPublish()

    @property
    def origin(self) -> Origin:
        """The connection, the number and the user of the channel."""
        return self._scope.origin

    @property
    def vhost_name(self) -> str:
        """The virtual host of its connection."""
        return self._vhost.name

    # Frames in

    def method(self, payload: bytes) -> None:
        """Handle a method frame."""
        if self.assembly is not None:
            self.assembly.add(1, payload)
        index = payload[:4]
        if index == PUBLISH:
            self.assembly = Assembly(payload)
            self._scope.host.publishing()  # alarms apply before the message is complete
            return
        if index == ACK:
            self.ack(payload)
            return
        method = decode_method(payload)
        perform = _METHODS.get(type(method))
        if perform is None:
            raise CommandInvalid("unimplemented method")
        perform(self, method)

    def content(self, kind: int, payload: bytes) -> None:
        """Handle a header or body frame."""
        assembly = self.assembly
        if assembly is None:
            raise FrameError(505, "expected method frame, got non method frame instead")
        before = assembly.size
        assembly.add(kind, payload)
        if assembly.body_size > self._scope.max_message_size:
            self._drop_assembly()
            self._refuse_size(assembly.body_size)
        if assembly.size > before:
            self._holdings.add_received(assembly.size - before, before)
        if assembly.is_complete:
            self._drop_assembly()
            assert assembly.properties is not None
            self.publish(assembly.method, assembly.properties, assembly.body)

    def _drop_assembly(self) -> None:
        """Drop the content that is being received, and release its bytes."""
        if self.assembly is not None:
            self._holdings.release(self.assembly.size)
            self.assembly = None

    def publish(self, method: bytes, properties: bytes, body: bytes) -> None:
        """Publish one complete message. Equal ``method`` frames share a target, equal ``properties`` a header."""
        if len(body) > self._max_message_size:
            self._refuse_size(len(body))
        target = self._target_by_method.get(method)
        try:
            if target is None or target.version != self._vhost.version:
                target = self._targets.resolve(method)
            header = AMQP.header(properties)
            if header.is_ordinary:
                self.last.compare(target, header, len(body))
            else:
                self.last.is_repeated = False
                header = self._checked(header, target)
        except PermissionUnknown as unknown:
            unknown.again = partial(self.publish, method, properties, body)
            raise
        target.tally.publish += 1
        self._intake.publish(target, Message(target.exchange_name, target.routing_key, header, body))

    def publish_repeated(self, data: bytes, position: int, end: int) -> int:
        """Publish the messages at ``position`` that repeat the last one; return the position after them.

        If one of them is refused, ``last.position`` is the position after it.
        """
        last, budget = self.last, self._scope.journal.budget
        while (
            (repetition := last.repetition) is not None
            and self.assembly is None
            and budget.work < WORK_PER_CLOCK_READING
        ):
            start = position + len(repetition.beginning)
            stop = start + repetition.body_size
            if stop >= end or data[position:start] != repetition.beginning or data[stop] != FRAME_END:
                break
            target = repetition.target
            if target.version != self._vhost.version:
                break
            last.position = position = stop + 1
            target.tally.publish += 1
            message = Message(target.exchange_name, target.routing_key, repetition.header, data[start:stop])
            self._intake.publish(target, message)
        return position

    def ack(self, payload: bytes) -> None:
        """Handle ``basic.ack``, the most frequent method of consumers, without creating an object for it."""
        if len(payload) != 13:
            decode_method(payload)  # raises the right error
        tag, is_multiple = _ack_arguments(payload, 4)
        if is_multiple & 1:
            self.consuming.settle(tag, True, DeliveryOutcome.ACCEPTED)
        else:
            self.consuming.accept(tag)

    # Turns

    def close(self) -> None:
        """Close the channel: drop open transactions, and requeue unsettled deliveries."""
        if isinstance(self._publisher, Transactional):
            self._publisher.rollback()
        self.drain()
        if self._confirms is not None:
            self._confirms.abandon()
        self.consuming.close()
        self._forget()

    def _forget(self) -> None:
        """Drop the unfinished content and the references to the parts, so that no reference cycle is left."""
        self._drop_assembly()
        self.last.forget()
        self._targets.close()
        self._publisher.close()
        self._publisher = self._intake = Plain(self._vhost, self._scope.origin, _return_nothing)

    def drain(self) -> None:
        """Add what was counted since the last call to the totals of the virtual host."""
        traffic, protocol = self._vhost.traffic, self._scope.origin.protocol
        self.consuming.channel_counters.drain(protocol, traffic)
        if self._confirms is not None:
            self._traffic.expecting_confirms += self._confirms.drain()

    def fail_confirms(self) -> None:
        """Refuse every publish that waits for its confirm, because the store has failed."""
        if self._confirms is not None:
            self._confirms.fail()

    def info(self) -> ChannelInfo:
        """Return the channel for listings."""
        publisher, prefetch = self._publisher, self.consuming.prefetch
        channel_counters = self.consuming.channel_counters
        if not self.consuming.unsettled:
            channel_counters.forget_deleted()
        published = channel_counters.published()
        uncommitted = publisher.held if isinstance(publisher, Transactional) else (0, 0)
        return ChannelInfo(
            number=self.number,
            consumers=self.consuming.consumers,
            prefetch=prefetch[0],
            shared_prefetch=prefetch[1],
            is_confirming=self._confirms is not None,
            is_transactional=isinstance(publisher, Transactional),
            unacknowledged=self.consuming.unsettled,
            unconfirmed=0 if self._confirms is None else self._confirms.unanswered,
            uncommitted=uncommitted[0],
            acks_uncommitted=uncommitted[1],
            totals=channel_counters.totals,
            confirmed=self._confirmed,
            returned=published.return_unroutable,
            unroutable=published.drop_unroutable,
            publishes=channel_counters.by_exchange,
            deliveries=channel_counters.by_queue,
        )

    # Publishing

    def _publish_through(self, publisher: Plain) -> None:
        """Change the mode of the channel."""
        self._publisher = publisher
        self._connect_interceptors()

    def _connect_interceptors(self) -> None:
        """Pass publishes to the interceptors first, if there are any; they change with the version of targets."""
        self._intake = publisher = self._publisher
        if self._vhost.interception.publishing is not None:
            self._intake = Intercepted(publisher, self._vhost, self._scope.origin, self._writer.returned)

    def _checked(self, header: Header, target: Target) -> Header:
        """Check the ``user_id`` and the keys of ``CC`` and ``BCC``; replace the ``reply_to`` of a direct reply-to
        request.
        """
        principal = self._scope.host.identity.principal
        assert principal is not None
        if header.user_id not in (None, principal.name) and "impersonator" not in principal.tags:
            raise PreconditionFailed(
                f"user_id property set to '{header.user_id}' but authenticated user was '{principal.name}'"
            )
        if header.sender_keys:
            require_sender_keys(header.sender_keys)
            self._targets.require_topics(header.sender_keys, target)
        if header.properties.reply_to == "amq.rabbitmq.reply-to":
            return self.consuming.replies.with_reply_address(header)
        return header

    def _refuse_size(self, size: int) -> None:
        limit = self._scope.max_message_size
        raise PreconditionFailed(f"message size {size} is larger than configured max size {limit}")

    def _unrouted(self, target: Target, message: Message) -> None:
        """Return a mandatory message that was not routed to any queue (R20)."""
        if not target.is_mandatory:
            target.tally.drop_unroutable += 1
            return
        target.tally.return_unroutable += 1
        self._traffic.returned += 1
        self._writer.returned(312, "NO_ROUTE", message)

    def _confirm(self, number: int, is_multiple: bool, is_accepted: bool) -> None:
        if is_accepted:
            count = number - self._answered if is_multiple else 1
            self._confirmed += count
            self._traffic.confirmed += count
            self._scope.acknowledge(number, is_multiple)
        else:
            self._scope.reply(commands.Basic.Nack(number, is_multiple))
        self._answered = number

    # The channel, confirm and tx classes

    def _flow(self, method: commands.Channel.Flow) -> None:
        if not method.active:
            raise NotImplementedHere("active=false")
        self._scope.reply(commands.Channel.FlowOk(True))

    def _select_confirms(self, method: commands.Confirm.Select) -> None:
        require_mode(self._publisher, Confirming.name)
        if self._confirms is None:
            scope = self._scope
            self._confirms = Confirms(scope.journal, self._confirm)
            self._publish_through(Confirming(scope.vhost, scope.origin, self._unrouted, self._confirms))
        if not method.nowait:
            self._scope.reply(commands.Confirm.SelectOk())

    def _select_tx(self, method: commands.Tx.Select) -> None:
        require_mode(self._publisher, Transactional.name)
        if not isinstance(self._publisher, Transactional):
            restore_unsettled = self.consuming.restore_unsettled
            transaction = Transactional(
                self._scope.vhost,
                self._scope.origin,
                self._unrouted,
                restore_unsettled,
                self._holdings,
                self._scope.journal,
            )
            self._publish_through(transaction)
            self.consuming.settle_through(transaction)
        self._scope.reply(commands.Tx.SelectOk())

    def _commit(self, method: commands.Tx.Commit) -> None:
        self._scope.host.work_through(self._transaction().committing(), self._committed)

    def _committed(self) -> None:
        self.consuming.share()
        self._scope.reply_durably(commands.Tx.CommitOk())

    def _rollback(self, method: commands.Tx.Rollback) -> None:
        self._transaction().rollback()
        self._scope.reply(commands.Tx.RollbackOk())

    def _transaction(self) -> Transactional:
        if not isinstance(self._publisher, Transactional):
            raise PreconditionFailed("channel is not transactional")
        return self._publisher

    # The rest of the basic class

    def _recover(self, method: commands.Basic.Recover) -> None:
        self.consuming.recover(method.requeue)
        self._scope.reply(commands.Basic.RecoverOk())

    def _nack(self, method: commands.Basic.Nack) -> None:
        outcome = DeliveryOutcome.REQUEUED if method.requeue else DeliveryOutcome.REJECTED
        self.consuming.settle(method.delivery_tag, method.multiple, outcome)

    def _reject(self, method: commands.Basic.Reject) -> None:
        outcome = DeliveryOutcome.REQUEUED if method.requeue else DeliveryOutcome.REJECTED
        self.consuming.settle(method.delivery_tag or 0, False, outcome)

    def _grant_access(self, method: AccessRequest) -> None:
        self._scope.reply(AccessRequestOk())


def _return_nothing(target: Target, message: Message) -> None:
    """Return nothing: the channel is closed."""


Perform: TypeAlias = Callable[[Channel, Any], None]  # each row takes its own method class


def _second_open(channel: Channel, method: Frame) -> None:
    raise channel_error("second 'channel.open' seen", 20, 10)


#: Handlers of a client's methods on a channel; the connection itself answers ``channel.close``.
_METHODS: Final[Mapping[type[Frame], Perform]] = {
    AccessRequest: Channel._grant_access,
    commands.Channel.Open: _second_open,
    commands.Channel.Flow: Channel._flow,
    commands.Exchange.Declare: lambda channel, method: channel._topology.declare_exchange(method),
    commands.Exchange.Delete: lambda channel, method: channel._topology.delete_exchange(method),
    commands.Exchange.Bind: lambda channel, method: channel._topology.bind_exchange(method),
    commands.Exchange.Unbind: lambda channel, method: channel._topology.unbind_exchange(method),
    commands.Queue.Declare: lambda channel, method: channel._topology.declare_queue(method),
    commands.Queue.Delete: lambda channel, method: channel._topology.delete_queue(method),
    commands.Queue.Bind: lambda channel, method: channel._topology.bind_queue(method),
    commands.Queue.Unbind: lambda channel, method: channel._topology.unbind_queue(method),
    commands.Queue.Purge: lambda channel, method: channel._topology.purge_queue(method),
    commands.Basic.Qos: lambda channel, method: channel.consuming.qos(method),
    commands.Basic.Consume: lambda channel, method: channel.consuming.consume(method),
    commands.Basic.Cancel: lambda channel, method: channel.consuming.cancel(method),
    commands.Basic.Get: lambda channel, method: channel.consuming.get(method),
    commands.Basic.Nack: Channel._nack,
    commands.Basic.Reject: Channel._reject,
    commands.Basic.Recover: Channel._recover,
    commands.Basic.RecoverAsync: lambda channel, method: channel.consuming.recover(method.requeue),
    commands.Confirm.Select: Channel._select_confirms,
    commands.Tx.Select: Channel._select_tx,
    commands.Tx.Commit: Channel._commit,
    commands.Tx.Rollback: Channel._rollback,
}
