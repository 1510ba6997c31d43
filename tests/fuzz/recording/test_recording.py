"""The recorder of the corpus: the relay, the cutters, and the files that it wrote."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.decoders.corpus import CORPUS, TO_BROKER, TO_CLIENT, escaped, frames_of, sessions_of, unescaped
from tests.fuzz.recording.clients import CLIENTS
from tests.fuzz.recording.cutting import PROTOCOLS, frames_in, of_each_shape
from tests.fuzz.recording.relay import Relay
from tests.waiting import wait_until


@given(st.binary())
def test_a_frame_is_read_as_it_was_written(frame: bytes) -> None:
    line = escaped(frame)
    assert line.isascii()
    assert unescaped(line) == frame


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_recorded_sessions_are_cut_into_the_same_frames_again(protocol: str) -> None:
    for session in sessions_of(protocol):
        data = b"".join(session)
        for size in (1, 7, len(data)):
            pieces = [(TO_BROKER, data[at : at + size]) for at in range(0, len(data), size)]
            assert [frame for _, frame in frames_in(protocol, pieces)] == list(session)


def test_one_frame_of_each_shape_is_kept() -> None:
    frames = [(TO_BROKER, b"\x30\x03\0\1a"), (TO_BROKER, b"\x30\x03\0\1b"), (TO_CLIENT, b"\x30\x03\0\1a")]
    assert list(of_each_shape("mqtt", frames)) == [frames[0], frames[2]]


def test_each_client_has_a_small_file() -> None:
    files = {path.relative_to(CORPUS).as_posix() for path in CORPUS.glob("*/*.txt")}
    expected = {f"{protocol}/{name}.txt" for protocol, (_, clients) in CLIENTS.items() for name in clients}
    assert files == expected | {"store/records.txt"}
    assert all(frames_of(protocol) for protocol in (*CLIENTS, "store"))
    assert sum(path.stat().st_size for path in CORPUS.glob("*/*.txt")) < 300_000


def test_the_relay_keeps_what_both_sides_send() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, Relay(server.getsockname()) as relay:
        client = socket.create_connection(("127.0.0.1", relay.port))
        broker, _ = server.accept()
        with client, broker:
            client.sendall(b"ask")
            assert broker.recv(10) == b"ask"
            broker.sendall(b"answer")
            assert client.recv(10) == b"answer"
            wait_until(lambda: relay.conversations == [[(TO_BROKER, b"ask"), (TO_CLIENT, b"answer")]], "not recorded")
