"""Forwards Twisted's log events and unhandled errors to the gateway's log."""

import logging

from twisted.logger import ILogObserver, STDLibLogObserver, globalLogBeginner


def bridge_twisted() -> None:
    """Send Twisted's log to the standard library's logger ``twisted``. Called once, before the reactor runs.

    The standard streams are not redirected: the broker prints messages for the operator there.
    """
    observer: ILogObserver = STDLibLogObserver()  # type: ignore[assignment]  # implemented by zope.interface
    globalLogBeginner.beginLoggingTo([observer], redirectStandardIO=False)
    logging.getLogger("twisted").setLevel(logging.WARNING)  # the broker logs its own start and stop
