"""Writes the events of connections to a file: masks and outlines them. Works in the thread of the file."""

from collections.abc import Callable

from gateway.recording.lines import RecordedEvent, event_line
from gateway.recording.masking.protocols import masking_parser
from gateway.recording.outlines.outline import AnswerOutline
from gateway.recording.parsing import StreamParser


class RecordingWriter:
    """Passes lines to ``write``. Connections that were not opened here are ignored."""

    def __init__(self, write: Callable[[bytes], None], *, hides_bodies: bool) -> None:
        self._write = write
        self._hides_bodies = hides_bodies
        self._by_number: dict[int, tuple[StreamParser, AnswerOutline]] = {}

    def opened(self, at_s: float, connection: int, listener: str, peer: str) -> None:
        """Write that a connection was accepted."""
        parser = masking_parser(listener, hides_bodies=self._hides_bodies)
        self._by_number[connection] = (parser, AnswerOutline(listener))
        self._write(event_line(RecordedEvent(at_s, connection, "opened", listener, peer)))

    def received(self, at_s: float, connection: int, data: bytes) -> None:
        """Write what a client sent, masked."""
        if (parts := self._by_number.get(connection)) is not None:
            self._write(event_line(RecordedEvent(at_s, connection, "received", data=parts[0].feed(data))))

    def sent(self, at_s: float, connection: int, data: bytes) -> None:
        """Write an outline of what the broker sent."""
        if (parts := self._by_number.get(connection)) is not None:
            parts[1].feed(data)
            answers, names = parts[1].take()
            if answers or names:
                self._write(event_line(RecordedEvent(at_s, connection, "sent", answers=answers, names=names)))

    def closed(self, at_s: float, connection: int, by: str) -> None:
        """Write that a connection was closed: by the ``client``, by the ``server``, or ``broken``."""
        self._end(at_s, connection, "closed", by)

    def incomplete(self, at_s: float, connection: int, reason: str) -> None:
        """Write that the rest of a connection is missing."""
        self._end(at_s, connection, "incomplete", reason)

    def _end(self, at_s: float, connection: int, kind: str, reason: str) -> None:
        parts = self._by_number.pop(connection, None)
        if parts is None:
            return
        if rest := parts[0].end():
            self._write(event_line(RecordedEvent(at_s, connection, "received", data=rest)))
        self._write(event_line(RecordedEvent(at_s, connection, kind, reason=reason)))
