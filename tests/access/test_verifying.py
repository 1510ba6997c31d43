"""Passwords are checked on another thread, in the same time for unknown users, and right ones are remembered."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from gateway.access import HashingThreads, PasswordVerifier
from gateway.access.passwords import ALGORITHMS, ARGON2ID, DEFAULT_ALGORITHM, hash_password
from gateway.kernel.journal.records import UserRecord

T = TypeVar("T")


class Bench:
    """Work that waits until it is told to be done."""

    def __init__(self, size: int = 1000) -> None:
        self.size = size
        self.waiting: list[Callable[[], None]] = []
        self.done = 0

    def submit(self, work: Callable[[], T], done: Callable[[T], None]) -> bool:
        if len(self.waiting) >= self.size:
            return False
        self.waiting.append(lambda: done(work()))
        return True

    def work(self) -> None:
        waiting, self.waiting = self.waiting, []
        self.done += len(waiting)
        for piece in waiting:
            piece()


def user(password: str = "secret", algorithm: str = ARGON2ID) -> UserRecord:
    return UserRecord("anna", hash_password(password, algorithm), algorithm, [], {})


ANNA = user()


class Asked:
    """A verifier, its bench, a clock and the answers."""

    def __init__(self, size: int = 1000) -> None:
        self.bench = Bench(size)
        self.now_s = 0.0
        self.verifier = PasswordVerifier(self.bench, lambda: self.now_s, 300.0)
        self.answers: list[bool] = []

    def ask(self, password: str = "secret", of: UserRecord | None = ANNA) -> None:
        self.verifier.verify(password, "anna", of, self.answers.append)


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_hashes_of_every_algorithm_are_verified(asked: Asked, algorithm: str) -> None:
    anna = user("s\u00e9cret", algorithm)
    asked.ask("s\u00e9cret", anna)
    asked.ask("wrong", anna)
    asked.bench.work()
    assert sorted(asked.answers) == [False, True]


def test_a_right_password_is_remembered_for_a_while_and_not_hashed_again(asked: Asked) -> None:
    asked.ask()
    asked.bench.work()
    asked.ask()
    assert (asked.answers, asked.bench.waiting) == ([True, True], [])
    asked.now_s = 301.0
    asked.ask()
    assert len(asked.bench.waiting) == 1


def test_a_wrong_password_is_never_remembered(asked: Asked) -> None:
    for _ in range(3):
        asked.ask("wrong")
        asked.bench.work()
    assert (asked.answers, asked.bench.done) == ([False] * 3, 3)


def test_a_password_that_was_changed_is_wrong_at_once(asked: Asked) -> None:
    asked.ask()
    asked.bench.work()
    asked.ask("secret", user("another"))
    asked.bench.work()
    assert asked.answers == [True, False]


def test_the_same_question_asked_by_many_is_one_piece_of_work(asked: Asked) -> None:
    for _ in range(100):
        asked.ask()
    asked.bench.work()
    assert (asked.answers, asked.bench.done) == ([True] * 100, 1)


def test_what_is_remembered_holds_no_password(asked: Asked) -> None:
    asked.ask()
    asked.bench.work()
    assert "secret" not in repr(vars(asked.verifier))


def test_a_login_is_refused_when_too_many_passwords_wait() -> None:
    asked = Asked(size=2)
    for number in range(5):
        asked.ask(f"guess {number}")
    assert asked.answers == [False] * 3
    asked.bench.work()
    asked.ask()
    asked.bench.work()
    assert asked.answers == [False] * 5 + [True]


@pytest.mark.parametrize(
    "anna",
    [None, ANNA, user("x", DEFAULT_ALGORITHM), UserRecord("anna", "", DEFAULT_ALGORITHM, [], {})],
    ids=["no such user", "argon2id", "a hash of RabbitMQ", "a user without a password"],
)
def test_each_refusal_is_one_piece_of_work_of_the_same_kind(asked: Asked, anna: UserRecord | None) -> None:
    asked.ask("wrong", anna)
    assert len(asked.bench.waiting) == 1
    asked.bench.work()
    assert asked.answers == [False]


def test_an_unknown_user_and_a_wrong_password_take_the_same_time(asked: Asked) -> None:
    """The least of several rounds, of processor time: what disturbs a measurement only ever adds to it."""

    def spent_s(anna: UserRecord | None, number: int) -> float:
        started = time.process_time()
        asked.ask(f"wrong {number}", anna)
        asked.bench.work()
        return time.process_time() - started

    users = (ANNA, None, user("x", DEFAULT_ALGORITHM))
    rounds = [[spent_s(anna, number) for anna in users] for number in range(8)]
    known, unknown, imported = map(min, zip(*rounds, strict=True))
    assert unknown == pytest.approx(known, rel=0.5)
    assert imported == pytest.approx(known, rel=0.5)
    assert known > 0.002, "argon2id was at work each time"


def test_a_password_of_half_a_character_is_wrong_and_nothing_else(asked: Asked) -> None:
    asked.ask("\ud800", None)
    asked.ask("\ud800", ANNA)
    asked.ask("\ud800", user("x", DEFAULT_ALGORITHM))
    asked.bench.work()
    assert asked.answers == [False] * 3


def test_an_empty_password_is_wrong_without_any_work(asked: Asked) -> None:
    asked.ask("")
    assert (asked.answers, asked.bench.waiting) == ([False], [])


def test_threads_do_the_work_and_the_kernels_thread_hears_of_it() -> None:
    calls: list[Callable[[], None]] = []
    arrived = threading.Semaphore(0)

    def call_in_kernel(call: Callable[[], None]) -> None:
        calls.append(call)
        arrived.release()

    threads = HashingThreads(1, 1, call_in_kernel)
    began, may_go_on = threading.Event(), threading.Event()
    worked_on: list[int] = []

    def work() -> int:
        began.set()
        may_go_on.wait(10)
        return threading.get_ident()

    assert threads.submit(work, worked_on.append)
    assert threads.submit(work, worked_on.append)
    assert began.wait(10)
    assert not threads.submit(work, worked_on.append), "one runs and one waits: there is no room"
    may_go_on.set()
    assert arrived.acquire(timeout=10)
    assert arrived.acquire(timeout=10)
    assert worked_on == [], "not before the kernel's thread makes the calls"
    for call in calls:
        call()
    assert len(worked_on) == 2
    assert threading.get_ident() not in worked_on
    assert (threads.unfinished, threads.refused) == (0, 1)
    threads.stop()
