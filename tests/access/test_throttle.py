"""Failed logins delay the next ones by address and user, and do not affect other addresses and users."""

from collections.abc import Callable

import pytest

from gateway.access import Access, Authenticator, Credentials, LoginThrottle, Principal, ThrottleRules
from gateway.access.throttle import address_of, delay_s
from gateway.testing import FakeClock

HERE, THERE = "192.0.2.1", "192.0.2.2"
RULES = ThrottleRules(free_attempts=3, free_attempts_per_address=6, free_attempts_per_user=10, max_delay_s=4.0)


class SlowAuthenticator:
    """An authenticator of anna and bert that answers at once, or later while ``holds`` is true."""

    def __init__(self) -> None:
        self.holds = False
        self.asked: list[Credentials] = []
        self.held: list[tuple[Credentials, Callable[[Principal | None], None]]] = []

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        self.asked.append(credentials)
        if self.holds:
            self.held.append((credentials, answer))
        else:
            answer(self.judged(credentials))

    def judged(self, credentials: Credentials) -> Principal | None:
        is_right = credentials.username in ("anna", "bert") and credentials.password == "right"
        return Principal(credentials.username) if is_right else None

    def go(self) -> None:
        for credentials, answer in self.held:
            answer(self.judged(credentials))
        self.held.clear()


class ThrottledLogins:
    """Logins through a throttle with a fake clock, and their results."""

    def __init__(self, rules: ThrottleRules = RULES) -> None:
        self.clock = FakeClock()
        self.throttle = LoginThrottle(rules, self.clock.monotonic_s, self.clock.call_later)
        self.authenticator = SlowAuthenticator()
        authenticators: list[Authenticator] = [self.authenticator]
        self.access = Access(authenticators, [], throttle=self.throttle)
        self.answers: list[str | None] = []

    def login(self, user: str = "anna", password: str = "right", host: str = HERE) -> None:
        def answered(principal: Principal | None) -> None:
            self.answers.append(None if principal is None else principal.name)

        self.access.authenticate(Credentials("PLAIN", user, password, peer_host=host), answered)

    def fail(self, times: int, user: str = "anna", host: str = HERE) -> None:
        """Fail ``times`` times, waiting for each answer."""
        for number in range(times):
            count = len(self.answers)
            self.login(user, f"wrong {number}", host)
            while len(self.answers) == count:
                self.clock.advance(0.05)

    def wait_s(self, user: str = "anna", host: str = HERE) -> float:
        return self.access.retry_after_s(Credentials("PLAIN", user, "another", peer_host=host))


@pytest.fixture
def logins() -> ThrottledLogins:
    return ThrottledLogins()


def test_the_delay_grows_with_each_failure_up_to_the_maximum(logins: ThrottledLogins) -> None:
    delays = []
    for _ in range(9):
        logins.fail(1)
        delays.append(round(logins.wait_s(), 2))
    assert delays == [0, 0, 0.25, 0.5, 1, 2, 4, 4, 4]


def test_a_delayed_login_is_checked_after_its_delay_and_not_before(logins: ThrottledLogins) -> None:
    logins.fail(4)
    logins.authenticator.asked.clear()
    logins.login()
    logins.clock.advance(0.45)
    assert (logins.authenticator.asked, logins.throttle.waiting) == ([], 1)
    logins.clock.advance(0.1)
    assert (logins.answers[-1], logins.throttle.waiting, logins.throttle.delayed) == ("anna", 0, 2)


def test_a_success_clears_the_failures(logins: ThrottledLogins) -> None:
    logins.fail(4)
    logins.clock.advance(1)
    logins.login()
    assert logins.answers[-1] == "anna"
    assert logins.wait_s() == 0
    logins.fail(2)
    assert logins.wait_s() == 0


def test_an_attack_on_a_user_does_not_delay_its_logins_from_another_address(logins: ThrottledLogins) -> None:
    for number in range(40):
        logins.fail(1, host=f"198.51.100.{number}")
    logins.login(host=THERE)
    assert logins.answers[-1] == "anna"
    assert logins.throttle.waiting == 0


def test_a_user_under_attack_has_one_free_attempt_from_a_new_address(logins: ThrottledLogins) -> None:
    for number in range(11):
        logins.fail(1, host=f"198.51.100.{number}")
    logins.fail(1, host=THERE)
    assert logins.wait_s(host=THERE) > 0


