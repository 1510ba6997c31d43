"""The channels of one relayed connection, and those that a leader has closed and the client not yet."""

from collections.abc import Mapping

from pamqp import commands
from pamqp.base import Frame

from gateway_amqp.content import METHOD
from gateway_amqp.errors import reply_text
from gateway_amqp.methods import encode_method
from gateway_amqp.resuming import indexes
from gateway_amqp.resuming.relayed_channel import RelayedChannel
from gateway_amqp.resuming.restoration import is_looked_for
from gateway_amqp.resuming.transient_topology import TransientTopology
from gateway_amqp.resuming.unconfirmed import Kept


class RefusedChannel:
    """A channel that was closed for a reason. ``is_unknown``: the present leader does not know it.

    ``has_crossed``: the client closed it too, before it knew that; ``is_awaited``: it waits for the answer.
    """

    __slots__ = ("has_crossed", "is_awaited", "is_unknown")

    def __init__(self, *, is_unknown: bool, has_crossed: bool = False) -> None:
        self.is_unknown = is_unknown
        self.has_crossed = self.is_awaited = has_crossed


class RelayedChannels:
    """Owns the channels by number. ``in_content`` are those whose delivery is on its way to the client.

    ``after`` is the end of a content that was handled together with its method, else 0; who reads it sets it to 0.
    ``ignores_refusals``: publishes that the leader refuses now are published again on the next one.
    """

    def __init__(self) -> None:
        self.kept = Kept()
        self.after = 0
        self.ignores_refusals = False
        self.in_content: set[int] = set()
        self._topology = TransientTopology()
        self._open: dict[int, RelayedChannel] = {}
        self._refused: dict[int, RefusedChannel] = {}

    @property
    def is_too_large(self) -> bool:
        """Whether the client declared more than is remembered."""
        return self._topology.is_too_large

    @property
    def await_answers(self) -> bool:
        """Whether the client waits for the answer to a request."""
        return any(channel.awaits_answer for channel in self._open.values())

    @property
    def have_published(self) -> bool:
        """Whether the client has published on a channel that is open."""
        return any(channel.has_published for channel in self._open.values())

    # Frames

    def from_client(
        self, kind: int, number: int, data: bytes, start: int, stop: int, for_client: list[bytes]
    ) -> bytes | None:
        """Note a frame of the client; return what is passed on in its place, ``None`` for the frame itself."""
        channel = self._open.get(number)
        if channel is not None:
            instead = channel.from_client(kind, data, start, stop)
            if channel.after:
                self.after, channel.after = channel.after, 0
            return instead
        index = data[start + 7 : start + 11] if kind == METHOD else b""
        refused = self._refused.get(number)
        if refused is not None and not (index == indexes.CHANNEL_OPEN and refused.has_crossed):
            return self._while_refused(refused, number, index, for_client)
        self._refused.pop(number, None)
        if index != indexes.CHANNEL_OPEN:
            return None  # the leader refuses it
        self._open[number] = channel = RelayedChannel(number, self._topology, self.kept)
        return channel.from_client(kind, data, start, stop)

    def _while_refused(
        self, refused: RefusedChannel, number: int, index: bytes, for_client: list[bytes]
    ) -> bytes | None:
        if index == indexes.CHANNEL_CLOSE_OK:
            del self._refused[number]
        elif index == indexes.CHANNEL_CLOSE:
            refused.has_crossed = True
            refused.is_awaited = not refused.is_unknown
            if refused.is_unknown:
                for_client.append(encode_method(number, commands.Channel.CloseOk()))
        return b"" if refused.is_unknown else None

    def from_leader(self, kind: int, number: int, data: bytes, start: int, stop: int) -> bytes | None:
        """Note a frame of the leader; return what is passed on in its place, ``None`` for the frame itself."""
        channel = self._open.get(number)
        index = data[start + 7 : start + 11] if kind == METHOD else b""
        if channel is None:
            if index == indexes.CHANNEL_CLOSE_OK and number in self._refused:
                self._refused[number].is_awaited = False
            return None
        if index == indexes.CHANNEL_CLOSE:
            self._drop(channel)
            self._refused[number] = RefusedChannel(is_unknown=False, has_crossed=channel.is_closing)
            return None
        if index == indexes.CHANNEL_CLOSE_OK:
            self._drop(channel)
            return None
        if index == indexes.NACK and self.ignores_refusals:
            return b""
        instead = channel.from_leader(kind, data, start, stop)
        if channel.after:
            self.after, channel.after = channel.after, 0
        if channel.missing:
            self.in_content.add(number)
        elif self.in_content:
            self.in_content.discard(number)
        return instead

    def _drop(self, channel: RelayedChannel) -> None:
        channel.forget()
        self.in_content.discard(channel.number)
        del self._open[channel.number]

    # Another leader

    def leader_lost(self) -> None:
        """Forget what was on its way to the client."""
        self.in_content.clear()
        for channel in self._open.values():
            channel.leader_lost()

    def needed(self) -> tuple[list[Frame], list[str]]:
        """Return the declarations to repeat, and the other queues that consumers need."""
        queues = {
            str(consumer.consume.queue): None
            for channel in self._open.values()
            for consumer in channel.settings.consumers.values()
        }
        others = [name for name in queues if is_looked_for(name) and not self._topology.has_queue(name)]
        return self._topology.requests(), others

    def begin_again(
        self,
        failures: Mapping[str, str],
        for_leader: list[bytes],
        for_client: list[bytes],
        capabilities: frozenset[str],
    ) -> None:
        """Continue all channels on another leader; consumers of queues in ``failures`` are cancelled."""
        for number, refused in self._refused.items():
            refused.is_unknown = True
            if refused.is_awaited:
                refused.is_awaited = False
                for_client.append(encode_method(number, commands.Channel.CloseOk()))
        is_told = "consumer_cancel_notify" in capabilities
        for channel in list(self._open.values()):
            trouble = channel.trouble
            if channel.is_closing:
                self._drop(channel)
                for_client.append(encode_method(channel.number, commands.Channel.CloseOk()))
            elif trouble is not None:
                self._refuse(channel, *trouble, for_client)
            else:
                self._cancel_consumers(channel, failures, for_client if is_told else [])
                for_leader.append(channel.begin_again())

    def _refuse(self, channel: RelayedChannel, code: int, reason: str, for_client: list[bytes]) -> None:
        self._drop(channel)
        self._refused[channel.number] = RefusedChannel(is_unknown=True)
        close = commands.Channel.Close(code, reply_text(code, reason), 0, 0)
        for_client.append(encode_method(channel.number, close))

    def _cancel_consumers(self, channel: RelayedChannel, failures: Mapping[str, str], for_client: list[bytes]) -> None:
        consumers = channel.settings.consumers
        for tag in [tag for tag, consumer in consumers.items() if consumer.consume.queue in failures]:
            channel.settings.cancelled(tag)
            for_client.append(encode_method(channel.number, commands.Basic.Cancel(tag.decode(), nowait=True)))
