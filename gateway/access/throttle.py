"""Throttling of failed logins: the more attempts failed, the longer the next one is delayed.

Failures are counted by three keys. For a pair of address and user, the first few are free; then the delay doubles with
each failure, up to ``max_delay_s``. For an address, many more are free and the delay is limited to a fifth; a user who
logged in from there before is exempt. For a user there is no delay, but after many failures an address that is new to
the user has only one free attempt. So an attack on a user never delays a correct login from another address.

A success clears the failures of its address and user. Simultaneous attempts with the same password share one attempt,
for example when a thousand clients start together. Simultaneous attempts with different passwords are limited, because
none of them has failed yet.
"""

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final, Generic, TypeVar

from gateway.access.once import call_each
from gateway.access.principals import Credentials
from gateway.logs import StructuredLog, masked

_log: Final = StructuredLog("access")

#: The first delays for an address and user, and for an address. A delay doubles with each further failure.
_FIRST_DELAY_S: Final = 0.25
_FIRST_ADDRESS_DELAY_S: Final = 0.05
_ADDRESS_SHARE: Final = 5
_MOST_DOUBLINGS: Final = 16

#: Longer user names, in characters, are replaced by a digest.
LONGEST_NAME: Final = 128

#: The interval of log lines about refused logins of one address; refusals in between are counted.
_LOG_INTERVAL_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class ThrottleRules:
    """Settings of the throttle. ``max_delay_s`` 0 disables it."""

    free_attempts: int = 5
    free_attempts_per_address: int = 50
    free_attempts_per_user: int = 100
    max_delay_s: float = 5.0
    forget_after_s: float = 300.0
    max_waiting: int = 1000
    max_parallel: int = 100
    table_size: int = 10_000


@dataclass(slots=True)
class FailureCount:
    """The failures of one key. The next attempt is allowed at ``ready_at``."""

    failures: int = 0
    ready_at: float = 0.0
    last_at: float = 0.0
    parallel: int = 0
    is_known: bool = False
    logged_at: float = -_LOG_INTERVAL_S
    unlogged: int = 0


T = TypeVar("T")


class FailureTable(Generic[T]):
    """Failure counts by key, bounded: a new key evicts the least recently used one."""

    def __init__(self, size: int, forget_after_s: float) -> None:
        self._size = size
        self.forget_after_s = forget_after_s
        self._count_by_key: OrderedDict[T, FailureCount] = OrderedDict()

    def __len__(self) -> int:
        return len(self._count_by_key)

    def find(self, key: T, now: float) -> FailureCount | None:
        """Return the count of a key; ``None`` if there is none or it has expired."""
        counter = self._count_by_key.get(key)
        if counter is not None and now - counter.last_at > self.forget_after_s:
            del self._count_by_key[key]
            return None
        return counter

    def use(self, key: T, now: float) -> FailureCount:
        """Return the count of a key, new if there is none."""
        counter = self.find(key, now)
        if counter is None:
            counter = self._count_by_key[key] = FailureCount()
            if len(self._count_by_key) > self._size:
                self._count_by_key.popitem(last=False)
        self._count_by_key.move_to_end(key)
        counter.last_at = max(now, counter.ready_at)
        return counter

    def clear(self) -> None:
        """Remove all counts."""
        self._count_by_key.clear()


Key = tuple[str, str]
Guess = bytes
Admission = Callable[[bool], None]


@dataclass(slots=True)
class LoginAttempt:
    """One login attempt, admitted or delayed, which logins with the same password share."""

    key: Key
    guess: Guess
    is_waiting: bool = False
    has_failed: bool = False
    shared_by: int = 0
    waiting: list[Admission] = field(default_factory=list)


