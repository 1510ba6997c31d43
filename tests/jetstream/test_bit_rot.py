"""Bits flip in one or two copies of a log: a replay notices it, and reads another copy."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.cluster.log_replay import LogRecord, replay
from gateway.cluster.queue_log import QueueId
from gateway.testing.cluster.queue_logs import OwnedLog
from gateway_jetstream.errors import NatsError
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.jetstream.publishing import JetStreamPublisher
from gateway_jetstream.jetstream.push_consumer import PushConsumer
from gateway_jetstream.jetstream.stream_message import StreamMessage
from gateway_jetstream.ports.copies import Copies
from gateway_jetstream.ports.layout import REPLICAS
from gateway_jetstream.ports.queue_logs import JetStreamQueueLogs
from tests.jetstream.nats_servers import NatsServers
from tests.jetstream.places import JetStreamPlace

#: The records that are damaged, and the number of all. They fill several files of a server: damage in the last one is
#: repaired by the server itself, because then it lacks the end.
_DAMAGED = (20, 60)
_RECORDS = 100
_FILLER = bytes(200_000)


def text_of(at: int) -> bytes:
    return b"record-%d-of-a-log-that-rots" % at


def record_of(at: int) -> bytes:
    return text_of(at) + _FILLER


def flip_bit(store: Path, text: bytes) -> int:
    """Flip a bit of a text in the files of a server; return how often it was there."""
    count = 0
    for path in store.rglob("*.blk"):
        data = bytearray(path.read_bytes())
        at = data.find(text)
        if at >= 0:
            data[at + len(text) - 1] ^= 1
            path.write_bytes(data)
            count += 1
    return count


def read_from(place: JetStreamPlace, stream: str, subject: str, server: str) -> list[StreamMessage]:
    """Return the messages of a subject that one server delivers: it may stop at the damage."""
    found: list[StreamMessage] = []
    is_current: list[bool] = []
    consumer = PushConsumer(
        JetStreamApi(place.client()),
        place.loop.reactor,
        stream,
        [subject],
        found.append,
        start={"deliver_policy": "all"},
        on_current=lambda: is_current.append(True),
        accepts=lambda name: name == server,
        shuns=lambda name: name != server,
    )
    is_late: list[bool] = []
    place.clock.call_later(5.0, lambda: is_late.append(True))
    place.until(lambda: is_current or is_late)
    source = consumer.source
    consumer.stop()
    assert source == server
    return found


def followers(place: JetStreamPlace, stream: str) -> list[str]:
    """Return the names of all followers, once their copies are complete.

    During an election a server that no longer leads answers without its own name.
    """
    found: list[str] = []
    api = JetStreamApi(place.client())

    def are_complete() -> bool:
        try:
            cluster = place.run(api.call(f"STREAM.INFO.{stream}"))["cluster"]
        except NatsError:
            return False
        others = [each for each in cluster.get("replicas", ()) if each["name"] != cluster.get("leader")]
        found[:] = [each["name"] for each in others]
        return len(others) == REPLICAS - 1 and all(each["current"] and not each.get("lag") for each in others)

    place.until(are_complete)
    return found


def rot(servers: NatsServers, name: str, texts: list[bytes]) -> None:
    """Flip a bit of each text in the copy of a server."""
    server = servers.named(name)
    server.stop()
    for text in texts:
        assert flip_bit(server.store, text) >= 1, "the record is not in the files of the server"
    server.start()
    servers.wait_until_ready()


def move_leader(place: JetStreamPlace, stream: str, name: str) -> None:
    """Make a server the leader of a stream."""

    def leads() -> bool:
        if place.leader_of(stream) == name:
            return True
        place.run(
            JetStreamApi(place.client()).call(f"STREAM.LEADER.STEPDOWN.{stream}", {"placement": {"preferred": name}})
        )
        return False

    place.until(leads)


def written_log(place: JetStreamPlace) -> OwnedLog:
    """Return a log with all records, each once."""
    log = OwnedLog(place, place.new_queue())
    for at in range(_RECORDS):
        log.append(record_of(at))
    return log


def replayed(place: JetStreamPlace, log: OwnedLog, first: str) -> tuple[list[LogRecord], list[str]]:
    """Replay a log, from the copy of one server first; return its records, and the servers that were read from."""
    client = place.client()
    api = JetStreamApi(client)
    copies = FirstFrom(api, place.loop.reactor, first)
    logs = JetStreamQueueLogs(api, JetStreamPublisher(client), place.loop.reactor, place.cluster().layout, copies)
    records: list[LogRecord] = []
    claim = place.run(logs.claim(log.claim.queue, "later", log.claim.epoch))
    place.run(replay(logs, claim, records.append))
    return records, copies.reads


def assert_whole(records: list[LogRecord]) -> None:
    assert [record.index for record in records] == list(range(1, _RECORDS + 1))
    assert [record.payload[: -len(_FILLER)] for record in records] == [text_of(at) for at in range(_RECORDS)]


class FirstFrom(Copies):
    """Reads from one server first, and then as always."""

    def __init__(self, api: JetStreamApi, reactor: Any, server: str) -> None:
        super().__init__(api, reactor)
        self._first = server
        self.reads: list[str] = []

    async def wished(self, stream: str, queue: QueueId) -> Callable[[str], bool]:
        if not self.reads:
            return lambda server: server == self._first
        return await super().wished(stream, queue)

    def note_read(self, queue: QueueId, server: str) -> None:
        super().note_read(queue, server)
        self.reads.append(server)


def test_what_one_copy_lost_is_read_from_another(place: JetStreamPlace, servers: NatsServers) -> None:
    log = written_log(place)
    layout = place.cluster().layout
    stream, subject = layout.stream(log.claim.queue), layout.log_subject(log.claim.queue)
    damaged = followers(place, stream)[0]
    rot(servers, damaged, [text_of(at) for at in _DAMAGED])
    move_leader(place, stream, damaged)
    assert len(read_from(place, stream, subject, damaged)) < _RECORDS, "the server repaired its copy: nothing is tested"

    records, reads = replayed(place, log, damaged)
    assert reads[0] == damaged
    assert damaged not in reads[1:], "the damaged copy was read again"
    assert place.leader_of(stream) != damaged, "the damaged copy still leads"
    assert_whole(records)


def test_what_two_copies_lost_is_read_from_the_third(place: JetStreamPlace, servers: NatsServers) -> None:
    """The leader has the last whole copy: it is moved, although it was moved just before, and its copy is read."""
    log = written_log(place)
    stream = place.cluster().layout.stream(log.claim.queue)
    damaged = followers(place, stream)
    for name, at in zip(damaged, _DAMAGED, strict=True):
        rot(servers, name, [text_of(at)])

    records, reads = replayed(place, log, damaged[0])
    assert reads[-1] not in damaged
    assert_whole(records)
