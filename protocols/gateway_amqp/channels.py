"""The channels of one connection: opening, and closing by either side."""

from typing import Final, Protocol

from pamqp import commands

from gateway.kernel.broker.connection_limits import require_room_for_channel
from gateway.kernel.broker.connections import ChannelInfo, PeerLoad
from gateway.kernel.errors import NotAllowed
from gateway.kernel.messages.origin import Origin
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import ConsumedQueue, Consumer
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.net.machine import Driver
from gateway.net.outbox import Outbox
from gateway_amqp.channel import Channel
from gateway_amqp.content import METHOD
from gateway_amqp.errors import FrameError, channel_error
from gateway_amqp.listener_context import AmqpContext
from gateway_amqp.methods import decode_method, encode_method, index_of
from gateway_amqp.scope import Host, Scope

_OPEN: Final = b"\x00\x14\x00\x0a"
_CLOSE: Final = b"\x00\x14\x00\x28"
_CLOSE_OK: Final = b"\x00\x14\x00\x29"


class ChannelOwner(Host, Protocol):
    """The connection, as its channels are opened for it."""

    driver: Driver

    @property
    def vhost(self) -> VirtualHost | None:
        """The open virtual host."""
        ...

    @property
    def user_name(self) -> str:
        """The authenticated user's name."""
        ...

    @property
    def limits(self) -> tuple[int, int]:
        """The negotiated limits: the largest frame in bytes, and the number of channels."""
        ...


