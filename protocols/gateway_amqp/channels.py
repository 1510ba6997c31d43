"""The channels of one connection: opening, and closing by either side."""

from collections.abc import Callable
from typing import Final

from pamqp import commands

from gateway.kernel.errors import NotAllowed
from gateway.net.outbox import Outbox
from gateway_amqp.channel import Channel
from gateway_amqp.content import METHOD
from gateway_amqp.errors import FrameError, channel_error
from gateway_amqp.methods import decode_method, encode_method, index_of

_OPEN: Final = b"\x00\x14\x00\x0a"
_CLOSE: Final = b"\x00\x14\x00\x28"
_CLOSE_OK: Final = b"\x00\x14\x00\x29"


class Channels:
    """Owns the channels of a connection. ``make`` creates the channel of a number; ``limit`` is the most open channels.

    The read loop accesses ``open_by_number`` directly.
    """

    __slots__ = ("_closing", "_make", "_outbox", "limit", "on_drop", "open_by_number")

    def __init__(self, make: Callable[[int], Channel], outbox: Outbox, limit: int) -> None:
        self.open_by_number: dict[int, Channel] = {}
        self.limit = limit
        #: Called when an open channel is removed.
        self.on_drop: Callable[[], None] = _nothing
        self._make = make
        self._outbox = outbox
        #: Channels closed by this side whose close-ok is outstanding; true once the peer's own close has crossed.
        self._closing: dict[int, bool] = {}

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
        self.on_drop()
        channel.close()

    def retire(self) -> None:
        """Allow no new channels: the factory refers to the connection and would keep a reference cycle."""
        self._make = _make_none

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


def _nothing() -> None:
    """Do nothing: no channel was opened."""


def _make_none(number: int) -> Channel:
    raise NotAllowed("the connection is closed")
