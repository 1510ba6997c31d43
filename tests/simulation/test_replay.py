"""Replays of recordings: the same dialogue each time, and the answers that differ."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pamqp import commands, frame, header
from pamqp.body import ContentBody

from gateway.kernel.errors import ConfigurationError
from gateway.recording.lines import RecordedEvent, event_line, head_line
from gateway.simulation.replay.run import replay

#: The random part of a name that the recorded broker chose; no replay chooses it again.
NAME = "recorded-name-recorded"
QUEUE = f"amq.gen-{NAME}"

Write = Callable[[Iterable[RecordedEvent]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(events: Iterable[RecordedEvent]) -> Path:
        path = tmp_path / "recording.jsonl"
        head = head_line("1", "2023-11-14T22:13:20Z", hides_bodies=True)
        path.write_bytes(head + b"".join(map(event_line, events)))
        return path

    return written


def methods(channel: int, *parts: Any) -> bytes:
    return b"".join(frame.marshal(part, channel) for part in parts)


def publish(key: str, body: bytes) -> bytes:
    properties = header.ContentHeader(0, len(body), commands.Basic.Properties())
    return methods(1, commands.Basic.Publish(0, "", key), properties, ContentBody(body))


START_OK = commands.Connection.StartOk({}, "PLAIN", "\0guest\0xxxxxxxx")

#: What a client sent, what the broker answered, and the names that it chose.
STEPS: list[tuple[bytes, list[str], list[str]]] = [
    (b"AMQP\0\0\x09\x01", ["connection.start"], []),
    (methods(0, START_OK), ["connection.tune"], []),
    (methods(0, commands.Connection.TuneOk(0, 0, 0), commands.Connection.Open("/")), ["connection.open-ok"], []),
    (methods(1, commands.Channel.Open()), ["channel.open-ok"], []),
    (methods(1, commands.Queue.Declare(queue="", exclusive=True)), ["queue.declare-ok"], [NAME]),
    (
        publish(QUEUE, b"xxx") + methods(1, commands.Basic.Get(0, QUEUE, True)),
        ["basic.get-ok", "content of 3 bytes"],
        [],
    ),
    (methods(0, commands.Connection.Close(200, "", 0, 0)), ["connection.close-ok"], []),
]


def session(steps: Iterable[tuple[bytes, list[str], list[str]]] = STEPS) -> list[RecordedEvent]:
    events = [RecordedEvent(0.0, 1, "opened", "amqp", "127.0.0.1:50000")]
    for number, (data, answers, names) in enumerate(steps, 1):
        events.append(RecordedEvent(number * 0.001, 1, "received", data=data))
        events.append(RecordedEvent(number * 0.001, 1, "sent", answers=answers, names=names))
    return [*events, RecordedEvent(1.0, 1, "closed", reason="client")]


def test_a_recording_gets_the_same_answers_with_the_names_of_the_replay(write: Write) -> None:
    outcome = replay(write(session()), traces=True)
    assert (outcome.differences, outcome.findings) == ([], [])
    assert (outcome.connections, outcome.answers) == (1, 8)
    dialogue = "\n".join(outcome.lines)
    assert "> queue.declare exclusive=True" in dialogue
    assert "< queue.declare-ok queue=amq.gen-" in dialogue
    assert NAME not in dialogue


def test_two_replays_are_the_same(write: Write) -> None:
    path = write(session())
    assert replay(path, traces=True) == replay(path, traces=True)


def test_a_seed_cuts_and_delays_the_bytes(write: Write) -> None:
    path = write(session())
    plain, cut = replay(path), replay(path, seed=1)
    assert cut.virtual_s != plain.virtual_s
    assert (cut.differences, cut.findings) == ([], [])
    assert replay(path, seed=1) == cut


def test_answers_that_differ_are_named_with_their_place(write: Write) -> None:
    steps = [*STEPS[:4], (methods(1, commands.Queue.Declare(queue="orders", passive=True)), ["queue.declare-ok"], [])]
    outcome = replay(write(session(steps)))
    assert outcome.differences == [
        "connection 1 (amqp): 1 x 'queue.declare-ok' in the recording only; the answers part at the 5.",
        "connection 1 (amqp): 1 x 'channel.close 404' in the replay only; the answers part at the 5.",
    ]


def test_definitions_have_the_queues_and_users_of_the_recorded_broker(write: Write, tmp_path: Path) -> None:
    definitions = tmp_path / "definitions.json"
    definitions.write_text(
        '{"vhosts": [{"name": "/"}], "queues": [{"name": "orders", "vhost": "/", "durable": true, "arguments": {}}],'
        ' "users": [{"name": "shop", "password_hash": "", "tags": ""}], "permissions":'
        ' [{"user": "shop", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}]}'
    )
    login = methods(0, commands.Connection.StartOk({}, "PLAIN", "\0shop\0xxxx"))
    declare = methods(1, commands.Queue.Declare(queue="orders", passive=True))
    steps = [STEPS[0], (login, ["connection.tune"], []), *STEPS[2:4], (declare, ["queue.declare-ok"], [])]
    path = write(session(steps))
    assert replay(path, definitions).differences == []
    assert "'connection.tune' in the recording only" in "".join(replay(path).differences)


def test_a_connection_that_only_one_broker_closes_is_a_difference(write: Write) -> None:
    closed_by_server = [*session(STEPS[:4])[:-1], RecordedEvent(1.0, 1, "closed", reason="server")]
    note = "connection 1 (amqp): the recorded broker closed the connection, the replayed one does not"
    assert replay(write(closed_by_server)).differences == [note]


def test_a_connection_whose_rest_is_missing_has_no_differences_after_that(write: Write) -> None:
    events = [*session(STEPS[:3])[:-1], RecordedEvent(1.0, 1, "incomplete", reason="the recording ended")]
    assert replay(write(events)).differences == []


def test_a_masked_password_does_not_log_in_a_user_that_does_not_exist(write: Write) -> None:
    login = methods(0, commands.Connection.StartOk({}, "PLAIN", "\0nobody\0xxxx"))
    outcome = replay(write(session([STEPS[0], (login, ["connection.tune"], []), STEPS[2]])))
    assert outcome.answers == 1
    assert outcome.differences[0] == (
        "connection 1 (amqp): the replayed broker closed the connection before the client's last bytes"
    )


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("{}")
    with pytest.raises(ConfigurationError, match=r"line 1: this is no recording"):
        replay(path)
