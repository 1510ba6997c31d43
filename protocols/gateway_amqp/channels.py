"""The channels of one connection: opened, closed by either side, and told apart while a close is under way."""

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
    """Owns the channels of a connection. ``make`` builds the channel of a number; ``limit`` is how many may be open.

    The read loop looks into ``open_by_number`` itself.
    """

    __slots__ = ("_closing", "_make", "_outbox", "limit", "on_drop", "open_by_number")

    def __init__(self, make: Callable[[int], Channel], outbox: Outbox, limit: int) -> None:
        self.open_by_number: dict[int, Channel] = {}
        self.limit = limit
        #: Called when a channel that was opened is forgotten.
        self.on_drop: Callable[[], None] = _nothing
        self._make = make
        self._outbox = outbox
        #: Channels that this side closed and the peer has not confirmed; true once the peer's own close crossed ours.
        self._closing: dict[int, bool] = {}

    def frame(self, kind: int, number: int, payload: bytes) -> None:
        """Take a frame for the channel of this number."""
        channel = self.open_by_number.get(number)
        if channel is not None:
            self._frame_of(channel, kind, payload)
        elif number in self._closing:
            self._wind_up(kind, number, payload)
        else:
            self._open(kind, number, payload)

    def refuse(self, number: int, code: int, text: str, class_id: int, method_id: int) -> None:
        """Close a channel from this side, because of a request it made (1.5.2.5)."""
        self.drop(number)
        self._closing[number] = False
        self._say(number, commands.Channel.Close(code, text, class_id, method_id))

    def drop(self, number: int) -> None:
        """Give back what a channel holds, and forget it."""
        channel = self.open_by_number.pop(number)
        self.on_drop()
        channel.close()

    def retire(self) -> None:
        """Open no channel any more: what makes them belongs to the connection, and would keep it in a cycle."""
        self._make = _make_none

    def drop_all(self) -> None:
        """Give back what every channel holds."""
        for number in list(self.open_by_number):
            self.drop(number)

    def _frame_of(self, channel: Channel, kind: int, payload: bytes) -> None:
        if kind != METHOD:
            channel.content(kind, payload)
        elif payload[:4] == _CLOSE and channel.assembly is None:
            decode_method(payload)
            self.drop(channel.number)
            self._say(channel.number, commands.Channel.CloseOk())
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
        ok.channel_id = ""  # pamqp says "0", which was never on the wire
        self._say(number, ok)

    def _wind_up(self, kind: int, number: int, payload: bytes) -> None:
        """After close was sent only its answer, or the peer's own close, means anything.

        A peer whose close crossed ours may confirm ours late, or not at all before it opens the channel again.
        """
        if kind != METHOD:
            return
        method, has_crossed = payload[:4], self._closing[number]
        if method == _CLOSE_OK:
            del self._closing[number]
        elif method == _CLOSE:
            self._closing[number] = True
            self._say(number, commands.Channel.CloseOk())
        elif method == _OPEN and has_crossed:
            del self._closing[number]
            self._open(kind, number, payload)
        elif method == _OPEN:
            raise channel_error("second 'channel.open' seen", *index_of(payload))

    def _say(
        self, number: int, method: commands.Channel.Close | commands.Channel.CloseOk | commands.Channel.OpenOk
    ) -> None:
        self._outbox.write(encode_method(number, method))


def _nothing() -> None:
    """Before a channel was opened there is none to forget."""


def _make_none(number: int) -> Channel:
    raise NotAllowed("the connection is closed")