class Channels:
    """Owns the channels of a connection. ``limit`` is the most open channels.

    The read loop accesses ``open_by_number`` directly, and ``repeating``: the channel whose publishes were last found
    to be repetitions.
    """

    __slots__ = ("_closing", "_outbox", "_owner", "_settings", "_user", "limit", "open_by_number", "repeating")

    def __init__(self, owner: ChannelOwner, settings: AmqpContext, outbox: Outbox) -> None:
        self.open_by_number: dict[int, Channel] = {}
        self.repeating: Channel | None = None
        self.limit = settings.channel_max
        self._owner: ChannelOwner | None = owner
        self._settings = settings
        self._outbox = outbox
        self._user = ""
        #: Channels closed by this side whose close-ok is outstanding; true once the peer's own close has crossed.
        self._closing: dict[int, bool] = {}

    @property
    def has_unsettled(self) -> bool:
        """Whether a channel has unsettled deliveries."""
        return any(channel.consuming.unsettled for channel in self.open_by_number.values())

    def unsettled(self) -> list[tuple[ConsumedQueue, QueuedMessage, int]]:
        """Return the unsettled deliveries: queue, message and number of the channel."""
        return [
            (delivery.queue, delivery.entry, number)
            for number, channel in self.open_by_number.items()
            for delivery in channel.consuming.held()
        ]

    def infos(self) -> list[ChannelInfo]:
        """Return the open channels for listings."""
        return [channel.info() for channel in self.open_by_number.values()]

    def load(self) -> PeerLoad | None:
        """Add the counts of the channels to the totals of the virtual host; return their load."""
        publishers = consumers = 0
        protocol = ""
        for channel in self.open_by_number.values():
            channel.drain()
            protocol = channel.origin.protocol
            publishers += channel.consuming.channel_counters.has_published
            consumers += len(channel.consuming.consumers)
        return PeerLoad(protocol, publishers, consumers) if protocol else None

    def waiting(self) -> list[Consumer]:
        """Return the consumers that wait for credit or for room in the outbox."""
        return [consumer for channel in self.open_by_number.values() for consumer in channel.consuming.waiting()]

    def fail_confirms(self) -> None:
        """Refuse every publish that waits for its confirm."""
        for channel in self.open_by_number.values():
            channel.fail_confirms()

    def frame(self, kind: int, number: int, payload: bytes) -> None:
        """Handle a frame on this channel number."""
        channel = self.open_by_number.get(number)
        if channel is not None:
            self._frame_of(channel, kind, payload)
        elif number in self._closing:
            self._frame_while_closing(kind, number, payload)
        else:
            self._open(kind, number, payload)

    def refuse(self, number: int, code: int, text: str, class_id: int, method_id: int) -> None:
        """Close a channel from this side because of a failed request (1.5.2.5)."""
        self.drop(number)
        self._closing[number] = False
        self._send(number, commands.Channel.Close(code, text, class_id, method_id))

    def drop(self, number: int) -> None:
        """Release what a channel holds, and remove it."""
        channel = self.open_by_number.pop(number)
        if self.repeating is channel:
            self.repeating = None
        self._settings.broker.connections.channel_closed(self._user, channel.origin, channel.vhost_name)
        channel.close()

    def retire(self) -> None:
        """Allow no new channels, and drop the reference to the connection, which would be a reference cycle."""
        self._owner = None

    def drop_all(self) -> None:
        """Release what every channel holds."""
        for number in list(self.open_by_number):
            self.drop(number)

    def _frame_of(self, channel: Channel, kind: int, payload: bytes) -> None:
        if kind != METHOD:
            channel.content(kind, payload)
        elif payload[:4] == _CLOSE and channel.assembly is None:
            decode_method(payload)
            self.drop(channel.number)
            self._send(channel.number, commands.Channel.CloseOk())
        else:
            channel.method(payload)

    def _open(self, kind: int, number: int, payload: bytes) -> None:
        if kind != METHOD:
            raise FrameError(505, "expected method frame, got non method frame instead")
        if payload[:4] != _OPEN:
            raise channel_error("expected 'channel.open'", *index_of(payload))
        decode_method(payload)
        opened = len(self.open_by_number)
        if opened >= self.limit:
            raise NotAllowed(
                f"number of channels opened ({opened}) has reached the negotiated channel_max ({self.limit})"
            )
        self.open_by_number[number] = self._make(number)
        ok = commands.Channel.OpenOk()
        ok.channel_id = ""  # pamqp's default is "0", which was never on the wire
        self._send(number, ok)

    def _frame_while_closing(self, kind: int, number: int, payload: bytes) -> None:
        """Handle a frame after close was sent: only close-ok and the peer's own close count.

        A peer whose close crossed ours may send close-ok late, or open the channel again without it.
        """
        if kind != METHOD:
            return
        method, has_crossed = payload[:4], self._closing[number]
        if method == _CLOSE_OK:
            del self._closing[number]
        elif method == _CLOSE:
            self._closing[number] = True
            self._send(number, commands.Channel.CloseOk())
        elif method == _OPEN and has_crossed:
            del self._closing[number]
            self._open(kind, number, payload)
        elif method == _OPEN:
            raise channel_error("second 'channel.open' seen", *index_of(payload))

    def _send(
        self, number: int, method: commands.Channel.Close | commands.Channel.CloseOk | commands.Channel.OpenOk
    ) -> None:
        self._outbox.write(encode_method(number, method))

    def _make(self, number: int) -> Channel:
        """Return a new channel. :raises FrameError: when the user has no room for one."""
        owner, settings = self._owner, self._settings
        if owner is None:
            raise NotAllowed("the connection is closed")
        assert owner.vhost is not None
        self._user = user = owner.user_name
        try:
            require_room_for_channel(settings.broker, user)
        except NotAllowed as refusal:
            raise FrameError(530, str(refusal)) from None  # on the connection, without a method, as RabbitMQ
        assert owner.identity.principal is not None
        origin = Origin(owner.driver.name, number, user, "amqp091", grant=owner.identity.principal.grant)
        settings.broker.connections.channel_opened(user, origin, owner.vhost.name)
        journal, largest = settings.broker.journal, settings.max_message_size
        scope = Scope(number, owner, owner.vhost, self._outbox, journal, origin, settings.token, largest)
        return Channel(scope, owner.limits[0])
