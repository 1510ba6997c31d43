"""Clients that publish and consume until their broker is killed, each with a thread and a connection."""

from collections import deque
from collections.abc import Sequence
from threading import Event, Thread
from typing import Any, Final

import pika
from pika.channel import Channel
from pika.spec import Basic

from tests.durability.expected import ExpectedMessages, Key, body, properties
from tests.interop.amqp_clients.pika_client import parameters
from tests.interop.broker import Broker

#: The prefetch of a consumer; it acknowledges half as many at a time.
PREFETCH: Final = 40


class Client(Thread):
    """One connection with one channel, served until the connection ends.

    ``is_busy`` is set after the first answer.
    """

    def __init__(self, broker: Broker) -> None:
        super().__init__(daemon=True)
        self.is_busy = Event()
        self.failure: BaseException | None = None
        self._broker = broker

    def run(self) -> None:
        try:
            connection = pika.SelectConnection(
                parameters(self._broker),
                on_open_callback=lambda opened: opened.channel(on_open_callback=self.opened),
                on_open_error_callback=lambda failed, _reason: failed.ioloop.stop(),
                on_close_callback=lambda closed, _reason: closed.ioloop.stop(),
            )
            connection.ioloop.start()
        except BaseException as failure:  # raised by ``ended``
            self.failure = failure

    def ended(self) -> None:
        """Wait for the end of the connection, and raise an error of the client."""
        self.join(10)
        assert not self.is_alive(), "a client does not notice that its broker is gone"
        if self.failure is not None:
            raise self.failure

    def opened(self, channel: Channel) -> None:
        """Start; implemented by subclasses."""
        raise NotImplementedError


class Publisher(Client):
    """Publishes with confirms as fast as the window allows; records sent and confirmed messages.

    ``window`` is the maximum number of unconfirmed messages.
    """

    def __init__(
        self,
        broker: Broker,
        name: str,
        first: int,
        exchange: str,
        key: str,
        expectations: Sequence[ExpectedMessages],
        window: int,
    ) -> None:
        super().__init__(broker)
        self._window = window
        self.name = name
        self.next_number = first
        self._exchange = exchange
        self._key = key
        self._expectations = expectations
        self._waiting: deque[tuple[int, Key]] = deque()
        self._tag = 0

    def opened(self, channel: Channel) -> None:
        self._channel = channel
        channel.confirm_delivery(self._answered, callback=lambda _frame: self._publish())

    def _publish(self) -> None:
        while len(self._waiting) < self._window and self._channel.is_open:
            key = Key(self.name, self.next_number)
            self.next_number += 1
            self._tag += 1
            self._waiting.append((self._tag, key))
            for expected in self._expectations:
                expected.sent.add(key)
            self._channel.basic_publish(self._exchange, self._key, body(key), properties(key))

    def _answered(self, frame: Any) -> None:  # Any: pika's frame around an ack or a nack
        answer = frame.method
        assert isinstance(answer, Basic.Ack), "nothing may be refused here"
        assert self._waiting, "more is confirmed than was published"
        assert answer.delivery_tag >= self._waiting[0][0], "confirmed twice"
        while self._waiting and self._waiting[0][0] <= answer.delivery_tag:
            tag, key = self._waiting[0]
            if tag != answer.delivery_tag and not answer.multiple:
                break
            self._waiting.popleft()
            for expected in self._expectations:
                expected.required.add(key)
        self.is_busy.set()
        self._publish()


class Consumer(Client):
    """Acknowledges deliveries, and detects durable acknowledgements by a confirmed marker message.

    A message is ``settling`` from before its acknowledgement is sent, and ``removed`` once a marker published later on
    the channel is confirmed: the broker processes a channel in order, and its log too.
    """

    def __init__(self, broker: Broker, queue: str, expected: ExpectedMessages) -> None:
        super().__init__(broker)
        self._queue = queue
        self._expected = expected
        self._held: list[Key] = []
        self._marked: deque[list[Key]] = deque()
        self._confirmed_tag = 0

    def opened(self, channel: Channel) -> None:
        self._channel = channel
        channel.basic_qos(prefetch_count=PREFETCH)
        channel.confirm_delivery(self._confirmed, callback=lambda _frame: self._consume())

    def _consume(self) -> None:
        self._channel.basic_consume(self._queue, self._delivered)

    def _delivered(self, channel: Channel, method: Basic.Deliver, props: pika.BasicProperties, content: bytes) -> None:
        key = Key.of(props)
        assert content == body(key)
        self._held.append(key)
        if len(self._held) == PREFETCH // 2:
            self._expected.settling.update(self._held)
            channel.basic_ack(method.delivery_tag, multiple=True)
            channel.basic_publish("", "marks", b"", pika.BasicProperties(delivery_mode=2))
            self._marked.append(self._held)
            self._held = []

    def _confirmed(self, frame: Any) -> None:  # Any: pika's frame around an ack or a nack
        answer = frame.method
        assert isinstance(answer, Basic.Ack), "nothing may be refused here"
        assert answer.multiple or answer.delivery_tag == self._confirmed_tag + 1, "marks are confirmed in order"
        while self._confirmed_tag < answer.delivery_tag:
            self._confirmed_tag += 1
            keys = self._marked.popleft()
            self._expected.removed.update(keys)
            self._expected.settling.difference_update(keys)
        self.is_busy.set()
