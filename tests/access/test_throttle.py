"""Logins that fail delay the next ones, by address and user, and disturb no other address and no other user."""

from collections.abc import Callable

import pytest

from gateway.access import Access, Authenticator, Credentials, LoginThrottle, Principal, ThrottleRules
from gateway.access.throttle import address_of, delay_s
from gateway.testing import FakeClock

HERE, THERE = "192.0.2.1", "192.0.2.2"
RULES = ThrottleRules(free_attempts=3, free_attempts_per_address=6, free_attempts_per_user=10, max_delay_s=4.0)


class Doorman:
    """Knows anna and bert; answers at once, or later when it ``holds``."""

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
    """A door with a throttle, a clock that tests move, and what became of each login."""

    def __init__(self, rules: ThrottleRules = RULES) -> None:
        self.clock = FakeClock()
        self.throttle = LoginThrottle(rules, self.clock.monotonic_s, self.clock.call_later)
        self.doorman = Doorman()
        doormen: list[Authenticator] = [self.doorman]
        self.access = Access(doormen, [], throttle=self.throttle)
        self.answers: list[str | None] = []

    def login(self, user: str = "anna", password: str = "right", host: str = HERE) -> None:
        def answered(principal: Principal | None) -> None:
            self.answers.append(None if principal is None else principal.name)

        self.access.authenticate(Credentials("PLAIN", user, password, peer_host=host), answered)

    def fail(self, times: int, user: str = "anna", host: str = HERE) -> None:
        """Fail so often, waiting for each answer."""
        for number in range(times):
            count = len(self.answers)
            self.login(user, f"wrong {number}", host)
            while len(self.answers) == count:
                self.clock.advance(0.05)

    def wait_s(self, user: str = "anna", host: str = HERE) -> float:
        return self.access.retry_after_s(Credentials("PLAIN", user, "another", peer_host=host))


@pytest.fixture
def house() -> ThrottledLogins:
    return ThrottledLogins()


def test_the_delay_grows_with_each_failure_up_to_the_longest(house: ThrottledLogins) -> None:
    delays = []
    for _ in range(9):
        house.fail(1)
        delays.append(round(house.wait_s(), 2))
    assert delays == [0, 0, 0.25, 0.5, 1, 2, 4, 4, 4]


def test_a_delayed_login_is_judged_when_its_time_has_come_and_not_before(house: ThrottledLogins) -> None:
    house.fail(4)
    house.doorman.asked.clear()
    house.login()
    house.clock.advance(0.45)
    assert (house.doorman.asked, house.throttle.waiting) == ([], 1)
    house.clock.advance(0.1)
    assert (house.answers[-1], house.throttle.waiting, house.throttle.delayed) == ("anna", 0, 2)


def test_a_success_clears_the_failures(house: ThrottledLogins) -> None:
    house.fail(4)
    house.clock.advance(1)
    house.login()
    assert house.answers[-1] == "anna"
    assert house.wait_s() == 0
    house.fail(2)
    assert house.wait_s() == 0


def test_an_attack_on_a_user_delays_no_login_of_it_from_another_address(house: ThrottledLogins) -> None:
    for number in range(40):
        house.fail(1, host=f"198.51.100.{number}")
    house.login(host=THERE)
    assert house.answers[-1] == "anna"
    assert house.throttle.waiting == 0


def test_a_user_under_attack_leaves_a_new_address_one_free_attempt(house: ThrottledLogins) -> None:
    for number in range(11):
        house.fail(1, host=f"198.51.100.{number}")
    house.fail(1, host=THERE)
    assert house.wait_s(host=THERE) > 0


def test_an_address_that_tries_many_users_is_delayed_for_new_ones_and_less_long(house: ThrottledLogins) -> None:
    house.login("bert")
    for number in range(40):
        house.fail(1, user=f"user{number}")
    assert 0.5 < house.wait_s("carl") < 0.9, "a fifth of the longest delay at most"
    assert house.wait_s("bert") == 0, "bert has logged in from there before"
    assert house.wait_s("carl", THERE) == 0


def test_attempts_made_at_once_wait_in_a_row_and_the_rest_are_refused_unjudged(house: ThrottledLogins) -> None:
    house.fail(6)
    house.doorman.asked.clear()
    before = len(house.answers)
    for number in range(100):
        house.login(password=f"guess {number}")
    house.clock.advance(10)
    assert len(house.answers) - before == 100
    assert len(house.doorman.asked) <= 3
    assert house.throttle.refused >= 97


def test_attempts_made_before_any_has_failed_are_only_so_many() -> None:
    house = ThrottledLogins(ThrottleRules(max_parallel=10))
    house.doorman.holds = True
    for number in range(50):
        house.login(password=f"guess {number}")
    assert len(house.doorman.asked) == 10
    house.doorman.go()
    assert house.wait_s() > 0


def test_clients_with_the_same_password_at_the_same_time_are_one_attempt(house: ThrottledLogins) -> None:
    house.doorman.holds = True
    for _ in range(1000):
        house.login()
    house.doorman.go()
    assert house.answers == ["anna"] * 1000
    house.doorman.holds = False
    house.fail(4)
    for _ in range(500):
        house.login()
    house.clock.advance(1)
    assert house.answers[-500:] == ["anna"] * 500


def test_failures_are_forgotten_after_a_while(house: ThrottledLogins) -> None:
    house.fail(8)
    house.clock.advance(RULES.forget_after_s + 5)
    house.fail(2)
    assert house.wait_s() == 0


def test_neither_the_tables_nor_the_waiting_grow_without_bound() -> None:
    house = ThrottledLogins(
        ThrottleRules(free_attempts=1, free_attempts_per_address=10**6, max_waiting=20, table_size=100)
    )
    for number in range(1000):
        house.login(f"user{number}" * 100, "wrong", f"10.0.{number // 250}.{number % 250}")
    throttle = house.throttle
    assert [len(table) for table in (throttle._pairs, throttle._addresses, throttle._users)] == [100, 100, 100]
    for number in range(1000, 1100):
        for guess in range(2):
            house.login(f"user{number}", f"wrong {guess}")
    assert throttle.waiting == 20
    assert throttle.refused > 0


def test_the_throttle_can_be_turned_off() -> None:
    house = ThrottledLogins(ThrottleRules(max_delay_s=0))
    house.fail(1000)
    assert (house.wait_s(), house.throttle.delayed, house.throttle.refused) == (0, 0, 0)


def test_it_can_be_turned_off_and_on_while_logins_wait(house: ThrottledLogins) -> None:
    house.fail(5)
    house.login()
    house.throttle.rules = ThrottleRules(max_delay_s=0)
    house.clock.advance(2)
    assert (house.answers[-1], house.throttle.waiting) == ("anna", 0)
    house.throttle.rules = ThrottleRules(free_attempts=3)
    assert house.wait_s() == 0
    assert not house.throttle._attempts


def test_a_certificate_is_never_delayed(house: ThrottledLogins) -> None:
    for _ in range(20):
        house.access.authenticate(Credentials("EXTERNAL", peer_host=HERE), lambda principal: None)
    assert house.throttle.wait_s(house.throttle.unshared(HERE, "")) == 0


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
def test_an_address_of_ipv6_counts_with_its_network(host: str, key: str) -> None:
    assert address_of(host) == key


def test_a_delay_has_no_overflow() -> None:
    assert delay_s(10**9, 0.25, 5.0) == 5.0
