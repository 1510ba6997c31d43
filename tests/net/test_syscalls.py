"""Wait, receive and send behave the same in C and Python; ``make test-wheel`` runs these tests against the C code."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from select import EPOLLIN, EPOLLOUT, epoll

import pytest

from gateway.net.syscalls import accept, close_output, receive, send, stopwatch, waiter
from tests.net.pairs import Pair, connected


@pytest.fixture
def pair() -> Iterator[Pair]:
    with connected() as pair:
        yield pair


@pytest.fixture
def poller() -> Iterator[epoll]:
    with epoll() as poller:
        yield poller


MOST = 64 * 1024


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::"])
def test_an_accepted_connection_does_not_block_and_has_the_address_of_its_peer(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family, dualstack_ipv6=host == "::") as listener:
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            accept(listener.fileno())
        with socket.create_connection(("127.0.0.1" if host == "::" else host, listener.getsockname()[1])) as client:
            descriptor, peer_host, peer_port = accept(listener.fileno())
            try:
                with pytest.raises(BlockingIOError):
                    receive(descriptor, MOST)
                assert not os.get_inheritable(descriptor)
                mapped = "::ffff:" if host == "::" else ""
                assert (peer_host, peer_port) == (mapped + client.getsockname()[0], client.getsockname()[1])
            finally:
                os.close(descriptor)


def test_the_peer_reads_the_end_of_a_closed_output_and_can_still_send(pair: Pair) -> None:
    here, there = pair
    close_output(here.fileno())
    assert there.recv(1) == b""
    there.sendall(b"late")
    assert receive(here.fileno(), MOST) == b"late"


def test_calls_with_a_descriptor_of_no_socket_fail() -> None:
    with open(os.devnull, "rb") as file:
        for call in (accept, close_output):
            with pytest.raises(OSError, match="non-socket"):
                call(file.fileno())


@pytest.mark.parametrize("size", [1, 300, 4095, 4096, 4097, MOST - 1, MOST])
def test_received_bytes_are_complete_and_unchanged_by_later_calls(pair: Pair, size: int) -> None:
    here, there = pair
    told = []
    for letter in (b"a", b"b"):
        there.sendall(letter * size)
        told.append(receive(here.fileno(), MOST))
    assert told == [b"a" * size, b"b" * size]


@pytest.mark.parametrize("most", [(10, MOST), (MOST, 10), (MOST, 2 * MOST, MOST), (1, 5000, 4096, 1)])
def test_each_call_has_a_limit_of_its_own(pair: Pair, most: tuple[int, ...]) -> None:
    """Also if the buffer of the call before is smaller or larger."""
    here, there = pair
    data = os.urandom(sum(most))
    threading.Thread(target=there.sendall, args=(data,), daemon=True).start()
    told: list[bytes] = []
    while len(b"".join(told)) < len(data):
        limit = most[min(len(told), len(most) - 1)]
        with suppress(BlockingIOError):
            told.append(receive(here.fileno(), limit))
            assert 0 < len(told[-1]) <= limit
    assert b"".join(told) == data


def test_one_call_receives_at_most_its_limit_and_the_next_one_the_rest(pair: Pair) -> None:
    here, there = pair
    there.sendall(b"a" * MOST + b"rest")
    assert receive(here.fileno(), MOST) == b"a" * MOST
    assert receive(here.fileno(), MOST) == b"rest"


def test_no_data_an_orderly_close_and_a_broken_connection_are_distinguished(pair: Pair) -> None:
    here, there = pair
    with pytest.raises(BlockingIOError):
        receive(here.fileno(), MOST)
    here.send(b"never read")
    there.close()
    with pytest.raises(ConnectionResetError):
        receive(here.fileno(), MOST)
    assert receive(here.fileno(), MOST) == b""


def test_a_send_returns_the_bytes_that_fit_the_socket_buffer(pair: Pair) -> None:
    here, there = pair
    data = os.urandom(1 << 20)
    sent = send(here.fileno(), data)
    assert 0 < sent < len(data)
    with pytest.raises(BlockingIOError):
        send(here.fileno(), data)
    here.close()
    assert b"".join(iter(lambda: there.recv(1 << 16), b"")) == data[:sent]


def test_sending_to_a_closed_peer_raises_an_error_without_a_signal(pair: Pair) -> None:
    here, there = pair
    there.close()
    with pytest.raises(BrokenPipeError):
        send(here.fileno(), b"are you there?")


@pytest.mark.parametrize(
    "call", [lambda: receive("1", 1), lambda: send(1, "text"), lambda: send(1), lambda: receive(1)]
)
def test_wrong_arguments_are_refused(call) -> None:  # type: ignore[no-untyped-def]  # calls that types forbid
    with pytest.raises(TypeError):
        call()


def test_ready_descriptors_are_returned_with_their_events(pair: Pair, poller: epoll) -> None:
    here, there = pair
    poller.register(here, EPOLLIN)
    poller.register(there, EPOLLIN | EPOLLOUT)
    there.send(b"x")
    wait = waiter(poller).wait
    for until_s in (0.0, inf, time.time() + 60):
        told = wait(until_s, 128) or ()
        assert dict(zip(told[::2], told[1::2], strict=True)) == {here.fileno(): EPOLLIN, there.fileno(): EPOLLOUT}
    assert len(wait(0.0, 1) or ()) == 2


def test_a_wait_ends_at_its_time_and_not_before(poller: epoll) -> None:
    until_s = time.time() + 0.01
    wait = waiter(poller).wait
    assert not wait(until_s, 128)
    assert time.time() >= until_s


def test_the_end_of_a_wait_is_reported_even_if_there_are_always_events(pair: Pair, poller: epoll) -> None:
    poller.register(pair[0], EPOLLIN)
    pair[1].send(b"x")
    wait = waiter(poller).wait
    until_s = time.time() - 1
    assert None in [wait(until_s, 128) for _ in range(3)]
    assert wait(0.0, 128) == (pair[0].fileno(), EPOLLIN)


def test_a_wait_with_another_time_ends_at_that_time(pair: Pair, poller: epoll) -> None:
    poller.register(pair[0], EPOLLIN)
    wait = waiter(poller).wait
    assert wait(time.time() - 1, 128) is None
    pair[1].send(b"x")
    assert wait(time.time() + 60, 128) == (pair[0].fileno(), EPOLLIN)
    assert wait(inf, 128) == (pair[0].fileno(), EPOLLIN)


def test_other_threads_run_during_a_wait(pair: Pair, poller: epoll) -> None:
    here, there = pair
    poller.register(here, EPOLLIN)
    other = threading.Timer(0.01, there.send, (b"x",))
    other.start()
    assert waiter(poller).wait(time.time() + 30, 128) == (here.fileno(), EPOLLIN)
    other.join()


def test_a_signal_is_handled_during_a_wait(poller: epoll) -> None:
    def heed(number: int, frame: object) -> None:
        raise InterruptedError("heeded")

    before = signal.signal(signal.SIGALRM, heed)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(InterruptedError, match="heeded"):
            waiter(poller).wait(time.time() + 30, 128)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_waiting_on_a_closed_poller_raises_an_error(poller: epoll) -> None:
    wait = waiter(poller).wait
    poller.close()
    with pytest.raises((OSError, ValueError)):
        wait(0.0, 128)


def test_a_stopwatch_counts_short_turns_and_returns_the_length_of_others() -> None:
    watch = stopwatch(0.02, 0.0)
    watch.start()
    assert watch.stop() is None
    assert watch.short_count == 1
    assert 0.0 < watch.short_total_s < 0.02
    slow = stopwatch(0.0, 0.0)
    slow.start()
    seconds = slow.stop()
    assert seconds is not None
    assert 0.0 < seconds < 1.0
    assert slow.short_count == 0


def test_a_stopwatch_returns_the_length_of_a_part_since_the_one_before_if_it_is_long() -> None:
    watch = stopwatch(0.0, 0.05)
    watch.start()
    assert watch.part() is None
    end = time.monotonic() + 0.06
    while time.monotonic() < end:
        pass
    seconds = watch.part()
    assert seconds is not None
    assert seconds > 0.05
    assert watch.part() is None


def test_a_wait_ends_a_short_turn_and_starts_the_next_one_if_there_are_events(pair: Pair, poller: epoll) -> None:
    poller.register(pair[0], EPOLLIN)
    pair[1].send(b"x")
    events, watch = waiter(poller), stopwatch(10.0, 10.0)
    ready = (pair[0].fileno(), EPOLLIN)
    assert [events.wait_for_turn(0.0, 128, watch) for _ in range(3)] == [ready, ready, ready]
    assert watch.short_count == 2
    past_s = time.time() - 1
    assert None in [events.wait_for_turn(past_s, 128, watch) for _ in range(3)]
    assert watch.short_count >= 3


def test_a_wait_returns_the_length_of_a_turn_that_was_not_short_before_it_waits(pair: Pair, poller: epoll) -> None:
    poller.register(pair[0], EPOLLIN)
    events, watch = waiter(poller), stopwatch(0.0, 10.0)
    watch.start()
    seconds = events.wait_for_turn(time.time() + 60, 128, watch)
    assert isinstance(seconds, float)
    assert 0.0 < seconds < 10.0
    pair[1].send(b"x")
    assert events.wait_for_turn(time.time() + 60, 128, watch) == (pair[0].fileno(), EPOLLIN)
    assert watch.short_count == 0
