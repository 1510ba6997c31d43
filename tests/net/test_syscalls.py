"""Waiting, receiving and sending: the same whether in C or not. ``make test-wheel`` runs these against the C."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from math import inf
from select import EPOLLIN, EPOLLOUT, epoll

import pytest

from gateway.net.syscalls import MOST_BYTES, receive, send, wait_for
from tests.net.pairs import Pair, connected


@pytest.fixture
def pair() -> Iterator[Pair]:
    with connected() as pair:
        yield pair


@pytest.fixture
def poller() -> Iterator[epoll]:
    with epoll() as poller:
        yield poller


@pytest.mark.parametrize("size", [1, 300, 4095, 4096, 4097, MOST_BYTES - 1, MOST_BYTES])
def test_what_comes_is_received_whole_and_stays_as_it_is(pair: Pair, size: int) -> None:
    here, there = pair
    told = []
    for letter in (b"a", b"b"):
        there.sendall(letter * size)
        told.append(receive(here.fileno()))
    assert told == [b"a" * size, b"b" * size]


def test_one_call_takes_no_more_than_it_says_and_the_next_one_the_rest(pair: Pair) -> None:
    here, there = pair
    there.sendall(b"a" * MOST_BYTES + b"rest")
    assert receive(here.fileno()) == b"a" * MOST_BYTES
    assert receive(here.fileno()) == b"rest"


def test_nothing_to_receive_is_told_apart_from_the_end_and_from_a_break(pair: Pair) -> None:
    here, there = pair
    with pytest.raises(BlockingIOError):
        receive(here.fileno())
    here.send(b"never read")
    there.close()
    with pytest.raises(ConnectionResetError):
        receive(here.fileno())
    assert receive(here.fileno()) == b""


def test_a_socket_takes_what_it_has_room_for(pair: Pair) -> None:
    here, there = pair
    data = os.urandom(1 << 20)
    sent = send(here.fileno(), data)
    assert 0 < sent < len(data)
    with pytest.raises(BlockingIOError):
        send(here.fileno(), data)
    here.close()
    assert b"".join(iter(lambda: there.recv(1 << 16), b"")) == data[:sent]


def test_sending_to_who_is_gone_is_an_error_and_no_signal(pair: Pair) -> None:
    here, there = pair
    there.close()
    with pytest.raises(BrokenPipeError):
        send(here.fileno(), b"anybody there?")


@pytest.mark.parametrize("call", [lambda: receive("1"), lambda: send(1, "text"), lambda: send(1), lambda: receive()])
def test_what_makes_no_sense_is_refused(call) -> None:  # type: ignore[no-untyped-def]  # calls that types forbid
    with pytest.raises(TypeError):
        call()


def test_who_is_ready_is_told_with_what_for(pair: Pair, poller: epoll) -> None:
    here, there = pair
    poller.register(here, EPOLLIN)
    poller.register(there, EPOLLIN | EPOLLOUT)
    there.send(b"x")
    wait = wait_for(poller)
    for until_s in (0.0, inf, time.time() + 60):
        told = wait(until_s, 128) or ()
        assert dict(zip(told[::2], told[1::2], strict=True)) == {here.fileno(): EPOLLIN, there.fileno(): EPOLLOUT}
    assert len(wait(0.0, 1) or ()) == 2


def test_waiting_ends_when_the_time_has_come_and_no_sooner(poller: epoll) -> None:
    until_s = time.time() + 0.01
    wait = wait_for(poller)
    assert not wait(until_s, 128)
    assert time.time() >= until_s


def test_that_the_time_has_come_is_told_in_the_end_however_many_events_there_are(pair: Pair, poller: epoll) -> None:
    poller.register(pair[0], EPOLLIN)
    pair[1].send(b"x")
    wait = wait_for(poller)
    until_s = time.time() - 1
    assert None in [wait(until_s, 128) for _ in range(3)]
    assert wait(0.0, 128) == (pair[0].fileno(), EPOLLIN)


def test_another_time_is_another_wait(pair: Pair, poller: epoll) -> None:
    poller.register(pair[0], EPOLLIN)
    wait = wait_for(poller)
    assert wait(time.time() - 1, 128) is None
    pair[1].send(b"x")
    assert wait(time.time() + 60, 128) == (pair[0].fileno(), EPOLLIN)
    assert wait(inf, 128) == (pair[0].fileno(), EPOLLIN)


def test_others_run_meanwhile(pair: Pair, poller: epoll) -> None:
    here, there = pair
    poller.register(here, EPOLLIN)
    other = threading.Timer(0.01, there.send, (b"x",))
    other.start()
    assert wait_for(poller)(time.time() + 30, 128) == (here.fileno(), EPOLLIN)
    other.join()


def test_a_signal_is_heeded(poller: epoll) -> None:
    def heed(number: int, frame: object) -> None:
        raise InterruptedError("heeded")

    before = signal.signal(signal.SIGALRM, heed)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(InterruptedError, match="heeded"):
            wait_for(poller)(time.time() + 30, 128)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_poller_that_was_closed_is_an_error(poller: epoll) -> None:
    wait = wait_for(poller)
    poller.close()
    with pytest.raises((OSError, ValueError)):
        wait(0.0, 128)
