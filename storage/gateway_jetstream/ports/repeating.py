"""Requests that are repeated while servers start, elect a leader, or are busy."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from twisted.internet.defer import Deferred

from gateway_jetstream.errors import Disconnected, NatsError, NoPeers, NoResponders, RequestTimedOut

T = TypeVar("T")

#: The time limits of one attempt and of all of them, and the pause between two, in seconds.
ATTEMPT_S: Final = 2.0
ATTEMPTS_S: Final = 15.0
PAUSE_S: Final = 0.1

#: What passes by itself. A stream without a leader gives no answer at all, so a request is lost and not only late.
PASSING: Final[tuple[type[NatsError], ...]] = (NoPeers, NoResponders, RequestTimedOut, Disconnected)


async def repeated(
    reactor: Any,  # Any: Twisted's interfaces are not types
    request: Callable[[], Awaitable[T]],
    *,
    limit_s: float = ATTEMPTS_S,
    pause_s: float = PAUSE_S,
) -> T:
    """Return the answer to a request, which does no harm if it is carried out twice.

    :raises NatsError: if it is refused, or if no attempt within ``limit_s`` has an answer: the error of the last one.
    """
    ends_s = reactor.seconds() + limit_s
    while True:
        try:
            return await request()
        except PASSING:
            if reactor.seconds() >= ends_s:
                raise
            await pause(reactor, pause_s)


def pause(reactor: Any, seconds: float) -> "Deferred[None]":  # Any: as above
    """Wait."""
    waiting: Deferred[None] = Deferred(lambda deferred: call.cancel())
    call = reactor.callLater(seconds, waiting.callback, None)
    return waiting
