"""A SelectConnection driven by a generator, so that a callback API reads as a dialogue."""

from collections.abc import Callable, Generator
from typing import Any

import pika
from pika.channel import Channel

from tests.interop.amqp_clients.pika_client import ARRIVAL_TIMEOUT_S, parameters
from tests.interop.broker import Broker

#: Starts an operation and passes it the given callback.
Step = Callable[[Callable[..., None]], object]
Dialogue = Callable[[Channel], Generator[Step, Any, None]]


class Conversation:
    """One connection and channel; resumes the dialogue with the arguments of each step's callback.

    A step whose callback receives nothing resumes with ``()``, one value with
    that value, several with a tuple. The channel or connection closed by the
    broker is raised inside the dialogue.
    """

    def __init__(self, broker: Broker, dialogue: Dialogue) -> None:
        self._dialogue = dialogue
        self._steps: Generator[Step, Any, None] | None = None
        self._failure: BaseException | None = None
        self._connection = pika.SelectConnection(
            parameters(broker),
            on_open_callback=self._opened,
            on_open_error_callback=lambda _connection, error: self._end(error),
            on_close_callback=self._closed,
        )

    def run(self) -> None:
        """Run the dialogue to its end, with a time limit, and raise its exception."""
        loop = self._connection.ioloop
        timer = loop.call_later(ARRIVAL_TIMEOUT_S, lambda: self._end(TimeoutError("the dialogue did not end")))
        loop.start()
        loop.remove_timeout(timer)
        if self._failure is not None:
            raise self._failure

    def _opened(self, connection: pika.SelectConnection) -> None:
        connection.channel(on_open_callback=self._channel_opened)

    def _channel_opened(self, channel: Channel) -> None:
        channel.add_on_close_callback(lambda _channel, reason: self._resume(error=reason))
        self._steps = self._dialogue(channel)
        self._resume(None)

    def _closed(self, _connection: pika.SelectConnection, reason: BaseException) -> None:
        self._connection.ioloop.stop()

    def _resume(self, value: Any = None, error: BaseException | None = None) -> None:
        if self._steps is None:
            return
        try:
            step = self._steps.send(value) if error is None else self._steps.throw(error)
            step(lambda *results: self._resume(results[0] if len(results) == 1 else results))
        except StopIteration:
            self._end(None)
        except BaseException as failure:  # any exception of the dialogue, also an assertion, ends the test
            self._end(failure)

    def _end(self, failure: BaseException | None) -> None:
        self._steps = None
        self._failure = self._failure or failure
        if self._connection.is_open:
            self._connection.close()
        else:
            self._connection.ioloop.stop()
