"""The ticks of connections that are awake, which check time limits and send heartbeats: a few hundred in one turn."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from gateway.kernel.broker.connections import Connections
from gateway.kernel.broker.ticking import Ticker

#: The number of connections that tick in one turn, at least; each takes three to five microseconds.
MOST_TICKED: Final = 256

#: The largest number of turns of one round. With more than 16,000 connections a turn has more than ``MOST_TICKED``,
#: because a round that takes longer than the interval of ticks slows down all time limits.
MOST_TURNS: Final = 64


class ConnectionTicks:
    """Lets the connections that are awake tick, the rest of many in later turns.

    ``call_soon`` calls in a later turn. These are no background jobs, because those pause while the disk is behind.
    """

    def __init__(self, connections: Connections, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._ticking = connections.ticking
        self._call_soon = call_soon
        self._rest: Iterator[Ticker] | None = None
        self._ticked_in_turn = MOST_TICKED

    def tick_all(self) -> None:
        """Let the connections tick, unless the round before is not over."""
        if self._rest is None:
            self._rest = self._ticking.begin()
            self._ticked_in_turn = max(MOST_TICKED, len(self._ticking) // MOST_TURNS)
            self._tick_some()

    def _tick_some(self) -> None:
        rest, self._rest = self._rest, None  # if ``fail`` raises, the next round begins from the start
        assert rest is not None
        count, ticking = 0, self._ticking
        for peer in islice(rest, self._ticked_in_turn):
            count += 1
            try:
                ticks = peer.tick()
                if ticks > 0:
                    ticking.rest(peer, ticks)
            except Exception:  # isolate connections: close the failing one and log the error
                peer.fail()
        if count == self._ticked_in_turn:
            self._rest = rest
            self._call_soon(self._tick_some)
