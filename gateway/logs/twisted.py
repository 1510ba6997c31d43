"""Forwards Twisted's log events and unhandled errors to the gateway's log."""

import logging
from typing import Any, Final

from twisted.logger import LogEvent, STDLibLogObserver, globalLogBeginner

#: The text of an error that Twisted reports without one.
_NO_REASON: Final = "unhandled error"


def bridge_twisted() -> None:
    """Send Twisted's log to the standard library's logger ``twisted``. Called once, before the reactor runs.

    The standard streams are not redirected: the broker prints messages for the operator there.
    """
    forward: Any = STDLibLogObserver()  # Any: implemented by zope.interface

    def observe(event: LogEvent) -> None:
        forward(with_traceback(event))

    globalLogBeginner.beginLoggingTo([observe], redirectStandardIO=False)  # type: ignore[list-item]  # a callable is enough
    logging.getLogger("twisted").setLevel(logging.WARNING)  # the broker logs its own start and stop


def with_traceback(event: LogEvent) -> LogEvent:
    """Return an event whose error has a traceback of its own.

    ``twisted.python.log.err`` puts the traceback into the text, and a long text is cut before the error itself.
    """
    if "failure" not in event or "log_failure" in event:
        return event
    reason = event.get("why") or _NO_REASON
    return {**event, "log_failure": event["failure"], "log_format": "{why}", "why": reason}
