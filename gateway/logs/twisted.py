"""What Twisted has to say goes into the same log: its own events, and errors nobody looked at."""

import logging

from twisted.logger import ILogObserver, STDLibLogObserver, globalLogBeginner


def bridge_twisted() -> None:
    """Send Twisted's log to the standard library's, under the name ``twisted``. Called once, before the reactor runs.

    The standard streams stay what they are: what we print there is for the operator.
    """
    observer: ILogObserver = STDLibLogObserver()  # type: ignore[assignment]  # declared by zope.interface, unseen by mypy
    globalLogBeginner.beginLoggingTo([observer], redirectStandardIO=False)
    logging.getLogger("twisted").setLevel(logging.WARNING)  # what starts and stops, we say ourselves
