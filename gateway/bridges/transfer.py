"""The flow of messages from a source to a destination, with its acknowledgements. No I/O."""

from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Final

from gateway.bridges.parcel import MessageDestination, MessageSource, Parcel

#: Seconds for which a message that the destination refused stays with the bridge before it returns to its queue;
#: without the delay a full destination would be tried in a loop.
REFUSED_DELAY_S: Final = 1.0

#: Messages that wait for a blocked destination when the source is paused. A smaller prefetch is a limit too.
MOST_HELD: Final = 1000


class ShovelAckMode(Enum):
    """The time of an acknowledgement at the source: when the destination confirms, after the send, or at once."""

    ON_CONFIRM = "on-confirm"
    ON_PUBLISH = "on-publish"
    NO_ACK = "no-ack"


class Transfer:
    """Moves messages from ``source`` to ``destination``.

    ``address`` changes exchange, routing key and properties of each message, and returns whether it is to be sent.
    ``remaining`` is the number of messages after which ``on_done`` is called; ``None`` moves messages without end.
    ``forwarded`` counts the messages that the source may forget, ``pending`` those that were received and are not
    forwarded yet.
    """

    def __init__(
        self,
        source: MessageSource,
        destination: MessageDestination,
        ack_mode: ShovelAckMode,
        address: Callable[[Parcel], bool],
        call_later: Callable[[float, Callable[[], None]], object],
        remaining: int | None = None,
        on_done: Callable[[], None] = lambda: None,
    ) -> None:
        self.forwarded = 0
        self.pending = 0
        self.remaining = remaining
        self._source = source
        self._destination = destination
        self._ack_mode = ack_mode
        self._address = address
        self._call_later = call_later
        self._unaccepted = remaining
        self._on_done = on_done
        self._held: deque[Parcel] = deque()
        self._is_paused = False
        self._is_closed = False

    def start(self) -> None:
        """Begin."""
        self._destination.on_ready = self._continue
        if self.remaining == 0:
            self._on_done()
            return
        self._source.start(self._received)

    def close(self) -> None:
        """Close both ends; messages that are not settled return to their queue."""
        self._is_closed = True
        self._source.close()
        self._destination.close()

    @property
    def is_blocked(self) -> bool:
        """Whether the destination accepts no messages for now."""
        return self._destination.is_blocked

    def _received(self, parcel: Parcel) -> None:
        if self._is_closed or self.remaining == 0:
            return  # returns to its queue when the source closes
        if self.remaining is not None:
            self.remaining -= 1
        self.pending += 1
        if self._held or self._destination.is_blocked:
            self._held.append(parcel)
            self._pause(len(self._held) >= MOST_HELD)
        else:
            self._send(parcel)

    def _continue(self) -> None:
        """Send what waited for the destination."""
        while self._held and not self._destination.is_blocked and not self._is_closed:
            self._send(self._held.popleft())
        if not self._held:
            self._pause(False)

    def _pause(self, is_paused: bool) -> None:
        if is_paused != self._is_paused:
            self._is_paused = is_paused
            self._source.pause(is_paused)

    def _send(self, parcel: Parcel) -> None:
        if not self._address(parcel):
            self._source.accept(parcel.tag)
            self._forwarded()
        elif self._ack_mode is ShovelAckMode.ON_CONFIRM:
            self._destination.publish(parcel, partial(self._answered, parcel.tag))
        else:
            self._destination.publish(parcel, lambda is_taken: None)
            self._source.accept(parcel.tag)
            self._forwarded()

    def _answered(self, tag: int, is_taken: bool) -> None:
        """Settle a message at the source as the destination answered."""
        if self._is_closed:
            return
        if is_taken:
            self._source.accept(tag)
            self._forwarded()
        else:
            self._call_later(REFUSED_DELAY_S, partial(self._return, tag))

    def _return(self, tag: int) -> None:
        """Return a refused message to its queue; it will come again."""
        if self._is_closed:
            return
        self.pending -= 1
        if self.remaining is not None:
            self.remaining += 1
        self._source.requeue(tag)

    def _forwarded(self) -> None:
        self.forwarded += 1
        self.pending -= 1
        if self._unaccepted is not None:
            self._unaccepted -= 1
            if self._unaccepted == 0:
                self._on_done()
