"""The channel of a bridge: calls that are cancelled while its link is stopped."""

from collections.abc import Callable
from typing import Any

import pytest
from pika.exceptions import ChannelClosedByClient
from twisted.internet.defer import CancelledError, Deferred

from gateway.bridges.amqp_connection import AmqpChannel


class FakeWire:
    """pika's channel below: a test answers the declaration and closes it."""

    def __init__(self) -> None:
        self.answer: Callable[[object], None] = lambda answer: None
        self.close: Callable[[Any, Exception], None] = lambda channel, reason: None

    def add_callback(self, *_: object) -> None:
        """Ignore the callback of an empty get."""

    def add_on_cancel_callback(self, *_: object) -> None:
        """Ignore the callback of a cancelled consumer."""

    def add_on_close_callback(self, callback: Callable[[Any, Exception], None]) -> None:
        """Keep what is called at the end."""
        self.close = callback

    def queue_declare(self, *, callback: Callable[[object], None], **_: object) -> None:
        """Keep what is called with the answer."""
        self.answer = callback


def failure_of(call: Deferred[Any]) -> list[BaseException]:
    failures: list[BaseException] = []
    call.addErrback(lambda failure: failures.append(failure.value))
    return failures


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_channel_closes_after_a_call_was_cancelled(is_answered: bool) -> None:
    wire = FakeWire()
    channel = AmqpChannel(wire)
    cancelled, waiting = channel.queue_declare("a"), Deferred[Any]()
    channel._calls.add(waiting)
    failures = failure_of(cancelled), failure_of(waiting)
    cancelled.cancel()
    if is_answered:
        wire.answer("declared")
    reason = ChannelClosedByClient(200, "Normal shutdown")
    wire.close(channel, reason)
    assert isinstance(failures[0][0], CancelledError)
    assert failures[1] == [reason]
