"""Kills of a broker with streams under load: no confirmed message is lost or duplicated.

Offsets have no gaps and never refer to another message later, and a named consumer misses nothing.
"""

from typing import Final

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.channel import Channel
from pika.spec import Basic

from tests.broker.conftest import Connect
from tests.durability.crash_trial import CrashTrial
from tests.durability.expected import Key, body, properties
from tests.durability.load import PREFETCH, Client
from tests.durability.test_killed_under_load import contents
from tests.interop.broker import Broker
from tests.running import Gateway

KILLS: Final = 12

#: Small, so that many segments are sealed and moved into files between two kills.
SEGMENT_BYTES: Final = 200_000

NAME: Final = "reader"

#: The size limit of the bounded stream.
MOST_BYTES: Final = 2_000_000


class Reader(Client):
    """Reads a stream as a named consumer, acknowledges in blocks, and sometimes cancels and consumes again.

    ``seen`` maps offsets to messages for all readers so far; ``acknowledged`` is the last offset up to which everything
    was acknowledged; ``started_at`` is the first offset of this reader.
    """

    def __init__(self, broker: Broker, stream: str, seen: dict[int, Key], acknowledged: int) -> None:
        super().__init__(broker)
        self._stream = stream
        self._is_new = True
        self.seen = seen
        self.acknowledged = acknowledged
        self.started_at: int | None = None

    def opened(self, channel: Channel) -> None:
        channel.basic_qos(prefetch_count=PREFETCH)
        self._consume(channel)

    def _consume(self, channel: Channel) -> None:
        self._is_new = True
        arguments = {"x-stream-consumer": NAME}
        self._tag = channel.basic_consume(
            self._stream, self._delivered, arguments=arguments, callback=lambda _frame: self.is_busy.set()
        )

    def _delivered(self, channel: Channel, method: Basic.Deliver, props: pika.BasicProperties, content: bytes) -> None:
        assert props.headers is not None
        offset = props.headers["x-stream-offset"]
        key = Key.of(props)
        assert content == body(key)
        assert self.seen.setdefault(offset, key) == key, f"offset {offset} was {self.seen[offset]}, and is {key} now"
        if self.started_at is None:
            self.started_at = offset
        elif self._is_new:
            assert offset == self.acknowledged + 1, "a consumer must resume after its last acknowledgement"
        self._is_new = False
        if method.delivery_tag % (PREFETCH // 2) == 0:
            channel.basic_ack(method.delivery_tag, multiple=True)
            self.acknowledged = offset
            if method.delivery_tag % (2 * PREFETCH) == 0:
                channel.basic_cancel(self._tag, callback=lambda _frame: self._consume(channel))


def log_of(channel: BlockingChannel, stream: str) -> list[tuple[int, Key]]:
    """Read a whole stream; return offsets and messages."""
    count = channel.queue_declare(stream, passive=True).method.message_count
    channel.basic_qos(prefetch_count=5000)
    found: list[tuple[int, Key]] = []
    deliveries = channel.consume(stream, inactivity_timeout=5, arguments={"x-stream-offset": "first"})
    for _, (method, props, content) in zip(range(count), deliveries, strict=False):
        assert method is not None, "the stream contains fewer messages than it reports"
        assert props.headers is not None
        key = Key.of(props)
        assert content == body(key), f"{key} has another body"
        found.append((props.headers["x-stream-offset"], key))
        channel.basic_ack(method.delivery_tag)
    channel.cancel()
    channel.basic_qos(prefetch_count=0)  # the next consumer of the channel acknowledges nothing
    offsets = [offset for offset, _ in found]
    assert offsets == list(range(offsets[0], offsets[0] + count)) if found else True, "offsets have gaps"
    return found


class StreamTrial(CrashTrial):
    """Streams, and a reader of one of them.

    ``log`` and the queue ``beside`` are bound to one fanout exchange; ``bounded`` has a size limit.
    """

    def __init__(self, gateway: Gateway, connect: Connect) -> None:
        super().__init__(gateway, connect, ("log", "beside", "bounded"))
        self.seen: dict[int, Key] = {}
        self.acknowledged = 0
        self.started_at: list[int] = []

    def declare(self) -> None:
        channel = self.connect().channel()
        kind = {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": SEGMENT_BYTES}
        channel.exchange_declare("both", "fanout", durable=True)
        channel.queue_declare("log", durable=True, arguments=kind)
        channel.queue_declare("bounded", durable=True, arguments={**kind, "x-max-length-bytes": MOST_BYTES})
        channel.queue_declare("beside", durable=True)
        channel.queue_bind("log", "both")
        channel.queue_bind("beside", "both")
        self._read_first(channel)

    def _read_first(self, channel: BlockingChannel) -> None:
        """Read the first message, so that an offset is stored from then on."""
        key = Key("z", 0)
        channel.confirm_delivery()
        channel.basic_publish("", "log", body(key), properties(key))
        self.expectations["log"].sent.add(key)
        channel.basic_qos(prefetch_count=1)
        asked = {"x-stream-consumer": NAME, "x-stream-offset": "first"}
        method, *_ = next(channel.consume("log", arguments=asked))
        assert method is not None
        channel.basic_ack(method.delivery_tag)
        channel.cancel()
        channel.queue_declare("mark", durable=True)  # when this is durable, the offset is too
        self.seen[0], self.acknowledged = key, 0

    def clients(self) -> list[Client]:
        self._reader = Reader(self.gateway.broker, "log", self.seen, self.acknowledged)
        return [
            self.publisher("a", "both", "", ["log", "beside"], window=60),
            self.publisher("b", "both", "", ["log", "beside"], window=2),
            self.publisher("c", "", "log", ["log"], window=100),
            self.publisher("d", "", "bounded", ["bounded"], window=100),
            self._reader,
        ]

    def audit(self) -> None:
        channel = self.connect().channel()
        logged = log_of(channel, "log")
        self.expectations["log"].audit(key for _, key in logged)
        self.expectations["beside"].audit(contents(channel, "beside"))
        fanned_out = {key for _, key in logged if key.publisher in "ab"}
        assert fanned_out == self.expectations["beside"].required, "only half of a publish was stored"
        self._audit_start()
        self._audit_seen(dict(logged))
        self._audit_bounded(log_of(channel, "bounded"))
        channel.connection.close()

    def _audit_start(self) -> None:
        """The reader started no later than after its last acknowledged message."""
        reader = self._reader
        if reader.started_at is not None:
            assert reader.started_at <= self.acknowledged + 1, "unacknowledged messages were skipped"
            self.started_at.append(reader.started_at)
        self.acknowledged = max(self.acknowledged, reader.acknowledged)

    def _audit_seen(self, logged: dict[int, Key]) -> None:
        assert not logged or min(logged) == 0
        changed = [offset for offset, key in self.seen.items() if logged.get(offset) != key]
        assert not changed, f"these offsets had other messages before: {changed[:5]}"

    def _audit_bounded(self, found: list[tuple[int, Key]]) -> None:
        """Only the oldest messages are removed: missing ones are older than all existing ones."""
        expected = self.expectations["bounded"]
        keys = [key for _, key in found]
        oldest = {publisher: [key.number for key in keys if key.publisher == publisher][:1] for publisher in "d"}
        removed = {key for key in expected.required if [key.number] < oldest[key.publisher]}
        expected.required -= removed
        expected.audit(keys)


@pytest.mark.timeout(300)
def test_streams_survive_being_killed(gateway: Gateway, connect: Connect) -> None:
    trial = StreamTrial(gateway, connect)
    trial.survive(KILLS, within_s=0.4)
    assert len(trial.seen) > 500, "too little was read for a meaningful result"
    assert trial.started_at[-1] > 0, "a reader never resumed at a later offset"
    files = sorted((gateway.data / "streams").glob("*/*.chunks"))
    assert len({path.parent for path in files}) == 2, "segments were not moved into files"
    assert not list((gateway.data / "streams").glob("*/*.tmp")), "unfinished files were left"
