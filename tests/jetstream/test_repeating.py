"""Reads are repeated while a stream has no leader: its servers give no answer at all then."""

import base64
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from gateway.cluster.errors import Outdated, Unanswered
from gateway.cluster.metadata import NEVER, MetadataEntry, Revision
from gateway_jetstream.errors import (
    ApiError,
    Disconnected,
    MessageNotFound,
    NatsError,
    NoResponders,
    RequestTimedOut,
    WrongLastSequence,
)
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.jetstream.publishing import MESSAGE_ID, PublishAck, StreamPublisher
from gateway_jetstream.ports.layout import Layout
from gateway_jetstream.ports.metadata import JetStreamMetadata
from gateway_jetstream.ports.repeating import ATTEMPTS_S, PAUSE_S

KEY = ("cluster",)
SILENT = RequestTimedOut("no answer within 2 s")
REFUSED = WrongLastSequence("wrong last sequence: 7", code=10071)


class Servers(JetStreamApi):
    """Answers a request for the last message of a subject with errors first, then with a message."""

    def __init__(self, *errors: NatsError, header: bytes = b"") -> None:
        self.errors = list(errors)
        self.asked: list[str] = []
        self.header = header

    async def call(
        self, subject: str, body: Mapping[str, Any] | None = None, timeout_s: float | None = None
    ) -> dict[str, Any]:
        self.asked.append(subject)
        if self.errors:
            raise self.errors.pop(0)
        assert body is not None
        fields = {"subject": body["last_by_subj"], "seq": 7, "data": base64.b64encode(b"value").decode()}
        return {"message": fields | {"hdrs": base64.b64encode(self.header).decode()}}


class Publisher(StreamPublisher):
    """Refuses each write after those without an answer. ``servers`` have stored the first one if it is ``stored``."""

    def __init__(self, servers: Servers, *silent: NatsError, stored: bool = False) -> None:
        self.silent = list(silent)
        self._servers = servers
        self._stored = stored

    def send(
        self,
        subject: str,
        payload: bytes,
        fields: dict[str, str],
        timeout_s: float,
        published: Callable[[PublishAck | NatsError], None],
    ) -> None:
        if self._stored:
            self._servers.header = f"NATS/1.0\r\n{MESSAGE_ID}: {fields[MESSAGE_ID]}\r\n\r\n".encode()
        published(self.silent.pop(0) if self.silent else REFUSED)


def ended(work: Coroutine[Any, Any, Any], clock: Clock) -> Any:
    """Return what a coroutine returns once its pauses are over."""
    result: list[Any] = []
    Deferred.fromCoroutine(work).addBoth(result.append)
    clock.pump([PAUSE_S] * int(2 * ATTEMPTS_S / PAUSE_S))
    assert not clock.getDelayedCalls()
    (found,) = result
    return found.value if isinstance(found, Failure) else found


def metadata(servers: Servers, clock: Clock, publisher: Publisher | None = None) -> JetStreamMetadata:
    return JetStreamMetadata(servers, publisher or Publisher(servers), clock, Layout(1))


@pytest.mark.parametrize("kind", [NoResponders, RequestTimedOut, Disconnected])
def test_a_key_is_read_once_a_leader_answers(kind: type[NatsError]) -> None:
    servers, clock = Servers(kind("no answer"), kind("no answer")), Clock()
    found = ended(metadata(servers, clock).get(KEY), clock)
    assert isinstance(found, MetadataEntry)
    assert (found.key, found.revision, len(servers.asked)) == (KEY, 7, 3)


def test_a_key_that_no_leader_answers_for_is_unanswered_in_the_end() -> None:
    servers, clock = Servers(*[SILENT] * 1_000), Clock()
    found = ended(metadata(servers, clock).get(KEY), clock)
    assert isinstance(found, Unanswered)
    assert "no answer within 2 s" in str(found)
    assert ATTEMPTS_S / PAUSE_S <= len(servers.asked) <= ATTEMPTS_S / PAUSE_S + 2


@pytest.mark.parametrize("error", [MessageNotFound("no message found"), ApiError("not authorized", code=10001)])
def test_a_refused_read_is_not_repeated(error: NatsError) -> None:
    servers, clock = Servers(error), Clock()
    found = ended(metadata(servers, clock).get(KEY), clock)
    assert found is None if isinstance(error, MessageNotFound) else isinstance(found, Unanswered)
    assert len(servers.asked) == 1


def test_a_write_without_an_answer_that_was_stored_is_found_once_a_leader_answers() -> None:
    servers, clock = Servers(SILENT, SILENT), Clock()
    publisher = Publisher(servers, SILENT, stored=True)
    assert ended(metadata(servers, clock, publisher).put(KEY, b"value", NEVER), clock) == Revision(7)


def test_a_write_without_an_answer_that_was_not_stored_is_outdated_once_a_leader_answers() -> None:
    servers, clock = Servers(SILENT, SILENT), Clock()
    publisher = Publisher(servers, SILENT)
    assert isinstance(ended(metadata(servers, clock, publisher).put(KEY, b"value", NEVER), clock), Outdated)