def test_an_address_that_tries_many_users_is_delayed_for_new_users(logins: ThrottledLogins) -> None:
    logins.login("bert")
    for number in range(40):
        logins.fail(1, user=f"user{number}")
    assert 0.5 < logins.wait_s("carl") < 0.9, "at most a fifth of the maximum delay"
    assert logins.wait_s("bert") == 0, "bert has logged in from there before"
    assert logins.wait_s("carl", THERE) == 0


def test_simultaneous_attempts_are_delayed_one_after_the_other_and_the_rest_is_refused(logins: ThrottledLogins) -> None:
    logins.fail(6)
    logins.authenticator.asked.clear()
    before = len(logins.answers)
    for number in range(100):
        logins.login(password=f"guess {number}")
    logins.clock.advance(10)
    assert len(logins.answers) - before == 100
    assert len(logins.authenticator.asked) <= 3
    assert logins.throttle.refused >= 97


def test_the_number_of_simultaneous_attempts_is_limited() -> None:
    logins = ThrottledLogins(ThrottleRules(max_parallel=10))
    logins.authenticator.holds = True
    for number in range(50):
        logins.login(password=f"guess {number}")
    assert len(logins.authenticator.asked) == 10
    logins.authenticator.go()
    assert logins.wait_s() > 0


def test_simultaneous_logins_with_the_same_password_are_one_attempt(logins: ThrottledLogins) -> None:
    logins.authenticator.holds = True
    for _ in range(1000):
        logins.login()
    logins.authenticator.go()
    assert logins.answers == ["anna"] * 1000
    logins.authenticator.holds = False
    logins.fail(4)
    for _ in range(500):
        logins.login()
    logins.clock.advance(1)
    assert logins.answers[-500:] == ["anna"] * 500


def test_failures_expire(logins: ThrottledLogins) -> None:
    logins.fail(8)
    logins.clock.advance(RULES.forget_after_s + 5)
    logins.fail(2)
    assert logins.wait_s() == 0


def test_the_tables_and_the_queue_of_delayed_logins_are_bounded() -> None:
    logins = ThrottledLogins(
        ThrottleRules(free_attempts=1, free_attempts_per_address=10**6, max_waiting=20, table_size=100)
    )
    for number in range(1000):
        logins.login(f"user{number}" * 100, "wrong", f"10.0.{number // 250}.{number % 250}")
    throttle = logins.throttle
    assert [len(table) for table in (throttle._pairs, throttle._addresses, throttle._users)] == [100, 100, 100]
    for number in range(1000, 1100):
        for guess in range(2):
            logins.login(f"user{number}", f"wrong {guess}")
    assert throttle.waiting == 20
    assert throttle.refused > 0


def test_the_throttle_can_be_disabled() -> None:
    logins = ThrottledLogins(ThrottleRules(max_delay_s=0))
    logins.fail(1000)
    assert (logins.wait_s(), logins.throttle.delayed, logins.throttle.refused) == (0, 0, 0)


def test_the_throttle_can_be_disabled_and_enabled_while_logins_are_delayed(logins: ThrottledLogins) -> None:
    logins.fail(5)
    logins.login()
    logins.throttle.rules = ThrottleRules(max_delay_s=0)
    logins.clock.advance(2)
    assert (logins.answers[-1], logins.throttle.waiting) == ("anna", 0)
    logins.throttle.rules = ThrottleRules(free_attempts=3)
    assert logins.wait_s() == 0
    assert not logins.throttle._attempts


def test_a_certificate_login_is_not_delayed(logins: ThrottledLogins) -> None:
    for _ in range(20):
        logins.access.authenticate(Credentials("EXTERNAL", peer_host=HERE), lambda principal: None)
    assert logins.throttle.wait_s(logins.throttle.unshared(HERE, "")) == 0


@pytest.mark.parametrize(
    ("host", "key"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::1"),
        ("", ""),
    ],
)
def test_an_ipv6_address_is_counted_by_its_network(host: str, key: str) -> None:
    assert address_of(host) == key


def test_a_delay_does_not_overflow() -> None:
    assert delay_s(10**9, 0.25, 5.0) == 5.0