class LoginThrottle:
    """Counts failed logins and delays the next ones. One for all protocols and virtual hosts of a node.

    ``delayed`` and ``refused`` count attempts since the start. ``call_later`` calls back on the kernel's thread.
    """

    def __init__(
        self, rules: ThrottleRules, now: Callable[[], float], call_later: Callable[[float, Callable[[], None]], object]
    ) -> None:
        self._rules = rules
        self._now = now
        self._call_later = call_later
        self._pairs: FailureTable[Key] = FailureTable(rules.table_size, rules.forget_after_s)
        self._addresses: FailureTable[str] = FailureTable(rules.table_size, rules.forget_after_s)
        self._users: FailureTable[str] = FailureTable(rules.table_size, rules.forget_after_s)
        self._attempts: dict[tuple[Key, Guess], LoginAttempt] = {}
        self._secret = secrets.token_bytes(32)
        self.waiting = 0
        self.delayed = 0
        self.refused = 0

    @property
    def rules(self) -> ThrottleRules:
        """The current settings; ``table_size`` is fixed at the start."""
        return self._rules

    @rules.setter
    def rules(self, rules: ThrottleRules) -> None:
        self._rules = rules
        self._pairs.forget_after_s = self._addresses.forget_after_s = self._users.forget_after_s = rules.forget_after_s

    # Interface of authentication

    def attempt_of(self, credentials: Credentials) -> LoginAttempt:
        """Return the attempt for these credentials: a shared one with the same password, or a new one."""
        key = address_of(credentials.peer_host), short(credentials.username)
        text = f"{credentials.mechanism}\0{credentials.password}"
        guess = hmac.digest(self._secret, text.encode(errors="surrogatepass"), "sha256")
        return self._attempts.get((key, guess)) or LoginAttempt(key, guess)

    def unshared(self, peer_host: str, user: str) -> LoginAttempt:
        """Return a separate attempt, for methods that do not send the password."""
        return LoginAttempt((address_of(peer_host), short(user)), secrets.token_bytes(16))

    def wait_s(self, attempt: LoginAttempt) -> float:
        """Return an attempt's current delay in seconds; 0 for one that shares another's."""
        if self.rules.max_delay_s <= 0 or (attempt.key, attempt.guess) in self._attempts:
            return 0.0
        now = self._now()
        pair, address = self._pairs.find(attempt.key, now), self._addresses.find(attempt.key[0], now)
        wait = pair.ready_at - now if pair is not None else 0.0
        if address is not None and not (pair is not None and pair.is_known):
            wait = max(wait, address.ready_at - now)
        return max(wait, 0.0)

    def admit(self, attempt: LoginAttempt, answer: Admission) -> None:
        """Call ``answer`` once, now or later: whether the attempt may proceed. If so, ``ended`` must follow."""
        if self.rules.max_delay_s <= 0:
            answer(True)
            return
        shared = self._attempts.get((attempt.key, attempt.guess))
        if shared is not None:
            self._join(shared, answer)
            return
        wait = self.wait_s(attempt)
        if not self._has_room(attempt.key, wait):
            self._refuse(attempt)
            answer(False)
            return
        self._reserve(attempt.key, wait)
        self._attempts[attempt.key, attempt.guess] = attempt
        attempt.is_waiting = wait > 0
        self._join(attempt, answer)
        if wait > 0:
            self._call_later(wait, lambda: self._waited(attempt))

    def ended(self, attempt: LoginAttempt, has_succeeded: bool) -> None:
        """Record the result of an admitted attempt: count a failure; on success clear those of address and user."""
        attempt.shared_by -= 1
        if attempt.shared_by <= 0 and self._attempts.pop((attempt.key, attempt.guess), None) is not None:
            counter = self._pairs.use(attempt.key, self._now())
            counter.parallel = max(counter.parallel - 1, 0)
        if self.rules.max_delay_s <= 0:
            return
        if has_succeeded:
            self._clear_failures(attempt.key)
        elif not attempt.has_failed:
            attempt.has_failed = True
            self._count(attempt.key)

    # Delays

    def _join(self, attempt: LoginAttempt, answer: Admission) -> None:
        if not attempt.is_waiting:
            attempt.shared_by += 1
            answer(True)
        elif self.waiting >= self.rules.max_waiting:
            self._refuse(attempt)
            answer(False)
        else:
            attempt.shared_by += 1
            attempt.waiting.append(answer)
            self.waiting += 1
            self.delayed += 1

    def _waited(self, attempt: LoginAttempt) -> None:
        attempt.is_waiting = False
        waiting, attempt.waiting = attempt.waiting, []
        self.waiting -= len(waiting)
        call_each(waiting, True)

    # Counts

    def _has_room(self, key: Key, wait: float) -> bool:
        """Whether one more attempt may run or wait."""
        if wait > 0:
            return wait <= self.rules.max_delay_s and self.waiting < self.rules.max_waiting
        pair = self._pairs.find(key, self._now())
        return pair is None or pair.parallel < self.rules.max_parallel

    def _reserve(self, key: Key, wait: float) -> None:
        """Schedule the next attempt of a delayed key one delay after this one."""
        now = self._now()
        pair, address = self._pairs.use(key, now), self._addresses.find(key[0], now)
        pair.parallel += 1
        if pair.ready_at:
            pair.ready_at = now + wait + self._pair_delay_s(pair, key)
        if address is not None and address.ready_at:
            address.ready_at = now + wait + self._address_delay_s(address)

    def _count(self, key: Key) -> None:
        """Count a failure and set the time of the next attempt."""
        now = self._now()
        pair, address, user = self._used(key, now)
        for counter in (pair, address, user):
            counter.failures += 1
        pair.ready_at = _later(pair.ready_at, now, self._pair_delay_s(pair, key))
        address.ready_at = _later(address.ready_at, now, self._address_delay_s(address))

    def _pair_delay_s(self, pair: FailureCount, key: Key) -> float:
        rules, user = self.rules, self._users.find(key[1], self._now())
        is_attacked = user is not None and user.failures > rules.free_attempts_per_user
        free = min(rules.free_attempts, 1) if is_attacked and not pair.is_known else rules.free_attempts
        return delay_s(pair.failures - free, _FIRST_DELAY_S, rules.max_delay_s)

    def _address_delay_s(self, address: FailureCount) -> float:
        over = address.failures - self.rules.free_attempts_per_address
        return delay_s(over, _FIRST_ADDRESS_DELAY_S, self.rules.max_delay_s / _ADDRESS_SHARE)

    def _clear_failures(self, key: Key) -> None:
        now = self._now()
        pair = self._pairs.use(key, now)
        pair.is_known = True
        if not pair.failures:
            return
        address, user = self._addresses.use(key[0], now), self._users.use(key[1], now)
        for counter in (address, user):
            counter.failures = max(counter.failures - pair.failures, 0)
        pair.failures, pair.ready_at, pair.last_at = 0, 0.0, now
        if address.failures <= self.rules.free_attempts_per_address:
            address.ready_at = 0.0

    def _used(self, key: Key, now: float) -> tuple[FailureCount, FailureCount, FailureCount]:
        return self._pairs.use(key, now), self._addresses.use(key[0], now), self._users.use(key[1], now)

    def _refuse(self, attempt: LoginAttempt) -> None:
        """Count a refusal; log at most one line per address in ten seconds."""
        self.refused += 1
        now, (address, user) = self._now(), attempt.key
        counter = self._addresses.use(address, now)
        counter.unlogged += 1
        if now - counter.logged_at >= _LOG_INTERVAL_S:
            _log.warning("logins refused: too many failed", peer=address, user=masked(user), refused=counter.unlogged)
            counter.logged_at, counter.unlogged = now, 0


def _later(ready_at: float, now: float, delay: float) -> float:
    return max(ready_at, now + delay) if delay > 0 else ready_at


def delay_s(over: int, first_s: float, most_s: float) -> float:
    """Return the delay of the attempt number ``over`` beyond the free ones."""
    if over < 0:
        return 0.0
    return float(min(most_s, first_s * 2 ** min(over, _MOST_DOUBLINGS)))


def short(user: str) -> str:
    """Return a user name for the tables: itself, or a digest if it is very long."""
    if len(user) <= LONGEST_NAME:
        return user
    return f"{user[:16]}... {hashlib.sha256(user.encode(errors='surrogatepass')).hexdigest()}"


@lru_cache(maxsize=4096)
def address_of(host: str) -> str:
    """Return the key of an address: for IPv6 the /64 network, because one client usually has all of it."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    if address.is_loopback:
        return str(address)
    return str(IPv6Address(int(address) >> 64 << 64)) + "/64"
