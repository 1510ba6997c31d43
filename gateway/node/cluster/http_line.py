"""Requests of HTTP to a leader over a connection that it has taken, one after the other."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import h11

from gateway.kernel.clock import Clock, Timer
from gateway.management.cells.cell_answer import CellAnswer
from gateway.net.forwarding.link import LeaderSide

#: Time limit for the next piece of an answer, in seconds.
_SILENT_S: Final = 60.0

#: Why an answer fails with the connection.
_LOST: Final = "the connection to it was lost"


class HttpLine:
    """The connection to a leader. ``is_lost``: it is closed, or about to be.

    ``lost`` is called once when the leader ends it, after the answer that came last has ended or failed.
    """

    def __init__(self, side: LeaderSide, clock: Clock, lost: Callable[[], None] = lambda: None) -> None:
        self.is_lost = False
        self._side = side
        self._clock = clock
        self._lost = lost
        self._http = h11.Connection(h11.CLIENT)
        self._answer: CellAnswer | None = None
        self._silence: Timer | None = None
        side.tap, side.leaving = self._receive, self._on_lost

    def ask(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], content: bytes, answer: CellAnswer
    ) -> "HttpLine":
        """Send a request, after the end of the former one.

        Its answer comes in a later turn, and fails then if the line is lost.
        """
        self._answer = answer
        if self.is_lost:
            self._silence = self._clock.call_later(0, lambda: self._fail(_LOST))
            return self
        size = [("Content-Length", str(len(content)))] if content else []
        encoded = [(name.encode(), value.encode()) for name, value in [*headers, *size]]  # h11 encodes only ASCII
        head = h11.Request(method=method, target=target, headers=encoded)
        data = self._http.send(head) or b""
        data += (self._http.send(h11.Data(data=content)) or b"") if content else b""
        data += self._http.send(h11.EndOfMessage()) or b""
        self._listen_on()
        self._transport.write(data)
        return self

    def pause(self) -> None:
        """Take no more pieces for now, until the answer ends."""
        if self._answer is not None and not self.is_lost:
            self._cancel_silence()
            self._transport.pauseProducing()

    def resume(self) -> None:
        """Take more pieces."""
        if not self.is_lost:
            if self._answer is not None:
                self._listen_on()
            self._transport.resumeProducing()

    def cancel(self) -> None:
        """Take nothing more: the rest of the answer would come before the next one."""
        if self._answer is not None:
            self.close()

    def close(self) -> None:
        """End the connection; nothing is reported any more."""
        self._answer = None
        self._lost = lambda: None
        self._end()

    @property
    def _transport(self) -> Any:  # Any: Twisted's interfaces are not types
        return self._side.transport

    def _listen_on(self) -> None:
        self._cancel_silence()
        self._silence = self._clock.call_later(_SILENT_S, lambda: self._fail("it says nothing more"))

    def _cancel_silence(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def _receive(self, data: bytes) -> None:
        if self.is_lost:
            return
        if self._answer is None:  # the leader ends the connection, and says why
            self._fail("it has ended the connection")
            return
        self._listen_on()
        self._http.receive_data(data)
        self._take_events()

    def _take_events(self) -> None:
        try:
            while self._answer is not None:
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                    return
                self._take(event)
        except h11.RemoteProtocolError as error:
            self._fail(str(error))

    def _take(self, event: object) -> None:
        answer = self._answer
        assert answer is not None
        if isinstance(event, h11.Response):
            answer.begun(event.status_code, list(event.headers))
        elif isinstance(event, h11.Data):
            answer.piece(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage):
            self._answer = None
            self._cancel_silence()
            self._next_or_end()
            if not self.is_lost:
                self._transport.resumeProducing()  # the last pieces may have paused it
            answer.ended()
            if self.is_lost:
                self._report_loss()

    def _next_or_end(self) -> None:
        """Get ready for the next request, unless the leader takes none on this connection."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        else:
            self._end()

    def _on_lost(self) -> bool:
        """Note the end of the connection; an answer without a length ends with it."""
        if not self.is_lost:
            if self._answer is not None:
                self._http.receive_data(b"")
                self._take_events()
            self._fail(_LOST)
        return True

    def _fail(self, reason: str) -> None:
        answer, self._answer = self._answer, None
        self._end()
        if answer is not None:
            answer.failed(reason)
        self._report_loss()

    def _report_loss(self) -> None:
        lost, self._lost = self._lost, lambda: None
        lost()

    def _end(self) -> None:
        self.is_lost = True
        self._cancel_silence()
        self._side.give_up()
