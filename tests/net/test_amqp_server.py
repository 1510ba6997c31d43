"""The AMQP server over real sockets: silent, slow and dying clients affect no other client."""

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pamqp import commands

from gateway_amqp.tuning import PROTOCOL_HEADER
from tests.interop.broker import Broker
from tests.net.raw_client import RawClient
from tests.protocols.amqp.frame_reader import ReceivedFrame
from tests.protocols.amqp.frames import asked, frame, publish, start_ok
from tests.running import running_gateway

LOGIN_TIMEOUT_S = 1


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    directory = tmp_path_factory.mktemp("server")
    with running_gateway(directory, f"amqp.login_timeout_s={LOGIN_TIMEOUT_S}") as gateway:
        yield gateway


STUCK = [
    pytest.param([], id="silent"),
    pytest.param([b"AMQ"], id="half a protocol header"),
    pytest.param([PROTOCOL_HEADER], id="no login"),
    pytest.param([PROTOCOL_HEADER, start_ok("\0guest\0guest")], id="no tuning"),
    pytest.param([PROTOCOL_HEADER, b"\1\0\0\0\0\x0f\xff"], id="half a frame"),
]


@pytest.mark.parametrize("sent", STUCK)
def test_a_client_that_does_not_log_in_in_time_is_disconnected(broker: Broker, sent: list[bytes]) -> None:
    with RawClient(broker) as client:
        begun = time.monotonic()
        client.send(*sent)
        client.receive_all()
        assert LOGIN_TIMEOUT_S * 0.4 < time.monotonic() - begun < LOGIN_TIMEOUT_S + 3


def test_single_bytes_do_not_extend_the_login_timeout(broker: Broker) -> None:
    with RawClient(broker) as client:
        client.socket.settimeout(0.1)
        begun = time.monotonic()
        for octet in [*PROTOCOL_HEADER, *bytes(200)]:
            try:
                client.socket.sendall(bytes([octet]))
                client.receive_frames()
            except TimeoutError:
                continue
            except (BrokenPipeError, ConnectionResetError):
                client.is_at_end = True
            if client.is_at_end:
                break
        assert client.is_at_end
        assert time.monotonic() - begun < LOGIN_TIMEOUT_S + 3


def test_a_client_that_has_logged_in_may_be_idle(broker: Broker) -> None:
    with RawClient(broker) as client:
        client.open()
        time.sleep(LOGIN_TIMEOUT_S + 0.7)  # the time that must not matter
        client.send(asked(commands.Queue.Declare, queue="still-here", exclusive=True))
        received = client.receive_method(commands.Queue.DeclareOk)
        assert len(received) == 1


def test_4_2_7_heartbeats_are_sent_and_missing_ones_end_the_connection(broker: Broker) -> None:
    with RawClient(broker) as client:
        client.open(heartbeat_s=1)
        begun = time.monotonic()
        received = client.receive_all()
        lived = time.monotonic() - begun
        assert 2 <= lived < 6
        assert {str(one) for one in received} == {"heartbeat"}
        assert len(received) >= 2


def test_4_2_7_heartbeats_of_the_client_keep_the_connection_open(broker: Broker) -> None:
    with RawClient(broker) as client:
        client.open(heartbeat_s=1)
        for _ in range(8):
            client.send(frame(8, 0, b""))
            time.sleep(0.5)  # the interval of the heartbeats
        client.send(commands.Connection.Close(200, "", 0, 0))
        client.receive_method(commands.Connection.CloseOk)


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n", bytes(10_000), b"\xff" * 100_000])
def test_garbage_is_answered_and_the_next_client_is_served(broker: Broker, garbage: bytes) -> None:
    with RawClient(broker) as client:
        client.send(garbage)
        assert [str(received) for received in client.receive_all()][:1] in (["AMQP 0-9-1"], [])
    with RawClient(broker) as client:
        client.open()


def resident_kib(pid: int) -> int:
    """Return the resident memory of a process in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


BODY = bytes(64 * 1024)
BATCH = 16
BATCHES = 60


def confirms(tag: int, received: ReceivedFrame) -> bool:
    """Return whether a frame confirms everything up to a tag."""
    return isinstance(received.method, commands.Basic.Ack) and received.method.delivery_tag == tag


def test_a_consumer_that_does_not_read_uses_little_memory_and_another_gets_the_messages(broker: Broker) -> None:
    with RawClient(broker) as slow, RawClient(broker) as quick, RawClient(broker) as publisher:
        for client in (slow, quick, publisher):
            client.open()
        consume = asked(commands.Basic.Consume, queue="shared", consumer_tag="c", no_ack=True)
        publisher.send(asked(commands.Queue.Declare, queue="shared"), commands.Confirm.Select())
        publisher.receive_method(commands.Confirm.SelectOk)
        for client in (slow, quick):
            client.send(consume)
            client.receive_method(commands.Basic.ConsumeOk)
        last = b"last"
        arrived: list[int] = []

        def read() -> None:
            received = quick.receive_until(lambda frame: frame.body == last)
            arrived.extend(len(frame.body) for frame in received)

        before = resident_kib(broker.pid)
        highest = before
        reader = threading.Thread(target=read)
        reader.start()
        for batch in range(1, BATCHES + 1):
            publisher.send(*(publish("", "shared", BODY) for _ in range(BATCH)))
            publisher.receive_until(partial(confirms, BATCH * batch))
            highest = max(highest, resident_kib(broker.pid))
        publisher.send(publish("", "shared", last))
        reader.join(15)
        assert not reader.is_alive()
        assert highest - before < 32 * 1024
        assert arrived.count(len(BODY)) > BATCH * BATCHES * 0.8
        publisher.send(asked(commands.Queue.Delete, queue="shared"))
        publisher.receive_method(commands.Queue.DeleteOk)
