"""Clients that publish and consume until their broker dies, each on a thread and a connection of its own."""

from collections import deque
from collections.abc import Sequence
from threading import Event, Thread
from typing import Any, Final

import pika
from pika.channel import Channel
from pika.spec import Basic

from tests.durability.expected import Account, Key, body, properties
from tests.interop.broker import Broker
from tests.interop.pika_client import parameters

#: Deliveries a consumer may hold; it acknowledges half as many at a time.
PREFETCH: Final = 40


class Client(Thread):
    """One connection and channel, served until the connection ends, however it does.

    ``is_busy`` is set once the client got its first answer.
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
        except BaseException as failure:  # handed to the thread that asks, see ``ended``
            self.failure = failure

    def ended(self) -> None:
        """Wait for the end of the connection, and raise what went wrong in the client."""
        self.join(10)
        assert not self.is_alive(), "a client does not notice that its broker is gone"
        if self.failure is not None:
            raise self.failure

    def opened(self, channel: Channel) -> None:
        """Begin; for subclasses to say what."""
        raise NotImplementedError


class Publisher(Client):
    """Publishes with confirms as fast as the window allows, and books what was sent and what was confirmed.

    ``window`` is how many confirms it waits for at a time.
    """

    def __init__(
        self,
        broker: Broker,
        name: str,
        first: int,
        exchange: str,
        key: str,
        accounts: Sequence[Account],
        window: int,
    ) -> None:
        super().__init__(broker)
        self._window = window
        self.name = name
        self.next_number = first
        self._exchange = exchange
        self._key = key
        self._accounts = accounts
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
            for account in self._accounts:
                account.sent.add(key)
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
            for account in self._accounts:
                account.owed.add(key)
        self.is_busy.set()
        self._publish()


class Consumer(Client):
    """Acknowledges what it gets, and learns what of that is durable by a confirmed mark published behind it.

    A message is ``settling`` from just before its acknowledgement is sent, and ``gone`` when a mark published after
    that on the same channel was confirmed: the broker works channels off in order, and its log too.
    """

    def __init__(self, broker: Broker, queue: str, account: Account) -> None:
        super().__init__(broker)
        self._queue = queue
        self._account = account
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
            self._account.settling.update(self._held)
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
            self._account.gone.update(keys)
            self._account.settling.difference_update(keys)
        self.is_busy.set()
