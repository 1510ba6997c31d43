"""Passwords are checked in another thread, in the same time for unknown users, and correct ones are cached."""

import threading
import time
from collections.abc import Callable
from queue import Queue
from typing import TypeVar

import pytest

from gateway.access import HashingThreads, PasswordVerifier
from gateway.access.passwords import ALGORITHMS, ARGON2ID, DEFAULT_ALGORITHM, hash_password
from gateway.kernel.journal.records.access import UserRecord

T = TypeVar("T")


class ManualWorkers:
    """Workers whose work runs when the test calls ``work``."""

    def __init__(self, size: int = 1000) -> None:
        self.size = size
        self.is_short_of_memory = False
        self.waiting: list[Callable[[], None]] = []
        self.done = 0

    def submit(self, work: Callable[[], T], done: Callable[[T], None], failed: Callable[[], None]) -> bool:
        if len(self.waiting) >= self.size:
            return False
        self.waiting.append(failed if self.is_short_of_memory else lambda: done(work()))
        return True

    def work(self) -> None:
        waiting, self.waiting = self.waiting, []
        self.done += len(waiting)
        for piece in waiting:
            piece()


def user(password: str = "secret", algorithm: str = ARGON2ID) -> UserRecord:
    return UserRecord("anna", hash_password(password, algorithm), algorithm, [], {})


ANNA = user()


class VerifierRig:
    """A verifier with manual workers, a clock and the answers."""

    def __init__(self, size: int = 1000) -> None:
        self.workers = ManualWorkers(size)
        self.now_s = 0.0
        self.verifier = PasswordVerifier(self.workers, lambda: self.now_s, 300.0)
        self.answers: list[bool] = []

    def ask(self, password: str = "secret", of: UserRecord | None = ANNA) -> None:
        self.verifier.verify(password, "anna", of, self.answers.append)


@pytest.fixture
def rig() -> VerifierRig:
    return VerifierRig()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_hashes_of_every_algorithm_are_verified(rig: VerifierRig, algorithm: str) -> None:
    anna = user("s\u00e9cret", algorithm)
    rig.ask("s\u00e9cret", anna)
    rig.ask("wrong", anna)
    rig.workers.work()
    assert sorted(rig.answers) == [False, True]


def test_a_correct_password_is_cached_for_a_while(rig: VerifierRig) -> None:
    rig.ask()
    rig.workers.work()
    rig.ask()
    assert (rig.answers, rig.workers.waiting) == ([True, True], [])
    rig.now_s = 301.0
    rig.ask()
    assert len(rig.workers.waiting) == 1


def test_a_wrong_password_is_not_cached(rig: VerifierRig) -> None:
    for _ in range(3):
        rig.ask("wrong")
        rig.workers.work()
    assert (rig.answers, rig.workers.done) == ([False] * 3, 3)


def test_a_changed_password_is_wrong_at_once(rig: VerifierRig) -> None:
    rig.ask()
    rig.workers.work()
    rig.ask("secret", user("another"))
    rig.workers.work()
    assert rig.answers == [True, False]


def test_simultaneous_checks_of_one_password_are_done_once(rig: VerifierRig) -> None:
    for _ in range(100):
        rig.ask()
    rig.workers.work()
    assert (rig.answers, rig.workers.done) == ([True] * 100, 1)


def test_the_cache_contains_no_password(rig: VerifierRig) -> None:
    rig.ask()
    rig.workers.work()
    assert "secret" not in repr(vars(rig.verifier))


def test_a_login_is_refused_when_too_many_checks_wait() -> None:
    rig = VerifierRig(size=2)
    for number in range(5):
        rig.ask(f"guess {number}")
    assert rig.answers == [False] * 3
    rig.workers.work()
    rig.ask()
    rig.workers.work()
    assert rig.answers == [False] * 5 + [True]


@pytest.mark.parametrize(
    "anna",
    [None, ANNA, user("x", DEFAULT_ALGORITHM), UserRecord("anna", "", DEFAULT_ALGORITHM, [], {})],
    ids=["no such user", "argon2id", "a hash of RabbitMQ", "a user without a password"],
)
def test_each_refusal_needs_one_check_of_the_same_kind(rig: VerifierRig, anna: UserRecord | None) -> None:
    rig.ask("wrong", anna)
    assert len(rig.workers.waiting) == 1
    rig.workers.work()
    assert rig.answers == [False]


def test_an_unknown_user_and_a_wrong_password_take_the_same_time(rig: VerifierRig) -> None:
    """Compares the minimum processor time of several rounds, because disturbances only add to it."""

    def spent_s(anna: UserRecord | None, number: int) -> float:
        started = time.process_time()
        rig.ask(f"wrong {number}", anna)
        rig.workers.work()
        return time.process_time() - started

    users = (ANNA, None, user("x", DEFAULT_ALGORITHM))
    rounds = [[spent_s(anna, number) for anna in users] for number in range(8)]
    known, unknown, imported = map(min, zip(*rounds, strict=True))
    assert unknown == pytest.approx(known, rel=0.5)
    assert imported == pytest.approx(known, rel=0.5)
    assert known > 0.002, "argon2id ran each time"


def test_a_password_with_a_lone_surrogate_is_wrong(rig: VerifierRig) -> None:
    rig.ask("\ud800", None)
    rig.ask("\ud800", ANNA)
    rig.ask("\ud800", user("x", DEFAULT_ALGORITHM))
    rig.workers.work()
    assert rig.answers == [False] * 3


def test_an_empty_password_is_wrong_without_a_check(rig: VerifierRig) -> None:
    rig.ask("")
    assert (rig.answers, rig.workers.waiting) == ([False], [])


def test_a_check_that_fails_refuses_the_login_and_the_next_one_is_checked(rig: VerifierRig) -> None:
    """Without an answer, later logins with the same user and password would wait for ever."""
    rig.workers.is_short_of_memory = True
    rig.ask("secret")
    rig.workers.work()
    rig.workers.is_short_of_memory = False
    rig.ask("secret")
    rig.workers.work()
    assert rig.answers == [False, True]


def test_work_that_fails_in_a_thread_is_told() -> None:
    calls: Queue[Callable[[], None]] = Queue()
    threads, told = HashingThreads(1, 1, calls.put), []

    def work() -> int:
        raise MemoryError

    assert threads.submit(work, lambda _: pytest.fail("done"), lambda: told.append("failed"))
    calls.get(timeout=10)()
    assert (told, threads.unfinished) == (["failed"], 0)
    threads.stop()


def test_threads_that_the_system_does_not_start_are_a_full_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = HashingThreads(1, 1, pytest.fail)

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert not threads.submit(lambda: 1, pytest.fail, pytest.fail)
    assert (threads.unfinished, threads.refused) == (0, 1)


def test_threads_do_the_work_and_call_back_on_the_kernel_s_thread() -> None:
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

    assert threads.submit(work, worked_on.append, pytest.fail)
    assert threads.submit(work, worked_on.append, pytest.fail)
    assert began.wait(10)
    assert not threads.submit(work, worked_on.append, pytest.fail), "one runs and one waits: the queue is full"
    may_go_on.set()
    assert arrived.acquire(timeout=10)
    assert arrived.acquire(timeout=10)
    assert worked_on == [], "not before the kernel's thread runs the callbacks"
    for call in calls:
        call()
    assert len(worked_on) == 2
    assert threading.get_ident() not in worked_on
    assert (threads.unfinished, threads.refused) == (0, 1)
    threads.stop()
