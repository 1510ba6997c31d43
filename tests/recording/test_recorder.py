"""The recorder: its file, its limits, and when it records."""

import json
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.kernel.errors import ConfigurationError
from gateway.recording import file
from gateway.recording.lines import RecordedEvent, event_line, head_line, read_recording
from gateway.recording.recorder import Recorder, RecordingRules

ON = RecordingRules(enabled=True)
LOGIN = b"CONNECT\nlogin:a\npasscode:secret\n\n\0"


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(tmp_path / "recordings", lambda: 1_700_000_000_000, lambda: 12.5)
    yield recorder
    recorder.stop(waits=True)


def events(recorder: Recorder) -> list[RecordedEvent]:
    """End the recording and read its file."""
    path = Path(recorder.shown["file"])
    recorder.stop(waits=True)
    with path.open("rb") as written:
        return list(read_recording(written))


def test_nothing_is_recorded_by_default(recorder: Recorder, tmp_path: Path) -> None:
    recorder.apply(RecordingRules())
    assert recorder.opened("amqp", "peer") is None
    assert recorder.shown["state"] == "off"
    assert list(tmp_path.iterdir()) == []


def test_a_connection_is_recorded_from_its_opening_to_its_end(recorder: Recorder) -> None:
    recorder.apply(ON)
    connection = recorder.opened("stomp", "127.0.0.1:5")
    assert connection is not None
    connection.received(LOGIN)
    connection.sent(b"CONNECTED\n\n\0")
    connection.closed("client")
    assert events(recorder) == [
        RecordedEvent(0.0, 1, "opened", "stomp", "127.0.0.1:5"),
        RecordedEvent(0.0, 1, "received", data=LOGIN.replace(b"secret", b"xxxxxx")),
        RecordedEvent(0.0, 1, "sent", answers=["CONNECTED"]),
        RecordedEvent(0.0, 1, "closed", reason="client"),
    ]


def test_the_file_is_readable_by_its_owner_alone_and_says_its_format(recorder: Recorder) -> None:
    recorder.apply(ON)
    path = Path(recorder.shown["file"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    recorder.stop(waits=True)
    head = json.loads(path.read_bytes().splitlines()[0])
    assert head["gateway_recording"] == 1
    assert head["bodies"] == "masked"
    assert head["started_at"] == "2023-11-14T22:13:20.000Z"


def test_a_connection_that_is_open_when_the_recording_ends_is_incomplete(recorder: Recorder) -> None:
    recorder.apply(ON)
    connection = recorder.opened("mqtt", "peer")
    assert connection is not None
    found = events(recorder)
    assert found[-1] == RecordedEvent(0.0, 1, "incomplete", reason="the recording ended")
    connection.received(b"more")
    connection.closed("client")
    assert recorder.shown["state"] == "off"


def test_only_the_chosen_listeners_are_recorded(recorder: Recorder) -> None:
    recorder.apply(replace(ON, listeners=frozenset({"mqtt"})))
    assert recorder.opened("amqp", "peer") is None
    assert recorder.opened("mqtt", "peer") is not None


def test_connections_beyond_the_limit_are_counted(recorder: Recorder) -> None:
    recorder.apply(replace(ON, max_connections=1))
    first = recorder.opened("amqp", "peer")
    assert first is not None
    assert recorder.opened("amqp", "peer") is None
    assert recorder.shown["left_out"] == 1
    first.closed("client")
    assert recorder.opened("amqp", "peer") is not None


def test_a_full_recording_ends_within_its_size(recorder: Recorder) -> None:
    recorder.apply(replace(ON, max_size=2000))
    connection = recorder.opened("stomp", "peer")
    assert connection is not None
    for _ in range(100):
        connection.received(LOGIN)
    path = Path(recorder.shown["file"])
    recorder.stop(waits=True)
    assert path.stat().st_size <= 2000
    assert path.read_bytes().endswith(b"\n")


def test_a_connection_that_the_disk_cannot_follow_is_incomplete(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.apply(ON)
    connection, other = recorder.opened("stomp", "peer"), recorder.opened("stomp", "peer")
    assert connection is not None
    assert other is not None
    with monkeypatch.context() as patch:
        patch.setattr(file, "MAX_WAITING", 10)
        connection.received(LOGIN)
    other.received(LOGIN)
    assert recorder.shown["incomplete"] == 1
    kinds = [(event.connection, event.kind, event.reason) for event in events(recorder)]
    assert (1, "incomplete", "the disk is too slow") in kinds
    assert (1, "received", "") not in kinds
    assert (2, "received", "") in kinds


def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    recorder = Recorder(tmp_path / "file" / "inside", lambda: 0, lambda: 0.0)
    recorder.apply(ON)
    assert recorder.shown["state"] == "failed"
    assert "cannot be created" in recorder.shown["error"]
    assert recorder.opened("amqp", "peer") is None


HEAD = head_line("1", "2023-11-14T22:13:20.000Z", hides_bodies=True)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "line 1: not JSON"),
        (b"{}\n", "line 1: this is no recording: 'gateway_recording' is missing"),
        (b'{"gateway_recording": 2}\n', "line 1: the format is 2, this version reads 1"),
        (HEAD + b"{]\n", "line 2: not JSON"),
        (HEAD + b'{"at": 1, "connection": 1}\n', "line 2: not an event of a recording"),
        (HEAD + b'{"at": NaN, "connection": 1, "closed": "client"}\n', "line 2: not an event of a recording"),
        (HEAD + b'{"at": -1, "connection": 1, "closed": "client"}\n', "line 2: not an event of a recording"),
        (HEAD + b'{"at": 1, "connection": 1, "received": "!"}\n', "line 2: not an event of a recording"),
        (HEAD + b'{"at": 1, "connection": 1, "sent": [1]}\n', "line 2: not an event of a recording"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_with_the_line(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with path.open("rb") as read, pytest.raises(ConfigurationError) as refused:
        list(read_recording(read))
    assert str(refused.value) == reason


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_last_line_that_is_cut_is_left_out(cut: int, tmp_path: Path) -> None:
    first, last = (event_line(RecordedEvent(float(at), 1, "closed", reason="client")) for at in (1, 2))
    path = tmp_path / "file"
    path.write_bytes(HEAD + first + last[:-cut])
    with path.open("rb") as read:
        found: list[Any] = list(read_recording(read))
    assert [event.at_s for event in found] == [1.0]
