"""/log and /events: the log lines in memory, and streams of lines and events as they come."""

from collections.abc import Generator
from functools import partial
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import digits
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request
from gateway.management.http.routes import Fields, Pieces, Routes, Streamed
from gateway.management.views.json import encode

routes = Routes()

#: The time between two polls for new lines and events, in seconds.
INTERVAL_S: Final = 0.2

#: An empty line is sent after this many polls without anything new, so that a lost client is noticed.
_POLLS_BEFORE_SIGN: Final = 50

#: Lines returned without the parameter ``lines``, as by RabbitMQ's log_tail.
_LINES: Final = 50

_JSON_LINES: Final = "application/x-ndjson"


@routes.get("/log", level=AccessLevel.ADMINISTRATOR)
def log(call: Call) -> Fields:
    """Return the latest lines of the log, oldest first, and where the log is written."""
    wanted = digits(call.query.get("lines", str(_LINES)))
    if wanted is None or wanted < 1:
        raise bad_request("'lines' must be a whole number, 1 or more")
    _, lines = call.control.log_lines(0)
    return {"files": list(call.control.log_files()), "lines": list(lines[-wanted:])}


@routes.post("/log/rotate", level=AccessLevel.ADMINISTRATOR)
def rotate(call: Call) -> Fields:
    """Rename the log file and begin a new one."""
    return dict(call.control.rotate_log(call.principal.name))


@routes.get("/log/stream", level=AccessLevel.ADMINISTRATOR)
def log_stream(call: Call) -> Streamed:
    """Stream log lines as they are written, as text."""
    return Streamed(_log_lines(call, _duration_of(call)), "text/plain; charset=utf-8")


@routes.get("/events/stream", level=AccessLevel.ADMINISTRATOR)
def event_stream(call: Call) -> Streamed:
    """Stream events as they happen, one JSON object a line; an empty line only shows that the stream is alive."""
    return Streamed(_events(call, _duration_of(call)), _JSON_LINES)


def _duration_of(call: Call) -> float | None:
    """Return the length of a stream in seconds; ``None`` if it has no end."""
    given = call.query.get("duration", "infinity")
    seconds = digits(given)
    if given == "infinity":
        return None
    if seconds is None or seconds < 0:
        raise bad_request("'duration' must be a number of seconds, or infinity")
    return float(seconds)


def _log_lines(call: Call, duration_s: float | None) -> Pieces:
    last, _ = call.control.log_lines(0)
    yield b"\n"  # the head of the response is sent with the first bytes
    for wait in _polls(call, duration_s):
        last, lines = call.control.log_lines(last)
        yield "".join(f"{line}\n" for line in lines).encode(errors="replace") or (b"\n" if wait.is_sign_due else b"")
        wait.has_sent = bool(lines)
        yield wait.again()


def _events(call: Call, duration_s: float | None) -> Pieces:
    feed = call.control.events()
    try:
        yield b"\n"
        for wait in _polls(call, duration_s):
            wait.has_sent = False
            for event in feed.take():
                wait.has_sent = True
                yield encode(event) + b"\n"
            if wait.is_sign_due and not wait.has_sent:
                yield b"\n"
            yield wait.again()
    finally:
        feed.close()


class _Wait:
    """The pauses between the polls of one stream."""

    def __init__(self, call: Call) -> None:
        self.again = partial(_pause, call)
        self.has_sent = False
        self._idle_polls = 0

    @property
    def is_sign_due(self) -> bool:
        """Whether nothing was sent for so long that a sign of life is due."""
        return self._idle_polls >= _POLLS_BEFORE_SIGN

    def count(self) -> None:
        """Count the last poll."""
        self._idle_polls = 0 if self.has_sent or self.is_sign_due else self._idle_polls + 1


def _polls(call: Call, duration_s: float | None) -> Generator[_Wait, None, None]:
    """Yield before each poll until the stream ends."""
    clock = call.broker.clock
    ends_s = None if duration_s is None else clock.monotonic_s() + duration_s
    wait = _Wait(call)
    while True:
        yield wait
        wait.count()
        if ends_s is not None and clock.monotonic_s() >= ends_s:
            return


def _pause(call: Call) -> "Deferred[None]":
    return deferLater(call.context.reactor, INTERVAL_S)
